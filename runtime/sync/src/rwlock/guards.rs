//! The guards of a read-write lock: permits, and a pointer to the value or to a part of it.
//!
//! | | permits |
//! |---|---|
//! | a read guard, whole or of a part | one |
//! | a write guard, whole or of a part | all; what a downgrade gives back is all but one |

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mini_context::Lock;

use super::RwLock;
use crate::guards::{guard, map};
use crate::permits::{Held, Permits};

/// A read lock of a [`RwLock`], or of a part of its value, released when this is dropped.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    part: *const T,
    held: Held<&'a Lock<Permits>>,
    _value: PhantomData<&'a T>,
}

/// A read lock of a [`RwLock`] in an [`Arc`], or of a part `U` of its value, released when this is dropped.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    part: *const U,
    held: Held<Arc<RwLock<T>>>,
}

/// The write lock of a [`RwLock`], released when this is dropped.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    held: Held<&'a RwLock<T>>,
}

/// The write lock of a [`RwLock`] in an [`Arc`], released when this is dropped.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    held: Held<Arc<RwLock<T>>>,
}

/// The write lock of a [`RwLock`], of which a part is in use; see [`RwLockWriteGuard::map`].
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    part: *mut T,
    held: Held<&'a Lock<Permits>>,
    _value: PhantomData<&'a mut T>,
}

/// The write lock of a [`RwLock`] in an [`Arc`], of which a part is in use; see [`OwnedRwLockWriteGuard::map`].
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    part: *mut U,
    held: Held<Arc<RwLock<T>>>,
    _value: PhantomData<fn(U) -> U>,
}

// SAFETY: it is as good as a `&T`.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: it is as good as an `Arc` of the lock, which may be dropped here with the value, and a `&U`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Sync for OwnedRwLockReadGuard<T, U> {}
// SAFETY: it is as good as a `&mut T`, and the lock may be used by readers on other threads afterwards, as before.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: a shared guard is as good as a `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: it is as good as an `Arc` of the lock and a `&mut U`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Send for OwnedRwLockMappedWriteGuard<T, U> {}
// SAFETY: a shared guard is as good as an `Arc` of the lock and a `&U`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockMappedWriteGuard<T, U> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// The caller has taken a permit.
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
        Self { part: lock.value.get(), held: Held { source: &lock.permits, count: 1 }, _value: PhantomData }
    }

    map!(
        read
        /// Turns the guard into one of a part of the value.
        ///
        /// # Examples
        ///
        /// ```
        /// use mini::sync::{RwLock, RwLockReadGuard};
        /// # mini::block_on(async {
        /// let pair = RwLock::new((1, 2));
        /// let second = RwLockReadGuard::map(pair.read().await, |pair| &pair.1);
        /// assert_eq!(*second, 2);
        /// # });
        /// ```
        map, try_map, T => U, RwLockReadGuard<'a, U>,
        |this, part| RwLockReadGuard { part, held: this.held, _value: PhantomData }
    );
}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// The caller has taken a permit.
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        Self { part: lock.value.get(), held: Held { source: lock, count: 1 } }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// Returns the lock of `this`.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.source
    }

    map!(
        read
        /// Turns the guard into one of a part of the value; see [`RwLockReadGuard::map`].
        map, try_map, U => V, OwnedRwLockReadGuard<T, V>,
        |this, part| OwnedRwLockReadGuard { part, held: this.held }
    );
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// The caller has taken all permits.
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
        Self { held: Held { source: lock, count: lock.max_readers as usize } }
    }

    /// Turns the guard into a read guard. No task can write in between, and waiting readers are let in.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let lock = mini::sync::RwLock::new(1);
    /// let mut writer = lock.write().await;
    /// *writer += 1;
    /// let reader = writer.downgrade();
    /// assert_eq!(*lock.read().await + *reader, 4);
    /// # });
    /// ```
    pub fn downgrade(mut self) -> RwLockReadGuard<'a, T> {
        self.held.count -= 1;
        let reader = RwLockReadGuard::new(self.held.source);
        drop(self); // here: what is returned is leaked if a waker panics in the drop at the end
        reader
    }

    map!(
        read
        /// Downgrades like [`downgrade`](Self::downgrade), to a guard of a part of the value.
        downgrade_map, try_downgrade_map, T => U, RwLockReadGuard<'a, U>,
        |this, part| RwLockReadGuard { part, held: this.downgrade().held, _value: PhantomData }
    );

    map!(
        write
        /// Turns the guard into one of a part of the value.
        ///
        /// # Examples
        ///
        /// ```
        /// use mini::sync::{RwLock, RwLockWriteGuard};
        /// # mini::block_on(async {
        /// let pair = RwLock::new((1, 2));
        /// *RwLockWriteGuard::map(pair.write().await, |pair| &mut pair.1) = 3;
        /// assert_eq!(*pair.read().await, (1, 3));
        /// # });
        /// ```
        map, try_map, T => U, RwLockMappedWriteGuard<'a, U>, |this, part| {
            let held = &ManuallyDrop::new(this).held;
            let held = Held { source: &held.source.permits, count: held.count };
            RwLockMappedWriteGuard { part, held, _value: PhantomData }
        }
    );

    /// Turns the guard into the type that guards of parts have.
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        Self::map(this, |value| value)
    }
}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    map!(
        write
        /// Turns the guard into one of a part of the part; see [`RwLockWriteGuard::map`].
        map, try_map, T => U, RwLockMappedWriteGuard<'a, U>,
        |this, part| RwLockMappedWriteGuard { part, held: this.held, _value: PhantomData }
    );
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    /// The caller has taken all permits.
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        let count = lock.max_readers as usize;
        Self { held: Held { source: lock, count } }
    }

    /// Returns the lock of `this`.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.source
    }

    /// Turns the guard into a read guard; see [`RwLockWriteGuard::downgrade`].
    pub fn downgrade(mut self) -> OwnedRwLockReadGuard<T> {
        self.held.count -= 1;
        let reader = OwnedRwLockReadGuard::new(self.held.source.clone());
        drop(self); // as in `RwLockWriteGuard::downgrade`
        reader
    }

    map!(
        read
        /// Downgrades like [`downgrade`](Self::downgrade), to a guard of a part of the value.
        downgrade_map, try_downgrade_map, T => U, OwnedRwLockReadGuard<T, U>,
        |this, part| OwnedRwLockReadGuard { part, held: this.downgrade().held }
    );

    map!(
        write
        /// Turns the guard into one of a part of the value; see [`RwLockWriteGuard::map`].
        map, try_map, T => U, OwnedRwLockMappedWriteGuard<T, U>,
        |this, part| OwnedRwLockMappedWriteGuard { part, held: this.held, _value: PhantomData }
    );

    /// Turns the guard into the type that guards of parts have.
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        Self::map(this, |value| value)
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    /// Returns the lock of `this`.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.source
    }

    map!(
        write
        /// Turns the guard into one of a part of the part; see [`RwLockWriteGuard::map`].
        map, try_map, U => V, OwnedRwLockMappedWriteGuard<T, V>,
        |this, part| OwnedRwLockMappedWriteGuard { part, held: this.held, _value: PhantomData }
    );
}

guard!(read [T: ?Sized] RwLockReadGuard<'_, T>, T, |this| this.part);
guard!(read [T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U>, U, |this| this.part);
guard!(write [T: ?Sized] RwLockWriteGuard<'_, T>, T, |this| this.held.source.value.get());
guard!(write [T: ?Sized] OwnedRwLockWriteGuard<T>, T, |this| this.held.source.value.get());
guard!(write [T: ?Sized] RwLockMappedWriteGuard<'_, T>, T, |this| this.part);
guard!(write [T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U>, U, |this| this.part);
