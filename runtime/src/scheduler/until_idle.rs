//! `UntilIdle`: who waits until nothing is left to do.
//!
//! Asked by `Runtime::run_until_idle`; told by a worker each time before it waits. While nobody asks, that is one load.
//!
//! # Why the last end is not missed
//!
//! ```text
//! who waits                                worker
//! A1 leave the waker, set `is_asked`       B1 a task ends, or a job
//! A2 SeqCst fence                          B2 SeqCst fence (`ParkedSet::park`)
//! A3 count what is alive; if some, wait    B3 if `is_asked`: count; if none, wake
//! ```
//!
//! The fences are ordered: either B3 sees A1, or A3 sees B1. The worker that ends the last task comes to its wait. The
//! last job unparks core 0, whose worker is the one that waits here, or passes B3 on its way to the next wait; if it has
//! none, `run_until_idle` has taken it.
//!
//! # Lost tasks
//!
//! A task that waits and of which nobody has a waker is never polled again. Only the owner of its core may read the
//! count of its references, so they are found where all tasks have one owner, in a `current_thread` runtime. A task of
//! which somebody has an abort handle is not among them, as the count does not tell that from a waker.
//!
//! Rejected: a look at each end of a task (an instruction and a branch more in each, for what few programs ask).

use std::task::Waker;

use crate::scheduler::shared::Shared;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::sync::{Mutex, lock};
use crate::task::Task;

#[derive(Debug, Default)]
pub(crate) struct UntilIdle {
    is_asked: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    wakers: Vec<Waker>,
    /// What was found, if all that is left is lost.
    lost: Vec<Task>,
}

impl UntilIdle {
    /// A1, A2.
    fn ask(&self, waker: &Waker) {
        let wakers = &mut lock(&self.waiting).wakers;
        if !wakers.iter().any(|other| other.will_wake(waker)) {
            wakers.push(waker.clone());
        }
        self.is_asked.store(true, Relaxed);
        fence(SeqCst);
    }

    /// A waker that stayed here would keep the runtime alive, of which this is a part.
    fn forget(&self, waker: &Waker) {
        lock(&self.waiting).wakers.retain(|other| !other.will_wake(waker));
    }

    /// Whether anybody waits. After a fence.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Relaxed)
    }

    /// It is so: nothing is alive, or `lost` is all that is left.
    pub(crate) fn tell(&self, lost: Vec<Task>) {
        let mut waiting = lock(&self.waiting);
        self.is_asked.store(false, Relaxed);
        waiting.lost = lost;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Shared {
    /// Whether no task is alive and no blocking job is running or queued.
    pub(crate) fn has_nothing_left(&self) -> bool {
        self.blocking.in_flight() == 0 && self.cores.iter().all(|core| core.alive() == 0)
    }

    /// The tasks that are lost, if nothing else is left; else leaves the waker. For a `poll_fn`.
    pub(crate) fn poll_idle(&self, waker: &Waker) -> Option<Vec<Task>> {
        let lost = std::mem::take(&mut lock(&self.until_idle.waiting).lost);
        if lost.is_empty() {
            self.until_idle.ask(waker);
            if !self.has_nothing_left() {
                return None;
            }
        }
        self.until_idle.forget(waker);
        Some(lost)
    }
}
