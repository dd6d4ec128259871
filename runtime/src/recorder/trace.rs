//! The picture of what was recorded, in the format that <https://ui.perfetto.dev> opens.
//!
//! A track for each worker, with its polls and waits as slices and what it has woken, delivered and stolen as moments;
//! a track for each task that ran, with what it did; counters of the queues; arrows from a wake or a spawn to the poll
//! that came of it. Times are nanoseconds since the recorder was made.
//!
//! `history.rs` finds out what there is to draw. All packets are of one sequence, in the order of their times; names
//! are in the first one, and events refer to them. The packets are most of the memory that it takes: so what there is
//! to draw is put in order by 16 bytes for each packet, and each is written once, at its place.
//!
//! Rejected: the JSON of Chrome's tracing (ten times as long, and its arrows must be tied to the slice by a time that
//! lies inside). A thread's track for a worker (a core has several threads in its life, and the name of the worker is
//! what a user looks for).

mod history;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::event::{Event, Number};
use super::proto::{self, Message, event, interned, packet, track};
pub(super) use history::{Copied, Label, Worker};
use history::{Flow, History, Point, Slice, State, Turn};

/// The tracks that there are once.
const PROCESS: u64 = 1;
const OUTSIDE: u64 = 2;
const TASKS: u64 = 3;
const INJECTED: u64 = 4;

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
pub(super) fn draw(copied: Copied<'_>, label_others: impl FnOnce(&[Number]) -> HashMap<Number, Label>) -> Vec<u8> {
    let (tick, first, workers) = (copied.tick, copied.first, copied.workers.len());
    let mut history = History::of(copied);
    let is_unknown = |task: &Number| !history.labels.contains_key(task);
    let mut others: Vec<Number> = history.lives.iter().map(|life| life.task).filter(is_unknown).collect();
    others.extend(history.points.iter().filter_map(Point::woken).filter(is_unknown));
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        history.labels.extend(label_others(&others));
    }
    let places = places(&mut history, tick);
    let mut picture = Picture::of(&history);
    picture.begin(first, workers, places.len());
    places.iter().for_each(|place| picture.draw(place));
    picture.out.into_bytes()
}

/// The place of a packet in the order of a trace: its time in nanoseconds, and what it shows. Of one time, moments come
/// first, as a wake is before its poll, and of a track what was first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: u64,
    /// Two bits kind, 58 bits index, 4 bits which of those at that index.
    what: u64,
}

const POINT: u64 = 0;
const SLICE: u64 = 1;
const TURN: u64 = 2;
const KIND: u32 = 62;

impl Place {
    fn new(at: u64, tick: f64, kind: u64, index: u64, nth: u64) -> Self {
        Self { at: (at as f64 * tick) as u64, what: kind << KIND | (index * Turn::NUMBERS + nth) }
    }
}

/// The places of all packets, in order.
fn places(history: &mut History, tick: f64) -> Vec<Place> {
    let room = history.points.len() + 2 * history.slices.len() + history.most_turns();
    let mut places = Vec::with_capacity(room); // to be made larger it would be copied
    history.live(|turn| places.push(Place::new(turn.at, tick, TURN, turn.poll.into(), turn.nth.into())));
    for (index, point) in (0..).zip(&history.points) {
        places.extend(point.read().map(|(at, _)| Place::new(at, tick, POINT, index, 0)));
    }
    for (index, slice) in (0..).zip(&history.slices).filter(|(_, slice)| slice.worker().is_some()) {
        places.push(Place::new(slice.begin, tick, SLICE, index, 0));
        places.extend(slice.end().map(|end| Place::new(end, tick, SLICE, index, 1)));
    }
    places.sort_unstable();
    places
}

/// The names that events refer to by a number.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<Arc<str>, u64>,
    /// By their numbers, from 1 on.
    names: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        let number = self.names.len() as u64;
        self.numbers.insert(name, number);
        number
    }

    fn get(&self, number: u64) -> &str {
        &self.names[number as usize - 1]
    }

    /// The packet that tells them.
    pub(super) fn packet(&self) -> Message {
        let mut names = Message::new();
        for (name, number) in self.names.iter().zip(1..) {
            let name = Message::new().number(interned::IID, number).text(interned::NAME, name);
            names.append(interned::EVENT_NAMES, &name);
        }
        Message::new()
            .number(packet::SEQUENCE_ID, 1)
            .number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED)
            .message(packet::INTERNED_DATA, &names)
    }
}

struct Picture<'a> {
    history: &'a History,
    names: Names,
    /// The names of the tasks that workers have polled.
    tasks: HashMap<Number, u64>,
    out: Message,
    /// Empty: their memory is used again.
    event: Message,
    packet: Message,
}

/// As many bytes as a packet has in the mean.
const BYTES: usize = 40;

/// The names that do not depend on what there is to draw. Their numbers are from 1 on.
const FIXED: [&str; 9] = [
    "runs",
    "waits",
    "waits for a worker",
    "parked",
    "wakes",
    "spawns",
    "takes tasks of another worker",
    "sockets are ready",
    "timers fire",
];

/// Their numbers.
const RUNS: u64 = 1;
const WAITS: u64 = 2;
const WAITS_FOR_WORKER: u64 = 3;
const PARKED: u64 = 4;
const WAKES: u64 = 5;
const SPAWNS: u64 = 6;
const STEALS: u64 = 7;
const SOCKETS: u64 = 8;
const TIMERS: u64 = 9;

impl<'a> Picture<'a> {
    fn of(history: &'a History) -> Self {
        let [out, event, packet] = [(); 3].map(|()| Message::new());
        Self { history, names: Names::default(), tasks: HashMap::new(), out, event, packet }
    }

    /// How a task is called: by its name, else by the line of its spawn.
    fn label(&self, task: Number) -> String {
        let label = self.history.labels.get(&task);
        match label {
            Some(label) if !label.name.is_empty() => String::from_utf8_lossy(&label.name).into_owned(),
            Some(Label { line: Some(line), .. }) => format!("{}:{}", line.file(), line.line()),
            _ if task.is_main() => "block_on".to_owned(),
            _ => format!("task {}", task.get()),
        }
    }

    /// Writes the names and the tracks, which come before `packets` packets.
    fn begin(&mut self, first: usize, workers: usize, packets: usize) {
        for name in FIXED {
            self.names.number(name);
        }
        for slice in self.history.slices.iter().filter(|slice| slice.worker().is_some()) {
            if let Some(task) = slice.task()
                && !self.tasks.contains_key(&task)
            {
                let name = self.names.number(&self.label(task));
                self.tasks.insert(task, name);
            }
        }
        self.out.append(proto::PACKET, &self.names.packet());
        for track in self.tracks(first, workers) {
            let packet = Message::new().number(packet::SEQUENCE_ID, 1).message(packet::TRACK_DESCRIPTOR, &track);
            self.out.append(proto::PACKET, &packet);
        }
        self.out.reserve(packets * BYTES);
    }

    /// Writes the packet of that place.
    fn draw(&mut self, &Place { at, what }: &Place) {
        let index = what % (1 << KIND);
        let (index, nth) = (index / Turn::NUMBERS, (index % Turn::NUMBERS) as u8);
        match what >> KIND {
            POINT => self.draw_point(at, &self.history.points[index as usize]),
            SLICE => self.draw_slice(at, &self.history.slices[index as usize], nth > 0),
            _ => self.draw_turn(at, self.history.poll(index as u32), nth),
        }
    }

    fn put(&mut self, at: u64, event: Message) {
        let packet = packet_in(mem::take(&mut self.packet), at, &event);
        self.out.append(proto::PACKET, &packet);
        (self.event, self.packet) = (event.emptied(), packet.emptied());
    }

    fn event(&mut self, kind: u64, track: u64) -> Message {
        mem::take(&mut self.event).number(event::TYPE, kind).number(event::TRACK, track)
    }

    fn named(&mut self, kind: u64, track: u64, name: u64) -> Message {
        self.event(kind, track).number(event::NAME_IID, name)
    }

    fn end(&mut self, at: u64, track: u64) {
        let end = self.event(event::SLICE_END, track);
        self.put(at, end);
    }

    fn draw_slice(&mut self, at: u64, slice: &Slice, is_end: bool) {
        let Some(track) = slice.worker().map(worker_track) else { return };
        if is_end {
            return self.end(at, track);
        }
        let begin = match slice.task() {
            None => self.named(event::SLICE_BEGIN, track, PARKED),
            Some(task) => {
                let begin = self.named(event::SLICE_BEGIN, track, self.tasks[&task]);
                begin.message(event::ANNOTATIONS, &count("task", task.get()))
            }
        };
        self.put(at, with_flow(begin, event::TERMINATING_FLOWS, slice.flow));
    }

    fn draw_point(&mut self, at: u64, point: &Point) {
        let Some((_, event)) = point.read() else { return };
        let (name, number, task) = match event {
            Event::Queue { tasks } => {
                return self.draw_count(at, point.worker().map_or(INJECTED, queue_track), tasks);
            }
            Event::Injected { tasks } => return self.draw_count(at, INJECTED, tasks),
            Event::Wake { task } => (WAKES, task.get(), Some(task)),
            Event::Spawn { task, .. } => (SPAWNS, task.get(), Some(task)),
            Event::Steal { tasks } => (STEALS, tasks, None),
            Event::Ready { events } => (SOCKETS, events, None),
            Event::Timers { fired } => (TIMERS, fired, None),
            _ => return,
        };
        let moment = self.named(event::INSTANT, point.worker().map_or(OUTSIDE, worker_track), name);
        let moment = match task {
            None => moment.message(event::ANNOTATIONS, &count("count", number)),
            Some(task) => {
                let moment = moment.message(event::ANNOTATIONS, &count("task", number));
                let label = self.tasks.get(&task).map(|&name| self.names.get(name));
                let label = label.map_or_else(|| text("name", &self.label(task)), |label| text("name", label));
                moment.message(event::ANNOTATIONS, &label)
            }
        };
        self.put(at, with_flow(moment, event::FLOWS, point.flow));
    }

    fn draw_count(&mut self, at: u64, track: u64, value: u64) {
        let counter = self.event(event::COUNTER, track).number(event::COUNTER_VALUE, value);
        self.put(at, counter);
    }

    /// Of the life of a task, at or beside this poll of it.
    fn draw_turn(&mut self, at: u64, poll: &Slice, nth: u8) {
        let Some(track) = poll.task().map(task_track) else { return };
        let Some(state) = Turn::begins(nth) else { return self.end(at, track) };
        let name = match state {
            State::Runs => RUNS,
            State::Waits => WAITS,
            State::Ready => WAITS_FOR_WORKER,
        };
        let begin = self.named(event::SLICE_BEGIN, track, name);
        let is_job = state == State::Runs && poll.worker().is_none(); // a poll shows it on the track of its worker
        self.put(at, with_flow(begin, event::TERMINATING_FLOWS, poll.flow.filter(|_| is_job)));
    }

    fn tracks(&self, first: usize, workers: usize) -> Vec<Message> {
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
        for life in self.history.lives.iter().filter(|life| life.is_drawn) {
            let name = format!("{} #{}", self.label(life.task), life.task.get());
            let track = Message::new().number(track::UUID, task_track(life.task)).number(track::PARENT, TASKS);
            tracks.push(track.text(track::NAME, &name));
        }
        tracks
    }
}

/// The packet of an event at so many nanoseconds, in an empty message.
pub(super) fn packet_in(empty: Message, at: u64, event: &Message) -> Message {
    empty
        .number(packet::TIMESTAMP, at)
        .number(packet::SEQUENCE_ID, 1)
        .number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE)
        .message(packet::TRACK_EVENT, event)
}

fn with_flow(event: Message, field: u64, flow: Option<Flow>) -> Message {
    match flow {
        Some(flow) => event.fixed(field, flow.get().into()),
        None => event,
    }
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
