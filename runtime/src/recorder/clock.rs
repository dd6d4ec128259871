//! The time of events: the processor's counter where the system itself goes by it, else the system's clock.
//!
//! Read by the owner of a core once a poll and once a wake. On the machine where this was decided the counter takes 8
//! ns and the system's clock 19; an event may cost 20 ns. Its rate is not asked for: an export compares the counter
//! with the clock, now and when the recorder was made, and histograms keep ticks until they are read.
//!
//! The counter is used on Linux for x86-64, if the kernel's own clock source is `tsc`: the kernel then has found it to
//! be the same on all processors, of constant rate, and running in idle states.
//!
//! Rejected: the readings of `scheduler/meter.rs` (short polls are not measured one by one, and a worker that records
//! would be scheduled differently). A serialising read (20 ns): instructions of a poll may move by some tens of cycles
//! across its end, which no picture shows.

#![allow(unsafe_code)]

use std::time::Instant;

/// Counts ticks from the moment when it was made.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    made: Instant,
    /// The counter then, if it is used.
    counter: Option<u64>,
}

impl Clock {
    pub(super) fn new() -> Self {
        let counter = is_counter_good().then(counter);
        Self { made: Instant::now(), counter }
    }

    /// Ticks since the clock was made.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        match self.counter {
            Some(made) => counter().saturating_sub(made),
            None => self.made.elapsed().as_nanos() as u64,
        }
    }

    /// How many nanoseconds a tick takes, as of now.
    pub(super) fn tick(&self) -> f64 {
        if self.counter.is_none() {
            return 1.0;
        }
        let (ticks, nanos) = (self.now(), self.made.elapsed().as_nanos());
        if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 }
    }
}

/// Returns `true` if the kernel's clock is the processor's counter.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn is_counter_good() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and a system that forbade it in user mode (prctl(2),
    // PR_SET_TSC) would have ended the process in its own reading of the clock: the kernel's clock source is `tsc`.
    // Test: `the_counter_goes_with_the_clock`.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn is_counter_good() -> bool {
    false
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn counter() -> u64 {
    0
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_with_the_clock() {
        for clock in [Clock::new(), Clock { made: Instant::now(), counter: None }] {
            let (begin, first) = (Instant::now(), clock.now());
            while begin.elapsed().as_millis() < 5 {}
            let ticks = clock.now() - first;
            let by_clock = ticks as f64 * clock.tick();
            let real = begin.elapsed().as_nanos() as f64;
            // The thread may lose its CPU between two readings, so only one side is sure.
            assert!(by_clock >= 4.5e6 && by_clock <= real * 1.5, "{by_clock} {real} {clock:?}");
        }
    }
}
