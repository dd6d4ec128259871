//! A mutex: one permit, and the value.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

use mini_context::{Lock, SyncKind};

use crate::blocking;
use crate::guards::{guard, map};
use crate::macros::{error, future};
use crate::permits::{self, Acquire, Claim, Held, Permits, Source};

/// A mutual exclusion lock for tasks. Its guard may be held across an `.await`.
///
/// Fair: waiting tasks are served first come, first served. A panic releases the lock and does not poison it. If no
/// guard is held across an `.await`, a [`std::sync::Mutex`] is the faster choice.
///
/// `{:?}` shows which task took it, and at which line.
///
/// # Examples
///
/// ```
/// use mini::sync::Mutex;
/// use std::sync::Arc;
///
/// # mini::block_on(async {
/// let total = Arc::new(Mutex::new(0));
/// let add = |n| {
///     let total = total.clone();
///     mini::spawn(async move { *total.lock().await += n })
/// };
/// let (first, second) = (add(1), add(2));
/// first.await.unwrap();
/// second.await.unwrap();
/// assert_eq!(*total.lock().await, 3);
/// # });
/// ```
pub struct Mutex<T: ?Sized> {
    permit: Lock<Permits>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used by who holds the permit, one at a time; the lock of the permits orders one after the other.
// Test: model `mutex_is_held_by_one`.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T: ?Sized> std::panic::UnwindSafe for Mutex<T> {}
impl<T: ?Sized> std::panic::RefUnwindSafe for Mutex<T> {}

impl<T: ?Sized> Source for Mutex<T> {
    const KIND: SyncKind = SyncKind::Lock;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        f(&mut self.permit.lock())
    }
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub fn new(value: T) -> Self {
        Self { permit: Lock::new(Permits::new(1)), value: UnsafeCell::new(value) }
    }

    /// Creates one like [`new`](Self::new), for a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::Mutex;
    /// static TOTAL: Mutex<u64> = Mutex::const_new(0);
    /// *TOTAL.try_lock().unwrap() += 1;
    /// ```
    #[cfg(not(loom))]
    pub const fn const_new(value: T) -> Self {
        Self { permit: Lock::new(Permits::new(1)), value: UnsafeCell::new(value) }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock, and takes it.
    ///
    /// A task that holds the lock and waits for it again waits for ever; a task dump and an elapsed `timeout` report
    /// that.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the queue.
    #[track_caller]
    #[inline]
    pub fn lock(&self) -> LockRef<'_, T> {
        LockRef { inner: Acquire::new(self, 1) }
    }

    /// Locks like [`lock`](Self::lock), with a guard that may move to another task.
    ///
    /// # Cancel safety
    ///
    /// Same as [`lock`](Self::lock).
    #[track_caller]
    #[inline]
    pub fn lock_owned(self: Arc<Self>) -> LockOwned<T> {
        LockOwned { inner: Acquire::new(Some(self), 1) }
    }

    /// Takes the lock if no task holds it or waits for it.
    ///
    /// # Errors
    ///
    /// Fails if a task holds the lock or waits for it.
    #[track_caller]
    #[inline]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        self.try_take()?;
        Ok(MutexGuard { lock: self })
    }

    /// Locks like [`try_lock`](Self::try_lock), with a guard that may move to another task.
    ///
    /// # Errors
    ///
    /// Same as [`try_lock`](Self::try_lock).
    #[track_caller]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        self.try_take()?;
        Ok(OwnedMutexGuard { lock: self })
    }

    #[track_caller]
    #[inline]
    fn try_take(&self) -> Result<(), TryLockError> {
        let claim = Claim::new(Location::caller());
        self.with(|permits| permits.try_take(1, claim)).map_err(|_| TryLockError(()))
    }

    /// Takes the lock on a thread that may block, in line with the tasks that wait.
    ///
    /// # Panics
    ///
    /// Panics inside a task, which must not block its thread.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        blocking::block_on("blocking_lock", self.lock())
    }

    /// Takes the lock like [`blocking_lock`](Self::blocking_lock), with a guard that may move to another thread.
    ///
    /// # Panics
    ///
    /// Same as [`blocking_lock`](Self::blocking_lock).
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        blocking::block_on("blocking_lock_owned", self.lock_owned())
    }

    /// Returns a mutable reference to the value. No lock is needed, as no other task can have one.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Mutex");
        let holder = self.with(|permits| permits.last().filter(|_| permits.free() == 0));
        match (holder, self.try_lock()) {
            (Some(holder), Err(_)) => debug.field("value", &format_args!("<taken {holder}>")),
            (_, Ok(guard)) => debug.field("value", &&*guard),
            (None, Err(_)) => debug.field("value", &format_args!("<held>")),
        };
        debug.finish()
    }
}

future!(
    /// Future of [`Mutex::lock`]: resolves to `MutexGuard<T>`.
    LockRef['a, T: ?Sized] { inner: Acquire<&'a Mutex<T>> } -> MutexGuard<'a, T>,
    |mut this, cx| this.inner.as_mut().poll_open(cx).map(|()| MutexGuard { lock: this.inner.source() })
);
future!(
    /// Future of [`Mutex::lock_owned`]: resolves to `OwnedMutexGuard<T>`.
    LockOwned[T: ?Sized] { inner: Acquire<Option<Arc<Mutex<T>>>> } -> OwnedMutexGuard<T>,
    |mut this, cx| this.inner.as_mut().poll_open(cx).map(|()| OwnedMutexGuard { lock: this.inner.take_source() })
);

/// The lock of a [`Mutex`], released when this is dropped.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
}

/// The lock of a [`Mutex`] in an [`Arc`], released when this is dropped.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct OwnedMutexGuard<T: ?Sized> {
    lock: Arc<Mutex<T>>,
}

// SAFETY: a shared guard gives `&T` only. Without this a guard of a `T` that is not `Sync` would be `Sync`, as its
// mutex is.
unsafe impl<T: ?Sized + Send + Sync> Sync for MutexGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

guard!(write [T: ?Sized] MutexGuard<'_, T>, T, |this| this.lock.value.get());
guard!(write [T: ?Sized] OwnedMutexGuard<T>, T, |this| this.lock.value.get());
guard!(write [T: ?Sized] MappedMutexGuard<'_, T>, T, |this| this.part);
guard!(write [T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U>, U, |this| this.part);

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        permits::release(self.lock, 1);
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    #[inline]
    fn drop(&mut self) {
        permits::release(&*self.lock, 1);
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Returns the mutex of `this`.
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.lock
    }

    map!(
        write
        /// Turns the guard into one of a part of the value.
        ///
        /// # Examples
        ///
        /// ```
        /// use mini::sync::{Mutex, MutexGuard};
        /// # mini::block_on(async {
        /// let pair = Mutex::new((1, 2));
        /// let mut second = MutexGuard::map(pair.lock().await, |pair| &mut pair.1);
        /// *second = 3;
        /// drop(second);
        /// assert_eq!(*pair.lock().await, (1, 3));
        /// # });
        /// ```
        map, try_map, T => U, MappedMutexGuard<'a, U>, |this, part| {
            let lock = ManuallyDrop::new(this).lock;
            MappedMutexGuard { part, held: Held { source: &lock.permit, count: 1 }, _value: PhantomData }
        }
    );
}

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// Returns the mutex of `this`.
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        &this.lock
    }

    map!(
        write
        /// Turns the guard into one of a part of the value; see [`MutexGuard::map`].
        map, try_map, T => U, OwnedMappedMutexGuard<T, U>, |guard, part| OwnedMappedMutexGuard { part, guard }
    );
}

/// The lock of a [`Mutex`], of which a part is in use; see [`MutexGuard::map`].
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    part: *mut T,
    held: Held<&'a Lock<Permits>>,
    _value: PhantomData<&'a mut T>,
}

/// The lock of a [`Mutex`] in an [`Arc`], of which a part is in use; see [`OwnedMutexGuard::map`].
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    part: *mut U,
    guard: OwnedMutexGuard<T>,
}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    map!(
        write
        /// Turns the guard into one of a part of the part; see [`MutexGuard::map`].
        map, try_map, T => U, MappedMutexGuard<'a, U>,
        |this, part| MappedMutexGuard { part, held: this.held, _value: PhantomData }
    );
}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// Returns the mutex of `this`.
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        &this.guard.lock
    }

    map!(
        write
        /// Turns the guard into one of a part of the part; see [`MutexGuard::map`].
        map, try_map, U => V, OwnedMappedMutexGuard<T, V>,
        |this, part| OwnedMappedMutexGuard { part, guard: this.guard }
    );
}

// SAFETY: it is as good as a `&mut T`.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: a shared guard is as good as a `&T`.
unsafe impl<T: ?Sized + Sync> Sync for MappedMutexGuard<'_, T> {}
// SAFETY: it is as good as the guard and a `&mut U`.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: a shared guard is as good as a `&U`, and lends nothing of the rest.
unsafe impl<T: ?Sized + Send, U: ?Sized + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

/// The lock was not free.
#[derive(Debug)]
pub struct TryLockError(pub(crate) ());

error!(TryLockError { _ => "the lock is held, or tasks are waiting for it" });
