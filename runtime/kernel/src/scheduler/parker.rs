//! The place where a thread without a core waits for one, or for the future of its `block_on`.
//!
//! Rejected: `std::thread::park`. It may use up the unpark that the caller of `block_on` expects for its own `park`,
//! and an unpark that is left over from here ends that park early.

use std::sync::Arc;

use crate::primitives::{Condvar, Deadline, Mutex, lock};

/// One thread parks here; any thread unparks it.
#[derive(Debug, Default)]
pub struct Parker {
    is_unparked: Mutex<bool>,
    changed: Condvar,
}

impl Parker {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Waits until there was an unpark since the last park.
    pub(crate) fn park(&self) {
        let mut never = Deadline::NEVER;
        self.park_until(&mut never);
    }

    /// The same, or until the deadline is over.
    pub fn park_until(&self, deadline: &mut Deadline) {
        let mut is_unparked = lock(&self.is_unparked);
        while !*is_unparked && !deadline.is_over() {
            is_unparked = deadline.wait(&self.changed, &self.is_unparked, is_unparked);
        }
        *is_unparked = false;
    }

    pub(crate) fn unpark(&self) {
        *lock(&self.is_unparked) = true;
        self.changed.notify_one();
    }
}
