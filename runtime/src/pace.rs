//! How long a worker's runs take, by what it counts anyhow: its runs, and the time it is up.
//!
//! The worker [notes](Pace::note) both when it goes to rest, where the clock is read for the busy time in any case, and at its
//! looks at the driver: two more readings of the clock for many runs, never one per task.
//!
//! What it is for: a few runs may be worth waking another worker, if they are long, where hundreds of short ones are not; then
//! the driver is looked at more often too. [`LongRuns`] is what the tasks' wakes see of it.
//!
//! Rejected: to look at the driver after so many runs as make 100 µs (with 64 connections on two workers the slowest hundredth of
//! the answers took twice as long). To measure only while eight tasks or more wait beside a worker that rests (a QUIC connection
//! has three or four tasks of 10 to 60 µs that wake each other: all ran on one worker, at 0.73 of the bytes per second of tokio).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Fewer runs say too little.
const MIN_RUNS: u64 = 16;

/// Nanoseconds of a long run: what it costs to wake another worker. A small message is answered in a third of it.
const LONG: u64 = 15_000;

/// Nanoseconds of the longest run there is, for the mean. One note of such runs among short ones, such as where the thread had to
/// wait for a CPU, does not make runs long.
const LIMIT: u64 = 2 * LONG;

/// The mean duration of a run, newer ones counting more. None counts for more than [`LIMIT`]: one that spawns thousands of
/// others says nothing about those.
#[derive(Debug)]
pub(crate) struct Pace {
    /// In nanoseconds; 0 as long as nothing is known.
    per_run: u64,
    /// What was noted last, in nanoseconds and runs.
    noted: (u64, u64),
}

impl Pace {
    /// A worker that begins at a core that was used for `busy` nanoseconds and `runs` so far.
    pub(crate) fn new(busy: u64, runs: u64) -> Self {
        Self { per_run: 0, noted: (busy, runs) }
    }

    /// The worker has been up for `busy` nanoseconds so far, and has run so much.
    pub(crate) fn note(&mut self, busy: u64, runs: u64) {
        let (time, count) = (busy.saturating_sub(self.noted.0), runs.saturating_sub(self.noted.1));
        if count >= MIN_RUNS {
            self.per_run = (self.per_run * 3 + (time / count).min(LIMIT)) / 4;
            self.noted = (busy, runs);
        }
    }

    /// The worker was up for so many nanoseconds without running anything: it looked at the driver, or woke another worker. (Were that
    /// a part of its runs, they would be long because others are woken, and those woken because they are long.)
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

/// What a core's owner tells itself, where it queues tasks: whether its runs are long. Not shared with anybody, so not modelled.
#[derive(Debug, Default)]
pub(crate) struct LongRuns {
    are_known: AtomicBool,
    /// The last run in which another worker was called for that.
    called_in: AtomicU64,
}

impl LongRuns {
    pub(crate) fn set(&self, are_long: bool) {
        self.are_known.store(are_long, Relaxed);
    }

    #[inline]
    pub(crate) fn are_known(&self) -> bool {
        self.are_known.load(Relaxed)
    }

    /// Whether to call another worker in this run: once, however many tasks it wakes.
    pub(crate) fn take_call(&self, run: u64) -> bool {
        let is_first = self.called_in.load(Relaxed) != run;
        self.called_in.store(run, Relaxed);
        self.are_known() && is_first
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
        let (mut pace, mut so_far) = (Pace::new(0, 0), (0, 0));
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
        let mut so_far = (7, 5);
        let mut pace = Pace::new(so_far.0, so_far.1);
        for _ in 0..20 {
            run(&mut pace, &mut so_far, 1, 1_000_000);
            run(&mut pace, &mut so_far, 15, 1);
            assert!(!pace.is_long());
            for _ in 0..5 {
                run(&mut pace, &mut so_far, 100, 1);
            }
        }
        pace.note(u64::MAX, u64::MAX);
        assert!(pace.estimate(usize::MAX) > Duration::from_secs(1), "no overflow");
    }

    #[test]
    fn a_few_runs_say_nothing_until_more_have_come() {
        let (mut pace, mut so_far) = (Pace::new(0, 0), (0, 0));
        run(&mut pace, &mut so_far, MIN_RUNS - 1, 100);
        assert_eq!(pace.estimate(1), Duration::ZERO);
        run(&mut pace, &mut so_far, 1, 100);
        assert_ne!(pace.estimate(1), Duration::ZERO);
    }

    #[test]
    fn what_is_left_out_belongs_to_no_run() {
        let (mut pace, mut so_far) = (Pace::new(0, 0), (0, 0));
        for _ in 0..20 {
            so_far.0 += 1_000_000;
            pace.leave_out(1_000_000);
            run(&mut pace, &mut so_far, MIN_RUNS / 2, 1);
        }
        assert!(pace.estimate(1) <= Duration::from_micros(1));
    }

    #[test]
    fn another_worker_is_called_once_a_run_and_only_where_runs_are_long() {
        let runs = LongRuns::default();
        assert!(!runs.take_call(1));
        runs.set(true);
        assert!(!runs.take_call(1));
        assert!(runs.take_call(2));
        assert!(!runs.take_call(2));
        runs.set(false);
        assert!(!runs.take_call(3));
    }
}
