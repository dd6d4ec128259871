//! What this thread is inside of: a runtime, a core it holds, a task it polls.
//!
//! Set by [`enter`], by workers and around every poll; asked by the free functions (`mini::spawn`) and by every wake,
//! which compares the core a task belongs to with the core this thread holds. Plain cells without a destructor, so
//! that asking is one load.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

use crate::core::Core;
use crate::home;
use crate::pool::Pool;
use crate::sync::{atomic::Ordering::SeqCst, thread_local};
use crate::task::{Id, Queued, Reason, Running};

struct Tls {
    pool: Cell<*const Pool>,
    held: Cell<*const Core>,
    task: Cell<*const Running>,
    /// The runtime for which this thread runs what may block.
    serves: Cell<*const Pool>,
}

thread_local! {
    static TLS: Tls = const {
        Tls {
            pool: Cell::new(ptr::null()),
            held: Cell::new(ptr::null()),
            task: Cell::new(ptr::null()),
            serves: Cell::new(ptr::null()),
        }
    };
    /// The runtimes this thread is inside of, the innermost last. `Tls::pool` is that of the last one.
    static ENTERED: RefCell<List> = const { RefCell::new(List(Vec::new())) };
}

struct List(Vec<Entered>);

impl Drop for List {
    /// The thread ends, and a guard was leaked: its runtime may go now.
    fn drop(&mut self) {
        // In a model that one may be gone already; it has no destructor elsewhere.
        let _ = TLS.try_with(|tls| tls.pool.set(ptr::null()));
    }
}

/// One runtime this thread is inside of.
struct Entered {
    number: u64,
    pool: Arc<Pool>,
    core: usize,
    guards: Option<(mini_net::EnterGuard, mini_time::EnterGuard)>,
}

impl Entered {
    /// Makes this the innermost one.
    fn enter(&mut self) {
        let driver = self.pool.cores[self.core].driver();
        let net = mini_net::enter(driver.reactor(), self.pool.resolver());
        self.guards = Some((net, mini_time::enter(driver.timers())));
    }
}

/// While it lives, this thread is inside a runtime. Guards may be dropped in any order.
pub(crate) struct Guard {
    number: u64,
    pool: Arc<Pool>,
    core: usize,
    stays_here: PhantomData<*const ()>,
}

/// Enters a runtime without holding a core; I/O and timers go to `core`'s driver.
pub(crate) fn enter(pool: &Arc<Pool>, core: &Core) -> Guard {
    core.visitors.fetch_add(1, SeqCst);
    let mut entered = Entered { number: 0, pool: pool.clone(), core: core.index(), guards: None };
    entered.enter();
    // On a thread that is ending there is no list any more, and nothing to come back to.
    let number = ENTERED.try_with(|list| {
        let list = &mut list.borrow_mut().0;
        entered.number = list.last().map_or(0, |last| last.number + 1);
        let number = entered.number;
        list.push(entered);
        number
    });
    TLS.with(|tls| tls.pool.set(Arc::as_ptr(pool)));
    Guard { number: number.unwrap_or(0), pool: pool.clone(), core: core.index(), stays_here: PhantomData }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let gone = ENTERED.try_with(|list| leave(&mut list.borrow_mut().0, self.number));
        let innermost = gone.as_ref().map_or(ptr::null(), |(_, innermost)| *innermost);
        TLS.with(|tls| tls.pool.set(innermost));
        drop(gone); // may be the last of its runtime: not while the list is borrowed
        self.pool.cores[self.core].visitors.fetch_sub(1, SeqCst);
    }
}

/// Takes one runtime out of the list, and makes the last one the innermost again.
fn leave(list: &mut Vec<Entered>, number: u64) -> (Option<Entered>, *const Pool) {
    let Some(at) = list.iter().position(|entered| entered.number == number) else {
        return (None, list.last().map_or(ptr::null(), |last| Arc::as_ptr(&last.pool)));
    };
    let mut above = list.split_off(at + 1);
    // The guards of `net` and `time` restore what was there before them, so they go and come in order.
    for entered in above.iter_mut().rev() {
        entered.guards = None;
    }
    let gone = list.pop().map(|mut gone| {
        gone.guards = None;
        gone
    });
    for mut entered in above {
        entered.enter();
        list.push(entered);
    }
    (gone, list.last().map_or(ptr::null(), |last| Arc::as_ptr(&last.pool)))
}

/// While it lives, this thread holds a core, and is inside its runtime.
pub(crate) struct HeldGuard {
    held: *const Core,
    task: *const Running,
    inside: Guard,
}

/// Enters a runtime as the holder of `core`, which the caller has taken. Such guards are strictly nested.
pub(crate) fn enter_held(pool: &Arc<Pool>, core: &Core) -> HeldGuard {
    let inside = enter(pool, core);
    home::hold(core);
    TLS.with(|tls| HeldGuard { held: tls.held.replace(core), task: tls.task.replace(ptr::null()), inside })
}

impl Drop for HeldGuard {
    fn drop(&mut self) {
        TLS.with(|tls| {
            tls.held.set(self.held);
            tls.task.set(self.task);
        });
        home::leave(&self.inside.pool.cores[self.inside.core]);
    }
}

/// While it lives, this thread counts as one that holds no core, though it does.
pub(crate) struct SetAside {
    held: *const Core,
    serves: *const Pool,
}

/// Sets the core aside that this thread holds, if it does, for code that may block: `block_on` is possible there.
pub(crate) fn set_aside() -> Option<SetAside> {
    let pool = with_held(|core| ptr::from_ref(core.pool()))?;
    Some(TLS.with(|tls| SetAside { held: tls.held.replace(ptr::null()), serves: tls.serves.replace(pool) }))
}

impl SetAside {
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: it was held when this was made, so the guard of `enter_held` further out on this stack keeps it alive.
        // Test: tests/tests/block_in_place.rs `it_runs_on_the_callers_thread`.
        unsafe { &*self.held }
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        TLS.with(|tls| {
            tls.held.set(self.held);
            tls.serves.set(self.serves);
        });
    }
}

/// While it lives, this thread polls a task.
pub(crate) struct TaskGuard(*const Running);

/// Marks the task as the current one. The caller keeps the entry where it is while the guard lives.
pub(crate) fn enter_task(task: &Running) -> TaskGuard {
    TLS.with(|tls| TaskGuard(tls.task.replace(task)))
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        TLS.with(|tls| tls.task.set(self.0));
    }
}

/// The task this thread polls.
pub(crate) fn current_task() -> Option<Id> {
    with_task(Running::id)
}

/// The name of the task this thread polls.
pub(crate) fn current_name() -> Option<Arc<str>> {
    with_task(Running::name).flatten()
}

/// Notes in the current task that it waits for another.
pub(crate) fn note_join(id: Id, location: &'static Location<'static>) {
    with_task(|task| task.wait_slot().set(Reason::Join(id.get()), location));
}

/// Calls `f` with the task this thread polls.
pub(crate) fn with_task<T>(f: impl FnOnce(&Running) -> T) -> Option<T> {
    TLS.with(|tls| {
        // SAFETY: null, or set by `enter_task` from a reference that outlives the guard, which resets the cell.
        // Test: tests/tests/tasks.rs `ids_are_those_of_the_running_task`.
        unsafe { tls.task.get().as_ref() }.map(f)
    })
}

/// Marks this blocking thread as one of the runtime's, while it runs `job`, which contains its panics.
pub(crate) fn serve(pool: &Arc<Pool>, job: impl FnOnce()) {
    let inside = pool.enter();
    TLS.with(|tls| tls.serves.set(Arc::as_ptr(pool)));
    job();
    TLS.with(|tls| tls.serves.set(ptr::null()));
    drop(inside);
}

/// Whether this thread holds a core of `pool`, or runs what may block for it.
pub(crate) fn is_working_for(pool: &Pool) -> bool {
    held_of(pool).is_some() || TLS.with(|tls| ptr::eq(tls.serves.get(), pool))
}

/// Calls `f` with the runtime this thread is inside of.
pub(crate) fn with_pool<T>(f: impl FnOnce(&Arc<Pool>) -> T) -> Option<T> {
    let pool = TLS.with(|tls| tls.pool.get());
    if pool.is_null() {
        return None;
    }
    // SAFETY: the pointer came from `Arc::as_ptr`, and as long as it is set, the list or a guard holds the `Arc`.
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
    // SAFETY: null, or set by `enter_held` from a core whose pool the guard keeps alive; such guards are nested.
    // Test: tests/tests/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    unsafe { held().as_ref() }.map(f)
}

/// The core of `pool` that this thread holds.
#[inline]
pub(crate) fn held_of(pool: &Pool) -> Option<&Core> {
    // SAFETY: null, or set by `enter_held` from a core whose pool the guard keeps alive; such guards are nested. One that
    // belongs to `pool` is a part of it, so it lives as long as the reference to `pool`.
    // Test: tests/tests/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    unsafe { held().as_ref() }.filter(|core| core.belongs_to(pool))
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
