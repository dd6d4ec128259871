//! What a turn of the worker's loop has done, for the user's `on_turn` hook.
//!
//! A turn begins with a look at the driver or a wait, which deliver events and fire timers, and ends before the next
//! one. Without a hook nothing is kept here; the worker counts the runs of the class *again* and their time all the
//! same (a comparison for a measured run, two instructions for one of that class).
//!
//! Rejected: a hook for each phase (five calls a turn, and the user adds up). Sums in `Metrics` (a turn is lost in
//! them, and it is the turn that one wants to see).

use std::time::Duration;

use super::Worker;
use crate::runtime::Phases;
use crate::scheduler::config::Config;
use crate::scheduler::driver::Delivered;

/// The turn so far, apart from its runs.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// When it began, and when its wait did, in system nanoseconds.
    began: u64,
    wait_began: u64,
    waited: u64,
    delivered: Delivered,
    idle: usize,
}

impl Recorder {
    /// If the user wants to be told.
    pub(super) fn of(config: &Config, now: u64) -> Option<Self> {
        config.hooks.turn.is_some().then(|| Self { began: now, ..Self::default() })
    }
}

impl Worker<'_> {
    #[inline]
    pub(super) fn note_delivered(&mut self, delivered: Delivered) {
        if let Some(observer) = &self.core.observer {
            observer.delivered(delivered.events, delivered.timers);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.delivered.events += delivered.events;
            recorder.delivered.timers += delivered.timers;
        }
    }

    #[inline]
    pub(super) fn note_wait(&mut self, now: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.wait_began = now;
        }
    }

    #[inline]
    pub(super) fn note_waited(&mut self, now: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.waited += now.saturating_sub(recorder.wait_began);
        }
    }

    /// One future of the idle queue goes on.
    pub(super) fn note_idle(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.idle += 1;
        }
    }

    /// Tells of the turn that is over, if it has done anything.
    #[inline]
    pub(super) fn end_turn(&mut self) {
        if self.recorder.is_some() {
            self.tell_turn();
        }
    }

    #[cold]
    fn tell_turn(&mut self) {
        self.count_unmeasured();
        self.meter.leave_out();
        let now = self.meter.system_now();
        let Some(turn) = self.recorder.take() else { return };
        let [all, again] = [self.runs(), self.again_runs].map(|runs| runs as usize);
        let ran = if all > 0 { self.ran } else { 0 }; // without a run it is what the scheduler took
        let again_ran = self.again_ran.min(ran);
        let [ran, again_ran, waited] = [ran, again_ran, turn.waited].map(Duration::from_nanos);
        let took = Duration::from_nanos(now.saturating_sub(turn.began));
        let phases = Phases {
            worker: self.core.index(),
            waited,
            events: turn.delivered.events,
            timers: turn.delivered.timers,
            woken: (all.saturating_sub(again), ran.saturating_sub(again_ran)),
            again: (again, again_ran),
            idle: turn.idle,
            rest: took.saturating_sub(waited + ran),
        };
        if !phases.is_empty() {
            self.shared.config.hooks.after_turn(&phases);
        }
        self.meter.leave_out(); // the hook is no part of the next run, and of no turn
        let began = self.meter.system_now();
        self.recorder = Some(Recorder { began, ..Recorder::default() });
    }
}
