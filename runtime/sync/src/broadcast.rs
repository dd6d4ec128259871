//! A channel in which each receiver gets each message: events, invalidations, a chat.
//!
//! The channel keeps the latest messages, up to its capacity. A receiver that falls further behind gets an error with
//! the number of messages missed, and continues with the oldest message kept. So a slow receiver does not slow down
//! senders or other receivers.
//!
//! # Examples
//!
//! ```
//! use mini::sync::broadcast;
//!
//! # mini::block_on(async {
//! let (sender, mut first) = broadcast::channel(16);
//! let mut second = sender.subscribe();
//! sender.send("hello").unwrap();
//! assert_eq!(first.recv().await, Ok("hello"));
//! assert_eq!(second.recv().await, Ok("hello"));
//! # });
//! ```
//!
//! A receiver that is too slow:
//!
//! ```
//! use mini::sync::broadcast::{self, error::RecvError};
//!
//! # mini::block_on(async {
//! let (sender, mut receiver) = broadcast::channel(2);
//! for n in 1..=3 {
//!     sender.send(n).unwrap();
//! }
//! drop(sender);
//! assert_eq!(receiver.recv().await, Err(RecvError::Lagged(1)));
//! assert_eq!(receiver.recv().await, Ok(2));
//! assert_eq!(receiver.recv().await, Ok(3));
//! assert_eq!(receiver.recv().await, Err(RecvError::Closed));
//! # });
//! ```

pub mod error;
pub(crate) mod receiver;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use mini_context::{Lock, SyncKind};

pub use receiver::Receiver;

use error::SendError;
use state::State;

use crate::macros::future;
use crate::rounds::{self, HasRounds, RoundWait, Rounds};
use crate::waiters::{self, Wakes};

/// Creates a channel that keeps the last `capacity` messages, rounded up to a power of two.
///
/// # Panics
///
/// Panics if `capacity` is 0, or more than `usize::MAX / 2`, or more than memory holds.
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

struct Channel<T> {
    state: Lock<State<T>>,
}

/// The place of tasks that wait for a message.
struct Messages<'a, T>(&'a Channel<T>);

impl<T> HasRounds for Messages<'_, T> {
    const KIND: SyncKind = SyncKind::Receive;
    type State = State<T>;

    fn with<R>(&self, f: impl FnOnce(&mut State<T>) -> R) -> R {
        f(&mut self.0.state.lock())
    }

    fn rounds(state: &mut State<T>) -> &mut Rounds<()> {
        &mut state.messages
    }
}

/// The place of tasks that wait for the receivers to be gone.
struct Closes<'a, T>(&'a Channel<T>);

impl<T> HasRounds for Closes<'_, T> {
    const KIND: SyncKind = SyncKind::Closed;
    type State = State<T>;

    fn with<R>(&self, f: impl FnOnce(&mut State<T>) -> R) -> R {
        f(&mut self.0.state.lock())
    }

    fn rounds(state: &mut State<T>) -> &mut Rounds<()> {
        &mut state.closes
    }
}

/// Sends messages to all receivers; see [`channel`].
///
/// After the last sender is dropped, receivers get the messages kept for them, and then the end.
pub struct Sender<T> {
    shared: Arc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Creates a channel without a receiver; [`subscribe`](Self::subscribe) adds one. For `capacity` see [`channel`].
    ///
    /// # Panics
    ///
    /// Same as [`channel`].
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a broadcast channel keeps at least one message");
        assert!(capacity <= usize::MAX / 2, "a broadcast channel keeps at most {} messages", usize::MAX / 2);
        Self { shared: Arc::new(Channel { state: Lock::new(State::new(capacity.next_power_of_two())) }) }
    }

    /// Sends a message to all receivers, and returns their number.
    ///
    /// Receivers that subscribe later do not get it. A receiver that is dropped, or lags behind, may not get it either.
    ///
    /// # Errors
    ///
    /// Fails if there is no receiver. The error has the message.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = mini::sync::broadcast::channel(1);
    /// assert_eq!(sender.send(1).unwrap(), 1);
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().0, 2);
    /// ```
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let message = Arc::new(Mutex::new(value));
        let mut wakes = Wakes::new();
        let sent = {
            let mut state = self.shared.state.lock();
            match state.receivers {
                0 => Err(message),
                receivers => {
                    let old = state.push(message);
                    state.messages.end(&mut wakes);
                    Ok((receivers, old))
                }
            }
        };
        // The old message is dropped in the end: its destructor may panic.
        waiters::wake_all(wakes, |wakes| self.shared.state.lock().messages.take_leaving(wakes));
        match sent {
            Ok((receivers, _old)) => Ok(receivers),
            Err(message) => {
                let value = Arc::into_inner(message).expect("a message that nobody else has");
                Err(SendError(value.into_inner().unwrap_or_else(PoisonError::into_inner)))
            }
        }
    }

    /// Creates a receiver of the messages sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        let next = self.shared.state.lock().subscribe();
        Receiver { shared: self.shared.clone(), next }
    }

    /// Creates a sender that does not keep the channel open.
    pub fn downgrade(&self) -> WeakSender<T> {
        self.shared.state.lock().weak_senders += 1;
        WeakSender { shared: self.shared.clone() }
    }

    /// Returns the number of messages that are kept for at least one receiver.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, mut receiver) = mini::sync::broadcast::channel(2);
    /// sender.send(1).unwrap();
    /// assert_eq!(sender.len(), 1);
    /// receiver.try_recv().unwrap();
    /// assert!(sender.is_empty());
    /// ```
    pub fn len(&self) -> usize {
        self.shared.state.lock().len()
    }

    /// Returns `true` if no message is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.state.lock().receivers
    }

    /// Returns `true` if both send to the same receivers.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
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
    /// let (sender, receiver) = mini::sync::broadcast::channel::<()>(1);
    /// let waiting = mini::spawn(async move { sender.closed().await });
    /// drop(receiver);
    /// waiting.await.unwrap();
    /// # });
    /// ```
    #[track_caller]
    pub fn closed(&self) -> BroadcastClosed<'_, T> {
        BroadcastClosed { inner: RoundWait::new(Closes(&self.shared)) }
    }

    /// Returns the number of [`Sender`]s.
    pub fn strong_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// Returns the number of [`WeakSender`]s.
    pub fn weak_count(&self) -> usize {
        self.shared.state.lock().weak_senders
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.state.lock().senders += 1;
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        rounds::end_if(&Messages(&self.shared), |state| {
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

/// A sender that does not keep the channel open; see [`Sender::downgrade`].
pub struct WeakSender<T> {
    shared: Arc<Channel<T>>,
}

impl<T> WeakSender<T> {
    /// Returns a sender, if the channel is open.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, _receiver) = mini::sync::broadcast::channel::<()>(1);
    /// let weak = sender.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use = "a sender that is dropped at once sends nothing"]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let mut state = self.shared.state.lock();
        if state.senders == 0 {
            return None;
        }
        state.senders += 1;
        drop(state);
        Some(Sender { shared: self.shared.clone() })
    }

    /// Returns the number of [`Sender`]s.
    pub fn strong_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// Returns the number of [`WeakSender`]s.
    pub fn weak_count(&self) -> usize {
        self.shared.state.lock().weak_senders
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        self.shared.state.lock().weak_senders += 1;
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.shared.state.lock().weak_senders -= 1;
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

future!(
    /// Future of [`Sender::closed`]: resolves to `()` when there is no receiver.
    BroadcastClosed['a, T] { inner: RoundWait<Closes<'a, T>> } -> (),
    |this, cx| this.inner.poll_until(cx, |state| (state.receivers == 0).then_some(()))
);
