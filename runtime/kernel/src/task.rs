//! Tasks: one allocation holds header, future (later output) and name.
//!
//! Called by the spawning functions, by every waker, and by the worker that polls a queue entry
//! (`Queued::poll_or_drop`).
//!
//! Three handles point to a task. A `Task` counts a reference. A `Queued` is a place in a queue: it exists while
//! the state says so and needs no count, because the registry keeps a task until it is done (see `state.rs`). A
//! `JoinHandle` is the user's.
//!
//! Field rights of the cell:
//!
//! | field | who |
//! |---|---|
//! | `stage` | the thread that has started it, until it is idle or queued again (`state.rs`); once `refs` says DONE, the join handle, or the runner if that is gone |
//! | `waiter` | see `refcount.rs` |
//! | `seat` | the registry's owner or lock holder, before the task is found there; from then on any thread that finds it there reads |
//! | `local` | the owner (`refcount.rs`): the holder of the home core, or the thread that has started a shared task; any thread reads |
//! | `stage` (count), `wait`, `times` | the runner writes; `times` also by a waker that queues the task; any thread reads |
//!
//! Rejected: a header without the spawn location, id and wait slot (40 bytes less, and nothing to print when a program
//! hangs); one reference count per queue entry (two locked instructions per wake).

pub mod allocator;
pub(crate) mod cache;
mod cell;
pub mod error;
mod fallible;
mod hidden;
mod id;
mod join;
pub mod main;
mod origin;
pub mod owned;
mod queued;
pub mod refcount;
pub mod schedule;
mod shared_join;
mod sight;
pub mod slab;
mod stage;
mod state;
mod times;
mod wait;
mod waker;

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

pub use error::{JoinError, Source};
pub use fallible::is_err;
pub use hidden::{Hidden, Key, Value, hide, list};
pub use id::Id;
pub use join::{AbortHandle, Cancel, JoinHandle};
pub use origin::Origin;
pub use queued::{Class, Polled, Queued, Running, yield_to_others};
pub use shared_join::SharedJoinHandle;
pub use sight::{Besides, Place, Sight, Standing};
pub use wait::{Beside, LastWait, SeenWait, WaitSlot, beside};
pub use waker::tell_table;

use mini_context::{WakerSlot, contain};

use crate::scheduler::current;
use crate::scheduler::shared::Shared;
use crate::task::schedule::Schedule;
use cell::{Unseen, Vtable};
use owned::Seated;
use refcount::{LocalCount, OnComplete, OnRelease, RefCount};
use stage::StageWord;
use state::{OnRemote, OnWake, State};
use times::Times;

/// What all tasks have, whatever their future.
pub struct Header {
    vtable: &'static Vtable,
    schedule: Schedule,
    refs: RefCount,
    local: LocalCount,
    state: State,
    id: Id,
    location: &'static Location<'static>,
    waiter: WakerSlot,
    wait: WaitSlot,
    seat: Cell<u32>,
    stage: StageWord,
    times: Times,
}

#[cfg(not(any(loom, shuttle)))] // whose atomics are larger
const _: () = assert!(size_of::<Header>() <= 88, "an idle task costs at most 88 bytes beside its future");

/// The place where a new task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Runs on its home core, which the caller holds; the caller queues it.
    Owned,
    /// Runs on any worker; the caller queues it.
    Shared,
    /// Runs on its home core; the caller posts it to the inbox.
    Posted,
    /// Runs on any worker; the caller, which holds no core, leaves it in the injector.
    Injected,
}

/// The seat of a task that is in no registry; its one entry in a queue or inbox then stands for the runtime's
/// reference.
const UNREGISTERED: u32 = u32::MAX;

/// A counted reference to a task.
pub struct Task(NonNull<Header>);

// SAFETY: a `Task` reaches the atomic words, the immutable fields, and the cells only under the rules of the rights
// table; the future and the output themselves are touched by the thread that the state admits (owned tasks: the holder
// of the core). Models: state.rs, refcount.rs; test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
#[allow(unsafe_code)]
unsafe impl Send for Task {}
// SAFETY: as above; every method takes `&self` and follows the same rules.
#[allow(unsafe_code)]
unsafe impl Sync for Task {}
/// Creates a task with two references: one for the runtime, one in the join handle.
///
/// Except with [`Start::Owned`] the future must be `Send`; the callers' bounds ensure it.
#[inline]
pub(crate) fn new<F, O>(future: F, schedule: Schedule, start: Start, origin: O) -> (Task, JoinHandle<F::Output>)
where
    O: Origin,
    F: Future + 'static,
    F::Output: 'static,
{
    let state = match start {
        Start::Shared | Start::Injected => State::shared(),
        Start::Owned => State::owned(),
        Start::Posted => State::posted(),
    };
    let id = schedule.next_id();
    create(future, schedule, state, id, origin)
}

fn create<F, O>(future: F, schedule: Schedule, state: State, id: Id, origin: O) -> (Task, JoinHandle<F::Output>)
where
    O: Origin,
    F: Future + 'static,
    F::Output: 'static,
{
    let (location, label) = origin.split();
    let header = Header {
        vtable: cell::vtable::<F, O::Label>(),
        schedule,
        refs: RefCount::new(),
        local: LocalCount::new(),
        state,
        id,
        location,
        waiter: WakerSlot::new(),
        wait: WaitSlot::new(),
        seat: Cell::new(UNREGISTERED),
        stage: StageWord::new(),
        times: Times::new(),
    };
    let ptr = cell::allocate(header, future, label);
    (Task(ptr), JoinHandle::new(Task(ptr)))
}

impl Seated for Task {
    #[inline]
    fn set_seat(&self, number: u32) {
        self.header().seat.set(number);
    }

    #[inline]
    fn seat(&self) -> Option<u32> {
        Some(self.header().seat.get()).filter(|&number| number != UNREGISTERED)
    }

    #[inline]
    fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).0.cast()
    }

    #[allow(unsafe_code)]
    #[inline]
    unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self(raw.cast())
    }
}

impl Task {
    #[allow(unsafe_code)]
    fn header(&self) -> &Header {
        // SAFETY: a `Task` holds a reference count, so the header is alive.
        // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
        unsafe { self.0.as_ref() }
    }

    /// The runtime that the task belongs to.
    pub fn runtime(&self) -> Arc<Shared> {
        self.header().schedule.arc()
    }

    /// Whether both refer to the same task.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Turns the runtime's reference into the queue entry of a task that is not registered.
    pub(crate) fn into_queued(self) -> Queued {
        debug_assert_eq!(self.header().seat.get(), UNREGISTERED);
        Queued(ManuallyDrop::new(self).0)
    }

    /// The queue entry of a registered task: the registry keeps it alive until it has run to its end.
    ///
    /// The caller has been told to enqueue it.
    pub(crate) fn queued(&self) -> Queued {
        Queued(self.0)
    }

    /// Whether the output has been handed over.
    pub fn is_finished(&self) -> bool {
        self.header().refs.is_done()
    }

    pub fn id(&self) -> Id {
        self.header().id
    }

    pub fn location(&self) -> &'static Location<'static> {
        self.header().location
    }

    #[allow(unsafe_code)]
    pub fn name(&self) -> Option<&Arc<str>> {
        let vtable = self.header().vtable;
        if !vtable.is_labelled {
            return None;
        }
        // SAFETY: the table is the task's own. Test: tests/tests/tasks/named.rs `a_name_is_seen_wherever_the_task_is`.
        unsafe { (vtable.name)(self) }
    }

    /// Adds to the number of abort handles, if the task counts them, and returns it.
    #[allow(unsafe_code)]
    fn aborts(&self, change: i32) -> i32 {
        let vtable = self.header().vtable;
        if !vtable.is_labelled {
            return 0;
        }
        // SAFETY: a `Task` holds a reference count, so the task is alive, and the table is its own.
        // Test: tests/tests/dumps/dump.rs `a_task_is_lost_when_its_last_waker_goes_and_not_before`.
        unsafe { (vtable.aborts)(self.0, change) }
    }

    /// What its last poll was pending for.
    pub fn last_wait(&self) -> Option<wait::LastWait> {
        self.header().wait.get(self.id().get())
    }

    /// How messages name the task.
    pub fn source(&self) -> Source {
        Source { id: self.id(), location: self.location(), name: self.name().cloned() }
    }

    /// Takes over what other threads asked of an owned task that came through the inbox.
    ///
    /// Only for the holder of the home core, or after that core was closed.
    pub(crate) fn take_remote(&self) -> Option<Queued> {
        let header = self.header();
        if header.state.take_remote() != OnWake::Enqueue {
            return None;
        }
        header.times.note_wake();
        Some(self.queued())
    }

    /// Asks for cancellation, and hands out the queue entry if the task was idle.
    ///
    /// For an owned task only the holder of the home core may call this.
    pub(crate) fn cancel_here(&self) -> Option<Queued> {
        (self.header().state.cancel() == OnWake::Enqueue).then(|| self.queued())
    }

    /// Asks for cancellation from any thread.
    pub fn abort(&self) {
        let header = self.header();
        if header.state.is_shared() {
            if header.state.cancel() == OnWake::Enqueue {
                header.schedule.schedule(self.queued());
            }
        } else if header.schedule.is_held() && self.seat().is_some() {
            // Not for a task that is still in the inbox: the owner queues it when it registers it.
            if header.state.cancel() == OnWake::Enqueue {
                header.schedule.push_owned(self.queued());
            }
        } else if header.state.remote_cancel() == OnRemote::Post {
            header.schedule.post(self.clone());
        }
    }

    /// Gives up a task that may not be dropped on this thread: its future is leaked, its joiner told that it is gone.
    /// The last reference frees what else the task has (`free` in `cell.rs`).
    ///
    /// Only for the holder of the home core, with the task in no queue.
    pub(crate) fn abandon(self) {
        self.end(|_| ());
    }

    /// The output is in place, or never will be: tells the joiner, and gives back the runtime's reference, which `self`
    /// is. If there is no handle, `drop_output` handles the output.
    #[allow(unsafe_code)]
    fn end(self, drop_output: impl FnOnce(&Self)) {
        let task = ManuallyDrop::new(self);
        let header = task.header();
        header.state.finish_done();
        match header.refs.complete(&header.local, || header.waiter.look()) {
            OnComplete::Nothing => return,
            // SAFETY: `complete` says that it is ours (refcount.rs).
            // Test: refcount/models.rs, `the_output_has_one_owner_and_a_waiter_is_not_forgotten`.
            OnComplete::Wake(waiter) => return wake(unsafe { waiter.into_waker() }),
            // SAFETY: as above, and DONE is set, so nobody writes there any more.
            // Test: as above.
            OnComplete::LookAndWake => wake(unsafe { header.waiter.look().into_waker() }),
            OnComplete::DropOutput => drop_output(&task),
        }
        ManuallyDrop::into_inner(task).release_ended();
    }

    /// Drops an output that no handle will ask for. An error or a panic is reported.
    #[allow(unsafe_code)]
    fn drop_output(&self) {
        let header = self.header();
        let inside = current::enter_output(self);
        // SAFETY: `refs` gave the output to the caller (rights table, row 1).
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        let error = unsafe { (header.vtable.drop_output)(self.0) };
        drop(inside);
        let error = match error {
            None => return,
            Some(Unseen::Failed(source, text)) => return header.schedule.extension().unseen_error(source, text),
            Some(Unseen::Join(error)) => error,
        };
        if error.is_panic() {
            header.schedule.extension().unseen_panic(&error);
        }
        let _inside = current::enter_output(self);
        contain(|| drop(error));
    }

    /// Drops the reference of a caller that knows that the task has ended: from then on only the word counts
    /// (`refcount.rs`).
    #[allow(unsafe_code)]
    #[inline]
    fn release_ended(self) {
        debug_assert!(self.header().refs.is_done());
        // SAFETY: this reference is not used again.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { release(ManuallyDrop::new(self).0) }
    }
}

impl Header {
    /// Returns `true` if this thread counts references in the plain cell (`refcount.rs`): it polls a shared task, or
    /// owns the task.
    #[inline]
    fn is_counted_here(&self) -> bool {
        if self.state.is_shared() {
            return current::with_task(|task| task.is(self)) == Some(true);
        }
        self.is_owned_here()
    }

    /// Returns `true` if this is an owned task whose core this thread holds, which is registered (so that no other
    /// thread can have it) and has not ended.
    #[inline]
    fn is_owned_here(&self) -> bool {
        !self.state.is_shared() && self.schedule.is_held() && self.seat.get() != UNREGISTERED && !self.state.is_done()
    }
}

impl Clone for Task {
    #[inline]
    fn clone(&self) -> Self {
        let header = self.header();
        if header.is_counted_here() {
            header.local.retain(&header.refs)
        } else {
            header.refs.retain()
        }
        Self(self.0)
    }
}

impl Drop for Task {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        let header = self.header();
        if header.is_counted_here() {
            header.local.release(&header.refs);
        } else {
            // SAFETY: this reference is not used again.
            // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
            unsafe { release(self.0) }
        }
    }
}

/// Gives back a reference that is counted in the word, and frees the task if it was the last.
///
/// # Safety
///
/// The reference is the caller's, and not used again.
#[allow(unsafe_code)]
#[inline]
unsafe fn release(ptr: NonNull<Header>) {
    // SAFETY: the caller's reference keeps the task alive.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    let header = unsafe { ptr.as_ref() };
    if header.refs.release() == OnRelease::Free {
        let free = header.vtable.free;
        // SAFETY: that was the last reference, and `free` belongs to this allocation.
        // Test: as above.
        unsafe { free(ptr) }
    }
}

/// Wakes the joiner; a panic there must not end the worker.
fn wake(waiter: Waker) {
    contain(|| waiter.wake());
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.header();
        let mut out = f.debug_struct("Task");
        out.field("id", &header.id.get());
        if let Some(name) = self.name() {
            out.field("name", &name);
        }
        out.field("spawned_at", &format_args!("{}", header.location));
        out.field("polls", &header.stage.polls()).field("finished", &header.refs.is_done());
        if let Some(wait) = header.wait.get(header.id.get()) {
            out.field("last_wait", &format_args!("{wait}"));
        }
        out.finish()
    }
}
