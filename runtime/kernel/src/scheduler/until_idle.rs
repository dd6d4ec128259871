//! `UntilIdle`: the callers that wait until nothing is left to do.
//!
//! `Runtime::run_until_idle` asks; the workers answer, each of which checks before it waits. While a thread asks, no
//! wait is longer than [`RECHECK`], because some events unpark no worker: a worker that ends the last task and leaves
//! its core at once, a last job, an abort handle that is dropped. While no thread asks, all this is one load.
//!
//! # That nothing is left
//!
//! The counts are read one after the other, and a task may begin another where it was counted already. So the number of
//! all tasks and jobs that have ever begun is read before and after. If it is the same, none has begun in between, the
//! number of live tasks has only fallen, and each zero has stayed zero. (A job counts as in flight before it counts as
//! begun; the task that queues it is alive until both are done. For tasks both are one count, or under one lock.)
//!
//! A task that has ended no longer counts as alive while its output is still being handed over or dropped, which may
//! spawn. So all other workers must be parked too, and then no task must have begun before they were.
//!
//! Threads in `block_on` of a `multi_thread` runtime have no bit among those of workers: what such a thread begins
//! after its last local task has counted as ended, while it drops an output, may not be waited for.
//!
//! # Lost tasks
//!
//! A task that waits and has no waker is never polled again: no reference to it is left except those of the runtime and
//! the join handle. That stays so, hence tasks may be examined one after the other, as a dump does (`task/sight.rs`);
//! with the numbers above unchanged, all remaining tasks are lost at the same time. A part of the count of references
//! belongs to the thread that polls the task, so no worker may poll anything meanwhile. A task with an abort handle is
//! not found, as the count does not distinguish the handle from a waker; nor are local tasks of other threads, where
//! the system lacks a fence for looking at them (`task/owned.rs`).
//!
//! Rejected: a check at each end of a task (an instruction and a branch more in each, for few programs).

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::Duration;

use crate::primitives::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, fence};
use crate::primitives::{Mutex, lock};
use crate::scheduler::core::Core;
use crate::scheduler::current;
use crate::scheduler::shared::Shared;
use crate::scheduler::shutdown::LeftTask;
use crate::task::Task;
use crate::task::owned::Seats;

/// How long a worker waits at most while somebody asks. A hundred checks a second cost nothing, and nobody notices when
/// a program ends that much later.
pub(crate) const RECHECK: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(crate) struct UntilIdle {
    askers: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    wakers: Vec<Waker>,
    /// What was found, if all that is left is lost.
    lost: Vec<LeftTask>,
    /// How many have asked so far: what was found before the last one asked is not for it.
    asked: u64,
}

/// Somebody asks, until this is dropped.
pub struct Asking<'a>(&'a Shared);

impl UntilIdle {
    /// Whether anybody asks.
    pub(crate) fn is_asked(&self) -> bool {
        self.askers.load(Relaxed) > 0
    }

    /// How many have asked so far.
    pub(crate) fn asked(&self) -> u64 {
        lock(&self.waiting).asked
    }

    /// It is so, and was not before `asked` had asked: nothing is alive, or `lost` is all that is left.
    pub(crate) fn tell(&self, asked: u64, lost: Vec<LeftTask>) {
        let mut waiting = lock(&self.waiting);
        if asked != waiting.asked {
            return; // the worker checks again soon
        }
        waiting.lost = lost;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl<'a> Asking<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        let mut waiting = lock(&shared.until_idle.waiting);
        shared.until_idle.askers.fetch_add(1, Relaxed);
        waiting.asked += 1;
        let _stale = std::mem::take(&mut waiting.lost); // a caller that has not taken it yet is told once more
        drop(waiting);
        // A worker that has parked before waits without a limit, and must check.
        for core in shared.all_cores() {
            core.unparker.unpark();
        }
        Self(shared)
    }

    /// The tasks that are lost, if nothing else is left; else leaves the waker. For a `poll_fn`.
    pub fn poll(&self, waker: &Waker) -> Option<Vec<LeftTask>> {
        let waker = waker.clone();
        let mut waiting = lock(&self.0.until_idle.waiting);
        let lost = std::mem::take(&mut waiting.lost);
        if !lost.is_empty() {
            return Some(lost);
        }
        if !waiting.wakers.iter().any(|other| other.will_wake(&waker)) {
            waiting.wakers.push(waker);
        }
        drop(waiting);
        let own = current::held_of(self.0).map(Core::index);
        self.0.has_nothing_left(own).then(Vec::new)
    }
}

/// The last one takes along what is left here: a waker that stayed would keep the runtime alive, of which this is a
/// part.
impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let UntilIdle { askers, waiting, .. } = &self.0.until_idle;
        let mut waiting = lock(waiting);
        if askers.fetch_sub(1, Relaxed) == 1 {
            let _left = (std::mem::take(&mut waiting.wakers), std::mem::take(&mut waiting.lost));
            drop(waiting);
        }
    }
}

impl Shared {
    /// Whether no task is alive, no blocking job is running or queued, and no worker is up but maybe `own`.
    pub(crate) fn has_nothing_left(&self, own: Option<usize>) -> bool {
        let begun = self.begun();
        // In this order: what a worker has begun before it parked counts.
        self.blocking.in_flight() == 0 && self.alive() == 0 && self.idle.are_all_through(own) && self.begun() == begun
    }

    /// The tasks that are left, if nobody can wake any of them.
    pub(crate) fn all_lost(&self) -> Option<Vec<LeftTask>> {
        let before = self.at_rest()?;
        let (lost, all) = (RefCell::new(Vec::new()), Cell::new(true));
        let look = |task: &Task| {
            all.set(all.get() && task.is_lost());
            if all.get() {
                lost.borrow_mut().push(LeftTask::new(task));
            }
        };
        let look_at_part = |part: &Seats<'_, Task>| {
            part.each(look);
            all.get()
        };
        for core in self.all_cores() {
            core.each_part(look_at_part, |more| lost.borrow_mut().reserve(more));
        }
        let lost = lost.into_inner();
        (all.get() && !lost.is_empty() && lost.len() == self.alive() && self.at_rest() == Some(before)).then_some(lost)
    }

    /// How much has begun and happened so far, if no thread polls tasks just now and no job is out.
    fn at_rest(&self) -> Option<[u64; 2]> {
        let rests = |guest: &Core| guest.unparker.is_parked() || guest.owned_left() == 0;
        let is_at_rest = self.blocking.in_flight() == 0 && self.idle.are_all_through(None) && self.guests().all(rests);
        fence(Acquire); // in this order, as in `has_nothing_left`: pairs with the Release of a guest that parks
        let progress = || self.all_cores().map(|core| core.counts.progress()).fold(0, u64::wrapping_add);
        is_at_rest.then(|| [self.begun(), progress()])
    }

    /// How many tasks and jobs have ever begun.
    pub(crate) fn begun(&self) -> u64 {
        self.blocking.begun() + self.all_cores().map(Core::begun).sum::<u64>()
    }

    /// How many tasks are alive.
    pub(crate) fn alive(&self) -> usize {
        self.all_cores().map(Core::alive).sum()
    }
}
