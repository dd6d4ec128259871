//! The interleaved run: mini, tokio, smol, mini, tokio, smol, round after round, row after row.
//!
//! Called by [`run`](crate::run); what it returns goes to `table.rs`. Progress goes to stderr.
//!
//! Each peer first runs until one sample takes the wanted time, which also warms it up; then all rounds use that
//! number of iterations. Runtimes live through all rounds of their row; those that are not being sampled are parked.

use std::time::Duration;

use crate::options::Options;
use crate::peer::Peer;
use crate::stats::Samples;
use crate::workload::{Row, Runner};

/// What was measured of a row: the samples of each peer that took part.
pub(crate) struct Measured {
    pub(crate) row: String,
    pub(crate) samples: Vec<(Peer, Samples)>,
}

/// Measures the rows one after the other.
pub(crate) fn measure(rows: &[Row], options: &Options) -> Vec<Measured> {
    let measured = rows.iter().enumerate().map(|(index, row)| {
        eprintln!("[{}/{}] {}", index + 1, rows.len(), row.name());
        measure_row(row, options)
    });
    measured.collect()
}

fn measure_row(row: &Row, options: &Options) -> Measured {
    let wanted = Peer::ALL.into_iter().filter(|&peer| options.wants_peer(peer));
    let mut lanes: Vec<_> = wanted.map(|peer| Lane::start(row, peer, options.sample)).collect();
    for _ in 0..options.rounds {
        for lane in &mut lanes {
            lane.sample();
        }
    }
    if options.only.is_some() {
        let ran: u64 = lanes.iter().map(|lane| lane.ran * row.operations()).sum();
        eprintln!("      {ran} operations");
    }
    Measured { row: row.name().to_owned(), samples: lanes.into_iter().map(|lane| (lane.peer, lane.samples)).collect() }
}

/// One peer at work on a row.
struct Lane {
    peer: Peer,
    runner: Runner,
    operations: u64,
    /// Rounds of the workload per sample.
    iterations: u64,
    /// Rounds of the workload so far.
    ran: u64,
    samples: Samples,
}

impl Lane {
    fn start(row: &Row, peer: Peer, sample: Duration) -> Self {
        let runner = row.start(peer);
        let mut lane =
            Self { peer, runner, operations: row.operations(), iterations: 1, ran: 0, samples: Samples::default() };
        lane.calibrate(sample);
        lane
    }

    /// Raises `iterations` until a sample takes `wanted`.
    fn calibrate(&mut self, wanted: Duration) {
        loop {
            let took = self.run();
            if took >= wanted {
                return;
            }
            self.iterations = next_iterations(self.iterations, took, wanted);
        }
    }

    fn sample(&mut self) {
        let took = self.run();
        self.samples.0.push(took.as_secs_f64() * 1e9 / (self.iterations * self.operations) as f64);
    }

    fn run(&mut self) -> Duration {
        self.ran += self.iterations;
        (self.runner)(self.iterations)
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
