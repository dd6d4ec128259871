//! A deadline where nothing takes time, as in a model: it is over once others have had a chance to act.
//!
//! Stands in for `deadline.rs`, whose shape it has.

use std::sync::PoisonError;
use std::time::Duration;

use super::{Condvar, Mutex, MutexGuard, lock, thread};

pub const HAS_TIME: bool = false;

#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    is_limited: bool,
    is_over: bool,
}

impl Deadline {
    pub const NEVER: Self = Self { is_limited: false, is_over: false };

    pub fn after(limit: Duration) -> Self {
        Self { is_limited: limit < Duration::MAX, is_over: limit.is_zero() }
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn wait<'a, T>(
        &mut self,
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        if !self.is_limited {
            return condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        thread::yield_now();
        self.is_over = true;
        lock(mutex)
    }
}
