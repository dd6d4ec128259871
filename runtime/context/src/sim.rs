//! What the simulated parts of several crates share: random numbers, and on each thread the state of the step in
//! progress: its virtual time, the host whose task runs, and the faults that were injected.
//!
//! A simulation runs on one thread. It calls [`enter`], and [`leave`] at its end.

mod faults;
mod random;

pub use faults::{Fault, Faults, inject, injected};
pub use random::Random;

use std::cell::{Cell, RefCell};
use std::time::Duration;

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step { is_simulated: false, host: 0, now: Duration::ZERO }) };
    static FAULTS: RefCell<Option<Faults>> = const { RefCell::new(None) };
}

/// The step in progress.
#[derive(Clone, Copy)]
struct Step {
    is_simulated: bool,
    host: u32,
    now: Duration,
}

/// A simulation begins on this thread, and injects faults but for those that `faults` skips.
pub fn enter(faults: Faults) {
    STEP.set(Step { is_simulated: true, host: 0, now: Duration::ZERO });
    FAULTS.set(Some(faults));
}

/// The simulation on this thread ends. Returns its faults.
pub fn leave() -> Option<Faults> {
    STEP.set(Step { is_simulated: false, host: 0, now: Duration::ZERO });
    FAULTS.take()
}

/// Whether a simulation runs on this thread.
#[inline]
pub fn is_simulated() -> bool {
    STEP.get().is_simulated
}

/// The host whose task runs: 0 is the one of the test itself.
pub fn host() -> u32 {
    STEP.get().host
}

/// The time since the simulation began.
pub fn now() -> Duration {
    STEP.get().now
}

/// A step of a task of `host` begins, at the virtual time `now`.
pub fn begin_step(host: u32, now: Duration) {
    STEP.set(Step { host, now, ..STEP.get() });
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
}
