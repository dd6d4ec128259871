//! The current thread: the runtime that it is inside of, the core that it holds, the task that it polls.
//!
//! Set by `enter`, by workers and around every poll; read by the free functions (`mini::spawn`) and by every wake,
//! which compares the core of a task with the core that this thread holds. Plain cells without a destructor, so that a
//! read is one load.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, MutexGuard};

use crate::primitives::thread_local;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::task::schedule;
use crate::task::{Id, Running, Task};

struct Tls {
    shared: Cell<*const Shared>,
    held: Cell<*const Core>,
    task: Cell<*const Running>,
    /// The ended task whose output this thread drops.
    ended: Cell<*const Task>,
    /// The runtime whose `block_on` polls its future on this thread, without a core.
    external_of: Cell<*const Shared>,
}

thread_local! {
    static TLS: Tls = const {
        Tls {
            shared: Cell::new(ptr::null()),
            held: Cell::new(ptr::null()),
            task: Cell::new(ptr::null()),
            ended: Cell::new(ptr::null()),
            external_of: Cell::new(ptr::null()),
        }
    };
    /// The runtimes this thread is inside of, the innermost last. `Tls::shared` is that of the last one.
    static ENTERED: RefCell<List> = const { RefCell::new(List(Vec::new())) };
}

struct List(Vec<Entered>);

impl Drop for List {
    /// The thread ends although a guard was leaked: the runtime of that guard may go now.
    fn drop(&mut self) {
        // In a model `TLS` may be gone already; elsewhere it has no destructor.
        let _ = TLS.try_with(|tls| tls.shared.set(ptr::null()));
    }
}

/// One runtime this thread is inside of.
struct Entered {
    number: u64,
    shared: Arc<Shared>,
    core: usize,
    role: Role,
    guards: Option<(mini_net::EnterGuard, mini_time::EnterGuard)>,
}

impl Entered {
    /// Makes this runtime the innermost one.
    fn enter(&mut self) {
        let driver = self.shared.cores[self.core].driver();
        let net = mini_net::enter(driver.reactor(), self.shared.resolver(), |location, duration| {
            Box::pin(mini_time::retry_after(location, duration))
        });
        self.guards = Some((net, mini_time::enter(driver.timers())));
    }
}

/// The role of a thread inside a runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has entered it.
    Visitor,
    /// It holds the core, or runs a job.
    Worker,
}

/// While it lives, this thread is inside a runtime. Guards may be dropped in any order.
pub struct Guard {
    number: u64,
    _shared: Arc<Shared>,
    /// `Sync` but not `Send`, as the guard of a mutex.
    stays_here: PhantomData<MutexGuard<'static, ()>>,
}

/// Enters a runtime; I/O and timers go to `core`'s driver.
pub(crate) fn enter_as(shared: &Arc<Shared>, core: &Core, role: Role) -> Guard {
    let mut entered = Entered { number: 0, shared: shared.clone(), core: core.index(), role, guards: None };
    entered.enter();
    // A thread that is ending has no list any more, and no outer runtime to return to.
    let number = ENTERED.try_with(|list| {
        let list = &mut list.borrow_mut().0;
        entered.number = list.last().map_or(0, |last| last.number + 1);
        let number = entered.number;
        list.push(entered);
        number
    });
    TLS.with(|tls| tls.shared.set(Arc::as_ptr(shared)));
    Guard { number: number.unwrap_or(0), _shared: shared.clone(), stays_here: PhantomData }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let gone = ENTERED.try_with(|list| leave(&mut list.borrow_mut().0, self.number));
        let innermost = gone.as_ref().map_or(ptr::null(), |(_, innermost)| *innermost);
        TLS.with(|tls| tls.shared.set(innermost));
        drop(gone); // may be the last of its runtime: not while the list is borrowed
    }
}

/// Takes one runtime out of the list, and makes the last one the innermost again.
fn leave(list: &mut Vec<Entered>, number: u64) -> (Option<Entered>, *const Shared) {
    let Some(at) = list.iter().position(|entered| entered.number == number) else {
        return (None, list.last().map_or(ptr::null(), |last| Arc::as_ptr(&last.shared)));
    };
    let mut above = list.split_off(at + 1);
    // The guards of `net` and `time` restore what was there before them, so they are dropped and made again in order.
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
    (gone, list.last().map_or(ptr::null(), |last| Arc::as_ptr(&last.shared)))
}

/// While it lives, this thread holds a core, and is inside its runtime.
pub(crate) struct HeldGuard {
    held: *const Core,
    task: *const Running,
    _no_output: OutputGuard,
    _inside: Guard,
}

/// Enters a runtime as the holder of `core`, which the caller has taken. Such guards are strictly nested.
pub(crate) fn enter_held(shared: &Arc<Shared>, core: &Core) -> HeldGuard {
    // A guest uses the driver of a worker.
    let inside = if core.is_guest() { shared.enter_as(Role::Worker) } else { enter_as(shared, core, Role::Worker) };
    schedule::hold(core);
    TLS.with(|tls| HeldGuard {
        held: tls.held.replace(core),
        task: tls.task.replace(ptr::null()),
        _no_output: leave_output(),
        _inside: inside,
    })
}

impl Drop for HeldGuard {
    fn drop(&mut self) {
        with_held(schedule::leave);
        TLS.with(|tls| {
            tls.held.set(self.held);
            tls.task.set(self.task);
        });
    }
}

/// While it lives, this thread counts as holding no core, although it holds one.
pub(crate) struct SetAside {
    held: *const Core,
}

/// Sets aside the core that this thread holds, if any, for code that may block and may call `block_on`.
pub(crate) fn set_aside() -> Option<SetAside> {
    with_held(|_| ())?;
    Some(TLS.with(|tls| SetAside { held: tls.held.replace(ptr::null()) }))
}

impl SetAside {
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: the core was held when `self` was made, so the guard of `enter_held` further out on this stack keeps
        // it alive.
        // Test: tests/tests/scheduling/block_in_place.rs `it_runs_on_the_callers_thread`.
        unsafe { &*self.held }
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        TLS.with(|tls| {
            tls.held.set(self.held);
        });
    }
}

/// While it lives, this thread polls as an external thread, or (from `leave_external`) does so no longer.
pub(crate) struct ExternalGuard {
    host: *const Shared,
    task: *const Running,
    _output: OutputGuard,
}

/// Marks this thread as one that polls the future of a `block_on` without a core. The caller keeps `shared` while the
/// guard lives.
pub(crate) fn enter_external(shared: &Arc<Shared>) -> ExternalGuard {
    TLS.with(|tls| ExternalGuard {
        host: tls.external_of.replace(Arc::as_ptr(shared)),
        task: tls.task.replace(ptr::null()), // of what is further out
        _output: leave_output(),
    })
}

/// Lets this thread block, if it is an external thread: it may call `block_on`.
pub(crate) fn leave_external() -> ExternalGuard {
    TLS.with(|tls| ExternalGuard {
        host: tls.external_of.replace(ptr::null()),
        task: tls.task.get(),
        _output: OutputGuard(tls.ended.get()),
    })
}

impl Drop for ExternalGuard {
    fn drop(&mut self) {
        TLS.with(|tls| {
            tls.external_of.set(self.host);
            tls.task.set(self.task);
        });
    }
}

/// Calls `f` with the runtime that this thread is an external thread of.
pub(crate) fn with_host<T>(f: impl FnOnce(&Shared) -> T) -> Option<T> {
    TLS.with(|tls| {
        // SAFETY: null, or set by `enter_external` from a reference that outlives the guard, which resets the cell.
        // Test: tests/tests/scheduling/block_in_place.rs
        // `in_block_on_of_a_current_thread_runtime_it_panics_whoever_runs_the_tasks`.
        unsafe { tls.external_of.get().as_ref() }.map(f)
    })
}

/// Whether this thread is polling a task or the future of a `block_on`, so that it must not block. False in a process
/// that was forked in such a poll: nothing waits for this thread there.
pub fn is_polling() -> bool {
    with_held(|core| core.shared().process.is_current()) == Some(true)
        || with_host(|shared| shared.process.is_current()) == Some(true)
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

/// While it lives, this thread drops the output of a task, or (from `leave_output`) does so no longer.
pub(crate) struct OutputGuard(*const Task);

/// Marks this thread as dropping the output of `task`, which has ended. The caller keeps the reference while the guard
/// lives.
pub(crate) fn enter_output(task: &Task) -> OutputGuard {
    TLS.with(|tls| OutputGuard(tls.ended.replace(task)))
}

/// For code that is no part of dropping an output, though a destructor of that output calls it.
pub(crate) fn leave_output() -> OutputGuard {
    TLS.with(|tls| OutputGuard(tls.ended.replace(ptr::null())))
}

impl Drop for OutputGuard {
    fn drop(&mut self) {
        TLS.with(|tls| tls.ended.set(self.0));
    }
}

/// The task that this thread polls, or whose future or output it drops. The future of a `block_on` is none.
pub fn task() -> Option<Id> {
    with_ended(Task::id).or_else(|| with_task(Running::id)).filter(|id| !mini_context::is_main(id.get()))
}

/// Whether `task` is the current [`task`](fn@task): the id alone does not say so, as two simulations have the same
/// ones.
pub(crate) fn is_current(task: &Task) -> bool {
    with_ended(|ended| ended.is(task)).or_else(|| with_task(|running| running.polls(task))) == Some(true)
}

/// The name of the current [`task`].
pub fn task_name() -> Option<Arc<str>> {
    with_ended(|task| task.name().cloned()).unwrap_or_else(|| with_task(Running::name).flatten())
}

/// Calls `f` with the task whose output this thread drops.
fn with_ended<T>(f: impl FnOnce(&Task) -> T) -> Option<T> {
    TLS.with(|tls| {
        // SAFETY: null, or set by `enter_output` from a reference that outlives the guard, which resets the cell.
        // Test: tests/tests/tasks/tasks.rs `an_output_is_dropped_by_its_own_task`.
        unsafe { tls.ended.get().as_ref() }.map(f)
    })
}

/// Calls `f` with the task this thread polls.
pub(crate) fn with_task<T>(f: impl FnOnce(&Running) -> T) -> Option<T> {
    TLS.with(|tls| {
        // SAFETY: null, or set by `enter_task` from a reference that outlives the guard, which resets the cell.
        // Test: tests/tests/tasks/tasks.rs `ids_are_those_of_the_running_task`.
        unsafe { tls.task.get().as_ref() }.map(f)
    })
}

/// Marks this blocking thread as one of the runtime's, while it runs `job`, which contains its panics.
pub(crate) fn serve(shared: &Arc<Shared>, job: impl FnOnce()) {
    let _inside = shared.enter_as(Role::Worker);
    job();
}

/// Whether this thread holds a core of `shared`, or runs a job of it, now or further out on its stack.
pub fn is_working_for(shared: &Shared) -> bool {
    let is_it = |entered: &Entered| ptr::eq(&raw const *entered.shared, shared) && entered.role == Role::Worker;
    // A thread that is ending has no list any more.
    held_of(shared).is_some() || ENTERED.try_with(|list| list.borrow().0.iter().any(is_it)).unwrap_or(false)
}

/// Calls `f` with the runtime this thread is inside of.
pub fn with_shared<T>(f: impl FnOnce(&Arc<Shared>) -> T) -> Option<T> {
    let shared = TLS.with(|tls| tls.shared.get());
    if shared.is_null() {
        return None;
    }
    // SAFETY: the pointer came from `Arc::as_ptr`, and as long as it is set, the list or a guard holds the `Arc`.
    // The count is not touched: `ManuallyDrop` gives back what this borrows.
    // Test: tests/tests/runtimes/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    let shared = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(shared) });
    Some(f(&shared))
}

/// The `Shared` of the runtime that this thread is inside of.
///
/// # Panics
///
/// If there is none, at the line of the caller of `call`.
#[track_caller]
pub fn shared(call: &str) -> Arc<Shared> {
    match with_shared(Arc::clone) {
        Some(shared) => shared,
        None => missing(call),
    }
}

/// Refuses a call outside of a runtime.
#[cold]
#[track_caller]
pub fn missing(call: &str) -> ! {
    panic!(
        "{call} needs a mini runtime, and this thread is not inside one: call it from a task, under #[mini::main], \
         inside mini::block_on, or while the guard of Runtime::enter lives"
    )
}

/// The core this thread holds, as an address to compare with.
pub fn held() -> *const Core {
    TLS.with(|tls| tls.held.get())
}

/// Calls `f` with the core this thread holds.
pub fn with_held<T>(f: impl FnOnce(&Core) -> T) -> Option<T> {
    // SAFETY: null, or set by `enter_held` from a core whose `Shared` the guard keeps alive; such guards are nested.
    // Test: tests/tests/runtimes/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    unsafe { held().as_ref() }.map(f)
}

/// The core of `shared` that this thread holds.
#[inline]
pub fn held_of(shared: &Shared) -> Option<&Core> {
    // SAFETY: null, or set by `enter_held` from a core whose `Shared` the guard keeps alive; such guards are nested.
    // One that belongs to `shared` is a part of it, so it lives as long as the reference to `shared`.
    // Test: tests/tests/runtimes/runtimes.rs `a_guard_restores_the_runtime_it_replaced`.
    unsafe { held().as_ref() }.filter(|core| core.belongs_to(shared))
}

/// Whether this thread polls a task just now.
pub(crate) fn is_in_task() -> bool {
    TLS.with(|tls| !tls.task.get().is_null())
}
