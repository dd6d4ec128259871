#!/usr/bin/env bash
# Type-checks mini for the systems that have kqueue(2), with every feature, its unit tests too, and the example `redis`,
# which has a loop of its own. Nothing is run.
#
#   tests/kqueue/check.sh [--link] [TARGET...]
#
# The standard library is built from its source for each target, as rustup has none for all of them. That takes a
# nightly compiler, which rustup installs together with the source. The first check of a target takes about a minute,
# later ones seconds.
#
# With --link the echo example is also linked for those targets for which `zig cc` has the names in the C library
# (FreeBSD, NetBSD, macOS on ARM), so that each function called exists there. That takes the package ziglang of PyPI, by
# pip: 101 MB.
#
# MINI_KQUEUE_CACHE is where builds and the linker are kept; by default target/kqueue.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=$(realpath -m "${MINI_KQUEUE_CACHE:-target/kqueue}")
link=
if [ "${1:-}" = --link ]; then link=1; shift; fi
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(
  x86_64-unknown-freebsd aarch64-apple-darwin x86_64-unknown-netbsd x86_64-unknown-openbsd
)

rustup component add --toolchain nightly rust-src >/dev/null 2>&1 || { echo "no nightly compiler to be had"; exit 3; }
export RUSTUP_TOOLCHAIN=nightly CARGO_TARGET_DIR=$cache/build
unset RUSTFLAGS
mkdir -p "$cache"

# linker TARGET ZIG_TARGET: writes a linker for cargo, which leaves out what zig does not know or need.
linker() {
  if ! [ -e "$cache/zig/ziglang/zig" ]; then
    mkdir -p "$cache/zig"
    (cd "$cache/zig" && pip download --quiet --no-deps ziglang &&
      python3 -m zipfile -e ziglang-*.whl . && chmod +x ziglang/zig)
  fi
  cat >"$cache/$1-cc" <<END
#!/usr/bin/env bash
kept=() skip=
for word; do
  if [ -n "\$skip" ]; then skip=; continue; fi
  case \$word in
    -arch) skip=1 ;;
    -mmacosx-version-min* | -m64 | --target=* | -fuse-ld* | -lgcc | -lcompiler_rt | -liconv) ;;
    -lkvm | -lmemstat | -lprocstat | -ldevstat) ;;
    -lgcc_s) kept+=(-lunwind) ;;
    *) kept+=("\$word") ;;
  esac
done
exec "$cache/zig/ziglang/zig" cc -target $2 "\${kept[@]}"
END
  chmod +x "$cache/$1-cc"
}

# link TARGET: links an example, if that can be done.
link() {
  local zig
  case $1 in
    x86_64-unknown-freebsd) zig=x86_64-freebsd-none ;;
    x86_64-unknown-netbsd) zig=x86_64-netbsd-none ;;
    aarch64-apple-darwin) zig=aarch64-macos ;;
    *) return 0 ;;
  esac
  linker "$1" "$zig"
  env "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$1")_LINKER=$cache/$1-cc" ZIG_GLOBAL_CACHE_DIR="$cache/zig-cache" \
    cargo build -Zbuild-std=std,panic_abort --config 'profile.dev.panic="abort"' --config profile.dev.strip=false \
    --target "$1" -p mini-examples --example echo \
    && file "$CARGO_TARGET_DIR/$1/debug/examples/echo"
}

rustc --version
failed=()
for target in "${targets[@]}"; do
  log=$cache/$target.log
  # A warning fails too. Not by `-D warnings`: that would go for the standard library as well.
  if cargo check -Zbuild-std=std,test --target "$target" --all-features --lib --tests \
      -p mini-time -p mini-net -p mini-kernel -p mini-rt >"$log" 2>&1 \
      && cargo check -Zbuild-std=std --target "$target" -p mini-more-examples --example redis >>"$log" 2>&1 \
      && ! grep -q '^warning' "$log"; then
    echo "$target: no error, no warning"
  else
    grep -v '^ *\(Compiling\|Checking\|Downloaded\|Downloading\|Blocking\)' "$log" || true
    failed+=("$target")
  fi
  if [ -n "$link" ] && ! link "$target" >"$log" 2>&1; then
    cat "$log"
    failed+=("$target (linking)")
  elif [ -n "$link" ]; then
    sed -n "s/^.*examples\/echo: /$target: linked, /p" "$log"
  fi
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
