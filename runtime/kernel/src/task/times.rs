//! The running times of a task: the time since it last waited, and the duration of its last poll.
//!
//! Written by the thread that has the right to the task's stage, and by a waker that queues the task; read by the
//! worker that polls it next. The first determines the class of the task when it asks for another poll
//! (`mini_context::rules`), the second the expected duration of its next poll. Polls that were not measured are charged
//! to others (`scheduler/meter.rs`).

use super::Class;
use crate::primitives::atomic::{AtomicU32, Ordering::Relaxed};

/// In nanoseconds; what is longer than 4 s counts as 4 s.
#[derive(Debug)]
pub(super) struct Times {
    since_wait: AtomicU32,
    last: AtomicU32,
}

impl Times {
    /// A task that has not been polled.
    pub(super) fn new() -> Self {
        Self { since_wait: AtomicU32::new(0), last: AtomicU32::new(0) }
    }

    /// A poll is over.
    #[inline]
    pub(super) fn note(&self, took: u64) {
        let took = u32::try_from(took).unwrap_or(u32::MAX);
        self.last.store(took, Relaxed);
        self.since_wait.store(self.since_wait.load(Relaxed).saturating_add(took), Relaxed);
    }

    /// It was woken after a wait, and is about to be queued.
    #[inline]
    pub(super) fn note_wake(&self) {
        self.since_wait.store(0, Relaxed);
    }

    /// The class of a task that asks for another poll.
    #[inline]
    pub(super) fn class(&self, compute_bound_after: u32) -> Class {
        if self.since_wait() >= compute_bound_after { Class::ComputeBound } else { Class::Woken }
    }

    /// Returns the time that the task has run since it last waited.
    #[inline]
    pub(super) fn since_wait(&self) -> u32 {
        self.since_wait.load(Relaxed)
    }

    /// Returns the duration of its last measured poll; zero if none was measured.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last.load(Relaxed).into()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn polls_add_up_until_the_task_has_waited() {
        let times = Times::new();
        for _ in 0..3 {
            times.note(30);
        }
        assert_eq!(times.since_wait(), 90);
        times.note(3);
        assert_eq!((times.since_wait(), times.last()), (93, 3));
        times.note_wake();
        assert_eq!((times.since_wait(), times.last()), (0, 3));
        times.note(u64::MAX);
        times.note(u64::MAX);
        assert_eq!((times.since_wait(), times.last()), (u32::MAX, u64::from(u32::MAX)));
    }
}
