//! The synchronisation types the lock-free parts are built on: std's, or loom's when a model runs.
//!
//! Used by the task state, the ring, the bell and the idle counters, which all have loom models. Everything
//! else in this crate uses std directly: a model never reaches it.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. Poison is ignored: no user code runs under a lock of this crate.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
