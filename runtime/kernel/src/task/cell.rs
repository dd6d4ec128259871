//! The one allocation of a task, and the functions that know the type of its future.
//!
//! Called through the [`Vtable`] in the header, by the rules of the rights table in `task.rs`.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{Context, Poll};

use mini_context::contain;

use super::fallible::is_err;
use super::origin::Label;
use super::stage::Stage;
use super::{Header, JoinError, Source, Task};
use crate::task::allocator;

/// What was wrong with a task whose output nobody asks for.
pub(super) enum Unseen {
    /// There is no output.
    Join(JoinError),
    /// The output is an error.
    Failed(Source, String),
}

/// Header first, so that a pointer to the cell is a pointer to its header.
#[repr(C)]
struct Cell<F: Future, L> {
    header: Header,
    content: UnsafeCell<Content<F>>,
    label: L,
}

/// The future, then the output; the header's stage says which. Both are at the union's own address.
#[repr(C)]
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
    /// Drops the output, and returns what was wrong.
    pub(super) drop_output: unsafe fn(NonNull<Header>) -> Option<Unseen>,
    /// Whether the two functions below have anything to tell.
    pub(super) is_labelled: bool,
    /// The name of the task.
    pub(super) name: for<'a> unsafe fn(&'a Task) -> Option<&'a Arc<str>>,
    /// Adds to the number of abort handles, if that is counted, and returns it.
    pub(super) aborts: unsafe fn(NonNull<Header>, i32) -> i32,
    /// Frees the task.
    pub(super) free: unsafe fn(NonNull<Header>),
}

pub(super) fn vtable<F: Future<Output: 'static> + 'static, L: Label>() -> &'static Vtable {
    &Vtable {
        poll: poll::<F, L>,
        cancel: cancel::<F, L>,
        take_output: take_output::<F, L>,
        drop_output: drop_output::<F, L>,
        is_labelled: size_of::<L>() > 0,
        name: name::<F, L>,
        aborts: aborts::<F, L>,
        free: free::<F, L>,
    }
}

pub(super) fn allocate<F: Future, L: Label>(header: Header, future: F, label: L) -> NonNull<Header> {
    let cell = allocator::allocate::<Cell<F, L>>();
    let content = UnsafeCell::new(Content { future: ManuallyDrop::new(future) });
    // SAFETY: just allocated for this.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { cell.write(Cell { header, content, label }) };
    cell.cast()
}

/// What the pointer of a task points to.
///
/// # Safety
///
/// `ptr` came from `allocate::<F, L>`, and the task is alive for `'a`.
unsafe fn cell<'a, F: Future, L: Label>(ptr: NonNull<Header>) -> &'a Cell<F, L> {
    // SAFETY: the header is the first field of a live `Cell<F, L>`; what changes in that is in cells and atomics.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { ptr.cast().as_ref() }
}

impl<F: Future, L: Label> Cell<F, L> {
    /// Where the future is, or was.
    fn future(&self) -> *mut F {
        self.content.get().cast()
    }

    /// Where the output is, or will be.
    fn output(&self) -> *mut Result<F::Output, JoinError> {
        self.content.get().cast()
    }

    fn is(&self, stage: Stage) -> bool {
        self.header.stage.is(stage)
    }

    /// Returns the data of the task for errors.
    #[cold]
    fn source(&self) -> Source {
        Source { id: self.header.id, location: self.header.location, name: self.label.name().cloned() }
    }

    /// Drops the future in place and puts the output there; a panic of the destructor becomes the output.
    ///
    /// # Safety
    ///
    /// As [`poll`]; the stage is a future.
    unsafe fn replace_future(&self, result: Result<F::Output, JoinError>) {
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the stage is a future, which nobody looks at afterwards: it is overwritten below.
            // Test: tests/tests/tasks/panics.rs `a_panicking_destructor_reaches_the_join_handle`.
            unsafe { ptr::drop_in_place(self.future()) }
        }));
        let result = match dropped {
            Ok(()) => result,
            Err(payload) => {
                // A second panic, of the output's destructor, has nowhere left to go.
                contain(|| drop(result));
                Err(JoinError::panicked(self.source(), payload))
            }
        };
        // SAFETY: the caller's promise, and the future has been dropped, as far as it could be.
        // Test: as above.
        unsafe { self.put_output(result) };
    }

    /// Puts the output in the place of the future, which has been dropped.
    ///
    /// # Safety
    ///
    /// As [`poll`]; the stage is a future.
    unsafe fn put_output(&self, result: Result<F::Output, JoinError>) {
        // SAFETY: the stage is the caller's, and what stood there is gone.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { self.output().write(result) };
        self.header.stage.set_stage(Stage::Output);
    }

    /// Moves the output out of the cell.
    ///
    /// # Safety
    ///
    /// As [`poll`]; the stage is an output.
    unsafe fn take(&self) -> Result<F::Output, JoinError> {
        self.header.stage.set_stage(Stage::Empty);
        // SAFETY: the stage is the caller's, was an output, and is empty from now on.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { self.output().read() }
    }
}

/// # Safety
///
/// The pointer of `task` came from `allocate::<F, L>`.
unsafe fn name<F: Future + 'static, L: Label>(task: &Task) -> Option<&Arc<str>> {
    // SAFETY: the caller's promise, and the task is alive as long as a reference to it is lent; the label is written
    // once, before all this.
    // Test: tests/tests/tasks/named.rs `a_name_is_seen_wherever_the_task_is`.
    unsafe { cell::<F, L>(task.0) }.label.name()
}

/// # Safety
///
/// `ptr` came from `allocate::<F, L>`, and the task is alive.
unsafe fn aborts<F: Future, L: Label>(ptr: NonNull<Header>, change: i32) -> i32 {
    // SAFETY: the caller's promise; what changes in the label is an atomic.
    // Test: tests/tests/dumps/dump.rs `a_task_is_lost_when_its_last_waker_goes_and_not_before`.
    unsafe { cell::<F, L>(ptr) }.label.aborts(change)
}

/// # Safety
///
/// `ptr` came from `allocate::<F, L>`, the task is alive, and the caller has the right to its stage.
unsafe fn poll<F: Future, L: Label>(ptr: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    let cell = unsafe { cell::<F, L>(ptr) };
    assert!(cell.is(Stage::Future), "a task that is done was polled");
    cell.header.stage.count_poll();
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let guard = DropOnUnwind(cell.future());
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
        // SAFETY: the stage is the caller's, and a future.
        // Test: as above.
        Ok(Poll::Ready(output)) => unsafe { cell.replace_future(Ok(output)) },
        Err(payload) => {
            let error = JoinError::panicked(cell.source(), payload);
            // SAFETY: the stage is the caller's, and the guard has dropped the future.
            // Test: tests/tests/tasks/panics.rs `a_future_that_panics_is_dropped_while_its_panic_unwinds`.
            unsafe { cell.put_output(Err(error)) };
        }
    }
    Poll::Ready(())
}

/// Drops a future whose poll panics, while that panic unwinds, as the locals of a function are dropped: locks that the
/// future holds are poisoned, and its destructors see [`std::thread::panicking`]. A second panic ends here, not the
/// process.
struct DropOnUnwind<F>(*mut F);

impl<F> Drop for DropOnUnwind<F> {
    fn drop(&mut self) {
        contain(|| {
            // SAFETY: the poll above has ended by its panic, and nobody looks at the future again: the output is put
            // there.
            // Test: tests/tests/tasks/panics.rs `a_future_that_panics_is_dropped_while_its_panic_unwinds`.
            unsafe { ptr::drop_in_place(self.0) }
        });
    }
}

/// # Safety
///
/// As [`poll`]; the stage is a future.
unsafe fn cancel<F: Future, L: Label>(ptr: NonNull<Header>) {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks/cancel.rs `abort_drops_an_idle_task_without_a_poll`.
    let cell = unsafe { cell::<F, L>(ptr) };
    let error = JoinError::cancelled(cell.source());
    // SAFETY: the caller's promise.
    // Test: as above.
    unsafe { cell.replace_future(Err(error)) };
}

/// # Safety
///
/// As [`poll`]; `out` points to an `Option<Result<F::Output, JoinError>>`, which is `None`.
unsafe fn take_output<F: Future, L: Label>(ptr: NonNull<Header>, out: *mut ()) {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
    let cell = unsafe { cell::<F, L>(ptr) };
    let output = if cell.is(Stage::Output) {
        // SAFETY: the caller's promise, and the stage is an output.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { cell.take() }
    } else if cell.is(Stage::Future) {
        // The future of an abandoned task must stay where it is.
        Err(JoinError::cancelled(cell.source()))
    } else {
        return;
    };
    // SAFETY: the caller's promise about `out`; a `None` has nothing to drop.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    unsafe { out.cast::<Option<Result<F::Output, JoinError>>>().write(Some(output)) };
}

/// # Safety
///
/// As [`poll`].
unsafe fn drop_output<F: Future<Output: 'static>, L: Label>(ptr: NonNull<Header>) -> Option<Unseen> {
    // SAFETY: the caller's promise: the task is alive.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    let cell = unsafe { cell::<F, L>(ptr) };
    // An abandoned task has no output, and its future must stay where it is.
    if !cell.is(Stage::Output) {
        return None;
    }
    // SAFETY: the caller's promise, and the stage is an output.
    // Test: as above.
    match unsafe { cell.take() } {
        Err(error) => Some(Unseen::Join(error)),
        Ok(output) => {
            let dropped = catch_unwind(AssertUnwindSafe(|| {
                let extension = cell.header.schedule.extension();
                let text =
                    if is_err(&output) { extension.text_of(std::any::type_name::<F::Output>(), &output) } else { None };
                drop(output);
                text
            }));
            match dropped {
                Ok(text) => text.map(|text| Unseen::Failed(cell.source(), text)),
                Err(payload) => Some(Unseen::Join(JoinError::panicked(cell.source(), payload))),
            }
        }
    }
}

/// # Safety
///
/// As [`poll`], and nobody refers to the task any more.
unsafe fn free<F: Future, L: Label>(ptr: NonNull<Header>) {
    let cell = ptr.cast::<Cell<F, L>>();
    // SAFETY: a pointer into a live `Cell<F, L>`; no reference is made.
    // Test: tests/tests/tasks/named.rs `a_name_is_dropped_with_its_task`.
    let label = unsafe { &raw mut (*cell.as_ptr()).label };
    // SAFETY: written by `allocate`, dropped here alone, and not looked at afterwards.
    // Test: as above.
    unsafe { ptr::drop_in_place(label) };
    // SAFETY: the caller's promise: the header is still there.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    let header = unsafe { ptr.as_ref() };
    if header.stage.is(Stage::Future) {
        // SAFETY: the caller's promise.
        // Test: tests/tests/tasks/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
        return unsafe { free_around_future(ptr) };
    }
    // The handle, or in its place the runner, has taken the output (refcount.rs).
    debug_assert!(header.stage.is(Stage::Empty), "an output is lost");
    // The waiter was taken by the runner, which woke it, or by the handle.
    // SAFETY: the field is not used again, as the memory is given back.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    let home = unsafe { ptr::read(&header.schedule) };
    // SAFETY: the block came from `allocate`, and everything in it that has a destructor has been moved out or dropped.
    // Test: as above.
    unsafe { allocator::free(cell, home) };
}

/// Drops the reference to the runtime that an abandoned task has beside its future, which must stay where it is.
///
/// # Safety
///
/// As [`free`].
#[cold]
unsafe fn free_around_future(ptr: NonNull<Header>) {
    // SAFETY: nobody else refers to the task any more.
    // Test: tests/tests/tasks/local.rs `tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said`.
    let header = unsafe { &mut *ptr.as_ptr() };
    // SAFETY: the field is not used again, since the allocation is leaked.
    // Test: as above.
    unsafe { ptr::drop_in_place(&mut header.schedule) };
}
