//! Driving a future to its end on the calling thread.
//!
//! In a `current_thread` runtime the thread takes the core and works there, so that no message has to cross to another
//! thread. In a `multi_thread` runtime the thread is a guest (`guests.rs`): shared tasks run on the worker threads.
//! Either way the future is a task of that core (`task/main.rs`).
//!
//! A thread polls its future itself, and parks in between, while another thread holds the core of its `current_thread`
//! runtime, and after the core was closed: it is an external thread.

use std::cell::Cell;
use std::panic::{Location, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use mini_context::{WakerOf, contain};

use crate::primitives::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::primitives::lock;
use crate::scheduler::core::Core;
use crate::scheduler::current;
use crate::scheduler::parker::Parker;
use crate::scheduler::shared::Shared;
use crate::scheduler::unparker::ParkedIn;
use crate::scheduler::worker::{Stop, Worker};
use crate::task::hide;
use crate::task::main::{MainFuture, run_main};
use crate::task::{Id, LastWait, WaitSlot};

/// Runs `future` on `shared` and returns its output.
#[track_caller]
pub fn block_on<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    let mut future = pin!(Some(future));
    let mut output = None;
    run(shared, &mut |waker| {
        let Some(waker) = waker else {
            future.set(None);
            return true;
        };
        let future = future.as_mut().as_pin_mut().expect("polled until ready only");
        match future.poll(&mut Context::from_waker(waker)) {
            Poll::Ready(value) => {
                output = Some(value);
                true
            }
            Poll::Pending => false,
        }
    });
    output.expect("it runs until the future is ready")
}

/// Runs the future to its end, and drops it.
#[track_caller]
fn run(shared: &Arc<Shared>, given: &mut MainFuture<'_>) {
    shared.process.check("block_on");
    refuse_inside_worker("block_on");
    // This thread may be inside a poll of another executor, whose notes and deadline are not those of the tasks here.
    let _outer = (mini_context::set_poll_aside(), mini_context::set_due(None));
    let id = Id::of_main();
    if shared.is_multi_thread() {
        return work(shared, shared.take_guest(), id, given);
    }
    let core = &shared.cores[0];
    if core.ownership.try_take() || wait_for_core(shared, core, id, given) {
        work(shared, core, id, given);
    }
}

/// Panics on a thread that runs tasks, and in the future given to a `block_on`, but not in a child process that one of
/// these has forked.
#[track_caller]
pub fn refuse_inside_worker(call: &str) {
    let is_polling = current::is_polling();
    assert!(
        !is_polling || !mini_context::sim::is_simulated(),
        "{call} would block the only thread of the simulation for ever, as jobs of spawn_blocking run on it too: \
         `.await` the future in a task instead"
    );
    assert!(
        !is_polling,
        "{call} inside a task (or inside another block_on) would stop the worker that runs it; `.await` the future, \
         or call {call} in mini::spawn_blocking"
    );
}

/// Tells observers and layers of a panic that drops it after the [begin](Self::begin) of the future.
struct OnPanic<'a> {
    shared: &'a Shared,
    has_begun: Cell<bool>,
    was_panicking: bool,
}

impl<'a> OnPanic<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self { shared, has_begun: Cell::new(false), was_panicking: thread::panicking() }
    }

    fn begin(&self) {
        self.has_begun.set(true);
    }
}

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if !thread::panicking() || self.was_panicking || !self.has_begun.get() {
            return;
        }
        for observer in &self.shared.config.observers {
            observer.ended(self.shared);
        }
        self.shared.extension.main_panicked(self.shared);
    }
}

/// Drops the future while the runtime is still entered.
struct DropInside<'a, 'b>(&'a mut MainFuture<'b>);

impl Drop for DropInside<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            contain(|| (self.0)(None)); // a second panic would end the process
        } else {
            (self.0)(None);
        }
    }
}

/// Works on `core`, whose ownership has been taken, until the future is ready. That is inside of the scopes of
/// task-local values that the caller is inside of; tasks are not.
#[track_caller]
fn work(shared: &Arc<Shared>, core: &Core, id: Id, given: &mut MainFuture<'_>) {
    let mut hidden = hide();
    if hidden.is_empty() {
        return work_outside(shared, core, id, given);
    }
    work_outside(shared, core, id, &mut |waker| {
        let _shown = hidden.show();
        given(waker)
    });
}

#[track_caller]
fn work_outside(shared: &Arc<Shared>, core: &Core, id: Id, given: &mut MainFuture<'_>) {
    let told = OnPanic::new(shared);
    let mut worker = match Worker::new(shared, core) {
        Ok(worker) => worker,
        Err(thread) => {
            let _inside = shared.enter();
            drop(DropInside(given));
            panic!("tasks made by spawn_local bind this runtime to {thread:?}: call block_on there");
        }
    };
    told.begin();
    worker.is_in_block_on = true;
    let given = DropInside(given);
    let stop = run_main(core, id, Location::caller(), given.0, |is_done| worker.drive(is_done));
    if stop == Stop::Closing {
        worker.close();
        worker.announce_wait(ParkedIn::Condvar); // until the call returns
        External::new(shared, id).poll(given.0, || false); // it may still come to its end
    }
    drop(given); // before the unwinding, in which a panic would end the process
    if stop == Stop::Halted {
        resume_unwind(Box::new("the simulation cannot continue"));
    }
}

/// Polls the future without the core until it is ready, or the core is free: then it is taken, and `true` returned.
#[track_caller]
fn wait_for_core(shared: &Arc<Shared>, core: &Core, id: Id, given: &mut MainFuture<'_>) -> bool {
    let told = OnPanic::new(shared);
    told.begin();
    let external = External::new(shared, id);
    let _inside = shared.enter();
    let _polling = current::enter_external(shared); // until the future is dropped
    let polled = DropInside(&mut *given);
    let is_taken = external.poll(polled.0, || core.ownership.take_or_wait(&external.thread.parker));
    if is_taken {
        std::mem::forget(polled); // the future goes on, on the core
    }
    is_taken
}

/// A thread in `block_on` that polls its future itself, and may wait for the core of a `current_thread` runtime. While
/// it lives, dumps tell of that.
struct External<'a> {
    shared: &'a Shared,
    thread: Arc<ExternalThread>,
}

/// What wakes it, and what others see of it.
pub struct ExternalThread {
    id: Id,
    wait: WaitSlot,
    parker: Arc<Parker>,
    woken: AtomicBool,
}

impl<'a> External<'a> {
    fn new(shared: &'a Shared, id: Id) -> Self {
        let (wait, parker, woken) = (WaitSlot::new(), Parker::new(), AtomicBool::new(true));
        let thread = Arc::new(ExternalThread { id, wait, parker, woken });
        lock(&shared.externals).push(thread.clone());
        Self { shared, thread }
    }

    /// Polls the future when it is woken, until it is ready. In between `is_over` may end that; says whether it has.
    fn poll(&self, given: &mut MainFuture<'_>, is_over: impl Fn() -> bool) -> bool {
        let ExternalThread { id, wait, parker, woken } = &*self.thread;
        let waker = Waker::from(self.thread.clone());
        mini_context::set_waker(WakerOf::External, waker.vtable());
        loop {
            if woken.swap(false, Acquire) {
                wait.clear();
                mini_context::begin_poll(id.get());
                let _polling = EndPoll; // a panic passes through
                if given(Some(&waker)) {
                    return false;
                }
                wait.fill(mini_context::notes(), false, || id.get());
                self.shared.process.check("returning from a poll");
            }
            if is_over() {
                return true;
            }
            self.shared.config.hooks.before_park();
            if !woken.load(Relaxed) {
                parker.park();
            }
            self.shared.config.hooks.after_park();
        }
    }
}

impl Drop for External<'_> {
    fn drop(&mut self) {
        if !self.shared.process.is_current() {
            return; // threads of the parent may have the locks
        }
        self.shared.cores[0].ownership.leave(&self.thread.parker);
        lock(&self.shared.externals).retain(|thread| !Arc::ptr_eq(thread, &self.thread));
    }
}

impl ExternalThread {
    /// The id of the future, and what it waits for, if its last poll was pending. It is cleared before each poll.
    pub fn wait(&self) -> Option<(u64, LastWait)> {
        Some((self.id.get(), self.wait.get(self.id.get())?))
    }

    pub fn wait_slot(&self) -> &WaitSlot {
        &self.wait
    }
}

impl Wake for ExternalThread {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, AcqRel) {
            self.parker.unpark();
        }
    }
}

/// Dropped when the poll is over.
struct EndPoll;

impl Drop for EndPoll {
    fn drop(&mut self) {
        mini_context::end_poll();
    }
}
