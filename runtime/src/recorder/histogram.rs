//! A histogram of durations, in steps of an eighth.
//!
//! A worker counts ([`Buckets`]), the user reads ([`Histogram`]). The buckets are log-linear: eight for each power of
//! two, so a bucket is at most an eighth as wide as what is in it is long, from one tick to 2^64.
//!
//! Rejected: a bucket for each power of two (a quantile may be off by a factor of two). A dependency for this (what it
//! has more is what nobody here asks for).

use std::fmt;
use std::time::Duration;

use mini_kernel::primitives::atomic::{AtomicU64, Ordering::Relaxed};

/// The bits that say which of the buckets of a power of two.
const SUB: u32 = 3;
const EACH: usize = 1 << SUB;
const BUCKETS: usize = (65 - SUB as usize) * EACH;

/// What one thread at a time counts, in ticks; any thread reads.
pub(super) struct Buckets {
    counts: Box<[AtomicU64]>,
    longest: AtomicU64,
}

impl Buckets {
    pub(super) fn new() -> Self {
        Self { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), longest: AtomicU64::new(0) }
    }

    /// Counts a duration in ticks. Only for the thread that may write.
    #[inline]
    pub(super) fn note(&self, ticks: u64) {
        let count = &self.counts[bucket(ticks)];
        count.store(count.load(Relaxed) + 1, Relaxed);
        if ticks > self.longest.load(Relaxed) {
            self.longest.store(ticks, Relaxed);
        }
    }
}

/// The bucket of a length.
#[inline]
fn bucket(ticks: u64) -> usize {
    let shift = (u64::BITS - ticks.leading_zeros()).saturating_sub(SUB + 1);
    shift as usize * EACH + (ticks >> shift) as usize
}

/// The longest length of a bucket.
fn upper(bucket: usize) -> u64 {
    let shift = (bucket / EACH).saturating_sub(1) as u32;
    let within = (bucket - shift as usize * EACH) as u128 + 1;
    ((within << shift) - 1).try_into().unwrap_or(u64::MAX)
}

/// A histogram of durations; see [`Metrics::poll_time`](crate::runtime::Metrics::poll_time) and
/// [`Metrics::queue_delay`](crate::runtime::Metrics::queue_delay).
///
/// It is a copy, made when it was requested. Events during the copying may be missing.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// let runtime = mini::runtime::Builder::new_current_thread().histograms(true).build()?;
/// runtime.block_on(async {
///     for _ in 0..99 {
///         mini::task::yield_now().await;
///     }
///     std::thread::sleep(Duration::from_millis(5)); // this is what one wants to find
///     mini::task::yield_now().await;
/// });
/// let polls = runtime.metrics().poll_time().expect("they are on");
/// assert!(polls.count() >= 101);
/// assert!(polls.max() >= Duration::from_millis(5));
/// assert!(polls.quantile(0.5) < polls.max() && polls.quantile(1.0) == polls.max());
/// println!("{polls}");
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    longest: u64,
    /// Nanoseconds of a tick.
    tick: f64,
}

impl Histogram {
    /// With nothing in it.
    pub(super) fn new(tick: f64) -> Self {
        Self { counts: vec![0; BUCKETS], longest: 0, tick }
    }

    /// Adds what was counted.
    pub(super) fn add(&mut self, buckets: &Buckets) {
        for (sum, count) in self.counts.iter_mut().zip(&buckets.counts) {
            *sum += count.load(Relaxed);
        }
        self.longest = self.longest.max(buckets.longest.load(Relaxed));
    }

    /// Returns the total number of durations.
    ///
    /// # Examples
    ///
    /// See [`Histogram`].
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the longest duration; zero if there is none.
    ///
    /// # Examples
    ///
    /// See [`Histogram`].
    pub fn max(&self) -> Duration {
        self.time(self.longest)
    }

    /// Returns the quantile `part` of the durations: `0.5` is the median, `0.99` leaves out the slowest hundredth. Zero
    /// if there are no durations.
    ///
    /// The quantile `1.0` is the longest duration. Any other is interpolated between the bounds of the step that it is
    /// in, and differs from the real quantile by an eighth at most.
    ///
    /// # Examples
    ///
    /// See [`Histogram`].
    ///
    /// # Panics
    ///
    /// If `part` is not from 0 to 1.
    #[track_caller]
    pub fn quantile(&self, part: f64) -> Duration {
        assert!((0.0..=1.0).contains(&part), "quantile({part}): expected a part from 0 to 1, such as 0.99");
        let count = self.count();
        let rank = ((count as f64 * part).ceil() as u64).max(1);
        if rank >= count {
            return self.max();
        }
        let mut before = 0;
        for (bucket, &inside) in self.counts.iter().enumerate() {
            if rank <= before + inside {
                let first = bucket.checked_sub(1).map_or(0, |below| upper(below) + 1);
                let within = ((rank - before) as f64 - 0.5) / inside as f64;
                let ticks = first as f64 + (upper(bucket) - first) as f64 * within;
                // The longest is stored after its bucket is counted.
                return self.time((ticks as u64).min(self.longest));
            }
            before += inside;
        }
        self.max()
    }

    fn time(&self, ticks: u64) -> Duration {
        Duration::from_nanos((ticks as f64 * self.tick) as u64)
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, nearly] = [0.5, 0.99, 0.999].map(|part| self.quantile(part));
        write!(f, "{} times, p50 {half:.1?}, p99 {most:.1?}, p99.9 {nearly:.1?}, ", self.count())?;
        write!(f, "max {:.1?}", self.max())
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({self})")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut first = 0;
        for number in 0..BUCKETS {
            let last = upper(number);
            assert_eq!((bucket(first), bucket(last)), (number, number));
            assert!(last - first <= first / 8, "{first} to {last}");
            first = last.wrapping_add(1);
        }
        assert_eq!(first, 0, "the last one ends with 2^64");
    }

    #[test]
    fn a_quantile_is_at_most_an_eighth_off() {
        let buckets = Buckets::new();
        (1..=100_000).for_each(|ticks| buckets.note(ticks * ticks));
        let mut sum = Histogram::new(2.0);
        sum.add(&buckets);
        assert_eq!((sum.count(), sum.max()), (100_000, Duration::from_secs(20)));
        for part in [0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.99999, 1.0] {
            let real = 2.0 * (100_000.0_f64 * part).max(1.0).powi(2);
            let told = sum.quantile(part).as_nanos() as f64;
            assert!((told - real).abs() <= real / 8.0, "{part}: {told} for {real}");
        }
        sum.add(&buckets);
        assert_eq!((sum.count(), sum.quantile(1.0)), (200_000, sum.max()));
        assert_eq!(Histogram::new(1.0).quantile(0.5), Duration::ZERO);
    }

    /// From 2^20 to 2^20 + 2^17 there is one bucket.
    #[test]
    fn a_quantile_lies_inside_its_bucket() {
        let buckets = Buckets::new();
        (0..1 << 17).for_each(|ticks| buckets.note((1 << 20) + ticks));
        let mut sum = Histogram::new(1.0);
        sum.add(&buckets);
        for part in [0.01, 0.25, 0.5, 0.75, 0.99] {
            let (real, told) = ((1 << 20) as f64 + (1 << 17) as f64 * part, sum.quantile(part).as_nanos() as f64);
            assert!((told - real).abs() < 3.0, "{part}: {told} for {real}");
        }
    }
}
