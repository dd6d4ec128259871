//! A task's reference to the core it belongs to.
//!
//! Every task has one; wakers ask it whether this thread holds the core, and queue the task through it. It points to a core
//! and counts the pool that contains it.
//!
//! Rejected: an `Arc<Core>` per task beside an `Arc<Pool>` in the core (a cycle, or a second count per spawn).

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::context;
use crate::core::Core;
use crate::pool::Pool;
use crate::task::{JoinError, Queued};

/// A task's reference to its core: keeps the pool, and so the core, alive.
pub(crate) struct Home(NonNull<Core>);

// SAFETY: it is an `Arc<Pool>` that points inside, and `Core` and `Pool` are `Send + Sync`.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Home {
    pub(crate) fn new(core: &Core) -> Self {
        // SAFETY: the address came from `Arc::new_cyclic`, and `core` is a part of that pool, so it is alive.
        // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { Arc::increment_strong_count(core.pool_address()) };
        Self(NonNull::from(core))
    }

    /// Queues a shared task: with the worker that calls, if it is one of this runtime's, else for anybody.
    pub(crate) fn schedule(&self, task: Queued) {
        let mut task = Some(task);
        context::with_held(|held| {
            if held.belongs_to(self.pool()) && !held.is_closed() {
                let task = task.take().expect("called once");
                if context::is_in_task() { held.push_next(task) } else { held.push_back(task) }
            }
        });
        if let Some(task) = task {
            self.pool().inject(task);
        }
    }

    /// The pool itself.
    pub(crate) fn arc(&self) -> Arc<Pool> {
        let home = ManuallyDrop::new(Home::new(self));
        // SAFETY: takes over the count that `new` has just added; the address came from `Arc::new_cyclic`.
        // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { Arc::from_raw(home.pool_address()) }
    }

    /// Reports a panic that no join handle will see.
    pub(crate) fn report_panic(&self, error: &JoinError) {
        self.pool().report_panic(error);
    }
}

impl Deref for Home {
    type Target = Core;

    fn deref(&self) -> &Core {
        // SAFETY: the strong count taken in `new` keeps the pool, and the core in it, alive.
        // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let pool = self.pool_address();
        // SAFETY: gives back the count taken in `new`; `self` is not used afterwards.
        // Test: as above.
        unsafe { Arc::decrement_strong_count(pool) };
    }
}
