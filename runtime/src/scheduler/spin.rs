//! A short spin before a wait, where that has paid lately.
//!
//! Used by a worker that has nothing to do while a blocking job is out or no socket is registered, and by the blocking thread that has
//! just done a job. To end a wait through the kernel costs who does it 15 µs and who is woken 23 µs, where another processor must come
//! out of its sleep on a virtual machine; many a job takes less than one of the two, and so does many an answer of another
//! thread. Where both sides spin, neither happens: a job and back takes 3 to 10 µs instead of 35, and less of the processors' time
//! too. Where one does, the other's wait is what is left: a thread that is woken and wakes a task takes 20 µs instead of 50.
//!
//! A spin is as long as the wait that it may save is dear. In vain it has cost that for nothing, as on one processor, where jobs
//! are long, or where others keep the processors busy: such spins become rare (`backoff.rs`).
//!
//! Rejected: to ask how many processors there are and how busy (files to read, again and again, and it says nothing about how
//! long the jobs are). To spin for sockets (their events don't end a spin, and it takes the processor from the client that runs
//! beside the server), or after runs of 100 µs (the wait is little beside them, and others are called to look out when such a
//! worker comes out of it).

use std::hint;
use std::time::Duration;

use crate::scheduler::backoff::Backoff;
use crate::sync::{Deadline, HAS_TIME};

/// The longest spin for a job, whose thread may spin too.
pub(crate) const FOR_JOB: Duration = Duration::from_micros(20);

/// The longest spin for a wake by any thread: nearly what a wait costs, as that thread may have to be woken first.
pub(crate) const FOR_WAKE: Duration = Duration::from_micros(30);

/// What came of the spins at one place where threads wait.
pub(crate) type Spins = Backoff<0, 1024>;

/// Spins until `is_over`, or for so long; says whether it was over in time. (Who has lost the processor meanwhile was not: then
/// others need it.)
pub(crate) fn until(limit: Duration, mut is_over: impl FnMut() -> bool) -> bool {
    // The clock is read every so many looks: it takes longer than they do.
    const LOOKS: u32 = 16;
    if !HAS_TIME {
        return is_over(); // a model has no use for more looks
    }
    let deadline = Deadline::after(limit);
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

    #[test]
    fn a_spin_ends_when_it_is_over_and_when_it_is_not() {
        let mut looks = 0;
        assert!(until(Duration::from_secs(60), || {
            looks += 1;
            looks == 3
        }));
        assert_eq!(looks, 3);
        assert!(!until(FOR_JOB, || false));
    }
}
