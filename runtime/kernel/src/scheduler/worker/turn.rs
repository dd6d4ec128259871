//! One turn of a worker in an embedder's loop; `embedder.rs` has the protocol.

use std::sync::Arc;
use std::time::Duration;

use mini_context::rules::CHECK_TIME;

use super::{Core, Shared, Worker};
use crate::primitives::thread::ThreadId;
use crate::scheduler::unparker::ParkedIn;

impl<'a> Worker<'a> {
    /// Begins to work on the core for one turn. The thread's timer slack is left to the embedder.
    ///
    /// # Errors
    ///
    /// As [`Worker::new`].
    pub fn for_embedder(shared: &'a Arc<Shared>, core: &'a Core) -> Result<Self, ThreadId> {
        let mut worker = Self::sit_down(shared, core, None)?;
        worker.is_for_embedder = true;
        core.unparker.retract(); // what the last turn has announced
        Ok(worker)
    }

    /// Delivers events, and polls the tasks that are ready, after a wait of at most `limit` if nothing is. Returns how
    /// many tasks it has polled, and whether there is more to do.
    pub fn turn(&mut self, limit: Duration) -> (usize, bool) {
        let driver = self.core.driver();
        let delivered = driver.serve(&mut self.events, None);
        self.note_delivered(delivered);
        let mut polls = self.poll_tasks();
        if polls == 0 && !self.core.idle_queue().is_empty() {
            self.release_idle();
            polls = self.poll_tasks();
        }
        if polls == 0 && (!limit.is_zero() || driver.timers().clock().is_paused()) {
            self.wait_within(limit);
            polls = self.poll_tasks();
        }
        self.end_turn(); // first: what the hook queues is for the embedder to come back for
        (polls, self.check_for_more())
    }

    /// Polls the tasks that are ready, for the time between two driver checks and the poll in progress.
    fn poll_tasks(&mut self) -> usize {
        let mut polls = 0;
        self.put_off_check();
        while self.meter.now() < self.checked_at.saturating_add(CHECK_TIME)
            && (self.core.counts.polls.get() < self.check_at_poll || !self.meter.counts_steps())
            && let Some(entry) = self.next()
        {
            self.poll_task(entry);
            polls += 1;
            self.check_process();
        }
        if polls > 0 {
            self.count_unmeasured();
            self.note_mean_poll();
        }
        polls
    }

    /// As [`wait`](Worker::wait), but with a limit, and always in the reactor, where the unparker is heard.
    fn wait_within(&mut self, limit: Duration) {
        self.meter.leave_out(); // the last polls may not have been measured
        self.announce_wait(ParkedIn::Reactor);
        // In this order: a job wakes its waiter before it counts as done.
        let is_waited_for = self.shared.blocking.in_flight() > 0;
        if !self.sees_work() {
            let driver = self.core.driver();
            let delivered = driver.park_advancing(&mut self.events, ParkedIn::Reactor, Some(limit), is_waited_for);
            self.note_delivered(delivered);
        }
        self.end_wait();
    }

    /// A1 to A3 of `embedder.rs`; says whether there is more to do.
    fn check_for_more(&mut self) -> bool {
        let (core, driver) = (self.core, self.core.driver());
        let is_watched = core.embedder.is_watched();
        if is_watched {
            core.unparker.announce(ParkedIn::Reactor);
        }
        let is_waited_for = self.shared.blocking.in_flight() > 0;
        let has_more = driver.announce_leave(is_waited_for)
            || core.has_owned_work()
            || !core.idle_queue().is_empty()
            || self.sees_work();
        core.embedder.note_more(has_more);
        if is_watched && has_more {
            core.unparker.unpark();
        }
        has_more
    }
}
