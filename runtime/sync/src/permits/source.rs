//! `Source`: where the permits of a primitive are, be it borrowed, shared, or to be handed to a guard.

use std::sync::Arc;

use mini_context::{Lock, SyncKind};

use super::{Permits, release};

/// Where permits are: under the lock of a primitive.
pub(crate) trait Source {
    /// What waiting for its permits is called.
    const KIND: SyncKind;

    /// Whether nobody else can have what was taken: it is all there is, and cannot leave the future that took it.
    const IS_EXCLUSIVE: bool = matches!(Self::KIND, SyncKind::Lock | SyncKind::Once);

    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R;

    /// As [`with`](Self::with), for a task that may have to wait: with the key by which it is told which task has the
    /// permits.
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

impl<S: Source + ?Sized> Source for Arc<S> {
    const KIND: SyncKind = S::KIND;
    const IS_EXCLUSIVE: bool = false; // the guard may go anywhere

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

/// What goes to whoever gets the permits, see [`Acquire::take_source`].
impl<S: Source> Source for Option<S> {
    const KIND: SyncKind = S::KIND;
    const IS_EXCLUSIVE: bool = S::IS_EXCLUSIVE;

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
