//! Wakers that were taken out under a lock, to be woken when it is free.
//!
//! `Timers` alone calls it. A waker that panics costs the others nothing.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

#[derive(Default)]
pub(crate) struct Wakes(pub(crate) Vec<Waker>);

impl Wakes {
    /// Wakes all, first in, first out, and returns their number.
    pub(crate) fn wake_all(&mut self) -> usize {
        let count = self.0.len();
        // Each leaves the list before it is woken, so that none is woken twice.
        self.0.reverse();
        while let Some(waker) = self.0.pop() {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                drop_payload(payload);
            }
        }
        count
    }
}

/// The panic has been printed. A payload may panic in its own destructor; what comes of that is leaked rather than dropped.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.wake_all();
    }
}
