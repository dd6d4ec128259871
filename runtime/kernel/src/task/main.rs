//! The future of a `block_on` as an owned task of the core on which the calling thread works.
//!
//! Header, state, waker and queue entry are those of any task; only the future stays in the caller's frame, behind a
//! pointer. The task is in no registry: it does not count as alive, and no end of a core cancels it. The caller does
//! so, before its frame goes.
//!
//! Rejected: a kind of entry, of state and of waker of its own (300 lines that repeat those of a task).

#![allow(unsafe_code)]

use std::cell::Cell;
use std::future::Future;
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::owned::Seated;
use super::state::State;
use super::{Class, Id, JoinError, Queued, create};
use crate::primitives::lock;
use crate::scheduler::core::Core;

/// The future given to `block_on`. Called with a waker it polls the future and says whether that is ready; called
/// without one it drops the future.
///
/// All generic code is behind it, so what uses it is compiled once, with the runtime.
pub(crate) type MainFuture<'a> = dyn FnMut(Option<&Waker>) -> bool + 'a;

/// What the task has in place of the future.
struct Main {
    future: NonNull<MainFuture<'static>>,
    /// It is ready, or has panicked.
    is_done: NonNull<Cell<bool>>,
}

impl Future for Main {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `run_main` does not return before the task has ended or is cancelled, and then it is not polled. The
        // task is polled on this thread alone, which does not use the future otherwise until then.
        // Test: tests/tests/runtimes/runtimes.rs `a_waker_of_block_on_outlives_it`.
        let future = unsafe { self.future.as_mut() };
        // SAFETY: as above.
        // Test: as above.
        let is_done = unsafe { self.is_done.as_ref() };
        is_done.set(true); // if it panics
        is_done.set(future(Some(cx.waker())));
        if is_done.get() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Calls `work` while `future` is a task of `core`, which this thread holds: queued once, and then polled as it is
/// woken. `work` is told when the task has ended. If the future has panicked, the panic goes on here.
pub(crate) fn run_main<R>(
    core: &Core,
    id: Id,
    location: &'static Location<'static>,
    future: &mut MainFuture<'_>,
    work: impl FnOnce(&Cell<bool>) -> R,
) -> R {
    let is_done = Cell::new(false);
    // SAFETY: the lifetime is that of the frame of the caller; see `Main::poll`.
    // Test: tests/tests/runtimes/runtimes.rs `a_waker_of_block_on_outlives_it`.
    let future = unsafe { std::mem::transmute::<&mut MainFuture<'_>, &mut MainFuture<'static>>(future) };
    let main = Main { future: NonNull::from(future), is_done: NonNull::from(&is_done) };
    let (task, handle) = create(main, core.schedule(), State::owned(), id, location);
    let entry = task.into_queued();
    handle.task().set_seat(MAIN_SEAT);
    let shown = Shown(core);
    *lock(&core.main) = Some(handle);
    core.push_entry(entry, Class::Woken);
    let result = work(&is_done);
    if let Some(Poll::Ready(Err(error))) = shown.end()
        && error.is_panic()
    {
        resume_unwind(error.into_panic());
    }
    result
}

/// The seat of a main task, which is in no registry.
pub(super) const MAIN_SEAT: u32 = super::UNREGISTERED - 1;

impl Queued {
    /// Whether this is the future of a `block_on`.
    pub fn is_main(&self) -> bool {
        self.seat() == MAIN_SEAT
    }
}

/// Ends the task, however the work ends.
struct Shown<'a>(&'a Core);

impl Shown<'_> {
    /// Takes the handle back, whose output is there unless the task was cancelled.
    fn end(&self) -> Option<Poll<Result<(), JoinError>>> {
        let mut handle = match self.0.shared().process.is_current() {
            true => lock(&self.0.main).take()?,
            // A thread of the parent may have had the lock. Nothing is polled here anyway.
            false => self.0.main.try_lock().ok()?.take()?,
        };
        if !handle.is_finished()
            && let Some(entry) = handle.task().cancel_here().or_else(|| self.0.take_main())
        {
            entry.cancel();
        }
        Some(handle.poll_with(Waker::noop()))
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
