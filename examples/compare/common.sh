# Sourced by the comparisons beside this file, which run at the top of the project.

say() { printf '%s\n' "$*" >&2; }

# Installs what is missing: PROGRAM or PROGRAM:PACKAGE of Debian.
need() {
  local need
  for need in "$@"; do
    if ! command -v "${need%%:*}" >/dev/null; then
      say "installing ${need##*:}"
      { apt-get update -qq && apt-get install -y -qq "${need##*:}"; } >&2
    fi
  done
}

# Builds an example with the profile of the benches, and sets `example` to its path.
build() {
  say "building"
  cargo build --profile bench --example "$1" >&2
  example=${CARGO_TARGET_DIR:-target}/release/examples/$1
}
