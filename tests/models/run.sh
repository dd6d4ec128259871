#!/usr/bin/env bash
# `run.sh loom` runs the models of parts, in all orders; `run.sh shuttle` those of whole runtimes, in drawn ones. With
# `--no-run` it only builds them; other arguments go to the tests.
set -euo pipefail
cd "$(dirname "$0")"
case "${1:-}" in
  loom) packages=(-p mini-context-models -p mini-time-models -p mini-net-models -p mini-sync-models \
    -p mini-kernel-models -p mini-rt-models) ;;
  shuttle) packages=(-p mini-rt-models) ;;
  *) echo "usage: $0 loom|shuttle [--no-run | argument of the tests...]" >&2; exit 2 ;;
esac
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}" RUSTFLAGS="${RUSTFLAGS:-} --cfg $1"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/$1"
test=(cargo test "${packages[@]}" --lib --release)
if [ "${2:-}" = --no-run ]; then "${test[@]}" --no-run; else "${test[@]}" -- models:: "${@:2}"; fi
