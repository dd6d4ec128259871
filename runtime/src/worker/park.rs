//! The wait of a worker that has nothing to do; `bell.rs`, `idle.rs` and `lookout.rs` have the protocols.

use super::{Core, WORTH_A_WAKE, Worker};
use crate::bell::Wait;
use crate::driver::Driver;
use crate::spin;
use crate::sync::HAS_TIME;
use crate::sync::atomic::Ordering::Relaxed;
use crate::tries::Tries;

/// After so many looks in a row that pay a worker waits without one. Each look wakes the lookout in vain, too; one that has to pass an
/// event on leaves its place to whom that is for, who waits for the next ones itself.
const LOOKS_IN_A_ROW: u32 = 16;

/// What a worker did between its last waits.
#[derive(Debug, Default)]
pub(super) struct Habit {
    /// How long it had been up, and how much it had run, when it went to rest.
    busy: u64,
    runs: u64,
    /// A run took longer than waking another worker is worth.
    is_slow: bool,
    /// It was the lookout, and had nothing to run afterwards.
    was_in_vain: bool,
    /// How long it had been up when a spin made it look at the driver.
    looked: u64,
    /// Looks at the driver right before a wait as a thread. In vain they are cheap, compared with a wait.
    looks: Tries<8, 7>,
    /// How many of them in a row have paid.
    paid: u32,
}

impl Habit {
    fn note(&mut self, busy: u64, runs: u64) {
        self.is_slow = self.is_slow_by(busy, runs);
        self.was_in_vain &= runs == self.runs;
        (self.busy, self.runs) = (busy, runs);
    }

    /// Whether its runs since the last note were slow.
    fn is_slow_by(&self, busy: u64, runs: u64) -> bool {
        let (time, count) = (busy.saturating_sub(self.busy), runs.wrapping_sub(self.runs));
        HAS_TIME && time > WORTH_A_WAKE.as_nanos() as u64 * count.max(1)
    }
}

impl Worker<'_> {
    /// Waits until there is something to do.
    pub(super) fn park(&mut self) {
        if !self.finds_event() && !self.spins() {
            self.rest();
        }
    }

    /// Looks at the driver before a wait as a thread, if that has paid lately; says whether there is something to do. The lookout
    /// hears of what the last tasks have brought about when it has got its CPU, which may take longer than to do it.
    fn finds_event(&mut self) -> bool {
        let core = self.core;
        if self.is_alone() || !core.driver().has_sockets() || !self.is_lookout_asleep() || !self.habit.looks.are_due() {
            return false;
        }
        if self.habit.paid == LOOKS_IN_A_ROW {
            self.habit.paid = 0;
            return false;
        }
        self.look_around();
        let has_paid = core.has_owned_work() || core.backlog() > 0 || !core.lull().is_empty();
        self.habit.looks.note(has_paid);
        self.habit.paid = if has_paid { self.habit.paid + 1 } else { 0 };
        has_paid
    }

    /// Whether another worker waits for events and has not been rung for: the ring of one that has been would be heard here, and
    /// again here when it is passed on, for as long as this worker comes back faster than that one gets its CPU.
    fn is_lookout_asleep(&self) -> bool {
        let lookout = self.core.driver().lookout().holder();
        lookout.is_some_and(|index| self.pool.cores[index].bell.is_parked())
    }

    /// Spins for the end of a blocking job, or, if there are no sockets and all others rest, for a wake by any other thread, if that has
    /// paid lately and runs are short; says whether there is something to do. (Beside one that is up it would take to others what that
    /// one is about to run.)
    fn spins(&mut self) -> bool {
        let core = self.core;
        let (spins, limit) = match self.pool.blocking.in_flight() {
            0 if core.driver().has_sockets() || !self.is_last_up() => return false,
            0 => (&core.spins_for_wake, spin::FOR_WAKE),
            _ => (&core.spins_for_job, spin::FOR_JOB),
        };
        let begin = core.counts.busy_nanos();
        if self.habit.is_slow_by(begin, core.counts.runs.get()) || !spins.are_due() {
            return false;
        }
        let has_paid = spin::until(limit, || self.sees_work());
        spins.note(has_paid);
        let end = core.counts.busy_nanos();
        self.pace.leave_out(end.saturating_sub(begin));
        if has_paid {
            self.habit.note(end, core.counts.runs.get());
            // A wait would have shown what the driver has.
            if !HAS_TIME || end.saturating_sub(self.habit.looked) >= spin::FOR_JOB.as_nanos() as u64 {
                self.look_around();
                self.habit.looked = end;
            }
        }
        has_paid
    }

    /// Whether all other workers rest, and none has been rung for.
    fn is_last_up(&self) -> bool {
        self.pool.idle.do_others_rest() && !self.is_someone_coming()
    }

    /// Waits as `bell.rs` and `idle.rs` say, and sees to what the wait has brought.
    fn rest(&mut self) {
        let (pool, core) = (self.pool, self.core);
        core.is_up.store(false, Relaxed);
        core.counts.parks.add(1);
        core.note_queue();
        core.take_returned();
        let busy = core.counts.rest();
        self.habit.note(busy, core.counts.runs.get());
        self.note_pace(busy);
        let leaves_it = self.leaves_lookout();
        let (wait, is_lookout) = if leaves_it { (Wait::Thread, false) } else { self.choose_wait() };
        core.bell.announce(wait);
        pool.idle.rest();
        if !self.is_unheard(wait, leaves_it) && !self.sees_work() {
            self.put_off_look();
            if core.driver().timers().clock().is_paused() {
                self.park_paused(wait);
            } else if is_lookout && pool.watch.has_late() {
                self.park_for_others(wait);
            } else {
                core.driver().park(&mut self.events, wait, None);
            }
        }
        core.counts.rise();
        if is_lookout {
            core.driver().lookout().leave();
        }
        self.habit.was_in_vain = is_lookout;
        core.bell.retract();
        core.is_up.store(true, Relaxed);
        pool.idle.rise();
        if !self.is_alone() {
            pool.watch.rouse();
            let mut has_called = self.share();
            // This one may get stuck, or be busy for a while: another is to look out then.
            if is_lookout && (pool.watch.alert().is_on() || self.habit.is_slow) && pool.idle.is_someone_resting() {
                has_called |= pool.ring_one();
                pool.watch.alert().spend();
            }
            if has_called {
                self.pace.leave_out(core.counts.busy_nanos().saturating_sub(busy));
            }
        }
    }

    /// How to wait, and whether as the lookout: among several workers that one alone waits in the reactor, whether it is wanted
    /// for sockets or for others' timers. An only worker always may; it says so where the watch may be looking there for it.
    fn choose_wait(&self) -> (Wait, bool) {
        let is_shared = !self.is_alone() || self.pool.watch.is_started();
        match self.wants_lookout() {
            true if !is_shared => (Wait::Reactor, false),
            true if self.core.driver().lookout().try_take(self.core.index()) => (Wait::Reactor, true),
            _ => (Wait::Thread, false),
        }
    }

    /// Whether somebody must wait in the reactor. Where a host watches, rings meant for it are heard too, and the descriptor
    /// does not stay readable.
    fn wants_lookout(&self) -> bool {
        self.core.driver().has_sockets() || self.pool.watch.has_late() || self.core.host.is_watched()
    }

    /// Whether something may happen that nobody would hear of if this worker waited as it has announced.
    fn is_unheard(&self, wait: Wait, leaves_it: bool) -> bool {
        let is_missing = wait == Wait::Thread && !self.core.driver().lookout().is_taken() && self.wants_lookout();
        is_missing && !(leaves_it && self.is_someone_coming())
    }

    /// Whether to leave the place of the lookout, once, to the worker whom it has just rung for: there the events are used,
    /// and would go on to come through this thread, each with a wake from one to the other.
    fn leaves_lookout(&mut self) -> bool {
        std::mem::take(&mut self.habit.was_in_vain) && !self.pool.watch.has_late() && self.is_someone_coming()
    }

    /// Whether a worker has been rung for and is not up yet, or on its way to rest: it will find the place free.
    fn is_someone_coming(&self) -> bool {
        let is_coming = |core: &Core| !core.is_up.load(Relaxed) && !core.bell.is_parked() && core.seat.is_held();
        self.pool.cores.iter().any(|core| core.index() != self.core.index() && is_coming(core))
    }

    pub(super) fn is_alone(&self) -> bool {
        self.pool.cores.len() == 1
    }

    /// Waits as the lookout while other workers are stuck, or may be: for their timers too.
    fn park_for_others(&mut self, wait: Wait) {
        let (pool, own) = (self.pool, self.core.index());
        let is_alert = pool.watch.alert().is_on();
        let is_late = |core: &&Core| {
            core.index() != own && core.is_up.load(Relaxed) && (is_alert || core.is_stalled.load(Relaxed))
        };
        let late = || pool.cores.iter().filter(is_late).map(Core::driver);
        let limit = late().filter_map(|driver| driver.timers().wait_limit()).min();
        if limit.is_some() {
            pool.watch.alert().spend();
        }
        self.core.driver().park(&mut self.events, wait, limit);
        late().for_each(Driver::fire);
    }

    /// Waits under a paused clock: where nothing real is going on, time jumps to the next deadline.
    fn park_paused(&mut self, wait: Wait) {
        let (core, driver) = (self.core, self.core.driver());
        driver.poll(&mut self.events);
        // In this order: a job wakes whom it has to wake before it counts as done.
        let is_waited_for = self.pool.blocking.in_flight() > 0;
        if core.has_owned_work() || !core.bell.is_parked() {
            return; // the poll has woken a task, or heard the bell, whose flag is taken by who rings
        }
        driver.park_paused(&mut self.events, wait, is_waited_for);
    }

    /// Whether work lies with another worker that may be stuck: it may have been queued after the search, by somebody who saw
    /// this worker up.
    fn misses_call(&self) -> bool {
        let pool = self.pool;
        pool.watch.has_late() && !self.is_closed && pool.cores.iter().any(|core| self.can_steal_from(core))
    }

    /// The last look before the wait; see `bell.rs` and `idle.rs`.
    pub(super) fn sees_work(&self) -> bool {
        self.core.has_mail()
            || self.root.as_ref().is_some_and(|root| root.woken.load(Relaxed))
            || (!self.pool.injector.is_empty() && !self.is_closed)
            || self.misses_call()
            || self.stop().is_some()
    }
}
