//! `AsyncFd`: any file descriptor that can be polled, with the readiness logic of the sockets.
//!
//! For descriptors that this crate has no type for: an eventfd, a pipe, a device, the socket of a library. An
//! `AsyncFd` is a `Source`, as sockets are; only the operations are the user's.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use crate::call::CustomOn;
use crate::future;
use crate::leaf::Op;
use crate::ready::Interest;
use crate::source::{CallSite, Left, Rule, Site, Source, poll_error};
use crate::sys;
use mini_context::IoKind;

mod guard;

pub use guard::{AsyncFdReadyGuard, FdReady, TryIoError};

/// A file descriptor that tasks can wait for.
///
/// The descriptor has to be non-blocking (`O_NONBLOCK` in fcntl(2)), and must not change while the `AsyncFd` has it.
/// Dropping the `AsyncFd`, or taking it apart, removes the descriptor from the runtime.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use mini::io::{AsyncFd, Interest};
///
/// let (mut a, b) = UnixStream::pair()?;
/// b.set_nonblocking(true)?;
/// let b = AsyncFd::new(b)?;
/// a.write_all(b"ping")?;
/// let mut buf = [0; 16];
/// let received = b.async_io(Interest::READABLE, |mut b| b.read(&mut buf)).await?;
/// assert_eq!(&buf[..received], b"ping");
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub struct AsyncFd<T: AsFd> {
    source: Source<T>,
    interest: Interest,
}

/// The `Site` of a method: `site!(readable)` is `AsyncFd::readable`.
macro_rules! site {
    ($method:ident) => {
        const { &Site { owner: "AsyncFd", method: stringify!($method), kind: IoKind::Ready } }
    };
}

impl<T: AsFd> AsyncFd<T> {
    /// Takes over `io`, to wait until it can be read or written.
    ///
    /// Inside a runtime, `io` is registered at once; elsewhere, when it first has to wait. It belongs to that runtime:
    /// any thread may wait for it, until the runtime shuts down. From then on waits fail.
    ///
    /// # Examples
    ///
    /// See [`AsyncFd`].
    ///
    /// # Errors
    ///
    /// Returns the errors of epoll_ctl(2): `PermissionDenied` (`EPERM`) for an fd that can't be polled, such as a
    /// file's. `AlreadyExists` if the fd is registered with the same runtime already.
    #[track_caller]
    pub fn new(io: T) -> io::Result<AsyncFd<T>> {
        AsyncFd::register(io, Interest::READABLE | Interest::WRITABLE, "new")
    }

    /// Takes over `io` like [`new`](AsyncFd::new), to wait for `interest` only: a wait for anything else is an error.
    ///
    /// [`Interest::ERROR`] need not be named: the system reports errors of every fd. The system is always asked
    /// for every kind of readiness. A driver that acts on such a request does so here too: that of a camera,
    /// for example, which starts when it is asked for input.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::io::{AsyncFd, Interest};
    ///
    /// let (_writer, reader) = std::os::unix::net::UnixStream::pair()?;
    /// let reader = AsyncFd::with_interest(reader, Interest::READABLE)?;
    /// assert!(reader.writable().await.is_err());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`new`](AsyncFd::new).
    #[track_caller]
    pub fn with_interest(io: T, interest: Interest) -> io::Result<AsyncFd<T>> {
        AsyncFd::register(io, interest, "with_interest")
    }

    #[track_caller]
    fn register(io: T, interest: Interest, method: &str) -> io::Result<AsyncFd<T>> {
        let text = "a simulated socket has no descriptor of the system";
        sys::refuse_simulated(io.as_fd(), ("AsyncFd", method), text)?;
        let source = Source::new(io, Rule::Foreign);
        source.register_early()?;
        Ok(AsyncFd { source, interest })
    }

    /// Returns a reference to the inner object.
    ///
    /// # Examples
    ///
    /// ```
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// let fd = mini::io::AsyncFd::new(a)?;
    /// fd.get_ref().set_nonblocking(true)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn get_ref(&self) -> &T {
        self.source.io()
    }

    /// Returns a mutable reference to the inner object. Do not close its fd or replace it with another.
    ///
    /// The runtime watches the fd that the `AsyncFd` had when it joined. If you close that fd here
    /// (`*fd.get_mut() = other` does so), waits on this `AsyncFd` may never end: the runtime does not watch the new fd.
    /// Other objects are not affected: a file that gets the number of the closed fd can be waited for, even after this
    /// `AsyncFd` is dropped. To wait for another fd, make another `AsyncFd`.
    ///
    /// If the closed fd has duplicates (dup(2)), Linux watches it as long as they are open, and refuses a duplicate
    /// that gets the closed number again (`AlreadyExists`).
    ///
    /// # Examples
    ///
    /// See [`get_ref`](AsyncFd::get_ref).
    pub fn get_mut(&mut self) -> &mut T {
        self.source.io_mut()
    }

    /// Leaves the runtime, and returns the inner object.
    ///
    /// # Examples
    ///
    /// ```
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// let a = mini::io::AsyncFd::new(a)?.into_inner();
    /// # drop(a);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_inner(self) -> T {
        self.source.into_io()
    }

    /// Waits until the descriptor can be read, and returns a guard to read with.
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
    /// let mut buf = [0; 16];
    /// let received = loop {
    ///     let mut guard = fd.readable().await?;
    ///     // On `WouldBlock` this takes the readiness back, and the next turn of the loop waits.
    ///     if let Ok(result) = guard.try_io(|fd| fd.get_ref().read(&mut buf)) {
    ///         break result?;
    ///     }
    /// };
    /// assert_eq!(received, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](AsyncFd::new) if the descriptor is registered only now. Fails if the runtime has
    /// shut down, or if reading is not part of the interest.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime, unless it has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn readable(&self) -> FdReady<'_, T> {
        FdReady::new(self, CallSite::here(site!(readable)), Interest::READABLE)
    }

    /// Waits until the descriptor can be written to, and returns a guard to write with.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # use std::io::Write;
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// # a.set_nonblocking(true)?;
    /// let fd = mini::io::AsyncFd::new(a)?;
    /// let mut guard = fd.writable().await?;
    /// assert!(guard.try_io(|fd| fd.get_ref().write(b"ping")).is_ok());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`readable`](AsyncFd::readable).
    ///
    /// # Panics
    ///
    /// Same as [`readable`](AsyncFd::readable).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn writable(&self) -> FdReady<'_, T> {
        FdReady::new(self, CallSite::here(site!(writable)), Interest::WRITABLE)
    }

    /// Waits until any part of `interest` is ready, and returns a guard.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::io::{AsyncFd, Interest};
    ///
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// let fd = AsyncFd::new(a)?;
    /// let guard = fd.ready(Interest::READABLE | Interest::WRITABLE).await?;
    /// assert!(guard.ready().is_writable());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`readable`](AsyncFd::readable).
    ///
    /// # Panics
    ///
    /// Same as [`readable`](AsyncFd::readable).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn ready(&self, interest: Interest) -> FdReady<'_, T> {
        FdReady::new(self, CallSite::here(site!(ready)), interest)
    }

    /// Polls for readiness to read: the `poll` form of [`readable`](AsyncFd::readable).
    ///
    /// Only the last task to poll this method is woken; [`readable`](AsyncFd::readable) serves any number of tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # use std::io::Write;
    /// # let (mut a, b) = std::os::unix::net::UnixStream::pair()?;
    /// # a.write_all(b"ping")?;
    /// let fd = mini::io::AsyncFd::new(b)?;
    /// let guard = std::future::poll_fn(|cx| fd.poll_read_ready(cx)).await?;
    /// assert!(guard.ready().is_readable());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`readable`](AsyncFd::readable).
    ///
    /// # Panics
    ///
    /// Same as [`readable`](AsyncFd::readable).
    #[track_caller]
    pub fn poll_read_ready<'a>(&'a self, cx: &mut Context<'_>) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        self.poll_ready_for(cx, &CallSite::here(site!(poll_read_ready)), Interest::READABLE)
    }

    /// Polls for readiness to write: the `poll` form of [`writable`](AsyncFd::writable).
    ///
    /// Only the last task to poll this method is woken.
    ///
    /// # Examples
    ///
    /// See [`poll_read_ready`](AsyncFd::poll_read_ready).
    ///
    /// # Errors
    ///
    /// Same as [`readable`](AsyncFd::readable).
    ///
    /// # Panics
    ///
    /// Same as [`readable`](AsyncFd::readable).
    #[track_caller]
    pub fn poll_write_ready<'a>(&'a self, cx: &mut Context<'_>) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        self.poll_ready_for(cx, &CallSite::here(site!(poll_write_ready)), Interest::WRITABLE)
    }

    /// Runs `f` until it returns something other than `WouldBlock`, waiting for `interest` in between.
    ///
    /// `f` may return `WouldBlock` only if the fd did.
    ///
    /// # Examples
    ///
    /// See [`AsyncFd`].
    ///
    /// With both directions in `interest`, a `WouldBlock` of `f` clears the readiness of both, even if another task is
    /// waiting for one of them: that task then waits for the next event. So name both only if no other task reads or
    /// writes.
    ///
    /// # Errors
    ///
    /// Returns the errors of `f` and of [`readable`](AsyncFd::readable).
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless it has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: before the future is ready, `f` has done nothing but report `WouldBlock`.
    #[track_caller]
    pub fn async_io<R, F>(&self, interest: Interest, f: F) -> future::AsyncFdIo<'_, F, T>
    where
        F: FnMut(&T) -> io::Result<R>,
    {
        self.async_io_for(CallSite::here(site!(async_io)), interest, f)
    }

    /// Runs `f` once. A `WouldBlock` clears the readiness of every direction in `interest`, even if another task is
    /// waiting for one: that task then waits for the next event.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::io::{ErrorKind, Read};
    /// # let (a, _b) = std::os::unix::net::UnixStream::pair()?;
    /// # a.set_nonblocking(true)?;
    /// use mini::io::{AsyncFd, Interest};
    ///
    /// let fd = AsyncFd::new(a)?;
    /// let result = fd.try_io(Interest::READABLE, |mut a| a.read(&mut [0; 16]));
    /// assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `f`. Fails if the `AsyncFd` was not made for `interest`.
    pub fn try_io<R>(&self, interest: Interest, f: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
        check_interest(self.interest, interest)?;
        self.source.try_op(interest, |source| Ok((f(source.io())?, Left::Perhaps)))
    }

    /// Waits like [`ready`](AsyncFd::ready), but messages name the call of `wait`.
    #[doc(hidden)]
    pub fn ready_for(&self, call_site: CallSite, interest: Interest) -> FdReady<'_, T> {
        FdReady::new(self, call_site, interest)
    }

    /// Runs `f` like [`async_io`](AsyncFd::async_io), but messages name the call of `wait`.
    #[doc(hidden)]
    pub fn async_io_for<R, F>(&self, call_site: CallSite, interest: Interest, f: F) -> future::AsyncFdIo<'_, F, T>
    where
        F: FnMut(&T) -> io::Result<R>,
    {
        let allowed = self.interest;
        future::AsyncFdIo(Op::of(&self.source, call_site, CustomOn { interest, allowed, f }))
    }

    /// Polls like [`poll_read_ready`](AsyncFd::poll_read_ready) and its kin, but messages name the call of `wait`.
    #[doc(hidden)]
    pub fn poll_ready_for<'a>(
        &'a self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        interest: Interest,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        if let Err(e) = check_interest(self.interest, interest) {
            return poll_error(cx, self.source.leaf(interest), e);
        }
        let seen = ready!(self.source.poll_ready(cx, call_site, interest, None))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, seen, interest)))
    }
}

/// An error for a wait that the `AsyncFd` was not made for: it might never end.
pub(crate) fn check_interest(allowed: Interest, wanted: Interest) -> io::Result<()> {
    // epoll_ctl(2): EPOLLERR is reported whatever was asked for; kqueue(2) tells of errors with both filters.
    if allowed.add(Interest::ERROR).covers(wanted) {
        return Ok(());
    }
    let text = format!("this AsyncFd was made to wait for {allowed:?}, not for {wanted:?}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl<T: AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.io().as_fd()
    }
}

impl<T: AsFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd")
            .field("inner", self.get_ref())
            .field("interest", &self.interest)
            .finish_non_exhaustive()
    }
}
