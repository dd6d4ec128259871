//! `SharedJoinHandle`: several that wait for the end of one task.
//!
//! Made from the task's one join handle, which it keeps under a lock with the wakers of all waiters. The waker left
//! with the task wakes all waiters; the first waiter that is polled takes the output out of the task, and each gets a
//! clone.
//!
//! Rejected: a list of waiters in the task (a word more in each task, for few programs). The wakers and the handle in
//! one counted value: the task would keep its own handle alive by the waker, and never be detached.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker, ready};

use mini_context::contain;

use super::slab::Slab;
use super::{Id, JoinError, JoinHandle};
use crate::primitives::{Mutex, lock};

/// Handle of a task that several may await: a future that resolves to `Result<T, Arc<JoinError>>`.
///
/// Returned by [`JoinHandle::shared`]. Each handle gets a clone of the output.
///
/// When all clones have been dropped, the task is detached, as by the drop of a [`JoinHandle`]. A handle that is
/// awaited again returns the output again.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let address = mini::spawn(async { "127.0.0.1:80".to_owned() }).shared();
///     let clients: Vec<_> = (0..3)
///         .map(|_| {
///             let address = address.clone();
///             mini::spawn(async move { address.await.unwrap().len() })
///         })
///         .collect();
///     for client in clients {
///         assert_eq!(client.await.unwrap(), 12);
///     }
///     assert_eq!(address.await.unwrap(), "127.0.0.1:80");
/// });
/// ```
///
/// # Errors
///
/// Its output is a [`JoinError`] if the task panicked or was cancelled, the same one for all.
///
/// # Panics
///
/// If a task awaits its own end: it would wait forever.
///
/// # Cancel safety
///
/// Goes on: dropping the handle does not affect the task, nor other handles that wait for it.
#[must_use = "futures do nothing unless awaited"]
pub struct SharedJoinHandle<T> {
    joined: Arc<Joined<T>>,
    /// Its place among the waiters, once it has waited.
    number: Option<u32>,
}

struct Joined<T> {
    id: Id,
    name: Option<Arc<str>>,
    /// Until the output is there. No abort handle beside it: that would be one more reference to the task.
    handle: Mutex<Option<JoinHandle<T>>>,
    output: OnceLock<Result<T, Arc<JoinError>>>,
    waiters: Arc<Waiters>,
}

/// A place is its waiter's until that gives it back; its waker is taken out by the thread that wakes.
struct Waiters(Mutex<Slab<Option<Waker>>>);

impl Waiters {
    /// Leaves a waker; returns the one before, to be dropped by the caller, as that may run a user's code.
    fn leave(&self, number: &mut Option<u32>, waker: &Waker) -> Option<Waker> {
        let waker = waker.clone(); // a user's code: not under the lock
        let mut places = lock(&self.0);
        let number = *number.get_or_insert_with(|| places.insert(None));
        places.get_mut(number)?.replace(waker)
    }

    /// Gives a place back; returns the waker, if it is still there.
    fn take(&self, number: u32) -> Option<Waker> {
        lock(&self.0).remove(number)?
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers: Vec<_> = lock(&self.0).iter_mut().filter_map(|(_, place)| place.take()).collect();
        for waker in wakers {
            contain(|| waker.wake()); // if one panics, the others are woken all the same
        }
    }
}

impl<T> SharedJoinHandle<T> {
    pub(super) fn new(handle: JoinHandle<T>) -> Self {
        let (id, name) = (handle.id(), handle.name());
        let (output, waiters) = (OnceLock::new(), Arc::new(Waiters(Mutex::new(Slab::new()))));
        let joined = Joined { id, name, handle: Mutex::new(Some(handle)), output, waiters };
        Self { joined: Arc::new(joined), number: None }
    }

    /// Asks the task to stop, as [`JoinHandle::abort`] does. All waiters receive the error.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(std::future::pending::<()>()).shared();
    ///     let other = task.clone();
    ///     task.abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    ///     assert!(other.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort(&self) {
        let handle = lock(&self.joined.handle).as_ref().map(JoinHandle::abort_handle);
        if let Some(handle) = handle {
            handle.abort(); // may run a user's code: not under the lock
        }
    }

    /// Returns `true` if the task has ended and its future has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(async { 7 }).shared();
    ///     assert!(!task.is_finished());
    ///     assert_eq!(task.clone().await.unwrap(), 7);
    ///     assert!(task.is_finished());
    /// });
    /// ```
    pub fn is_finished(&self) -> bool {
        lock(&self.joined.handle).as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(async { mini::task::id() });
    ///     let id = task.id();
    ///     assert_eq!(task.shared().id(), id);
    /// });
    /// ```
    pub fn id(&self) -> Id {
        self.joined.id
    }

    /// Returns the name of the task, if it was given one by a `mini::task::Builder`.
    ///
    /// # Examples
    ///
    /// See `mini::task::Builder::spawn_on`.
    pub fn name(&self) -> Option<Arc<str>> {
        self.joined.name.clone()
    }
}

impl<T: Clone> Future for SharedJoinHandle<T> {
    type Output = Result<T, Arc<JoinError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(mini_context::check_budget(cx, &*self)); // a user's waker: before the locks
        let Self { joined, number } = &mut *self;
        // Before the look: the end may come between the two.
        let _before = joined.waiters.leave(number, cx.waker());
        let mut handle = lock(&joined.handle);
        if let Some(waiting) = &mut *handle {
            let all = Waker::from(joined.waiters.clone());
            let Poll::Ready(output) = waiting.poll_with(&all) else {
                mini_context::note_waker(cx.waker());
                return Poll::Pending;
            };
            let _ = joined.output.set(output.map_err(Arc::new)); // once, as the handle is given up here
        }
        let _spent = handle.take();
        drop(handle);
        let _mine = number.take().and_then(|number| joined.waiters.take(number));
        mini_context::spend(1);
        Poll::Ready(joined.output.get().expect("it is there when the handle is not").clone())
    }
}

impl<T> Clone for SharedJoinHandle<T> {
    fn clone(&self) -> Self {
        Self { joined: self.joined.clone(), number: None }
    }
}

impl<T> Drop for SharedJoinHandle<T> {
    fn drop(&mut self) {
        let _mine = self.number.and_then(|number| self.joined.waiters.take(number));
    }
}

impl<T> fmt::Debug for SharedJoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedJoinHandle").field("id", &self.joined.id).field("name", &self.joined.name).finish()
    }
}

const _: () = {
    const fn assert<T: Send + Sync + Unpin>() {}
    assert::<SharedJoinHandle<u8>>();
};
