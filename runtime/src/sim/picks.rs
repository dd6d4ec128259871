//! What the scheduler asks of a simulation: which task runs next, and whether none can.
//!
//! `sim/world.rs` decides; here are the answers to [`Pick`], which is set in the configuration of the runtime.

use std::any::Any;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use mini_context::sim;
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::pick::Pick;
use mini_kernel::scheduler::worker::Worker;
use mini_kernel::task::{Class, Queued};
use mini_time::Instant;

use super::world::{Halt, World};
use super::{hosts, preempt, unseen};
use crate::insight;

/// In place of the id of a main task.
const MAIN: u64 = 0;

/// How many could run. Owner only.
pub(crate) fn waiting(core: &Core) -> usize {
    Class::ALL.into_iter().map(|class| core.owned_len(class)).sum()
}

/// Their ids, compute-bound tasks last. Owner only.
fn list_waiting(core: &Core, ids: &mut Vec<u64>) {
    let id = |entry: &Queued| if entry.is_main() { MAIN } else { entry.id().get() };
    ids.clear();
    for class in Class::ALL {
        core.entries(class, |entries| ids.extend(entries.iter().map(id)));
    }
}

/// Takes the entry at `at` of what [`list_waiting`](Self::list_waiting) has listed.
fn take(core: &Core, at: usize) -> Option<Queued> {
    let woken = core.owned_len(Class::Woken);
    match at.checked_sub(woken) {
        None => core.entries(Class::Woken, |entries| entries.remove(at)),
        Some(at) => core.entries(Class::ComputeBound, |entries| entries.remove(at)),
    }
}

impl Pick for World {
    #[cold]
    fn next(&self, worker: &mut Worker<'_>) -> Option<Queued> {
        let core = worker.core;
        let driver = core.driver();
        loop {
            // Unix sockets and pipes.
            let has_heard = driver.has_sockets() && driver.poll(&mut worker.events, false).events > 0;
            let now = self.elapsed(driver.timers().clock().now());
            self.advance(driver.reactor(), now);
            sim::end_step();
            let entry = self.choose(core, now).unwrap_or_else(|halt| {
                self.halt(worker, halt);
                None
            });
            // There may be more to hear than fits into one poll.
            if entry.is_some() || !has_heard && !self.jump(worker) {
                return entry;
            }
            worker.collect();
        }
    }

    fn is_halted(&self, worker: &Worker<'_>) -> bool {
        // A socket that is the system's hears only of what tasks do.
        let has_next = self.next_event().is_some() || worker.core.driver().has_deadline();
        if !self.has_halted() && !has_next && !is_awaited(worker) {
            self.halt(worker, Halt::deadlock());
        }
        self.has_halted()
    }

    fn next_id(&self) -> NonZeroU64 {
        World::next_id(self)
    }

    fn begin_poll(&self) {
        preempt::begin_poll();
    }

    fn note_intruder(&self, task: u64) {
        World::note_intruder(self, task);
    }

    fn job_delay(&self) -> Duration {
        self.draw_delay()
    }

    fn seed(&self) -> u64 {
        World::seed(self)
    }

    fn elapsed(&self, now: Instant) -> Duration {
        World::elapsed(self, now)
    }

    /// Empty also if another thread asks.
    fn hosts_of(&self, tasks: &mut dyn Iterator<Item = u64>) -> HashMap<u64, Arc<str>> {
        if !hosts::has_some() {
            return HashMap::new();
        }
        let names: Vec<Arc<str>> = mini_net::sim::host_names().into_iter().map(Arc::from).collect();
        tasks.map(|task| (task, names[hosts::host_of(task) as usize].clone())).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl World {
    /// The simulation of a runtime, if it is one.
    pub(super) fn of(core: &Core) -> Option<&World> {
        core.pick.as_ref()?.as_any().downcast_ref()
    }

    /// Chooses who of those that could run at `now` does.
    fn choose(&self, core: &Core, now: Duration) -> Result<Option<Queued>, Halt> {
        if unseen::has_some() {
            return Err(Halt::unseen());
        }
        let mut tasks = self.scratch();
        list_waiting(core, &mut tasks);
        hosts::learn(&tasks, core);
        for (at, host) in hosts::frozen_among(&tasks) {
            tasks.remove(at);
            if let Some(entry) = take(core, at) {
                hosts::freeze(host, entry);
            }
        }
        if tasks.is_empty() {
            return self.check_time(now).map(|()| None);
        }
        let entry = take(core, self.pick(&tasks, now)?);
        entry.iter().for_each(|entry| self.note_entry(entry));
        Ok(entry)
    }

    /// Nothing can run: time goes on to the next deadline, or to what happens next in the network. Says whether it
    /// does: not if something else is to be done first.
    fn jump(&self, worker: &Worker<'_>) -> bool {
        let driver = worker.core.driver();
        let network = self.next_event();
        let has_next = network.is_some() || driver.has_deadline();
        if !has_next || is_awaited(worker) || self.has_halted() {
            return false;
        }
        let has_jumped = driver.timers().auto_advance_until(network);
        driver.fire();
        has_jumped
    }

    fn halt(&self, worker: &Worker<'_>, mut halt: Halt) {
        let (core, shared) = (worker.core, worker.shared);
        // In no run: the dump is to say what the main task waits for.
        shared.idle.park(core.index());
        let dump = insight::dump(shared);
        shared.idle.unpark(core.index());
        halt.explain(&dump);
        hosts::thaw(None, core);
        self.note_halt(halt, dump);
        sim::begin_step(sim::host(), sim::now()); // of the destructors
    }
}

/// Whether something goes on that takes no virtual time.
fn is_awaited(worker: &Worker<'_>) -> bool {
    worker.shared.blocking.in_flight() > 0 || worker.sees_work() || !worker.core.idle_queue().is_empty()
}
