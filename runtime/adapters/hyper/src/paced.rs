//! `Paced`: a stream whose peer must take the data sent to it. The stream ends if the head of a request is late
//! ([`Heads`]).
//!
//! A write that has to wait starts a timer, and one that has moved something forgets it. A peer's progress is visible
//! only when the socket becomes writable again, and a kernel reports that when a good part of its buffer is free: Linux
//! when a third is, of up to 4 MB (`tcp_wmem` in tcp(7)). So a peer that takes about a MB within the limit stays; one
//! that takes less stays only as long as its connection's buffer is small. The memory that a peer can hold back is
//! bounded by that buffer and hyper's, times its number of connections.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use mini::task::coop::poll_proceed;
use mini::time::{Sleep, sleep};

use crate::connection::late_error;
use crate::heads::Heads;

/// The stream of a connection, whose peer must take some of the data sent to it within
/// [`Limits::write`](crate::Limits::write).
///
/// An upgrade returns such a stream too, and the limit stays in force: `upgraded.downcast::<Paced<TcpStream>>()`.
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

    /// Returns the inner stream, without the limit on its peer.
    pub fn into_inner(self) -> I {
        self.stream
    }

    /// Passes on what a write has come to, unless the peer has taken nothing for too long.
    fn in_time<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        self.wait(cx).map(Err)
    }

    /// Waits with the peer, until it has taken nothing for too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.limit;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(limit)));
        patience.as_mut().poll(cx).map(|()| late_error("the client takes nothing"))
    }
}

/// A write that the budget of its task has no room for says nothing of the peer.
fn has_budget(cx: &mut Context<'_>) -> Poll<()> {
    poll_proceed(cx).map(drop)
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
        ready!(has_budget(cx));
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.in_time(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(has_budget(cx));
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            return flushed; // as that of a socket always is, whatever the peer takes: a write goes on to wait
        }
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(has_budget(cx));
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
        ready!(has_budget(cx));
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.in_time(cx, written)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use mini::task::consume_budget;
    use mini::time::{Instant, pause, timeout};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// Of a peer that takes nothing, or all.
    struct Peer {
        takes: bool,
    }

    impl Write for Peer {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            ready!(has_budget(cx));
            if self.takes { Poll::Ready(Ok(buf.len())) } else { Poll::Pending }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_write_that_waits_is_limited_whatever_is_flushed_meanwhile() {
        mini::block_on(async {
            pause();
            let begin = Instant::now();
            let mut paced = Paced::new(Peer { takes: false }, LIMIT, Arc::default());
            let written = poll_fn(|cx| {
                let written = Pin::new(&mut paced).poll_write(cx, b"x");
                assert!(Pin::new(&mut paced).poll_flush(cx).is_ready());
                written
            });
            let error = timeout(10 * LIMIT, written).await.expect("nothing limits it").unwrap_err();
            assert_eq!((error.kind(), begin.elapsed()), (io::ErrorKind::TimedOut, LIMIT));
        });
    }

    #[test]
    fn a_write_that_the_budget_refuses_says_nothing_of_the_peer() {
        mini::block_on(async {
            pause();
            let mut paced = Paced::new(Peer { takes: false }, LIMIT, Arc::default());
            poll_fn(|cx| {
                assert!(Pin::new(&mut paced).poll_write(cx, b"given up").is_pending());
                Poll::Ready(())
            })
            .await;
            sleep(2 * LIMIT).await;
            paced.stream.takes = true;
            let mut is_spent = false;
            let written = poll_fn(|cx| {
                if !std::mem::replace(&mut is_spent, true) {
                    for _ in 0..2000 {
                        let _ = pin!(consume_budget()).poll(cx);
                    }
                }
                Pin::new(&mut paced).poll_write(cx, b"x")
            });
            assert_eq!(written.await.unwrap(), 1);
        });
    }
}
