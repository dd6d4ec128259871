//! Until when a thread waits for others, by real time.
//!
//! Called by all waits of threads for threads: the unparker, the blocking pool, the end of a runtime, `block_on` for a
//! place. Models use `untimed.rs` instead, as nothing takes time in them.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{Condvar, Mutex, MutexGuard};

/// Whether the time goes on, and so a poll can be long.
pub const HAS_TIME: bool = true;

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// There is none.
    pub(crate) const NEVER: Self = Self(None);

    /// In so much time from now; never, if the clock does not go that far.
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now().checked_add(limit))
    }

    pub fn is_over(&self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Waits until `condvar` is notified, or the deadline is over; it may also return without either. `guard` is that
    /// of `mutex`.
    pub(crate) fn wait<'a, T>(
        &mut self,
        condvar: &Condvar,
        _mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        match self.left() {
            Some(left) => condvar.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0,
            None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn left(&self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }
}
