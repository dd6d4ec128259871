//! The part that only a simulated runtime has: the choice of the next task, and the record of what has happened.
//!
//! Each core has one, for its owner only. The runtime is a `current_thread` runtime with a paused clock, so all of its
//! tasks are owned, and time advances only when none can run: then it jumps to the next deadline.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mini_context::sim::{self, Random};
use mini_kernel::primitives::{Mutex, MutexGuard, lock};
use mini_net::{Reactor, sim as network};
use mini_time::{Clock, Instant};

use super::hosts;
use super::steps::Steps;
use super::strategy::Strategy;
use crate::insight::Dump;

/// The limits of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) seed: u64,
    /// In virtual time.
    pub(super) time: Duration,
    /// Without the time going on.
    pub(super) steps: u64,
    pub(super) keeps_steps: bool,
    /// Tasks run in the order in which they became ready, in every seed.
    pub(super) is_fifo: bool,
}

const DEADLOCK: &str = "deadlock: nothing is left that could wake a task";

/// The reason why a simulation cannot continue. The text is for the person who reads the failure.
#[derive(Debug)]
pub(crate) struct Halt(pub(super) String);

impl Halt {
    /// A task has panicked, and nobody would see it: `unseen` says which.
    pub(crate) fn unseen() -> Self {
        Self("a panic that no join handle returns".to_owned())
    }

    pub(crate) fn deadlock() -> Self {
        Self(DEADLOCK.to_owned())
    }

    /// Adds a line about what `dump` does not show.
    pub(crate) fn explain(&mut self, dump: &Dump) {
        let paused: Vec<String> = hosts::paused().into_iter().map(network::host_name).collect();
        match &paused[..] {
            [] if self.0 == DEADLOCK && dump.may_wait_for_threads() => {
                self.0 += "\n  threads that the program starts are neither simulated nor waited for";
            }
            [] => {}
            [host] => self.0 += &format!("\n  host {host} is paused: its tasks wait until `resume`"),
            hosts => self.0 += &format!("\n  hosts {} are paused: their tasks wait until `resume`", hosts.join(", ")),
        }
    }
}

/// The simulation of one seed.
#[derive(Debug)]
pub(crate) struct World {
    limits: Limits,
    begin: Instant,
    state: Mutex<State>,
    halted: Mutex<Option<(Halt, Dump)>>,
    /// A task that another thread has woken, and no other step since.
    intruder: AtomicU64,
    /// Calls of [`settle`](crate::sim::settle) that wait.
    pub(super) settling: AtomicU64,
    /// How many tasks were spawned.
    spawned: AtomicU64,
    scratch: Mutex<Vec<u64>>,
}

#[derive(Debug)]
struct State {
    strategy: Strategy,
    /// Of the test, and of what the simulation draws beside the schedule.
    random: Random,
    delays: Random,
    steps: Steps,
    /// When the last step was, and how many there were at that time.
    now: Duration,
    steps_now: u64,
}

impl World {
    pub(crate) fn new(limits: Limits, clock: &Clock) -> Self {
        let state = State {
            strategy: if limits.is_fifo { Strategy::fifo() } else { Strategy::new(limits.seed) },
            random: Random::new(limits.seed, 1),
            delays: Random::new(limits.seed, 2),
            steps: Steps::new(limits.keeps_steps),
            now: Duration::ZERO,
            steps_now: 0,
        };
        Self {
            limits,
            begin: clock.now(),
            state: Mutex::new(state),
            halted: Mutex::default(),
            intruder: AtomicU64::new(0),
            settling: AtomicU64::new(0),
            spawned: AtomicU64::new(0),
            scratch: Mutex::default(),
        }
    }

    /// Lets happen in the network what is due at `now`.
    pub(crate) fn advance(&self, reactor: &Reactor, now: Duration) {
        sim::set_time(now); // on the host of the last step: what that has spawned is not known yet
        network::advance(reactor);
    }

    /// When something happens in the network next.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        network::next_time().map(|at| self.begin + at)
    }

    /// # Errors
    ///
    /// If the simulation has taken too long at `now`: the network may go on for ever.
    pub(crate) fn check_time(&self, now: Duration) -> Result<(), Halt> {
        if now > self.limits.time {
            return Err(Halt(format!(
                "the simulation has taken {:?} of virtual time; `time_limit` of `#[mini::test(sim)]` or of `Sim` \
                 allows more",
                self.limits.time
            )));
        }
        Ok(())
    }

    /// A buffer for ids, with room.
    pub(crate) fn scratch(&self) -> MutexGuard<'_, Vec<u64>> {
        lock(&self.scratch)
    }

    /// Which of `tasks`, of which there is at least one, runs at `now`.
    ///
    /// # Errors
    ///
    /// If the simulation cannot go on.
    pub(crate) fn pick(&self, tasks: &[u64], now: Duration) -> Result<usize, Halt> {
        let intruder = self.intruder.load(Relaxed);
        if intruder != 0 {
            return Err(Halt(format!(
                "task {intruder} was woken by a thread that is not simulated, so the seed no longer determines the \
                 run; use tasks and spawn_blocking instead of threads"
            )));
        }
        self.check_time(now)?;
        let mut state = lock(&self.state);
        state.steps_now = if now == state.now { state.steps_now + 1 } else { 0 };
        state.now = now;
        if state.steps_now > self.limits.steps {
            return Err(Halt(format!(
                "{} steps, and no time has passed: a livelock; `step_limit` of `#[mini::test(sim)]` or of `Sim` \
                 allows more",
                self.limits.steps
            )));
        }
        let at = hosts::dying_among(tasks).unwrap_or_else(|| state.strategy.pick(tasks));
        let host = hosts::begin_step(tasks[at]);
        state.steps.note(tasks[at], host, now);
        sim::begin_step(host, now);
        Ok(at)
    }

    /// It cannot go on. The first reason counts.
    pub(crate) fn note_halt(&self, halt: Halt, dump: Dump) {
        lock(&self.halted).get_or_insert((halt, dump));
    }

    pub(super) fn has_halted(&self) -> bool {
        lock(&self.halted).is_some()
    }

    pub(super) fn take_halt(&self) -> Option<(Halt, Dump)> {
        lock(&self.halted).take()
    }

    /// Another thread has woken that task.
    pub(crate) fn note_intruder(&self, task: u64) {
        self.intruder.store(task.max(1), Relaxed);
    }

    /// The id of a task that is spawned now: they are counted, as the seed says what is spawned.
    pub(crate) fn next_id(&self) -> NonZeroU64 {
        NonZeroU64::MIN.saturating_add(self.spawned.fetch_add(1, Relaxed))
    }

    /// How long a blocking job takes.
    pub(crate) fn draw_delay(&self) -> Duration {
        Duration::from_micros(lock(&self.state).delays.below(1000))
    }

    pub(super) fn draw(&self) -> u64 {
        lock(&self.state).random.draw()
    }

    pub(super) fn seed(&self) -> u64 {
        self.limits.seed
    }

    pub(super) fn with_steps<T>(&self, f: impl FnOnce(&mut Steps) -> T) -> T {
        f(&mut lock(&self.state).steps)
    }

    /// The virtual time.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begin)
    }
}
