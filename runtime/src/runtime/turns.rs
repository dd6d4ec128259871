//! `Turns`: the observer behind [`Builder::on_turn`](crate::runtime::Builder::on_turn). It adds up what a worker does
//! between two ends of a turn.
//!
//! Rejected: a hook for each phase (five calls a turn, and the user adds up). Sums in `Metrics` (a turn is lost in
//! them, and it is the turn that one wants to see).

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Phases;
use super::settings::TurnHook;
use crate::scheduler::observe::{Observe, ObserveCore, Then};
use crate::threads;

pub(crate) struct Turns(TurnHook);

/// The turns of one worker.
struct TurnsOfCore {
    hook: TurnHook,
    index: usize,
    turn: Mutex<Turn>, // the owner alone locks it
}

/// A turn so far.
struct Turn {
    began: Instant,
    poll_began: Instant,
    /// Since when the worker waits, or nobody holds the core.
    waits_since: Option<Instant>,
    waited: Duration,
    events: usize,
    timers: usize,
    woken: (usize, Duration),
    again: (usize, Duration),
    idle: usize,
}

impl Turns {
    pub(crate) fn observer(hook: TurnHook) -> Arc<dyn Observe> {
        Arc::new(Self(hook))
    }
}

impl Observe for Turns {
    fn of_core(self: Arc<Self>, index: usize, is_guest: bool) -> Option<Box<dyn ObserveCore>> {
        (!is_guest).then(|| Box::new(TurnsOfCore { hook: self.0.clone(), index, turn: Mutex::new(Turn::new()) }) as _)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Turn {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            poll_began: now,
            waits_since: None,
            waited: Duration::ZERO,
            events: 0,
            timers: 0,
            woken: (0, Duration::ZERO),
            again: (0, Duration::ZERO),
            idle: 0,
        }
    }
}

impl TurnsOfCore {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObserveCore for TurnsOfCore {
    fn begin(&self, _id: u64, _nothing_else: bool) {
        self.turn().poll_began = Instant::now();
    }

    fn end(&self, _then: Then, was_again: bool) {
        let turn = &mut *self.turn();
        let (polls, time) = if was_again { &mut turn.again } else { &mut turn.woken };
        *polls += 1;
        *time += turn.poll_began.elapsed();
    }

    fn parks(&self) {
        self.turn().waits_since = Some(Instant::now());
    }

    fn unparks(&self) {
        let turn = &mut *self.turn();
        if let Some(since) = turn.waits_since.take() {
            turn.waited += since.elapsed();
        }
    }

    fn delivered(&self, events: usize, timers: usize) {
        let turn = &mut *self.turn();
        turn.events += events;
        turn.timers += timers;
    }

    fn wakes_idle(&self) {
        self.turn().idle += 1;
    }

    fn turn_ends(&self) {
        let turn = std::mem::replace(&mut *self.turn(), Turn::new());
        let phases = Phases {
            worker: self.index,
            waited: turn.waited,
            events: turn.events,
            timers: turn.timers,
            woken: turn.woken,
            again: turn.again,
            idle: turn.idle,
            rest: turn.began.elapsed().saturating_sub(turn.waited + turn.woken.1 + turn.again.1),
        };
        if !phases.is_empty() {
            threads::call(Some(|| (self.hook)(&phases)), "on_turn");
            self.turn().began = Instant::now(); // the hook is no part of a turn
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
