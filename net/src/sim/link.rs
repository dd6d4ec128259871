//! `Links`: how packets get from one host to another.
//!
//! Each direction between two hosts has a link of its own, with a latency, a loss, and a state: open, cut, or holding
//! what comes until it is released. A link that was never set has the default values. Within a host nothing is lost and
//! nothing takes time.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use mini_context::sim::{Random, inject};

use super::event::What;

/// No packet takes longer: times of events can be added without care.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The quality of a link: its latency, loss and duplication.
#[derive(Clone, Debug)]
pub struct Quality {
    /// The range of latencies; each latency is equally likely.
    pub latency: Range<Duration>,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The probability that a datagram arrives twice.
    pub duplication: f64,
}

#[derive(Debug, Default)]
pub(super) struct Links {
    default: Quality,
    /// Those that have been set, by sender and receiver.
    set: HashMap<(u32, u32), Quality>,
    blocked: HashMap<(u32, u32), Blocked>,
}

#[derive(Debug)]
enum Blocked {
    /// Packets are lost.
    Cut,
    /// Packets wait here, in the order of arrival.
    Holds(Vec<What>),
}

/// The fate of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Open,
    Cut,
    Holds,
}

impl Default for Quality {
    /// A local network: 0.1 to 2 ms, and no loss.
    fn default() -> Self {
        let latency = Duration::from_micros(100)..Duration::from_millis(2);
        Self { latency, loss: 0.0, duplication: 0.0 }
    }
}

impl Links {
    pub(super) fn quality(&self, from: u32, to: u32) -> &Quality {
        self.set.get(&(from, to)).unwrap_or(&self.default)
    }

    /// Changes one direction between two hosts, or with `None` all links.
    pub(super) fn set(&mut self, ends: Option<(u32, u32)>, change: impl Fn(&mut Quality)) {
        match ends {
            Some(ends) => change(self.set.entry(ends).or_insert_with(|| self.default.clone())),
            None => {
                change(&mut self.default);
                self.set.values_mut().for_each(change);
            }
        }
    }

    pub(super) fn latency(&self, from: u32, to: u32, random: &mut Random) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        let Range { start, end } = self.quality(from, to).latency;
        let span = end.saturating_sub(start).as_nanos().min(u128::from(u64::MAX)) as u64;
        start.saturating_add(Duration::from_nanos(random.below(span.max(1)))).min(LONGEST)
    }

    /// Draws whether a packet is lost. `text` names the packet.
    pub(super) fn loses(&self, from: u32, to: u32, random: &mut Random, text: impl FnOnce() -> String) -> bool {
        from != to && random.happens(self.quality(from, to).loss) && inject(text)
    }

    pub(super) fn passage(&self, from: u32, to: u32) -> Passage {
        match self.blocked.get(&(from, to)) {
            _ if from == to => Passage::Open,
            None => Passage::Open,
            Some(Blocked::Cut) => Passage::Cut,
            Some(Blocked::Holds(_)) => Passage::Holds,
        }
    }

    /// A packet comes to a link that holds what comes.
    pub(super) fn hold(&mut self, from: u32, to: u32, what: What) {
        if let Some(Blocked::Holds(held)) = self.blocked.get_mut(&(from, to)) {
            held.push(what);
        }
    }

    pub(super) fn cut(&mut self, from: u32, to: u32) {
        self.blocked.insert((from, to), Blocked::Cut);
    }

    pub(super) fn begin_hold(&mut self, from: u32, to: u32) {
        self.blocked.entry((from, to)).or_insert(Blocked::Holds(Vec::new()));
    }

    /// Opens a link that holds what comes, and returns that. One that is cut stays so.
    pub(super) fn end_hold(&mut self, from: u32, to: u32) -> Vec<What> {
        if self.passage(from, to) == Passage::Holds { self.open(from, to) } else { Vec::new() }
    }

    /// Opens a link; returns what it has held.
    pub(super) fn open(&mut self, from: u32, to: u32) -> Vec<What> {
        match self.blocked.remove(&(from, to)) {
            Some(Blocked::Holds(held)) => held,
            _ => Vec::new(),
        }
    }

    /// The directions that are not open, in order.
    pub(super) fn blocked(&self) -> Vec<(u32, u32)> {
        let mut ends: Vec<_> = self.blocked.keys().copied().collect();
        ends.sort_unstable();
        ends
    }
}
