//! `Faults`: the faults that a simulation injects and a program must handle, such as a lost packet or a crash of a
//! host.
//!
//! Each has a number, in the order in which they are met. So a run can be repeated without some of them: a skipped
//! fault keeps its number, and what is drawn for it is drawn all the same.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{FAULTS, now};

/// The faults of one simulation.
#[derive(Debug, Default)]
pub struct Faults {
    /// In order, and apart from each other.
    skipped: Vec<RangeInclusive<u64>>,
    injected: Vec<Fault>,
    count: u64,
}

/// A fault that a simulation injected and the program must handle, such as a lost packet or a crash of a host.
///
/// [`Failure::faults`](struct.Failure.html#method.faults) lists those of a run that failed. The `Display` of one is a
/// line such as `#1 loss of a segment from client to server at 0.034259 s`.
///
/// # Examples
///
/// See [`Sim::skip`](struct.Sim.html#method.skip).
#[derive(Clone, Debug)]
pub struct Fault {
    /// The number of the fault, from 1 on, in the order in which they were met.
    pub number: u64,
    /// The virtual time of the fault.
    pub at: Duration,
    /// The description of the fault.
    pub text: String,
}

impl Faults {
    /// Injects all faults except these. The ranges may be in any order, and overlap.
    pub fn skipping(mut ranges: Vec<RangeInclusive<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut skipped: Vec<RangeInclusive<u64>> = Vec::new();
        for range in ranges {
            match skipped.last_mut() {
                Some(last) if range.start() <= last.end() => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => skipped.push(range),
            }
        }
        Self { skipped, ..Self::default() }
    }

    fn skips(&self, number: u64) -> bool {
        let at = self.skipped.partition_point(|range| *range.end() < number);
        self.skipped.get(at).is_some_and(|range| range.contains(&number))
    }

    /// Returns the faults that were injected.
    pub fn injected(&self) -> &[Fault] {
        &self.injected
    }

    /// Returns the number of faults, including those that were skipped.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Returns `true` if a fault is to be injected now, which `text` describes: not outside of a simulation, nor if it is
/// to be skipped. The caller has drawn that it is time for one.
pub fn inject(text: impl FnOnce() -> String) -> bool {
    FAULTS.with_borrow_mut(|faults| {
        let Some(faults) = faults else { return false };
        faults.count += 1;
        let number = faults.count;
        let is_injected = !faults.skips(number);
        if is_injected {
            faults.injected.push(Fault { number, at: now(), text: text() });
        }
        is_injected
    })
}

/// Returns the number of faults that the simulation on this thread has injected so far.
pub fn injected() -> usize {
    FAULTS.with_borrow(|faults| faults.as_ref().map_or(0, |faults| faults.injected.len()))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} at {:.6} s", self.number, self.text, self.at.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_overlap_and_be_in_any_order() {
        let faults = Faults::skipping(vec![8..=9, 2..=6, 3..=4, 5..=7, 20..=u64::MAX]);
        let skipped: Vec<u64> = (1..=22).filter(|&number| faults.skips(number)).collect();
        assert_eq!(skipped, [2, 3, 4, 5, 6, 7, 8, 9, 20, 21, 22]);
        assert!(!Faults::default().skips(1));
    }
}
