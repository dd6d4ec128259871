//! The loop that works on a core: choose a task, poll it, check the driver when it is time, park when there is nothing.
//!
//! Called by `block_on` on the calling thread, and by the worker threads of a multi-threaded runtime.
//!
//! After a poll the worker reads the time (`meter.rs`) and asks what is due (`worker/check.rs`). It reads the inbox
//! before each poll, as asking for mail takes one load. All that is known of the next poll is the duration of the
//! task's last one. It is used before the poll begins: other workers are told of a poll that is expected to be long.
//!
//! Rejected: reading the time after 1, 2, 4, ... polls (short polls between long ones delay the reading).

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use mini_context::rules::{CHECK_TIME, COMPUTE_BOUND_AFTER, COMPUTE_BOUND_CHECK, WAKE_COST};
use mini_net::Events;

use crate::primitives::atomic::Ordering::Relaxed;
use crate::primitives::thread::ThreadId;
use crate::scheduler::core::{Core, Kept};
use crate::scheduler::current;
use crate::scheduler::driver::Delivered;
use crate::scheduler::meter::Meter;
use crate::scheduler::monitor;
use crate::scheduler::observe::{Then, Who};
use crate::scheduler::shared::Shared;
use crate::scheduler::wake::Queueing;
use crate::task::{Class, Polled, Queued};
use crate::threads;

mod check;
mod free_core;
mod next;
mod park;
mod thread;
mod turn;

use free_core::close_if_closing;
pub(crate) use free_core::{NoCore, close_core, with_free_core};
use next::{Debt, Quota, Why};
pub(crate) use thread::start_thread;

/// Why [`Worker::drive`] returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The `block_on` future is ready.
    Done,
    /// The runtime shuts down.
    Closing,
    /// A simulation cannot go on.
    Halted,
}

/// A thread at work on a core. Dropping it releases the core.
pub struct Worker<'a> {
    pub shared: &'a Arc<Shared>,
    pub core: &'a Core,
    /// The thread has called `block_on`.
    pub(crate) is_in_block_on: bool,
    pub events: Events,
    meter: Meter<'a>,
    /// The time of the last driver check, and the number of polls at which the next one comes at the latest.
    checked_at: u64,
    check_at_poll: u64,
    /// Nanoseconds of polls since then, and how long a poll took on average before.
    poll_time: u64,
    mean_poll: u64,
    /// How many of those polls were of compute-bound tasks, and their nanoseconds.
    compute_bound_polls: u64,
    compute_bound_time: u64,
    /// How long after a driver check the next one comes if only compute-bound tasks wait.
    compute_bound_check: u64,
    /// A task that asks for another poll is compute-bound if it has run for this long without a wait.
    compute_bound_after: u32,
    /// When to ask again whether the tasks that wait are worth another worker.
    ask_at: u64,
    /// When to compare the queue with that of another worker, and which worker was compared last.
    compare_at: u64,
    compared: usize,
    queueing: Queueing,
    /// Why the current entry has its turn.
    why: Why,
    debt: Debt,
    /// Of each class, whether an owned task came first the last time.
    owned_first: [bool; 2],
    /// Of each class, what is taken from the injector.
    quotas: [Quota; 2],
    /// Another worker has woken this one, maybe for work, and it has found none yet.
    was_woken: bool,
    /// Polls expected to take at least this many nanoseconds are announced before they begin: 0 if each is recorded.
    long_poll: u64,
    /// The poll in progress was announced.
    is_told: bool,
    /// Observers call hooks after a poll.
    has_hooks: bool,
    slack: Option<u64>,
    /// It polls tasks that other workers may run too.
    has_shared: bool,
    /// For one turn of an embedder's loop (`turn.rs`).
    is_for_embedder: bool,
    held: Option<current::HeldGuard>,
}

impl<'a> Worker<'a> {
    /// Begins to work on a core whose ownership the caller has taken.
    ///
    /// # Errors
    ///
    /// If the core has tasks that may not leave another thread, which is named; the core is released again.
    pub(crate) fn new(shared: &'a Arc<Shared>, core: &'a Core) -> Result<Self, ThreadId> {
        // Workers wait for the timers of a guest.
        let slack = shared.config.timer_slack.filter(|_| !core.is_guest());
        let worker = Self::sit_down(shared, core, slack)?;
        core.embedder.note_served(true);
        Ok(worker)
    }

    /// With the thread's timer slack, if that is to be set.
    fn sit_down(shared: &'a Arc<Shared>, core: &'a Core, slack: Option<Duration>) -> Result<Self, ThreadId> {
        let held = current::enter_held(shared, core);
        if let Some(thread) = core.pinned_elsewhere() {
            drop(held);
            core.ownership.release();
            close_if_closing(shared, core);
            return Err(thread);
        }
        announce_up(shared, core);
        let slack = slack.and_then(|slack| mini_net::set_timer_slack(slack.as_nanos() as u64));
        let kept = core.take_kept();
        let mut worker = Self {
            shared,
            core,
            is_in_block_on: false,
            events: kept.events,
            meter: Meter::new(core.driver().timers().clock().clone(), &core.left_out),
            checked_at: 0,
            check_at_poll: 0,
            poll_time: 0,
            mean_poll: 0,
            compute_bound_polls: 0,
            compute_bound_time: 0,
            compute_bound_check: COMPUTE_BOUND_CHECK,
            compute_bound_after: COMPUTE_BOUND_AFTER,
            ask_at: 0,
            compare_at: 0,
            compared: core.index(),
            queueing: Queueing::default(),
            why: Why::Woken,
            debt: Debt::resume(kept.owed),
            owned_first: [false; 2],
            quotas: Default::default(),
            was_woken: true,
            is_told: false,
            has_hooks: core.observers.iter().any(|observer| observer.has_hooks()),
            long_poll: if !core.observers.is_empty() { 0 } else { WAKE_COST },
            slack,
            has_shared: shared.is_multi_thread() && core.takes_shared(),
            is_for_embedder: false,
            held: Some(held),
        };
        worker.count_from_now();
        core.counts.busy.unpark(worker.meter.system_now());
        for observer in &core.observers {
            observer.unparks();
        }
        Ok(worker)
    }

    /// Works until a poll has set `is_done`, or the core must be left.
    pub(crate) fn drive(&mut self, is_done: &Cell<bool>) -> Stop {
        loop {
            // Before each poll: once the runtime ends, what a task waits for may fail, and it must not see that.
            if self.must_close() {
                return Stop::Closing;
            }
            match self.next() {
                Some(entry) => {
                    self.poll_task(entry);
                    if is_done.get() {
                        return Stop::Done;
                    }
                    self.check_process();
                    if self.meter.is_fresh() {
                        self.check_time();
                    }
                }
                None => {
                    if self.is_in_block_on && self.core.pick.as_ref().is_some_and(|pick| pick.is_halted(self)) {
                        return Stop::Halted;
                    }
                    if self.core.idle_queue().is_empty() {
                        self.park();
                    } else {
                        self.release_idle();
                    }
                }
            }
        }
    }

    /// Goes no further in a child that a task has forked: what happens here is for the parent.
    #[inline]
    fn check_process(&self) {
        if !self.shared.process.is_current() {
            self.refuse_process();
        }
    }

    #[cold]
    fn refuse_process(&self) {
        if !self.is_in_block_on && !self.is_for_embedder {
            // Nothing would report a panic, and as the only thread of its process this one would end it as if all was
            // well.
            threads::end_child();
        }
        self.shared.process.check("returning from a task");
    }

    /// Polls an entry of a queue.
    #[inline]
    fn poll_task(&mut self, task: Queued) {
        let expected = task.last_poll();
        self.core.counts.task.store(task.id().get(), Relaxed);
        if expected >= self.long_poll {
            self.tell_begin(task.who(), expected);
        }
        let compute_bound_after = self.compute_bound_after();
        let meter = &mut self.meter;
        let (polled, took) = task.poll_or_drop(compute_bound_after, || meter.lap());
        if self.is_told {
            self.tell_end(polled.then());
        }
        if let Some(took) = took {
            self.note_poll(self.why_of(matches!(polled, Polled::Asks(_, Class::ComputeBound))), took);
        }
        match polled {
            Polled::Waits | Polled::Ended => {}
            Polled::Asks(task, class) if task.is_shared() => self.core.push_shared(task, class),
            Polled::Asks(task, class) => self.core.push_entry(task, class),
        }
        self.core.counts.polls.add(1);
    }

    /// Before a poll that is expected to be long, or is recorded.
    #[inline(never)]
    fn tell_begin(&mut self, task: Who, expected: u64) {
        self.is_told = true;
        if expected >= WAKE_COST {
            // Time before the poll that was not measured is not charged to it.
            let before = self.meter.leave_out();
            self.debt.note(Why::Woken, before);
            self.begin_long_poll(expected);
            self.meter.leave_out();
        }
        let nothing_else = !self.core.take_left_out();
        for observer in &self.core.observers {
            observer.begin(task, nothing_else);
        }
    }

    /// After such a poll.
    #[inline(never)]
    fn tell_end(&mut self, then: Then) {
        self.is_told = false;
        if self.has_hooks {
            self.count_unmeasured();
        }
        for observer in &self.core.observers {
            observer.end(then, self.why != Why::Woken);
        }
        self.end_long_poll();
        if self.has_hooks {
            self.meter.leave_out(); // a hook is no part of the next poll
        }
    }

    /// A poll, or several that were measured together, has taken `took` nanoseconds, and counts as `why` says.
    #[inline]
    fn note_poll(&mut self, why: Why, took: u64) {
        self.count_poll_time(took);
        self.debt.note(why, took);
    }

    #[inline]
    fn count_poll_time(&mut self, took: u64) {
        self.poll_time += took;
        if self.why != Why::Woken {
            self.compute_bound_time += took;
        }
    }

    /// Charges the last polls, which may not have been measured.
    fn count_unmeasured(&mut self) {
        if !self.meter.is_fresh() {
            let took = self.meter.leave_out();
            self.count_poll_time(took);
        }
    }

    /// The time after which the current task is compute-bound. A compute-bound task remains so until it waits,
    /// however few tasks wait now.
    #[inline]
    fn compute_bound_after(&self) -> u32 {
        if self.why == Why::Woken { self.compute_bound_after } else { 0 }
    }

    /// How a poll is counted. If its task is compute-bound afterwards, it was a poll of that class, and nothing is owed
    /// for it: the system may have preempted the poll, and the task, alone in its class, would be paid for that.
    #[inline]
    fn why_of(&self, is_compute_bound: bool) -> Why {
        if is_compute_bound && self.why == Why::Woken { Why::Spare } else { self.why }
    }

    /// A poll begins that will take longer than a wake, judging by the last one: other workers are told.
    fn begin_long_poll(&self, expected: u64) {
        let (shared, core) = (self.shared, self.core);
        if !self.has_shared || self.is_alone() {
            return;
        }
        let is_stuck = expected >= CHECK_TIME;
        if is_stuck {
            core.poll.is_in_long_poll.store(true, Relaxed);
            shared.monitor.note_stuck();
        }
        let waits = core.shared_len() > 0 || !shared.injector(Class::Woken).is_empty();
        let has_woken = waits && shared.idle.is_someone_parked() && shared.wake_for_work();
        core.poll.wakes_early.store(!has_woken, Relaxed);
        if is_stuck && shared.idle.is_someone_parked() {
            shared.hand_over(core, self.meter.now().saturating_add(expected));
        }
    }

    fn end_long_poll(&self) {
        self.core.poll.wakes_early.store(false, Relaxed);
        self.core.poll.is_in_long_poll.store(false, Relaxed);
    }

    /// Whether the core must be closed.
    #[inline]
    fn must_close(&self) -> bool {
        self.shared.is_closing()
    }

    /// Tells of events that were delivered and timers that were fired.
    #[inline]
    fn note_delivered(&self, delivered: Delivered) {
        for observer in &self.core.observers {
            observer.delivered(delivered.events, delivered.timers);
        }
    }

    /// Tells of the end of a turn.
    #[inline]
    fn end_turn(&mut self) {
        if !self.core.observers.is_empty() {
            self.count_unmeasured();
            self.core.observers.iter().for_each(|observer| observer.turn_ends());
            self.meter.leave_out(); // a hook is no part of the next poll
        }
    }

    /// Lets one future of the idle queue go on, unless the driver brings something to do.
    fn release_idle(&mut self) {
        self.check();
        let has_work = self.core.has_owned_work() || self.core.shared_len() > 0 || self.sees_work();
        if !has_work && self.core.idle_queue().release() {
            self.core.observers.iter().for_each(|observer| observer.wakes_idle());
        }
    }

    /// Closes the core; see [`Core::close`].
    pub(crate) fn close(&mut self) {
        self.has_shared = false; // on a closed core no shared task may be queued
        let is_first = self.core.close();
        if self.core.is_guest() {
            self.shared.fail_waits_in_place(); // also on one that was closed before this thread took it
        } else if is_first {
            self.core.drop_shared_of_others();
            self.shared.core_closed();
        }
    }

    /// Ends the tasks that were spawned on a guest, as they may not leave this thread.
    fn leave(&mut self) {
        if self.core.is_guest() {
            self.core.drop_owned();
            self.core.idle_queue().disperse(); // one that was polled here may be awaited elsewhere
        }
    }
}

/// Lets others know that the calling thread works on `core` from here on.
fn announce_up(shared: &Arc<Shared>, core: &Core) {
    core.is_up.store(true, Relaxed);
    core.embedder.note_more(false); // an embedder that comes learns it from its next turn, or is notified
    core.counts.sittings.add(1); // the monitor looks for progress that stands still
    core.set_owner();
    if core.is_guest() {
        return;
    }
    shared.idle.unpark(core.index());
    if shared.cores.len() > 1 {
        monitor::thread::start(shared);
        shared.monitor.rouse();
    }
}

/// Whether a thread that leaves `core` leaves something to do for an embedder's next turn. Deadlines of a clock that
/// goes on are told by themselves.
fn leaves_work(shared: &Shared, core: &Core) -> bool {
    let is_waited_for = shared.blocking.in_flight() > 0;
    core.has_owned_work() || !core.idle_queue().is_empty() || core.driver().would_jump(is_waited_for)
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let (shared, core) = (self.shared, self.core);
        if !shared.process.is_current() {
            return; // to change anything here is for the parent
        }
        self.end_turn(); // first: what the hook queues is handled below
        if shared.is_closing() {
            self.close();
        }
        self.leave();
        self.collect(); // what another thread has woken since
        core.is_up.store(false, Relaxed);
        self.meter.leave_out();
        core.counts.busy.park(self.meter.system_now());
        for observer in &core.observers {
            observer.leaves();
        }
        core.note_queue();
        core.take_remote_frees();
        let events = std::mem::replace(&mut self.events, Events::with_capacity(1));
        core.put_kept(Kept { events, owed: self.debt.nanos() });
        if let Some(slack) = self.slack {
            mini_net::set_timer_slack(slack);
        }
        if !core.is_guest() {
            shared.idle.park(core.index());
        }
        if !self.is_for_embedder {
            core.embedder.note_more(leaves_work(shared, core) || self.sees_work());
            core.embedder.note_served(false);
            if core.embedder.is_watched() {
                core.driver().reactor().notify(); // see `embedder.rs`
            }
        }
        self.held = None;
        core.ownership.release();
        close_if_closing(shared, core);
    }
}
