//! Seeds that find a bug, and what the report of the first one says.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a test with seeds says, of which one fails.
///
/// # Panics
///
/// If none fails.
pub fn report(test: impl FnOnce()) -> String {
    let report = catch_unwind(AssertUnwindSafe(test)).expect_err("no seed fails");
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
