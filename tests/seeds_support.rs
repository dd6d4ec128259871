//! Seeds that find a bug, and what the report of the first one says.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mini::sim::Seeds;

/// Runs `seeds`, of which one fails, and returns the report.
///
/// # Panics
///
/// If none fails.
pub fn failure<F: Future<Output = ()>>(seeds: &Seeds, body: impl Fn() -> F + Sync) -> String {
    let report = catch_unwind(AssertUnwindSafe(|| seeds.run(body))).expect_err("no seed has found the bug");
    *report.downcast::<String>().expect("a panic of `Seeds` is its report")
}

/// What is left of the faults of a report, and how many there were.
///
/// # Panics
///
/// If faults were injected and the report does not say how many are needed.
pub fn faults(report: &str) -> (u64, u64) {
    let Some(begin) = report.find("\n  shrunk: ") else {
        assert!(!report.contains(" faults were injected"), "it was not shrunk:\n{report}");
        return (0, 0);
    };
    let mut numbers = report[begin..].split(|char: char| !char.is_ascii_digit()).filter_map(|word| word.parse().ok());
    (numbers.next().expect("how many are left"), numbers.next().expect("of how many"))
}
