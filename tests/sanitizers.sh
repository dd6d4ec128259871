#!/usr/bin/env bash
# Runs the tests under a sanitizer, or a few programs under valgrind.
#
#   tests/sanitizers.sh address|leak|thread [package...]    by default mini-{time,net,kernel,rt,tests,fuzz}
#   tests/sanitizers.sh valgrind
#
# Further arguments for `cargo test` go into MINI_SANITIZER_ARGS. What is skipped, and why, stands below; what is
# suppressed stands with its reason in tests/sanitizers/*.supp.
#
# AddressSanitizer and LeakSanitizer need the stable toolchain alone. ThreadSanitizer must see the standard library too,
# so that is built from its source: the source package of Debian, downloaded once (88 MB) into MINI_SANITIZER_CACHE, by
# default target/sanitizers; or unpacked by hand, with STD_SOURCE naming its folder `library`.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/tests/sanitizers
kind=${1:?which one: address, leak, thread or valgrind}
shift
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(rustc -vV | sed -n 's/^release: //p')
output=${CARGO_TARGET_DIR:-$PWD/target}
cache=${MINI_SANITIZER_CACHE:-$output/sanitizers}
export CARGO_PROFILE_DEV_DEBUG=1 # the lines in a report
export MINI_TEST_LIMIT=600      # seconds before a test counts as a hang
export RUST_BACKTRACE=0         # of panics that are meant: each would take seconds

# Skipped under every sanitizer. These run cargo, and what rustc says is the same there:
skip=(mistakes_are_reported_where_they_stand what_is_allowed_builds_and_runs
  every_line_for_those_who_come_from_tokio_compiles)
# It moves so much that it would take minutes:
skip+=(a_hundred_megabytes_come_back_as_they_went)
# It measures stacks, which are others then:
skip+=(a_large_future_is_copied_no_more_often_than_by_tokio)
# These leak on purpose, a guard, a scope, or a task that may not leave its thread, to see what comes of it:
leaking=(a_leaked_guard_ends_with_its_thread local_tasks_that_had_to_be_leaked_hold_no_descriptor
  local_tasks_whose_destructors_spawn_their_like_end_with_block_on
  tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said a_leaked_task_is_named_and_its_name_is_dropped
  a_leaked_local_task_stays_leaked_when_the_end_wakes_it a_scope_that_is_forgotten_is_no_harm)

run_tests() {
  local packages=() skips=()
  [ $# -gt 0 ] || set -- mini-time mini-net mini-kernel mini-rt mini-tests mini-fuzz
  for package in "$@"; do packages+=(-p "$package"); done
  for name in "${skip[@]}"; do skips+=(--skip "$name"); done
  # A target is named, else build scripts and macros would be built with these flags too.
  # shellcheck disable=SC2086 # several arguments
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$kind" CARGO_TARGET_DIR="$output/$kind" \
    cargo test --target "$target" ${build_std:-} "${packages[@]}" --lib --tests --no-fail-fast \
    ${MINI_SANITIZER_ARGS:-} -- "${skips[@]}"
}

# The standard library's source, of exactly this compiler.
fetch_std() {
  STD_SOURCE=$cache/rustc-$version-src/library
  [ ! -d "$STD_SOURCE" ] || return 0
  mkdir -p "$cache/lists/partial" "$cache/archives/partial"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main" \
    >"$cache/sid.list"
  local options=(-qq -o "Dir::State::Lists=$cache/lists" -o "Dir::Etc::SourceList=$cache/sid.list"
    -o Dir::Etc::SourceParts=/nonexistent -o "Dir::Cache=$cache")
  apt-get "${options[@]}" update
  local package
  package=$(apt-cache "${options[@]}" showsrc --only-source rustc |
    sed -n "s/^Version: \($version+.*\)/\1/p" | head -n 1)
  if [ -z "$package" ]; then
    echo "Debian has no source of Rust $version any more: set STD_SOURCE"
    exit 1
  fi
  # The checked tarball comes even where the description beside it is gone from the server, which apt calls an error.
  (cd "$cache" && apt-get "${options[@]}" source --download-only "rustc=$package") || true
  tar -C "$cache" -xf "$cache/rustc_${package%-*}.orig.tar.xz" "rustc-$version-src/library"
}

case $kind in
  address)
    # LeakSanitizer runs along, at the end of each program.
    skip+=("${leaking[@]}")
    ASAN_OPTIONS=detect_stack_use_after_return=1 \
      LSAN_OPTIONS=suppressions=$here/leak.supp:print_suppressions=0 run_tests "$@"
    ;;
  leak)
    # The last one has what tests/sanitizers/leak.supp allows, but here the stack ends before the name that stands
    # there.
    skip+=("${leaking[@]}" a_payload_that_panics_when_dropped_is_contained)
    LSAN_OPTIONS=suppressions=$here/leak.supp:print_suppressions=0 run_tests "$@"
    ;;
  thread)
    [ -n "${STD_SOURCE:-}" ] || fetch_std
    export __CARGO_TESTS_ONLY_SRC_ROOT=$STD_SOURCE
    build_std=-Zbuild-std
    # They stand in for `epoll_wait`, of which the sanitizer must know.
    skip+=(a_busy_worker_takes_no_notification_away the_monitor_outlives_any_number_of_owners)
    # The sanitizer puts a handler off until the thread that was interrupted calls something that it knows: an atomic
    # operation, or most of the C library. What is sent to the process goes to the main thread, which is the harness's
    # and sleeps in a futex(2) that the standard library calls by itself. With a timeout that call ends when it is
    # interrupted, and the loop around it looks at an atomic. Without one the kernel goes on with it, as the handler has
    # SA_RESTART, and nothing comes of the signal any more. The harness has a timeout until it has said that a test
    # takes over 60 s, and none if it runs one test at a time. So the tests of signals send them to the thread that
    # sends.
    export MINI_TEST_RAISE=1
    # Frames are larger: a test of large futures needs more than the 2 MB there are.
    export RUST_MIN_STACK=16777216
    TSAN_OPTIONS=suppressions=$here/thread.supp:print_suppressions=0:second_deadlock_stack=1 run_tests "$@"
    ;;
  valgrind)
    # An allocation that is still reachable at the end is no leak, be it by a thread that has not ended.
    memcheck=(timeout 600 valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite
      --errors-for-leak-kinds=definite "--suppressions=$here/valgrind.supp")
    export CARGO_TARGET_DIR=$output
    cargo build --quiet -p mini-examples --example echo --example tour
    for example in echo tour; do
      printf '\n-- %s\n' "$example"
      "${memcheck[@]}" "$output/debug/examples/$example" </dev/null
    done
    models=$(cargo test --quiet -p mini-fuzz --test fuzz --no-run --message-format=json |
      sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
    for seed in 1 2 3; do
      MINI_FUZZ_SEED=$seed "${memcheck[@]}" "$models" --test-threads=1
    done
    ;;
  *)
    echo "address, leak, thread or valgrind, not $kind"
    exit 2
    ;;
esac
printf '\n%s: clean\n' "$kind"
