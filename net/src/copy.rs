//! Copying from a reader to a writer, and both ways between two streams.
//!
//! Called by users. A `flow` copies one direction: through `buffer`, or through `pipe` if `ends` finds a socket at both
//! ends. This file has the two futures.
//!
//! # Rejected
//!
//! - `async fn`: the future would have no name, and could not report where it was made.
//! - Filling the buffer while a write waits: the socket that is read has its own buffer for that, and the peer learns
//!   sooner that its data is not taken.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};

use mini_context::{IoKind, Notes, notes, swap_notes, take_notes};

use crate::source::{CallSite, Site};

mod buffer;
mod ends;
mod flow;
mod pipe;

use flow::{Flow, Last};

/// Copies from `a` to `b` and from `b` to `a` until both have ended; returns the number of bytes each way, in this
/// order.
///
/// When one of them ends, all that came from it is written, and then the other is closed for writing (`poll_close`,
/// which shuts down the writing side of a socket). So the peer there sees the end and can still answer. The other
/// direction continues.
///
/// On Linux, large amounts of data between two sockets of this crate ([`TcpStream`](crate::TcpStream) or
/// [`UnixStream`](crate::UnixStream), by value, by reference or in halves) stay in the kernel (splice(2)). Small
/// messages, and all other ends, use a buffer of 8 to 64 KiB for each direction.
///
/// A copy that always finds data lets other tasks run after 16 system calls; each 16 KiB count as one more call.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use std::net::Shutdown;
/// use mini::io::copy_bidirectional;
/// use mini::net::UnixStream;
///
/// let (client, mut front) = UnixStream::pair()?;
/// let (mut back, server) = UnixStream::pair()?;
/// client.write_all(b"question").await?;
/// client.shutdown(Shutdown::Write)?;
/// server.write_all(b"answer").await?;
/// server.shutdown(Shutdown::Write)?;
///
/// assert_eq!(copy_bidirectional(&mut front, &mut back).await?, (8, 6));
///
/// let mut buf = [0; 6];
/// client.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"answer");
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the first error of either direction; it ends both. Returns `WriteZero` if an end takes no more data.
///
/// # Panics
///
/// Panics if a method of an end panics. The methods of a socket do if they have to wait outside a mini runtime.
///
/// # Cancel safety
///
/// Loses the data that was read but not yet written, at most half a megabyte each way. The ends are not closed.
/// [`copied`](CopyBidirectional::copied) returns the number of bytes copied so far.
#[track_caller]
pub fn copy_bidirectional<'a, A, B>(a: &'a mut A, b: &'a mut B) -> CopyBidirectional<'a, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    const SITES: [Site; 2] = sites("copy_bidirectional");
    let call_sites = call_sites(const { &SITES });
    CopyBidirectional { a, b, there: Flow::new(call_sites, Last::Close), back: Flow::new(call_sites, Last::Close) }
}

/// Copies from `reader` to `writer` until `reader` has ended, and flushes; returns the number of bytes.
///
/// `writer` is not closed. See [`copy_bidirectional`] for how the bytes move.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use mini::io::copy;
/// use mini::net::UnixStream;
///
/// let (client, mut server) = UnixStream::pair()?;
/// client.write_all(b"hello").await?;
/// drop(client);
/// let (mut log, reader) = UnixStream::pair()?;
/// assert_eq!(copy(&mut server, &mut log).await?, 5);
///
/// let mut buf = [0; 5];
/// reader.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"hello");
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of `reader` and `writer`, and `WriteZero` if the writer takes no more data.
///
/// # Panics
///
/// Same as [`copy_bidirectional`].
///
/// # Cancel safety
///
/// Loses the data that was read but not yet written, at most half a megabyte. [`copied`](Copy::copied) returns the
/// number of bytes copied so far.
#[track_caller]
pub fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> Copy<'a, R, W>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    const SITES: [Site; 2] = sites("copy");
    Copy { reader, writer, flow: Flow::new(call_sites(const { &SITES }), Last::Flush) }
}

/// Future of [`copy_bidirectional`]: resolves to `io::Result<(u64, u64)>`, the bytes from `a` to `b` and back.
#[must_use = "futures do nothing unless awaited"]
pub struct CopyBidirectional<'a, A: ?Sized, B: ?Sized> {
    a: &'a mut A,
    b: &'a mut B,
    there: Flow,
    back: Flow,
}

/// Future of [`copy`]: resolves to `io::Result<u64>`, the number of bytes copied.
#[must_use = "futures do nothing unless awaited"]
pub struct Copy<'a, R: ?Sized, W: ?Sized> {
    reader: &'a mut R,
    writer: &'a mut W,
    flow: Flow,
}

impl<A: ?Sized, B: ?Sized> CopyBidirectional<'_, A, B> {
    /// Returns the number of bytes written each way so far, first from `a` to `b`.
    ///
    /// # Examples
    ///
    /// A proxy that ends a connection on which nothing has moved for `limit` (up to twice as long):
    ///
    /// ```
    /// use std::{io, time::Duration};
    /// use mini::{io::copy_bidirectional, net::TcpStream, time::timeout};
    ///
    /// async fn relay(mut a: TcpStream, mut b: TcpStream, limit: Duration) -> io::Result<(u64, u64)> {
    ///     let mut copy = copy_bidirectional(&mut a, &mut b);
    ///     let mut before = copy.copied();
    ///     loop {
    ///         match timeout(limit, &mut copy).await {
    ///             Ok(copied) => return copied,
    ///             Err(elapsed) if copy.copied() == before => return Err(elapsed.into()),
    ///             Err(_) => before = copy.copied(),
    ///         }
    ///     }
    /// }
    /// # mini::block_on(async {
    /// # let listener = mini::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    /// # let address = listener.local_addr().unwrap();
    /// # let (_a, _b) = (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
    /// # let (a, b) = (listener.accept().await.unwrap().0, listener.accept().await.unwrap().0);
    /// # let error = relay(a, b, Duration::from_millis(1)).await.unwrap_err();
    /// # assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    /// # });
    /// ```
    #[must_use]
    pub fn copied(&self) -> (u64, u64) {
        (self.there.copied(), self.back.copied())
    }
}

impl<R: ?Sized, W: ?Sized> Copy<'_, R, W> {
    /// Returns the number of bytes written so far; see [`CopyBidirectional::copied`].
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.flow.copied()
    }
}

impl<A, B> Future for CopyBidirectional<'_, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    type Output = io::Result<(u64, u64)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let CopyBidirectional { a, b, there, back } = self.get_mut();
        noted(there.call_site(), || {
            let there = there.poll(cx, &mut **a, &mut **b)?;
            let back = back.poll(cx, &mut **b, &mut **a)?;
            Poll::Ready(Ok((ready!(there), ready!(back))))
        })
    }
}

impl<R, W> Future for Copy<'_, R, W>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    type Output = io::Result<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Copy { reader, writer, flow } = self.get_mut();
        noted(flow.call_site(), || flow.poll(cx, &mut **reader, &mut **writer))
    }
}

const fn sites(method: &'static str) -> [Site; 2] {
    [Site { owner: "io", method, kind: IoKind::Read }, Site { owner: "io", method, kind: IoKind::Write }]
}

#[track_caller]
fn call_sites([reading, writing]: &'static [Site; 2]) -> [CallSite; 2] {
    [CallSite::here(reading), CallSite::here(writing)]
}

impl<A: ?Sized, B: ?Sized> Drop for CopyBidirectional<'_, A, B> {
    fn drop(&mut self) {
        self.there.call_site().forget_note();
    }
}

impl<R: ?Sized, W: ?Sized> Drop for Copy<'_, R, W> {
    fn drop(&mut self) {
        self.flow.call_site().forget_note();
    }
}

/// Polls. A note of where the task waits then names the line of the copy, whichever end has left it.
fn noted<T>(call_site: CallSite, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    let before = take_notes();
    let polled = poll();
    let notes = notes();
    let waits = notes.wait.map(|noted| noted.at(call_site.location));
    swap_notes(Notes { wait: waits.or(before.wait), timer: notes.timer.or(before.timer) });
    polled
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for CopyBidirectional<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyBidirectional")
            .field("there", &self.there)
            .field("back", &self.back)
            .finish_non_exhaustive()
    }
}

impl<R: ?Sized, W: ?Sized> fmt::Debug for Copy<'_, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copy").field("flow", &self.flow).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<CopyBidirectional<'_, crate::TcpStream, crate::UnixStream>>();
    assert::<Copy<'_, crate::TcpStream, crate::UnixStream>>();
};
