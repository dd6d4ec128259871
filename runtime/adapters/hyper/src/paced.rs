//! `Paced`: a stream whose peer must take what is sent to it. It ends where the head of a request is late
//! ([`Heads`]).
//!
//! A write that has to wait starts a timer, and one that has moved something forgets it. So a peer that takes a byte
//! now and then stays: what it may ask for is bounded by its number of connections, as what it holds back is bounded by
//! the socket's buffer and by hyper's.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use mini::time::{Sleep, sleep};

use crate::connection::late_error;
use crate::heads::Heads;

/// The stream of a connection, whose peer must take what is sent to it within [`Limits::write`](crate::Limits::write).
/// What an upgrade gives is one, and stays one: `upgraded.downcast::<Paced<TcpStream>>()`.
pub struct Paced<I> {
    stream: I,
    limit: Duration,
    /// While the peer takes nothing.
    patience: Option<Pin<Box<Sleep>>>,
    heads: Arc<Heads>,
}

impl<I> Paced<I> {
    pub(crate) fn new(stream: I, limit: Duration, heads: Arc<Heads>) -> Self {
        Self { stream, limit, patience: None, heads }
    }

    /// The stream itself, whose peer may take its time.
    pub fn into_inner(self) -> I {
        self.stream
    }

    /// Passes on what a write has come to, unless the peer has taken nothing for too long.
    fn in_time<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        let limit = self.limit;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(limit)));
        patience.as_mut().poll(cx).map(|()| Err(late_error("the client takes nothing")))
    }
}

impl<I: fmt::Debug> fmt::Debug for Paced<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Paced").field(&self.stream).finish()
    }
}

impl<I: Read + Unpin> Read for Paced<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.heads.is_late() {
            return Poll::Ready(Ok(())); // the end
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<I: Write + Unpin> Write for Paced<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.in_time(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.in_time(cx, closed)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.in_time(cx, written)
    }
}
