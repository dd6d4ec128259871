//! The wait of a worker that has nothing to do; `unparker.rs`, `idle.rs` and `poller.rs` have the protocols.

use std::time::Duration;

use mini_context::rules::{SPIN_FOR_JOB, SPIN_FOR_WAKE};

use super::{Core, Worker};
use crate::primitives::atomic::Ordering::Relaxed;
use crate::scheduler::driver::Delivered;
use crate::scheduler::spin;
use crate::scheduler::unparker::ParkedIn;
use crate::scheduler::until_idle::RECHECK;

impl Worker<'_> {
    /// Waits until there is something to do.
    pub(super) fn park(&mut self) {
        self.poll_time += self.meter.leave_out(); // the last polls may not have been measured
        self.note_mean_poll();
        if !self.spins() {
            self.wait();
        }
    }

    /// Spins for the end of a blocking job, or, if there are no sockets and all other workers are parked, for a wake by
    /// another thread. Does so only if it has paid lately; says whether there is something to do. (Beside a worker that
    /// is up, the spin would take tasks which that worker is about to poll.)
    fn spins(&mut self) -> bool {
        let core = self.core;
        let (spins, limit) = match self.shared.blocking.in_flight() {
            0 if core.driver().has_sockets() || !self.shared.idle.are_others_parked(core.index()) => return false,
            0 => (&core.spins_for_wake, SPIN_FOR_WAKE),
            _ => (&core.spins_for_job, SPIN_FOR_JOB),
        };
        if !spins.are_due() {
            return false;
        }
        let has_paid = spin::until(limit, || self.sees_work());
        spins.note(has_paid);
        self.meter.leave_out(); // the spin is no part of the next poll
        let since = self.meter.now().saturating_sub(self.checked_at);
        if has_paid && (self.meter.counts_steps() || since >= limit.as_nanos() as u64) {
            self.check(); // a wait would have shown what the driver has
        }
        has_paid
    }

    /// Waits as `unparker.rs` and `idle.rs` say, and handles what the wait has brought.
    fn wait(&mut self) {
        let (shared, core) = (self.shared, self.core);
        self.end_turn();
        shared.config.hooks.before_park(); // what it wakes is seen below (`has_queued`)
        core.note_queue();
        core.shrink_queues();
        let (wait, is_poller) = self.choose_wait();
        self.announce_wait(wait);
        let limit = shared.until_idle.is_asked().then(|| self.tell_idle());
        if !self.is_unheard(wait) && !self.sees_work() && !self.has_queued() {
            if core.driver().timers().clock().is_paused() {
                self.park_paused(wait, limit);
            } else if is_poller && shared.monitor.has_stuck() {
                self.park_for_others(wait);
            } else {
                let delivered = core.driver().park(&mut self.events, wait, limit);
                self.note_delivered(delivered);
            }
        }
        if is_poller {
            core.driver().poller().leave();
        }
        self.was_woken = self.end_wait();
        if shared.monitor.is_started() && !core.is_guest() {
            shared.monitor.rouse(); // before the hook, which may block
        }
        shared.config.hooks.after_park();
        self.ask_ahead(0);
    }

    /// Whether this thread has queued something since it found nothing to poll: in the user's hook, or just now.
    fn has_queued(&self) -> bool {
        self.core.has_owned_work() || self.core.shared_len() > 0
    }

    /// Tells the callers that wait for it if nothing is left to do, or nothing that anybody can wake; see
    /// `until_idle.rs`. Returns how long to wait before the next check.
    #[cold]
    fn tell_idle(&self) -> Duration {
        let asked = self.shared.until_idle.asked();
        if self.shared.has_nothing_left(None) {
            self.shared.until_idle.tell(asked, Vec::new());
        } else if let Some(lost) = self.shared.all_lost() {
            self.shared.until_idle.tell(asked, lost);
        }
        RECHECK
    }

    /// Lets others know that this worker parks. The caller looks for work once more after that.
    pub(crate) fn announce_wait(&mut self, wait: ParkedIn) {
        let core = self.core;
        core.is_up.store(false, Relaxed);
        core.counts.parks.add(1);
        core.take_remote_frees();
        let now = self.meter.system_now();
        core.counts.busy.park(now);
        self.record_queues();
        for observer in &core.observers {
            observer.parks();
        }
        core.unparker.announce(wait);
        if !core.is_guest() {
            self.shared.idle.park(core.index());
        }
    }

    /// Lets others know that this worker is up; says whether another thread has unparked it.
    pub(super) fn end_wait(&mut self) -> bool {
        let core = self.core;
        self.put_off_check();
        let now = self.meter.system_now();
        core.counts.busy.unpark(now);
        for observer in &core.observers {
            observer.unparks();
        }
        let was_woken = core.unparker.retract();
        core.is_up.store(true, Relaxed);
        if !core.is_guest() {
            self.shared.idle.unpark(core.index());
        }
        was_woken
    }

    /// How to wait, and whether as the poller. Of several workers only the poller waits in the reactor, be it for
    /// sockets, for the timers of others, or for its own, which cost less there: the reactor leaves a deadline as it is
    /// from one wait to the next. A single worker always may; it takes the role if the monitor may poll the reactor in
    /// its place.
    fn choose_wait(&self) -> (ParkedIn, bool) {
        if self.core.is_guest() {
            return (ParkedIn::Condvar, false);
        }
        let is_shared = !self.is_alone() || self.shared.monitor.is_started();
        match self.wants_poller() || self.core.driver().may_have_deadline() {
            true if !is_shared => (ParkedIn::Reactor, false),
            true if self.core.driver().poller().try_take(self.core.index()) => (ParkedIn::Reactor, true),
            _ => (ParkedIn::Condvar, false),
        }
    }

    /// Whether a worker must wait in the reactor. If an embedder watches, that wait also consumes notifications meant
    /// for the embedder, so that the descriptor does not stay readable.
    fn wants_poller(&self) -> bool {
        self.core.driver().has_sockets() || self.shared.monitor.has_stuck() || self.core.embedder.is_watched()
    }

    /// Whether something may happen that no worker would hear of if this one waited as it has announced.
    fn is_unheard(&self, wait: ParkedIn) -> bool {
        wait == ParkedIn::Condvar
            && !self.core.is_guest()
            && !self.core.driver().poller().is_taken()
            && self.wants_poller()
    }

    pub(super) fn is_alone(&self) -> bool {
        self.shared.cores.len() == 1
    }

    /// Waits as the poller while other workers are stuck: for their timers too.
    fn park_for_others(&mut self, wait: ParkedIn) {
        let stuck = || self.others().filter(|other| other.is_stuck()).map(Core::driver);
        let limit = stuck().filter_map(|driver| driver.timers().wait_limit()).min();
        let delivered = self.core.driver().park(&mut self.events, wait, limit);
        self.note_delivered(delivered);
        let timers = self.others().filter(|other| other.is_stuck()).map(|other| other.driver().fire()).sum();
        self.note_delivered(Delivered { events: 0, timers });
    }

    /// Waits under a paused clock: where nothing real is going on, time jumps to the next deadline.
    fn park_paused(&mut self, wait: ParkedIn, limit: Option<Duration>) {
        let (core, driver) = (self.core, self.core.driver());
        let delivered = driver.poll(&mut self.events, false);
        self.note_delivered(delivered);
        // In this order: a job wakes its waiter before it counts as done.
        let is_waited_for = self.shared.blocking.in_flight() > 0;
        if core.has_owned_work() || !core.unparker.is_parked() {
            return; // the poll has woken a task, or seen a notification, whose sender has taken the announcement
        }
        let delivered = driver.park_advancing(&mut self.events, wait, limit, is_waited_for);
        self.note_delivered(delivered);
    }

    /// Whether another worker that may be stuck has work: it may have been queued after the search, by a thread that
    /// saw this worker up.
    fn misses_call(&self) -> bool {
        let shared = self.shared;
        shared.monitor.has_stuck() && self.has_shared && self.others().any(Core::is_worth_stealing)
    }

    /// The last check before the wait; see `unparker.rs` and `idle.rs`.
    pub fn sees_work(&self) -> bool {
        self.core.has_mail() || self.has_shared && self.shared.has_injected() || self.misses_call() || self.must_close()
    }
}
