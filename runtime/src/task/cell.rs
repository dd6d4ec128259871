//! The one allocation of a task, and the functions that know the type of its future.
//!
//! Called through the [`Vtable`] in the header, by the rules of the rights table in `task.rs`.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};

use super::{Header, JoinError};
use crate::unwind::contain;

/// Header first, so that a pointer to the cell is a pointer to its header.
#[repr(C)]
struct Cell<F: Future> {
    header: Header,
    stage: UnsafeCell<Stage<F>>,
}

enum Stage<F: Future> {
    Future(F),
    Output(Result<F::Output, JoinError>),
    Empty,
}

/// The functions of a task that depend on the type of its future.
pub(super) struct Vtable {
    /// Polls the future; if it is ready (or panicked), replaces it by its output.
    pub(super) poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Replaces the future by the error that says that it was cancelled.
    pub(super) cancel: unsafe fn(NonNull<Header>),
    /// Moves the output into an `Option<Result<F::Output, JoinError>>`.
    pub(super) take_output: unsafe fn(NonNull<Header>, *mut ()),
    /// Drops the output, and returns the error if it was one.
    pub(super) drop_output: unsafe fn(NonNull<Header>) -> Option<JoinError>,
    /// Frees the task.
    pub(super) free: unsafe fn(NonNull<Header>),
}

pub(super) fn vtable<F: Future>() -> &'static Vtable {
    &Vtable {
        poll: poll::<F>,
        cancel: cancel::<F>,
        take_output: take_output::<F>,
        drop_output: drop_output::<F>,
        free: free::<F>,
    }
}

pub(super) fn allocate<F: Future>(header: Header, future: F) -> NonNull<Header> {
    let cell = Box::new(Cell { header, stage: UnsafeCell::new(Stage::Future(future)) });
    NonNull::from(Box::leak(cell)).cast()
}

/// The stage of a task.
///
/// # Safety
///
/// `ptr` came from `allocate::<F>`, the task is alive, and the caller has the right to its stage for `'a`.
unsafe fn stage<'a, F: Future>(ptr: NonNull<Header>) -> &'a mut Stage<F> {
    // SAFETY: the header is the first field of a live `Cell<F>`.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let cell = unsafe { ptr.cast::<Cell<F>>().as_ref() };
    // SAFETY: the caller has the right to the stage, so nobody else refers to it.
    // Test: as above.
    unsafe { &mut *cell.stage.get() }
}

/// The header of a task.
///
/// # Safety
///
/// The task is alive for `'a`.
unsafe fn header<'a>(ptr: NonNull<Header>) -> &'a Header {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { ptr.as_ref() }
}

/// # Safety
///
/// As [`stage`]; the stage is a future.
unsafe fn poll<F: Future>(ptr: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let Stage::Future(future) = (unsafe { stage::<F>(ptr) }) else {
        unreachable!("a task that is done was polled");
    };
    // SAFETY: the future lives in a heap cell and is dropped in place by `replace_future`.
    // Test: as above.
    let future = unsafe { Pin::new_unchecked(future) };
    let output = match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        // SAFETY: the caller's promise: the task is alive.
        // Test: tests/tests/panics.rs `a_panic_reaches_the_join_handle`.
        Err(payload) => Err(unsafe { panicked(ptr, payload) }),
    };
    // SAFETY: the caller's promise.
    // Test: as above.
    unsafe { replace_future::<F>(ptr, output) };
    Poll::Ready(())
}

/// # Safety
///
/// As [`stage`]; the stage is a future.
unsafe fn cancel<F: Future>(ptr: NonNull<Header>) {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/cancel.rs `abort_drops_an_idle_task_without_a_poll`.
    let error = unsafe { cancelled(ptr) };
    // SAFETY: the caller's promise.
    // Test: as above.
    unsafe { replace_future::<F>(ptr, Err(error)) };
}

/// # Safety
///
/// The task is alive.
unsafe fn cancelled(ptr: NonNull<Header>) -> JoinError {
    // SAFETY: the caller's promise.
    // Test: tests/tests/cancel.rs `abort_drops_an_idle_task_without_a_poll`.
    let header = unsafe { header(ptr) };
    JoinError::cancelled(header.id, header.location)
}

/// Drops the future in place and puts the output there; a panic of the destructor becomes the output.
///
/// # Safety
///
/// As [`stage`]; the stage is a future.
unsafe fn replace_future<F: Future>(ptr: NonNull<Header>, output: Result<F::Output, JoinError>) {
    // SAFETY: the caller's promise.
    // Test: tests/tests/panics.rs `a_panicking_destructor_reaches_the_join_handle`.
    let stage: *mut Stage<F> = unsafe { stage::<F>(ptr) };
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the stage is valid, and overwritten below before anybody looks at it.
        // Test: as above.
        unsafe { ptr::drop_in_place(stage) }
    }));
    let output = match dropped {
        Ok(()) => output,
        Err(payload) => {
            // A second panic, of the output's destructor, has nowhere left to go.
            contain(|| drop(output));
            // SAFETY: the caller's promise: the task is alive.
            // Test: as above.
            Err(unsafe { panicked(ptr, payload) })
        }
    };
    // SAFETY: what stood there has been dropped, as far as it could be.
    // Test: as above.
    unsafe { stage.write(Stage::Output(output)) };
}

/// # Safety
///
/// The task is alive.
unsafe fn panicked(ptr: NonNull<Header>, payload: Box<dyn Any + Send>) -> JoinError {
    // SAFETY: the caller's promise.
    // Test: tests/tests/panics.rs `a_panic_reaches_the_join_handle`.
    let header = unsafe { header(ptr) };
    JoinError::panicked(header.id, header.location, payload)
}

/// # Safety
///
/// As [`stage`]; `out` points to an `Option<Result<F::Output, JoinError>>`.
unsafe fn take_output<F: Future>(ptr: NonNull<Header>, out: *mut ()) {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let stage = unsafe { stage::<F>(ptr) };
    let output = match stage {
        Stage::Output(_) => match std::mem::replace(stage, Stage::Empty) {
            Stage::Output(output) => output,
            _ => unreachable!("it was an output just now"),
        },
        // An abandoned task: its future must stay where it is.
        // SAFETY: the caller's promise: the task is alive.
        // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
        Stage::Future(_) => Err(unsafe { cancelled(ptr) }),
        Stage::Empty => return,
    };
    // SAFETY: the caller's promise about `out`.
    // Test: as above.
    unsafe { *out.cast::<Option<Result<F::Output, JoinError>>>() = Some(output) };
}

/// # Safety
///
/// As [`stage`].
unsafe fn drop_output<F: Future>(ptr: NonNull<Header>) -> Option<JoinError> {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let stage = unsafe { stage::<F>(ptr) };
    if let Stage::Future(_) = stage {
        return None; // an abandoned task: its future must stay where it is
    }
    match std::mem::replace(stage, Stage::Empty) {
        Stage::Output(Err(error)) => Some(error),
        other => {
            let payload = catch_unwind(AssertUnwindSafe(|| drop(other))).err()?;
            // SAFETY: the caller's promise: the task is alive.
            // Test: tests/tests/panics.rs `a_panicking_output_destructor_is_reported`.
            Some(unsafe { panicked(ptr, payload) })
        }
    }
}

/// # Safety
///
/// As [`stage`], and nobody refers to the task any more.
unsafe fn free<F: Future>(ptr: NonNull<Header>) {
    // SAFETY: the caller's promise.
    // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
    if let Stage::Future(_) = unsafe { stage::<F>(ptr) } {
        // SAFETY: as above.
        // Test: as above.
        return unsafe { free_around_future(ptr) };
    }
    // SAFETY: `allocate` leaked this box.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    drop(unsafe { Box::from_raw(ptr.cast::<Cell<F>>().as_ptr()) });
}

/// Gives up what an abandoned task has beside its future, which must stay where it is: the runtime, and the waiter.
///
/// # Safety
///
/// As [`free`].
unsafe fn free_around_future(ptr: NonNull<Header>) {
    // SAFETY: nobody else refers to the task any more.
    // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
    let header = unsafe { &mut *ptr.as_ptr() };
    // SAFETY: the field is not used again, since the allocation is leaked.
    // Test: as above.
    unsafe { ptr::drop_in_place(&mut header.waiter) };
    // SAFETY: as above.
    // Test: as above.
    unsafe { ptr::drop_in_place(&mut header.home) };
}
