//! What a thread tries before a wait that it may save, as long as that pays.
//!
//! Used for the spins of `spin.rs`, and for a worker's last look at the driver (`worker/park.rs`). A try costs no more than the wait
//! that it may save, so that the two together are hardly twice the better one (Karlin and others, "Competitive randomized
//! algorithms for nonuniform problems", SODA 1990). After a few in vain, each more doubles the number of waits until the next try,
//! up to a limit; one that pays starts anew. How many and what limit follow from the price of a try.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::sync::HAS_TIME;

/// What came of the tries at one place where threads wait: `PATIENCE` in vain change nothing, and there are never more than
/// `MAX_PAUSE` waits without one. One thread at a time uses it, so it is not modelled.
#[derive(Debug, Default)]
pub(crate) struct Backoff<const PATIENCE: u32, const MAX_PAUSE: u32> {
    /// Waits until the next one.
    pause: AtomicU32,
    /// How many in a row were in vain.
    in_vain: AtomicU32,
}

impl<const PATIENCE: u32, const MAX_PAUSE: u32> Backoff<PATIENCE, MAX_PAUSE> {
    /// Before a wait: whether to try to save it.
    pub(crate) fn are_due(&self) -> bool {
        let pause = self.pause.load(Relaxed);
        self.pause.store(pause.saturating_sub(1), Relaxed);
        pause == 0 || !HAS_TIME // a model shall see what comes of it
    }

    /// After a try: whether it has saved the wait.
    pub(crate) fn note(&self, has_paid: bool) {
        let in_vain = if has_paid { 0 } else { self.in_vain.load(Relaxed).saturating_add(1) };
        self.in_vain.store(in_vain, Relaxed);
        let doublings = in_vain.saturating_sub(PATIENCE).min(u32::BITS - 1);
        self.pause.store(((1 << doublings) - 1).min(MAX_PAUSE), Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// How many of `waits` begin with a try, if all are in vain.
    fn in_vain<const PATIENCE: u32, const MAX_PAUSE: u32>(tries: &Backoff<PATIENCE, MAX_PAUSE>, waits: u32) -> usize {
        let is_tried = |_: &u32| {
            let is_due = tries.are_due();
            if is_due {
                tries.note(false);
            }
            is_due
        };
        (0..waits).filter(is_tried).count()
    }

    #[test]
    fn tries_in_vain_become_rare() {
        let tries = Backoff::<0, 1024>::default();
        assert_eq!(in_vain(&tries, 1024), 10);
        assert_eq!(in_vain(&tries, 100 * 1025), 100);
        let tries = Backoff::<5, 7>::default();
        assert_eq!(in_vain(&tries, 6), 6);
        assert_eq!(in_vain(&tries, 2 + 4 + 100 * 8), 102);
    }

    #[test]
    fn one_that_pays_is_followed_by_others() {
        let tries = Backoff::<0, 1024>::default();
        in_vain(&tries, 100_000);
        while !tries.are_due() {}
        tries.note(true);
        assert!((0..100).all(|_| tries.are_due()));
    }
}
