//! A short spin before a wait, where that has paid lately.
//!
//! Used by a worker that has nothing to do while a blocking job is out or no socket is registered, and by the blocking
//! thread that has just done a job. If another processor must come out of its sleep, on a virtual machine, ending a
//! wait through the kernel costs the waker 15 µs and the waiter 23 µs. Many jobs take less than either, and so do many
//! answers of other threads. If both sides spin, neither cost occurs: a job and back takes 3 to 10 µs instead of 35,
//! and less processor time too. If one side spins, only the other side's wait is left: a thread that is woken and wakes
//! a task takes 20 µs instead of 50.
//!
//! A spin takes no longer than the cost of the wait that it may save, so both together cost at most about twice the
//! better one (Karlin and others, "Competitive randomized algorithms for nonuniform problems", SODA 1990). Useless
//! spins become rare: each doubles the number of waits until the next spin, and a spin that pays starts anew. Spins are
//! useless on one processor, where jobs are long, or where other threads keep the processors busy.
//!
//! Rejected:
//! - To ask for the number of processors and their load: files to read, again and again, without information on the
//!   duration of the jobs.
//! - To spin for sockets: their events don't end a spin, and it takes the processor from a client on the same machine.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use mini_context::rules::MOST_WAITS;

use crate::primitives::{Deadline, HAS_TIME};

/// The results of the spins at one place where threads wait. One thread at a time uses it, so it is not modelled.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    /// Waits until the next spin.
    pause: AtomicU32,
    /// How many spins in a row were useless.
    in_vain: AtomicU32,
}

impl Spins {
    /// Before a wait: whether to try to save it.
    pub(crate) fn are_due(&self) -> bool {
        let pause = self.pause.load(Relaxed);
        self.pause.store(pause.saturating_sub(1), Relaxed);
        pause == 0 || !HAS_TIME // a model shall see what comes of it
    }

    /// After a spin: whether it has saved the wait.
    pub(crate) fn note(&self, has_paid: bool) {
        let in_vain = if has_paid { 0 } else { self.in_vain.load(Relaxed).saturating_add(1) };
        self.in_vain.store(in_vain, Relaxed);
        let pause = 1_u32.checked_shl(in_vain).map_or(MOST_WAITS, |waits| waits - 1);
        self.pause.store(pause.min(MOST_WAITS), Relaxed);
    }
}

/// Spins until `is_over`, for at most `limit`; says whether it was over in time. (If the thread was preempted during
/// the spin, the time is up: another thread needs the CPU.)
pub(crate) fn until(limit: Duration, mut is_over: impl FnMut() -> bool) -> bool {
    if !HAS_TIME {
        return is_over(); // a model has no use for more checks
    }
    let deadline = Deadline::after(limit);
    while !deadline.is_over() {
        if is_over() {
            return true;
        }
        hint::spin_loop();
    }
    false
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use mini_context::rules::SPIN_FOR_JOB;

    use super::*;

    /// How many of `waits` begin with a spin, if no spin pays.
    fn in_vain(spins: &Spins, waits: u32) -> usize {
        let is_tried = |_: &u32| {
            let is_due = spins.are_due();
            if is_due {
                spins.note(false);
            }
            is_due
        };
        (0..waits).filter(is_tried).count()
    }

    #[test]
    fn a_spin_ends_when_it_is_over_and_when_it_is_not() {
        let mut checks = 0;
        assert!(until(Duration::from_secs(60), || {
            checks += 1;
            checks == 3
        }));
        assert_eq!(checks, 3);
        assert!(!until(SPIN_FOR_JOB, || false));
    }

    #[test]
    fn spins_in_vain_become_rare() {
        let spins = Spins::default();
        assert_eq!(in_vain(&spins, MOST_WAITS), 8);
        assert_eq!(in_vain(&spins, 100 * (MOST_WAITS + 1)), 100);
    }

    #[test]
    fn one_that_pays_is_followed_by_others() {
        let spins = Spins::default();
        in_vain(&spins, 100_000);
        while !spins.are_due() {}
        spins.note(true);
        assert!((0..100).all(|_| spins.are_due()));
    }
}
