//! Detects leaves that wait with another waker than the one that their task was polled with.
//!
//! A future that gives its children wakers of their own, as a scope or a set of futures does, polls only those that
//! were woken. Then the notes of the last poll are not all that the task waits for: it may hold a lock in one child
//! that sleeps, and wait for that lock in another. Such a wait is reported together with something unknown.
//!
//! A waker is recognised by its table. A runtime has few tables, and registers them.
//!
//! Rejected: comparing with the waker of the poll (a store for each poll, for what few leaves ask).

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::task::{RawWakerVTable, Waker};

use crate::others;

/// The kinds of wakers with which a task as a whole is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum WakerOf {
    /// A task, among them the future of a `block_on` on the core that its thread holds.
    Task,
    /// The future of a `block_on` on another thread.
    External,
}

static OWN: [AtomicPtr<RawWakerVTable>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

/// Registers the table of the wakers of one kind, before one of them is used.
pub fn set_waker(of: WakerOf, table: &'static RawWakerVTable) {
    OWN[of as usize].store(ptr::from_ref(table).cast_mut(), Relaxed);
}

/// Notes the waker of a waiting leaf; call it after [`leave_note`](crate::leave_note). If it is not the waker of a
/// whole task, [`has_others`](crate::has_others) is true for this poll.
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
