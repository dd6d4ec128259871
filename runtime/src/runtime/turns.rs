//! `Turns`: the observer behind [`Builder::on_turn`](crate::runtime::Builder::on_turn). It adds up what a worker does
//! between two ends of a turn.
//!
//! Rejected: a hook for each phase (five calls a turn, and the user adds up). Sums in `Metrics` (a turn is lost in
//! them, and it is the turn that one wants to see).

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mini_kernel::scheduler::observe::{Observe, ObserveCore, Then, Who};
use mini_kernel::threads;

use super::Phases;
use super::settings::TurnHook;

pub(crate) struct Turns(TurnHook);

/// The turns of one worker.
struct TurnsOfCore {
    hook: TurnHook,
    turn: Mutex<Turn>, // the owner alone locks it
}

/// A turn so far.
struct Turn {
    began: Instant,
    poll_began: Instant,
    /// Since when the worker waits.
    waits_since: Option<Instant>,
    phases: Phases,
}

impl Turns {
    pub(crate) fn observer(hook: TurnHook) -> Arc<dyn Observe> {
        Arc::new(Self(hook))
    }
}

impl Observe for Turns {
    fn of_core(self: Arc<Self>, index: usize, is_guest: bool) -> Option<Box<dyn ObserveCore>> {
        (!is_guest).then(|| Box::new(TurnsOfCore { hook: self.0.clone(), turn: Mutex::new(Turn::new(index)) }) as _)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Turn {
    fn new(worker: usize) -> Self {
        let (now, none) = (Instant::now(), (0, Duration::ZERO));
        let (waited, rest) = (Duration::ZERO, Duration::ZERO);
        let phases = Phases { worker, waited, events: 0, timers: 0, woken: none, again: none, idle: 0, rest };
        Self { began: now, poll_began: now, waits_since: None, phases }
    }
}

impl TurnsOfCore {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObserveCore for TurnsOfCore {
    fn begin(&self, _task: Who, _nothing_else: bool) {
        self.turn().poll_began = Instant::now();
    }

    fn end(&self, _then: Then, was_compute_bound: bool) {
        let turn = &mut *self.turn();
        let (polls, time) = if was_compute_bound { &mut turn.phases.again } else { &mut turn.phases.woken };
        *polls += 1;
        *time += turn.poll_began.elapsed();
    }

    fn parks(&self) {
        self.turn().waits_since = Some(Instant::now());
    }

    fn unparks(&self) {
        let turn = &mut *self.turn();
        match turn.waits_since.take() {
            Some(since) => turn.phases.waited += since.elapsed(),
            None => *turn = Turn::new(turn.phases.worker), // a thread has come: the time before is no turn's
        }
    }

    fn leaves(&self) {}

    fn delivered(&self, events: usize, timers: usize) {
        let phases = &mut self.turn().phases;
        phases.events += events;
        phases.timers += timers;
    }

    fn wakes_idle(&self) {
        self.turn().phases.idle += 1;
    }

    fn turn_ends(&self) {
        let mut turn = self.turn();
        let worker = turn.phases.worker;
        let Turn { began, mut phases, .. } = std::mem::replace(&mut *turn, Turn::new(worker));
        drop(turn); // the hook may run for long, and panic
        phases.rest = began.elapsed().saturating_sub(phases.waited + phases.woken.1 + phases.again.1);
        if !phases.is_empty() {
            threads::call(Some(|| (self.hook)(&phases)), "on_turn");
            self.turn().began = Instant::now(); // the hook is no part of a turn
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
