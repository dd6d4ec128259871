//! A task's reference to the core it belongs to, and all that a task asks of its scheduler.
//!
//! Every task has one; wakers ask it whether this thread holds the core, and queue the task through it. It points to a
//! core and keeps the scheduler that contains it alive: all references to a core together have one count of `Shared`,
//! see `core_refs.rs`.
//!
//! Rejected: an `Arc<Core>` per task beside an `Arc<Shared>` in the core (a cycle, or a second count per spawn).

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::scheduler::core::Core;
use crate::scheduler::current;
use crate::scheduler::extension::Extension;
use crate::scheduler::shared::Shared;
use crate::task::cache::{RemoteFrees, TaskCache};
use crate::task::{Id, Queued, Task};

/// A task's reference to its core: keeps the `Shared`, and so the core, alive.
pub struct Schedule(NonNull<Core>);

// SAFETY: it is a share of an `Arc<Shared>` that points inside, and `Core` and `Shared` are `Send + Sync`.
unsafe impl Send for Schedule {}
// SAFETY: as above.
unsafe impl Sync for Schedule {}

impl Schedule {
    #[inline]
    pub(crate) fn new(core: &Core) -> Self {
        if core.is_held() {
            core.core_refs().add_here();
        } else if core.core_refs().add() {
            count_shared(core);
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
        ManuallyDrop::new(self).core().core_refs().remove_here();
    }

    #[inline]
    fn core(&self) -> &Core {
        // SAFETY: the references to the core, of which this is one, keep the scheduler and the core in it alive.
        // Test: tests/tests/runtimes/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { self.0.as_ref() }
    }

    /// Whether the calling thread holds the core.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.core().is_held()
    }

    /// Queues an owned task that was woken. Only for the holder of the core.
    #[inline]
    pub(crate) fn push_owned(&self, task: Queued) {
        self.core().push_owned(task);
    }

    /// Leaves an owned task that was woken for the holder of the core.
    pub(crate) fn post(&self, task: Task) {
        self.core().post(task);
    }

    /// Gives back the runtime's reference to a task that completes.
    #[inline]
    pub(crate) fn unregister(&self, task: &Queued) -> Task {
        self.core().unregister(task)
    }

    /// A task is about to be polled.
    #[inline]
    pub(crate) fn begin_poll(&self) {
        if let Some(pick) = &self.core().pick {
            pick.begin_poll();
        }
    }

    /// Where the memory of the task goes when it has ended on another thread; none if nobody is there to use it.
    #[inline]
    pub(crate) fn remote_frees(&self) -> Option<&RemoteFrees> {
        let core = self.core();
        core.wants_blocks().then(|| core.remote_frees())
    }

    /// Calls `f` with the memory kept for tasks. Only for the holder of the core.
    #[inline]
    pub(crate) fn with_blocks<T>(&self, f: impl FnOnce(&mut TaskCache, &RemoteFrees) -> T) -> T {
        self.core().with_blocks(f)
    }

    /// Queues a shared task: with the calling worker, if it is one of this runtime's, otherwise for any worker.
    pub(crate) fn schedule(&self, task: Queued) {
        let (id, mut task) = (task.id().get(), Some(task));
        current::with_held(|held| {
            if self.is_queued_by(held) {
                held.queue_woken(task.take().expect("called once"));
            }
        });
        if let Some(task) = task {
            for observer in &self.core().shared().config.observers {
                observer.woken(id);
            }
            self.core().shared().inject(task);
        }
    }

    /// The id of a new task.
    #[inline]
    pub(crate) fn next_id(&self) -> Id {
        match &self.core().pick {
            None => Id::next(),
            Some(pick) => Id::of(pick.next_id()),
        }
    }

    /// Returns `true` if the holder of `held` queues shared tasks of this core's runtime itself.
    #[inline]
    pub(crate) fn is_queued_by(&self, held: &Core) -> bool {
        held.belongs_to(self.core().shared()) && held.takes_shared()
    }

    /// The `Shared` itself.
    pub(crate) fn arc(&self) -> Arc<Shared> {
        count_shared(self.core());
        // SAFETY: takes over the count that has just been added; the address came from `Arc::new_cyclic`.
        // Test: tests/tests/runtimes/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { Arc::from_raw(self.core().shared_address()) }
    }

    /// The runtime, if it has observers: it may end with the task.
    pub(crate) fn observed(&self) -> Option<Arc<Shared>> {
        (!self.core().shared().config.observers.is_empty()).then(|| self.arc())
    }

    /// The layers above, which report what no join handle will see.
    pub(crate) fn extension(&self) -> &dyn Extension {
        &*self.core().shared().extension
    }
}

impl Drop for Schedule {
    #[inline]
    fn drop(&mut self) {
        if self.is_held() {
            self.core().core_refs().remove_here();
        } else if self.core().core_refs().remove() {
            discount_shared(self.0.as_ptr());
        }
    }
}

/// The calling thread, which keeps the scheduler alive, holds the core from here until [`leave`]: it counts what it
/// makes and frees in plain memory.
pub(crate) fn hold(core: &Core) {
    if core.core_refs().hold() {
        count_shared(core);
    }
}

/// The calling thread, which keeps the scheduler alive, holds the core no more. `core.is_held()` says so already.
pub(crate) fn leave(core: &Core) {
    if core.core_refs().leave() {
        discount_shared(core);
    }
}

/// Takes the count of `Shared` that the references to a core have together.
fn count_shared(core: &Core) {
    // SAFETY: the address came from `Arc::new_cyclic`, and `core` is a part of that `Shared`, so it is alive.
    // Test: tests/tests/runtimes/runtimes.rs `a_waker_may_outlive_its_runtime`.
    unsafe { Arc::increment_strong_count(core.shared_address()) };
}

/// Gives that count back; `core` may be gone afterwards.
fn discount_shared(core: *const Core) {
    // SAFETY: the count keeps the core alive until it is given back here.
    // Test: tests/tests/runtimes/runtimes.rs `a_waker_may_outlive_its_runtime`.
    let shared = unsafe { (*core).shared_address() };
    // SAFETY: that count was taken by `count_shared`; `CoreRefs` says when it is due, once (model in core_refs.rs).
    // Test: as above.
    unsafe { Arc::decrement_strong_count(shared) };
}
