//! A short spin before a wait, where that has paid lately.
//!
//! Used by a worker that has nothing to do while a blocking job is out, and by the blocking thread that has just done one. To
//! end a wait through the kernel costs who does it 15 µs and who is woken 23 µs, where another processor must come out of its
//! sleep on a virtual machine; many a job takes less than one of the two. Where both sides spin, neither happens: a job and back
//! takes 3 to 10 µs instead of 35, and less of the processors' time too.
//!
//! A spin is as long as the wait that it may save is dear, so that the two together are hardly twice the better one (Karlin and
//! others, "Competitive randomized algorithms for nonuniform problems", SODA 1990). In vain it has cost that for nothing, as on
//! one processor, where jobs are long, or where others keep the processors busy: each such spin doubles the number of waits
//! until the next one, up to [`MAX_PAUSE`]. One that pays starts anew.
//!
//! Rejected: to ask how many processors there are and how busy (files to read, again and again, and it says nothing about how
//! long the jobs are). To spin before waits of a worker without a job out (events of sockets don't end a spin, and it takes the
//! processor from the client that runs beside the server), or after runs of 100 µs (the wait is little beside them, and others
//! are called to look out when such a worker comes out of it).

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::sync::{Deadline, HAS_TIME};

/// The longest spin: about what a wait costs.
pub(crate) const LIMIT: Duration = Duration::from_micros(20);

/// Waits without a spin between two that are in vain, at most.
const MAX_PAUSE: u32 = 1024;

/// What came of the spins at one place where threads wait. One thread at a time uses it, so it is not modelled.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    /// Waits until the next one.
    pause: AtomicU32,
    /// What `pause` was set to last.
    in_vain: AtomicU32,
}

impl Spins {
    /// Before a wait: whether to spin first.
    pub(crate) fn are_due(&self) -> bool {
        let pause = self.pause.load(Relaxed);
        self.pause.store(pause.saturating_sub(1), Relaxed);
        pause == 0 || !HAS_TIME // a model shall see them meet
    }

    /// After a spin: whether it has saved the wait.
    pub(crate) fn note(&self, has_paid: bool) {
        let pause = if has_paid { 0 } else { (2 * self.in_vain.load(Relaxed) + 1).min(MAX_PAUSE) };
        self.in_vain.store(pause, Relaxed);
        self.pause.store(pause, Relaxed);
    }
}

/// Spins until `is_over`, or for as long as a wait is dear; says whether it was over in time. (Who has lost the processor meanwhile
/// was not: then others need it.)
pub(crate) fn until(mut is_over: impl FnMut() -> bool) -> bool {
    // The clock is read every so many looks: it takes longer than they do.
    const LOOKS: u32 = 16;
    if !HAS_TIME {
        return is_over(); // a model has no use for more looks
    }
    let deadline = Deadline::after(LIMIT);
    while !deadline.is_over() {
        for _ in 0..LOOKS {
            if is_over() {
                return true;
            }
            hint::spin_loop();
        }
    }
    false
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// How many of `waits` begin with a spin, if all are in vain.
    fn in_vain(spins: &Spins, waits: u32) -> usize {
        let spin = |_: &u32| {
            let is_due = spins.are_due();
            if is_due {
                spins.note(false);
            }
            is_due
        };
        (0..waits).filter(|wait| spin(wait)).count()
    }

    #[test]
    fn spins_in_vain_become_rare() {
        let spins = Spins::default();
        assert_eq!(in_vain(&spins, 1024), 10);
        assert_eq!(in_vain(&spins, 100 * (MAX_PAUSE + 1)), 100);
    }

    #[test]
    fn a_spin_that_pays_is_followed_by_others() {
        let spins = Spins::default();
        in_vain(&spins, 100_000);
        while !spins.are_due() {}
        spins.note(true);
        assert!((0..100).all(|_| spins.are_due()));
    }

    #[test]
    fn a_spin_ends_when_it_is_over_and_when_it_is_not() {
        let mut looks = 0;
        assert!(until(|| {
            looks += 1;
            looks == 3
        }));
        assert_eq!(looks, 3);
        assert!(!until(|| false));
    }
}
