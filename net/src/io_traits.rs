//! futures-io's `AsyncRead` and `AsyncWrite` for TCP and Unix streams, by value and by reference.
//!
//! By reference too, so that one task can read while another writes, without a lock.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use crate::kind::StreamKind;
use crate::ready::Interest;
use crate::socket::{Socket, site};
use crate::source::Wait;

impl<K: StreamKind> AsyncRead for &Socket<K> {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let wait = Wait::here(site!(poll_read, Read));
        self.source().poll_io(cx, &wait, Interest::READABLE, None, |source| source.recv(buf))
    }

    #[track_caller]
    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let wait = Wait::here(site!(poll_read_vectored, Read));
        let recv = |source: &crate::source::Source| source.recv_vectored(bufs);
        self.source().poll_io(cx, &wait, Interest::READABLE, None, recv)
    }
}

impl<K: StreamKind> AsyncWrite for &Socket<K> {
    #[track_caller]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wait = Wait::here(site!(poll_write, Write));
        self.source().poll_io(cx, &wait, Interest::WRITABLE, None, |source| source.send(buf))
    }

    #[track_caller]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wait = Wait::here(site!(poll_write_vectored, Write));
        let send = |source: &crate::source::Source| source.send_vectored(bufs);
        self.source().poll_io(cx, &wait, Interest::WRITABLE, None, send)
    }

    /// Nothing is buffered here, so there is nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Tells the peer that nothing more comes. That it is gone already is as good.
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.shutdown(Shutdown::Write) {
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        })
    }
}

/// By value it is the same, one `&` further.
macro_rules! by_reference {
    ($($method:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => { $(
        #[track_caller]
        fn $method(self: Pin<&mut Self>, cx: &mut Context<'_>, $($arg: $ty),*) -> Poll<io::Result<$out>> {
            Pin::new(&mut &*self).$method(cx, $($arg),*)
        }
    )* };
}

impl<K: StreamKind> AsyncRead for Socket<K> {
    by_reference! {
        poll_read(buf: &mut [u8]) -> usize;
        poll_read_vectored(bufs: &mut [IoSliceMut<'_>]) -> usize;
    }
}

impl<K: StreamKind> AsyncWrite for Socket<K> {
    by_reference! {
        poll_write(buf: &[u8]) -> usize;
        poll_write_vectored(bufs: &[IoSlice<'_>]) -> usize;
        poll_flush() -> ();
        poll_close() -> ();
    }
}
