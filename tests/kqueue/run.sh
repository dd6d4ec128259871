#!/usr/bin/env bash
# Runs the tests of mini through its kqueue backend, on the stand-in for kqueue(2) that is beside this file. Linux only.
#
#   tests/kqueue/run.sh [all]
#
# By itself those programs that have most to do with readiness; with `all` each but `project`, which tries the compiler.
# The crates are built once more, as the choice is a `cfg`: into kqueue/suite of the folder for builds.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/kqueue/suite CARGO_PROFILE_DEV_DEBUG=0
export RUSTFLAGS="${RUSTFLAGS:-} --cfg mini_kqueue_shim"
# The stand-in allocates for each socket, on any thread: with an arena for each, a server's memory seems to grow.
export MALLOC_ARENA_MAX=1

some=(io processes runtimes scheduling shutdown signal sockets tasks)
if [ "${1:-}" = all ]; then
  some=()
  for file in tests/tests/*.rs tests/tests/*/main.rs; do
    name=${file#tests/tests/} name=${name%.rs} name=${name%/main}
    [ "$name" = project ] || some+=("$name")
  done
fi

timeout 1200 cargo test -p mini-net -p mini-tests --lib "${some[@]/#/--test=}"
# Once more in the mean mode: those that have to do with ends, datagrams and embedding, or all.
[ "${1:-}" = all ] || some=(io runtimes sockets)
MINI_KQUEUE_MEAN=1 timeout 1200 cargo test -p mini-net -p mini-tests --lib "${some[@]/#/--test=}" -- --skip sys::bsd
# And as on systems that have no EVFILT_USER.
MINI_KQUEUE_NO_USER=1 timeout 300 cargo test -p mini-net --lib -- --skip sys::bsd
MINI_KQUEUE_NO_USER=1 timeout 300 cargo test -p mini-tests --test runtimes --test scheduling --test tasks
