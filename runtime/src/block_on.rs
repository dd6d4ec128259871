//! Driving a future to its end on the calling thread.
//!
//! The thread takes a core and works as its worker, so that the future pays no hop to another thread per message. If
//! all cores are taken it is a guest (see `seat.rs`): it polls the future itself, parks in between, and takes a core as
//! soon as one is free.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::context;
use crate::core::Core;
use crate::pool::Pool;
use crate::worker::{Root, Stop, Worker};

/// How long a thread waits for a keeper to leave before it begins to poll its future as a guest.
const PATIENCE: Duration = Duration::from_millis(2);

/// Runs `future` on `pool` and returns its output.
#[track_caller]
pub(crate) fn block_on<F: Future>(pool: &Arc<Pool>, future: F) -> F::Output {
    refuse_inside_worker();
    let mut future = pin!(Some(future));
    let free = pool.cores.iter().find(|core| core.seat.try_take());
    match free {
        Some(core) => work(pool, core, future.as_mut()),
        None => be_guest(pool, future.as_mut()),
    }
}

/// Panics on a thread that runs tasks.
#[track_caller]
pub(crate) fn refuse_inside_worker() {
    assert!(
        context::held().is_null(),
        "block_on inside a task (or inside another block_on) would stop the worker that runs it; `.await` the future, \
         or call block_on in mini::spawn_blocking"
    );
}

/// Drops the future while the runtime is still entered.
struct DropInside<'a, F>(Pin<&'a mut Option<F>>);

impl<F> Drop for DropInside<'_, F> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl<F: Future> DropInside<'_, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().as_pin_mut().expect("polled until ready only").poll(cx)
    }
}

/// Works on `core`, whose seat has been taken, until the future is ready.
#[track_caller]
fn work<F: Future>(pool: &Arc<Pool>, core: &Core, future: Pin<&mut Option<F>>) -> F::Output {
    let mut worker = Worker::new(pool, core);
    let root = Root::new(core);
    let waker = Waker::from(root.clone());
    worker.attach(root);
    waker.wake_by_ref();
    let mut future = DropInside(future);
    let mut output = None;
    let mut poll_root = || match future.poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(value) => {
            output = Some(value);
            true
        }
        Poll::Pending => false,
    };
    while worker.drive(&mut poll_root) != Stop::Done {
        worker.close(); // the runtime shuts down; the future may still come to its end
    }
    drop(future);
    output.expect("the loop ends when the future is ready")
}

/// Wakes a guest.
struct Guest {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Guest {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Polls the future beside the workers until it is ready or a core is free.
#[track_caller]
fn be_guest<F: Future>(pool: &Arc<Pool>, mut future: Pin<&mut Option<F>>) -> F::Output {
    let core = &pool.cores[0];
    let thread = thread::current();
    let guest = Arc::new(Guest { thread: thread.clone(), woken: AtomicBool::new(true) });
    let waker = Waker::from(guest.clone());
    {
        let _inside = pool.enter();
        let waiting = Waiting { core, thread: &thread };
        let mut polled = DropInside(future.as_mut());
        let mut taken = take_from_keeper(core, &thread);
        while !taken {
            if guest.woken.swap(false, Acquire) {
                core.seat.leave(&thread); // the poll may be long: the keeper need not wait for it
                if let Poll::Ready(output) = polled.poll(&mut Context::from_waker(&waker)) {
                    return output;
                }
            }
            taken = core.seat.take_or_wait(&thread);
            if !taken {
                core.bell.ring(); // its keeper, if it has one, then sees that it is wanted
                if !guest.woken.load(Relaxed) {
                    thread::park();
                }
            }
        }
        std::mem::forget((polled, waiting)); // the future goes on, on the core
    }
    work(pool, core, future)
}

/// Asks the keeper of `core`, if one works there, for its place, and gives it a moment to leave.
fn take_from_keeper(core: &Core, thread: &Thread) -> bool {
    if core.seat.take_or_wait(thread) {
        return true;
    }
    if !core.seat.is_kept() {
        return false;
    }
    core.bell.ring();
    thread::park_timeout(PATIENCE); // no longer: it may be in a long poll
    core.seat.take_or_wait(thread)
}

/// Tells the seat that a guest does not wait any more.
struct Waiting<'a> {
    core: &'a Core,
    thread: &'a Thread,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.core.seat.leave(self.thread);
    }
}
