//! `Queued`, a task's place in a queue, and how it is used: one poll, and then what the state says is owed.
//!
//! Called by the worker, which takes it out of a queue, and by all code that puts it into one. A place is a pointer
//! that counts nothing: the registry keeps a task until it is done, and a queued task is not done. The rights table in
//! `task.rs` says who may touch which field.
//!
//! Rejected: polling as a method of `Task`. Every holder of a reference could then poll, also twice.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::main::MAIN_SEAT;
use super::state::{OnPending, OnStart};
use super::waker::{self, raw_waker};
use super::{Header, Id, Task, UNREGISTERED};
use crate::blocking::{Job, Origin};
use crate::scheduler::current;
use crate::scheduler::observe::{Then, Who};

/// A task's place in a queue. Must be polled, or put into another queue.
#[must_use]
pub struct Queued(pub(super) NonNull<Header>);

/// When a task that waits in a queue is polled: woken ones first, and those of each class first in, first out
/// (`mini_context::rules`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It was spawned, or woken after a wait; or it asks for another poll and has not run for long.
    Woken,
    /// It has run for long since it last waited, and asks for another poll.
    ComputeBound,
}

impl Class {
    pub const ALL: [Class; 2] = [Class::Woken, Class::ComputeBound];
}

/// The result of a poll.
#[must_use]
pub enum Polled {
    /// The task waits.
    Waits,
    /// The task has ended.
    Ended,
    /// Put it at the back of a queue of this class.
    Asks(Queued, Class),
}

impl Polled {
    /// Returns the outcome without the task, for a record.
    #[inline]
    pub(crate) fn then(&self) -> Then {
        match self {
            Self::Waits => Then::Waits,
            Self::Asks(..) => Then::Asks,
            Self::Ended => Then::Ended,
        }
    }
}

/// While it lives, this thread drops the future of a task: its destructors may block no more than its polls. What a
/// blocking job leaves may block where it is dropped if what that thread does may.
struct Dropping {
    outer: u64,
}

impl Dropping {
    fn new(task: Id) -> Self {
        Self { outer: mini_context::swap_task(task.get()) }
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        mini_context::swap_task(self.outer);
    }
}

/// A task that is being polled, on the runner's stack.
pub struct Running {
    task: Queued,
    /// It asks for another poll.
    has_asked: Cell<bool>,
}

// SAFETY: a queue entry of a shared task may be polled by any thread, since its future is `Send`. An entry of an owned
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
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { self.0.as_ref() }
    }

    /// Polls the task once, or drops its future if it was cancelled. `lap` is called after that, and says how many
    /// nanoseconds are charged to the poll, if that is known; that is returned too. A task that asks for another poll
    /// is compute-bound if it has run for `compute_bound_after` since it last waited.
    ///
    /// For an owned task the caller holds its home core.
    #[inline(always)]
    pub(crate) fn poll_or_drop(
        self,
        compute_bound_after: u32,
        lap: impl FnOnce() -> Option<u64>,
    ) -> (Polled, Option<u64>) {
        match self.start() {
            OnStart::Poll => self.poll(compute_bound_after, lap),
            OnStart::Drop => {
                self.drop_future();
                (Polled::Ended, lap())
            }
        }
    }

    /// Drops the future without polling it, and completes the task as cancelled.
    pub(crate) fn cancel(self) {
        let (who, observed) = (self.who(), self.header().schedule.observed());
        self.refuse();
        for observer in observed.iter().flat_map(|shared| &shared.config.observers) {
            observer.discarded(who);
        }
    }

    /// [`cancel`](Self::cancel) for a task that a closed core does not take: no observer knows of it.
    pub(crate) fn refuse(self) {
        let _ = self.header().state.cancel();
        let start = self.start();
        debug_assert_eq!(start, OnStart::Drop, "it has just been cancelled");
        self.drop_future();
    }

    /// From here on the stage is the caller's.
    fn start(&self) -> OnStart {
        let header = self.header();
        let (then, owes) = header.state.start();
        if owes {
            header.local.release(&header.refs); // not the last: the runtime has one
        }
        then
    }

    #[inline(always)]
    fn poll(self, compute_bound_after: u32, lap: impl FnOnce() -> Option<u64>) -> (Polled, Option<u64>) {
        // SAFETY: the entry, and with it the runtime's reference, goes nowhere before the poll is over.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        let header = unsafe { self.0.as_ref() };
        // Borrowed from the runtime's reference: polling counts nothing.
        // SAFETY: the vtable of `raw_waker` fits a pointer to a header, which lives as long as the poll.
        // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(self.0)) });
        let running = Running::new(self);
        let inside = current::enter_task(&running);
        mini_context::begin_poll(header.id.get());
        header.schedule.begin_poll();
        // SAFETY: `start` was called, so the stage is ours (rights table, row 1).
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        let poll = unsafe { (header.vtable.poll)(running.task.0, &mut Context::from_waker(&waker)) };
        mini_context::end_poll();
        drop(inside);
        if poll.is_ready() {
            running.task.complete();
            return (Polled::Ended, lap());
        }
        let took = lap();
        if let Some(took) = took {
            header.times.note(took);
        }
        let polled = match running.has_asked.get() {
            true => running.task.ask(compute_bound_after),
            false => running.task.wait(compute_bound_after),
        };
        (polled, took)
    }

    /// After a poll that was pending and has asked for another poll.
    #[inline(always)]
    fn ask(self, compute_bound_after: u32) -> Polled {
        let header = self.header();
        header.wait.fill_asked(mini_context::notes(), || header.id.get());
        if header.state.finish_yielded() == OnPending::Drop {
            self.drop_future();
            return Polled::Ended;
        }
        let class = header.times.class(compute_bound_after);
        Polled::Asks(self, class)
    }

    /// After a poll that was pending.
    #[inline(always)]
    fn wait(self, compute_bound_after: u32) -> Polled {
        let header = self.header();
        header.wait.fill(mini_context::notes(), false, || header.id.get());
        match header.state.finish_pending() {
            // The task may run elsewhere, and be freed, from here on.
            OnPending::Idle => Polled::Waits,
            OnPending::Requeue if header.state.is_shared() => {
                header.times.note_wake();
                Polled::Asks(self, Class::Woken)
            }
            // An owned task that was woken in its poll woke itself: wakes of other threads are in the inbox.
            OnPending::Requeue => {
                let class = header.times.class(compute_bound_after);
                Polled::Asks(self, class)
            }
            OnPending::Drop => {
                self.drop_future();
                Polled::Ended
            }
        }
    }

    #[cold]
    fn drop_future(self) {
        let is_job = self.seat() == UNREGISTERED;
        let running = Running::new(self);
        // The destructor of another task's output may have spawned this task, which the runtime then refused.
        let dropping = (!is_job).then(|| Dropping::new(running.id()));
        let inside = (current::leave_output(), current::enter_task(&running), dropping);
        let task = &running.task;
        // SAFETY: the task is started and not finished, so the stage is ours (rights table, row 1).
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { (task.header().vtable.cancel)(task.0) };
        drop(inside);
        running.task.complete();
    }

    /// The future is gone and the output in place: hand it over, and give up the runtime's reference.
    #[inline(never)]
    fn complete(self) {
        let header = self.header();
        let runtimes = match header.seat.get() {
            UNREGISTERED | MAIN_SEAT => Task(self.0),
            _ => header.schedule.unregister(&self),
        };
        runtimes.end(Task::drop_output);
    }

    pub(crate) fn seat(&self) -> u32 {
        self.header().seat.get()
    }

    pub fn id(&self) -> Id {
        self.header().id
    }

    /// Returns the name of the task for messages.
    pub fn source(&self) -> super::Source {
        // The task is alive while it is queued: the runtime has the reference, so this is none to give back.
        ManuallyDrop::new(Task(self.0)).source()
    }

    pub(crate) fn who(&self) -> Who {
        Who { id: self.header().id, location: self.header().location }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.header().state.is_shared()
    }

    /// Returns the duration of its last poll, in nanoseconds.
    #[inline]
    pub(crate) fn last_poll(&self) -> u64 {
        self.header().times.last()
    }
}

/// A task of `spawn_blocking`, whose one poll runs a function.
impl Queued {
    /// Runs it on a blocking thread; contains its panics.
    pub(crate) fn serve(self) {
        let (who, shared) = (self.who(), self.header().schedule.arc());
        current::serve(&shared, || {
            for observer in &shared.config.observers {
                observer.job_begins(who);
            }
            let (polled, _) = self.poll_or_drop(u32::MAX, || None);
            debug_assert!(matches!(polled, Polled::Ended), "a job does not wait");
            for observer in &shared.config.observers {
                observer.job_ends(who);
            }
        });
    }
}

impl Job for Queued {
    fn discard(self) {
        self.cancel();
    }

    fn refuse(self) {
        Queued::refuse(self);
    }

    fn origin(&self) -> Origin {
        Origin { id: self.header().id.get(), location: self.header().location }
    }
}

impl Running {
    fn new(task: Queued) -> Self {
        Self { task, has_asked: Cell::new(false) }
    }

    pub(crate) fn id(&self) -> Id {
        self.task.header().id
    }

    /// Whether it is a poll of that task.
    pub(crate) fn polls(&self, task: &Task) -> bool {
        self.is(task.header())
    }

    pub(crate) fn name(&self) -> Option<Arc<str>> {
        // The task is alive while it is polled: its registry has the reference, so this is none to give back.
        ManuallyDrop::new(Task(self.task.0)).name().cloned()
    }

    /// Whether this is the task of `header`.
    pub(super) fn is(&self, header: &Header) -> bool {
        std::ptr::eq(self.task.0.as_ptr(), header)
    }

    /// Asks for another poll of the task after this one.
    fn ask(&self) {
        self.has_asked.set(true);
    }

    /// Whether the waker is this task's own.
    fn is_of(&self, waker: &Waker) -> bool {
        waker.data() == self.task.0.as_ptr().cast_const().cast() && waker::is_of_task(waker)
    }
}

/// Wakes the task that is being polled, at less cost than by its waker: no other thread can have queued it.
pub fn yield_to_others(waker: &Waker) {
    if !ask_if(|task| task.is_of(waker)) {
        waker.wake_by_ref();
    }
}

/// Asks for another poll of the task of `header`, if this thread polls it; says whether it does.
pub(super) fn ask_here(header: &Header) -> bool {
    ask_if(|task| task.is(header))
}

fn ask_if(is_meant: impl FnOnce(&Running) -> bool) -> bool {
    let asked = current::with_task(|task| {
        let is_meant = is_meant(task);
        if is_meant {
            task.ask();
        }
        is_meant
    });
    asked == Some(true)
}
