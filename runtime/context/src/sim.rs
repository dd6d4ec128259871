//! State that the simulated parts of several crates share: random numbers, and on each thread the step in progress,
//! with its virtual time, the host whose task runs, and the injected faults.
//!
//! A simulation runs on one thread. It calls [`enter`], and [`leave`] at its end.

mod clocks;
mod faults;
mod random;

pub use clocks::{host_time, make_timers_late, real_wait, skew};
pub use faults::{Fault, Faults, inject, injected};
pub use random::Random;

use crate::others::{PLACES, TableEntry};
use clocks::Skew;
use std::cell::{Cell, RefCell};
use std::time::Duration;

thread_local! {
    // Nothing in it has to be dropped, so a thread that starts or ends can read it too.
    static STEP: Cell<Step> = const { Cell::new(Step::new(false)) };
    static FAULTS: RefCell<Option<Faults>> = const { RefCell::new(None) };
    /// The further waits of tasks; empty while there is no such task. See `others.rs`.
    static BESIDE: RefCell<Vec<TableEntry>> = const { RefCell::new(Vec::new()) };
}

/// The step in progress.
#[derive(Clone, Copy)]
struct Step {
    is_simulated: bool,
    /// A step has begun, and the scheduler has not taken over since.
    is_running: bool,
    host: u32,
    now: Duration,
    /// The skew of the host's clock.
    skew: Option<Skew>,
}

impl Step {
    const fn new(is_simulated: bool) -> Self {
        Self { is_simulated, is_running: false, host: 0, now: Duration::ZERO, skew: None }
    }
}

/// Begins a simulation on this thread. It injects faults, except for those that `faults` skips.
pub fn enter(faults: Faults) {
    STEP.set(Step::new(true));
    clocks::reset();
    FAULTS.set(Some(faults));
}

/// Ends the simulation on this thread, and returns its faults.
pub fn leave() -> Option<Faults> {
    STEP.set(Step::new(false));
    clocks::reset();
    drop(BESIDE.take());
    FAULTS.take()
}

/// Calls `f` with the places in which the simulation of this thread keeps the waits of its tasks.
pub(crate) fn with_places<T>(f: impl FnOnce(&[TableEntry]) -> T) -> T {
    BESIDE.with_borrow_mut(|places| {
        if places.is_empty() {
            places.resize_with(PLACES, TableEntry::new);
        }
        f(places)
    })
}

/// Returns `true` if a simulation runs on this thread.
#[inline]
pub fn is_simulated() -> bool {
    STEP.get().is_simulated
}

/// Returns the host whose task runs: 0 is the host of the test itself.
pub fn host() -> u32 {
    STEP.get().host
}

/// Returns the time since the simulation began.
pub fn now() -> Duration {
    STEP.get().now
}

/// Begins a step of a task of `host`, at the virtual time `now`.
pub fn begin_step(host: u32, now: Duration) {
    STEP.set(Step { is_running: true, host, now, skew: clocks::skew_of(host), ..STEP.get() });
}

/// Sets the virtual time to `now`. The host is still that of the last step.
pub fn set_time(now: Duration) {
    STEP.set(Step { is_running: true, now, ..STEP.get() });
}

/// Ends the step. The scheduler, which uses the system's clock, looks for the next one.
pub fn end_step() {
    STEP.set(Step { is_running: false, ..STEP.get() });
}

/// Returns the time since the simulation began, on the clock of the simulated program's host. Returns `None` outside of
/// the program: in other threads, and in the scheduler between two steps.
#[inline]
pub fn program_time() -> Option<Duration> {
    let step = STEP.get();
    (step.is_simulated && step.is_running).then(|| host_time().unwrap_or(step.now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_a_number_unless_there_is_no_simulation() {
        assert!(!inject(|| unreachable!()) && !is_simulated());
        enter(Faults::skipping(vec![2..=3]));
        begin_step(4, Duration::from_secs(1));
        let injected: Vec<bool> = (1..=4).map(|number| inject(|| format!("fault {number}"))).collect();
        assert_eq!(injected, [true, false, false, true]);
        assert_eq!((host(), now()), (4, Duration::from_secs(1)));
        let faults = leave().unwrap();
        let told: Vec<String> = faults.injected().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["#1 fault 1 at 1.000000 s", "#4 fault 4 at 1.000000 s"]);
        assert_eq!(faults.count(), 4);
        assert!(leave().is_none());
    }

    #[test]
    fn the_scheduler_between_two_steps_has_no_virtual_time() {
        let second = Duration::from_secs(1);
        begin_step(0, second);
        assert_eq!(program_time(), None, "there is no simulation");
        enter(Faults::default());
        assert_eq!(program_time(), None, "it has not begun");
        begin_step(0, second);
        assert_eq!(program_time(), Some(second));
        end_step();
        assert_eq!((program_time(), now(), is_simulated()), (None, second, true));
        leave();
    }
}
