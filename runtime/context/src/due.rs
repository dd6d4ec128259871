//! The deadline of the future that is being polled, for code that sets such a deadline and code that reads it.
//!
//! It holds for the time of one poll, on one thread: the code that polls the future sets it, and restores the previous
//! one. So it costs nothing where there is none, everything polled inside inherits it, and a task that is polled
//! elsewhere does not. Code that runs other tasks inside of a poll sets it aside in the same way.
//!
//! Rejected: a slot of the task. It costs each task a word, and a future polled by hand or by another executor would
//! find the one of the task around it.

use std::marker::PhantomData;
use std::panic::Location;
use std::time::Instant;

use crate::LOCAL;

/// The deadline of a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The time on the clock of the context, which a test may have moved.
    pub at: Instant,
    /// The source line of the call that has set it.
    pub location: &'static Location<'static>,
}

/// A guard that keeps another deadline for the futures that this thread polls, until it is dropped. Made by
/// [`set_due`].
#[derive(Debug)]
#[must_use = "dropping it brings back at once what was before"]
pub struct DueGuard {
    outer: Option<Due>,
    /// The deadline belongs to this thread.
    stays: PhantomData<*const ()>,
}

/// Returns the deadline of the future that is being polled, if there is one.
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

/// Sets the deadline of the future that is polled next. Dropping the guard restores the previous one.
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
