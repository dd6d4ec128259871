//! Atomics and cells: the standard library's, or a model checker's.

#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

/// As `std`'s, with the accessors by which loom sees each use.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
