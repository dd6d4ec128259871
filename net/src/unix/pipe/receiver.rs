//! The reading end of a pipe.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use super::{check_receiver, end, set_blocking, set_nonblocking};
use crate::call::{Recv, RecvVectored};
use crate::future;
use crate::leaf::{Op, ReadExact, ReadToEnd, Readiness};
use crate::ready::Interest;
use crate::socket::site;
use crate::source::{CallSite, Rule, Source};

/// The reading end of a pipe.
///
/// # Examples
///
/// See [`pipe`](super::pipe()).
pub struct Receiver(pub(super) Source<File>);

end!(Receiver, Fifo, check_receiver);

impl Receiver {
    /// Reads what has arrived into the front of `buf`.
    ///
    /// Returns the number of bytes, `0..=buf.len()`. If `buf` is not empty, 0 is the end: no process has the other end
    /// open for writing. A FIFO may get another writer later, so it can be read again. Before the first writer opens
    /// the FIFO, the read waits.
    ///
    /// # Examples
    ///
    /// See [`pipe`](super::pipe()).
    ///
    /// # Errors
    ///
    /// Returns the errors of read(2); `WouldBlock` and `Interrupted` are handled and never returned. Fails if it has to
    /// wait and the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless the pipe has already joined one. An end that was not
    /// made by [`pipe`](super::pipe()) waits first.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has taken no byte.
    #[track_caller]
    pub fn read<'a>(&'a self, buf: &'a mut [u8]) -> future::Read<'a, File> {
        future::Read::of(Op::new(self.source(), site!(read, Read), Recv(buf)))
    }

    /// Reads like [`read`](Receiver::read) into several buffers, filling each before the next. At most 1024 of them are
    /// used.
    ///
    /// # Examples
    ///
    /// See [`UnixStream::read_vectored`](crate::UnixStream::read_vectored).
    ///
    /// # Errors
    ///
    /// Same as [`read`](Receiver::read).
    ///
    /// # Panics
    ///
    /// Same as [`read`](Receiver::read).
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has taken no byte.
    #[track_caller]
    pub fn read_vectored<'a, 'b>(&'a self, bufs: &'a mut [IoSliceMut<'b>]) -> future::ReadVectored<'a, 'b, File> {
        future::ReadVectored::of(Op::new(self.source(), site!(read_vectored, Read), RecvVectored(bufs)))
    }

    /// Reads until `buf` is full.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, receiver) = mini::net::unix::pipe::pipe()?;
    /// sender.write_all(b"ping").await?;
    /// sender.write_all(b"pong").await?;
    /// let mut buf = [0; 8];
    /// receiver.read_exact(&mut buf).await?;
    /// assert_eq!(&buf, b"pingpong");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns `UnexpectedEof` if the end comes first, and otherwise the errors of [`read`](Receiver::read). After an
    /// error, the number of bytes read is unknown.
    ///
    /// # Panics
    ///
    /// Same as [`read`](Receiver::read).
    ///
    /// # Cancel safety
    ///
    /// Loses the number of bytes read: they are in the front of `buf`, and no longer in the pipe.
    #[track_caller]
    pub fn read_exact<'a>(&'a self, buf: &'a mut [u8]) -> ReadExact<'a, File> {
        ReadExact::new(self.source(), site!(read_exact, Read), buf)
    }

    /// Reads to the end of the stream, and appends what it reads to `buf`.
    ///
    /// Returns the number of bytes read. There is no limit: a peer that never stops sending fills the memory. Unlike
    /// the method of the same name in `AsyncReadExt` of futures-io, it does not zero the room that it reads into.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (a, b) = mini::net::unix::pipe::pipe()?;
    /// a.write_all(b"ping").await?;
    /// drop(a);
    /// let mut buf = b"read: ".to_vec();
    /// assert_eq!(b.read_to_end(&mut buf).await?, 4);
    /// assert_eq!(buf, b"read: ping");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Receiver::read). The bytes that were read before are in `buf`.
    ///
    /// # Panics
    ///
    /// Same as [`read`](Receiver::read).
    ///
    /// # Cancel safety
    ///
    /// Safe: the bytes that were read are in `buf`.
    #[track_caller]
    pub fn read_to_end<'a>(&'a self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, File> {
        ReadToEnd::new(self.source(), site!(read_to_end, Read), buf)
    }

    // For calls that read as a part of their work.
    #[doc(hidden)]
    pub fn read_to_end_for<'a>(&'a self, call_site: CallSite, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, File> {
        ReadToEnd::of(self.source(), call_site, buf)
    }

    /// Reads once, without waiting. Returns `WouldBlock` if nothing has arrived. 0 may also mean that no writer has
    /// come yet.
    ///
    /// # Examples
    ///
    /// ```
    /// let (_sender, receiver) = mini::net::unix::pipe::pipe()?;
    /// let error = receiver.try_read(&mut [0; 4]).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of read(2).
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.source().try_call(Recv(buf))
    }

    /// Reads like [`try_read`](Receiver::try_read) into several buffers.
    ///
    /// # Examples
    ///
    /// See [`UnixStream::try_read_vectored`](crate::UnixStream::try_read_vectored).
    ///
    /// # Errors
    ///
    /// Returns the errors of readv(2).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source().try_call(RecvVectored(bufs))
    }

    /// Waits until a read will probably not block: it would return data or the end. See also
    /// [`ready`](Receiver::ready).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (sender, receiver) = mini::net::unix::pipe::pipe()?;
    /// sender.write_all(b"ping").await?;
    /// receiver.readable().await?;
    /// assert_eq!(receiver.try_read(&mut [0; 16])?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`ready`](Receiver::ready).
    ///
    /// # Panics
    ///
    /// Same as [`ready`](Receiver::ready).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn readable(&self) -> future::Readable<'_, File> {
        future::Readable::of(Readiness::new(self.source(), site!(readable, Ready), Interest::READABLE))
    }

    /// Polls for readiness to read: the `poll` form of [`readable`](Receiver::readable).
    ///
    /// This method and those of the I/O traits share one place for a task: only the last one to poll is woken.
    ///
    /// # Examples
    ///
    /// See [`UnixStream::poll_read_ready`](crate::UnixStream::poll_read_ready).
    ///
    /// # Errors
    ///
    /// Same as [`ready`](Receiver::ready).
    ///
    /// # Panics
    ///
    /// Same as [`ready`](Receiver::ready).
    #[track_caller]
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let call_site = CallSite::here(site!(poll_read_ready, Ready));
        self.source().poll_ready(cx, &call_site, Interest::READABLE, None).map_ok(drop)
    }
}
