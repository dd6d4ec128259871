//! What this thread is inside of: a runtime, a core it holds, a task it polls.
//!
//! Set by [`enter`], by workers and around every poll; asked by the free functions (`mini::spawn`) and by every wake,
//! which compares the core a task belongs to with the core this thread holds. Plain cells without a destructor, so
//! that asking is one load.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

use crate::core::Core;
use crate::pool::Pool;
use crate::task::{Id, Queued, Reason};

struct Tls {
    pool: Cell<*const Pool>,
    held: Cell<*const Core>,
    task: Cell<*const Queued>,
}

thread_local! {
    static TLS: Tls =
        const { Tls { pool: Cell::new(ptr::null()), held: Cell::new(ptr::null()), task: Cell::new(ptr::null()) } };
}

/// While it lives, this thread is inside a runtime (and, for a worker, holds a core).
pub(crate) struct Guard {
    pool: *const Pool,
    held: *const Core,
    task: *const Queued,
    _alive: Arc<Pool>,
    _net: mini_net::EnterGuard,
    _time: mini_time::EnterGuard,
}

/// Enters a runtime without holding a core; I/O and timers go to `core`'s driver.
pub(crate) fn enter(pool: &Arc<Pool>, core: &Core) -> Guard {
    TLS.with(|tls| set(tls, pool, core, tls.held.get()))
}

/// Enters a runtime as the holder of `core`, which the caller has taken.
pub(crate) fn enter_held(pool: &Arc<Pool>, core: &Core) -> Guard {
    TLS.with(|tls| set(tls, pool, core, core))
}

fn set(tls: &Tls, pool: &Arc<Pool>, core: &Core, held: *const Core) -> Guard {
    let driver = core.driver();
    Guard {
        pool: tls.pool.replace(Arc::as_ptr(pool)),
        task: if held == tls.held.get() { tls.task.get() } else { tls.task.replace(ptr::null()) },
        held: tls.held.replace(held),
        _alive: pool.clone(),
        _net: mini_net::enter(driver.reactor(), pool.resolver()),
        _time: mini_time::enter(driver.timers()),
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        TLS.with(|tls| {
            tls.pool.set(self.pool);
            tls.held.set(self.held);
            tls.task.set(self.task);
        });
    }
}

/// While it lives, this thread polls a task.
pub(crate) struct TaskGuard(*const Queued);

/// Marks the task as the current one. The caller keeps the entry where it is while the guard lives.
pub(crate) fn enter_task(task: &Queued) -> TaskGuard {
    TLS.with(|tls| TaskGuard(tls.task.replace(task)))
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        TLS.with(|tls| tls.task.set(self.0));
    }
}

/// The task this thread polls.
pub(crate) fn current_task() -> Option<Id> {
    with_task(Queued::id)
}

/// Notes in the current task that it waits for another.
pub(crate) fn note_join(id: Id, location: &'static Location<'static>) {
    with_task(|task| task.wait_slot().set(Reason::Join(id.get()), location));
}

fn with_task<T>(f: impl FnOnce(&Queued) -> T) -> Option<T> {
    TLS.with(|tls| {
        // SAFETY: null, or set by `enter_task` from a reference that outlives the guard, which resets the cell.
        // Test: tests/tests/tasks.rs `ids_are_those_of_the_running_task`.
        unsafe { tls.task.get().as_ref() }.map(f)
    })
}

/// Calls `f` with the runtime this thread is inside of.
pub(crate) fn with_pool<T>(f: impl FnOnce(&Arc<Pool>) -> T) -> Option<T> {
    let pool = TLS.with(|tls| tls.pool.get());
    if pool.is_null() {
        return None;
    }
    // SAFETY: the pointer came from `Arc::as_ptr`, and the guard that set it holds the `Arc`.
    // The count is not touched: `ManuallyDrop` gives back what this borrows.
    // Test: tests/tests/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    let pool = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(pool) });
    Some(f(&pool))
}

/// The core this thread holds, as an address to compare with.
pub(crate) fn held() -> *const Core {
    TLS.with(|tls| tls.held.get())
}

/// Calls `f` with the core this thread holds.
pub(crate) fn with_held<T>(f: impl FnOnce(&Core) -> T) -> Option<T> {
    // SAFETY: null, or set by `enter_held` from a core whose pool the guard keeps alive.
    // Test: tests/tests/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    unsafe { held().as_ref() }.map(f)
}

/// Whether this thread polls a task just now.
pub(crate) fn is_in_task() -> bool {
    TLS.with(|tls| !tls.task.get().is_null())
}

/// Puts a shared task that woke itself at the back of this worker's queue.
pub(crate) fn requeue_shared(task: Queued) {
    let mut task = Some(task);
    with_held(|core| core.push_back(task.take().expect("called once")));
    debug_assert!(task.is_none(), "shared tasks are polled by workers only");
}
