//! Medians and spreads of the rounds of a row. Pure; used by `table.rs`.

/// Samples of one peer in one row, in the order of the rounds, in nanoseconds per operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    /// The middle value; of an even number the mean of the two in the middle.
    ///
    /// # Panics
    ///
    /// If there are no samples.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Round by round, how often `other` fits into this one. Rounds are neighbours in time, so what slows the whole
    /// machine for a while cancels out.
    ///
    /// # Panics
    ///
    /// If the two have different numbers of rounds.
    pub(crate) fn ratio_to(&self, other: &Self) -> Self {
        assert_eq!(self.0.len(), other.0.len(), "ratios need the same rounds");
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine / theirs).collect())
    }
}

/// The value that `percent` of `values` do not exceed (nearest rank).
///
/// # Panics
///
/// If there are no values.
pub(crate) fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), 100.0);
        assert_eq!(percentile(&values, 99.0), 198.0);
        assert_eq!((percentile(&values, 0.0), percentile(&values, 100.0)), (1.0, 200.0));
    }

    #[test]
    fn median_and_spread() {
        let samples = Samples(vec![4.0, 1.0, 9.0]);
        assert_eq!((samples.median(), samples.min(), samples.max()), (4.0, 1.0, 9.0));
        assert_eq!(Samples(vec![4.0, 1.0, 9.0, 5.0]).median(), 4.5);
    }

    #[test]
    fn a_slow_minute_cancels_out_of_the_ratio() {
        let (mine, theirs) = (Samples(vec![1.0, 3.0]), Samples(vec![2.0, 6.0]));
        assert_eq!(mine.ratio_to(&theirs), Samples(vec![0.5, 0.5]));
    }
}
