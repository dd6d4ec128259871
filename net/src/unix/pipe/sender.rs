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
use crate::source::{Rule, Source, Wait};

/// The writing end of a pipe.
///
/// Writing to a pipe without a reader gives the error `BrokenPipe`, and the signal `SIGPIPE`, which Rust programs
/// ignore unless told otherwise.
///
/// # Examples
///
/// See [`pipe`](super::pipe()).
pub struct Sender(pub(super) Source<File>);

end!(Sender, Stream, check_sender);

impl Sender {
    /// Writes from the front of `buf` what there is room for; returns how much that is.
    ///
    /// Up to 4096 bytes (`PIPE_BUF` in pipe(7)) go as a whole, not mixed with what others write to the same pipe.
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
    /// Those of write(2): `BrokenPipe` if nobody has the other end open. Also if it has to wait and the runtime has
    /// shut down.
    ///
    /// # Panics
    ///
    /// If it has to wait outside a mini runtime, unless the pipe has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has written no byte.
    #[track_caller]
    pub fn write<'a>(&'a self, buf: &'a [u8]) -> future::Write<'a, File> {
        future::Write::of(Op::new(self.source(), site!(write, Write), Send(buf)))
    }

    /// As [`write`](Sender::write), from several buffers in order. No more than 1024 of them are used.
    ///
    /// # Examples
    ///
    /// As with [`UnixStream::write_vectored`](crate::UnixStream::write_vectored).
    ///
    /// # Errors
    ///
    /// As [`write`](Sender::write).
    ///
    /// # Panics
    ///
    /// As [`write`](Sender::write).
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
    /// `WriteZero` if the kernel takes nothing; otherwise as [`write`](Sender::write). After an error, the number of
    /// bytes written is unknown.
    ///
    /// # Panics
    ///
    /// As [`write`](Sender::write).
    ///
    /// # Cancel safety
    ///
    /// Loses the number of bytes written: a part of `buf` may be on its way.
    #[track_caller]
    pub fn write_all<'a>(&'a self, buf: &'a [u8]) -> WriteAll<'a, File> {
        WriteAll::new(self.source(), site!(write_all, Write), buf)
    }

    /// Writes once, without waiting; `WouldBlock` if there is no room.
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
    /// Those of write(2).
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.source().try_call(Send(buf))
    }

    /// As [`try_write`](Sender::try_write), from several buffers.
    ///
    /// # Examples
    ///
    /// As with [`UnixStream::try_write_vectored`](crate::UnixStream::try_write_vectored).
    ///
    /// # Errors
    ///
    /// Those of writev(2).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source().try_call(SendVectored(bufs))
    }

    /// Waits until a write will probably not block: there is room, or nobody reads. Otherwise as
    /// [`ready`](Sender::ready).
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
    /// As [`ready`](Sender::ready).
    ///
    /// # Panics
    ///
    /// As [`ready`](Sender::ready).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn writable(&self) -> future::Writable<'_, File> {
        future::Writable::of(Readiness::new(self.source(), site!(writable, Ready), Interest::WRITABLE))
    }

    /// As [`writable`](Sender::writable), as a function to poll.
    ///
    /// Of the tasks that wait by this method and by those of the I/O traits, only the one that has polled last is
    /// woken.
    ///
    /// # Examples
    ///
    /// As with [`UnixStream::poll_write_ready`](crate::UnixStream::poll_write_ready).
    ///
    /// # Errors
    ///
    /// As [`ready`](Sender::ready).
    ///
    /// # Panics
    ///
    /// As [`ready`](Sender::ready).
    #[track_caller]
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wait = Wait::here(site!(poll_write_ready, Ready));
        self.source().poll_ready(cx, &wait, Interest::WRITABLE, None).map_ok(drop)
    }
}
