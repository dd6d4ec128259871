//! What a runtime made of a draw: the figures that are compared, and what they were for each kind of task. Pure.

use std::time::Duration;

use super::draw::{Draw, Kind};
use super::stage::Record;
use crate::measured::{Figure, Unit};
use crate::stats::{Samples, percentile};

/// The figures of an outcome, in this order.
pub(super) const FIGURES: [Figure; 6] = [
    Figure::lower("wakes, p50", Unit::Microseconds),
    Figure::lower("wakes, p99", Unit::Microseconds),
    Figure::lower("completion of jobs", Unit::Microseconds),
    Figure::higher("work done", Unit::Percent),
    Figure::higher("work done by jobs", Unit::Percent),
    Figure::lower("CPU time per work", Unit::Times),
];

/// Values of one run of a draw. A value that the draw does not have is NaN.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) figures: [f64; FIGURES.len()],
    /// For each kind how many latencies were counted, and their p50 and p99 in microseconds; of jobs those of
    /// completions.
    pub(super) kinds: [[f64; 3]; Kind::ALL.len()],
}

impl Outcome {
    /// `records`: one for each part. `cpu`: CPU time that the process needed.
    pub(super) fn new(draw: &Draw, records: &[Record], cpu: Duration) -> Self {
        let mut kinds = [[f64::NAN; 3]; Kind::ALL.len()];
        let (mut wakes, mut jobs) = (Vec::new(), Vec::new());
        let (mut wanted, mut done) = ([0.0; 2], [0.0; 2]); // all, jobs
        for (part, record) in draw.parts.iter().zip(records) {
            let is_job = part.kind == Kind::Compute;
            let latencies = if is_job { &record.completions } else { &record.wakes };
            let index = Kind::ALL.iter().position(|kind| *kind == part.kind).expect("all kinds are there");
            kinds[index] = [latencies.len() as f64, micros(latencies, 50.0), micros(latencies, 99.0)];
            if is_job { &mut jobs } else { &mut wakes }.extend_from_slice(latencies);
            for of in 0..=usize::from(is_job) {
                wanted[of] += part.worth(part.events() as u64 * part.turns);
                done[of] += part.worth(record.runs);
            }
        }
        let mean = jobs.iter().sum::<f64>() / jobs.len() as f64 / 1e3;
        let share = |of: usize| 100.0 * done[of] / wanted[of];
        let cost = cpu.as_nanos() as f64 / done[0];
        Self { figures: [micros(&wakes, 50.0), micros(&wakes, 99.0), mean, share(0), share(1), cost], kinds }
    }

    /// The middle of several runs of a draw, value by value.
    pub(super) fn median(outcomes: &[Self]) -> Self {
        let of = |value: &dyn Fn(&Self) -> f64| {
            let values: Vec<_> = outcomes.iter().map(value).filter(|value| !value.is_nan()).collect();
            if values.is_empty() { f64::NAN } else { Samples(values).median() }
        };
        Self {
            figures: std::array::from_fn(|figure| of(&|outcome| outcome.figures[figure])),
            kinds: std::array::from_fn(|kind| std::array::from_fn(|column| of(&|outcome| outcome.kinds[kind][column]))),
        }
    }

    /// As one line; [`parse`](Self::parse) reads it.
    pub(super) fn to_line(&self) -> String {
        let values = self.figures.iter().chain(self.kinds.iter().flatten());
        values.map(f64::to_string).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut values = line.split_whitespace().map(|word| word.parse().ok());
        let mut outcome = Self { figures: [0.0; FIGURES.len()], kinds: [[0.0; 3]; Kind::ALL.len()] };
        for value in outcome.figures.iter_mut().chain(outcome.kinds.iter_mut().flatten()) {
            *value = values.next()??;
        }
        values.next().is_none().then_some(outcome)
    }
}

fn micros(nanos: &[f64], percent: f64) -> f64 {
    if nanos.is_empty() { f64::NAN } else { percentile(nanos, percent) / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(runs: u64) -> Outcome {
        let draw = Draw::new(1, 1, Duration::from_millis(400));
        let record = |_| Record { wakes: vec![2e3, 4e3], completions: vec![5e3, 7e3], runs };
        let records: Vec<_> = draw.parts.iter().map(record).collect();
        Outcome::new(&draw, &records, Duration::from_millis(1))
    }

    #[test]
    fn a_line_gives_the_same_outcome() {
        let line = outcome(1).to_line();
        assert_eq!(Outcome::parse(&line).unwrap().to_line(), line);
        assert_eq!(Outcome::parse(&format!("{line} 1")), None);
        assert_eq!(Outcome::parse("1 2 3"), None);
    }

    #[test]
    fn the_median_is_taken_value_by_value_and_knows_what_is_missing() {
        let of = |wakes: f64, work: f64| Outcome {
            figures: [wakes, wakes, f64::NAN, work, f64::NAN, 1.0],
            kinds: [[wakes, f64::NAN, work]; Kind::ALL.len()],
        };
        let middle = Outcome::median(&[of(1.0, 9.0), of(70.0, 8.0), of(2.0, 3.0)]);
        assert_eq!(middle.to_line(), of(2.0, 8.0).to_line());
    }

    #[test]
    fn more_runs_are_more_work_for_the_same_time() {
        let (one, two) = (outcome(1), outcome(2));
        assert_eq!(one.figures[..2], [2.0, 4.0]);
        assert!((two.figures[3] / one.figures[3] - 2.0).abs() < 1e-9);
        assert!((two.figures[5] / one.figures[5] - 0.5).abs() < 1e-9);
    }
}
