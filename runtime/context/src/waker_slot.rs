//! A place for a waker that two threads share, without a lock: a state word beside it says whose the waker is.
//!
//! Two words that may be read while they are written: a reader may look before it knows whether what it sees counts.
//!
//! Rejected: reading a plain `Waker` in such a moment (a data race, whatever becomes of what was read).

#![allow(unsafe_code)]

use std::ptr;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::task::{RawWakerVTable, Waker};

#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The place. It does not drop what is in it: the side that has the right to it does.
///
/// # Examples
///
/// ```
/// use std::task::Waker;
/// use mini_context::WakerSlot;
///
/// let slot = WakerSlot::new();
/// slot.put(Waker::noop().clone());
/// assert!(slot.is(Waker::noop()));
/// // SAFETY: it was put there, and is taken once.
/// unsafe { slot.look().into_waker() }.wake();
/// ```
#[derive(Debug)]
pub struct WakerSlot {
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

/// What was in a [`WakerSlot`]: a waker, if the word beside it says so.
#[derive(Debug)]
pub struct SeenWaker {
    data: *const (),
    vtable: *const RawWakerVTable,
}

impl WakerSlot {
    /// With nothing in it.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self { data: AtomicPtr::new(ptr::null_mut()), vtable: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts `waker` there. Relaxed: the word beside the slot is to publish it.
    #[inline]
    pub fn put(&self, waker: Waker) {
        self.data.store(waker.data().cast_mut(), Relaxed);
        self.vtable.store(ptr::from_ref(waker.vtable()).cast_mut(), Relaxed);
        std::mem::forget(waker);
    }

    /// What is in it. Relaxed: the word beside the slot is to be acquired.
    #[inline]
    pub fn look(&self) -> SeenWaker {
        SeenWaker { data: self.data.load(Relaxed), vtable: self.vtable.load(Relaxed) }
    }

    /// Whether `waker` is the same as the one in it.
    #[inline]
    pub fn is(&self, waker: &Waker) -> bool {
        let seen = self.look();
        ptr::eq(seen.data, waker.data()) && ptr::eq(seen.vtable, waker.vtable())
    }
}

impl Default for WakerSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl SeenWaker {
    /// The waker.
    ///
    /// # Safety
    ///
    /// It was [put](WakerSlot::put) there, both words are of it and belong to the caller, and nobody has taken it
    /// before.
    #[must_use]
    #[inline]
    pub unsafe fn into_waker(self) -> Waker {
        // SAFETY: the caller's promise: it is the table of the waker that `put` forgot, which is `'static`.
        // Test: tests/tests/tasks.rs `every_future_and_output_is_dropped_once`; model: task/refcount/models.rs
        // `the_output_has_one_owner_and_a_waiter_is_not_forgotten`.
        let vtable = unsafe { &*self.vtable };
        // SAFETY: both words are those of that one waker, whose reference this takes over. Test: as above.
        unsafe { Waker::new(self.data, vtable) }
    }
}
