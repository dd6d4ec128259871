//! A channel that keeps only the newest value: configuration, progress, a state.
//!
//! Receivers borrow the value in place, and wait for the next one. Values that change faster than a receiver reads them
//! are not kept for it. The channel is closed when all senders are gone, and a sender knows when all receivers are
//! gone.
//!
//! # Examples
//!
//! ```
//! use mini::sync::watch;
//!
//! # mini::block_on(async {
//! let (sender, mut receiver) = watch::channel("starting");
//! let follows = mini::spawn(async move {
//!     while receiver.changed().await.is_ok() {
//!         println!("{}", *receiver.borrow_and_update());
//!     }
//!     *receiver.borrow()
//! });
//! sender.send("running").unwrap();
//! sender.send("stopping").unwrap();
//! drop(sender);
//! assert_eq!(follows.await.unwrap(), "stopping");
//! # });
//! ```

// The value and its version are under a read-write lock, which readers hold while they look, and user code runs there.
// The version stands once more beside the waiters, under a lock that is held for a few instructions. It changes while
// the value's lock is held for writing, so a thread that has that lock in either way sees one version.
//
// Rejected: the version beside the value alone (a task that waits would take the lock under which user code runs).

pub mod error;

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use mini_context::{Lock, SyncKind};
use pin_project_lite::pin_project;

use error::{RecvError, SendError};

use crate::macros::future;
use crate::primitives::{RwLock, RwLockReadGuard};
use crate::rounds::{self, HasRounds, RoundWait, Rounds};
use crate::waiters::{self, Wakes};

/// Creates a channel with the value `init`, which its receiver has seen.
///
/// # Examples
///
/// ```
/// let (sender, receiver) = mini::sync::watch::channel(1);
/// sender.send(2).unwrap();
/// assert_eq!(*receiver.borrow(), 2);
/// ```
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(init);
    let receiver = sender.subscribe();
    (sender, receiver)
}

struct Channel<T> {
    current: RwLock<Current<T>>,
    state: Lock<State>,
}

struct Current<T> {
    version: u64,
    value: T,
}

pub(crate) struct State {
    version: u64,
    senders: usize,
    receivers: usize,
    /// A round ends when there is a new value or no sender left.
    changes: Rounds<()>,
    /// A round ends when no receiver is left.
    closes: Rounds<()>,
}

impl<T> Channel<T> {
    /// No user code runs while the pointer to the value changes, so poison means nothing.
    fn read(&self) -> RwLockReadGuard<'_, Current<T>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of tasks that wait for a new value.
struct Changes<'a, T>(&'a Channel<T>);

impl<T> HasRounds for Changes<'_, T> {
    const KIND: SyncKind = SyncKind::Receive;
    type State = State;

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.state.lock())
    }

    fn rounds(state: &mut State) -> &mut Rounds<()> {
        &mut state.changes
    }
}

/// The place of tasks that wait for the receivers to be gone.
struct Closes<'a, T>(&'a Channel<T>);

impl<T> HasRounds for Closes<'_, T> {
    const KIND: SyncKind = SyncKind::Closed;
    type State = State;

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.state.lock())
    }

    fn rounds(state: &mut State) -> &mut Rounds<()> {
        &mut state.closes
    }
}

/// Sends values to all receivers; see [`channel`].
///
/// When the last sender is dropped, the channel is closed.
pub struct Sender<T> {
    shared: Arc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Creates a channel without a receiver; [`subscribe`](Self::subscribe) adds one.
    pub fn new(init: T) -> Self {
        let state = State { version: 0, senders: 1, receivers: 0, changes: Rounds::new(), closes: Rounds::new() };
        let current = RwLock::new(Current { version: 0, value: init });
        Self { shared: Arc::new(Channel { current, state: Lock::new(state) }) }
    }

    /// Replaces the value, and wakes the receivers that wait.
    ///
    /// # Errors
    ///
    /// Fails if there is no receiver. Then the value stays as it is, and the error has the new one. For a value that
    /// later receivers are to see, use [`send_replace`](Self::send_replace).
    ///
    /// # Panics
    ///
    /// May panic, or never return, if this thread has a [`Ref`] of this channel. The same is true of all methods that
    /// send.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        self.send_replace(value);
        Ok(())
    }

    /// Changes the value in place, and wakes the receivers that wait.
    ///
    /// # Panics
    ///
    /// Panics if `modify` does. Then no receiver is woken, and the value is as `modify` left it.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = mini::sync::watch::channel(vec![1]);
    /// sender.send_modify(|values| values.push(2));
    /// assert_eq!(*receiver.borrow(), [1, 2]);
    /// ```
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value like [`send_modify`](Self::send_modify), but wakes receivers only if `modify` returns `true`.
    /// Returns the result of `modify`.
    ///
    /// # Panics
    ///
    /// Same as [`send_modify`](Self::send_modify).
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = mini::sync::watch::channel(5);
    /// let raise_to = |new: i32| sender.send_if_modified(|value| std::mem::replace(value, new.max(*value)) < new);
    /// assert!(!raise_to(3));
    /// assert!(raise_to(7));
    /// assert!(receiver.has_changed().unwrap());
    /// ```
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut wakes = Wakes::new();
        let mut current = self.shared.current.write().unwrap_or_else(PoisonError::into_inner);
        if !modify(&mut current.value) {
            return false;
        }
        current.version = current.version.wrapping_add(1);
        {
            let mut state = self.shared.state.lock();
            state.version = current.version;
            state.changes.end(&mut wakes);
        }
        drop(current);
        waiters::wake_all(wakes, |wakes| self.shared.state.lock().changes.take_leaving(wakes));
        true
    }

    /// Replaces the value, even if there is no receiver, and returns the previous one.
    ///
    /// # Examples
    ///
    /// ```
    /// let sender = mini::sync::watch::Sender::new(1);
    /// assert_eq!(sender.send_replace(2), 1);
    /// assert_eq!(*sender.subscribe().borrow(), 2);
    /// ```
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|old| std::mem::swap(old, &mut value));
        value
    }

    /// Borrows the value, which cannot change as long as the [`Ref`] lives.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref { current: self.shared.read(), has_changed: false }
    }

    /// Returns `true` if there is no receiver.
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, receiver) = mini::sync::watch::channel(());
    /// let waiting = mini::spawn(async move { sender.closed().await });
    /// drop(receiver);
    /// waiting.await.unwrap();
    /// # });
    /// ```
    #[track_caller]
    pub fn closed(&self) -> WatchClosed<'_, T> {
        WatchClosed { inner: RoundWait::new(Closes(&self.shared)) }
    }

    /// Creates a receiver that has seen the current value, but not one that is being sent.
    pub fn subscribe(&self) -> Receiver<T> {
        // Without the value's lock, which user code may hold. A send that goes on has not told of its value yet, then
        // this receiver is told too; or it has, and what can be borrowed is that value.
        let version = {
            let mut state = self.shared.state.lock();
            state.receivers += 1;
            state.version
        };
        Receiver { shared: self.shared.clone(), version }
    }

    /// Returns the number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.state.lock().receivers
    }

    /// Returns the number of senders.
    pub fn sender_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// Returns `true` if both send to the same receivers.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.state.lock().senders += 1;
        Self { shared: self.shared.clone() }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        rounds::end_if(&Changes(&self.shared), |state| {
            state.senders -= 1;
            state.senders == 0
        });
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("receivers", &self.receiver_count()).finish_non_exhaustive()
    }
}

/// Receives the newest value; see [`channel`]. A clone has seen the same values as its original.
pub struct Receiver<T> {
    shared: Arc<Channel<T>>,
    /// The latest version that it has seen.
    version: u64,
}

impl<T> Receiver<T> {
    /// Borrows the value, which cannot change as long as the [`Ref`] lives. It does not count as seen.
    ///
    /// A [`Ref`] blocks the threads of senders, so keep it only briefly, and not across an `.await`.
    pub fn borrow(&self) -> Ref<'_, T> {
        let current = self.shared.read();
        let has_changed = current.version != self.version;
        Ref { current, has_changed }
    }

    /// Borrows the value like [`borrow`](Self::borrow), and marks it as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, mut receiver) = mini::sync::watch::channel(1);
    /// sender.send(2).unwrap();
    /// assert!(receiver.borrow().has_changed());
    /// assert_eq!(*receiver.borrow_and_update(), 2);
    /// assert!(!receiver.borrow().has_changed());
    /// ```
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let current = self.shared.read();
        let has_changed = current.version != self.version;
        self.version = current.version;
        Ref { current, has_changed }
    }

    /// Returns `true` if there is a value that does not count as seen.
    ///
    /// # Errors
    ///
    /// Fails if all senders are gone, even if there is such a value.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let state = self.shared.state.lock();
        if state.senders == 0 { Err(RecvError(())) } else { Ok(state.version != self.version) }
    }

    /// Returns `true` if all senders are gone.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().senders == 0
    }

    /// Marks the value as not seen.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, mut receiver) = mini::sync::watch::channel(1);
    /// receiver.mark_changed();
    /// receiver.changed().await.unwrap();
    /// # });
    /// ```
    pub fn mark_changed(&mut self) {
        self.version = self.shared.state.lock().version.wrapping_sub(1);
    }

    /// Marks the value as seen.
    pub fn mark_unchanged(&mut self) {
        self.version = self.shared.state.lock().version;
    }

    /// Waits for a value that does not count as seen, and marks it as seen.
    ///
    /// # Errors
    ///
    /// Fails if there is no such value, and all senders are gone.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped future has not marked a value as seen.
    #[track_caller]
    pub fn changed(&mut self) -> WatchChanged<'_, T> {
        let Self { shared, version } = self;
        WatchChanged { seen: version, inner: RoundWait::new(Changes(shared)) }
    }

    /// Waits for a value that `is_wanted`, starting with the current one. Each value that is checked counts as seen.
    ///
    /// # Errors
    ///
    /// Fails if all senders are gone and their last value is not wanted.
    ///
    /// # Panics
    ///
    /// Panics if `is_wanted` does.
    ///
    /// # Cancel safety
    ///
    /// Safe, except that values that were checked and not wanted count as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, mut receiver) = mini::sync::watch::channel(0);
    /// let waiting = mini::spawn(async move { *receiver.wait_for(|percent| *percent >= 50).await.unwrap() });
    /// sender.send(70).unwrap();
    /// assert_eq!(waiting.await.unwrap(), 70);
    /// # });
    /// ```
    #[track_caller]
    pub fn wait_for<F: FnMut(&T) -> bool>(&mut self, is_wanted: F) -> WatchWaitFor<'_, T, F> {
        let Self { shared, version } = self;
        let inner = RoundWait::new(Changes(shared));
        WatchWaitFor { seen: version, is_wanted, has_looked: false, announced: None, is_closed: false, inner }
    }

    /// Returns `true` if both receivers are of one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.state.lock().receivers += 1;
        Self { shared: self.shared.clone(), version: self.version }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        rounds::end_if(&Closes(&self.shared), |state| {
            state.receivers -= 1;
            state.receivers == 0
        });
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("has_changed", &self.has_changed().ok()).finish_non_exhaustive()
    }
}

/// The value of a channel, held for reading.
pub struct Ref<'a, T> {
    current: RwLockReadGuard<'a, Current<T>>,
    has_changed: bool,
}

impl<T> Ref<'_, T> {
    /// Returns `true` if the value did not count as seen when it was borrowed. Senders have seen all values.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.current.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref").field("value", &**self).field("has_changed", &self.has_changed).finish()
    }
}

/// A change that a receiver has not seen, or the end.
fn change(state: &State, seen: u64) -> Option<Result<u64, RecvError>> {
    match state.version {
        version if version != seen => Some(Ok(version)),
        _ if state.senders == 0 => Some(Err(RecvError(()))),
        _ => None,
    }
}

future!(
    /// Future of [`Receiver::changed`]: resolves to `Result<(), RecvError>`.
    WatchChanged['a, T] { inner: RoundWait<Changes<'a, T>>, seen: &'a mut u64 } -> Result<(), RecvError>,
    |this, cx| {
        let change = ready!(this.inner.poll_until(cx, |state| change(state, **this.seen)));
        Poll::Ready(change.map(|version| **this.seen = version))
    }
);

pin_project! {
    /// Future of [`Receiver::wait_for`]: resolves to `Result<Ref<T>, RecvError>`.
    #[must_use = "futures do nothing unless awaited"]
    pub struct WatchWaitFor<'a, T, F> {
        seen: &'a mut u64,
        is_wanted: F,
        // Whether the value that counts as seen has been looked at.
        has_looked: bool,
        // The version that the last wait has ended with. It is no change any more for who looks at the value.
        announced: Option<u64>,
        is_closed: bool,
        #[pin]
        inner: RoundWait<Changes<'a, T>>,
    }
}

impl<'a, T, F: FnMut(&T) -> bool> Future for WatchWaitFor<'a, T, F> {
    type Output = Result<Ref<'a, T>, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let shared: &'a Channel<T> = this.inner.place().0;
        loop {
            if !*this.has_looked {
                ready!(mini_context::check_budget(cx, &*this.has_looked));
                let current = shared.read();
                let is_unseen = current.version != **this.seen;
                let has_changed = is_unseen && *this.announced != Some(current.version);
                **this.seen = current.version;
                if (!*this.is_closed || is_unseen) && (this.is_wanted)(&current.value) {
                    mini_context::spend(1);
                    return Poll::Ready(Ok(Ref { current, has_changed }));
                }
                *this.has_looked = true;
            }
            if *this.is_closed {
                return Poll::Ready(Err(RecvError(())));
            }
            let change = ready!(this.inner.as_mut().poll_until(cx, |state| change(state, **this.seen)));
            *this.is_closed = change.is_err();
            *this.announced = change.ok();
            *this.has_looked = false;
        }
    }
}

impl<T, F> fmt::Debug for WatchWaitFor<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchWaitFor").finish_non_exhaustive()
    }
}

future!(
    /// Future of [`Sender::closed`]: resolves to `()` when there is no receiver.
    WatchClosed['a, T] { inner: RoundWait<Closes<'a, T>> } -> (),
    |this, cx| this.inner.poll_until(cx, |state| (state.receivers == 0).then_some(()))
);
