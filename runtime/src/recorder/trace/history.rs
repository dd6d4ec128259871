//! From events to slices: what each worker did from when to when, and the life of each task.
//!
//! Called by `trace.rs`, which draws it. The hard part is that nothing may be relied on: rings begin anywhere, are
//! copied one after the other, have been written by processors whose clocks differ a little, and a task that waits is
//! woken and polled by a second worker before the first one has noted the end of its poll. So times are bounded by
//! their neighbours on a track, and a poll belongs to the wake before it, or to one that seems to come a little later.

use std::collections::HashMap;

use super::super::event::{Event, Number, Then};
use super::super::ring::Words;
use super::super::{Doing, Line};

/// What was copied of a runtime.
pub(in super::super) struct Copied<'a> {
    /// When, in ticks: no event is later.
    pub(in super::super) now: u64,
    /// Nanoseconds of a tick.
    pub(in super::super) tick: f64,
    /// The number of the first worker.
    pub(in super::super) first: usize,
    /// Of each core.
    pub(in super::super) workers: Vec<Worker>,
    /// Of threads that hold none.
    pub(in super::super) outside: Vec<Words>,
    /// The line of a number.
    pub(in super::super) line: &'a dyn Fn(u32) -> Option<Line>,
}

pub(in super::super) struct Worker {
    /// The events, the oldest first.
    pub(in super::super) events: Vec<Words>,
    pub(in super::super) doing: (Doing, u64),
}

/// Where a task comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Label {
    pub(in super::super) line: Option<Line>,
    pub(in super::super) name: Vec<u8>,
}

/// From when to when something went on. One without an end goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The worker; `None` for a blocking job.
    pub(super) worker: Option<usize>,
    pub(super) begin: u64,
    pub(super) end: Option<u64>,
    /// The task that was polled; `None` if the worker waited.
    pub(super) task: Option<Number>,
    then: Then,
    /// The arrow that ends here.
    pub(super) flow: Option<u64>,
}

/// Something that happened at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// The worker; `None` if it was another thread.
    pub(super) worker: Option<usize>,
    pub(super) at: u64,
    pub(super) event: Event,
    /// The arrow that begins here.
    pub(super) flow: Option<u64>,
}

/// What a task did from when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runs,
    /// For what it awaits.
    Waits,
    /// For a worker.
    Ready,
}

/// From when to when a task did what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) state: State,
    pub(super) begin: u64,
    pub(super) end: Option<u64>,
    /// The arrow that ends here.
    pub(super) flow: Option<u64>,
}

/// The life of a task that has run.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) task: Number,
    pub(super) states: Vec<Span>,
}

#[derive(Default)]
pub(super) struct History {
    pub(super) slices: Vec<Slice>,
    pub(super) points: Vec<Point>,
    pub(super) labels: HashMap<Number, Label>,
    pub(super) lives: Vec<Life>,
    flows: u64,
}

impl History {
    pub(super) fn of(copied: &Copied<'_>) -> Self {
        let mut history = Self::default();
        for (index, worker) in copied.workers.iter().enumerate() {
            history.read_worker(index, worker, copied);
        }
        history.read_outside(copied);
        history.live(copied);
        history
    }

    fn read_worker(&mut self, index: usize, worker: &Worker, copied: &Copied<'_>) {
        let mut last = 0;
        let mut slice = |begin: u64, end: Option<u64>, task, then| {
            let bounded = end.map(|end| end.max(last));
            let begin = begin.max(last).min(bounded.unwrap_or(copied.now.max(last)));
            last = bounded.unwrap_or(begin);
            Slice { worker: Some(index), begin, end: bounded, task, then, flow: None }
        };
        let mut spawned = None;
        for (at, event) in worker.events.iter().filter_map(|&words| Event::unpack(words)) {
            let at = at.min(copied.now);
            match event {
                Event::Poll { task, took, then } => {
                    self.slices.push(slice(at.saturating_sub(took), Some(at), Some(task), then));
                }
                Event::Wait { took } => {
                    self.slices.push(slice(at.saturating_sub(took), Some(at), None, Then::Waits));
                }
                event => self.note(Some(index), at, event, &mut spawned, copied),
            }
            if !matches!(event, Event::Spawn { .. } | Event::Text { .. }) {
                spawned = None;
            }
        }
        match worker.doing {
            (Doing::Nothing, _) => {}
            (Doing::Waits, since) => self.slices.push(slice(since, None, None, Then::Waits)),
            (Doing::Polls(task), since) => self.slices.push(slice(since, None, Some(task), Then::Waits)),
        }
    }

    fn read_outside(&mut self, copied: &Copied<'_>) {
        let mut jobs: HashMap<Number, u64> = HashMap::new();
        let job = |task, begin, end: Option<u64>| Slice {
            worker: None,
            begin: end.map_or(begin, |end| end.min(begin)),
            end,
            task: Some(task),
            then: Then::Ended,
            flow: None,
        };
        let mut spawned = None;
        for (at, event) in copied.outside.iter().filter_map(|&words| Event::unpack(words)) {
            let at = at.min(copied.now);
            match event {
                Event::JobBegin { task } => drop(jobs.insert(task, at)),
                Event::JobEnd { task } => {
                    let begin = jobs.remove(&task);
                    self.slices.extend(begin.map(|begin| job(task, begin, Some(at))));
                }
                event => self.note(None, at, event, &mut spawned, copied),
            }
            if !matches!(event, Event::Spawn { .. } | Event::Text { .. }) {
                spawned = None;
            }
        }
        let mut left: Vec<(Number, u64)> = jobs.into_iter().collect();
        left.sort_unstable();
        self.slices.extend(left.into_iter().map(|(task, begin)| job(task, begin, None)));
    }

    /// An event that takes no time. The name of a task comes directly after its spawn.
    fn note(&mut self, worker: Option<usize>, at: u64, event: Event, spawned: &mut Option<Number>, from: &Copied<'_>) {
        match event {
            Event::Text { bytes, len } => {
                if let Some(label) = spawned.and_then(|task| self.labels.get_mut(&task)) {
                    label.name.extend(&bytes[..len.into()]);
                }
                return;
            }
            Event::Spawn { task, place } => {
                *spawned = Some(task);
                self.labels.insert(task, Label { line: (from.line)(place), name: Vec::new() });
            }
            _ => {}
        }
        self.points.push(Point { worker, at, event, flow: None });
    }

    /// Draws an arrow from each wake to its poll, and finds out what each task did between its polls.
    fn live(&mut self, copied: &Copied<'_>) {
        let mut tasks: HashMap<Number, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (index, slice) in self.slices.iter().enumerate() {
            if let Some(task) = slice.task {
                tasks.entry(task).or_default().0.push(index);
            }
        }
        for (index, point) in self.points.iter().enumerate() {
            if let Event::Wake { task } | Event::Spawn { task, .. } = point.event
                && let Some((_, wakes)) = tasks.get_mut(&task)
            {
                wakes.push(index);
            }
        }
        let mut tasks: Vec<_> = tasks.into_iter().collect();
        tasks.sort_unstable_by_key(|(task, _)| *task);
        for (task, (mut polls, mut wakes)) in tasks {
            polls.sort_by_key(|&index| self.slices[index].begin);
            wakes.sort_by_key(|&index| self.points[index].at);
            let states = self.states(&polls, &wakes, copied);
            self.lives.push(Life { task, states });
        }
    }

    /// What a task did, by its polls and the moments when something has woken it, both in order.
    fn states(&mut self, polls: &[usize], wakes: &[usize], copied: &Copied<'_>) -> Vec<Span> {
        let slack = (1_000.0 / copied.tick) as u64; // the clocks of two processors differ by less than a microsecond
        let (mut states, mut wakes) = (States(Vec::new()), wakes.iter().copied().peekable());
        let mut before: Option<(u64, Then)> = None;
        for (nth, &poll) in polls.iter().enumerate() {
            let end = self.slices[poll].end.unwrap_or(copied.now);
            let until = self.slices[poll].begin.saturating_add(slack).min(end).max(self.slices[poll].begin);
            let mut cause = None;
            while let Some(wake) = wakes.next_if(|&wake| self.points[wake].at <= until) {
                cause.get_or_insert(wake);
            }
            if let Some(wake) = cause {
                self.flows += 1;
                self.points[wake].flow = Some(self.flows);
                let at = self.points[wake].at;
                let slice = &mut self.slices[poll];
                (slice.flow, slice.begin) = (Some(self.flows), slice.begin.max(at));
            }
            let woken = cause.map(|wake| self.points[wake].at);
            let slice = &self.slices[poll];
            let begin = slice.begin.max(before.map_or(0, |(end, _)| end)); // a task runs once at a time
            states.gap(before, woken, begin);
            let next = polls.get(nth + 1).map(|&next| self.slices[next].begin.max(begin));
            let end = slice.end.map(|end| end.max(begin)).into_iter().chain(next).min();
            let flow = slice.flow.filter(|_| slice.worker.is_none()); // a poll shows it on the track of its worker
            states.0.push(Span { state: State::Runs, begin, end, flow });
            before = end.map(|end| (end, slice.then));
        }
        let woken = wakes.next().map(|wake| self.points[wake].at);
        states.rest(before, woken);
        states.0
    }
}

struct States(Vec<Span>);

impl States {
    fn push(&mut self, state: State, begin: u64, end: u64) {
        if begin < end {
            self.0.push(Span { state, begin, end: Some(end), flow: None });
        }
    }

    /// It is so from then on.
    fn last(&mut self, state: State, begin: u64) {
        self.0.push(Span { state, begin, end: None, flow: None });
    }

    /// Between the poll `before` and the one that begins.
    fn gap(&mut self, before: Option<(u64, Then)>, woken: Option<u64>, begin: u64) {
        match before {
            Some((end, Then::Asks)) => self.push(State::Ready, end, begin),
            Some((end, _)) => {
                let woken = woken.unwrap_or(begin).clamp(end.min(begin), begin);
                self.push(State::Waits, end, woken);
                self.push(State::Ready, woken, begin);
            }
            None => self.push(State::Ready, woken.unwrap_or(begin), begin),
        }
    }

    /// After the last poll.
    fn rest(&mut self, before: Option<(u64, Then)>, woken: Option<u64>) {
        match before {
            Some((end, Then::Asks)) => self.last(State::Ready, end),
            Some((end, Then::Waits)) => {
                if let Some(woken) = woken.map(|woken| woken.max(end)) {
                    self.push(State::Waits, end, woken);
                    self.last(State::Ready, woken);
                } else {
                    self.last(State::Waits, end);
                }
            }
            Some((_, Then::Ended)) | None => {}
        }
    }
}
