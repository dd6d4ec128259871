//! A read-write lock: a permit for each reader, all of them for a writer.
//!
//! As permits are handed out in line, a writer that waits keeps later readers behind it, and readers that came before
//! a writer are let in together.
//!
//! Rejected: readers that pass a waiting writer (a stream of readers would keep it out for ever).

mod guards;

use std::cell::UnsafeCell;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use mini_context::{Lock, SyncKind};

pub use self::guards::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLockMappedWriteGuard, RwLockReadGuard,
    RwLockWriteGuard,
};
use crate::blocking;
use crate::macros::future;
use crate::mutex::TryLockError;
use crate::permits::{Acquire, Claim, Permits, Source};

const MAX_READERS: u32 = u32::MAX >> 3;

/// A lock for many readers or one writer. Its guards may be held across an `.await`.
///
/// Fair: waiting tasks are served first come, first served. So a task that holds a read guard and waits for another one
/// may wait for ever: a writer may be queued between the two. A panic releases the lock and does not poison it.
///
/// `{:?}` shows which task took it last, and at which line.
///
/// # Examples
///
/// ```
/// use mini::sync::RwLock;
///
/// # mini::block_on(async {
/// let routes = RwLock::new(vec!["/"]);
/// let (one, two) = (routes.read().await, routes.read().await);
/// assert_eq!(one.len() + two.len(), 2);
/// drop((one, two));
/// routes.write().await.push("/status");
/// assert_eq!(routes.read().await.len(), 2);
/// # });
/// ```
pub struct RwLock<T: ?Sized> {
    permits: Lock<Permits>,
    max_readers: u32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is read by who holds a permit and written by who holds all; the lock of the permits orders one
// after the other. Test: model `rwlock_is_held_by_one_writer_or_by_readers`.
#[allow(unsafe_code)]
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T: ?Sized> std::panic::UnwindSafe for RwLock<T> {}
impl<T: ?Sized> std::panic::RefUnwindSafe for RwLock<T> {}

impl<T: ?Sized> Source for RwLock<T> {
    const KIND: SyncKind = SyncKind::ReadLock;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        f(&mut self.permits.lock())
    }
}

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self::with_max_readers(value, MAX_READERS)
    }

    /// Creates a lock like [`new`](Self::new), for up to `max_readers` readers at a time.
    ///
    /// # Panics
    ///
    /// Panics if `max_readers` is 0, or more than `u32::MAX >> 3`.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = mini::sync::RwLock::with_max_readers((), 1);
    /// let reader = lock.try_read().unwrap();
    /// assert!(lock.try_read().is_err());
    /// # drop(reader);
    /// ```
    #[track_caller]
    pub fn with_max_readers(value: T, max_readers: u32) -> Self {
        assert!(max_readers > 0, "a read-write lock has at least one reader");
        assert!(max_readers <= MAX_READERS, "a read-write lock has at most {MAX_READERS} readers, not {max_readers}");
        let permits = Lock::new(Permits::new(max_readers as usize));
        Self { permits, max_readers, value: UnsafeCell::new(value) }
    }

    /// Creates one like [`new`](Self::new), for a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::RwLock;
    /// static LEVEL: RwLock<u8> = RwLock::const_new(1);
    /// assert_eq!(*LEVEL.try_read().unwrap(), 1);
    /// ```
    #[cfg(not(loom))]
    pub const fn const_new(value: T) -> Self {
        Self::const_with_max_readers(value, MAX_READERS)
    }

    /// Creates one like [`with_max_readers`](Self::with_max_readers), for a `static`.
    ///
    /// # Panics
    ///
    /// Same as [`with_max_readers`](Self::with_max_readers).
    #[cfg(not(loom))]
    #[track_caller]
    pub const fn const_with_max_readers(value: T, max_readers: u32) -> Self {
        assert!(max_readers > 0, "a read-write lock has at least one reader");
        assert!(max_readers <= MAX_READERS, "too many readers");
        let permits = Lock::new(Permits::new(max_readers as usize));
        Self { permits, max_readers, value: UnsafeCell::new(value) }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading. Waits until no task writes and the tasks queued before have had their turn.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the queue.
    #[track_caller]
    #[inline]
    pub fn read(&self) -> ReadRef<'_, T> {
        ReadRef { inner: Acquire::new(self, 1) }
    }

    /// Locks like [`read`](Self::read), with a guard that may move to another task.
    ///
    /// # Cancel safety
    ///
    /// Same as [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::RwLock;
    /// use std::sync::Arc;
    ///
    /// # mini::block_on(async {
    /// let lock = Arc::new(RwLock::new(7));
    /// let guard = lock.clone().read_owned().await;
    /// assert_eq!(mini::spawn(async move { *guard }).await.unwrap(), 7);
    /// # });
    /// ```
    #[track_caller]
    #[inline]
    pub fn read_owned(self: Arc<Self>) -> ReadOwned<T> {
        ReadOwned { inner: Acquire::new(Some(self), 1) }
    }

    /// Locks for writing. Waits until the lock is free and the tasks queued before have had their turn.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the queue.
    #[track_caller]
    #[inline]
    pub fn write(&self) -> WriteRef<'_, T> {
        WriteRef { inner: Acquire::of_kind(self, self.max_readers as usize, SyncKind::WriteLock) }
    }

    /// Locks like [`write`](Self::write), with a guard that may move to another task.
    ///
    /// # Cancel safety
    ///
    /// Same as [`write`](Self::write).
    #[track_caller]
    #[inline]
    pub fn write_owned(self: Arc<Self>) -> WriteOwned<T> {
        let all = self.max_readers as usize;
        WriteOwned { inner: Acquire::of_kind(Some(self), all, SyncKind::WriteLock) }
    }

    /// Locks for reading, if no task writes or waits.
    ///
    /// # Errors
    ///
    /// Fails if a task writes or waits, or if the maximum number of readers is reached.
    #[track_caller]
    #[inline]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.try_take(1)?;
        Ok(RwLockReadGuard::new(self))
    }

    /// Locks like [`try_read`](Self::try_read), with a guard that may move to another task.
    ///
    /// # Errors
    ///
    /// Same as [`try_read`](Self::try_read).
    #[track_caller]
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        self.try_take(1)?;
        Ok(OwnedRwLockReadGuard::new(self))
    }

    /// Locks for writing, if no task holds the lock or waits for it.
    ///
    /// # Errors
    ///
    /// Fails if a task holds the lock or waits for it.
    #[track_caller]
    #[inline]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.try_take(self.max_readers)?;
        Ok(RwLockWriteGuard::new(self))
    }

    /// Locks like [`try_write`](Self::try_write), with a guard that may move to another task.
    ///
    /// # Errors
    ///
    /// Same as [`try_write`](Self::try_write).
    #[track_caller]
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        self.try_take(self.max_readers)?;
        Ok(OwnedRwLockWriteGuard::new(self))
    }

    #[track_caller]
    #[inline]
    fn try_take(&self, count: u32) -> Result<(), TryLockError> {
        let claim = Claim::new(Location::caller());
        self.with(|permits| permits.try_take(count as usize, claim)).map_err(|_| TryLockError(()))
    }

    /// Locks for reading on a thread that may block, in line with the tasks that wait.
    ///
    /// # Panics
    ///
    /// Panics inside a task, which must not block its thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = mini::sync::RwLock::new(1);
    /// assert_eq!(*lock.blocking_read(), 1);
    /// ```
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        blocking::block_on("blocking_read", self.read())
    }

    /// Locks for writing on a thread that may block, in line with the tasks that wait.
    ///
    /// # Panics
    ///
    /// Same as [`blocking_read`](Self::blocking_read).
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        blocking::block_on("blocking_write", self.write())
    }

    /// Returns a mutable reference to the value. No lock is needed, as no other task can have one.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RwLock");
        let (holder, taken) = self.with(|permits| {
            let holder = permits.last().filter(|_| permits.free() == 0);
            (holder, permits.try_take_unseen(1))
        });
        match (holder, taken) {
            (_, Ok(())) => debug.field("value", &&*RwLockReadGuard::new(self)),
            (Some(holder), Err(_)) => debug.field("value", &format_args!("<taken {holder}>")),
            (None, Err(_)) => debug.field("value", &format_args!("<held>")),
        };
        debug.finish()
    }
}

future!(
    /// Future of [`RwLock::read`]: resolves to `RwLockReadGuard<T>`.
    ReadRef['a, T: ?Sized] { inner: Acquire<&'a RwLock<T>> } -> RwLockReadGuard<'a, T>,
    |mut this, cx| this.inner.as_mut().poll_open(cx).map(|()| RwLockReadGuard::new(this.inner.source()))
);
future!(
    /// Future of [`RwLock::write`]: resolves to `RwLockWriteGuard<T>`.
    WriteRef['a, T: ?Sized] { inner: Acquire<&'a RwLock<T>> } -> RwLockWriteGuard<'a, T>,
    |mut this, cx| this.inner.as_mut().poll_open(cx).map(|()| RwLockWriteGuard::new(this.inner.source()))
);
future!(
    /// Future of [`RwLock::read_owned`]: resolves to `OwnedRwLockReadGuard<T>`.
    ReadOwned[T: ?Sized] { inner: Acquire<Option<Arc<RwLock<T>>>> } -> OwnedRwLockReadGuard<T>,
    |mut this, cx| this.inner.as_mut().poll_open(cx).map(|()| OwnedRwLockReadGuard::new(this.inner.take_source()))
);
future!(
    /// Future of [`RwLock::write_owned`]: resolves to `OwnedRwLockWriteGuard<T>`.
    WriteOwned[T: ?Sized] { inner: Acquire<Option<Arc<RwLock<T>>>> } -> OwnedRwLockWriteGuard<T>,
    |mut this, cx| this.inner.as_mut().poll_open(cx).map(|()| OwnedRwLockWriteGuard::new(this.inner.take_source()))
);
