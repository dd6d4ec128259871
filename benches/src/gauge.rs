//! Takes samples of one peer in one row, in this process.
//!
//! Used by the processes that `lane.rs` starts, and by `harness.rs` itself for `--only`.
//!
//! A timed workload first runs until one sample takes the wanted time, which also warms it up; from then on every
//! sample has that number of rounds.

use std::io;
use std::time::Duration;

use crate::load::Load;
use crate::peer::Peer;
use crate::workload::{Row, Runner, Started};

pub(crate) struct Gauge {
    started: Started,
    /// Rounds of the workload per sample.
    iterations: u64,
    /// Operations so far.
    operations: u64,
}

impl Gauge {
    /// Starts the peer. A sample of a timed workload will take about `sample`.
    pub(crate) fn start(row: &Row, peer: Peer, load: Load, sample: Duration) -> io::Result<Self> {
        let started = row.start(peer, load)?;
        let mut gauge = Self { started, iterations: 1, operations: 0 };
        if let Started::Timed(runner) = &gauge.started {
            (gauge.iterations, gauge.operations) = calibrate(runner, sample);
        }
        Ok(gauge)
    }

    /// A value for each of the row's figures.
    pub(crate) fn sample(&mut self) -> Vec<f64> {
        match &self.started {
            Started::Timed(runner) => {
                let operations = self.iterations * runner.operations;
                self.operations += operations;
                (runner.figures)((runner.run)(self.iterations), operations)
            }
            Started::Probe(sample) => sample(),
        }
    }

    /// How many operations ran so far, calibration included; `None` if the row does not count them.
    pub(crate) fn operations(&self) -> Option<u64> {
        matches!(self.started, Started::Timed(_)).then_some(self.operations)
    }
}

/// The iterations of a sample that takes `wanted` at least, and how many operations it took to find out.
fn calibrate(runner: &Runner, wanted: Duration) -> (u64, u64) {
    let (mut iterations, mut operations) = (1, 0);
    loop {
        let took = (runner.run)(iterations).wall;
        operations += iterations * runner.operations;
        if took >= wanted {
            return (iterations, operations);
        }
        iterations = next_iterations(iterations, took, wanted);
    }
}

/// A number of iterations that should take a little more than `wanted`, after `iterations` took `took`.
///
/// At most ten times as many, since a short cold run says little, and at least one more.
fn next_iterations(iterations: u64, took: Duration, wanted: Duration) -> u64 {
    let factor = 1.1 * wanted.as_secs_f64() / took.as_secs_f64().max(1e-9);
    ((iterations as f64 * factor.min(10.0)) as u64).max(iterations + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_goes_up_in_bounded_steps() {
        let millis = Duration::from_millis;
        assert_eq!(next_iterations(1000, millis(10), millis(20)), 2200);
        assert_eq!(next_iterations(5, Duration::ZERO, millis(20)), 50);
        assert_eq!(next_iterations(1, Duration::from_nanos(19_999_999), millis(20)), 2);
    }
}
