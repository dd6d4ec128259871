//! The interleaved run: mini, tokio, smol, .., mini, tokio, smol, .., round after round, row after row.
//!
//! Called by [`run`](crate::run); what it returns goes to `table.rs` and `report.rs`. Progress goes to stderr.
//!
//! All peers of a row are started first, one after the other; those that are not being sampled sleep.

use crate::cpus;
use crate::gauge::Gauge;
use crate::lane::Lane;
use crate::load::Load;
use crate::measured::{Absent, Figure, Group, Measured};
use crate::options::Options;
use crate::peer::Peer;
use crate::process::ProcessRow;
use crate::stats::Samples;
use crate::workload::Row;

/// All that a run has found out.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// In the order of the report.
    pub(crate) measured: Vec<Measured>,
    pub(crate) absent: Vec<Absent>,
}

/// Measures the rows one after the other.
pub(crate) fn measure(rows: &[Row], process_rows: &[ProcessRow], load: Load, options: &Options) -> Results {
    let mut results = Results::default();
    let count = rows.len() + process_rows.len();
    let titles = rows.iter().map(Row::name).chain(process_rows.iter().map(|row| row.name.as_str()));
    let mut progress = titles.enumerate().map(|(index, name)| eprintln!("[{}/{count}] {name}", index + 1));
    for row in rows {
        progress.next();
        let rounds = options.rounds.min(row.rounds());
        let mut bout = Bout::new(row.group(), row.name(), row.figures());
        let wanted = row.peers().into_iter().filter(|&peer| options.wants_peer(peer));
        wanted.for_each(|peer| bout.enter(peer, in_process(row, peer, load, options)));
        bout.run(rounds, &mut results);
    }
    for row in process_rows {
        progress.next();
        let mut bout = Bout::new(row.group, &row.name, &row.figures);
        let wanted = row.peers.iter().copied().filter(|&peer| options.wants_peer(peer));
        wanted.for_each(|peer| bout.enter(peer, Ok(Box::new(move || (row.sample)(peer, options)))));
        bout.run(options.rounds.min(row.rounds), &mut results);
    }
    results.measured.sort_by_key(|measured| Group::ALL.iter().position(|&group| group == measured.group));
    results
}

/// Takes a sample of a peer, or says why it cannot.
type Source<'a> = Box<dyn FnMut() -> Result<Vec<f64>, String> + 'a>;

/// In a process of its own; in this one if the peer is alone, which is what a profiler wants.
fn in_process<'a>(row: &'a Row, peer: Peer, load: Load, options: &Options) -> Result<Source<'a>, String> {
    if options.only.is_none() {
        let mut lane = Lane::start(row, peer, load, options)?;
        return Ok(Box::new(move || lane.sample()));
    }
    cpus::pin(row.pin(), options.cpus()).map_err(|error| error.to_string())?;
    let gauge = Gauge::start(row, peer, load, options.sample).map_err(|error| error.to_string())?;
    let mut counted = Counted(gauge);
    Ok(Box::new(move || Ok(counted.0.sample())))
}

/// Says in the end how many operations ran, to divide a profiler's or strace's counts by.
struct Counted(Gauge);

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(operations) = self.0.operations() {
            eprintln!("      {operations} operations");
        }
    }
}

/// The peers of one row.
struct Bout<'a> {
    group: Group,
    name: &'a str,
    figures: &'a [Figure],
    entrants: Vec<Entrant<'a>>,
    absent: Vec<Absent>,
}

struct Entrant<'a> {
    peer: Peer,
    source: Source<'a>,
    /// One for each figure.
    samples: Vec<Samples>,
}

impl<'a> Bout<'a> {
    fn new(group: Group, name: &'a str, figures: &'a [Figure]) -> Self {
        Self { group, name, figures, entrants: Vec::new(), absent: Vec::new() }
    }

    fn enter(&mut self, peer: Peer, source: Result<Source<'a>, String>) {
        match source {
            Ok(source) => {
                let samples = vec![Samples::default(); self.figures.len()];
                self.entrants.push(Entrant { peer, source, samples });
            }
            Err(reason) => self.leave_out(peer, reason),
        }
    }

    /// A peer that fails is left out, with all it has given so far.
    fn run(mut self, rounds: usize, results: &mut Results) {
        for _ in 0..rounds {
            for mut entrant in std::mem::take(&mut self.entrants) {
                match entrant.sample() {
                    Ok(()) => self.entrants.push(entrant),
                    Err(reason) => self.leave_out(entrant.peer, reason),
                }
            }
        }
        let line = |(index, figure): (usize, &Figure)| Measured {
            group: self.group,
            row: figure.title(self.name),
            unit: figure.unit,
            better: figure.better,
            samples: self.entrants.iter().map(|entrant| (entrant.peer, entrant.samples[index].clone())).collect(),
        };
        results.measured.extend(self.figures.iter().enumerate().map(line));
        results.absent.append(&mut self.absent);
    }

    fn leave_out(&mut self, peer: Peer, reason: String) {
        eprintln!("      without {}: {reason}", peer.name());
        self.absent.push(Absent { row: self.name.to_owned(), peer, reason });
    }
}

impl Entrant<'_> {
    fn sample(&mut self) -> Result<(), String> {
        let values = (self.source)()?;
        if values.len() != self.samples.len() {
            return Err(format!("{} values for {} figures", values.len(), self.samples.len()));
        }
        self.samples.iter_mut().zip(values).for_each(|(samples, value)| samples.0.push(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Unit;

    #[test]
    fn rounds_are_interleaved_and_a_failing_peer_is_left_out() {
        let calls = std::cell::RefCell::new(Vec::new());
        let source = |peer: Peer, good_for: usize| -> Source<'_> {
            let calls = &calls;
            let mut left = good_for;
            Box::new(move || {
                calls.borrow_mut().push(peer);
                left = left.checked_sub(1).ok_or("broke down")?;
                Ok(vec![left as f64])
            })
        };
        let figures = [Figure::lower("p50", Unit::Microseconds)];
        let mut bout = Bout::new(Group::Tasks, "row", &figures);
        bout.enter(Peer::Mini, Ok(source(Peer::Mini, 3)));
        bout.enter(Peer::Tokio, Ok(source(Peer::Tokio, 1)));
        bout.enter(Peer::Smol, Err("not here".to_owned()));
        let mut results = Results::default();
        bout.run(3, &mut results);
        use Peer::{Mini, Smol, Tokio};
        assert_eq!(*calls.borrow(), [Mini, Tokio, Mini, Tokio, Mini]);
        assert_eq!(results.measured[0].row, "row, p50");
        assert_eq!(results.measured[0].samples, [(Mini, Samples(vec![2.0, 1.0, 0.0]))]);
        let absent: Vec<_> = results.absent.iter().map(|absent| (absent.peer, absent.reason.as_str())).collect();
        assert_eq!(absent, [(Smol, "not here"), (Tokio, "broke down")]);
    }
}
