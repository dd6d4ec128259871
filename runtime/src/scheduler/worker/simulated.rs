//! What the scheduler does in a simulation: which task runs next, when none can, and what is a thread elsewhere.
//!
//! `sim/world.rs` decides; here are the places where it is asked. Without the feature none of this is compiled, and
//! outside of a simulation each costs a branch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mini_context::sim;
use mini_time::Clock;

use super::Worker;
use crate::scheduler::config::Config;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::sim::world::{Halt, World};
use crate::sim::{hosts, unseen};
use crate::task::{Class, JoinHandle, Origin, Queued};

/// In place of the id of a main task.
const MAIN: u64 = 0;

impl Config {
    /// The clock, if the runtime is simulated. It begins with the time that the program reads in its first step: where
    /// `interpose!` is used, it and the standard library's `Instant` are one clock.
    pub(crate) fn simulated_clock(&self) -> Option<Clock> {
        self.simulation?;
        sim::begin_step(0, Duration::ZERO);
        let begin = Instant::now();
        sim::end_step();
        Some(Clock::paused_at(begin))
    }
}

impl Core {
    /// The core of a runtime that is simulated, if `config` says so.
    pub(crate) fn simulated(mut self, config: &Config, clock: &Clock) -> Self {
        self.world = config.simulation.map(|limits| Box::new(World::new(limits, clock)));
        self
    }

    /// Another thread than the owner has woken a task.
    pub(crate) fn note_intruder(&self, task: u64) {
        if let Some(world) = &self.world {
            world.note_intruder(task);
        }
    }

    /// How many could run. Owner only.
    pub(crate) fn waiting(&self) -> usize {
        Class::ALL.into_iter().map(|class| self.owned_len(class)).sum()
    }

    /// Their ids, the class *again* last. Owner only.
    fn list_waiting(&self, ids: &mut Vec<u64>) {
        let id = |entry: &Queued| if entry.is_main() { MAIN } else { entry.id().get() };
        ids.clear();
        for class in Class::ALL {
            self.entries(class, |entries| ids.extend(entries.iter().map(id)));
        }
    }

    /// Takes the entry at `at` of what [`list_waiting`](Self::list_waiting) has listed.
    fn take(&self, at: usize) -> Option<Queued> {
        let woken = self.owned_len(Class::Woken);
        match at.checked_sub(woken) {
            None => self.entries(Class::Woken, |entries| entries.remove(at)),
            Some(at) => self.entries(Class::Again, |entries| entries.remove(at)),
        }
    }
}

impl Worker<'_> {
    /// What runs next, if this is a simulation: then `Some`.
    #[inline]
    pub(super) fn next_simulated(&mut self) -> Option<Option<Queued>> {
        let core = self.core;
        core.world.as_ref().map(|world| self.go_on(world))
    }

    /// Lets time go on until an entry can run; `None` if it stands still, or should.
    #[cold]
    fn go_on(&mut self, world: &World) -> Option<Queued> {
        let driver = self.core.driver();
        loop {
            // Unix sockets and pipes.
            let has_heard = driver.has_sockets() && driver.poll(&mut self.events, false).events > 0;
            let now = world.elapsed(driver.timers().clock().now());
            world.advance(driver.reactor(), now);
            sim::end_step();
            let entry = self.pick(world, now).unwrap_or_else(|halt| {
                self.halt(world, halt);
                None
            });
            // There may be more to hear than fits into one poll.
            if entry.is_some() || !has_heard && !self.jump(world) {
                return entry;
            }
            self.collect();
        }
    }

    /// Chooses who of those that could run at `now` does.
    fn pick(&self, world: &World, now: Duration) -> Result<Option<Queued>, Halt> {
        if unseen::has_some() {
            return Err(Halt::unseen());
        }
        let core = self.core;
        let mut tasks = world.scratch();
        core.list_waiting(&mut tasks);
        hosts::learn(&tasks, core);
        for (at, host) in hosts::frozen_among(&tasks) {
            tasks.remove(at);
            if let Some(entry) = core.take(at) {
                hosts::freeze(host, entry);
            }
        }
        if tasks.is_empty() {
            return world.check_time(now).map(|()| None);
        }
        let entry = core.take(world.pick(&tasks, now)?);
        entry.iter().for_each(|entry| world.note_entry(entry));
        Ok(entry)
    }

    /// Nothing can run: time goes on to the next deadline, or to what happens next in the network. Says whether it
    /// does: not if something else is to be done first.
    fn jump(&self, world: &World) -> bool {
        let driver = self.core.driver();
        let network = world.next_event();
        let has_next = network.is_some() || driver.has_deadline();
        if !has_next || self.is_awaited() || world.is_halted() {
            return false;
        }
        let has_jumped = driver.timers().auto_advance_until(network);
        driver.fire();
        has_jumped
    }

    /// Whether the simulation cannot go on, if there is nothing to run: nobody else would end a wait.
    pub(super) fn is_halted(&self) -> bool {
        let Some(world) = self.core.world.as_ref().filter(|_| self.is_in_block_on) else { return false };
        // A socket that is the system's hears only of what tasks do.
        let has_next = world.next_event().is_some() || self.core.driver().has_deadline();
        if !world.is_halted() && !has_next && !self.is_awaited() {
            self.halt(world, Halt::deadlock());
        }
        world.is_halted()
    }

    /// Whether something goes on that takes no virtual time.
    fn is_awaited(&self) -> bool {
        self.shared.blocking.in_flight() > 0 || self.sees_work() || !self.core.idle_queue().is_empty()
    }

    fn halt(&self, world: &World, mut halt: Halt) {
        // In no run: the dump is to say what the main task waits for.
        self.shared.idle.park(self.core.index());
        let dump = self.shared.dump();
        self.shared.idle.unpark(self.core.index());
        halt.explain(&dump);
        hosts::thaw(None, self.core);
        world.note_halt(halt, dump);
        sim::begin_step(sim::host(), sim::now()); // of the destructors
    }
}

impl Shared {
    /// The time since the simulation began, if this is one.
    pub(crate) fn virtual_time(&self) -> Option<Duration> {
        let core = &self.cores[0];
        core.world.as_ref().map(|world| world.elapsed(core.driver().timers().clock().now()))
    }

    /// The names of the hosts of `tasks`, by their ids: empty if this is no simulation, if there is no host but that of
    /// the test, or if another thread asks.
    pub(crate) fn hosts_of(&self, tasks: impl Iterator<Item = u64>) -> HashMap<u64, Arc<str>> {
        if !self.config.is_simulated() || !hosts::has_some() {
            return HashMap::new();
        }
        let names: Vec<Arc<str>> = mini_net::sim::host_names().into_iter().map(Arc::from).collect();
        tasks.map(|task| (task, names[hosts::host_of(task) as usize].clone())).collect()
    }

    /// A blocking job: a step on this thread, which takes virtual time.
    #[track_caller]
    pub(crate) fn simulate_blocking<F, T>(self: &Arc<Self>, job: F, origin: impl Origin) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let delay = self.cores[0].world.as_ref().map(|world| world.draw_delay()).unwrap_or_default();
        let location = origin.location();
        let job = async move {
            mini_time::sleep_of(location, delay).await; // in dumps at the line that wants the job done
            mini_context::swap_budget(mini_context::ENDLESS); // a job has none
            job() // in a task: it may not block, as nobody else would run
        };
        self.spawn(job, origin)
    }
}
