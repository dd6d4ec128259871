# The commands of CONTRIBUTING.md, for `just` (https://just.systems). `just --list` shows them.

# All tests, or those of one program in tests/tests: `just test timers`
test *program:
    cargo test {{ if program == "" { "" } else { "-p mini-tests --test " + program } }}

# The models of the parts with atomics, and of whole runtimes
models:
    tests/models/run.sh loom
    tests/models/run.sh shuttle

# Compares mini with its peers, and saves the tables
bench:
    cargo bench -p mini-benches -- --save

# Everything that a change has to pass
check:
    .ci/run
