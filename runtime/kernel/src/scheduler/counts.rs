//! The counts of a worker on a core, for `Metrics` and the monitor.
//!
//! Only the thread that holds the core writes, by plain loads and stores (one instruction each), so counting slows no
//! other thread down; any thread reads. Only `posted` is written by other threads, under the lock of the shared
//! registry. No number ever decreases, so a reader may subtract two samples.
//!
//! Busy time is one word. While the worker waits, it is the sum so far. While the worker is up, it is the moment at
//! which the worker would have begun if it had never waited. The clock is read when a wait begins, when it ends, and by
//! a reader. A reader that asks while a wait begins may read the clock later than the worker did; its answer is kept,
//! so that the next answer is not less.
//!
//! Rejected: a sum and a moment in two words (a reader between the two stores counts a stretch twice, and the next time
//! it has gone back). The CPU time of the worker's thread (nothing to store; but a poll that blocks would not count,
//! and a thread in `block_on` brings what it did before).

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

use mini_time::Clock;

/// A number that one thread at a time counts up.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds, and returns the sum. Only for the thread that may write.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        let sum = self.0.load(Relaxed).wrapping_add(more);
        // Release: a reader of this count sees the counts that were added to before it.
        self.0.store(sum, Release);
        sum
    }

    pub fn get(&self) -> u64 {
        self.0.load(Acquire)
    }
}

/// The counts of one core.
#[derive(Debug)]
pub struct Counts {
    /// The task that is polled, or was polled last: no count, but in the cache line that each poll writes anyway.
    pub task: AtomicU64,
    /// Tasks and `block_on` futures polled.
    pub polls: Count,
    /// Waits for something to do.
    pub parks: Count,
    /// How often a thread has begun to work here.
    pub(crate) sittings: Count,
    /// Tasks taken from other workers.
    pub steals: Count,
    /// Owned tasks spawned by the owner.
    pub(crate) spawned: Count,
    /// Owned tasks spawned by other threads. Under the lock of the shared registry.
    pub(crate) posted: Count,
    /// Owned tasks that have ended.
    pub(crate) ended: Count,
    pub(crate) busy: Busy,
}

impl Counts {
    /// For a core on which no thread works yet, in the time of `clock`.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            task: AtomicU64::new(0),
            polls: Count::default(),
            parks: Count::default(),
            sittings: Count::default(),
            steals: Count::default(),
            spawned: Count::default(),
            posted: Count::default(),
            ended: Count::default(),
            busy: Busy { clock, word: AtomicU64::new(RESTS), told: AtomicU64::new(0) },
        }
    }

    /// A number that stays the same during one poll, and changes with everything else that the owner does.
    pub fn progress(&self) -> u64 {
        [&self.polls, &self.parks, &self.sittings].iter().fold(0, |sum, count| sum.wrapping_add(count.get()))
    }

    /// Owned tasks that are alive, including new ones that still wait in the inbox.
    pub(crate) fn owned_alive(&self) -> u64 {
        let ended = self.ended.get(); // first: what has ended was spawned before
        (self.spawned.get() + self.posted.get()).saturating_sub(ended)
    }

    /// Owned tasks that have ever been spawned, including those that still wait in the inbox.
    pub fn owned_begun(&self) -> u64 {
        self.spawned.get() + self.posted.get()
    }

    /// How long the worker has been up in all.
    pub fn busy(&self) -> Duration {
        let nanos = self.busy.nanos();
        Duration::from_nanos(self.busy.told.fetch_max(nanos, Relaxed).max(nanos))
    }
}

/// Set while the worker rests.
const RESTS: u64 = 1 << 63;

/// The time that the worker has been up.
#[derive(Debug)]
pub(crate) struct Busy {
    clock: Clock,
    /// With [`RESTS`]: the nanoseconds it was up. Without: when it would have begun, in nanoseconds since the base.
    word: AtomicU64,
    /// The largest answer so far.
    told: AtomicU64,
}

impl Busy {
    /// The worker waits from `now` on, in system nanoseconds of the clock, or leaves.
    pub(crate) fn park(&self, now: u64) {
        self.word.store(RESTS | self.sum(now), Release);
    }

    /// The worker is up as of `now`.
    pub(crate) fn unpark(&self, now: u64) {
        // Not below 0: no worker has been up for longer than the clock exists.
        self.word.store(now.saturating_sub(self.sum(now)) & !RESTS, Release);
    }

    fn nanos(&self) -> u64 {
        // Acquire: pairs with the Release above; the clock is read after that, so it is not behind.
        match self.word.load(Acquire) {
            word if word & RESTS != 0 => word & !RESTS,
            begin => self.clock.system_nanos().saturating_sub(begin),
        }
    }

    /// How long the worker was up, as of `now`. Good for 292 years.
    fn sum(&self, now: u64) -> u64 {
        match self.word.load(Relaxed) {
            word if word & RESTS != 0 => word & !RESTS,
            begin => now.saturating_sub(begin) & !RESTS,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn busy_time_grows_while_up_and_stands_while_at_rest() {
        let clock = Clock::real();
        let counts = Counts::new(clock.clone());
        assert_eq!(counts.busy(), Duration::ZERO);
        counts.busy.unpark(clock.system_nanos());
        while counts.busy() < Duration::from_micros(50) {}
        let end = clock.system_nanos();
        counts.busy.park(end);
        let sum = counts.busy();
        assert!(sum >= Duration::from_micros(50));
        counts.busy.unpark(end + 1_000_000);
        counts.busy.park(end + 1_000_007);
        assert_eq!(counts.busy(), sum + Duration::from_nanos(7));
    }

    #[test]
    fn progress_stands_still_only_while_nothing_happens() {
        let counts = Counts::new(Clock::real());
        let mut before = counts.progress();
        for count in [&counts.polls, &counts.parks, &counts.sittings] {
            count.add(1);
            assert_ne!(counts.progress(), before);
            before = counts.progress();
        }
        counts.steals.add(3);
        assert_eq!((counts.progress(), counts.steals.get()), (before, 3));
    }
}
