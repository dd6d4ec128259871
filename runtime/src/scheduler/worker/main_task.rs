//! The main task: the future given to `block_on`, as the worker that polls it, its wakers and other threads see it.
//!
//! It has one entry in the owner's queues at most, as any task. Wakes on the owner's thread queue it; those of other
//! threads leave a mark, which the owner takes over before it chooses what runs next.
//!
//! Rejected: an owned task (its future is borrowed, and need not be `'static`).

use std::sync::{Arc, Weak};
use std::task::Wake;

use crate::primitives::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};
use crate::primitives::{Mutex, lock};
use crate::recorder::Then;
use crate::scheduler::core::{Core, Entry};
use crate::task::schedule::Schedule;
use crate::task::{Class, LastWait, WaitSlot};

/// What others see of the owner's main task, or of that of an external thread. Written by that thread.
#[derive(Debug)]
pub(crate) struct MainSight {
    /// Of the last one.
    id: AtomicU64,
    pub(crate) wait: WaitSlot,
    task: Mutex<Weak<MainTask>>,
}

impl Default for MainSight {
    fn default() -> Self {
        Self { id: AtomicU64::new(0), wait: WaitSlot::new(), task: Mutex::default() }
    }
}

impl MainSight {
    /// Another main task, if it is that of a worker.
    pub(crate) fn begin(&self, id: u64, task: Weak<MainTask>) {
        self.wait.clear(); // the one before may have panicked
        self.id.store(id, Release);
        *lock(&self.task) = task;
    }

    /// The main task, if there is one.
    pub(crate) fn task(&self) -> Option<Arc<MainTask>> {
        lock(&self.task).upgrade()
    }

    /// The id of a main task that waits, and for what.
    pub(crate) fn get(&self) -> Option<(u64, LastWait)> {
        let id = self.id.load(Acquire);
        Some((id, self.wait.get(id)?))
    }

    /// The same of one that waits still: it is not polled or about to be, unless it asks for that. What it has waited
    /// for may be its own by then. An external thread clears its wait before each poll.
    pub(crate) fn get_waiting(&self) -> Option<(u64, LastWait)> {
        let Some(task) = self.task() else { return self.get() };
        let before = task.at_rest();
        fence(Acquire); // the wait is read between two looks at the marks
        let (id, wait) = self.get()?;
        let is_asking = matches!(wait, LastWait::Yielded | LastWait::Spent);
        let waits = is_asking || before.is_some() && before == task.at_rest();
        (waits && id == task.id).then_some((id, wait))
    }
}

/// Wakes the future given to `block_on`, the main task of a worker.
pub(crate) struct MainTask {
    /// See `mini_context::new_main`.
    pub(super) id: u64,
    schedule: Schedule,
    /// Its entry is in one of the owner's queues.
    queued: AtomicBool,
    /// The owner polls it.
    running: AtomicBool,
    /// Another thread woke it.
    woken: AtomicBool,
    /// Nanoseconds that it has run since it last waited. Owner only.
    since_wait: AtomicU64,
    /// How often it was polled. Written by the owner.
    polls: AtomicU32,
}

/// The worker has one reference, and `block_on` a waker; if polls are recorded, `block_on` has one reference more.
const OWN_REFERENCES: usize = 2;

impl MainTask {
    pub(crate) fn new(core: &Core, id: u64) -> Arc<Self> {
        let [queued, running, woken] = [(); 3].map(|()| AtomicBool::new(false));
        let (since_wait, polls) = (AtomicU64::new(0), AtomicU32::new(0));
        let main = Arc::new(Self { id, schedule: core.schedule(), queued, running, woken, since_wait, polls });
        core.main.begin(id, Arc::downgrade(&main));
        main
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// How often it was polled, and for how many nanoseconds it has run since it last waited. Any thread.
    pub(crate) fn polls(&self) -> (u32, u64) {
        (self.polls.load(Relaxed), self.since_wait.load(Relaxed))
    }

    /// How many wakers of it there are, if the caller has one reference and no other thread asks.
    pub(crate) fn wakers(this: &Arc<Self>) -> usize {
        let own = OWN_REFERENCES + usize::from(this.schedule.probe.is_some());
        (Arc::strong_count(this) - 1).saturating_sub(own)
    }

    /// Whether it waits and nobody has a waker of it, if the caller has one reference and no other thread asks.
    pub(crate) fn is_lost(this: &Arc<Self>) -> bool {
        let wakers = Self::wakers(this);
        fence(Acquire); // the marks of a waker that is gone are seen
        wakers == 0 && this.at_rest().is_some()
    }

    /// How often it was polled, if it is not polled, queued or woken.
    fn at_rest(&self) -> Option<u32> {
        let marks = [&self.queued, &self.running, &self.woken];
        (!marks.iter().any(|mark| mark.load(Relaxed))).then(|| self.polls.load(Relaxed))
    }

    /// Owner only: it is polled from here on.
    pub(super) fn begin_run(&self) {
        self.queued.store(false, Relaxed);
        self.running.store(true, Relaxed);
        self.polls.store(self.polls.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Owner only: the poll is over, and took `took` nanoseconds. Returns how long the main task has run since it last
    /// waited, if it asks to run once more.
    pub(super) fn end_run(&self, took: u64) -> Option<u64> {
        self.running.store(false, Relaxed);
        let asks = self.queued.load(Relaxed);
        let since_wait = if asks { self.since_wait.load(Relaxed).saturating_add(took) } else { 0 };
        self.since_wait.store(since_wait, Relaxed);
        asks.then_some(since_wait)
    }

    /// What a poll of it has come to that has not made it ready. Owner only.
    pub(crate) fn then(&self) -> Then {
        if self.queued.load(Relaxed) { Then::Asks } else { Then::Waits }
    }

    /// Whether another thread has woken it.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Relaxed)
    }

    /// Owner only: it is to run. Says whether the caller queues it; after a wake during its own poll, which asks to run
    /// once more, the worker does so.
    fn mark_queued(&self) -> bool {
        if self.queued.load(Relaxed) {
            return false;
        }
        self.queued.store(true, Relaxed);
        !self.running.load(Relaxed)
    }

    /// Owner only.
    fn enqueue(&self) {
        self.schedule.push_entry(Entry::Main, Class::Woken);
    }

    /// Owner only: takes over a wake from another thread.
    pub(super) fn take_wake(&self) {
        // Acquire: pairs with the Release in `wake_by_ref`.
        if self.woken.load(Relaxed) && self.woken.swap(false, Acquire) && self.mark_queued() {
            self.enqueue();
        }
    }

    /// A recorder must be told, or another thread than the owner has woken it.
    #[cold]
    fn wake_told(&self) {
        if self.schedule.is_held() {
            if self.mark_queued() {
                self.schedule.tell_wake(self.id);
                self.enqueue();
            }
        } else if !self.woken.swap(true, AcqRel) {
            self.schedule.note_intruder(self.id);
            if let Some(recorder) = &self.schedule.shared().recorder {
                recorder.woken(self.id);
            }
            self.schedule.unparker.unpark();
        }
    }
}

impl Wake for MainTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.schedule.is_held_unrecorded() {
            self.wake_told();
        } else if self.mark_queued() {
            self.enqueue();
        }
    }
}
