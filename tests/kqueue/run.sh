#!/usr/bin/env bash
# Runs the tests of mini through its kqueue backend, on the stand-in for kqueue(2) that is beside this file. Linux only.
#
#   tests/kqueue/run.sh [all]
#
# By itself those tests that have most to do with readiness; with `all` each but `readme` and `ui`, which try the
# compiler. The crates are built once more, as the choice is a `cfg`: into kqueue/suite of the folder for builds.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/kqueue/suite CARGO_PROFILE_DEV_DEBUG=0
export RUSTFLAGS="${RUSTFLAGS:-} --cfg mini_kqueue_shim"

some=(async_fd child_pipes copy embed fairness io_traits pipe process runtimes shutdown signal split stdio tcp udp unix
  wakes)
if [ "${1:-}" = all ]; then
  some=()
  for file in tests/tests/*.rs; do
    name=$(basename "$file" .rs)
    case $name in readme | ui) ;; *) some+=("$name") ;; esac
  done
fi

timeout 1200 cargo test -p mini-net -p mini-tests --lib "${some[@]/#/--test=}"
# Once more in the mean mode: those that have to do with ends, datagrams and embedding, or all.
[ "${1:-}" = all ] || some=(async_fd embed io_traits pipe split tcp udp unix)
MINI_KQUEUE_MEAN=1 timeout 1200 cargo test -p mini-net -p mini-tests --lib "${some[@]/#/--test=}" -- --skip sys::bsd
# And as on systems that have no EVFILT_USER.
MINI_KQUEUE_NO_USER=1 timeout 300 cargo test -p mini-net --lib -- --skip sys::bsd
MINI_KQUEUE_NO_USER=1 timeout 300 cargo test -p mini-tests --test wakes --test fairness --test embed --test runtimes
