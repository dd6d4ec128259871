//! The rows of the table: a workload under a flavour, ready to be started on any peer.
//!
//! A workload sets itself up, takes the time of the operations alone and returns it. Called by `harness.rs`
//! (interleaved) and `developer.rs` (criterion).
//!
//! Rejected: timing around `block_on`. It counts the setup (64 connections cost as much as 1,000 messages) and the hop
//! into the runtime.

use std::future::Future;
use std::time::Duration;

use crate::peer::Peer;
use crate::rt::mini::Mini;
use crate::rt::smol::{SmolLocal, SmolShared};
use crate::rt::tokio::Tokio;
use crate::rt::{Flavour, Rt};

mod tasks;
mod tcp;

/// Something to measure.
pub(crate) trait Workload: 'static {
    const NAME: &'static str;

    /// Operations in one of `run`'s rounds; the table shows nanoseconds per operation.
    const OPERATIONS: u64;

    /// Whether it runs in a task; if not, it is the future given to `block_on`.
    const IN_TASK: bool = true;

    /// Runs `rounds` rounds and returns how long they took.
    fn run<R: Rt>(rounds: u64) -> impl Future<Output = Duration> + Send;
}

/// A workload in a runtime that has been started: runs that many rounds, returns how long they took.
pub(crate) type Runner = Box<dyn Fn(u64) -> Duration>;

/// A workload under a flavour.
pub(crate) struct Row {
    name: String,
    flavour: Flavour,
    operations: u64,
    start: fn(Peer, Flavour) -> Runner,
}

impl Row {
    fn new<W: Workload>(flavour: Flavour) -> Self {
        let label = match flavour {
            Flavour::CurrentThread => "ct",
            Flavour::MultiThread => "mt",
        };
        Self { name: format!("{}, {label}", W::NAME), flavour, operations: W::OPERATIONS, start: start::<W> }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Operations in one round.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// Starts a runtime for this row. It lives as long as the runner.
    pub(crate) fn start(&self, peer: Peer) -> Runner {
        (self.start)(peer, self.flavour)
    }
}

/// All rows, in the order of the table.
pub(crate) fn rows() -> Vec<Row> {
    [Flavour::CurrentThread, Flavour::MultiThread].into_iter().flat_map(rows_of).collect()
}

fn rows_of(flavour: Flavour) -> [Row; 9] {
    [
        Row::new::<tasks::SpawnJoin>(flavour),
        Row::new::<tasks::SpawnJoinRoot>(flavour),
        Row::new::<tasks::Burst>(flavour),
        Row::new::<tasks::BurstRoot>(flavour),
        Row::new::<tasks::Yield>(flavour),
        Row::new::<tasks::PingPong>(flavour),
        Row::new::<tasks::Timeout>(flavour),
        Row::new::<tcp::Echo<1>>(flavour),
        Row::new::<tcp::Echo<64>>(flavour),
    ]
}

fn start<W: Workload>(peer: Peer, flavour: Flavour) -> Runner {
    match (peer, flavour) {
        (Peer::Mini, _) => start_on::<W, Mini>(flavour),
        (Peer::Tokio, _) => start_on::<W, Tokio>(flavour),
        (Peer::Smol, Flavour::CurrentThread) => start_on::<W, SmolLocal>(flavour),
        (Peer::Smol, Flavour::MultiThread) => start_on::<W, SmolShared>(flavour),
    }
}

fn start_on<W: Workload, R: Rt>(flavour: Flavour) -> Runner {
    let rt = R::start(flavour);
    Box::new(move |rounds| match W::IN_TASK {
        true => rt.block_on(async move { R::spawn(W::run::<R>(rounds)).await }),
        false => rt.block_on(W::run::<R>(rounds)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_runs_on_every_peer() {
        for row in rows() {
            for peer in Peer::ALL {
                let runner = row.start(peer);
                assert!(runner(2) > Duration::ZERO, "{} on {}", row.name(), peer.name());
            }
        }
    }

    #[test]
    fn the_label_in_a_name_selects_a_flavour() {
        for (label, flavour) in [("ct", Flavour::CurrentThread), ("mt", Flavour::MultiThread)] {
            for row in rows() {
                assert_eq!(row.name().contains(label), row.flavour == flavour, "{}", row.name());
            }
        }
    }

    #[test]
    fn row_names_are_unique() {
        let mut names: Vec<_> = rows().iter().map(|row| row.name().to_owned()).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
