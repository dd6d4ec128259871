//! The picture of what was recorded, in the format that <https://ui.perfetto.dev> opens.
//!
//! A track for each worker, with its polls and waits as slices and what it has woken, delivered and stolen as moments;
//! a track for each task that ran, with what it did; counters of the queues; arrows from a wake or a spawn to the poll
//! that came of it. Times are nanoseconds since the recorder was made.
//!
//! `history.rs` finds out what there is to draw. All packets are of one sequence, in the order of their times; names
//! are in the first one, and events refer to them.
//!
//! Rejected: the JSON of Chrome's tracing (ten times as long, and its arrows must be tied to the slice by a time that
//! lies inside). A thread's track for a worker (a core has several threads in its life, and the name of the worker is
//! what a user looks for).

mod history;

use std::cmp::Reverse;
use std::collections::HashMap;

use super::event::{Event, Number};
use super::proto::{self, Message, event, interned, packet, track};
pub(super) use history::{Copied, Label, Worker};
use history::{History, Life, Point, Slice, Span, State};

/// The tracks that there are once.
const PROCESS: u64 = 1;
const OUTSIDE: u64 = 2;
const TASKS: u64 = 3;
const INJECTED: u64 = 4;

/// More tracks of tasks than these are of no use to a viewer: those of tasks with the fewest polls are left out.
const MOST_TASKS: usize = 10_000;

fn worker_track(index: usize) -> u64 {
    1 << 32 | (index as u64) << 1
}

fn queue_track(index: usize) -> u64 {
    worker_track(index) + 1
}

fn task_track(task: Number) -> u64 {
    1 << 48 | task.bits()
}

/// Draws what was copied. `label_others` is asked for the tasks that have run and whose spawn is not there.
pub(super) fn draw(copied: &Copied<'_>, label_others: impl FnOnce(&[Number]) -> HashMap<Number, Label>) -> Vec<u8> {
    let mut history = History::of(copied);
    let is_unknown = |task: &Number| !history.labels.contains_key(task);
    let mut others: Vec<Number> = history.lives.iter().map(|life| life.task).filter(is_unknown).collect();
    others.extend(history.points.iter().filter_map(|point| woken(point.event)).filter(is_unknown));
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        history.labels.extend(label_others(&others));
    }
    let mut picture =
        Picture { tick: copied.tick, labels: &history.labels, names: Names::default(), packets: Vec::new() };
    history.points.iter().for_each(|point| picture.draw_point(point)); // first: of one time, the wake before its poll
    history.slices.iter().for_each(|slice| picture.draw_slice(slice));
    let mut lives: Vec<&Life> = history.lives.iter().collect();
    if lives.len() > MOST_TASKS {
        lives.sort_by_key(|life| Reverse(life.states.len()));
        lives.truncate(MOST_TASKS);
    }
    lives.iter().for_each(|life| picture.draw_life(life));
    picture.finish(copied.first, copied.workers.len(), &lives)
}

fn woken(event: Event) -> Option<Number> {
    match event {
        Event::Wake { task } | Event::Spawn { task, .. } => Some(task),
        _ => None,
    }
}

/// The names that events refer to by a number.
#[derive(Default)]
pub(super) struct Names(HashMap<String, u64>);

impl Names {
    pub(super) fn number(&mut self, name: String) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(name).or_insert(next)
    }

    /// The packet that tells them.
    pub(super) fn packet(&self) -> Message {
        let mut names = Message::new();
        let mut sorted: Vec<(&String, &u64)> = self.0.iter().collect();
        sorted.sort_unstable_by_key(|(_, number)| **number);
        for (name, number) in sorted {
            let name = Message::new().number(interned::IID, *number).text(interned::NAME, name);
            names.append(interned::EVENT_NAMES, &name);
        }
        Message::new()
            .number(packet::SEQUENCE_ID, 1)
            .number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED)
            .message(packet::INTERNED_DATA, &names)
    }
}

struct Picture<'a> {
    tick: f64,
    labels: &'a HashMap<Number, Label>,
    names: Names,
    /// Each with its time.
    packets: Vec<(u64, Message)>,
}

impl Picture<'_> {
    /// How a task is called: by its name, else by the line of its spawn.
    fn label(&self, task: Number) -> String {
        let label = self.labels.get(&task);
        match label {
            Some(label) if !label.name.is_empty() => String::from_utf8_lossy(&label.name).into_owned(),
            Some(Label { line: Some(line), .. }) => format!("{}:{}", line.file(), line.line()),
            _ if task.is_main() => "block_on".to_owned(),
            _ => format!("task {}", task.get()),
        }
    }

    fn nanos(&self, at: u64) -> u64 {
        (at as f64 * self.tick) as u64
    }

    fn put(&mut self, at: u64, event: &Message) {
        let at = self.nanos(at);
        self.packets.push((at, packet_of(at, event)));
    }

    fn event(&mut self, kind: u64, track: u64, name: String) -> Message {
        let name = self.names.number(name);
        Message::new().number(event::TYPE, kind).number(event::TRACK, track).number(event::NAME_IID, name)
    }

    fn end(&mut self, at: Option<u64>, track: u64) {
        if let Some(at) = at {
            self.put(at, &Message::new().number(event::TYPE, event::SLICE_END).number(event::TRACK, track));
        }
    }

    fn draw_slice(&mut self, slice: &Slice) {
        let Some(track) = slice.worker.map(worker_track) else { return };
        let name = slice.task.map_or("parked".to_owned(), |task| self.label(task));
        let mut begin = self.event(event::SLICE_BEGIN, track, name);
        if let Some(task) = slice.task {
            begin = begin.message(event::ANNOTATIONS, &count("task", task.get()));
        }
        if let Some(flow) = slice.flow {
            begin = begin.fixed(event::TERMINATING_FLOWS, flow);
        }
        self.put(slice.begin, &begin);
        self.end(slice.end, track);
    }

    fn draw_point(&mut self, point: &Point) {
        let counter = |track, value| {
            Message::new()
                .number(event::TYPE, event::COUNTER)
                .number(event::TRACK, track)
                .number(event::COUNTER_VALUE, value)
        };
        let (name, note) = match point.event {
            Event::Queue { tasks } => {
                let track = point.worker.map_or(INJECTED, queue_track);
                return self.put(point.at, &counter(track, tasks));
            }
            Event::Injected { tasks } => return self.put(point.at, &counter(INJECTED, tasks)),
            Event::Wake { task } => ("wakes", (self.label(task), task.get())),
            Event::Spawn { task, .. } => ("spawns", (self.label(task), task.get())),
            Event::Steal { tasks } => ("takes tasks of another worker", (String::new(), tasks)),
            Event::Ready { events } => ("sockets are ready", (String::new(), events)),
            Event::Timers { fired } => ("timers fire", (String::new(), fired)),
            _ => return,
        };
        let track = point.worker.map_or(OUTSIDE, worker_track);
        let mut moment = self.event(event::INSTANT, track, name.to_owned());
        let (label, number) = note;
        if label.is_empty() {
            moment = moment.message(event::ANNOTATIONS, &count("count", number));
        } else {
            moment = moment.message(event::ANNOTATIONS, &count("task", number));
            moment = moment.message(event::ANNOTATIONS, &text("name", &label));
        }
        if let Some(flow) = point.flow {
            moment = moment.fixed(event::FLOWS, flow);
        }
        self.put(point.at, &moment);
    }

    fn draw_life(&mut self, life: &Life) {
        let track = task_track(life.task);
        for &Span { state, begin, end, flow } in &life.states {
            let name = match state {
                State::Runs => "runs",
                State::Waits => "waits",
                State::Ready => "waits for a worker",
            };
            let mut slice = self.event(event::SLICE_BEGIN, track, name.to_owned());
            if let Some(flow) = flow {
                slice = slice.fixed(event::TERMINATING_FLOWS, flow);
            }
            self.put(begin, &slice);
            self.end(end, track);
        }
    }

    /// Puts all packets together.
    fn finish(mut self, first: usize, workers: usize, lives: &[&Life]) -> Vec<u8> {
        let mut trace = Message::new();
        trace.append(proto::PACKET, &self.names.packet());
        for track in self.tracks(first, workers, lives) {
            let packet = Message::new().number(packet::SEQUENCE_ID, 1).message(packet::TRACK_DESCRIPTOR, &track);
            trace.append(proto::PACKET, &packet);
        }
        self.packets.sort_by_key(|(at, _)| *at); // stable: of one time, in the order of a track
        for (_, packet) in &self.packets {
            trace.append(proto::PACKET, packet);
        }
        trace.into_bytes()
    }

    fn tracks(&self, first: usize, workers: usize, lives: &[&Life]) -> Vec<Message> {
        let process =
            Message::new().number(track::PID, std::process::id().into()).text(track::PROCESS_NAME, &process_name());
        let mut tracks = vec![
            Message::new()
                .number(track::UUID, PROCESS)
                .number(track::CHILD_ORDERING, track::EXPLICIT)
                .message(track::PROCESS, &process),
        ];
        let below = |uuid, name: &str, rank: usize| {
            let track = Message::new().number(track::UUID, uuid).number(track::PARENT, PROCESS);
            track.text(track::NAME, name).number(track::RANK, rank as u64)
        };
        let counts = Message::new().text(track::UNIT_NAME, "tasks");
        for index in 0..workers {
            tracks.push(below(worker_track(index), &format!("worker {}", first + index), 2 * index));
            let queue = below(queue_track(index), &format!("queue of worker {}", first + index), 2 * index + 1);
            tracks.push(queue.message(track::COUNTER, &counts));
        }
        tracks.push(below(INJECTED, "queue for any worker", 2 * workers).message(track::COUNTER, &counts));
        tracks.push(below(OUTSIDE, "other threads", 2 * workers + 1));
        tracks.push(below(TASKS, "tasks", 2 * workers + 2).number(track::CHILD_ORDERING, track::CHRONOLOGICAL));
        for life in lives {
            let name = format!("{} #{}", self.label(life.task), life.task.get());
            let track = Message::new().number(track::UUID, task_track(life.task)).number(track::PARENT, TASKS);
            tracks.push(track.text(track::NAME, &name));
        }
        tracks
    }
}

/// The packet of an event at so many nanoseconds.
pub(super) fn packet_of(at: u64, event: &Message) -> Message {
    Message::new()
        .number(packet::TIMESTAMP, at)
        .number(packet::SEQUENCE_ID, 1)
        .number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE)
        .message(packet::TRACK_EVENT, event)
}

/// A note to an event.
pub(super) fn count(name: &str, number: u64) -> Message {
    Message::new().text(event::ANNOTATION_NAME, name).number(event::UINT_VALUE, number)
}

fn text(name: &str, text: &str) -> Message {
    Message::new().text(event::ANNOTATION_NAME, name).text(event::STRING_VALUE, text)
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
