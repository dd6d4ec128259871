//! Whether a leaf waits with the waker that its task was polled with.
//!
//! A future that gives its children wakers of their own, as a scope or a set of futures does, polls those alone that
//! were woken. Then the notes of the last poll are not all that the task waits for: it may hold a lock in one child
//! that sleeps, and wait for that lock in another. Such a wait is told with something beside it that is not known.
//!
//! A waker is told by its table; a runtime has few of them, and says which.
//!
//! Rejected: comparing with the waker of the poll (a store for each poll, for what few leaves ask).

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::task::{RawWakerVTable, Waker};

use crate::others;

/// The kinds of wakers that a task as a whole is polled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum WakerOf {
    /// A task.
    Task,
    /// The future of a `block_on` on a worker.
    Main,
    /// The future of a `block_on` beside the workers.
    External,
}

static OWN: [AtomicPtr<RawWakerVTable>; 3] = [const { AtomicPtr::new(ptr::null_mut()) }; 3];

/// Says what the wakers of that kind have in common, before one of them is used.
pub fn set_waker(of: WakerOf, table: &'static RawWakerVTable) {
    OWN[of as usize].store(ptr::from_ref(table).cast_mut(), Relaxed);
}

/// After [`leave_note`](crate::leave_note): the leaf waits with that waker. If it is not that of a whole task,
/// [`has_others`](crate::has_others) is true of this poll.
///
/// # Examples
///
/// ```
/// use std::task::Waker;
///
/// mini_context::begin_poll(7);
/// mini_context::note_waker(Waker::noop());
/// assert!(mini_context::has_others());
/// ```
#[inline]
pub fn note_waker(waker: &Waker) {
    let table = ptr::from_ref(waker.vtable()).cast_mut();
    if OWN.iter().all(|own| own.load(Relaxed) != table) {
        others::note_unknown();
    }
}
