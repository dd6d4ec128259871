//! One turn of a worker in a host's loop; `embed.rs` has the protocol.

use std::sync::Arc;
use std::time::Duration;

use super::{Core, Entry, Pool, Worker};
use crate::bell::Wait;
use crate::embed::Turn;
use crate::sync::{atomic::Ordering::Relaxed, thread::ThreadId};

/// How many entries a turn runs at most.
const LIMIT: usize = 256;

impl<'a> Worker<'a> {
    /// Sits down for one turn. The thread's timer slack is left to the host.
    ///
    /// # Errors
    ///
    /// As [`Worker::new`].
    pub(crate) fn for_host(pool: &'a Arc<Pool>, core: &'a Core) -> Result<Self, ThreadId> {
        let mut worker = Self::sit_down(pool, core, None)?;
        worker.is_for_host = true;
        core.bell.retract(); // what the last turn has announced
        Ok(worker)
    }

    /// Delivers and runs what is ready, after a wait of at most `limit` if nothing is.
    pub(crate) fn turn(&mut self, limit: Duration) -> Turn {
        let driver = self.core.driver();
        driver.serve(&mut self.events, None);
        let mut polls = self.run_ready();
        if polls == 0 && !self.core.lull().is_empty() {
            self.end_lull();
            polls = self.run_ready();
        }
        if polls == 0 && (!limit.is_zero() || driver.timers().clock().is_paused()) {
            self.wait(limit);
            polls = self.run_ready();
        }
        Turn::new(polls, self.look_back())
    }

    fn run_ready(&mut self) -> usize {
        let mut polls = 0;
        while polls < LIMIT
            && let Some(entry) = self.next()
        {
            // The root is that of a `block_on` that is over.
            if let Entry::Task(task) = entry {
                task.run();
                polls += 1;
                self.core.counts.runs.add(1);
            }
        }
        polls
    }

    /// Waits as in [`park`](Worker::park), but with a limit, and always where the bell's descriptor is heard.
    fn wait(&mut self, limit: Duration) {
        let (pool, core) = (self.pool, self.core);
        core.is_up.store(false, Relaxed);
        core.counts.parks.add(1);
        core.take_returned();
        core.bell.announce(Wait::Reactor);
        pool.idle.rest();
        // In this order: a job wakes whom it has to wake before it counts as done.
        let is_waited_for = pool.blocking.in_flight() > 0;
        if !self.sees_work() {
            core.counts.rest();
            core.driver().park_within(&mut self.events, limit, is_waited_for);
            core.counts.rise();
        }
        core.bell.retract();
        core.is_up.store(true, Relaxed);
        pool.idle.rise();
    }

    /// A1 to A3 of `embed.rs`; says whether there is more to do.
    fn look_back(&mut self) -> bool {
        let (core, driver) = (self.core, self.core.driver());
        let is_watched = core.host.is_watched();
        if is_watched {
            core.bell.announce(Wait::Reactor);
        }
        let is_waited_for = self.pool.blocking.in_flight() > 0;
        let has_more = driver.announce_leave(is_waited_for)
            || core.has_owned_work()
            || !core.lull().is_empty()
            || self.sees_work();
        core.host.note_more(has_more);
        if is_watched && has_more {
            core.bell.ring();
        }
        has_more
    }
}
