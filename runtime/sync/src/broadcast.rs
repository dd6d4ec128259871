//! A channel of which each receiver gets each message: events, invalidations, a chat.
//!
//! The channel keeps the last messages, as many as its capacity says. A receiver that falls behind further is told how
//! many it has missed, and goes on with the oldest that is kept. So a slow receiver slows nobody down.
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

// A ring of messages under one lock. A place in it counts the receivers that have not got its message; with the last
// of them the message leaves the ring. Receivers get messages in order, so those that all have got are the older ones.
//
// A message is in an `Arc`, which is what is cloned under the lock. The user's `clone` runs later, under a mutex of that
// message, as the message need not be `Sync`; the last receiver gets the message itself.
//
// Rejected: messages in the ring itself (the user's `clone` and `drop` under the lock of the channel, or a lock for each
// place and a protocol between those and the channel's). Cloning without a mutex (messages would have to be `Sync`).

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use mini_context::{Lock, SyncKind};
use pin_project_lite::pin_project;

use crate::blocking;
use crate::rounds::{self, Place, Rounds, Wait};
use crate::waiters::{self, Wakes};

/// Makes a channel that keeps the last `capacity` messages, or more: as many as the next power of two.
///
/// # Panics
///
/// If `capacity` is 0, or more than `usize::MAX / 2`.
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

struct Shared<T> {
    state: Lock<State<T>>,
}

type Message<T> = Arc<Mutex<T>>;

pub(crate) struct State<T> {
    /// The message at the position `p` is in the place `p` modulo the length, which is a power of two.
    ring: Box<[Slot<T>]>,
    /// The position of the next message.
    tail: u64,
    senders: usize,
    weak_senders: usize,
    receivers: usize,
    /// A round ends when there is a message or no sender left.
    messages: Rounds<()>,
    /// A round ends when no receiver is left.
    closes: Rounds<()>,
}

struct Slot<T> {
    /// How many receivers have not got the message.
    owed: usize,
    /// Present while it is owed.
    message: Option<Message<T>>,
}

/// What a receiver finds.
enum Found<T> {
    Message(Message<T>),
    Lagged(u64),
    Empty,
    Closed,
}

impl<T> State<T> {
    /// The position of the oldest message that is kept, if there were as many as the ring has places for.
    fn oldest(&self) -> u64 {
        self.tail.saturating_sub(self.ring.len() as u64)
    }

    fn slot(&mut self, position: u64) -> &mut Slot<T> {
        let mask = self.ring.len() - 1;
        &mut self.ring[position as usize & mask]
    }

    /// The message before comes back, to be dropped without the lock.
    fn push(&mut self, message: Message<T>) -> Option<Message<T>> {
        let (tail, owed) = (self.tail, self.receivers);
        self.tail += 1;
        std::mem::replace(self.slot(tail), Slot { owed, message: Some(message) }).message
    }

    /// One receiver less is to get the message at this position, which is kept.
    fn pay(&mut self, position: u64) -> Option<Message<T>> {
        let slot = self.slot(position);
        slot.owed -= 1;
        if slot.owed == 0 { slot.message.take() } else { None }
    }

    /// Moves the receiver's position on.
    fn take(&mut self, next: &mut u64) -> Found<T> {
        let oldest = self.oldest();
        if *next < oldest {
            let missed = oldest - *next;
            *next = oldest;
            return Found::Lagged(missed);
        }
        if *next == self.tail {
            return if self.senders == 0 { Found::Closed } else { Found::Empty };
        }
        let position = *next;
        *next += 1;
        let shared = self.slot(position).message.clone();
        Found::Message(self.pay(position).or(shared).expect("a message that is owed"))
    }

    /// How many messages are owed to somebody. They are the newest ones.
    fn len(&mut self) -> usize {
        let (mut low, mut high) = (self.oldest(), self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.slot(middle).owed == 0 { low = middle + 1 } else { high = middle }
        }
        (self.tail - low) as usize
    }

    /// Lets a receiver in, at the end.
    fn subscribe(&mut self) -> u64 {
        self.receivers = self.receivers.checked_add(1).expect("as many receivers as there are numbers");
        self.tail
    }
}

/// The message itself, if no other receiver has it.
fn unwrap<T: Clone>(message: Message<T>) -> T {
    match Arc::try_unwrap(message) {
        Ok(message) => message.into_inner().unwrap_or_else(PoisonError::into_inner),
        Err(shared) => shared.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}

/// The place of those who wait for a message.
struct Messages<'a, T>(&'a Shared<T>);

impl<T> Place for Messages<'_, T> {
    const KIND: SyncKind = SyncKind::Receive;
    type State = State<T>;

    fn with<R>(&self, f: impl FnOnce(&mut State<T>) -> R) -> R {
        f(&mut self.0.state.lock())
    }

    fn rounds(state: &mut State<T>) -> &mut Rounds<()> {
        &mut state.messages
    }
}

/// The place of those who wait for the receivers to be gone.
struct Closes<'a, T>(&'a Shared<T>);

impl<T> Place for Closes<'_, T> {
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
/// When the last sender is dropped, receivers get what is kept for them, and then the end.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// A channel without a receiver; [`subscribe`](Self::subscribe) makes one. For `capacity` see [`channel`].
    ///
    /// # Panics
    ///
    /// As [`channel`].
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a broadcast channel keeps one message at least");
        assert!(capacity <= usize::MAX / 2, "a broadcast channel keeps {} messages at most", usize::MAX / 2);
        let ring = (0..capacity.next_power_of_two()).map(|_| Slot { owed: 0, message: None }).collect();
        let state = State {
            ring,
            tail: 0,
            senders: 1,
            weak_senders: 0,
            receivers: 0,
            messages: Rounds::new(),
            closes: Rounds::new(),
        };
        Self { shared: Arc::new(Shared { state: Lock::new(state) }) }
    }

    /// Sends a message to all receivers, and says how many there are.
    ///
    /// Those who subscribe later do not get it, and a receiver that is dropped, or lags behind, may not either.
    ///
    /// # Errors
    ///
    /// If there is no receiver. The error has the message.
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

    /// A receiver, which gets what is sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        let next = self.shared.state.lock().subscribe();
        Receiver { shared: self.shared.clone(), next }
    }

    /// A sender that does not keep the channel open.
    pub fn downgrade(&self) -> WeakSender<T> {
        self.shared.state.lock().weak_senders += 1;
        WeakSender { shared: self.shared.clone() }
    }

    /// How many messages are kept for some receiver.
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

    /// Whether no message is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.shared.state.lock().receivers
    }

    /// Whether both send to the same receivers.
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
        BroadcastClosed { inner: Wait::new(Closes(&self.shared)) }
    }

    /// How many [`Sender`]s there are.
    pub fn strong_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// How many [`WeakSender`]s there are.
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
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    /// A sender, if the channel is open.
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

    /// How many [`Sender`]s there are.
    pub fn strong_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// How many [`WeakSender`]s there are.
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

/// Gets each message that is sent after it was made; see [`channel`].
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The position of the next message it gets.
    next: u64,
}

impl<T> Receiver<T> {
    /// How many messages were sent that it has not got, also those that are not kept any more.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, mut receiver) = mini::sync::broadcast::channel(2);
    /// (1..=3).for_each(|n| drop(sender.send(n)));
    /// assert_eq!(receiver.len(), 3);
    /// assert!(receiver.try_recv().is_err());
    /// assert_eq!(receiver.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        (self.shared.state.lock().tail - self.next) as usize
    }

    /// Whether it has got all that was sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are of one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// How many [`Sender`]s there are.
    pub fn sender_strong_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// How many [`WeakSender`]s there are.
    pub fn sender_weak_count(&self) -> usize {
        self.shared.state.lock().weak_senders
    }

    /// Whether all senders are gone. There may be messages left.
    pub fn is_closed(&self) -> bool {
        self.sender_strong_count() == 0
    }

    /// Another receiver, which gets what is sent from now on.
    pub fn resubscribe(&self) -> Self {
        let next = self.shared.state.lock().subscribe();
        Self { shared: self.shared.clone(), next }
    }
}

impl<T: Clone> Receiver<T> {
    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// [`Lagged`](RecvError::Lagged) with the number of messages that were overwritten before this got them: the next
    /// call returns the oldest that is kept. [`Closed`](RecvError::Closed) if all senders are gone and nothing is left.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped future has taken no message.
    #[track_caller]
    pub fn recv(&mut self) -> BroadcastRecv<'_, T> {
        let Self { shared, next } = self;
        BroadcastRecv { next, inner: Wait::new(Messages(shared)) }
    }

    /// The next message, if there is one.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv), and [`Empty`](TryRecvError::Empty) if that would wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::broadcast::{self, error::TryRecvError};
    /// let (sender, mut receiver) = broadcast::channel(1);
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let found = self.shared.state.lock().take(&mut self.next);
        match found {
            Found::Message(message) => Ok(unwrap(message)),
            Found::Lagged(missed) => Err(TryRecvError::Lagged(missed)),
            Found::Empty => Err(TryRecvError::Empty),
            Found::Closed => Err(TryRecvError::Closed),
        }
    }

    /// As [`recv`](Self::recv), on a thread that may block.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    ///
    /// # Panics
    ///
    /// Inside a task, which must not block its thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, mut receiver) = mini::sync::broadcast::channel(1);
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send(1).unwrap();
    /// assert_eq!(thread.join().unwrap(), Ok(1));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        blocking::block_on("blocking_recv", self.recv())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        /// Also after a message's destructor has panicked.
        struct Close<'a, T>(&'a Shared<T>);
        impl<T> Drop for Close<'_, T> {
            fn drop(&mut self) {
                rounds::end_if(&Closes(self.0), |_| true);
            }
        }
        let (end, is_last) = {
            let mut state = self.shared.state.lock();
            state.receivers -= 1;
            (state.tail, state.receivers == 0)
        };
        let _close = is_last.then(|| Close(&self.shared));
        while self.next < end {
            let mut state = self.shared.state.lock();
            self.next = self.next.max(state.oldest());
            let message = if self.next < end { state.pay(self.next) } else { None };
            self.next += 1;
            drop(state);
            drop(message);
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("len", &self.len()).finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`Receiver::recv`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct BroadcastRecv<'a, T> {
        next: &'a mut u64,
        #[pin]
        inner: Wait<Messages<'a, T>>,
    }
}

impl<T: Clone> Future for BroadcastRecv<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let found = ready!(this.inner.poll_until(cx, |state| match state.take(this.next) {
            Found::Message(message) => Some(Ok(message)),
            Found::Lagged(missed) => Some(Err(RecvError::Lagged(missed))),
            Found::Closed => Some(Err(RecvError::Closed)),
            Found::Empty => None,
        }));
        Poll::Ready(found.map(unwrap))
    }
}

pin_project! {
    /// The future of [`Sender::closed`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct BroadcastClosed<'a, T> {
        #[pin]
        inner: Wait<Closes<'a, T>>,
    }
}

impl<T> Future for BroadcastClosed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().inner.poll_until(cx, |state| (state.receivers == 0).then_some(()))
    }
}

impl<T> fmt::Debug for BroadcastRecv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastRecv").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for BroadcastClosed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastClosed").finish_non_exhaustive()
    }
}

/// The errors of this channel.
pub mod error {
    pub use super::{RecvError, SendError, TryRecvError};
}

/// There is no receiver; this is the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel has no receiver")
    }
}

impl<T> std::error::Error for SendError<T> {}

/// Why [`Receiver::recv`] has no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// All senders are gone, and so are their messages.
    Closed,
    /// So many messages were overwritten before the receiver got them.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the channel is closed"),
            Self::Lagged(missed) => write!(f, "the receiver has missed {missed} messages"),
        }
    }
}

impl std::error::Error for RecvError {}

/// Why [`Receiver::try_recv`] has no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is none, and there may be one later.
    Empty,
    /// All senders are gone, and so are their messages.
    Closed,
    /// So many messages were overwritten before the receiver got them.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the channel is empty"),
            Self::Closed => f.write_str("the channel is closed"),
            Self::Lagged(missed) => write!(f, "the receiver has missed {missed} messages"),
        }
    }
}

impl std::error::Error for TryRecvError {}
