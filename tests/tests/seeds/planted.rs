//! Twenty small programs with a known bug each: how soon seeds find it, and what shrinking leaves of the faults.
//!
//! `schedule`, `time`, `cancellation`, `network` and `files` have the programs. Each is there twice: as it was planted,
//! and mended. The mended one passes 200 seeds; the other fails under one of 1,000, says what is expected, and shrinks
//! to three faults at most. What was measured stands in `RELIABILITY.md`; to take it again:
//!
//! ```text
//! cargo test -p mini-tests --test seeds -- --ignored --nocapture planted::measured::table
//! ```

use std::pin::Pin;

use mini::sim::Seeds;
use mini_tests::seeds_support::{self, faults};

mod cancellation;
mod files;
mod measured;
mod network;
mod schedule;
mod time;

/// The most seeds that a bug may need.
const SEEDS: u64 = 1000;

/// The most faults that may be left of a failure.
const FAULTS: u64 = 3;

/// A program with a bug, or without.
struct Program {
    name: &'static str,
    /// What its failure says.
    says: &'static str,
    /// Whether it is mended.
    run: fn(bool) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// The list of all programs, and a test for each.
macro_rules! programs {
    ($($group:ident::$name:ident says $says:literal;)*) => {
        const PROGRAMS: &[Program] = &[$(Program {
            name: stringify!($name),
            says: $says,
            run: |is_mended| Box::pin($group::$name(is_mended)),
        }),*];

        $(#[test]
        fn $name() {
            is_found(PROGRAMS.iter().find(|program| program.name == stringify!($name)).unwrap());
        })*
    };
}

programs! {
    schedule::lost_update says "panicked: assertion `left == right` failed: a deposit is lost";
    schedule::blind_retry says "panicked: assertion `left == right` failed: an order is lost";
    schedule::two_mutexes says "deadlock: nothing is left that could wake a task";
    schedule::lost_wakeup says "deadlock: nothing is left that could wake a task";
    schedule::same_head_again says "panicked: a block has two owners";
    schedule::overtaken_reader says "panicked: assertion `left == right` failed: the reader was overtaken";
    time::late_enactor says "panicked: the name leads nowhere";
    time::late_answer says "assertion `left == right` failed: the answer to another question";
    time::stale_expiry says "panicked: a session in use has ended";
    cancellation::pooled_connection says "panicked: assertion `left == right` failed: the value of another key";
    cancellation::half_a_frame says "panicked: assertion `left == right` failed: a length that nobody sent";
    cancellation::lost_batch says "panicked: assertion `left == right` failed: some records are lost";
    cancellation::leaked_permit says "panicked: assertion `left == right` failed: nobody is at work";
    network::repeated_request says "panicked: assertion `left == right` failed: an order was taken twice";
    network::outlived_lease says "panicked: assertion `left == right` failed: a write under a lease that had ended";
    network::late_release says "panicked: assertion `left == right` failed: the lock has two holders";
    network::two_primaries says "panicked: the new primary lacks a write that was acknowledged";
    files::missed_fsync says "panicked: the log lacks what it has acknowledged";
    files::repeated_fsync says "panicked: the log lacks what it has acknowledged";
    files::renamed_too_early says "panicked: the file has its new name, and not its content";
}

/// Runs seeds of the program until one fails, and returns the report.
fn report(program: &Program) -> String {
    seeds_support::report(|| Seeds::new("planted", program.name, SEEDS).run(|| (program.run)(false)))
}

fn is_found(program: &Program) {
    Seeds::new("planted", program.name, 200).run(|| (program.run)(true));
    let report = report(program);
    assert!(report.contains(program.says), "{report}");
    let (left, _) = faults(&report);
    assert!(left <= FAULTS, "{left} faults are left:\n{report}");
}
