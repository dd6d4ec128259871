//! The receiver of the channel.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::error::{RecvError, TryRecvError};
use super::state::{Found, unwrap};
use super::{Channel, Closes, Messages};
use crate::blocking;
use crate::rounds::{self, RoundWait};

/// Receives each message sent after its creation; see [`channel`](super::channel).
pub struct Receiver<T> {
    pub(super) shared: Arc<Channel<T>>,
    /// The position of the next message it gets.
    pub(super) next: u64,
}

impl<T> Receiver<T> {
    /// Returns the number of messages sent but not yet received, including those that are no longer kept.
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

    /// Returns `true` if it has received all messages that were sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if both receivers are of one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the number of [`Sender`](super::Sender)s.
    pub fn sender_strong_count(&self) -> usize {
        self.shared.state.lock().senders
    }

    /// Returns the number of [`WeakSender`](super::WeakSender)s.
    pub fn sender_weak_count(&self) -> usize {
        self.shared.state.lock().weak_senders
    }

    /// Returns `true` if all senders are gone. There may be messages left.
    pub fn is_closed(&self) -> bool {
        self.sender_strong_count() == 0
    }

    /// Creates another receiver, for the messages sent from now on.
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
    /// Returns [`Lagged`](RecvError::Lagged) with the number of messages that were overwritten before this receiver got
    /// them: the next call returns the oldest message kept. Returns [`Closed`](RecvError::Closed) if all senders are
    /// gone and no message is left.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped future has taken no message.
    #[track_caller]
    pub fn recv(&mut self) -> BroadcastRecv<'_, T> {
        let Self { shared, next } = self;
        BroadcastRecv { next, inner: RoundWait::new(Messages(shared)) }
    }

    /// Returns the next message, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv), and [`Empty`](TryRecvError::Empty) if that would wait.
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

    /// Waits for the next message like [`recv`](Self::recv), on a thread that may block.
    ///
    /// # Errors
    ///
    /// Same as [`recv`](Self::recv).
    ///
    /// # Panics
    ///
    /// Panics inside a task, which must not block its thread.
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
        /// Runs even after a message's destructor has panicked.
        struct Close<'a, T>(&'a Channel<T>);
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
    /// Future of [`Receiver::recv`]: resolves to `Result<T, RecvError>`.
    #[must_use = "futures do nothing unless awaited"]
    pub struct BroadcastRecv<'a, T> {
        next: &'a mut u64,
        #[pin]
        inner: RoundWait<Messages<'a, T>>,
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

impl<T> fmt::Debug for BroadcastRecv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastRecv").finish_non_exhaustive()
    }
}
