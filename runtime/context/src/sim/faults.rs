//! `Faults`: what a simulation does to a program that the program must bear: a lost packet, a crash of a host.
//!
//! Each has a number, in the order in which they are met. So a run can be repeated without some of them: a skipped
//! fault keeps its number, and what is drawn for it is drawn all the same.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{FAULTS, now};

/// Those of one simulation.
#[derive(Debug, Default)]
pub struct Faults {
    skipped: Vec<RangeInclusive<u64>>,
    injected: Vec<Fault>,
    count: u64,
}

/// One that was injected.
#[derive(Clone, Debug)]
pub struct Fault {
    /// From 1 on, in the order in which they were met.
    pub number: u64,
    /// In virtual time.
    pub at: Duration,
    /// What it was.
    pub text: String,
}

impl Faults {
    /// Injects all but these.
    pub fn skipping(skipped: Vec<RangeInclusive<u64>>) -> Self {
        Self { skipped, ..Self::default() }
    }

    /// Those that were injected.
    pub fn injected(&self) -> &[Fault] {
        &self.injected
    }

    /// How many there were, those that were skipped too.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Whether to inject a fault now, of which `text` tells: not outside of a simulation, nor if it is to be skipped. The
/// caller has drawn that it is time for one.
pub fn inject(text: impl FnOnce() -> String) -> bool {
    FAULTS.with_borrow_mut(|faults| {
        let Some(faults) = faults else { return false };
        faults.count += 1;
        let number = faults.count;
        let is_injected = !faults.skipped.iter().any(|range| range.contains(&number));
        if is_injected {
            faults.injected.push(Fault { number, at: now(), text: text() });
        }
        is_injected
    })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} at {:.6} s", self.number, self.text, self.at.as_secs_f64())
    }
}
