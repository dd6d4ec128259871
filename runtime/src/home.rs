//! A task's reference to the core it belongs to.
//!
//! Every task has one; wakers ask it whether this thread holds the core, and queue the task through it. It points to a core
//! and keeps the pool that contains it alive: all references to a core together have one count of the pool, see
//! `tenants.rs`.
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

// SAFETY: it is a share of an `Arc<Pool>` that points inside, and `Core` and `Pool` are `Send + Sync`.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Home {
    #[inline]
    pub(crate) fn new(core: &Core) -> Self {
        if core.is_held() {
            core.tenants().add_here();
        } else if core.tenants().add() {
            count_pool(core);
        }
        Self(NonNull::from(core))
    }

    /// As dropping it, at less cost.
    ///
    /// # Safety
    ///
    /// The calling thread holds the core.
    #[inline]
    pub(crate) unsafe fn drop_here(self) {
        debug_assert!(self.is_held());
        ManuallyDrop::new(self).tenants().remove_here();
    }

    /// Queues a shared task: with the worker that calls, if it is one of this runtime's, else for anybody.
    pub(crate) fn schedule(&self, task: Queued) {
        let mut task = Some(task);
        context::with_held(|held| {
            if self.is_queued_by(held) {
                held.queue_woken(task.take().expect("called once"));
            }
        });
        if let Some(task) = task {
            self.pool().inject([task]);
        }
    }

    /// Whether the holder of `held` queues shared tasks of this core's runtime itself.
    #[inline]
    pub(crate) fn is_queued_by(&self, held: &Core) -> bool {
        held.belongs_to(self.pool()) && !held.is_closed()
    }

    /// The pool itself.
    pub(crate) fn arc(&self) -> Arc<Pool> {
        count_pool(self);
        // SAFETY: takes over the count that has just been added; the address came from `Arc::new_cyclic`.
        // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { Arc::from_raw(self.pool_address()) }
    }

    /// Reports a panic that no join handle will see.
    pub(crate) fn report_panic(&self, error: &JoinError) {
        self.pool().report_panic(error);
    }
}

impl Deref for Home {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        // SAFETY: the tenants, of whom this is one, keep the pool and the core in it alive.
        // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Home {
    #[inline]
    fn drop(&mut self) {
        if self.is_held() {
            self.tenants().remove_here();
        } else if self.tenants().remove() {
            discount_pool(self.0.as_ptr());
        }
    }
}

/// The calling thread, which keeps the pool alive, holds the core from here until [`leave`]: it counts what it makes and
/// frees in plain memory.
pub(crate) fn hold(core: &Core) {
    if core.tenants().hold() {
        count_pool(core);
    }
}

/// The calling thread, which keeps the pool alive, holds the core no more. `core.is_held()` says so already.
pub(crate) fn leave(core: &Core) {
    if core.tenants().leave() {
        discount_pool(core);
    }
}

/// Takes the tenants' count of the pool.
fn count_pool(core: &Core) {
    // SAFETY: the address came from `Arc::new_cyclic`, and `core` is a part of that pool, so it is alive.
    // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
    unsafe { Arc::increment_strong_count(core.pool_address()) };
}

/// Gives the tenants' count of the pool back; `core` may be gone afterwards.
fn discount_pool(core: *const Core) {
    // SAFETY: the count keeps the core alive until it is given back here.
    // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
    let pool = unsafe { (*core).pool_address() };
    // SAFETY: that count was taken by `count_pool`; the tenants say when it is due, once (model in tenants.rs).
    // Test: as above.
    unsafe { Arc::decrement_strong_count(pool) };
}
