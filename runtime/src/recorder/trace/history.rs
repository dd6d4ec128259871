//! From events to slices: what each worker did from when to when, and the life of each task.
//!
//! Called by `trace.rs`, which draws it. A ring may have very many events, so of each there are a few words here, and
//! what a task does between its polls is given to the caller one after the other.
//!
//! The hard part is that nothing may be relied on: rings begin anywhere, are
//! copied one after the other, have been written by processors whose clocks differ a little, and a task that waits is
//! woken and polled by a second worker before the first one has noted the end of its poll. So times are bounded by
//! their neighbours on a track, and a poll belongs to the wake before it, or to one that seems to come a little later.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZero;
use std::ops::Range;

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

/// The origin of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Label {
    pub(in super::super) line: Option<Line>,
    pub(in super::super) name: Vec<u8>,
}

/// Finds the line of a number.
type Lines<'a> = &'a dyn Fn(u32) -> Option<Line>;

/// An arrow.
pub(super) type Flow = NonZero<u32>;

/// The time span of an activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) begin: u64,
    /// [`GOES_ON`] without one.
    end: u64,
    /// Of a worker that has waited: any.
    task: Number,
    /// The arrow that ends here.
    pub(super) flow: Option<Flow>,
    /// Of a blocking job: any.
    worker: u16,
    does: Does,
}

/// The activity during a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Polls(Then),
    Waits,
    /// A blocking job.
    Works,
}

const GOES_ON: u64 = u64::MAX;

/// Something that happened at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    words: Words,
    /// The arrow that begins here.
    pub(super) flow: Option<Flow>,
    /// The worker; `None` if it was another thread.
    worker: Option<u16>,
}

/// The state of a task during a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runs,
    /// For what it awaits.
    Waits,
    /// For a worker.
    Ready,
}

/// The end of a state, or the beginning of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// In ticks.
    pub(super) at: u64,
    /// Beside which poll: see [`History::poll`].
    pub(super) poll: u32,
    /// Which one there.
    pub(super) nth: u8,
}

/// The life of a task that has run.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) task: Number,
    /// Where its polls are, and what has woken it.
    polls: Range<usize>,
    wakes: Range<usize>,
    pub(super) is_drawn: bool,
}

/// More tracks of tasks than these are of no use to a viewer: those of tasks with the fewest polls are left out.
const MOST_TASKS: usize = 10_000;

#[derive(Default)]
pub(super) struct History {
    pub(super) slices: Vec<Slice>,
    pub(super) points: Vec<Point>,
    pub(super) labels: HashMap<Number, Label>,
    pub(super) lives: Vec<Life>,
    /// Slices and points by task and time.
    polls: Vec<u32>,
    wakes: Vec<u32>,
    now: u64,
    /// How many ticks the clocks of two processors differ by at most.
    slack: u64,
    flows: u32,
}

impl Slice {
    pub(super) fn end(&self) -> Option<u64> {
        Some(self.end).filter(|&end| end != GOES_ON)
    }

    /// The worker; `None` for a blocking job.
    pub(super) fn worker(&self) -> Option<usize> {
        (self.does != Does::Works).then_some(self.worker.into())
    }

    /// The task that was polled; `None` if the worker waited.
    pub(super) fn task(&self) -> Option<Number> {
        (self.does != Does::Waits).then_some(self.task)
    }

    fn then(&self) -> Then {
        if let Does::Polls(then) = self.does { then } else { Then::Ended }
    }
}

impl Point {
    fn new(worker: Option<usize>, at: u64, event: Event) -> Self {
        Self { words: event.pack(at), flow: None, worker: worker.map(|worker| worker as u16) }
    }

    fn at(&self) -> u64 {
        Event::unpack(self.words).map_or(0, |(at, _)| at)
    }

    /// When what happened.
    pub(super) fn read(&self) -> Option<(u64, Event)> {
        Event::unpack(self.words)
    }

    /// The worker; `None` if it was another thread.
    pub(super) fn worker(&self) -> Option<usize> {
        self.worker.map(usize::from)
    }

    /// The task that was woken or spawned.
    pub(super) fn woken(&self) -> Option<Number> {
        match self.read()?.1 {
            Event::Wake { task } | Event::Spawn { task, .. } => Some(task),
            _ => None,
        }
    }
}

/// The numbers of turns: before a poll, at it, and the same again behind it.
const WAITS: u8 = 0;
const READY: u8 = 2;
const RUNS: u8 = 4;
const LATER: u8 = 6;

impl Turn {
    /// Numbers are below that.
    pub(super) const NUMBERS: u64 = 16;

    /// The state that begins at the turn of that number; `None` if one ends.
    pub(super) fn begins(nth: u8) -> Option<State> {
        match nth % LATER {
            WAITS => Some(State::Waits),
            READY => Some(State::Ready),
            RUNS => Some(State::Runs),
            _ => None,
        }
    }
}

impl History {
    pub(super) fn of(copied: Copied<'_>) -> Self {
        let slack = (1_000.0 / copied.tick) as u64; // they differ by less than a microsecond
        let mut history = Self { now: copied.now, slack, ..Self::default() };
        for (index, worker) in copied.workers.into_iter().enumerate() {
            history.read_worker(index, worker, copied.line); // and drops what was copied of it
        }
        history.read_outside(copied.outside, copied.line);
        history.find_lives();
        history
    }

    fn read_worker(&mut self, index: usize, worker: Worker, line: Lines<'_>) {
        let (now, mut last) = (self.now, 0);
        let mut slice = |begin: u64, end: Option<u64>, task, does| {
            let bounded = end.map(|end| end.max(last));
            let begin = begin.max(last).min(bounded.unwrap_or(now.max(last)));
            last = bounded.unwrap_or(begin);
            Slice { begin, end: bounded.unwrap_or(GOES_ON), task, flow: None, worker: index as u16, does }
        };
        let mut spawned = None;
        for (at, event) in worker.events.iter().filter_map(|&words| Event::unpack(words)) {
            let at = at.min(now);
            match event {
                Event::Poll { task, took, then } => {
                    self.slices.push(slice(at.saturating_sub(took), Some(at), task, Does::Polls(then)));
                }
                Event::Wait { took } => {
                    self.slices.push(slice(at.saturating_sub(took), Some(at), Number::of(0), Does::Waits));
                }
                event => self.note(Some(index), at, event, &mut spawned, line),
            }
            if !matches!(event, Event::Spawn { .. } | Event::Text { .. }) {
                spawned = None;
            }
        }
        match worker.doing {
            (Doing::Nothing, _) => {}
            (Doing::Waits, since) => self.slices.push(slice(since, None, Number::of(0), Does::Waits)),
            (Doing::Polls(task), since) => self.slices.push(slice(since, None, task, Does::Polls(Then::Waits))),
        }
    }

    fn read_outside(&mut self, events: Vec<Words>, line: Lines<'_>) {
        let mut jobs: HashMap<Number, u64> = HashMap::new();
        let job = |task, begin: u64, end: u64| Slice {
            begin: begin.min(end),
            end,
            task,
            flow: None,
            worker: 0,
            does: Does::Works,
        };
        let mut spawned = None;
        for (at, event) in events.iter().filter_map(|&words| Event::unpack(words)) {
            let at = at.min(self.now);
            match event {
                Event::JobBegin { task } => drop(jobs.insert(task, at)),
                Event::JobEnd { task } => {
                    let begin = jobs.remove(&task);
                    self.slices.extend(begin.map(|begin| job(task, begin, at)));
                }
                event => self.note(None, at, event, &mut spawned, line),
            }
            if !matches!(event, Event::Spawn { .. } | Event::Text { .. }) {
                spawned = None;
            }
        }
        let mut left: Vec<(Number, u64)> = jobs.into_iter().collect();
        left.sort_unstable();
        self.slices.extend(left.into_iter().map(|(task, begin)| job(task, begin, GOES_ON)));
    }

    /// An event that takes no time. The name of a task comes directly after its spawn.
    fn note(&mut self, worker: Option<usize>, at: u64, event: Event, spawned: &mut Option<Number>, line: Lines<'_>) {
        match event {
            Event::Text { bytes, len } => {
                if let Some(label) = spawned.and_then(|task| self.labels.get_mut(&task)) {
                    label.name.extend(&bytes[..len.into()]);
                }
                return;
            }
            Event::Spawn { task, place } => {
                *spawned = Some(task);
                self.labels.insert(task, Label { line: line(place), name: Vec::new() });
            }
            _ => {}
        }
        self.points.push(Point::new(worker, at, event));
    }

    /// Finds the polls and the wakes of each task, both in order.
    fn find_lives(&mut self) {
        let (slices, points) = (&self.slices, &self.points);
        let mut polls: Vec<u32> = (0..).zip(slices).filter(|(_, slice)| slice.task().is_some()).map(number).collect();
        polls.sort_unstable_by_key(|&at| (slices[at as usize].task, slices[at as usize].begin, at));
        let mut wakes: Vec<u32> = (0..).zip(points).filter(|(_, point)| point.woken().is_some()).map(number).collect();
        wakes.sort_unstable_by_key(|&at| (points[at as usize].woken(), points[at as usize].at(), at));
        let woken = |at: &u32| points[*at as usize].woken();
        let mut begin = 0;
        for of_task in polls.chunk_by(|&one, &other| slices[one as usize].task == slices[other as usize].task) {
            let task = slices[of_task[0] as usize].task;
            let woken_before = wakes.partition_point(|at| woken(at) < Some(task));
            let wakes = woken_before..wakes.partition_point(|at| woken(at) <= Some(task));
            self.lives.push(Life { task, polls: begin..begin + of_task.len(), wakes, is_drawn: true });
            begin += of_task.len();
        }
        (self.polls, self.wakes) = (polls, wakes);
        if self.lives.len() > MOST_TASKS {
            let mut by_polls: Vec<&mut Life> = self.lives.iter_mut().collect();
            by_polls.sort_by_key(|life| Reverse(life.polls.len()));
            by_polls[MOST_TASKS..].iter_mut().for_each(|life| life.is_drawn = false);
        }
    }

    /// At most so many turns come of [`live`](Self::live).
    pub(super) fn most_turns(&self) -> usize {
        let drawn = self.lives.iter().filter(|life| life.is_drawn);
        drawn.map(|life| 6 * life.polls.len() + 3).sum()
    }

    /// The slice of the poll of that number.
    pub(super) fn poll(&self, poll: u32) -> &Slice {
        &self.slices[self.polls[poll as usize] as usize]
    }

    /// Draws an arrow from each wake to its poll, and finds out what each task did between its polls. Once.
    pub(super) fn live(&mut self, mut turn: impl FnMut(Turn)) {
        for nth in 0..self.lives.len() {
            let is_drawn = self.lives[nth].is_drawn;
            let turn = |at| {
                if is_drawn {
                    turn(at);
                }
            };
            self.live_one(nth, &mut States { turn, poll: 0 });
        }
    }

    fn live_one(&mut self, nth: usize, states: &mut States<impl FnMut(Turn)>) {
        let Life { polls, wakes, .. } = &self.lives[nth];
        let (polls, mut wakes) = (polls.clone(), wakes.clone());
        let mut before: Option<(u64, Then)> = None;
        for nth in polls.clone() {
            states.poll = nth as u32;
            let woken = self.draw_arrow(nth, &mut wakes);
            let slice = &self.slices[self.polls[nth] as usize];
            let begin = slice.begin.max(before.map_or(0, |(end, _)| end)); // a task runs once at a time
            states.gap(before, woken, begin);
            let next = self.polls[nth + 1..polls.end].first();
            let next = next.map(|&next| self.slices[next as usize].begin.max(begin));
            let end = slice.end().map(|end| end.max(begin)).into_iter().chain(next).min();
            states.run(begin, end);
            before = end.map(|end| (end, slice.then()));
        }
        let woken = wakes.next().map(|wake| self.points[self.wakes[wake] as usize].at());
        states.rest(before, woken);
    }

    /// Draws an arrow to the poll from the first of the `wakes` that belong to it, which it takes away. Returns when
    /// that was.
    fn draw_arrow(&mut self, poll: usize, wakes: &mut Range<usize>) -> Option<u64> {
        let slice = &mut self.slices[self.polls[poll] as usize];
        let until = slice.begin.saturating_add(self.slack).min(slice.end().unwrap_or(self.now)).max(slice.begin);
        let belong = self.wakes[wakes.clone()].iter().take_while(|&&wake| self.points[wake as usize].at() <= until);
        let (first, count) = (wakes.start, belong.count());
        wakes.start += count;
        if count == 0 {
            return None;
        }
        self.flows += 1;
        let wake = &mut self.points[self.wakes[first] as usize];
        wake.flow = Flow::new(self.flows);
        (slice.flow, slice.begin) = (wake.flow, slice.begin.max(wake.at()));
        Some(wake.at())
    }
}

fn number<T>((at, _): (u32, T)) -> u32 {
    at
}

/// Tells the turns of a task.
struct States<F> {
    turn: F,
    poll: u32,
}

impl<F: FnMut(Turn)> States<F> {
    /// It is so from then on. `nth` is that of its beginning.
    fn last(&mut self, nth: u8, begin: u64) {
        (self.turn)(Turn { at: begin, poll: self.poll, nth });
    }

    /// It is so for a while, or not at all.
    fn push(&mut self, nth: u8, begin: u64, end: u64) {
        if begin < end {
            self.last(nth, begin);
            self.last(nth + 1, end);
        }
    }

    fn run(&mut self, begin: u64, end: Option<u64>) {
        self.last(RUNS, begin);
        if let Some(end) = end {
            self.last(RUNS + 1, end);
        }
    }

    /// Between the poll `before` and the one that begins.
    fn gap(&mut self, before: Option<(u64, Then)>, woken: Option<u64>, begin: u64) {
        match before {
            Some((end, Then::Asks)) => self.push(READY, end, begin),
            Some((end, _)) => {
                let woken = woken.unwrap_or(begin).clamp(end.min(begin), begin);
                self.push(WAITS, end, woken);
                self.push(READY, woken, begin);
            }
            None => self.push(READY, woken.unwrap_or(begin), begin),
        }
    }

    /// After the last poll.
    fn rest(&mut self, before: Option<(u64, Then)>, woken: Option<u64>) {
        match before {
            Some((end, Then::Asks)) => self.last(LATER + READY, end),
            Some((end, Then::Waits)) => {
                if let Some(woken) = woken.map(|woken| woken.max(end)) {
                    self.push(LATER + WAITS, end, woken);
                    self.last(LATER + READY, woken);
                } else {
                    self.last(LATER + WAITS, end);
                }
            }
            Some((_, Then::Ended)) | None => {}
        }
    }
}
