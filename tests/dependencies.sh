#!/usr/bin/env bash
# `cargo build -p mini` compiles these crates and no others.
set -euo pipefail
cd "$(dirname "$0")/.."
allowed=" mini mini-net mini-time mini-macros libc socket2 futures-task futures-io futures-core pin-project-lite signal-hook-registry errno "
found=$(cargo tree -p mini --edges normal,build --prefix none --format '{p}' | cut -d' ' -f1 | sort -u)
for crate in $found; do
  case "$allowed" in
    *" $crate "*) ;;
    *) echo "a user's build of mini would compile $crate, which is not on the list"; exit 1 ;;
  esac
done
echo "mini compiles:" $found
