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

mod chan;

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Note, Reason, SyncKind};

use crate::blocking;
use crate::macros::error;
use crate::panics::Steps;
use chan::Chan;

/// The errors of receiving.
pub mod error {
    pub use super::{RecvError, TryRecvError};
}

/// Creates a channel for one message.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = Chan::pair();
    (Sender { chan: Some(sender) }, Receiver { chan: Some(receiver), location: Location::caller(), is_waiting: false })
}

/// Sends the message of a [`channel`].
///
/// If it is dropped unused, the receiver gets an error.
pub struct Sender<T> {
    /// Present until it is used.
    chan: Option<Chan<T>>,
}

impl<T> Sender<T> {
    /// Sends the message.
    ///
    /// # Errors
    ///
    /// Fails if the receiver is gone or has closed the channel. The error is the message. A message that was sent may
    /// still be dropped with the receiver.
    pub fn send(mut self, message: T) -> Result<(), T> {
        match self.chan.take() {
            Some(chan) => chan.end(Some(message)),
            None => Err(message),
        }
    }

    /// Waits until the receiver is dropped or closes the channel, so that the message is no longer wanted.
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

    /// Returns `true` if the receiver is gone or has closed the channel.
    pub fn is_closed(&self) -> bool {
        self.chan.as_ref().is_none_or(Chan::is_closed)
    }

    /// Polls until the channel is closed: the `poll` form of [`closed`](Self::closed).
    #[track_caller]
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_end(cx, Location::caller())
    }

    fn poll_end(&mut self, cx: &mut Context<'_>, location: &'static Location<'static>) -> Poll<()> {
        ready!(mini_context::check_budget(cx, &*self));
        if self.chan.as_ref().is_none_or(|chan| chan.watch(cx.waker()).is_ready()) {
            mini_context::spend(1);
            return Poll::Ready(());
        }
        mini_context::leave_note(Note { reason: Reason::Sync(SyncKind::Closed, 0), location });
        Poll::Pending
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(chan) = self.chan.take() {
            let _nothing = chan.end(None);
        }
    }
}

/// The receiving end of a [`channel`]: a future that resolves to `Result<T, RecvError>`.
///
/// # Errors
///
/// Returns [`RecvError`] if the sender is dropped without sending.
///
/// # Panics
///
/// Panics if it is polled after it was ready.
///
/// # Cancel safety
///
/// To continue the wait later, await `&mut receiver`. Dropping the receiver drops the message.
#[must_use = "futures do nothing unless awaited"]
pub struct Receiver<T> {
    /// Present until it is ready.
    chan: Option<Chan<T>>,
    location: &'static Location<'static>,
    is_waiting: bool,
}

impl<T> Receiver<T> {
    /// Closes the channel: sending returns an error from now on. A message that was sent before can still be received.
    /// A task that waits on the receiver, which may be behind a lock, is woken.
    pub fn close(&mut self) {
        if let Some(chan) = &self.chan {
            let taken = chan.close();
            let mut steps = Steps::default();
            [taken.watcher, taken.waiter].into_iter().flatten().for_each(|waker| steps.run(|| waker.wake()));
        }
    }

    /// Takes the message if it has arrived.
    ///
    /// # Errors
    ///
    /// Returns [`TryRecvError::Empty`] if it has not arrived yet, and [`TryRecvError::Closed`] if it never will or was
    /// taken.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(chan) = self.chan.take_if(|chan| chan.has_ended() || chan.is_closed()) else {
            return Err(if self.chan.is_some() { TryRecvError::Empty } else { TryRecvError::Closed });
        };
        finish(chan).ok_or(TryRecvError::Closed)
    }

    /// Waits for the message on a thread that may block.
    ///
    /// # Errors
    ///
    /// Returns [`RecvError`] if the sender is dropped without sending.
    ///
    /// # Panics
    ///
    /// Panics inside a task, which must not block its thread.
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        blocking::block_on("blocking_recv", self)
    }

    /// Returns `true` if it has been ready, or no message will arrive.
    pub fn is_terminated(&self) -> bool {
        self.chan.is_none()
    }

    /// Returns `true` if there is no message to take now.
    pub fn is_empty(&self) -> bool {
        !self.chan.as_ref().is_some_and(Chan::has_message)
    }

    #[inline]
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let chan = self.chan.as_ref().expect("polled after it was ready");
        ready!(chan.wait(cx.waker()));
        let found = self.chan.take().and_then(finish);
        Poll::Ready(found.ok_or(RecvError(())))
    }
}

/// The receiver leaves, with the message if there is one.
#[inline]
fn finish<T>(chan: Chan<T>) -> Option<T> {
    let found = if chan.has_ended() { chan.fetch() } else { None };
    chan.leave();
    found
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(mini_context::check_budget(cx, &*self));
        let received = mini_context::spend_if_ready(self.poll_message(cx));
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
            let taken = chan.close();
            let message = finish(chan);
            taken.watcher.into_iter().for_each(Waker::wake);
            drop(message);
        }
    }
}

/// Future of [`Sender::closed`]: resolves to `()` when the receiver has been closed or dropped.
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

error!(RecvError { _ => "the sender was dropped without sending, or the receiver has closed the channel" });

/// There is no message to take at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// The message has not arrived yet.
    Empty,
    /// The message will never arrive, or was taken.
    Closed,
}

error!(TryRecvError {
    Self::Empty => "no message has been sent yet",
    Self::Closed => "no message will come",
});
