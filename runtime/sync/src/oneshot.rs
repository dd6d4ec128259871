//! Channels for one message.
//!
//! # Examples
//!
//! ```
//! use mini::sync::oneshot;
//!
//! # mini::block_on(async {
//! let (sender, receiver) = oneshot::channel();
//! mini::spawn(async move { sender.send(7) });
//! assert_eq!(receiver.await, Ok(7));
//! # });
//! ```

// How it works: the sender ends its part once, under the lock: it puts the message into its place, then sets
// `has_news`. Before that the place is the sender's, after that the receiver's, which needs no lock to fetch the
// message. What else the two tell each other (wakers, `is_closed`) is plain state under the lock.

#![allow(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Lock, Note, Reason, SyncKind};

use crate::blocking;
use crate::primitives::UnsafeCell;
use crate::primitives::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// What failed.
pub mod error {
    pub use super::{RecvError, TryRecvError};
}

/// A channel for one message.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { is_closed: false, receiver: None, sender: None };
    let (has_news, message) = (AtomicBool::new(false), UnsafeCell::new(None));
    let chan = Arc::new(Chan { state: Lock::new(state), has_news, message });
    let location = Location::caller();
    (Sender { chan: Some(chan.clone()) }, Receiver { chan: Some(chan), location, is_waiting: false })
}

struct Chan<T> {
    state: Lock<State>,
    /// Whether the sender has sent or is gone. Set once, under the lock.
    has_news: AtomicBool,
    message: UnsafeCell<Option<T>>,
}

struct State {
    /// The receiver is gone, or wants nothing.
    is_closed: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
}

// SAFETY: the message is used by the sender before `has_news` and by the receiver after it. Test: model
// `the_message_or_the_end_wakes_the_receiver`.
unsafe impl<T: Send> Sync for Chan<T> {}

impl<T> Chan<T> {
    /// Whether the sender has ended its part. Then the receiver may [`fetch`](Self::fetch).
    fn has_news(&self) -> bool {
        self.has_news.load(Acquire)
    }

    /// The message, for the receiver when there are news.
    fn fetch(&self) -> Option<T> {
        debug_assert!(self.has_news());
        // SAFETY: there are news, and this is the receiver.
        self.message.with_mut(|message| unsafe { (*message).take() })
    }

    /// The message, or whether there will be one. For the receiver.
    fn look(&self) -> Result<T, TryRecvError> {
        let is_closed = self.state.lock().is_closed;
        match self.has_news() {
            true => self.fetch().ok_or(TryRecvError::Closed),
            false if is_closed => Err(TryRecvError::Closed),
            false => Err(TryRecvError::Empty),
        }
    }

    /// Ends the sender's part, with a message or without. A message that nobody wants comes back.
    fn end(&self, mut message: Option<T>) -> Result<(), T> {
        let mut state = self.state.lock();
        if !state.is_closed {
            // SAFETY: this is the sender, and there are no news yet. The place is empty: nothing is dropped.
            self.message.with_mut(|place| unsafe { *place = message.take() });
        }
        // Release: pairs with the Acquire in `has_news`.
        self.has_news.store(true, Release);
        let wakers = (state.receiver.take(), state.sender.take());
        drop(state);
        wakers.0.into_iter().for_each(Waker::wake);
        message.map_or(Ok(()), Err)
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let wakers = (state.sender.take(), state.receiver.take());
        drop(state);
        wakers.0.into_iter().for_each(Waker::wake);
    }
}

/// Sends the message of a [`channel`].
///
/// Dropping it unused tells the receiver that nothing will come.
pub struct Sender<T> {
    /// Present until it is used.
    chan: Option<Arc<Chan<T>>>,
}

impl<T> Sender<T> {
    /// Sends the message.
    ///
    /// # Errors
    ///
    /// If the receiver is gone or has closed the channel. The message comes back. A message that was sent may still be
    /// dropped with the receiver.
    pub fn send(mut self, message: T) -> Result<(), T> {
        match self.chan.take() {
            Some(chan) => chan.end(Some(message)),
            None => Err(message),
        }
    }

    /// Waits until the receiver is dropped or closes the channel: nobody wants the message any more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (mut sender, receiver) = mini::sync::oneshot::channel::<u32>();
    /// drop(receiver);
    /// sender.closed().await;
    /// # });
    /// ```
    #[track_caller]
    pub fn closed(&mut self) -> Closed<'_, T> {
        Closed { sender: self, location: Location::caller() }
    }

    /// Whether the receiver is gone or has closed the channel.
    pub fn is_closed(&self) -> bool {
        self.chan.as_ref().is_none_or(|chan| chan.state.lock().is_closed)
    }

    /// As [`closed`](Self::closed), for code that polls by hand.
    #[track_caller]
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_end(cx, Location::caller())
    }

    fn poll_end(&mut self, cx: &mut Context<'_>, location: &'static Location<'static>) -> Poll<()> {
        ready!(mini_context::poll_budget(cx));
        let Some(chan) = &self.chan else { return Poll::Ready(()) };
        let waker = cx.waker().clone();
        let mut state = chan.state.lock();
        if state.is_closed {
            drop(state);
            return Poll::Ready(()); // the waker is dropped without the lock
        }
        let old = state.sender.replace(waker);
        drop(state);
        drop(old);
        mini_context::leave_note(Note { reason: Reason::Sync(SyncKind::Closed, 0), location });
        Poll::Pending
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(chan) = self.chan.take() {
            let lost = chan.end(None);
            debug_assert!(lost.is_ok(), "no message was sent before");
        }
    }
}

/// Receives the message of a [`channel`]: a future.
///
/// # Errors
///
/// [`RecvError`] if the sender is dropped without sending.
///
/// # Panics
///
/// If it is polled after it was ready.
///
/// # Cancel safety
///
/// Await `&mut receiver` to go on later. Dropping the receiver drops the message.
#[must_use = "futures do nothing unless awaited"]
pub struct Receiver<T> {
    /// Present until it is ready.
    chan: Option<Arc<Chan<T>>>,
    location: &'static Location<'static>,
    is_waiting: bool,
}

impl<T> Receiver<T> {
    /// From now on sending gives an error. A message that was sent before can still be received.
    pub fn close(&mut self) {
        if let Some(chan) = &self.chan {
            chan.close();
        }
    }

    /// Takes the message if it is there.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if it is not there yet, [`TryRecvError::Closed`] if it won't come or was taken.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let found = self.chan.as_ref().map_or(Err(TryRecvError::Closed), |chan| chan.look());
        if !matches!(found, Err(TryRecvError::Empty)) {
            self.chan = None;
        }
        found
    }

    /// Waits for the message on a thread that may block.
    ///
    /// # Errors
    ///
    /// [`RecvError`] if the sender is dropped without sending.
    ///
    /// # Panics
    ///
    /// Inside a task, which must not block its thread.
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        blocking::block_on("blocking_recv", self)
    }

    /// Whether it has been ready, or there is nothing to come.
    pub fn is_terminated(&self) -> bool {
        self.chan.is_none()
    }

    /// Whether there is no message to take now.
    pub fn is_empty(&self) -> bool {
        // SAFETY: there are news, and this is the receiver.
        let has_message = |chan: &Chan<T>| chan.message.with(|message| unsafe { (*message).is_some() });
        !self.chan.as_ref().is_some_and(|chan| chan.has_news() && has_message(chan))
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let chan = self.chan.as_ref().expect("polled after it was ready");
        if !chan.has_news() {
            let waker = cx.waker().clone();
            let mut state = chan.state.lock();
            if !state.is_closed && !chan.has_news() {
                let old = state.receiver.replace(waker);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
        }
        let found = if chan.has_news() { chan.fetch() } else { None };
        self.chan = None;
        Poll::Ready(found.ok_or(RecvError(())))
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(mini_context::poll_budget(cx));
        let received = self.poll_message(cx);
        self.is_waiting = received.is_pending();
        if self.is_waiting {
            let note = Note { reason: Reason::Sync(SyncKind::Receive, 0), location: self.location };
            mini_context::leave_note(note);
        }
        received
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.is_waiting {
            let location = self.location;
            mini_context::forget_wait(|wait| std::ptr::eq(wait.location(), location));
        }
        if let Some(chan) = self.chan.take() {
            chan.close();
            drop(chan.look()); // the message, without the lock
        }
    }
}

/// The future of [`Sender::closed`].
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    sender: &'a mut Sender<T>,
    location: &'static Location<'static>,
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let location = self.location;
        self.sender.poll_end(cx, location)
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        let location = self.location;
        mini_context::forget_wait(|wait| std::ptr::eq(wait.location(), location));
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("is_closed", &self.is_closed()).finish()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made_at = format_args!("{}", self.location).to_string();
        f.debug_struct("Receiver").field("is_empty", &self.is_empty()).field("made_at", &made_at).finish()
    }
}

/// The sender was dropped without sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvError(());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sender of the channel was dropped without sending, or the receiver has closed it")
    }
}

impl std::error::Error for RecvError {}

/// There is no message to take at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// It is not there yet.
    Empty,
    /// It won't come, or was taken.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no message has been sent yet",
            Self::Closed => "no message will come",
        })
    }
}

impl std::error::Error for TryRecvError {}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::future::block_on;
    use loom::thread;

    /// Fails if `has_news` is stored or loaded Relaxed, or if it is not looked at again under the lock.
    #[test]
    fn the_message_or_the_end_wakes_the_receiver() {
        for is_sent in [true, false] {
            loom::model(move || {
                mini_context::swap_budget(mini_context::BUDGET);
                let (sender, receiver) = channel();
                let sending = thread::spawn(move || is_sent.then(|| sender.send(7).unwrap()));
                assert_eq!(block_on(receiver).ok(), is_sent.then_some(7));
                sending.join().unwrap();
            });
        }
    }

    #[test]
    fn closing_wakes_the_sender() {
        loom::model(|| {
            mini_context::swap_budget(mini_context::BUDGET);
            let (mut sender, receiver) = channel::<u32>();
            let closing = thread::spawn(move || drop(receiver));
            block_on(sender.closed());
            closing.join().unwrap();
        });
    }
}
