//! The data between measuring and reporting: figures, their units, and what each peer reached.
//!
//! Made by `harness.rs`; `process.rs` and `workload.rs` say which figures a row has; `table.rs` and `report.rs` show
//! them. Pure.

use crate::peer::Peer;
use crate::stats::Samples;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Bytes,
    PerSecond,
    /// Requests that one second of CPU time pays for.
    PerCpuSecond,
    /// How often: a speed-up, or system calls per message.
    Times,
    /// A part of the whole.
    Percent,
}

impl Unit {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Bytes => "bytes",
            Self::PerSecond => "per s",
            Self::PerCpuSecond => "per CPU s",
            Self::Times => "x",
            Self::Percent => "%",
        }
    }
}

/// Which of two values wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
}

/// The chapter of the report that a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Tasks,
    Timers,
    Wakes,
    Stalls,
    Fairness,
    Sockets,
    Files,
    Memory,
    Build,
}

impl Group {
    /// In the order of the report.
    pub(crate) const ALL: [Self; 9] = [
        Self::Tasks,
        Self::Timers,
        Self::Wakes,
        Self::Stalls,
        Self::Fairness,
        Self::Sockets,
        Self::Files,
        Self::Memory,
        Self::Build,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Tasks => "Tasks",
            Self::Timers => "Timers",
            Self::Wakes => "Wakes",
            Self::Stalls => "Stalls",
            Self::Fairness => "Fairness",
            Self::Sockets => "Sockets",
            Self::Files => "Files",
            Self::Memory => "Memory",
            Self::Build => "Build",
        }
    }

    /// What its rows measure, in a few words.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Tasks => "spawn, join, yield, compute",
            Self::Timers => "timeouts and sleeps",
            Self::Wakes => "by tasks and threads",
            Self::Stalls => "while a task blocks a worker",
            Self::Fairness => "beside busy tasks",
            Self::Sockets => "TCP, HTTP, QUIC",
            Self::Files => "reads of a cached file",
            Self::Memory => "of tasks and connections",
            Self::Build => "time and size",
        }
    }
}

/// One of the values that a sample of a row gives; a line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    /// Follows the row's name; empty if the name says it all.
    pub(crate) suffix: &'static str,
    pub(crate) unit: Unit,
    pub(crate) better: Better,
}

impl Figure {
    pub(crate) const fn lower(suffix: &'static str, unit: Unit) -> Self {
        Self { suffix, unit, better: Better::Lower }
    }

    pub(crate) const fn higher(suffix: &'static str, unit: Unit) -> Self {
        Self { suffix, unit, better: Better::Higher }
    }

    /// The line's name in the table.
    pub(crate) fn title(&self, row: &str) -> String {
        if self.suffix.is_empty() { row.to_owned() } else { format!("{row}, {}", self.suffix) }
    }
}

/// What was measured of a figure: the samples of each peer that took part.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) group: Group,
    /// The row's name with the figure's suffix.
    pub(crate) row: String,
    pub(crate) unit: Unit,
    pub(crate) better: Better,
    pub(crate) samples: Vec<(Peer, Samples)>,
}

/// How mini compares with another column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Better in every round.
    Ahead,
    /// Better in some rounds, worse in others; or there was one round only, which proves nothing.
    Tie,
    /// Worse in every round.
    Behind,
}

impl Measured {
    pub(crate) fn samples_of(&self, peer: Peer) -> Option<&Samples> {
        self.samples.iter().find(|(who, _)| *who == peer).map(|(_, samples)| samples)
    }

    /// mini's figure by `peer`'s, round by round; `None` if one of them did not take part.
    pub(crate) fn ratio_to(&self, peer: Peer) -> Option<Samples> {
        Some(self.samples_of(Peer::Mini)?.ratio_to(self.samples_of(peer)?))
    }

    /// The runtime, other than mini, with the best median.
    pub(crate) fn best(&self) -> Option<Peer> {
        let rivals = self.samples.iter().filter(|(peer, _)| peer.is_rival());
        let best = rivals.min_by(|(_, a), (_, b)| match self.better {
            Better::Lower => a.median().total_cmp(&b.median()),
            Better::Higher => b.median().total_cmp(&a.median()),
        });
        best.map(|(peer, _)| *peer)
    }

    /// What a ratio of this figure means.
    pub(crate) fn verdict(&self, ratio: &Samples) -> Verdict {
        let (low, high) = match self.better {
            Better::Lower => (Verdict::Ahead, Verdict::Behind),
            Better::Higher => (Verdict::Behind, Verdict::Ahead),
        };
        match ratio.0.len() {
            0 | 1 => Verdict::Tie,
            _ if ratio.max() < 1.0 => low,
            _ if ratio.min() > 1.0 => high,
            _ => Verdict::Tie,
        }
    }
}

/// A peer that a row had to leave out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    pub(crate) row: String,
    pub(crate) peer: Peer,
    pub(crate) reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(better: Better) -> Measured {
        let samples = [(Peer::Mini, [2.0, 4.0]), (Peer::Tokio, [8.0, 8.0]), (Peer::Limit, [1.0, 9.0])];
        let samples = samples.map(|(peer, values)| (peer, Samples(values.to_vec()))).into();
        Measured { group: Group::Tasks, row: "row".to_owned(), unit: Unit::PerSecond, better, samples }
    }

    #[test]
    fn the_figure_says_what_is_better() {
        for (better, verdict) in [(Better::Lower, Verdict::Ahead), (Better::Higher, Verdict::Behind)] {
            let measured = measured(better);
            let ratio = measured.ratio_to(Peer::Tokio).unwrap();
            assert_eq!(ratio, Samples(vec![0.25, 0.5]));
            assert_eq!(measured.verdict(&ratio), verdict);
            assert_eq!(measured.verdict(&measured.ratio_to(Peer::Limit).unwrap()), Verdict::Tie);
            assert_eq!(measured.verdict(&Samples(vec![0.25])), Verdict::Tie);
        }
    }

    #[test]
    fn the_best_is_a_runtime_and_not_the_limit() {
        let mut measured = measured(Better::Higher);
        measured.samples.push((Peer::Smol, Samples(vec![9.0, 9.0])));
        assert_eq!(measured.best(), Some(Peer::Smol));
        measured.better = Better::Lower;
        assert_eq!(measured.best(), Some(Peer::Tokio));
        measured.samples.retain(|(peer, _)| !peer.is_rival());
        assert_eq!(measured.best(), None);
    }
}
