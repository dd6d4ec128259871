//! The rows that run inside one process: a subject under a flavour, ready to be started on any peer.
//!
//! Called by `lane.rs` (interleaved with the other peers) and `developer.rs` (criterion).
//!
//! Rejected: timing around `block_on`. It counts the setup (64 connections cost as much as 1,000 messages) and the hop
//! into the runtime.

use std::io;

use ::monoio::{IoUringDriver, LegacyDriver};

use crate::clock::Took;
use crate::cpus::Pin;
use crate::load::Load;
use crate::measured::{Figure, Group};
use crate::peer::Peer;
use crate::rt::mini::Mini;
use crate::rt::monoio::Monoio;
use crate::rt::smol::{SmolLocal, SmolShared};
use crate::rt::tokio::Tokio;
use crate::rt::{Flavour, Rt};

mod balance;
pub(crate) mod bell;
mod beside;
mod files;
mod stalls;
mod tasks;
pub(crate) mod tcp;
mod timed;
mod timers;
mod wakes;

use timed::Timed;

/// Something to measure on any runtime.
trait Subject: 'static {
    fn name() -> String;

    fn group() -> Group;

    /// What a sample gives, in this order.
    fn figures() -> Vec<Figure>;

    /// Starts a runtime, with all that shall not be measured. An error means that it cannot run here.
    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started>;

    /// The same without a runtime, by what the kernel has for it.
    fn limit(_: Load) -> io::Result<Started> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("{} has no limit", Self::name())))
    }
}

/// A subject in a runtime that has been started. Both live as long as this.
pub(crate) enum Started {
    /// Does as many rounds as it is told.
    Timed(Runner),
    /// Knows by itself how much to do for a sample.
    Probe(Box<dyn Fn() -> Vec<f64>>),
}

/// Runs that many rounds of a workload.
pub(crate) struct Runner {
    /// Operations in one round.
    pub(crate) operations: u64,
    pub(crate) run: Box<dyn Fn(u64) -> Took>,
    pub(crate) figures: fn(Took, u64) -> Vec<f64>,
}

/// A subject under a flavour.
pub(crate) struct Row {
    name: String,
    group: Group,
    flavour: Flavour,
    pin: Pin,
    figures: Vec<Figure>,
    rounds: usize,
    /// Whether monoio has what the row needs.
    monoio: bool,
    /// Whether there is a limit to show beside the runtimes.
    limit: bool,
    start: fn(Peer, Flavour, Load) -> io::Result<Started>,
}

impl Row {
    fn new<S: Subject>(flavour: Flavour) -> Self {
        let (label, pin) = match flavour {
            Flavour::CurrentThread => ("ct", Pin::One),
            Flavour::MultiThread(1) => ("mt 1", Pin::Two),
            Flavour::MultiThread(_) => ("mt", Pin::Two),
            Flavour::PerCore => ("per core", Pin::One),
        };
        let name = format!("{}, {label}", S::name());
        let (group, figures) = (S::group(), S::figures());
        Self { name, group, flavour, pin, figures, rounds: usize::MAX, monoio: true, limit: false, start: start::<S> }
    }

    /// Seven rounds at most: a sample takes long enough.
    fn in_few_rounds(self) -> Self {
        Self { rounds: 7, ..self }
    }

    /// Five rounds at most: a sample takes half a second, and has hundreds of values in it.
    fn in_five_rounds(self) -> Self {
        Self { rounds: 5, ..self }
    }

    /// Puts the runtime on one CPU, whatever its flavour.
    fn on_one_cpu(self) -> Self {
        Self { pin: Pin::One, ..self }
    }

    fn without_monoio(self) -> Self {
        Self { monoio: false, ..self }
    }

    fn with_limit(self) -> Self {
        Self { limit: true, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn group(&self) -> Group {
        self.group
    }

    pub(crate) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Rounds at most.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    pub(crate) fn pin(&self) -> Pin {
        self.pin
    }

    /// The peers that can take part. monoio has one thread per runtime.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        let has_monoio = self.monoio && !matches!(self.flavour, Flavour::MultiThread(_));
        let can = |peer: &Peer| match peer {
            Peer::Monoio | Peer::MonoioUring => has_monoio,
            Peer::Limit => self.limit,
            _ => true,
        };
        Peer::ALL.into_iter().filter(can).collect()
    }

    /// Starts a runtime for this row.
    pub(crate) fn start(&self, peer: Peer, load: Load) -> io::Result<Started> {
        (self.start)(peer, self.flavour, load)
    }
}

/// All rows, in the order of the table.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = both::<Timed<tasks::SpawnJoin>>().into();
    rows.extend(both::<Timed<tasks::SpawnJoinRoot>>());
    rows.extend(both::<Timed<tasks::Burst>>());
    rows.extend(both::<Timed<tasks::BurstRoot>>());
    rows.extend(both::<Timed<tasks::Chain>>());
    rows.extend(both::<Timed<tasks::Yield>>());
    rows.push(Row::new::<balance::Balance>(Flavour::TWO).in_few_rounds());
    rows.push(Row::new::<balance::Turns<6>>(Flavour::TWO));
    rows.push(Row::new::<balance::Turns<200>>(Flavour::TWO));
    rows.extend(both::<Timed<timers::Timeout<false>>>());
    rows.extend(both::<Timed<timers::Timeout<true>>>());
    rows.extend(both::<Timed<timers::Fire>>().map(Row::in_few_rounds));
    rows.extend(both::<timers::Lateness>().map(Row::in_few_rounds).map(Row::with_limit));
    rows.extend(both::<Timed<wakes::PingPong>>());
    rows.extend(both::<Timed<wakes::Hop>>());
    rows.extend(both::<Timed<wakes::Foreign<false>>>().map(Row::on_one_cpu));
    rows.extend(both::<Timed<wakes::Foreign<true>>>().map(Row::on_one_cpu));
    rows.extend(both::<Timed<wakes::Blocking>>());
    rows.push(Row::new::<stalls::Sleeps>(Flavour::TWO).in_few_rounds());
    rows.push(Row::new::<stalls::Sockets>(Flavour::TWO).in_few_rounds());
    rows.push(Row::new::<stalls::Queued>(Flavour::TWO).in_few_rounds());
    rows.extend(beside::rows());
    rows.extend(both::<Timed<tcp::Echo<1>>>());
    rows.extend(both::<Timed<tcp::Echo<64>>>());
    rows.extend(both::<Timed<files::ReadFile>>().map(Row::without_monoio));
    rows
}

fn both<S: Subject>() -> [Row; 2] {
    [Row::new::<S>(Flavour::CurrentThread), Row::new::<S>(Flavour::TWO)]
}

fn start<S: Subject>(peer: Peer, flavour: Flavour, load: Load) -> io::Result<Started> {
    match (peer, flavour) {
        (Peer::Mini, _) => S::start::<Mini>(flavour, load),
        (Peer::Tokio, _) => S::start::<Tokio>(flavour, load),
        (Peer::Smol, Flavour::MultiThread(_)) => S::start::<SmolShared>(flavour, load),
        (Peer::Smol, _) => S::start::<SmolLocal>(flavour, load),
        (Peer::Limit, _) => S::limit(load),
        (_, Flavour::MultiThread(_)) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, format!("{} has no such flavour", peer.name())))
        }
        (Peer::Monoio, _) => S::start::<Monoio<LegacyDriver>>(flavour, load),
        (Peer::MonoioUring, _) => S::start::<Monoio<IoUringDriver>>(flavour, load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_runs_on_every_peer() {
        let load = Load::calibrate(true);
        for row in rows() {
            for peer in row.peers() {
                let values = match row.start(peer, load) {
                    Ok(Started::Timed(runner)) => (runner.figures)((runner.run)(2), 2 * runner.operations),
                    Ok(Started::Probe(sample)) => sample(),
                    Err(refused) if peer == Peer::MonoioUring => {
                        eprintln!("no io_uring here: {refused}");
                        continue;
                    }
                    Err(error) => panic!("{} on {}: {error}", row.name(), peer.name()),
                };
                assert_eq!(values.len(), row.figures().len(), "{} on {}", row.name(), peer.name());
                assert!(values.iter().all(|value| *value > 0.0), "{} on {}: {values:?}", row.name(), peer.name());
            }
        }
    }

    #[test]
    fn the_label_in_a_name_tells_the_flavour() {
        for row in rows() {
            let label = match row.flavour {
                Flavour::CurrentThread => ", ct",
                Flavour::MultiThread(1) => ", mt 1",
                Flavour::MultiThread(_) => ", mt",
                Flavour::PerCore => ", per core",
            };
            assert!(row.name().ends_with(label), "{}", row.name());
        }
    }

    #[test]
    fn titles_are_unique() {
        let rows = rows();
        let titles = rows.iter().flat_map(|row| row.figures().iter().map(|figure| figure.title(row.name())));
        let mut titles: Vec<_> = titles.collect();
        let count = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), count);
    }
}
