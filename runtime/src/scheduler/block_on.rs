//! Driving a future to its end on the calling thread.
//!
//! In a `current_thread` runtime the thread takes the core and works there, so that no message has to cross to another
//! thread. If another thread holds it, this one is an external thread: it polls the future itself, parks in between,
//! and takes the core once it is free. In a `multi_thread` runtime the thread is a guest (`guests.rs`): shared tasks
//! run on the worker threads.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use mini_context::WakerOf;

use crate::insight::OnPanic;
use crate::primitives::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::primitives::lock;
use crate::recorder::Then;
use crate::scheduler::context;
use crate::scheduler::core::Core;
use crate::scheduler::parker::Parker;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::{MainSight, MainTask, Stop, Worker};
use crate::task::local::hidden::hide;

/// The future given to `block_on`. Called with a waker it polls the future and says whether that is ready; called
/// without one it drops the future.
///
/// All generic code is behind it, so the rest of this module is compiled once, with the runtime.
pub(crate) type MainFuture<'a> = dyn FnMut(Option<&Waker>) -> bool + 'a;

/// Runs `future` on `shared` and returns its output.
#[track_caller]
pub(crate) fn block_on<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    let mut future = pin!(Some(future));
    let (mut output, id) = (None, mini_context::new_main());
    run(shared, id, &mut |waker| {
        let Some(waker) = waker else {
            future.set(None);
            return true;
        };
        mini_context::begin_poll(id);
        #[cfg(feature = "sim")]
        crate::sim::preempt::begin_poll();
        let _polling = EndPoll; // a panic passes through
        let polled =
            future.as_mut().as_pin_mut().expect("polled until ready only").poll(&mut Context::from_waker(waker));
        match polled {
            Poll::Ready(value) => {
                output = Some(value);
                true
            }
            Poll::Pending => false,
        }
    });
    output.expect("it runs until the future is ready")
}

/// Dropped when the poll is over.
struct EndPoll;

impl Drop for EndPoll {
    fn drop(&mut self) {
        mini_context::end_poll();
    }
}

/// Runs the future to its end, and drops it.
#[track_caller]
fn run(shared: &Arc<Shared>, id: u64, given: &mut MainFuture<'_>) {
    shared.process.check("block_on");
    refuse_inside_worker("block_on");
    // This thread may be inside a poll of another executor, whose notes and deadline are not those of the tasks here.
    let _outer = (mini_context::set_poll_aside(), mini_context::set_due(None));
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
pub(crate) fn refuse_inside_worker(call: &str) {
    let is_polling = context::is_polling();
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

/// Drops the future while the runtime is still entered.
struct DropInside<'a, 'b>(&'a mut MainFuture<'b>);

impl Drop for DropInside<'_, '_> {
    fn drop(&mut self) {
        (self.0)(None);
    }
}

/// Works on `core`, whose ownership has been taken, until the future is ready. That is inside of the scopes of
/// task-local values that the caller is inside of; tasks are not.
#[track_caller]
fn work(shared: &Arc<Shared>, core: &Core, id: u64, given: &mut MainFuture<'_>) {
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
fn work_outside(shared: &Arc<Shared>, core: &Core, id: u64, given: &mut MainFuture<'_>) {
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
    let main = MainTask::new(core, id);
    let waker = Waker::from(main.clone());
    mini_context::set_waker(WakerOf::Main, waker.vtable());
    let recorded = core.probe.as_ref().map(|probe| (probe, main.clone()));
    worker.attach(main);
    waker.wake_by_ref();
    let given = DropInside(given);
    let is_done = match recorded {
        None => finish(&mut worker, given.0, &waker),
        // Around the future, so that the worker asks nobody whether it is recorded.
        Some((probe, main)) => finish(
            &mut worker,
            &mut |waker| {
                probe.begin(id, !core.take_left_out());
                let is_ready = (given.0)(waker);
                probe.end(if is_ready { Then::Ended } else { main.then() });
                is_ready
            },
            &waker,
        ),
    };
    drop(given); // before the unwinding, in which a panic would end the process
    if !is_done {
        std::panic::resume_unwind(Box::new("the simulation cannot continue"));
    }
}

/// Works until the future is ready. Says so, or that a simulation cannot go on.
fn finish(worker: &mut Worker<'_>, given: &mut MainFuture<'_>, waker: &Waker) -> bool {
    loop {
        match worker.drive(given, waker) {
            Stop::Done => return true,
            Stop::Halted => return false,
            Stop::Closing => worker.close(), // the future may still come to its end
        }
    }
}

/// Wakes an external thread.
struct External {
    parker: Arc<Parker>,
    woken: AtomicBool,
}

impl Wake for External {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, AcqRel) {
            self.parker.unpark();
        }
    }
}

/// Polls the future without the core until it is ready, or the core is free: then it is taken, and `true` returned.
#[track_caller]
fn wait_for_core(shared: &Arc<Shared>, core: &Core, id: u64, given: &mut MainFuture<'_>) -> bool {
    let told = OnPanic::new(shared);
    told.begin();
    let parker = Parker::new();
    let external = Arc::new(External { parker: parker.clone(), woken: AtomicBool::new(true) });
    let waker = Waker::from(external.clone());
    mini_context::set_waker(WakerOf::External, waker.vtable());
    let _inside = shared.enter();
    let seen = Seen::new(shared, id);
    let waiting = Waiting { core, parker: &parker };
    let _polling = context::enter_external(shared); // until the future is dropped
    let polled = DropInside(&mut *given);
    loop {
        if external.woken.swap(false, Acquire) {
            seen.sight.wait.clear();
            if (polled.0)(Some(&waker)) {
                return false;
            }
            seen.sight.wait.fill(mini_context::notes(), false, || id);
            shared.process.check("returning from a poll");
        }
        if core.ownership.take_or_wait(&parker) {
            std::mem::forget((polled, waiting)); // the future goes on, on the core
            return true;
        }
        if !external.woken.load(Relaxed) {
            parker.park();
        }
    }
}

/// While it lives, dumps tell of the future of an external thread.
struct Seen<'a> {
    shared: &'a Shared,
    sight: Arc<MainSight>,
}

impl<'a> Seen<'a> {
    fn new(shared: &'a Shared, id: u64) -> Self {
        let sight = Arc::new(MainSight::default());
        sight.begin(id, Weak::new());
        lock(&shared.externals).push(sight.clone());
        Self { shared, sight }
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        lock(&self.shared.externals).retain(|sight| !Arc::ptr_eq(sight, &self.sight));
    }
}

/// Tells the ownership that an external thread does not wait any more.
struct Waiting<'a> {
    core: &'a Core,
    parker: &'a Arc<Parker>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.core.ownership.leave(self.parker);
    }
}
