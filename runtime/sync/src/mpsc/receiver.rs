//! The receiver's end, of both kinds of channel.

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mini_context::{Lock, Note, Reason, SyncKind};

use super::chan::{Chan, Look, UNBOUNDED};
use super::error::TryRecvError;
use crate::blocking;

/// The common part of both receivers.
pub(super) struct Inner<T> {
    pub(super) chan: Arc<Chan<T>>,
    /// Messages of an unbounded channel that were taken out of the queue in one go. The lock is taken for `len` alone:
    /// a receiver that other threads may look at needs no more of its messages than that they may be sent.
    chunk: Lock<VecDeque<T>>,
}

impl<T> Unpin for Inner<T> {}

impl<T> Inner<T> {
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        Self { chan, chunk: Lock::new(VecDeque::new()) }
    }

    /// The next message that is here already.
    #[inline]
    fn held(&mut self) -> Option<T> {
        self.chan.handed().or_else(|| self.chunk.get_mut().pop_front())
    }

    #[inline]
    fn look(&mut self, location: &'static Location<'static>) -> Look<T> {
        match self.held() {
            Some(message) => Look::Message(message),
            None => self.fetch(location),
        }
    }

    #[inline]
    fn fetch(&mut self, location: &'static Location<'static>) -> Look<T> {
        if self.chan.bound == UNBOUNDED { self.chan.pop_chunk(self.chunk.get_mut()) } else { self.chan.pop(location) }
    }

    /// The next message, if there seems to be one.
    #[inline]
    fn next(&mut self, location: &'static Location<'static>) -> Option<T> {
        if let Some(message) = self.held() {
            return Some(message);
        }
        if self.chan.seems_empty() {
            return None;
        }
        match self.fetch(location) {
            Look::Message(message) => Some(message),
            Look::Empty | Look::Ended => None,
        }
    }

    #[inline(always)]
    fn poll_wait(&mut self, cx: &mut Context<'_>, location: &'static Location<'static>) -> Poll<()> {
        let arrived = self.chan.wait(cx.waker(), location);
        if arrived.is_pending() {
            mini_context::leave_note(Note { reason: Reason::SyncAt(SyncKind::Receive, self.chan.key()), location });
        }
        arrived
    }

    #[inline(always)]
    fn poll_recv(&mut self, cx: &mut Context<'_>, location: &'static Location<'static>) -> Poll<Option<T>> {
        ready!(mini_context::check_budget(cx, self));
        if let Some(message) = self.next(location) {
            mini_context::spend(1);
            return Poll::Ready(Some(message));
        }
        mini_context::spend_if_ready(self.poll_arrival(cx, location))
    }

    /// There seems to be no message.
    #[inline(never)]
    fn poll_arrival(&mut self, cx: &mut Context<'_>, location: &'static Location<'static>) -> Poll<Option<T>> {
        loop {
            ready!(self.poll_wait(cx, location));
            match self.look(location) {
                Look::Message(message) => return Poll::Ready(Some(message)),
                Look::Ended => return Poll::Ready(None),
                Look::Empty => {}
            }
        }
    }

    fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
        location: &'static Location<'static>,
    ) -> Poll<usize> {
        if limit == 0 {
            return mini_context::poll_budget(cx, self).map(|()| 0);
        }
        let Some(first) = ready!(self.poll_recv(cx, location)) else { return Poll::Ready(0) };
        buffer.push(first);
        let mut count = 1;
        // What is sent meanwhile is for the next call: a bound bounds this one too.
        let limit = limit.min(1 + self.len());
        while count < limit {
            let Look::Message(message) = self.look(location) else { break };
            buffer.push(message);
            count += 1;
        }
        Poll::Ready(count)
    }

    fn try_recv(&mut self, location: &'static Location<'static>) -> Result<T, TryRecvError> {
        match self.look(location) {
            Look::Message(message) => Ok(message),
            Look::Ended => Err(TryRecvError::Disconnected),
            Look::Empty => Err(TryRecvError::Empty),
        }
    }

    fn len(&self) -> usize {
        self.chunk.lock().len() + self.chan.len()
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        let chunk = std::mem::take(self.chunk.get_mut());
        self.chan.end_receiver(chunk);
    }
}

macro_rules! receiver {
    ($receiver:ident, $channel:literal) => {
        impl<T> $receiver<T> {
            pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
                Self { inner: Inner::new(chan) }
            }

            /// Waits for the next message. Returns `None` if no message can follow: all senders are gone, or the
            /// channel is closed, and everything that was sent or reserved before has been received.
            ///
            /// # Cancel safety
            ///
            /// No message is lost.
            #[track_caller]
            #[inline]
            pub fn recv(&mut self) -> Recv<'_, T> {
                Recv { inner: &mut self.inner, location: Location::caller(), has_waited: false }
            }

            /// Waits for a message, moves up to `limit` messages to the end of `buffer`, and returns their number.
            /// Returns 0 if no message can follow, or if `limit` is 0.
            ///
            /// # Cancel safety
            ///
            /// No message is lost.
            #[track_caller]
            #[inline]
            pub fn recv_many<'a>(&'a mut self, buffer: &'a mut Vec<T>, limit: usize) -> RecvMany<'a, T> {
                RecvMany { inner: &mut self.inner, buffer, limit, location: Location::caller(), has_waited: false }
            }

            /// Takes a message if there is one.
            ///
            /// # Errors
            ///
            /// Returns [`TryRecvError::Empty`] if there is no message now, and [`TryRecvError::Disconnected`] if there
            /// will be none.
            #[track_caller]
            pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
                self.inner.try_recv(Location::caller())
            }

            /// Waits for the next message like [`recv`](Self::recv), on a thread that may block.
            ///
            /// # Panics
            ///
            /// Panics inside a task, which must not block its thread.
            #[track_caller]
            pub fn blocking_recv(&mut self) -> Option<T> {
                blocking::block_on("blocking_recv", self.recv())
            }

            /// Waits for messages like [`recv_many`](Self::recv_many), on a thread that may block.
            ///
            /// # Panics
            ///
            /// Panics inside a task, which must not block its thread.
            #[track_caller]
            pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
                blocking::block_on("blocking_recv_many", self.recv_many(buffer, limit))
            }

            /// Polls to receive one message: the `poll` form of [`recv`](Self::recv).
            #[track_caller]
            pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
                self.inner.poll_recv(cx, Location::caller())
            }

            /// Polls to receive several messages: the `poll` form of [`recv_many`](Self::recv_many).
            #[track_caller]
            pub fn poll_recv_many(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<T>, limit: usize) -> Poll<usize> {
                self.inner.poll_recv_many(cx, buffer, limit, Location::caller())
            }

            /// Closes the channel: sending returns an error from now on. Messages that were sent or reserved before can
            /// still be received.
            pub fn close(&mut self) {
                self.inner.chan.close();
            }

            /// Returns `true` if nothing more can be sent: [`close`](Self::close) was called, or all senders are gone.
            pub fn is_closed(&self) -> bool {
                self.inner.chan.is_closed() || self.sender_strong_count() == 0
            }

            /// Returns `true` if no message waits to be received.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of messages that wait to be received.
            pub fn len(&self) -> usize {
                self.inner.len()
            }

            /// Returns the number of senders.
            pub fn sender_strong_count(&self) -> usize {
                self.inner.chan.senders().0
            }

            /// Returns the number of weak senders.
            pub fn sender_weak_count(&self) -> usize {
                self.inner.chan.senders().1
            }
        }

        impl<T> fmt::Debug for $receiver<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.chan.describe(stringify!($receiver), f)
            }
        }
    };
}

/// Receives the messages of a bounded channel; see [`channel`](super::channel).
pub struct Receiver<T> {
    inner: Inner<T>,
}

/// Receives the messages of an unbounded channel; see [`unbounded_channel`](super::unbounded_channel).
pub struct UnboundedReceiver<T> {
    inner: Inner<T>,
}

receiver!(Receiver, "channel");
receiver!(UnboundedReceiver, "unbounded_channel");

impl<T> Receiver<T> {
    /// Returns the number of messages that may be sent now without waiting.
    pub fn capacity(&self) -> usize {
        self.inner.chan.free()
    }

    /// Returns the bound of the channel.
    pub fn max_capacity(&self) -> usize {
        self.inner.chan.bound
    }
}

/// Future of `recv`: resolves to `Option<T>`, `None` at the end of the channel.
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T> {
    inner: &'a mut Inner<T>,
    location: &'static Location<'static>,
    has_waited: bool,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline(always)]
    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let location = self.location;
        let received = self.inner.poll_recv(cx, location);
        if received.is_pending() {
            self.has_waited = true;
        }
        received
    }
}

/// Future of `recv_many`: resolves to `usize`, the number of messages received, 0 at the end of the channel.
#[must_use = "futures do nothing unless awaited"]
pub struct RecvMany<'a, T> {
    inner: &'a mut Inner<T>,
    buffer: &'a mut Vec<T>,
    limit: usize,
    location: &'static Location<'static>,
    has_waited: bool,
}

impl<T> Future for RecvMany<'_, T> {
    type Output = usize;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = &mut *self;
        let received = this.inner.poll_recv_many(cx, this.buffer, this.limit, this.location);
        this.has_waited |= received.is_pending();
        received
    }
}

macro_rules! waits {
    ($future:ident) => {
        impl<T> Drop for $future<'_, T> {
            #[inline]
            fn drop(&mut self) {
                if self.has_waited {
                    let location = self.location;
                    mini_context::forget_wait(|wait| std::ptr::eq(wait.location(), location));
                }
            }
        }

        impl<T> fmt::Debug for $future<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        }
    };
}

waits!(Recv);
waits!(RecvMany);
