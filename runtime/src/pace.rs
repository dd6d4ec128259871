//! How long a worker's tasks take, measured only where the answer may be used: with several of them waiting while another
//! worker rests.
//!
//! The worker [starts](Pace::start) a measurement when it has a batch to run, and [stops](Pace::stop) it at its next look
//! or before it parks. The clock is read twice per batch, never per task.

use std::time::Duration;

use mini_time::Instant;

/// Shorter measurements say too little.
const MIN_RUNS: u32 = 8;

/// The mean duration of a run, newer ones counting more.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    per_run: Duration,
    started: Option<(u32, Instant)>,
}

impl Pace {
    /// A batch begins, with `tick` runs done so far.
    pub(crate) fn start(&mut self, tick: u32, now: Instant) {
        self.started = Some((tick, now));
    }

    /// Whether a measurement is going on.
    pub(crate) fn is_measuring(&self) -> bool {
        self.started.is_some()
    }

    /// The batch is over, or long enough.
    pub(crate) fn stop(&mut self, tick: u32, now: Instant) {
        let Some((first, begin)) = self.started.take() else { return };
        let runs = tick.wrapping_sub(first);
        if runs >= MIN_RUNS {
            let latest = now.duration_since(begin) / runs;
            self.per_run = if self.per_run.is_zero() { latest } else { (self.per_run * 3 + latest) / 4 };
        }
    }

    /// How long `count` runs take; zero as long as nothing has been measured.
    pub(crate) fn estimate(&self, count: usize) -> Duration {
        self.per_run * u32::try_from(count).unwrap_or(u32::MAX).min(1 << 16)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_the_latest_batches() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        assert_eq!(pace.estimate(100), Duration::ZERO);
        pace.start(u32::MAX - 4, begin);
        pace.stop(5, begin + Duration::from_micros(100));
        assert_eq!(pace.estimate(7), Duration::from_micros(70));
        pace.start(5, begin);
        pace.stop(15, begin + Duration::from_micros(500));
        assert_eq!(pace.estimate(1), Duration::from_micros(20));
    }

    #[test]
    fn a_short_batch_says_nothing() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        pace.start(0, begin);
        pace.stop(MIN_RUNS - 1, begin + Duration::from_secs(1));
        assert_eq!(pace.estimate(1), Duration::ZERO);
        assert!(!pace.is_measuring());
    }
}
