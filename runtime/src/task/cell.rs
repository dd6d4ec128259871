//! The one allocation of a task, and the functions that know the type of its future.
//!
//! Called through the [`Vtable`] in the header, by the rules of the rights table in `task.rs`.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{Context, Poll};

use mini_context::contain;

use super::origin::Label;
use super::stage::Stage;
use super::{Header, JoinError, Source};
use crate::task::allocator;

/// Header first, so that a pointer to the cell is a pointer to its header.
#[repr(C)]
struct Cell<F: Future, L> {
    header: Header,
    content: UnsafeCell<Content<F>>,
    label: L,
}

/// The future, then the output; the header's tally says which.
union Content<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, JoinError>>,
}

/// The functions of a task that depend on the type of its future.
pub(super) struct Vtable {
    /// Polls the future; if it is ready (or panicked), replaces it by its output.
    pub(super) poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Replaces the future by the error that says that it was cancelled.
    pub(super) cancel: unsafe fn(NonNull<Header>),
    /// Moves the output into an `Option<Result<F::Output, JoinError>>`, which is `None`.
    pub(super) take_output: unsafe fn(NonNull<Header>, *mut ()),
    /// Drops the output, and returns the error if it was one.
    pub(super) drop_output: unsafe fn(NonNull<Header>) -> Option<JoinError>,
    /// The name of the task.
    pub(super) name: unsafe fn(NonNull<Header>) -> Option<Arc<str>>,
    /// Frees the task.
    pub(super) free: unsafe fn(NonNull<Header>),
}

pub(super) fn vtable<F: Future, L: Label>() -> &'static Vtable {
    &Vtable {
        poll: poll::<F, L>,
        cancel: cancel::<F, L>,
        take_output: take_output::<F, L>,
        drop_output: drop_output::<F, L>,
        name: name::<F, L>,
        free: free::<F, L>,
    }
}

pub(super) fn allocate<F: Future, L: Label>(header: Header, future: F, label: L) -> NonNull<Header> {
    let cell = allocator::allocate::<Cell<F, L>>();
    let content = UnsafeCell::new(Content { future: ManuallyDrop::new(future) });
    // SAFETY: just allocated for this.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { cell.write(Cell { header, content, label }) };
    cell.cast()
}

/// # Safety
///
/// `ptr` came from `allocate::<F, L>`, and the task is alive.
unsafe fn name<F: Future, L: Label>(ptr: NonNull<Header>) -> Option<Arc<str>> {
    // SAFETY: the header is the first field of a live `Cell<F, L>`, whose label is written once, before all this.
    // Test: tests/tests/named.rs `a_name_is_seen_wherever_the_task_is`.
    let cell = unsafe { ptr.cast::<Cell<F, L>>().as_ref() };
    cell.label.name().cloned()
}

/// What the cell of a task holds.
///
/// # Safety
///
/// `ptr` came from `allocate::<F, L>`, and the task is alive.
unsafe fn content<F: Future, L: Label>(ptr: NonNull<Header>) -> *mut Content<F> {
    // SAFETY: the header is the first field of a live `Cell<F, L>`.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let cell = unsafe { ptr.cast::<Cell<F, L>>().as_ref() };
    cell.content.get()
}

/// Where the future is, or was.
///
/// # Safety
///
/// As [`content`].
unsafe fn future<F: Future, L: Label>(ptr: NonNull<Header>) -> *mut F {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let content = unsafe { content::<F, L>(ptr) };
    // SAFETY: the cell is alive; no reference is made.
    // Test: as above.
    let future: *mut ManuallyDrop<F> = unsafe { &raw mut (*content).future };
    future.cast()
}

/// Where the output is, or will be.
///
/// # Safety
///
/// As [`content`].
unsafe fn output<F: Future, L: Label>(ptr: NonNull<Header>) -> *mut Result<F::Output, JoinError> {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let content = unsafe { content::<F, L>(ptr) };
    // SAFETY: the cell is alive; no reference is made.
    // Test: as above.
    let output: *mut ManuallyDrop<Result<F::Output, JoinError>> = unsafe { &raw mut (*content).output };
    output.cast()
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
/// `ptr` came from `allocate::<F, L>`, the task is alive, and the caller has the right to its stage.
unsafe fn poll<F: Future, L: Label>(ptr: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let tally = &unsafe { header(ptr) }.stage;
    assert!(tally.is(Stage::Future), "a task that is done was polled");
    tally.count_poll();
    // SAFETY: the caller's promise.
    // Test: as above.
    let future = unsafe { future::<F, L>(ptr) };
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let guard = DropOnUnwind(future);
        // SAFETY: the stage is the caller's, and a future.
        // Test: as above.
        let future = unsafe { &mut *guard.0 };
        // SAFETY: the future lives in a heap cell and is dropped in place, by `replace_future` or the guard.
        // Test: as above.
        let polled = unsafe { Pin::new_unchecked(future) }.poll(cx);
        std::mem::forget(guard);
        polled
    }));
    match polled {
        Ok(Poll::Pending) => return Poll::Pending,
        // SAFETY: the caller's promise.
        // Test: as above.
        Ok(Poll::Ready(output)) => unsafe { replace_future::<F, L>(ptr, Ok(output)) },
        Err(payload) => {
            // SAFETY: the caller's promise: the task is alive.
            // Test: tests/tests/panics.rs `a_panic_reaches_the_join_handle`.
            let error = unsafe { panicked(ptr, payload) };
            // SAFETY: the caller's promise, and the guard has dropped the future.
            // Test: tests/tests/panics.rs `a_future_that_panics_is_dropped_while_its_panic_unwinds`.
            unsafe { put_output::<F, L>(ptr, Err(error)) };
        }
    }
    Poll::Ready(())
}

/// Drops a future whose poll panics while that panic unwinds, as the locals of a function are dropped: locks that it holds are
/// poisoned, and what looks at [`std::thread::panicking`] sees it. A second panic ends here, not the process.
struct DropOnUnwind<F>(*mut F);

impl<F> Drop for DropOnUnwind<F> {
    fn drop(&mut self) {
        contain(|| {
            // SAFETY: the poll above has ended by its panic, and nobody looks at the future again: the output is put there.
            // Test: tests/tests/panics.rs `a_future_that_panics_is_dropped_while_its_panic_unwinds`.
            unsafe { ptr::drop_in_place(self.0) }
        });
    }
}

/// # Safety
///
/// As [`poll`]; the stage is a future.
unsafe fn cancel<F: Future, L: Label>(ptr: NonNull<Header>) {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/cancel.rs `abort_drops_an_idle_task_without_a_poll`.
    let error = unsafe { cancelled(ptr) };
    // SAFETY: the caller's promise.
    // Test: as above.
    unsafe { replace_future::<F, L>(ptr, Err(error)) };
}

/// What an error says about the task.
///
/// # Safety
///
/// The task is alive.
unsafe fn source(ptr: NonNull<Header>) -> Source {
    // SAFETY: the caller's promise.
    // Test: tests/tests/cancel.rs `abort_drops_an_idle_task_without_a_poll`.
    let header = unsafe { header(ptr) };
    // SAFETY: as above, and the table is that of this task.
    // Test: tests/tests/named.rs `a_name_is_seen_wherever_the_task_is`.
    let name = unsafe { (header.vtable.name)(ptr) };
    Source { id: header.id, location: header.location, name }
}

/// # Safety
///
/// The task is alive.
#[cold]
unsafe fn cancelled(ptr: NonNull<Header>) -> JoinError {
    // SAFETY: the caller's promise.
    // Test: tests/tests/cancel.rs `abort_drops_an_idle_task_without_a_poll`.
    JoinError::cancelled(unsafe { source(ptr) })
}

/// Drops the future in place and puts the output there; a panic of the destructor becomes the output.
///
/// # Safety
///
/// As [`poll`]; the stage is a future.
unsafe fn replace_future<F: Future, L: Label>(ptr: NonNull<Header>, result: Result<F::Output, JoinError>) {
    // SAFETY: the caller's promise.
    // Test: tests/tests/panics.rs `a_panicking_destructor_reaches_the_join_handle`.
    let future = unsafe { future::<F, L>(ptr) };
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the stage is a future, which nobody looks at afterwards: it is overwritten below.
        // Test: as above.
        unsafe { ptr::drop_in_place(future) }
    }));
    let result = match dropped {
        Ok(()) => result,
        Err(payload) => {
            // A second panic, of the output's destructor, has nowhere left to go.
            contain(|| drop(result));
            // SAFETY: the caller's promise: the task is alive.
            // Test: as above.
            Err(unsafe { panicked(ptr, payload) })
        }
    };
    // SAFETY: the caller's promise, and the future has been dropped, as far as it could be.
    // Test: as above.
    unsafe { put_output::<F, L>(ptr, result) };
}

/// Puts the output in the place of the future, which has been dropped.
///
/// # Safety
///
/// As [`poll`]; the stage is a future.
unsafe fn put_output<F: Future, L: Label>(ptr: NonNull<Header>, result: Result<F::Output, JoinError>) {
    // SAFETY: the caller's promise.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let output = unsafe { output::<F, L>(ptr) };
    // SAFETY: the caller's promise: what stood there is gone.
    // Test: as above.
    unsafe { output.write(result) };
    // SAFETY: the caller's promise: the task is alive.
    // Test: as above.
    unsafe { header(ptr) }.stage.set_stage(Stage::Output);
}

/// # Safety
///
/// The task is alive.
#[cold]
unsafe fn panicked(ptr: NonNull<Header>, payload: Box<dyn Any + Send>) -> JoinError {
    // SAFETY: the caller's promise.
    // Test: tests/tests/panics.rs `a_panic_reaches_the_join_handle`.
    JoinError::panicked(unsafe { source(ptr) }, payload)
}

/// Moves the output out of the cell.
///
/// # Safety
///
/// As [`poll`]; the stage is an output.
unsafe fn take<F: Future, L: Label>(ptr: NonNull<Header>) -> Result<F::Output, JoinError> {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { header(ptr) }.stage.set_stage(Stage::Empty);
    // SAFETY: the caller's promise.
    // Test: as above.
    let output = unsafe { output::<F, L>(ptr) };
    // SAFETY: the stage is the caller's, was an output, and is empty from now on.
    // Test: as above.
    unsafe { output.read() }
}

/// # Safety
///
/// As [`poll`]; `out` points to an `Option<Result<F::Output, JoinError>>`, which is `None`.
unsafe fn take_output<F: Future, L: Label>(ptr: NonNull<Header>, out: *mut ()) {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
    let tally = &unsafe { header(ptr) }.stage;
    let output = if tally.is(Stage::Output) {
        // SAFETY: the caller's promise, and the stage is an output.
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { take::<F, L>(ptr) }
    } else if tally.is(Stage::Future) {
        // That of an abandoned task, which must stay where it is.
        // SAFETY: the caller's promise: the task is alive.
        // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
        Err(unsafe { cancelled(ptr) })
    } else {
        return;
    };
    // SAFETY: the caller's promise about `out`; a `None` has nothing to drop.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { out.cast::<Option<Result<F::Output, JoinError>>>().write(Some(output)) };
}

/// # Safety
///
/// As [`poll`].
unsafe fn drop_output<F: Future, L: Label>(ptr: NonNull<Header>) -> Option<JoinError> {
    // Nothing of an abandoned task, whose future must stay where it is.
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    if !unsafe { header(ptr) }.stage.is(Stage::Output) {
        return None;
    }
    // SAFETY: the caller's promise, and the stage is an output.
    // Test: as above.
    match unsafe { take::<F, L>(ptr) } {
        Err(error) => Some(error),
        Ok(output) => {
            let payload = catch_unwind(AssertUnwindSafe(|| drop(output))).err()?;
            // SAFETY: the caller's promise: the task is alive.
            // Test: tests/tests/panics.rs `a_panicking_output_destructor_is_reported`.
            Some(unsafe { panicked(ptr, payload) })
        }
    }
}

/// # Safety
///
/// As [`poll`], and nobody refers to the task any more.
unsafe fn free<F: Future, L: Label>(ptr: NonNull<Header>) {
    // SAFETY: the caller's promise.
    // Test: tests/tests/named.rs `a_name_is_dropped_with_its_task`.
    unsafe { drop_label::<F, L>(ptr) };
    // SAFETY: as above.
    // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`.
    let tally = &unsafe { header(ptr) }.stage;
    if tally.is(Stage::Future) {
        // SAFETY: as above.
        // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
        return unsafe { free_around_future(ptr) };
    }
    // The handle, or in its place the runner, has taken the output (refcount.rs).
    debug_assert!(tally.is(Stage::Empty), "an output is lost");
    // The waiter was taken by who woke it, or by the handle.
    // SAFETY: the caller's promise: the task is alive.
    // Test: as above.
    let header = unsafe { header(ptr) };
    // SAFETY: the field is not used again, as the memory is given back.
    // Test: as above.
    let home = unsafe { ptr::read(&header.schedule) };
    // SAFETY: `allocate` got it there, and all that has a destructor is out of it.
    // Test: as above.
    unsafe { allocator::free(ptr.cast::<Cell<F, L>>(), home) };
}

/// # Safety
///
/// As [`free`], once; the label is not looked at afterwards.
unsafe fn drop_label<F: Future, L: Label>(ptr: NonNull<Header>) {
    let cell = ptr.cast::<Cell<F, L>>().as_ptr();
    // SAFETY: a pointer into a live `Cell<F, L>`; no reference is made.
    // Test: tests/tests/named.rs `a_name_is_dropped_with_its_task`.
    let label = unsafe { &raw mut (*cell).label };
    // SAFETY: written by `allocate`, and dropped here alone.
    // Test: as above.
    unsafe { ptr::drop_in_place(label) };
}

/// Gives up what an abandoned task has beside its future, which must stay where it is: the runtime.
///
/// # Safety
///
/// As [`free`].
#[cold]
unsafe fn free_around_future(ptr: NonNull<Header>) {
    // SAFETY: nobody else refers to the task any more.
    // Test: tests/tests/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
    let header = unsafe { &mut *ptr.as_ptr() };
    // SAFETY: the field is not used again, since the allocation is leaked.
    // Test: as above.
    unsafe { ptr::drop_in_place(&mut header.schedule) };
}
