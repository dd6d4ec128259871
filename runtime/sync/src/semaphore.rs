//! A semaphore: [`Permits`] alone.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Poll, ready};

use mini_context::{Lock, SyncKind};

use crate::blocking;
use crate::macros::{error, future};
use crate::permits::{self, Acquire, Claim, Permits, Refusal, Source};

/// A number of permits, each for one holder at a time.
///
/// Fair: waiting tasks are served first come, first served. A task that waits for many permits is not overtaken by
/// tasks that wait for few.
///
/// # Examples
///
/// ```
/// use mini::sync::Semaphore;
/// use std::sync::Arc;
///
/// # mini::block_on(async {
/// let connections = Arc::new(Semaphore::new(2));
/// let first = connections.clone().acquire_owned().await.unwrap();
/// let second = connections.acquire().await.unwrap();
/// assert!(connections.try_acquire().is_err());
/// drop(first);
/// assert!(connections.try_acquire().is_ok());
/// # drop(second);
/// # });
/// ```
pub struct Semaphore(Lock<Permits>);

impl Source for Semaphore {
    const KIND: SyncKind = SyncKind::Permit;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        f(&mut self.0.lock())
    }
}

impl Semaphore {
    /// The most permits that a semaphore may have.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    /// Creates a semaphore with `permits` permits.
    ///
    /// # Panics
    ///
    /// Panics if there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        assert!(permits <= Self::MAX_PERMITS, "a semaphore has at most {} permits, not {permits}", Self::MAX_PERMITS);
        Self(Lock::new(Permits::new(permits)))
    }

    /// Creates one like [`new`](Self::new), for a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::Semaphore;
    /// static CONNECTIONS: Semaphore = Semaphore::const_new(100);
    /// assert_eq!(CONNECTIONS.available_permits(), 100);
    /// ```
    #[cfg(not(loom))]
    pub const fn const_new(permits: usize) -> Self {
        assert!(permits <= Self::MAX_PERMITS, "too many permits");
        Self(Lock::new(Permits::new(permits)))
    }

    /// Returns the number of free permits: not held, and not kept for a waiting task.
    pub fn available_permits(&self) -> usize {
        self.with(|permits| permits.free())
    }

    /// Adds permits, which go to waiting tasks first.
    ///
    /// # Panics
    ///
    /// Panics if there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub fn add_permits(&self, count: usize) {
        let is_added = permits::add(self, count, Self::MAX_PERMITS);
        assert!(is_added, "a semaphore has at most {} permits", Self::MAX_PERMITS);
    }

    /// Removes up to `count` free permits permanently, and returns their number.
    ///
    /// # Examples
    ///
    /// ```
    /// let semaphore = mini::sync::Semaphore::new(3);
    /// assert_eq!(semaphore.forget_permits(5), 3);
    /// assert_eq!(semaphore.available_permits(), 0);
    /// ```
    pub fn forget_permits(&self, count: usize) -> usize {
        self.with(|permits| permits.forget(count))
    }

    /// Waits for a permit, and takes it.
    ///
    /// # Errors
    ///
    /// Fails if the semaphore is closed, even during the wait.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the queue, and gives back what it was given.
    #[track_caller]
    #[inline]
    pub fn acquire(&self) -> AcquireRef<'_> {
        self.acquire_many(1)
    }

    /// Waits for `count` permits at once, like [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Same as [`acquire`](Self::acquire).
    #[track_caller]
    #[inline]
    pub fn acquire_many(&self, count: u32) -> AcquireRef<'_> {
        AcquireRef { inner: Acquire::new(self, count as usize) }
    }

    /// Takes a permit if one is free and no task waits.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or the semaphore is closed.
    #[track_caller]
    #[inline]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `count` permits at once, like [`try_acquire`](Self::try_acquire).
    ///
    /// # Errors
    ///
    /// Same as [`try_acquire`](Self::try_acquire).
    #[track_caller]
    #[inline]
    pub fn try_acquire_many(&self, count: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_take(count as usize)?;
        Ok(SemaphorePermit { semaphore: self, count: count as usize })
    }

    /// Waits for a permit that may move to another task, like [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Same as [`acquire`](Self::acquire).
    #[track_caller]
    #[inline]
    pub fn acquire_owned(self: Arc<Self>) -> AcquireOwned {
        self.acquire_many_owned(1)
    }

    /// Waits for `count` permits at once, like [`acquire_owned`](Self::acquire_owned).
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Same as [`acquire`](Self::acquire).
    #[track_caller]
    #[inline]
    pub fn acquire_many_owned(self: Arc<Self>, count: u32) -> AcquireOwned {
        AcquireOwned { inner: Acquire::new(Some(self), count as usize) }
    }

    /// Takes a permit that may move to another task, like [`try_acquire`](Self::try_acquire).
    ///
    /// # Errors
    ///
    /// Same as [`try_acquire`](Self::try_acquire).
    #[track_caller]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Takes `count` permits at once, like [`try_acquire_owned`](Self::try_acquire_owned).
    ///
    /// # Errors
    ///
    /// Same as [`try_acquire`](Self::try_acquire).
    #[track_caller]
    pub fn try_acquire_many_owned(self: Arc<Self>, count: u32) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_take(count as usize)?;
        Ok(OwnedSemaphorePermit { semaphore: self, count: count as usize })
    }

    /// Takes a permit on a thread that may block, in line with the tasks that wait.
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// Panics inside a task, which must not block its thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let semaphore = mini::sync::Semaphore::new(2);
    /// let permit = semaphore.blocking_acquire().unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permit);
    /// ```
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        blocking::block_on("blocking_acquire", self.acquire())
    }

    /// Takes `count` permits at once on a thread that may block, like [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// Same as [`blocking_acquire`](Self::blocking_acquire).
    #[track_caller]
    pub fn blocking_acquire_many(&self, count: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        blocking::block_on("blocking_acquire_many", self.acquire_many(count))
    }

    /// Takes a permit that may move to another thread, like [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// Same as [`blocking_acquire`](Self::blocking_acquire).
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        blocking::block_on("blocking_acquire_owned", self.acquire_owned())
    }

    /// Takes `count` permits at once on a thread that may block, like
    /// [`blocking_acquire_owned`](Self::blocking_acquire_owned).
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// Same as [`blocking_acquire`](Self::blocking_acquire).
    #[track_caller]
    pub fn blocking_acquire_many_owned(self: Arc<Self>, count: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        blocking::block_on("blocking_acquire_many_owned", self.acquire_many_owned(count))
    }

    #[track_caller]
    #[inline]
    fn try_take(&self, count: usize) -> Result<(), TryAcquireError> {
        let claim = Claim::new(Location::caller());
        self.with(|permits| permits.try_take(count, claim)).map_err(|refusal| match refusal {
            Refusal::Closed => TryAcquireError::Closed,
            Refusal::Busy => TryAcquireError::NoPermits,
        })
    }

    /// Closes the semaphore: from now on no task gets a permit, and waiting tasks get an error. Permits that are held
    /// stay valid.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let semaphore = mini::sync::Semaphore::new(1);
    /// semaphore.close();
    /// assert!(semaphore.acquire().await.is_err());
    /// # });
    /// ```
    pub fn close(&self) {
        permits::close(self);
    }

    /// Returns `true` if [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.with(|permits| permits.is_closed())
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (free, is_closed, last) = self.with(|permits| (permits.free(), permits.is_closed(), permits.last()));
        let mut debug = f.debug_struct("Semaphore");
        debug.field("available_permits", &free).field("is_closed", &is_closed);
        if let Some(last) = last {
            debug.field("last_taken", &format_args!("{last}"));
        }
        debug.finish()
    }
}

future!(
    /// Future of [`Semaphore::acquire`] and [`Semaphore::acquire_many`]: resolves to `Result<SemaphorePermit,
    /// AcquireError>`.
    AcquireRef['a] { inner: Acquire<&'a Semaphore> } -> Result<SemaphorePermit<'a>, AcquireError>,
    |mut this, cx| {
        let taken = ready!(this.inner.as_mut().poll(cx));
        let (semaphore, count) = (*this.inner.source(), this.inner.count());
        Poll::Ready(taken.map(|()| SemaphorePermit { semaphore, count }).map_err(|_| AcquireError(())))
    }
);
future!(
    /// Future of [`Semaphore::acquire_owned`] and [`Semaphore::acquire_many_owned`]: resolves to
    /// `Result<OwnedSemaphorePermit, AcquireError>`.
    AcquireOwned[] { inner: Acquire<Option<Arc<Semaphore>>> } -> Result<OwnedSemaphorePermit, AcquireError>,
    |mut this, cx| {
        let taken = ready!(this.inner.as_mut().poll(cx));
        let (count, semaphore) = (this.inner.count(), this.inner.take_source());
        Poll::Ready(taken.map(|()| OwnedSemaphorePermit { semaphore, count }).map_err(|_| AcquireError(())))
    }
);

/// Permits of a [`Semaphore`], given back when this is dropped.
#[must_use = "a permit that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    count: usize,
}

/// Permits of a [`Semaphore`] in an [`Arc`], given back when this is dropped.
#[must_use = "a permit that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    count: usize,
}

macro_rules! permit {
    ($permit:ty, $clone:expr) => {
        impl $permit {
            /// Keeps the permits permanently: the semaphore has fewer from now on.
            pub fn forget(mut self) {
                self.count = 0;
            }

            /// Takes over the permits of `other`.
            ///
            /// # Panics
            ///
            /// Panics if `other` is of another semaphore.
            #[track_caller]
            pub fn merge(&mut self, mut other: Self) {
                let is_same = std::ptr::eq::<Semaphore>(&*self.semaphore, &*other.semaphore);
                assert!(is_same, "the permits belong to different semaphores");
                self.count += std::mem::take(&mut other.count);
            }

            /// Splits off `count` permits, if it has that many.
            pub fn split(&mut self, count: usize) -> Option<Self> {
                self.count = self.count.checked_sub(count)?;
                Some(Self { semaphore: $clone(&self.semaphore), count })
            }

            /// Returns the number of permits held.
            pub fn num_permits(&self) -> usize {
                self.count
            }
        }

        impl Drop for $permit {
            #[inline]
            fn drop(&mut self) {
                if self.count > 0 {
                    permits::release(&*self.semaphore, self.count);
                }
            }
        }
    };
}

permit!(SemaphorePermit<'_>, |semaphore: &_| *semaphore);
permit!(OwnedSemaphorePermit, Arc::clone);

impl<'a> SemaphorePermit<'a> {
    /// Returns the semaphore of the permits.
    pub fn semaphore(&self) -> &'a Semaphore {
        self.semaphore
    }
}

impl OwnedSemaphorePermit {
    /// Returns the semaphore of the permits.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }
}

/// The semaphore is closed.
#[derive(Debug, PartialEq, Eq)]
pub struct AcquireError(());

error!(AcquireError { _ => "the semaphore is closed" });

/// There was no permit to take at once.
#[derive(Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Too few are free, or other tasks wait for them.
    NoPermits,
}

error!(TryAcquireError {
    Self::Closed => "the semaphore is closed",
    Self::NoPermits => "no permits are available",
});
