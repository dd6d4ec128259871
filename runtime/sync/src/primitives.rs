//! The base of the primitives besides [`Lock`](mini_context::Lock): the standard library's atomics, cells and locks, or
//! loom's.

#[cfg(loom)]
pub(crate) use self::once::OnceLock;
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::sync::{RwLock, RwLockReadGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::{OnceLock, RwLock, RwLockReadGuard, atomic};

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

/// loom has no such cell: the standard library's, with a flag of which loom knows.
#[cfg(loom)]
mod once {
    use loom::sync::atomic::{AtomicBool, Ordering};

    pub(crate) struct OnceLock<T> {
        is_set: AtomicBool,
        cell: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { is_set: AtomicBool::new(false), cell: std::sync::OnceLock::new() }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.cell.get() } else { None }
        }

        pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
            self.cell.get_mut()
        }

        pub(crate) fn into_inner(self) -> Option<T> {
            self.cell.into_inner()
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.cell.set(value)?;
            self.is_set.store(true, Ordering::Release);
            Ok(())
        }
    }
}
