//! How long a worker's runs take, by what it counts anyhow: its runs, and the time it is up.
//!
//! The worker [notes](Pace::note) both when it goes to rest, where the clock is read for the busy time in any case, and at its
//! looks at the driver: two more readings of the clock for many runs, never one per task.
//!
//! What it is for: a few runs may be worth waking another worker, if they are long, where hundreds of short ones are not; then
//! the driver is looked at more often too, and another worker is to look out while this one works.
//!
//! Rejected: to look at the driver after so many runs as make 100 µs (with 64 connections on two workers the slowest hundredth of
//! the answers took twice as long). To measure only while eight tasks or more wait beside a worker that rests (a QUIC connection has three or four
//! tasks of 10 to 60 µs that wake each other: all ran on one worker, at 0.73 of the bytes per second of tokio).

use std::time::Duration;

/// Fewer runs say too little.
const MIN_RUNS: u64 = 16;

/// Nanoseconds of a long run: what it costs to wake another worker. A small message is answered in a third of it.
const LONG: u64 = 15_000;

/// Nanoseconds of the longest run there is, for the mean.
const LIMIT: u64 = 4 * LONG;

/// The mean duration of a run, newer ones counting more. None counts for more than [`LIMIT`]: one that spawns thousands of
/// others says nothing about those.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// In nanoseconds; 0 as long as nothing is known.
    per_run: u64,
    /// What was noted last, in nanoseconds and runs.
    noted: (u64, u64),
}

impl Pace {
    /// The worker has been up for `busy` nanoseconds so far, and has run so much.
    pub(crate) fn note(&mut self, busy: u64, runs: u64) {
        let (time, count) = (busy.saturating_sub(self.noted.0), runs.saturating_sub(self.noted.1));
        if count >= MIN_RUNS {
            self.per_run = (self.per_run * 3 + (time / count).min(LIMIT)) / 4;
            self.noted = (busy, runs);
        }
    }

    /// The worker was up for so many nanoseconds without running anything.
    pub(crate) fn leave_out(&mut self, nanos: u64) {
        self.noted.0 = self.noted.0.saturating_add(nanos);
    }

    /// Whether one run is about as long as it takes to wake another worker.
    pub(crate) fn is_long(&self) -> bool {
        self.per_run >= LONG
    }

    /// How long `count` runs take; zero as long as nothing is known.
    pub(crate) fn estimate(&self, count: usize) -> Duration {
        Duration::from_nanos(self.per_run.saturating_mul(count as u64))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// `count` runs of so many microseconds.
    fn run(pace: &mut Pace, so_far: &mut (u64, u64), count: u64, micros: u64) {
        *so_far = (so_far.0 + count * micros * 1000, so_far.1 + count);
        pace.note(so_far.0, so_far.1);
    }

    #[test]
    fn the_mean_follows_the_latest_runs() {
        let (mut pace, mut so_far) = (Pace::default(), (0, 0));
        assert_eq!(pace.estimate(100), Duration::ZERO);
        for _ in 0..20 {
            run(&mut pace, &mut so_far, 100, 20);
        }
        assert!(pace.is_long());
        assert!((Duration::from_micros(80)..=Duration::from_micros(100)).contains(&pace.estimate(5)));
        for _ in 0..4 {
            run(&mut pace, &mut so_far, 100, 1);
        }
        assert!(!pace.is_long());
    }

    #[test]
    fn one_very_long_run_is_forgotten_soon() {
        let (mut pace, mut so_far) = (Pace::default(), (0, 0));
        run(&mut pace, &mut so_far, 1, 1_000_000);
        run(&mut pace, &mut so_far, 15, 1);
        run(&mut pace, &mut so_far, 16, 1);
        assert!(!pace.is_long());
        pace.note(u64::MAX, u64::MAX);
        assert!(pace.estimate(usize::MAX) > Duration::from_secs(1), "no overflow");
    }

    #[test]
    fn a_few_runs_say_nothing_until_more_have_come() {
        let (mut pace, mut so_far) = (Pace::default(), (0, 0));
        run(&mut pace, &mut so_far, MIN_RUNS - 1, 100);
        assert!(!pace.is_long());
        run(&mut pace, &mut so_far, 1, 100);
        assert!(pace.is_long());
    }

    #[test]
    fn what_is_left_out_belongs_to_no_run() {
        let (mut pace, mut so_far) = (Pace::default(), (0, 0));
        for _ in 0..20 {
            so_far.0 += 1_000_000;
            pace.leave_out(1_000_000);
            run(&mut pace, &mut so_far, MIN_RUNS / 2, 1);
        }
        assert!(pace.estimate(1) <= Duration::from_micros(1));
    }
}
