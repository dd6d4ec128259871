#!/usr/bin/env bash
# 50 seeds must do the same in a debug build and in a release build. Called without arguments, from anywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
cargo run -q -p mini-tests --bin sim_hashes >"$dir/debug"
cargo run -q -p mini-tests --bin sim_hashes --release >"$dir/release"
diff "$dir/debug" "$dir/release"
test "$(grep -c '^seed' "$dir/debug")" = 50
echo "the hashes of 50 seeds are equal in both builds"
