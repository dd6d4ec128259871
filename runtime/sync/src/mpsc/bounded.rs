//! The senders of a bounded channel, and reserved room.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::chan::{Chan, Closed, UNBOUNDED};
use super::error::{SendError, TrySendError};
use super::receiver::Receiver;
use super::unbounded::sender;
use crate::blocking;
use crate::macros::future;
use crate::permits::{Acquire, Claim, Refusal, Source};

/// Creates a channel that holds up to `bound` messages. When it is full, senders wait, first come, first served.
///
/// A message that is sent while the receiver waits is handed over to it, and takes no room. With a bound of 1, two
/// messages can be sent to a receiver that waits and has not run yet. The same is true after the wait was given up, by
/// a timeout for example: until the receiver receives again, there is room for one more message.
///
/// # Examples
///
/// ```
/// use mini::sync::mpsc;
///
/// # mini::block_on(async {
/// let (sender, mut receiver) = mpsc::channel(1);
/// sender.send(1).await.unwrap();
/// assert!(sender.try_send(2).is_err()); // full
/// assert_eq!(receiver.recv().await, Some(1));
/// assert!(sender.try_send(2).is_ok());
/// # });
/// ```
///
/// # Panics
///
/// Panics if `bound` is 0, or larger than [`Semaphore::MAX_PERMITS`](crate::Semaphore::MAX_PERMITS).
#[track_caller]
pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    assert!(bound > 0, "a channel holds at least one message");
    assert!(bound < UNBOUNDED, "a channel holds at most {} messages, not {bound}", UNBOUNDED - 1);
    let chan = Chan::new(bound);
    (Sender { chan: chan.clone() }, Receiver::new(chan))
}

/// Sends messages to a bounded channel; see [`channel`].
pub struct Sender<T> {
    chan: Arc<Chan<T>>,
}

/// A sender that does not keep the channel open; see [`Sender::downgrade`].
pub struct WeakSender<T> {
    chan: Arc<Chan<T>>,
}

sender!(Sender, WeakSender);

impl<T> Sender<T> {
    /// Waits for room, and sends the message.
    ///
    /// # Errors
    ///
    /// Fails if the receiver is gone or has closed the channel. The error has the message.
    ///
    /// # Cancel safety
    ///
    /// A dropped future drops its message unsent, and loses its place in the queue. To keep the message,
    /// [`reserve`](Self::reserve) room first.
    #[track_caller]
    #[inline]
    pub fn send(&self, message: T) -> SendRef<'_, T> {
        SendRef { chan: &self.chan, location: Location::caller(), acquire: None, message: Some(message) }
    }

    /// Sends the message if there is room and no task waits for room.
    ///
    /// # Errors
    ///
    /// Fails if there is no room, or the receiver is gone or has closed the channel. The error has the message.
    #[track_caller]
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let claim = Claim::new(Location::caller());
        self.chan.try_send(message, claim).map_err(|(refusal, message)| match refusal {
            Refusal::Closed => TrySendError::Closed(message),
            Refusal::Busy => TrySendError::Full(message),
        })
    }

    /// Sends like [`send`](Self::send), on a thread that may block.
    ///
    /// # Errors
    ///
    /// Same as [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// Panics inside a task, which must not block its thread.
    #[track_caller]
    pub fn blocking_send(&self, message: T) -> Result<(), SendError<T>> {
        blocking::block_on("blocking_send", self.send(message))
    }

    /// Waits for room for one message, and keeps it until the permit is used or dropped.
    ///
    /// # Errors
    ///
    /// Fails if the receiver is gone or has closed the channel.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, mut receiver) = mini::sync::mpsc::channel(1);
    /// let room = sender.reserve().await.unwrap();
    /// assert!(sender.try_send(1).is_err());
    /// room.send(2);
    /// assert_eq!(receiver.recv().await, Some(2));
    /// # });
    /// ```
    #[track_caller]
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve { inner: Acquire::new(&*self.chan, 1) }
    }

    /// Waits for room for `count` messages.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`reserve`](Self::reserve), and fails if the channel never has that much room.
    ///
    /// # Cancel safety
    ///
    /// Same as [`reserve`](Self::reserve).
    #[track_caller]
    pub fn reserve_many(&self, count: usize) -> ReserveMany<'_, T> {
        ReserveMany { inner: Acquire::new(&*self.chan, count) }
    }

    /// Waits for room like [`reserve`](Self::reserve), and returns a permit that owns the sender.
    ///
    /// # Errors
    ///
    /// Same as [`reserve`](Self::reserve).
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the queue, and the sender is dropped with it.
    #[track_caller]
    pub fn reserve_owned(self) -> ReserveOwned<T> {
        let inner = Acquire::new(Some(self.chan.clone()), 1);
        ReserveOwned { inner, sender: Some(self) }
    }

    /// Reserves room for one message, if there is some.
    ///
    /// # Errors
    ///
    /// Fails if there is no room, or the receiver is gone or has closed the channel.
    #[track_caller]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.take(1, Location::caller())?;
        Ok(Permit { chan: &self.chan })
    }

    /// Reserves room for `count` messages, if there is that much.
    ///
    /// # Errors
    ///
    /// Same as [`try_reserve`](Self::try_reserve).
    #[track_caller]
    pub fn try_reserve_many(&self, count: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        self.take(count, Location::caller())?;
        Ok(PermitIterator { chan: &self.chan, count })
    }

    /// Reserves room like [`try_reserve`](Self::try_reserve), and returns a permit that owns the sender.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_reserve`](Self::try_reserve). The error has the sender.
    #[track_caller]
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.take(1, Location::caller()) {
            Ok(()) => Ok(OwnedPermit { sender: Some(self) }),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    fn take(&self, count: usize, location: &'static Location<'static>) -> Result<(), TrySendError<()>> {
        let claim = Claim::new(location);
        if count > self.chan.bound {
            return Err(if self.is_closed() { TrySendError::Closed(()) } else { TrySendError::Full(()) });
        }
        self.chan.with(|permits| permits.try_take(count, claim)).map_err(|refusal| match refusal {
            Refusal::Closed => TrySendError::Closed(()),
            Refusal::Busy => TrySendError::Full(()),
        })
    }

    /// Returns the number of messages that may be sent now without waiting.
    pub fn capacity(&self) -> usize {
        self.chan.free()
    }

    /// Returns the bound of the channel.
    pub fn max_capacity(&self) -> usize {
        self.chan.bound
    }
}

pin_project! {
    /// Future of [`Sender::send`]: resolves to `Result<(), SendError<T>>`.
    #[must_use = "futures do nothing unless awaited"]
    pub struct SendRef<'a, T> {
        chan: &'a Chan<T>,
        location: &'static Location<'static>,
        // Made if it is not sent at once.
        #[pin]
        acquire: Option<Acquire<&'a Chan<T>>>,
        // Until it is sent.
        message: Option<T>,
    }
}

impl<T> Future for SendRef<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        if this.acquire.is_none() {
            ready!(mini_context::check_budget(cx, &*this.message));
            if let Some(message) = this.message.take() {
                match this.chan.try_send(message, Claim::new(this.location)) {
                    Ok(()) => {
                        mini_context::spend(1);
                        return Poll::Ready(Ok(()));
                    }
                    Err((_, message)) => *this.message = Some(message),
                }
            }
        }
        self.poll_slowly(cx)
    }
}

impl<T> SendRef<'_, T> {
    #[cold]
    fn poll_slowly(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let mut this = self.project();
        assert!(this.message.is_some(), "polled after it was ready");
        if this.acquire.is_none() {
            this.acquire.set(Some(Acquire::at(*this.chan, 1, this.location)));
        }
        let acquire = this.acquire.as_pin_mut().expect("made above");
        let taken = ready!(acquire.poll(cx));
        let message = this.message.take().expect("asked above");
        Poll::Ready(match taken {
            Ok(()) => {
                this.chan.send_permitted(message);
                Ok(())
            }
            Err(_) => Err(SendError(message)),
        })
    }
}

future!(
    /// Future of [`Sender::reserve`]: resolves to `Result<Permit<T>, SendError<()>>`.
    Reserve['a, T] { inner: Acquire<&'a Chan<T>> } -> Result<Permit<'a, T>, SendError<()>>,
    |mut this, cx| {
        let taken = ready!(this.inner.as_mut().poll(cx));
        Poll::Ready(taken.map(|()| Permit { chan: this.inner.source() }).map_err(|_| SendError(())))
    }
);
future!(
    /// Future of [`Sender::reserve_many`]: resolves to `Result<PermitIterator<T>, SendError<()>>`.
    ReserveMany['a, T] { inner: Acquire<&'a Chan<T>> } -> Result<PermitIterator<'a, T>, SendError<()>>,
    |this, cx| {
        let (chan, count) = (*this.inner.source(), this.inner.count());
        if count > chan.bound {
            let refused = mini_context::poll_budget(cx, &*this.inner);
            return refused.map(|()| Err(SendError(())));
        }
        let taken = ready!(this.inner.poll(cx));
        Poll::Ready(taken.map(|()| PermitIterator { chan, count }).map_err(|_| SendError(())))
    }
);
future!(
    /// Future of [`Sender::reserve_owned`]: resolves to `Result<OwnedPermit<T>, SendError<()>>`.
    ReserveOwned[T] { inner: Acquire<Option<Arc<Chan<T>>>>, sender: Option<Sender<T>> }
        -> Result<OwnedPermit<T>, SendError<()>>,
    |this, cx| {
        let taken = ready!(this.inner.poll(cx));
        let sender = this.sender.take(); // dropped, if it is refused
        Poll::Ready(taken.map(|()| OwnedPermit { sender }).map_err(|_| SendError(())))
    }
);

macro_rules! debug {
    ($($future:ident [$($params:tt)*]),*) => {
        $(impl<T> fmt::Debug for $future<$($params)*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        })*
    };
}

debug!(SendRef['_, T], Permit['_, T], PermitIterator['_, T], OwnedPermit[T]);

/// Room for one message, given back when this is dropped.
#[must_use = "reserved room is given back when the permit is dropped"]
pub struct Permit<'a, T> {
    chan: &'a Chan<T>,
}

impl<T> Permit<'_, T> {
    /// Sends the message. If the receiver is gone the message is dropped.
    pub fn send(self, message: T) {
        ManuallyDrop::new(self).chan.send_permitted(message);
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.chan.take_back(1);
    }
}

/// Room for several messages: an iterator of permits. Unused room is given back when this is dropped.
#[must_use = "reserved room is given back when the permits are dropped"]
pub struct PermitIterator<'a, T> {
    chan: &'a Chan<T>,
    count: usize,
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.count = self.count.checked_sub(1)?;
        Some(Permit { chan: self.chan })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> std::iter::FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.chan.take_back(self.count);
        }
    }
}

/// Room for one message, with a sender of its own. Given back when this is dropped.
#[must_use = "reserved room is given back when the permit is dropped"]
pub struct OwnedPermit<T> {
    /// Present until the permit is used.
    sender: Option<Sender<T>>,
}

impl<T> OwnedPermit<T> {
    /// Sends the message, and returns the sender. If the receiver is gone the message is dropped.
    ///
    /// # Panics
    ///
    /// Never panics: a permit is used once.
    pub fn send(mut self, message: T) -> Sender<T> {
        let sender = self.sender.take().expect("a permit is used once");
        sender.chan.send_permitted(message);
        sender
    }

    /// Gives the room back, and returns the sender.
    ///
    /// # Panics
    ///
    /// Never panics: a permit is used once.
    pub fn release(mut self) -> Sender<T> {
        let sender = self.sender.take().expect("a permit is used once");
        sender.chan.take_back(1);
        sender
    }

    /// Returns `true` if both permits are of one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        matches!((&self.sender, &other.sender), (Some(own), Some(other)) if own.same_channel(other))
    }

    /// Returns `true` if the permit is of the channel of `sender`.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender.as_ref().is_some_and(|own| own.same_channel(sender))
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.chan.take_back(1);
        }
    }
}
