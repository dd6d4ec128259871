//! The one rule by which a parked worker is woken: when work has waited, or will have to wait, for longer than a wake
//! costs.
//!
//! This is the ski rental problem: to let a task wait costs as long as it waits, to wake another worker costs
//! [`WAKE_COST`] once. A skier who buys skis once the rent paid has reached their price pays at most twice the best,
//! whatever comes (Karlin, Manasse, Rudolph, Sleator, "Competitive snoopy caching", 1988). If the length of the wait is
//! known, decide at once. So a parked worker is woken
//!
//! 1. by a worker in whose queue tasks have waited for that long, always behind another task
//!    ([`Queueing::has_lasted`]), or whose driver check or wait has brought tasks that will wait for that long, by its
//!    mean poll lately ([`will_last`]),
//! 2. by a worker that begins a poll known to take longer, while tasks wait, or that queues tasks in such a poll or in
//!    a stall ([`Shared::wake_early`]),
//! 3. by the monitor, for a worker in a poll that was not known to be long (`monitor.rs`),
//! 4. by a thread that queues work for any worker while all workers are parked, or all that are up are in such polls
//!    ([`Shared::inject`]).
//!
//! A worker that was woken for work and has found more than it can poll at once wakes the next
//! ([`Worker`](super::worker::Worker)), so that many workers do not start one after the other. While a worker searches
//! none is woken: the searcher will find the work.
//!
//! Tasks whose polls take less than it costs to move them ([`MOVE_COST`]) are worth no second worker, however long they
//! run: three tasks that yield after 60 ns ran half as often on two workers as on one.
//!
//! Rejected: an estimate of how long queued tasks will wait, by the mean of the polls before them, whenever one is
//! queued. A burst of short tasks is spawned in one long poll, and its mean says nothing about them. Tasks that events
//! wake, in contrast, resemble those that earlier events woke.

use mini_context::rules::{MOVE_COST, WAKE_COST};

use crate::primitives::HAS_TIME;
use crate::primitives::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker;
use crate::task::{Class, Queued};

/// Since when tasks wait in the queue of a worker that polls others before them.
#[derive(Debug, Default)]
pub(super) struct Queueing {
    /// The time and the number of the poll at which waiting tasks were first seen.
    since: Option<(u64, u64)>,
}

impl Queueing {
    /// At a moment in which `waiting` tasks are queued, one of which is polled next: says whether the others have
    /// waited for long enough to wake a worker for them. If so, their time starts anew.
    pub(super) fn has_lasted(&mut self, waiting: usize, now: u64, polls: u64) -> bool {
        if waiting <= 1 {
            self.since = None;
            return false;
        }
        let (begin, first) = *self.since.get_or_insert((now, polls));
        let time = now.saturating_sub(begin);
        if time < WAKE_COST {
            return false;
        }
        self.since = Some((now, polls));
        time >= MOVE_COST.saturating_mul(polls.wrapping_sub(first))
    }

    /// The queue was empty.
    pub(super) fn end(&mut self) {
        self.since = None;
    }
}

/// Whether the last of `waiting` tasks will wait for long enough to wake a worker for it, if a poll takes `mean_poll`.
pub(super) fn will_last(waiting: usize, mean_poll: u64) -> bool {
    mean_poll >= MOVE_COST && mean_poll.saturating_mul(waiting.saturating_sub(1) as u64) >= WAKE_COST
}

impl Shared {
    /// Leaves a woken task for any worker, and wakes a worker if none that is up will come to the task soon.
    pub(crate) fn inject(&self, task: Queued) {
        self.injector(Class::Woken).push(task);
        if self.lacks_worker() {
            self.wake_one();
        }
    }

    /// Whether no worker that is up comes to new work soon: all are parked, or all that are up are stuck.
    pub(crate) fn lacks_worker(&self) -> bool {
        self.idle.must_wake() || self.monitor.has_stuck() && self.idle.up().all(|worker| self.cores[worker].is_stuck())
    }

    /// Called by the owner of `core` after a task was queued there: in a poll known to be long, another worker is
    /// woken, once.
    ///
    /// A single task is left to the owner, which polls it next, unless the current poll is longer than the time between
    /// two driver checks. In a poll that the monitor has found to be a stall, which may last for any time, each task
    /// wakes a worker.
    #[inline]
    pub(crate) fn wake_early(&self, core: &Core) {
        if core.poll.wakes_early.load(Relaxed) || core.poll.is_stalled.load(Relaxed) {
            self.wake_in_poll(core);
        }
    }

    #[cold]
    fn wake_in_poll(&self, core: &Core) {
        let is_worth_it = core.shared_len() > 1 || core.is_stuck();
        if is_worth_it && self.idle.is_someone_parked() && self.wake_for_work() {
            core.poll.wakes_early.store(false, Relaxed);
        }
    }

    /// Wakes a parked worker, unless one is about to find the work by itself; says whether it did.
    pub(crate) fn wake_for_work(&self) -> bool {
        // Pairs with the fence in `ParkedSet::park`: a worker that parks sees what has been queued, or is seen here.
        fence(SeqCst);
        // In a model, where nothing takes time, a wake would only add one more order of events.
        HAS_TIME && self.idle.is_someone_parked() && !self.idle.is_someone_searching() && self.wake_one()
    }

    /// Wakes one worker: one that is parked, else one whose core no thread holds. Says whether there was one.
    pub(crate) fn wake_one(&self) -> bool {
        if self.unpark_one() {
            return true;
        }
        // The core of a current_thread runtime belongs to the thread in `block_on` or `turn`. A wake in a child of
        // fork(2) may be the parent's, whose events the child must not take.
        if self.is_closing() || !self.is_multi_thread() || !self.process.is_current() {
            return false;
        }
        let Some(core) = self.cores.iter().rev().find(|core| core.ownership.wants_thread()) else { return false };
        let started = worker::start_thread(&core.schedule().arc(), core.index());
        let was_lacking = self.lacks_threads.swap(started.is_err(), Relaxed);
        if let Err(error) = &started
            && !was_lacking
        {
            say!("could not start worker thread {}: {error}; the others do its work", core.index());
        }
        started.is_ok()
    }

    /// Unparks one worker, the poller last; says whether there was one.
    pub(crate) fn unpark_one(&self) -> bool {
        // Pairs with the fence in `ParkedSet::park`: a worker that parks sees what the caller has put in place, or is
        // seen here.
        fence(SeqCst);
        let poller = self.poller().holder();
        let mut others = self.idle.parked().filter(|&worker| Some(worker) != poller);
        others.any(|worker| self.cores[worker].unparker.unpark())
            || poller.is_some_and(|worker| self.cores[worker].unparker.unpark())
    }

    /// The owner of `core` will be in a poll until `until`, or for an unknown time. Makes sure that a parked worker
    /// polls the reactor, and serves the timers of that core if one ends before.
    pub(crate) fn hand_over(&self, core: &Core, until: u64) {
        self.monitor.note_stuck();
        let driver = core.driver();
        let has_timer = driver.timers().may_be_due(until);
        match self.poller().holder() {
            Some(poller) if has_timer => drop(self.cores[poller].unparker.unpark()),
            Some(_) => {}
            None if has_timer || driver.has_sockets() => drop(self.unpark_one()),
            None => {}
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The moments at which a worker is woken, if `waiting` says how many tasks wait at each, and each comes `step`
    /// nanoseconds and `polls` polls after the last.
    fn wakes(waiting: &[usize], step: u64, polls: u64) -> Vec<usize> {
        let mut queueing = Queueing::default();
        let moments = waiting.iter().enumerate();
        moments
            .filter(|&(nth, &waiting)| queueing.has_lasted(waiting, nth as u64 * step, nth as u64 * polls))
            .map(|(nth, _)| nth)
            .collect()
    }

    #[test]
    fn what_waits_for_as_long_as_a_wake_is_worth_one() {
        assert_eq!(wakes(&[2; 7], WAKE_COST, 1), [1, 2, 3, 4, 5, 6]);
        assert_eq!(wakes(&[2; 7], WAKE_COST / 2, 1), [2, 4, 6]);
        assert_eq!(wakes(&[2, 3, 1, 2, 2, 0, 2, 2], WAKE_COST / 2, 1), [0; 0]);
    }

    #[test]
    fn the_task_that_is_polled_next_is_not() {
        assert_eq!(wakes(&[1; 9], WAKE_COST, 1), [0; 0]);
    }

    #[test]
    fn a_wait_that_is_foreseen_is_worth_one_at_once() {
        assert!(will_last(2, WAKE_COST));
        assert!(!will_last(1, u64::MAX) && !will_last(0, u64::MAX), "it is polled next");
        let mean = WAKE_COST / 10;
        assert!(will_last(11, mean) && !will_last(10, mean));
    }

    #[test]
    fn short_polls_are_not_worth_a_move() {
        assert!(will_last(1_000, MOVE_COST) && !will_last(1_000, MOVE_COST - 1));
        let polls = WAKE_COST / MOVE_COST;
        assert_eq!(wakes(&[9; 4], WAKE_COST, polls), [1, 2, 3]);
        assert_eq!(wakes(&[9; 4], WAKE_COST, polls + 1), [0; 0]);
    }
}
