//! Where a join handle leaves the waker of the task that awaits it; `refcount.rs` says whose that waker is.
//!
//! Two words that may be read while they are written: the runner looks before it knows whether what it sees counts.
//!
//! Rejected: reading a plain `Waker` in such a moment (a data race, whatever becomes of what was read).

#![allow(unsafe_code)]

use std::ptr;
use std::task::{RawWakerVTable, Waker};

use crate::primitives::atomic::{AtomicPtr, Ordering::Relaxed};

/// The slot. It does not drop what is in it: the side that has the right to it does.
#[derive(Debug)]
pub(super) struct WaiterSlot {
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

/// What was in the slot: a waker, if all was as `refcount.rs` says.
#[derive(Debug)]
pub(super) struct RawWaiter {
    data: *const (),
    vtable: *const RawWakerVTable,
}

impl WaiterSlot {
    pub(super) fn new() -> Self {
        Self { data: AtomicPtr::new(ptr::null_mut()), vtable: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Relaxed: `offer` publishes it.
    pub(super) fn put(&self, waker: Waker) {
        self.data.store(waker.data().cast_mut(), Relaxed);
        self.vtable.store(ptr::from_ref(waker.vtable()).cast_mut(), Relaxed);
        std::mem::forget(waker);
    }

    /// Relaxed: `complete` acquires it.
    #[inline]
    pub(super) fn look(&self) -> RawWaiter {
        RawWaiter { data: self.data.load(Relaxed), vtable: self.vtable.load(Relaxed) }
    }

    /// Whether `waker` is the same as the one in it.
    pub(super) fn is(&self, waker: &Waker) -> bool {
        let seen = self.look();
        ptr::eq(seen.data, waker.data()) && ptr::eq(seen.vtable, waker.vtable())
    }
}

impl RawWaiter {
    /// The waker.
    ///
    /// # Safety
    ///
    /// It was put there, `refcount.rs` says that it is the caller's, and nobody has taken it before.
    #[inline]
    pub(super) unsafe fn into_waker(self) -> Waker {
        // SAFETY: the caller's promise: it is the table of the waker that `put` forgot, which is `'static`.
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`; model: refcount/models.rs
        // `the_output_has_one_owner_and_a_waiter_is_not_forgotten`.
        let vtable = unsafe { &*self.vtable };
        // SAFETY: both words are those of that one waker, whose reference this takes over.
        // Test: as above.
        unsafe { Waker::new(self.data, vtable) }
    }
}
