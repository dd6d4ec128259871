//! `Queued`, a task's place in a queue, and what running it comes to: one poll, and what the state says is owed after it.
//!
//! Called by the worker, which takes it out of a queue, and by all who put it into one. A place is a pointer that counts
//! nothing: the registry keeps a task until it is done, and a queued task is not done. Who may touch which field is told in
//! `task.rs`, by the rights table.
//!
//! Rejected: running as a method of `Task`. Whoever holds a reference could poll, also twice.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::budget;
use super::state::{OnPending, OnStart};
use super::wait::{Reason, WaitSlot};
use super::waker::{self, raw_waker};
use super::{Header, Id, Task, UNREGISTERED};
use crate::context;

/// A task's place in a queue. Must be run, or put into another queue.
#[must_use]
pub(crate) struct Queued(pub(super) NonNull<Header>);

/// A task that is being polled, on the runner's stack.
pub(crate) struct Running {
    task: Queued,
    /// It asks to run again after all that is queued.
    has_yielded: Cell<bool>,
}

// SAFETY: a queue entry of a shared task may be run by any thread, since its future is `Send`. An entry of an owned
// task is made and kept by the thread that holds the core, in that core's own queue.
unsafe impl Send for Queued {}

impl Queued {
    /// For a queue that stores plain pointers.
    pub(crate) fn into_raw(self) -> NonNull<()> {
        self.0.cast()
    }

    /// Takes an entry back.
    ///
    /// # Safety
    ///
    /// `raw` came from [`into_raw`](Self::into_raw), and is not used again.
    pub(crate) unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self(raw.cast())
    }

    fn header(&self) -> &Header {
        // SAFETY: an entry exists only while the runtime's reference does (`state.rs`: a queued task is not done).
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { self.0.as_ref() }
    }

    /// Polls the task once, or drops its future if it was cancelled.
    ///
    /// For an owned task the caller holds its home core.
    pub(crate) fn run(self) {
        let header = self.header();
        let (then, owes) = header.state.start();
        if owes {
            header.local.release(&header.life); // not the last: the runtime has one
        }
        match then {
            OnStart::Poll => self.poll(),
            OnStart::Drop => self.drop_future(),
        }
    }

    /// Drops the future without polling it, and completes the task as cancelled.
    pub(crate) fn discard(self) {
        let _ = self.header().state.cancel();
        self.run();
    }

    fn poll(self) {
        // SAFETY: the entry, and with it the runtime's reference, goes nowhere before the poll is over.
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
        let header = unsafe { self.0.as_ref() };
        // Borrowed from the runtime's reference: polling counts nothing.
        // SAFETY: `waker_vtable` fits a pointer to a header, which lives as long as the poll.
        // Test: tests/tests/tasks.rs `foreign_threads_wake_and_drop_wakers`.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(self.0)) });
        let running = Running::new(self);
        let inside = context::enter_task(&running);
        budget::refill();
        // SAFETY: `start` was called, so the stage is ours (rights table, row 1).
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
        let poll = unsafe { (header.vtable.poll)(running.task.0, &mut Context::from_waker(&waker)) };
        drop(inside);
        note_wait(&header.wait); // of a ready task too: a note left behind would be taken for the next one's
        if poll.is_ready() {
            return running.task.complete();
        }
        let next =
            if running.has_yielded.get() { header.state.finish_yielded() } else { header.state.finish_pending() };
        match next {
            // The task may run elsewhere, and be freed, from here on.
            OnPending::Idle => {}
            OnPending::Requeue if header.state.is_shared() => context::requeue_shared(running.task),
            OnPending::Requeue => header.home.push_owned(running.task),
            OnPending::Drop => running.task.drop_future(),
        }
    }

    fn drop_future(self) {
        let running = Running::new(self);
        let inside = context::enter_task(&running);
        let task = &running.task;
        // SAFETY: the task is started and not finished, so the stage is ours (rights table, row 1).
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { (task.header().vtable.cancel)(task.0) };
        drop(inside);
        running.task.complete();
    }

    /// The future is gone and the output in place: hand it over, and give up the runtime's reference.
    fn complete(self) {
        let header = self.header();
        let runtimes = match header.slot.get() {
            UNREGISTERED => Task(self.0),
            _ => header.home.unregister(&self),
        };
        runtimes.end(Task::drop_output);
    }

    pub(crate) fn slot(&self) -> u32 {
        self.header().slot.get()
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.header().state.is_shared()
    }
}

impl Running {
    fn new(task: Queued) -> Self {
        Self { task, has_yielded: Cell::new(false) }
    }

    pub(crate) fn id(&self) -> Id {
        self.task.header().id
    }

    pub(crate) fn name(&self) -> Option<Arc<str>> {
        // SAFETY: a task that is being polled is alive, and the table is its own.
        // Test: tests/tests/named.rs `a_name_is_seen_wherever_the_task_is`.
        unsafe { (self.task.header().vtable.name)(self.task.0) }
    }

    /// Whether it is this one.
    pub(super) fn is(&self, header: &Header) -> bool {
        std::ptr::eq(self.task.0.as_ptr(), header)
    }

    pub(crate) fn wait_slot(&self) -> &WaitSlot {
        &self.task.header().wait
    }

    /// Has the task run again after this poll if `waker` is its own; says whether it is.
    fn yields(&self, waker: &Waker) -> bool {
        let is_own = waker.data() == self.task.0.as_ptr().cast_const().cast() && waker::is_of_task(waker);
        if is_own {
            self.has_yielded.set(true);
        }
        is_own
    }
}

/// Wakes the task that polls, at less cost than by its waker: nobody else can have queued it.
pub(super) fn yield_to_others(waker: &Waker) {
    if context::with_task(|task| task.yields(waker)) != Some(true) {
        waker.wake_by_ref();
    }
}

/// Moves what the leaf futures noted on this thread into the task's wait slot.
fn note_wait(slot: &WaitSlot) {
    if let Some(note) = mini_net::take_note() {
        slot.set(Reason::Io(note.kind, note.fd), note.location);
    }
    if let Some(note) = mini_time::take_note() {
        slot.set(Reason::Timer(note.deadline_ns), note.location);
    }
}
