//! A place for a waker that two threads share, without a lock: a separate state word decides which thread owns the
//! waker.
//!
//! It is two words that may be read while they are written: a reader may read them before it knows whether they are
//! valid.
//!
//! Rejected: reading a plain `Waker` in such a moment (a data race, whatever becomes of what was read).

#![allow(unsafe_code)]

use std::ptr;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::task::{RawWakerVTable, Waker};

#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A place for one waker. It does not drop the waker in it: the side that owns the waker does.
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

/// The content of a [`WakerSlot`]: a waker, if the state word says so.
#[derive(Debug)]
pub struct SeenWaker {
    data: *const (),
    vtable: *const RawWakerVTable,
}

impl WakerSlot {
    /// Creates an empty slot.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self { data: AtomicPtr::new(ptr::null_mut()), vtable: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Stores `waker`. The stores are relaxed: the caller's state word must publish them.
    #[inline]
    pub fn put(&self, waker: Waker) {
        self.data.store(waker.data().cast_mut(), Relaxed);
        self.vtable.store(ptr::from_ref(waker.vtable()).cast_mut(), Relaxed);
        std::mem::forget(waker);
    }

    /// Returns the content. The loads are relaxed: the caller must acquire its state word.
    #[inline]
    pub fn look(&self) -> SeenWaker {
        SeenWaker { data: self.data.load(Relaxed), vtable: self.vtable.load(Relaxed) }
    }

    /// Returns `true` if `waker` is the same as the one in the slot.
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
    /// Turns the content into the waker.
    ///
    /// # Safety
    ///
    /// The waker was [put](WakerSlot::put) there, both words are of that waker and belong to the caller, and it has not
    /// been taken before.
    #[must_use]
    #[inline]
    pub unsafe fn into_waker(self) -> Waker {
        // SAFETY: the caller's promise: it is the table of the waker that `put` forgot, which is `'static`.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`; model: task/refcount/models.rs
        // `the_output_has_one_owner_and_a_waiter_is_not_forgotten`.
        let vtable = unsafe { &*self.vtable };
        // SAFETY: both words are those of that one waker, whose reference this takes over. Test: as above.
        unsafe { Waker::new(self.data, vtable) }
    }
}
