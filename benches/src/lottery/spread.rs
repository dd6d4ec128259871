//! How the ratios of many seeds are spread: for one figure, one flavour, and either ordinary load or overload. Pure.

use super::draw::FULL;
use super::outcome::FIGURES;
use super::round::{FLAVOURS, Round};
use crate::measured::Better;

/// The ratios of one figure, each with its seed, the best for mini first.
pub(super) struct Spread {
    /// In [`FIGURES`].
    pub(super) figure: usize,
    /// As in [`FLAVOURS`].
    pub(super) flavour: &'static str,
    pub(super) is_overload: bool,
    /// mini by the best of the others.
    pub(super) ratios: Vec<(f64, u64)>,
    /// mini by mini.
    pub(super) noise: Vec<(f64, u64)>,
}

impl Spread {
    /// All spreads that have values: ordinary load first, figure by figure.
    pub(super) fn all(rounds: &[Round]) -> Vec<Self> {
        let mut spreads = Vec::new();
        for is_overload in [false, true] {
            for figure in 0..FIGURES.len() {
                let of = FLAVOURS.into_iter().map(|(_, flavour, _)| Self::of(rounds, figure, flavour, is_overload));
                spreads.extend(of.filter(|spread| !spread.ratios.is_empty()));
            }
        }
        spreads
    }

    fn of(rounds: &[Round], figure: usize, flavour: &'static str, is_overload: bool) -> Self {
        let mine = rounds.iter().filter(|round| round.flavour == flavour && (round.load > FULL) == is_overload);
        let sorted = |ratio: fn(&Round, usize) -> Option<f64>| {
            let mut ratios: Vec<_> =
                mine.clone().filter_map(|round| Some((ratio(round, figure)?, round.seed))).collect();
            ratios.sort_by(|a, b| cost(figure, a.0).total_cmp(&cost(figure, b.0)));
            ratios
        };
        Self { figure, flavour, is_overload, ratios: sorted(Round::ratio), noise: sorted(Round::noise) }
    }

    /// The part of the seeds in which mini is not behind.
    pub(super) fn share(&self) -> f64 {
        let level = self.ratios.iter().filter(|(ratio, _)| cost(self.figure, *ratio) <= 1.0);
        level.count() as f64 / self.ratios.len() as f64
    }
}

/// What mini needs by what the other needs: below 1 mini is ahead.
pub(super) fn cost(figure: usize, ratio: f64) -> f64 {
    match FIGURES[figure].better {
        Better::Lower => ratio,
        Better::Higher => 1.0 / ratio,
    }
}

/// The ratio that `percent` of the sorted `ratios` are not worse than (nearest rank), with its seed.
pub(super) fn at(ratios: &[(f64, u64)], percent: f64) -> (f64, u64) {
    let rank = (percent / 100.0 * ratios.len() as f64).ceil() as usize;
    ratios[rank.clamp(1, ratios.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lottery::outcome::Outcome;

    #[test]
    fn the_worst_is_the_last_whatever_better_means() {
        let outcome = |value: f64| Outcome { figures: [value; 6], kinds: [[0.0; 3]; 8] };
        let round = |seed: u64, mini: f64| Round {
            seed,
            load: 0.5,
            flavour: "ct",
            outcomes: [outcome(mini), outcome(1.0), outcome(1.0), outcome(1.0)],
        };
        let spreads = Spread::all(&[round(1, 2.0), round(2, 0.5), round(3, 1.0)]);
        assert_eq!(spreads.len(), FIGURES.len());
        assert_eq!(spreads[0].ratios, [(0.5, 2), (1.0, 3), (2.0, 1)]);
        assert_eq!(spreads[3].ratios, [(2.0, 1), (1.0, 3), (0.5, 2)]); // work done
        assert_eq!((at(&spreads[0].ratios, 50.0), at(&spreads[0].ratios, 100.0)), ((1.0, 3), (2.0, 1)));
        assert!((spreads[0].share() - 2.0 / 3.0).abs() < 1e-9);
    }
}
