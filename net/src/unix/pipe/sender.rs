//! The writing end of a pipe.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use super::{check_sender, end, set_blocking, set_nonblocking};
use crate::call::{Send, SendVectored};
use crate::future;
use crate::leaf::{Op, Readiness, WriteAll};
use crate::ready::Interest;
use crate::socket::site;
use crate::source::{CallSite, Rule, Source};

/// The writing end of a pipe.
///
/// Writing to a pipe without a reader returns the error `BrokenPipe` and raises the signal `SIGPIPE`, which Rust
/// programs ignore by default.
///
/// # Examples
///
/// See [`pipe`](super::pipe()).
pub struct Sender(pub(super) Source<File>);

end!(Sender, Stream, check_sender);

impl Sender {
    /// Writes as much of the front of `buf` as there is room for. Returns the number of bytes.
    ///
    /// Up to 4096 bytes (`PIPE_BUF` in pipe(7)) are written as a whole, not mixed with the writes of others to the same
    /// pipe.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, _receiver) = mini::net::unix::pipe::pipe()?;
    /// assert_eq!(sender.write(b"ping").await?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of write(2): `BrokenPipe` if no process has the other end open. Fails if it has to wait and
    /// the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless the pipe has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has written no byte.
    #[track_caller]
    pub fn write<'a>(&'a self, buf: &'a [u8]) -> future::Write<'a, File> {
        future::Write::of(Op::new(self.source(), site!(write, Write), Send(buf)))
    }

    /// Writes like [`write`](Sender::write) from several buffers, in order. At most 1024 of them are used.
    ///
    /// # Examples
    ///
    /// See [`UnixStream::write_vectored`](crate::UnixStream::write_vectored).
    ///
    /// # Errors
    ///
    /// Same as [`write`](Sender::write).
    ///
    /// # Panics
    ///
    /// Same as [`write`](Sender::write).
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has written no byte.
    #[track_caller]
    pub fn write_vectored<'a, 'b>(&'a self, bufs: &'a [IoSlice<'b>]) -> future::WriteVectored<'a, 'b, File> {
        future::WriteVectored::of(Op::new(self.source(), site!(write_vectored, Write), SendVectored(bufs)))
    }

    /// Writes all of `buf`.
    ///
    /// # Examples
    ///
    /// See [`pipe`](super::pipe()).
    ///
    /// # Errors
    ///
    /// Returns `WriteZero` if the kernel takes nothing, and otherwise the errors of [`write`](Sender::write). After an
    /// error, the number of bytes written is unknown.
    ///
    /// # Panics
    ///
    /// Same as [`write`](Sender::write).
    ///
    /// # Cancel safety
    ///
    /// Loses the number of bytes written: a part of `buf` may be on its way.
    #[track_caller]
    pub fn write_all<'a>(&'a self, buf: &'a [u8]) -> WriteAll<'a, File> {
        WriteAll::new(self.source(), site!(write_all, Write), buf)
    }

    /// Writes once, without waiting. Returns `WouldBlock` if there is no room.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, _receiver) = mini::net::unix::pipe::pipe()?;
    /// assert_eq!(sender.try_write(b"ping")?, 4);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of write(2).
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.source().try_call(Send(buf))
    }

    /// Writes like [`try_write`](Sender::try_write) from several buffers.
    ///
    /// # Examples
    ///
    /// See [`UnixStream::try_write_vectored`](crate::UnixStream::try_write_vectored).
    ///
    /// # Errors
    ///
    /// Returns the errors of writev(2).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source().try_call(SendVectored(bufs))
    }

    /// Waits until a write will probably not block: there is room, or no reader. See also [`ready`](Sender::ready).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, _receiver) = mini::net::unix::pipe::pipe()?;
    /// sender.writable().await?;
    /// assert_eq!(sender.try_write(b"ping")?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`ready`](Sender::ready).
    ///
    /// # Panics
    ///
    /// Same as [`ready`](Sender::ready).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn writable(&self) -> future::Writable<'_, File> {
        future::Writable::of(Readiness::new(self.source(), site!(writable, Ready), Interest::WRITABLE))
    }

    /// Polls for readiness to write: the `poll` form of [`writable`](Sender::writable).
    ///
    /// This method and those of the I/O traits share one place for a task: only the last one to poll is woken.
    ///
    /// # Examples
    ///
    /// See [`UnixStream::poll_write_ready`](crate::UnixStream::poll_write_ready).
    ///
    /// # Errors
    ///
    /// Same as [`ready`](Sender::ready).
    ///
    /// # Panics
    ///
    /// Same as [`ready`](Sender::ready).
    #[track_caller]
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let call_site = CallSite::here(site!(poll_write_ready, Ready));
        self.source().poll_ready(cx, &call_site, Interest::WRITABLE, None).map_ok(drop)
    }
}
