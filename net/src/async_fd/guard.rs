//! `AsyncFdReadyGuard`: the readiness of an `AsyncFd`, which the user keeps or takes back.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{AsyncFd, check_interest};
use crate::leaf::Readiness;
use crate::ready::{Interest, Ready};
use crate::slot::Seen;
use crate::source::{CallSite, poll_error};

/// Proof that an [`AsyncFd`] was ready a moment ago.
///
/// The readiness remains until it is cleared: by [`try_io`](AsyncFdReadyGuard::try_io) when the operation reports
/// `WouldBlock`, or by [`clear_ready`](AsyncFdReadyGuard::clear_ready). Otherwise the next wait ends at once.
///
/// # Examples
///
/// See [`AsyncFd::readable`].
#[must_use = "clear the readiness after `WouldBlock`, or the next wait ends at once"]
pub struct AsyncFdReadyGuard<'a, T: AsFd> {
    fd: &'a AsyncFd<T>,
    seen: Seen,
    /// The part of `interest` that was ready, without what has been taken back since.
    ready: Ready,
    interest: Interest,
}

/// Future of [`readable`](AsyncFd::readable), `writable` and `ready` of an [`AsyncFd`]: resolves to
/// `io::Result<AsyncFdReadyGuard<T>>`.
#[must_use = "futures do nothing unless awaited"]
pub struct FdReady<'a, T: AsFd> {
    fd: &'a AsyncFd<T>,
    readiness: Readiness<'a, Seen, T>,
}

/// The error of an operation that would have blocked. The readiness was cleared; wait again.
///
/// # Examples
///
/// See [`AsyncFdReadyGuard::try_io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryIoError(());

impl<'a, T: AsFd> AsyncFdReadyGuard<'a, T> {
    pub(super) fn new(fd: &'a AsyncFd<T>, seen: Seen, interest: Interest) -> AsyncFdReadyGuard<'a, T> {
        AsyncFdReadyGuard { fd, seen, ready: (seen.ready() & interest.mask()).shown(), interest }
    }

    /// Returns the awaited readiness that is present, without what this guard has cleared.
    ///
    /// # Examples
    ///
    /// See [`AsyncFd::ready`].
    pub fn ready(&self) -> Ready {
        self.ready
    }

    /// Runs `f` once. If it returns `WouldBlock`, the readiness is cleared.
    ///
    /// # Examples
    ///
    /// See [`AsyncFd::readable`].
    ///
    /// # Errors
    ///
    /// Returns [`TryIoError`] in place of `WouldBlock`. Other errors of `f` are in the inner result.
    pub fn try_io<R>(&mut self, f: impl FnOnce(&'a AsyncFd<T>) -> io::Result<R>) -> Result<io::Result<R>, TryIoError> {
        match f(self.fd) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.fd.source.clear_interest(self.seen, self.interest);
                self.ready = Ready::EMPTY;
                Err(TryIoError(()))
            }
            result => Ok(result),
        }
    }

    /// Clears all readiness that was waited for, because it has been used up.
    ///
    /// If the fd has become ready again since the guard was made, the next wait still ends at once. The same is true of
    /// a closed side: only this guard forgets it.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # use std::io::{Read, Write};
    /// # let (mut a, b) = std::os::unix::net::UnixStream::pair()?;
    /// # b.set_nonblocking(true)?;
    /// # a.write_all(b"ping")?;
    /// let fd = mini::io::AsyncFd::new(b)?;
    /// let mut guard = fd.readable().await?;
    /// let mut buf = [0; 16];
    /// assert_eq!(guard.get_inner().read(&mut buf)?, 4);
    /// // A short read: there is no more.
    /// guard.clear_ready();
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn clear_ready(&mut self) {
        self.clear_ready_matching(Ready::ALL);
    }

    /// Clears only the readiness in `ready`; see [`clear_ready`](AsyncFdReadyGuard::clear_ready).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::io::{AsyncFd, Interest, Ready};
    ///
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// let fd = AsyncFd::new(a)?;
    /// let mut guard = fd.ready(Interest::READABLE | Interest::WRITABLE).await?;
    /// guard.clear_ready_matching(Ready::READABLE);
    /// // It is writable still.
    /// assert!(guard.ready().is_writable() && !guard.ready().is_readable());
    /// let guard = fd.writable().await?;
    /// # drop(guard);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn clear_ready_matching(&mut self, ready: Ready) {
        self.fd.source.clear(self.seen, self.interest.open() & ready);
        self.ready = self.ready.without(ready);
    }

    /// Does nothing, so the next wait ends at once. The call makes that visible in the code.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// let fd = mini::io::AsyncFd::new(a)?;
    /// fd.writable().await?.retain_ready();
    /// fd.writable().await?.retain_ready();
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn retain_ready(&mut self) {}

    /// Returns the `AsyncFd`.
    ///
    /// # Examples
    ///
    /// See [`get_inner`](AsyncFdReadyGuard::get_inner).
    pub fn get_ref(&self) -> &'a AsyncFd<T> {
        self.fd
    }

    /// Returns the inner object of the `AsyncFd`.
    ///
    /// # Examples
    ///
    /// See [`clear_ready`](AsyncFdReadyGuard::clear_ready).
    pub fn get_inner(&self) -> &'a T {
        self.fd.get_ref()
    }
}

impl<'a, T: AsFd> FdReady<'a, T> {
    pub(super) fn new(fd: &'a AsyncFd<T>, call_site: CallSite, interest: Interest) -> FdReady<'a, T> {
        FdReady { fd, readiness: Readiness::of(&fd.source, call_site, interest) }
    }

    /// Panics with a message that names the call, if this thread runs no mini runtime and the fd has not joined one.
    #[doc(hidden)]
    pub fn need_runtime(&self) {
        self.readiness.need_runtime();
    }
}

impl<'a, T: AsFd> Future for FdReady<'a, T> {
    type Output = io::Result<AsyncFdReadyGuard<'a, T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let FdReady { fd, readiness } = self.get_mut();
        let interest = readiness.interest;
        if let Err(e) = check_interest(fd.interest, interest) {
            return poll_error(cx, readiness, e);
        }
        let seen = ready!(readiness.poll_seen(cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(fd, seen, interest)))
    }
}

impl Error for TryIoError {}

impl fmt::Display for TryIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation would have blocked")
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for AsyncFdReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFdReadyGuard").field("fd", self.fd).field("ready", &self.ready()).finish()
    }
}

impl<T: AsFd> fmt::Debug for FdReady<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.readiness.show("FdReady", f)
    }
}
