//! The common part of hyper's and tokio's traits. A stream is read into memory that need not be initialised, and the
//! methods to write have the same names and meanings.
//!
//! Used by `hyper` and `tokio`; `$named` is the name of the type in the site of a wait, `$close` ends the writing
//! without closing the fd, which others may use.

use std::io;
use std::task::{Context, Poll};

use crate::ready::Interest;
use crate::source::{CallSite, Channel, Source};
use crate::unfilled::{Unfilled, read_source_into};

/// Reads what has arrived; nothing is filled at the end of the stream.
pub(super) fn poll_recv<T: Channel>(
    source: &Source<T>,
    cx: &mut Context<'_>,
    call_site: &CallSite,
    mut buf: impl Unfilled,
) -> Poll<io::Result<()>> {
    if buf.remaining() == 0 {
        return mini_context::poll_budget(cx, source).map(Ok);
    }
    let read = source.poll_io(cx, call_site, Interest::READABLE, None, |source| read_source_into(source, &mut buf));
    read.map_ok(drop)
}

/// `poll_read` of `$trait`, which takes a `$buf`.
macro_rules! socket_reads {
    ($trait:path, into $buf:ty; $(for [$($generic:tt)*] $ty:ty, as $named:ty;)*) => { $(
        impl<$($generic)*> $trait for $ty {
            #[track_caller]
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: $buf) -> Poll<io::Result<()>> {
                polled::poll_recv(self.source(), cx, &CallSite::here(site!(poll_read, Read, $named)), buf)
            }
        }
    )* };
}

macro_rules! channel_writes {
    ($trait:path; $(for [$($generic:tt)*] $ty:ty, as $named:ty, close $close:expr;)*) => { $(
        impl<$($generic)*> $trait for $ty {
            #[track_caller]
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                let call_site = CallSite::here(site!(poll_write, Write, $named));
                self.source().poll_call(cx, &call_site, None, &mut SendCall(buf))
            }

            #[track_caller]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let call_site = CallSite::here(site!(poll_write_vectored, Write, $named));
                self.source().poll_call(cx, &call_site, None, &mut SendVectored(bufs))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Nothing is buffered here, so there is nothing to flush.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Shuts down writing: the peer sees the end of the stream. The reader of a pipe sees it only when the
            /// sender is dropped.
            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready($close(&*self))
            }
        }
    )* };
}
