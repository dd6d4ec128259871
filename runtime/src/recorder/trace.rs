//! The picture of what was recorded.
//!
//! A track for each worker, with its polls and waits as slices and what it has woken, delivered and stolen as moments;
//! a track for each task that ran, with what it did; counters of the queues; arrows from a wake or a spawn to the poll
//! that came of it. Times are nanoseconds since the recorder was made.
//!
//! What concerns no task is drawn as it is read; the rest is put in order by task and time, and then drawn task by
//! task. The hard part is that nothing may be relied on: rings begin anywhere, are copied one after the other, have
//! been written by processors whose clocks differ a little, and a task that waits is woken and polled by a second
//! worker before the first one has noted the end of its poll. So slices are bounded by their neighbours on a track, and
//! a poll belongs to the wake before it, or to one that seems to come a little later.

use std::collections::HashMap;

use mini_kernel::scheduler::observe::Then;

use super::event::{Event, Number};
use super::events::{Events, Group, Track};
use super::ring::Words;
use super::{Doing, Line};
use crate::json::Fields;
use crate::order::sorted;

/// What was copied of a runtime.
pub(super) struct Copied<'a> {
    /// Nanoseconds of a tick.
    pub(super) tick: f64,
    /// The number of the first worker.
    pub(super) first: usize,
    /// Of each core: the events, the oldest first, and what its owner does since when.
    pub(super) workers: Vec<(Vec<Words>, (Doing, u64))>,
    /// Of threads that hold none.
    pub(super) outside: Vec<Words>,
    /// The line of a number.
    pub(super) line: &'a dyn Fn(u32) -> Option<Line>,
}

/// The origin of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Label {
    pub(super) line: Option<Line>,
    pub(super) name: Vec<u8>,
}

/// More tracks of tasks than these are of no use to a viewer: those of tasks with the fewest events are left out.
const MOST_TASKS: usize = 10_000;

/// How many nanoseconds the clocks of two processors differ by at most.
const SLACK: f64 = 1_000.0;

const GOES_ON: u64 = u64::MAX;

/// Something that a task did, or that was done to it. Times are in ticks.
#[derive(Clone, Copy)]
struct Entry {
    task: Number,
    /// The track of the worker, or that of the other threads.
    track: Track,
    at: u64,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// By a wake, or a spawn.
    Woken(&'static str),
    /// In a poll, or in a blocking job.
    Runs { end: u64, then: Then },
}

impl Entry {
    /// The time by which it is ordered: a run comes after a wake that seems to be a little later.
    fn order(&self, slack: u64) -> (Number, u64, bool) {
        match self.what {
            What::Woken(_) => (self.task, self.at, false),
            What::Runs { end, .. } => (self.task, (self.at + slack).min(end).max(self.at), true),
        }
    }
}

/// A run of a task, and the arrow that ends there, if that is not shown elsewhere.
struct Run {
    begin: u64,
    end: u64,
    then: Then,
    arrow: Option<u64>,
}

/// Draws what was copied. `label_others` is asked for the tasks whose spawn is not there.
pub(super) fn draw(copied: Copied<'_>, label_others: impl FnOnce(&[Number]) -> HashMap<Number, Label>) -> Vec<u8> {
    let mut events = Events::default();
    events.name(Group::Workers, process_name());
    events.name(Group::Tasks, "tasks");
    let outside = events.track(Group::Workers, "other threads");
    let slack = (SLACK / copied.tick) as u64;
    let mut picture = Picture { events, tick: copied.tick, outside, labels: HashMap::new(), entries: Vec::new() };
    for ((events, doing), index) in copied.workers.into_iter().zip(copied.first..) {
        let track = picture.events.track(Group::Workers, format_args!("worker {index}"));
        let last = picture.read(&events, track, index, copied.line);
        picture.goes_on(track, doing, last);
    }
    picture.read(&copied.outside, outside, 0, copied.line);
    let mut entries = std::mem::take(&mut picture.entries);
    entries.sort_unstable_by_key(|entry| entry.order(slack));
    let mut lives: Vec<&[Entry]> = entries.chunk_by(|one, next| one.task == next.task).collect();
    let is_unknown = |task: &Number| !picture.labels.contains_key(task);
    let others: Vec<Number> = lives.iter().map(|life| life[0].task).filter(is_unknown).collect();
    if !others.is_empty() {
        picture.labels.extend(label_others(&others));
    }
    lives = sorted(lives, |life| !(life.len() as u64)); // the longest first
    for (life, nth) in lives.into_iter().zip(0..) {
        picture.draw_life(life, nth < MOST_TASKS);
    }
    picture.events.into_bytes()
}

struct Picture {
    events: Events,
    tick: f64,
    outside: Track,
    labels: HashMap<Number, Label>,
    entries: Vec<Entry>,
}

impl Picture {
    fn nanos(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick) as u64
    }

    /// Reads the events of a track. Returns when its last slice ends.
    fn read(&mut self, events: &[Words], track: Track, index: usize, line: &dyn Fn(u32) -> Option<Line>) -> u64 {
        let (mut last, mut spawned) = (0, None);
        let mut jobs: HashMap<Number, usize> = HashMap::new();
        for (at, event) in events.iter().filter_map(|&words| Event::unpack(words)) {
            let named = spawned.take();
            let nanos = self.nanos(at);
            match event {
                Event::Poll { task, took, then } => {
                    let (begin, end) = (at.saturating_sub(took).max(last), at.max(last));
                    self.entries.push(Entry { task, track, at: begin, what: What::Runs { end, then } });
                    last = end;
                }
                Event::Wait { took } => {
                    let (begin, end) = (at.saturating_sub(took).max(last), at.max(last));
                    self.events.slice(track, self.nanos(begin), Some(self.nanos(end)), "parked");
                    last = end;
                }
                Event::Spawn { task, place } => {
                    self.labels.insert(task, Label { line: line(place), name: Vec::new() });
                    self.entries.push(Entry { task, track, at, what: What::Woken("spawns") });
                    spawned = Some(task);
                }
                // The name of a task comes directly after its spawn.
                Event::Text { bytes, len } => {
                    if let Some(label) = named.and_then(|task| self.labels.get_mut(&task)) {
                        label.name.extend(&bytes[..len.into()]);
                    }
                    spawned = named;
                }
                Event::Wake { task } => self.entries.push(Entry { task, track, at, what: What::Woken("wakes") }),
                Event::Steal { tasks } => self.draw_count(track, nanos, "takes tasks of another worker", tasks),
                Event::Ready { events } => self.draw_count(track, nanos, "sockets are ready", events),
                Event::Timers { fired } => self.draw_count(track, nanos, "timers fire", fired),
                Event::Queue { tasks } => self.events.count(nanos, format_args!("queue of worker {index}"), tasks),
                Event::Injected { tasks } => self.events.count(nanos, "queue for any worker", tasks),
                Event::JobBegin { task } if track == self.outside => {
                    jobs.insert(task, self.entries.len());
                    let what = What::Runs { end: GOES_ON, then: Then::Ended };
                    self.entries.push(Entry { task, track, at, what });
                }
                Event::JobEnd { task } => {
                    if let Some(job) = jobs.remove(&task).map(|begin| &mut self.entries[begin]) {
                        job.what = What::Runs { end: at.max(job.at), then: Then::Ended };
                    }
                }
                Event::JobBegin { .. } => {}
            }
        }
        last
    }

    /// What a worker does now.
    fn goes_on(&mut self, track: Track, (doing, since): (Doing, u64), last: u64) {
        let at = since.max(last);
        match doing {
            Doing::Nothing => {}
            Doing::Waits => drop(self.events.slice(track, self.nanos(at), None, "parked")),
            Doing::Polls(task) => {
                self.entries.push(Entry { task, track, at, what: What::Runs { end: GOES_ON, then: Then::Ended } });
            }
        }
    }

    fn draw_count(&mut self, track: Track, at: u64, name: &str, count: u64) {
        self.events.moment(track, at, name).object("args").value("count", count);
    }

    /// How a task is called: by its name, else by the line of its spawn.
    fn label(&self, task: Number) -> String {
        match self.labels.get(&task) {
            Some(label) if !label.name.is_empty() => String::from_utf8_lossy(&label.name).into_owned(),
            Some(Label { line: Some(line), .. }) => format!("{}:{}", line.file(), line.line()),
            _ if task.is_main() => "block_on".to_owned(),
            _ => format!("task {}", task.get()),
        }
    }

    /// Draws what is known of one task, in order.
    fn draw_life(&mut self, life: &[Entry], is_drawn: bool) {
        let (label, number) = (self.label(life[0].task), life[0].task.get());
        let runs = life.iter().any(|entry| matches!(entry.what, What::Runs { .. }));
        let own = (is_drawn && runs).then(|| self.events.track(Group::Tasks, format_args!("{label} #{number}")));
        let mut states = States { track: own, last: 0 };
        let mut run: Option<Run> = None;
        let mut woken: Option<(u64, u64)> = None; // the first time since that run, and the arrow from there
        for &Entry { track, at, what, .. } in life {
            let nanos = self.nanos(at);
            match what {
                What::Woken(name) => {
                    let arrow = woken.is_none().then(|| self.events.arrow());
                    let mut moment = self.events.moment(track, nanos, name);
                    if let Some(arrow) = arrow {
                        woken = Some((at, arrow));
                        moment.value("flow_out", true);
                        moment.text("bind_id", format_args!("{arrow:#x}"));
                    }
                    let mut args = moment.object("args");
                    args.value("task", number);
                    args.text("name", &label);
                }
                What::Runs { end, then } => {
                    let begin = woken.map_or(at, |(woken, _)| at.max(woken)).min(end);
                    let mut arrow = woken.map(|(_, arrow)| arrow);
                    states.draw(self, run.as_ref(), woken, Some(begin));
                    if track != self.outside {
                        let until = (end != GOES_ON).then(|| self.nanos(end));
                        let mut poll = self.events.slice(track, self.nanos(begin), until, &label);
                        end_arrow(&mut poll, arrow.take());
                        poll.object("args").value("task", number);
                    }
                    (run, woken) = (Some(Run { begin, end, then, arrow }), None);
                }
            }
        }
        states.draw(self, run.as_ref(), woken, None);
    }
}

fn end_arrow(slice: &mut Fields<'_>, arrow: Option<u64>) {
    if let Some(arrow) = arrow {
        slice.value("flow_in", true);
        slice.text("bind_id", format_args!("{arrow:#x}"));
    }
}

/// The track of a task, if it has one, and up to where it is drawn.
struct States {
    track: Option<Track>,
    last: u64,
}

impl States {
    /// Draws what the task did from a run on up to the next one, if there is one.
    fn draw(&mut self, picture: &mut Picture, run: Option<&Run>, woken: Option<(u64, u64)>, next: Option<u64>) {
        let next = next.unwrap_or(GOES_ON);
        let mut ready = woken.map_or(next, |(woken, _)| woken);
        if let Some(run) = run {
            let end = run.end.min(next);
            self.push(picture, run.begin, end, "runs", run.arrow);
            match run.then {
                Then::Ended => return,
                Then::Asks => ready = end,
                Then::Waits => self.push(picture, end, ready, "waits", None),
            }
        }
        self.push(picture, ready, next, "waits for a worker", None);
    }

    /// It is so for a while, or not at all.
    fn push(&mut self, picture: &mut Picture, begin: u64, end: u64, state: &str, arrow: Option<u64>) {
        let begin = begin.max(self.last);
        if let Some(track) = self.track.filter(|_| begin < end) {
            self.last = end;
            let until = (end != GOES_ON).then(|| picture.nanos(end));
            end_arrow(&mut picture.events.slice(track, picture.nanos(begin), until, state), arrow);
        }
    }
}

/// What the program is called.
fn process_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_stem().map_or("mini".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod decode;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
