//! A workload drawn from a seed: what kinds of tasks there are, how long they run, and when each of them has something
//! to do.
//!
//! [`Draw::new`] decides everything before anything runs, so that every runtime gets the same program and a seed can be
//! run again. A [`Part`] is the tasks of one kind; its events are the times at which they are *meant* to run, whatever
//! the runtime is doing then (open loop). Pure.
//!
//! The load is the sum over all parts of events times their cost, by the CPU time that the flavour has. A cost is the
//! run itself and what such an event costs on any runtime, roughly ([`Kind::overhead`]): without it a load of runs of
//! 100 ns behind sockets would be a hundred times what was drawn.
//!
//! Rejected:
//! - Rates that follow the runtime (closed loop). A slow runtime would be asked less, and no figure would show it.
//! - Costs measured on the spot. The drawn program would depend on the machine's load at that moment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::random::Random;

/// The highest load of the seeds that are reported as not overloaded.
pub(super) const FULL: f64 = 0.9;

/// Bounds of what is drawn: the load, and the time of one run in nanoseconds.
const LOADS: (f64, f64) = (0.05, 1.5);
const RUNS: (f64, f64) = (100.0, 20e6);

/// An event takes at most one part in so many of the CPU time of its part, so that every part has some events.
const FEWEST_EVENTS: f64 = 4.0;

/// No part has more events than that. The load is then less than was drawn.
const MOST_EVENTS: f64 = 60_000.0;

/// Events that are nearer to each other come together.
const NEAREST: f64 = 200e3;

/// What a task does, and what wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Comes with a job of several runs, and yields after each.
    Compute,
    /// Answers messages that a thread sends over a socket.
    Request,
    /// Sleeps until it is time.
    Sleep,
    /// Waits for a message of another task, with a time limit that is never reached.
    Timeout,
    /// Waits for items of a producer.
    Channel,
    /// Is spawned for one run.
    Spawn,
    /// Waits for a job of the blocking pool.
    Blocking,
    /// Waits for messages that a thread sends over a channel.
    Thread,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Compute,
        Self::Request,
        Self::Sleep,
        Self::Timeout,
        Self::Channel,
        Self::Spawn,
        Self::Blocking,
        Self::Thread,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Request => "request",
            Self::Sleep => "sleep",
            Self::Timeout => "timeout",
            Self::Channel => "channel",
            Self::Spawn => "spawn",
            Self::Blocking => "blocking",
            Self::Thread => "thread",
        }
    }

    /// What an event costs beside its run, in nanoseconds: about the middle of what runtimes need.
    fn overhead(self) -> f64 {
        match self {
            Self::Compute => 100.0,
            Self::Request => 12e3,
            Self::Sleep => 3e3,
            Self::Timeout => 1e3,
            Self::Channel => 3e3,
            Self::Spawn => 500.0,
            Self::Blocking => 20e3,
            Self::Thread => 5e3,
        }
    }

    fn most_tasks(self) -> f64 {
        if self == Self::Blocking { 16.0 } else { 200.0 }
    }
}

/// The tasks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// One run.
    pub(super) run: Duration,
    /// Runs of an event: 1, or those of a computing job.
    pub(super) turns: u64,
    /// Events that come at the same time.
    batch: usize,
    /// The part of the whole load, from 0 to 1.
    share: f64,
    /// For each task the times of its events in nanoseconds from the start, in ascending order.
    pub(super) tasks: Vec<Arc<[u64]>>,
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draw {
    pub(super) seed: u64,
    /// The sum over all events of their cost, by the CPU time of the flavour: 1 is all of it.
    pub(super) load: f64,
    pub(super) parts: Vec<Part>,
}

impl Draw {
    /// Draws a workload that lasts for `span` on so many CPUs. With more of them a seed has the same kinds, and more
    /// events.
    pub(super) fn new(seed: u64, cpus: usize, span: Duration) -> Self {
        let mut random = Random::new(seed);
        let load = random.uniform(LOADS.0, LOADS.1);
        let weights = weights(&mut random);
        let sum: f64 = weights.iter().sum();
        let cpu = load * cpus as f64 * span.as_nanos() as f64;
        let parts = Kind::ALL.into_iter().zip(weights).filter(|(_, weight)| *weight > 0.0);
        let parts = parts.map(|(kind, weight)| Part::new(kind, weight / sum, cpu, span, random.split()));
        let parts: Vec<_> = parts.collect();
        let worth: f64 = parts.iter().map(|part| part.worth(part.events() as u64 * part.turns)).sum();
        Self { seed, load: worth / (cpus as f64 * span.as_nanos() as f64), parts }
    }
}

/// A weight for each kind; 0 for those that are not there. At least two kinds are, and one that is woken.
fn weights(random: &mut Random) -> [f64; Kind::ALL.len()] {
    loop {
        let weights = Kind::ALL.map(|_| if random.coin() { random.log_uniform(0.1, 1.0) } else { 0.0 });
        let count = weights.iter().filter(|weight| **weight > 0.0).count();
        if count >= 2 {
            return weights; // of two kinds one is not `Compute`
        }
    }
}

impl Part {
    /// `cpu`: nanoseconds of CPU time of the whole workload.
    fn new(kind: Kind, share: f64, cpu: f64, span: Duration, mut random: Random) -> Self {
        let cpu = share * cpu;
        let most = (cpu / FEWEST_EVENTS).max(RUNS.0);
        let run = random.log_uniform(RUNS.0, RUNS.1).min(most);
        let turns = if kind == Kind::Compute { random.log_uniform(2.0, 64.0).min(most / run).max(1.0) } else { 1.0 };
        let turns = turns as u64;
        let count = (cpu / (turns as f64 * (run + kind.overhead()))).clamp(1.0, MOST_EVENTS) as usize;
        let span = span.as_nanos() as f64;
        let crowded = (count as f64 * NEAREST / span).ceil();
        let wanted = if random.coin() { random.log_uniform(4.0, 64.0) } else { 1.0 };
        let batch = wanted.max(crowded) as usize;
        let fewest = (2.0 * cpu / span.max(1.0)).ceil(); // none is busy for more than half of the time
        let tasks = random.log_uniform(1.0, kind.most_tasks()).max(fewest).min(count as f64) as usize;
        let tasks = times(count, batch, tasks, span, &mut random);
        Self { kind, run: Duration::from_nanos(run as u64), turns, batch, share, tasks }
    }

    pub(super) fn events(&self) -> usize {
        self.tasks.iter().map(|times| times.len()).sum()
    }

    /// The CPU time that so many runs are worth, in nanoseconds.
    pub(super) fn worth(&self, runs: u64) -> f64 {
        runs as f64 * (self.run.as_nanos() as f64 + self.kind.overhead())
    }
}

/// The times of `count` events, dealt out to so many tasks. Batches are evenly apart, each a little early or late, so
/// that no clock tick meets them all.
fn times(count: usize, batch: usize, tasks: usize, span: f64, random: &mut Random) -> Vec<Arc<[u64]>> {
    let mut lists = vec![Vec::new(); tasks];
    let gap = span / count.div_ceil(batch) as f64;
    let mut time = 0;
    for event in 0..count {
        if event % batch == 0 {
            time = (((event / batch) as f64 + random.unit()) * gap) as u64;
        }
        lists[event % tasks].push(time);
    }
    lists.into_iter().map(Arc::from).collect()
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, load {:.0} %", self.seed, 100.0 * self.load)?;
        self.parts.iter().try_for_each(|part| writeln!(f, "  {part}"))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, share, events, tasks) = (self.kind.name(), 100.0 * self.share, self.events(), self.tasks.len());
        write!(f, "{name:<9}{share:>3.0} % of it: {events} events in {tasks} tasks, {} at a time", self.batch)?;
        match self.turns {
            1 => write!(f, ", run {:?}", self.run),
            turns => write!(f, ", {turns} runs of {:?} each", self.run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(400);

    fn draws() -> impl Iterator<Item = Draw> {
        (0..500).map(|seed| Draw::new(seed, 2, SPAN))
    }

    #[test]
    fn a_seed_always_draws_the_same() {
        assert_eq!(Draw::new(7, 1, SPAN), Draw::new(7, 1, SPAN));
        assert_ne!(Draw::new(7, 1, SPAN).parts, Draw::new(8, 1, SPAN).parts);
    }

    #[test]
    fn all_kinds_and_loads_occur() {
        for kind in Kind::ALL {
            assert!(draws().any(|draw| draw.parts.iter().any(|part| part.kind == kind)), "{kind:?}");
        }
        let overloaded = draws().filter(|draw| draw.load > FULL).count();
        assert!((150..300).contains(&overloaded), "{overloaded}");
    }

    #[test]
    fn no_load_is_higher_than_any_that_is_drawn() {
        for draw in draws() {
            assert!(draw.load > 0.0 && draw.load <= LOADS.1 * 1.02, "{draw}");
        }
    }

    #[test]
    fn times_ascend_and_lie_within_the_span() {
        for part in draws().flat_map(|draw| draw.parts) {
            assert!(!part.tasks.is_empty() && part.tasks.iter().all(|times| !times.is_empty()), "{part}");
            assert!(part.tasks.iter().all(|times| times.is_sorted()), "{part}");
            assert!(part.tasks.iter().all(|times| u128::from(times[times.len() - 1]) < SPAN.as_nanos()), "{part}");
        }
    }
}
