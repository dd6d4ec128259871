//! The waker of a task: a counted reference, with the task's header as its data.
//!
//! Made by the runner, which lends its own reference for the time of a poll; a clone counts one more. The effect of a
//! wake, by the kind of task and the thread, is here too.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::state::{OnRemote, OnWake};
use super::{Header, Queued, Task, queued};
use crate::scheduler::current;

/// The parts of a waker, for a pointer to a live task.
pub(super) fn raw_waker(ptr: NonNull<Header>) -> RawWaker {
    RawWaker::new(ptr.as_ptr().cast_const().cast(), &WAKER)
}

/// One table for all tasks, so that `will_wake` is a comparison of two pointers.
static WAKER: RawWakerVTable = RawWakerVTable::new(waker_clone, waker_wake, waker_wake_by_ref, waker_drop);

/// To be called before there are tasks.
pub fn tell_table() {
    mini_context::set_waker(mini_context::WakerOf::Task, &WAKER);
}

/// Whether this is the waker of a task.
pub(super) fn is_of_task(waker: &Waker) -> bool {
    std::ptr::eq(waker.vtable(), &WAKER)
}

/// The task behind a waker's data pointer, without taking its reference over.
///
/// # Safety
///
/// `data` is that of a live waker with the table `WAKER`.
unsafe fn borrow_task(data: *const ()) -> ManuallyDrop<Task> {
    // SAFETY: such a waker was made by `raw_waker` from a non-null pointer.
    // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
    ManuallyDrop::new(Task(unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }))
}

/// # Safety
///
/// Called through `WAKER`.
unsafe fn waker_clone(data: *const ()) -> RawWaker {
    // SAFETY: called through `WAKER` by a live waker.
    // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
    let task = unsafe { borrow_task(data) };
    raw_waker(ManuallyDrop::new(Task::clone(&task)).0)
}

/// # Safety
///
/// Called through `WAKER`, once, by a waker that gives up its reference.
unsafe fn waker_wake(data: *const ()) {
    // SAFETY: called through `WAKER` by a live waker.
    // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
    ManuallyDrop::into_inner(unsafe { borrow_task(data) }).wake();
}

/// # Safety
///
/// Called through `WAKER`.
unsafe fn waker_wake_by_ref(data: *const ()) {
    // SAFETY: called through `WAKER` by a live waker.
    // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
    unsafe { borrow_task(data) }.wake_by_ref();
}

/// # Safety
///
/// Called through `WAKER`, once, by a waker that gives up its reference.
unsafe fn waker_drop(data: *const ()) {
    // SAFETY: called through `WAKER` by a live waker, whose reference this is.
    // Test: tests/tests/tasks/tasks.rs `foreign_threads_wake_and_drop_wakers`.
    drop(ManuallyDrop::into_inner(unsafe { borrow_task(data) }));
}

impl Task {
    /// As `wake_by_ref`, but uses up this reference.
    fn wake(self) {
        if self.header().is_owned_here() {
            let task = ManuallyDrop::new(self);
            let header = task.header();
            task.wake_owned(); // first: a task without a waker that is not queued is taken for a lost one
            return header.local.release(&header.refs); // not the last: the runtime has one
        }
        let left = if self.header().state.is_shared() { self.wake_here() } else { Some(self) };
        if let Some(task) = left {
            task.wake_by_ref();
        }
    }

    /// Queues an owned task if it is idle. Only for the holder of the home core.
    #[inline]
    fn wake_owned(&self) {
        let header = self.header();
        if header.state.wake() == OnWake::Enqueue {
            header.times.note_wake();
            header.schedule.push_owned(self.queued());
        }
    }

    /// If the shared task is idle, queues it with the calling worker, and leaves this reference to the worker that
    /// polls it. As soon as it is queued, another thread may poll it, and the task may be gone. Gives the reference
    /// back if the wake is of another kind.
    #[inline]
    fn wake_here(self) -> Option<Self> {
        let mut left = Some(self);
        current::with_held(|held| {
            let is_owing =
                |task: &mut Task| task.header().schedule.is_queued_by(held) && task.header().state.wake_owing();
            if let Some(task) = left.take_if(is_owing) {
                task.header().times.note_wake();
                held.queue_woken(Queued(ManuallyDrop::new(task).0));
            }
        });
        left
    }

    fn wake_by_ref(&self) {
        let header = self.header();
        if header.state.is_shared() {
            // A task that is woken in its own poll asks for another poll.
            if !header.state.is_idle() && queued::ask_here(header) {
                return;
            }
            if header.state.wake() == OnWake::Enqueue {
                header.times.note_wake();
                header.schedule.schedule(self.queued());
            }
        } else if header.schedule.is_held() {
            self.wake_owned();
        } else if header.state.remote_wake() == OnRemote::Post {
            header.schedule.post(self.clone());
        }
    }
}
