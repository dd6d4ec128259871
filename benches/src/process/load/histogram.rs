//! Latencies in buckets whose width grows with the value: fixed memory, no allocation, within 1.6 % of the truth.
//!
//! Values below 64 ns have a bucket each; above, every power of two has 64. Filled by `load.rs`. Pure.

use std::time::Duration;

/// Buckets per power of two, as a power of two.
const BITS: u32 = 6;

/// Enough for any `u64`.
const BUCKETS: usize = (65 - BITS as usize) << BITS;

/// Counts of latencies.
pub(crate) struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }

    pub(crate) fn add(&mut self, latency: Duration) {
        self.counts[bucket(latency.as_nanos() as u64)] += 1;
        self.total += 1;
    }

    /// The latency that `percent` of all do not exceed; zero if there are none.
    pub(crate) fn percentile(&self, percent: f64) -> Duration {
        let wanted = (self.total as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= wanted
        });
        Duration::from_nanos(reached.map_or(0, upper_end))
    }
}

/// The bucket of a value: its highest bit says which power of two, the six bits below it where in there.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The highest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1);
    let top = (bucket - (shift << BITS)) as u64;
    ((top + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for value in (0..5000).chain([1 << 20, (1 << 33) + 12345, 1 << 62]) {
            let end = upper_end(bucket(value));
            assert!(end >= value && end - value <= value / 64, "{value} ends at {end}");
            assert!(bucket(end) == bucket(value) && bucket(end + 1) == bucket(value) + 1, "{value}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(99.0), Duration::ZERO);
        (1..=50).for_each(|nanos| histogram.add(Duration::from_nanos(nanos)));
        assert_eq!(histogram.percentile(50.0), Duration::from_nanos(25));
        assert_eq!(histogram.percentile(99.0), Duration::from_nanos(50));
        assert_eq!(histogram.percentile(1.0), Duration::from_nanos(1));
    }
}
