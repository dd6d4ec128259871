//! `Source`: the place of a primitive's permits, whether borrowed or to be handed to a guard.

use std::sync::Arc;

use mini_context::{Lock, SyncKind};

use super::{Permits, release};

/// The place of permits: under the lock of a primitive.
pub(crate) trait Source {
    /// The name of a wait for its permits.
    const KIND: SyncKind;

    /// `true` if no other task can have the permits that were taken: they are all there are, and cannot leave the
    /// future that took them.
    const IS_EXCLUSIVE: bool = matches!(Self::KIND, SyncKind::Lock | SyncKind::Once);

    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R;

    /// Runs `f` like [`with`](Self::with), for a task that may have to wait. Returns the key under which the task finds
    /// the holder of the permits.
    #[inline]
    fn with_key<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> (R, u64) {
        self.with(|permits| (f(permits), permits.key()))
    }

    /// Takes back permits that were taken or granted, and not used.
    #[inline]
    fn take_back(&self, count: usize) {
        release(self, count);
    }
}

/// Permits to give back, of whatever primitive.
impl Source for Lock<Permits> {
    const KIND: SyncKind = SyncKind::Permit;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        f(&mut self.lock())
    }
}

impl<S: Source + ?Sized> Source for &S {
    const KIND: SyncKind = S::KIND;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        (**self).with(f)
    }

    #[inline]
    fn with_key<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> (R, u64) {
        (**self).with_key(f)
    }

    #[inline]
    fn take_back(&self, count: usize) {
        (**self).take_back(count);
    }
}

/// The source that goes to the owner of the permits; see [`Acquire::take_source`].
impl<S: Source + ?Sized> Source for Option<Arc<S>> {
    const KIND: SyncKind = S::KIND;
    const IS_EXCLUSIVE: bool = false; // the guard may go anywhere

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        self.as_ref().expect(NOT_THROUGH).with(f)
    }

    #[inline]
    fn with_key<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> (R, u64) {
        self.as_ref().expect(NOT_THROUGH).with_key(f)
    }

    #[inline]
    fn take_back(&self, count: usize) {
        self.as_ref().expect(NOT_THROUGH).take_back(count);
    }
}

pub(super) const NOT_THROUGH: &str = "polled after it was ready";
