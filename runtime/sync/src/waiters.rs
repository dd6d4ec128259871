//! The list of tasks that wait for a lock, a permit or a notification, first come, first served.
//!
//! The list is intrusive: a [`Waiter`] is a part of the future that waits, so that waiting allocates nothing, and any
//! waiter can leave in constant time. All of a waiter but its address is plain state under the lock that guards the
//! list. `D` is the data that the primitive keeps for each waiter.
//!
//! Wakers go into a [`Wakes`] and are called when the lock is released: a waker is foreign code.
//!
//! ```text
//!              1 push_back             2 pop_front, pop_back
//!   not queued -----------> queued --------------------------> not queued, with what the list wrote into `data`
//!                             |  3 remove (cancelled)
//!                             '--------------------------> not queued
//! ```
//!
//! Rejected: a queue of `Arc`ed waiters (an allocation per wait). A slab of wakers next to the primitive (its memory
//! stays at the largest number that ever waited; a lookup per poll).

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::Waker;

use crate::panics::Steps;

type Link<D> = Option<NonNull<Waiter<D>>>;

/// A place in a [`WaitList`], part of a pinned future.
pub(crate) struct Waiter<D> {
    node: UnsafeCell<Node<D>>,
    _pin: PhantomPinned,
}

struct Node<D> {
    previous: Link<D>,
    next: Link<D>,
    /// Present while the waiter is queued.
    waker: Option<Waker>,
    is_queued: bool,
    data: D,
}

// SAFETY: a waiter is used by the thread that holds the lock of its list, whatever thread its future is on; `Waker` may
// be used and dropped anywhere, and so may `D`. Test: `tests/threads.rs`.
unsafe impl<D: Send> Send for Waiter<D> {}
// SAFETY: nothing can be done with a shared waiter without its list.
unsafe impl<D: Send> Sync for Waiter<D> {}

impl<D> Waiter<D> {
    pub(crate) const fn new(data: D) -> Self {
        let node = Node { previous: None, next: None, waker: None, is_queued: false, data };
        Self { node: UnsafeCell::new(node), _pin: PhantomPinned }
    }
}

/// Waiters in the order of their arrival. The methods with `unsafe` ask the caller for two things: the waiter is in no
/// other list, and it stays pinned, and is not dropped, before it has left this one.
pub(crate) struct WaitList<D> {
    head: Link<D>,
    tail: Link<D>,
}

// SAFETY: the list has only addresses of waiters, and those may be used by whatever thread holds the lock.
unsafe impl<D: Send> Send for WaitList<D> {}

impl<D> WaitList<D> {
    pub(crate) const fn new() -> Self {
        Self { head: None, tail: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Edge 1. The waiter is not queued.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn push_back(&mut self, waiter: Pin<&Waiter<D>>, waker: Waker) {
        let this = NonNull::from(waiter.get_ref());
        // SAFETY: the caller's promise; every use of a node has the list borrowed mutably.
        let node = unsafe { &mut *waiter.node.get() };
        debug_assert!(!node.is_queued);
        (node.previous, node.next) = (self.tail, None);
        (node.waker, node.is_queued) = (Some(waker), true);
        match self.tail {
            Some(tail) => self.node(tail).next = Some(this),
            None => self.head = Some(this),
        }
        self.tail = Some(this);
    }

    /// The data of the first waiter.
    pub(crate) fn front(&mut self) -> Option<&mut D> {
        self.head.map(|head| &mut self.node(head).data)
    }

    /// Edge 2: the first waiter leaves, after `tell` has written into its data. Its waker is to be called.
    pub(crate) fn pop_front(&mut self, tell: impl FnOnce(&mut D)) -> Option<Waker> {
        let head = self.head?;
        tell(&mut self.node(head).data);
        self.unlink(head)
    }

    /// The last waiter leaves, like the first in [`pop_front`](Self::pop_front).
    pub(crate) fn pop_back(&mut self, tell: impl FnOnce(&mut D)) -> Option<Waker> {
        let tail = self.tail?;
        tell(&mut self.node(tail).data);
        self.unlink(tail)
    }

    /// Edge 3, if the waiter is queued. The waker is to be dropped without the lock.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn remove(&mut self, waiter: Pin<&Waiter<D>>) -> Option<Waker> {
        let this = NonNull::from(waiter.get_ref());
        if self.node(this).is_queued { self.unlink(this) } else { None }
    }

    /// Takes over all waiters of `other`, behind those here.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let (Some(head), Some(tail)) = (other.head.take(), other.tail.take()) else { return };
        match self.tail {
            Some(last) => {
                self.node(last).next = Some(head);
                self.node(head).previous = Some(last);
            }
            None => self.head = Some(head),
        }
        self.tail = Some(tail);
    }

    /// The data of this waiter, and whether it is still queued.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn look(&mut self, waiter: Pin<&Waiter<D>>) -> (&mut D, bool) {
        let node = self.node(NonNull::from(waiter.get_ref()));
        (&mut node.data, node.is_queued)
    }

    /// Returns `true` if the queued waiter has a waker that wakes another task than `waker`.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn has_moved(&mut self, waiter: Pin<&Waiter<D>>, waker: &Waker) -> bool {
        let node = self.node(NonNull::from(waiter.get_ref()));
        node.waker.as_ref().is_some_and(|own| !own.will_wake(waker))
    }

    /// Exchanges the waker of a queued waiter. The other one, to be dropped without the lock, comes back.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn exchange(&mut self, waiter: Pin<&Waiter<D>>, waker: Waker) -> Option<Waker> {
        let node = self.node(NonNull::from(waiter.get_ref()));
        if node.is_queued { node.waker.replace(waker) } else { Some(waker) }
    }

    /// The waiter is queued.
    fn unlink(&mut self, waiter: NonNull<Waiter<D>>) -> Option<Waker> {
        let node = self.node(waiter);
        let (previous, next) = (node.previous.take(), node.next.take());
        node.is_queued = false;
        let waker = node.waker.take();
        match previous {
            Some(previous) => self.node(previous).next = next,
            None => self.head = next,
        }
        match next {
            Some(next) => self.node(next).previous = previous,
            None => self.tail = previous,
        }
        waker
    }

    fn node(&mut self, waiter: NonNull<Waiter<D>>) -> &mut Node<D> {
        // SAFETY: a queued waiter is alive, by the promise of who pushed it, and so is one given by a caller of an
        // `unsafe` method. One node is borrowed at a time, with the list. Test: `tests/threads.rs` under miri.
        let cell = unsafe { &waiter.as_ref().node };
        // SAFETY: as above.
        unsafe { &mut *cell.get() }
    }
}

impl<D> fmt::Debug for Waiter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").finish_non_exhaustive()
    }
}

impl<D> fmt::Debug for WaitList<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitList").field("is_empty", &self.is_empty()).finish()
    }
}

/// Wakers to call when the lock is released. A batch: with more to wake, the caller releases the lock in between.
#[derive(Default)]
pub(crate) struct Wakes {
    wakers: [Option<Waker>; Wakes::BATCH],
    len: usize,
}

impl Wakes {
    // A model has few waiters.
    const BATCH: usize = if cfg!(loom) { 1 } else { 16 };

    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == Self::BATCH
    }

    /// There is room.
    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        if waker.is_some() {
            self.wakers[self.len] = waker;
            self.len += 1;
        }
    }

    /// Calls all, in order, even after one has panicked. The lock is not held.
    pub(crate) fn wake_all(&mut self) {
        let mut steps = Steps::default();
        for waker in self.wakers[..std::mem::take(&mut self.len)].iter_mut().filter_map(Option::take) {
            steps.run(|| waker.wake());
        }
    }
}

/// Calls `wakes`, and then what `next` takes out under the lock, a batch at a time until one is not full, even after a
/// waker has panicked.
pub(crate) fn wake_all(mut wakes: Wakes, mut next: impl FnMut(&mut Wakes)) {
    let mut steps = Steps::default();
    loop {
        let is_last = !wakes.is_full();
        steps.run(|| wakes.wake_all());
        if is_last {
            return;
        }
        next(&mut wakes);
    }
}

/// A panic before the call wakes them all the same.
impl Drop for Wakes {
    fn drop(&mut self) {
        self.wake_all();
    }
}
