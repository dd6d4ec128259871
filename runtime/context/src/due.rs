//! Until when the future that is being polled has to be ready, for those that set such a deadline and those that read
//! it.
//!
//! It holds for the time of one poll, on one thread: who polls the future sets it, and restores what was before. So it
//! costs nothing where there is none, all that is polled inside inherits it, and a task that is polled elsewhere does
//! not. What runs other tasks inside of a poll sets it aside in the same way.
//!
//! Rejected: a slot of the task. It costs each task a word, and a future polled by hand or by another executor would
//! find the one of the task around it.

use std::marker::PhantomData;
use std::panic::Location;
use std::time::Instant;

use crate::LOCAL;

/// Until when a future has to be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The time on the clock of the context, which a test may have moved.
    pub at: Instant,
    /// The source line of the call that has set it.
    pub location: &'static Location<'static>,
}

/// While it lives, what this thread polls is due at another time. Made by [`set_due`].
#[derive(Debug)]
#[must_use = "dropping it brings back at once what was before"]
pub struct DueGuard {
    outer: Option<Due>,
    /// What is polled on this thread.
    stays: PhantomData<*const ()>,
}

/// Until when the future that is being polled has to be ready, if there is such a time.
///
/// # Examples
///
/// ```
/// assert_eq!(mini_context::due(), None);
/// ```
#[must_use]
#[inline]
pub fn due() -> Option<Due> {
    LOCAL.with(|local| local.due.get())
}

/// Sets until when the future that is polled next has to be ready; dropping the guard brings back what was before.
///
/// # Examples
///
/// ```
/// use std::{panic::Location, time::Instant};
/// use mini_context::{Due, due, set_due};
///
/// let inner = Some(Due { at: Instant::now(), location: Location::caller() });
/// let guard = set_due(inner);
/// assert_eq!(due(), inner);
/// drop(guard);
/// assert_eq!(due(), None);
/// ```
pub fn set_due(due: Option<Due>) -> DueGuard {
    DueGuard { outer: LOCAL.with(|local| local.due.replace(due)), stays: PhantomData }
}

impl Drop for DueGuard {
    fn drop(&mut self) {
        LOCAL.with(|local| local.due.set(self.outer));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;

    #[track_caller]
    fn now() -> Option<Due> {
        Some(Due { at: Instant::now(), location: Location::caller() })
    }

    #[test]
    fn guards_nest_and_a_panic_restores_what_was_before() {
        let (outer, inner) = (now(), now());
        let _outer = set_due(outer);
        let inside = set_due(inner);
        assert_eq!(due(), inner);
        drop(inside);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _inside = set_due(inner);
            resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert_eq!(due(), outer);
    }
}
