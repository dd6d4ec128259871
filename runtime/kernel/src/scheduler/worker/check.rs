//! The work between two polls: the time check, which is a few comparisons, and the driver check, which takes in all
//! that has come from elsewhere.
//!
//! Rejected: polling the driver whenever the queue is empty (one `epoll_wait` per spawn and join from `block_on`).

use mini_context::rules::{
    CHECK_POLLS, CHECK_TIME, COMPUTE_BOUND_AFTER, COMPUTE_BOUND_AT_LEAST, COMPUTE_BOUND_CHECK, TICK, WAKE_COST,
};

use super::Worker;
use crate::scheduler::core::Core;
use crate::scheduler::driver::Delivered;
use crate::scheduler::wake::will_last;
use crate::task::Class;

impl Worker<'_> {
    /// The time check, after a poll that was measured: four comparisons as a rule, and nothing else.
    #[inline]
    pub(super) fn check_time(&mut self) {
        let now = self.meter.now();
        if self.core.driver().timers().may_be_due(now) {
            let timers = self.core.driver().fire();
            self.note_delivered(Delivered { events: 0, timers });
            self.meter.leave_out();
        }
        if now >= self.ask_at {
            self.ask(now);
        }
        let polls = self.core.counts.polls.get() + u64::from(self.meter.unread());
        if self.is_time_to_check(now) || polls >= self.check_at_poll {
            self.check();
        }
    }

    /// Asks whether the tasks that wait are worth another worker.
    fn ask(&mut self, now: u64) {
        self.ask_at = now.saturating_add(WAKE_COST);
        let (shared, core) = (self.shared, self.core);
        if !self.has_shared || !shared.idle.is_someone_parked() {
            return self.queueing.end();
        }
        if self.queueing.has_lasted(self.shared_waiting(), now, core.counts.polls.get()) {
            shared.wake_for_work();
            self.meter.leave_out();
        }
    }

    /// Tasks that wait, and that any worker may run.
    fn shared_waiting(&self) -> usize {
        self.core.shared_len() + self.shared.injector(Class::Woken).len()
    }

    /// Polls since the last driver check.
    pub(super) fn polls_since_check(&self) -> u64 {
        self.core.counts.polls.get() + u64::from(CHECK_POLLS) - self.check_at_poll
    }

    /// Before a driver check or a wait: notes how long a poll has taken on average since the last one.
    pub(super) fn note_mean_poll(&mut self) {
        let polls = self.polls_since_check();
        if let Some(mean) = self.poll_time.checked_div(polls) {
            self.mean_poll = mean;
        }
        if let Some(mean) = self.compute_bound_time.checked_div(self.compute_bound_polls) {
            // A driver check comes between two polls: after the one that ends nearest to its time. None is nearer than
            // the first poll that takes as long.
            self.compute_bound_check = COMPUTE_BOUND_CHECK - mean.min(COMPUTE_BOUND_CHECK) / 2;
        }
    }

    /// After a driver check or a wait, before which `before` tasks waited for any worker. If the tasks that have come
    /// will wait for longer than a wake costs, wakes a worker.
    pub(super) fn ask_ahead(&mut self, before: usize) {
        if !self.has_shared || !self.shared.idle.is_someone_parked() {
            return;
        }
        let came = self.shared_waiting().saturating_sub(before);
        if will_last(came, self.mean_poll) && self.shared.wake_for_work() {
            self.was_woken = false; // or it would wake another one for the same tasks, as `ask` would
            self.queueing.end();
            self.put_off_check();
        }
    }

    /// The driver check: takes in all that has come from elsewhere since the last one.
    pub(super) fn check(&mut self) {
        let core = self.core;
        self.note_mean_poll();
        self.end_turn();
        self.collect(); // as before each poll: else all that the driver has would come first
        core.note_queue();
        self.record_queues();
        let before = self.shared_waiting();
        if !core.is_guest() {
            let delivered = core.driver().poll(&mut self.events, core.embedder.is_watched());
            self.note_delivered(delivered);
        }
        self.ask_ahead(before);
        core.take_remote_frees();
        if self.has_shared {
            self.check_others();
        }
        self.put_off_check(); // at the end: the check is no part of the next poll
    }

    /// Records how many tasks wait here, and for any worker.
    pub(super) fn record_queues(&self) {
        for observer in &self.core.observers {
            let injected = Class::ALL.iter().map(|&class| self.shared.injector(class).len()).sum();
            observer.queues(self.core.queue_depth(), injected);
        }
    }

    /// Checks the tasks that wait for any worker, stuck workers, and once a tick another worker's queue.
    fn check_others(&mut self) {
        let core = self.core;
        if self.shared.monitor.has_stuck() {
            let mut timers = 0;
            for other in self.others().filter(|other| other.is_stuck()) {
                timers += other.driver().fire();
                if core.len_of(Class::Woken) == 0 {
                    other.steal_for(core);
                }
            }
            self.note_delivered(Delivered { events: 0, timers });
        }
        self.set_quotas();
        if self.meter.now() >= self.compare_at {
            self.compare_at = self.meter.now() + TICK.as_nanos() as u64;
            self.compare();
        }
    }

    /// Puts the next driver check off: the driver is polled now, or waited for.
    pub(super) fn put_off_check(&mut self) {
        self.meter.set();
        self.count_from_now();
    }

    /// The meter has been read: the next driver check is due a full interval later.
    pub(super) fn count_from_now(&mut self) {
        let now = self.meter.now();
        self.checked_at = now;
        self.poll_time = 0;
        (self.compute_bound_polls, self.compute_bound_time) = (0, 0);
        self.check_at_poll = self.core.counts.polls.get() + u64::from(CHECK_POLLS);
        // Together the waiting tasks delay others by the time between two driver checks, each by its part of that.
        let part = CHECK_TIME / (self.woken_len() as u64 + 1);
        self.compute_bound_after = (part as u32).clamp(COMPUTE_BOUND_AT_LEAST, COMPUTE_BOUND_AFTER);
    }

    /// If another worker has more tasks than this one, takes half of the difference. Otherwise tasks that always ask
    /// for another poll would stay where they are, and run more rarely the more of them there are. If the difference is
    /// odd, the odd task changes sides each time, and has its turn on both.
    fn compare(&mut self) {
        let core = self.core;
        let last = self.compared;
        let Some(other) = self
            .others()
            .map(Core::index)
            .find(|&other| other > last)
            .or_else(|| self.others().map(Core::index).next())
        else {
            return;
        };
        self.compared = other;
        let other = &self.shared.cores[other];
        for class in Class::ALL {
            let more = how_many_more(other.len_of(class), other.noted(class), core.len_of(class));
            if more > 0 {
                other.steal_half(core, class, more.div_ceil(2) as u32);
            }
        }
    }

    /// Whether enough time has passed since the last driver check: it is less if only compute-bound tasks wait here.
    #[inline]
    fn is_time_to_check(&self, now: u64) -> bool {
        let since = now - self.checked_at; // the time of a meter never goes back
        since >= self.compute_bound_check && (since >= CHECK_TIME || self.has_only_compute_bound())
    }

    fn has_only_compute_bound(&self) -> bool {
        let core = self.core;
        self.woken_len() == 0 && core.owned_len(Class::ComputeBound) + core.len_of(Class::ComputeBound) > 0
    }

    /// Woken tasks that wait for this worker.
    fn woken_len(&self) -> usize {
        self.core.owned_len(Class::Woken) + self.core.len_of(Class::Woken)
    }
}

/// How many tasks more another worker has than this one, which polls none just now and has `own`.
///
/// The other worker polls one task beside those that `wait`, or has just put it back; so it has no more than it `noted`
/// lately. Its only task is left to it.
fn how_many_more(wait: usize, noted: usize, own: usize) -> usize {
    let theirs = (wait + 1).min(noted);
    if theirs > 1 { theirs.saturating_sub(own) } else { 0 }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::how_many_more;

    #[test]
    fn nobody_is_robbed_of_the_only_task() {
        for own in 0..3 {
            assert_eq!(how_many_more(0, 1, own), 0, "it is polled");
            assert_eq!(how_many_more(1, 1, own), 0, "it waits for the next poll");
            assert_eq!(how_many_more(1, 0, own), 0, "its worker was parked at its last check");
        }
    }

    #[test]
    fn an_odd_one_changes_sides() {
        assert_eq!(how_many_more(1, 2, 1), 1);
        assert_eq!(how_many_more(1, 2, 0), 2);
        assert_eq!(how_many_more(9, 10, 10), 0);
        assert_eq!(how_many_more(899, 900, 1), 899);
    }
}
