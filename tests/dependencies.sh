#!/usr/bin/env bash
# `cargo build -p mini-rt` compiles these crates and no others, and each feature adds those that it is for. The first
# command of the README compiles no more than that.
set -euo pipefail
cd "$(dirname "$0")/.."
least=" mini-rt mini-kernel mini-context mini-net mini-time mini-macros libc socket2 pin-project-lite "
default="$least mini-sync futures-io signal-hook-registry errno "

# Of the features $1 and the crates that they add, $2, to those of the default features or to $3.
check() {
  found=$(cargo tree -p mini-rt --features "$1" "${@:4}" --edges normal,build --prefix none --format '{p}' |
    cut -d' ' -f1 | sort -u)
  for crate in $found; do
    case "${3:-$default}$2 " in
      *" $crate "*) ;;
      *)
        echo "a user's build of mini with the features \"$1\" would compile $crate, which is not on the list"
        exit 1
        ;;
    esac
  done
  echo "mini ${*:4} with the features \"$1\" compiles:" $found
}

# Features of tokio that $1 turns on, other than $2: none of them may bring its runtime.
check_tokio() {
  turned_on=$(cargo tree -p mini-rt --features "$1" --edges normal,build --prefix none --format '{p} {f}' |
    sed -n 's/^tokio v[^ ]* *//p' | head -1)
  turned_on=$(tr , "\n" <<<"$turned_on" | grep -vx default | paste -sd,)
  [ "$turned_on" = "$2" ] || { echo "the feature \"$1\" turns on these of tokio: $turned_on"; exit 1; }
}

check "" "" "$least" --no-default-features
check "" ""
check backtrace "addr2line gimli memmap2 object flate2 crc32fast cfg-if miniz_oxide adler2 simd-adler32 memchr \
  ruzstd twox-hash rustc-demangle typed-arena"
check futures-task "futures-task futures-core"
check hyper "hyper http http-body bytes itoa tokio"
check io-util "futures-lite futures-core fastrand parking"
check stream "futures-core"
check tokio-io "tokio"
check tracing "tracing tracing-core once_cell"
check_tokio hyper "sync"
check_tokio tokio-io ""

# The crates that cargo compiles for a command, each with its features but `default`, which stands for others.
compiled() {
  cargo check --quiet --message-format=json "$@" |
    sed -nE 's/^\{"reason":"compiler-artifact","package_id":"[^"]*#([^"@]*)@.*"features":(\[[^]]*\]).*/\1 \2/p' |
    sed -E 's/"default",?//' | sort -u
}
library=$(compiled -p mini-rt)
example=$(compiled --example echo)
more=$(comm -13 <(echo "$library") <(echo "$example"))
[ "$more" = "mini-examples []" ] || { printf 'the first example would also compile:\n%s\n' "$more"; exit 1; }
echo "the first example compiles what mini does with its default features, and mini-examples"

# What a user's Cargo.lock has though no build of theirs needs it: whatever any system or `cfg` may ask for.
models=$(cargo tree -p mini-rt --all-features --target all --edges normal,build --prefix none --format '{p}' |
  grep -E '^(loom|shuttle) ' || true)
[ -z "$models" ] || { echo "a user's Cargo.lock would have $models"; exit 1; }
