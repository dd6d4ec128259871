//! The flight recorder and the histograms: what the workers of a runtime did lately, and for how long.
//!
//! A runtime has a [`Recorder`] if its builder asks for one. Each core then has a [`Probe`], to which its owner reports
//! its events. Other threads (those that wake tasks from outside, those that run blocking jobs) report to the recorder
//! itself, which has a ring of its own under a lock: such threads are many, their events are rare, and a lock keeps the
//! events of a spawn and its name together. `trace.rs` makes a picture of all events for any thread that asks, and
//! takes none of these locks.
//!
//! The hard part is the cost. If recording is off, a core has no observer (`scheduler/observe.rs`). The comparison that
//! a worker makes before each poll anyway (`Worker::long_poll`) includes the check for one, so a poll pays nothing; a
//! spawn and a wake pay one branch. If recording is on, a poll is one event with its duration, and its end is the begin
//! of the next poll, unless the worker did something else between them. That takes 15 ns of the worker's CPU time, of
//! which 8 to 14 are for the clock; a wake takes as much, and a spawn twice that. Wakes and spawns read the clock too,
//! as much may happen earlier in a poll.
//!
//! Rejected:
//! - Two readings for each poll (8 to 14 ns more).
//! - Wakes with the time at which the poll began (a task that computes for 90 ms and then wakes another one would seem
//!   to have kept it waiting).
//! - A number for each event to order those of several workers (a line that all of them write). The clock orders them
//!   well enough for a picture, and the export does not rely on it.
//! - A `fetch_add` for a slot in the ring of the other threads (a reader could not tell a slot that is still being
//!   written).

mod clock;
mod event;
pub(crate) mod events;
mod histogram;
mod places;
mod ring;
mod snapshot;
mod trace;
mod waiting;

use std::any::Any;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;

use mini_kernel::primitives::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use mini_kernel::primitives::{Mutex, lock};
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::observe::{Observe, ObserveCore, Then, Who};
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::Task;

use crate::runtime::settings::Settings;
use clock::Clock;
use event::{Event, Number, TEXT};
use histogram::Buckets;
pub use histogram::Histogram;
use places::Places;
use ring::Ring;
pub(crate) use snapshot::{records, take, write};
use waiting::Waiting;

/// The bytes of an event.
const EVENT: usize = 16;

/// What a name is cut to, in events.
const NAME: usize = 5;

/// What the cores of a runtime that records share.
pub(crate) struct Recorder {
    clock: Clock,
    places: Places,
    /// For threads that hold no core.
    outside: Option<Outside>,
    waiting: Option<Waiting>,
    /// How many events a core has room for, if they are kept.
    events: Option<usize>,
    /// Where the trace goes by itself, if the environment says so.
    path: Option<PathBuf>,
    was_written: AtomicBool,
}

/// The ring that several threads write.
struct Outside {
    writers: Mutex<()>,
    ring: Ring,
}

/// What a core records of its owner.
pub(crate) struct Probe {
    recorder: Arc<Recorder>,
    /// That of the recorder.
    clock: Clock,
    ring: Option<Ring>,
    times: Option<Times>,
    /// What the owner does since when: see [`Doing`].
    doing: AtomicU64,
    since: AtomicU64,
    /// The number of waiting tasks that was recorded last.
    told: AtomicU64,
}

/// How long runs take, and how long tasks wait for them.
struct Times {
    polls: Buckets,
    delays: Buckets,
}

/// The current activity of a core's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Waits,
    Polls(Number),
}

impl Times {
    /// A task has its turn.
    fn note_delay(&self, recorder: &Recorder, task: Number, at: u64) {
        if let Some(waiting) = &recorder.waiting
            && let Some(ticks) = waiting.take(task, at)
        {
            self.delays.note(ticks);
        }
    }

    /// It has had it.
    fn note_poll(&self, recorder: &Recorder, task: Number, took: u64, then: Then, at: u64) {
        self.polls.note(took);
        if then == Then::Asks {
            recorder.waits(task, at);
        }
    }
}

impl Recorder {
    /// Makes one, if the settings ask for it.
    pub(crate) fn of_settings(settings: &Settings) -> Option<Self> {
        if settings.flight_recorder.is_none() && !settings.histograms {
            return None;
        }
        let events = settings.flight_recorder.map(|bytes| 1 << (bytes / EVENT).ilog2());
        let outside = events.map(|events| Outside { writers: Mutex::new(()), ring: Ring::new(events) });
        Some(Self {
            clock: Clock::new(),
            places: Places::new(),
            outside,
            waiting: settings.histograms.then(Waiting::new),
            events,
            path: settings.trace_path.clone(),
            was_written: AtomicBool::new(false),
        })
    }

    /// That of a runtime, if it has one.
    pub(crate) fn of(shared: &Shared) -> Option<&Self> {
        shared.config.observers.iter().find_map(|observer| observer.as_any().downcast_ref())
    }

    fn tell(&self, write: impl FnOnce(&Ring, u64)) {
        if let Some(outside) = &self.outside {
            let _alone = lock(&outside.writers);
            write(&outside.ring, self.clock.now());
        }
    }

    fn waits(&self, task: Number, at: u64) {
        if let Some(waiting) = &self.waiting {
            waiting.note(task, at);
        }
    }
}

impl Observe for Recorder {
    fn of_core(self: Arc<Self>, _index: usize, _is_guest: bool) -> Option<Box<dyn ObserveCore>> {
        let times = self.waiting.is_some().then(|| Times { polls: Buckets::new(), delays: Buckets::new() });
        Some(Box::new(Probe {
            recorder: self.clone(),
            clock: self.clock.clone(),
            ring: self.events.map(Ring::new),
            times,
            doing: AtomicU64::new(Doing::Nothing.bits()),
            since: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }))
    }

    fn woken(&self, id: u64) {
        let task = Number::of(id);
        self.tell(|ring, at| ring.push(Event::Wake { task }.pack(at)));
        self.waits(task, self.clock.now());
    }

    fn spawned(&self, task: &Task) {
        let place = self.places.number(task.location());
        self.tell(|ring, at| write_spawn(ring, at, task, place));
        self.waits(Number::of(task.id().get()), self.clock.now());
    }

    fn job_begins(&self, Who { id, .. }: Who) {
        let task = Number::of(id.get());
        if let Some(waiting) = &self.waiting {
            let _ = waiting.take(task, 0); // no worker's delay
        }
        self.tell(|ring, at| ring.push(Event::JobBegin { task }.pack(at)));
    }

    fn job_ends(&self, Who { id, .. }: Who) {
        self.tell(|ring, at| ring.push(Event::JobEnd { task: Number::of(id.get()) }.pack(at)));
    }

    fn ended(&self, shared: &Shared) {
        self.write_trace(shared);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl ObserveCore for Probe {
    fn begin(&self, Who { id, .. }: Who, nothing_else: bool) {
        let task = Number::of(id.get());
        if !nothing_else {
            self.since.store(self.clock.now(), Relaxed);
        }
        self.doing.store(Doing::Polls(task).bits(), Release);
        if let Some(times) = &self.times {
            times.note_delay(&self.recorder, task, self.since.load(Relaxed));
        }
    }

    fn end(&self, then: Then, _was_compute_bound: bool) {
        let Doing::Polls(task) = Doing::of(self.doing.load(Relaxed)) else { return };
        let at = self.clock.now();
        let took = at.saturating_sub(self.since.load(Relaxed));
        if let Some(ring) = &self.ring {
            ring.push(Event::Poll { task, took, then }.pack(at));
        }
        if let Some(times) = &self.times {
            times.note_poll(&self.recorder, task, took, then, at);
        }
        self.becomes(Doing::Nothing, at);
    }

    fn parks(&self) {
        self.becomes(Doing::Waits, self.clock.now());
    }

    fn unparks(&self) {
        let (at, since) = (self.clock.now(), self.since.load(Relaxed));
        if Doing::of(self.doing.load(Relaxed)) == Doing::Waits {
            self.note(Event::Wait { took: at.saturating_sub(since) }, at);
        }
        self.becomes(Doing::Nothing, at);
    }

    fn woken(&self, id: u64) {
        let (task, at) = (Number::of(id), self.clock.now());
        self.note(Event::Wake { task }, at);
        if self.times.is_some() {
            self.recorder.waits(task, at);
        }
    }

    fn spawned(&self, task: Task) -> Task {
        let at = self.clock.now();
        if let Some(ring) = &self.ring {
            write_spawn(ring, at, &task, self.recorder.places.number(task.location()));
        }
        self.recorder.waits(Number::of(task.id().get()), at);
        task
    }

    fn stole(&self, tasks: usize) {
        self.note(Event::Steal { tasks: tasks as u64 }, self.clock.now());
    }

    fn delivered(&self, events: usize, timers: usize) {
        let at = self.clock.now();
        if events > 0 {
            self.note(Event::Ready { events: events as u64 }, at);
        }
        if timers > 0 {
            self.note(Event::Timers { fired: timers as u64 }, at);
        }
    }

    fn queues(&self, here: usize, injected: usize) {
        let both = (here as u64) << 32 | injected as u64 & 0xffff_ffff;
        let before = self.told.swap(both, Relaxed);
        let at = self.clock.now();
        if before >> 32 != both >> 32 {
            self.note(Event::Queue { tasks: here as u64 }, at);
        }
        if before & 0xffff_ffff != both & 0xffff_ffff {
            self.note(Event::Injected { tasks: injected as u64 }, at);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Probe {
    /// That of a core, if it has one.
    pub(crate) fn of(core: &Core) -> Option<&Self> {
        core.observers.iter().find_map(|observer| observer.as_any().downcast_ref())
    }

    #[inline(always)]
    fn becomes(&self, doing: Doing, at: u64) {
        self.since.store(at, Relaxed);
        self.doing.store(doing.bits(), Release);
    }

    #[inline]
    fn note(&self, event: Event, at: u64) {
        if let Some(ring) = &self.ring {
            ring.push(event.pack(at));
        }
    }
}

/// For any thread.
impl Probe {
    /// What the owner does, and since when. The two are read one after the other, so the time may be a later one.
    fn doing(&self) -> (Doing, u64) {
        (Doing::of(self.doing.load(Acquire)), self.since.load(Relaxed))
    }

    /// Adds how long polls took.
    pub(crate) fn add_polls(&self, sum: &mut Histogram) {
        if let Some(times) = &self.times {
            sum.add(&times.polls);
        }
    }

    /// Adds how long tasks waited for them.
    pub(crate) fn add_delays(&self, sum: &mut Histogram) {
        if let Some(times) = &self.times {
            sum.add(&times.delays);
        }
    }
}

impl Recorder {
    /// A histogram with nothing in it, if they are on.
    pub(crate) fn histogram(&self) -> Option<Histogram> {
        self.waiting.is_some().then(|| Histogram::new(self.clock.tick()))
    }
}

impl Doing {
    #[inline]
    fn bits(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Waits => 1,
            Self::Polls(task) => 1 << 63 | task.bits(),
        }
    }

    #[inline]
    fn of(bits: u64) -> Self {
        match bits {
            0 => Self::Nothing,
            1 => Self::Waits,
            bits => Self::Polls(Number::from_bits(bits)),
        }
    }
}

/// Records a spawn and the name of the task.
fn write_spawn(ring: &Ring, at: u64, task: &Task, place: u32) {
    ring.push(Event::Spawn { task: Number::of(task.id().get()), place }.pack(at));
    let Some(name) = task.name() else { return };
    for part in name.as_bytes().chunks(TEXT).take(NAME) {
        let mut bytes = [0; TEXT];
        bytes[..part.len()].copy_from_slice(part);
        ring.push(Event::Text { bytes, len: part.len() as u8 }.pack(at));
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("events", &self.events).field("path", &self.path).finish_non_exhaustive()
    }
}

/// The line of a task that was spawned.
type Line = &'static Location<'static>;
