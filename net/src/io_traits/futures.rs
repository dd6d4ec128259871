//! futures-io's `AsyncRead` and `AsyncWrite` for TCP and Unix streams, their halves, and pipes, by value and by
//! reference.
//!
//! The impls by reference let one task read while another writes, without a lock.
//!
//! Rejected: the traits on `Source`, once. They are foreign, so each type needs an impl of its own; a macro makes them.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::close;
use crate::call::{Recv, RecvVectored, Send as SendCall, SendVectored};
use crate::kind::sealed::Kind;
use crate::socket::site;
use crate::source::CallSite;
use crate::unix::pipe::{Receiver, Sender};
use crate::{TcpStream, UnixStream, tcp, unix};

/// By value: calls the impl for the reference.
macro_rules! by_reference {
    ($($method:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => { $(
        #[track_caller]
        fn $method(self: Pin<&mut Self>, cx: &mut Context<'_>, $($arg: $ty),*) -> Poll<io::Result<$out>> {
            Pin::new(&mut &*self).$method(cx, $($arg),*)
        }
    )* };
}

/// `$named` is the name of the type in the site of a wait.
macro_rules! reads {
    ($(for [$($generic:tt)*] $ty:ty, as $named:ty;)*) => { $(
        impl<$($generic)*> AsyncRead for &$ty {
            #[track_caller]
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
                let call_site = CallSite::here(site!(poll_read, Read, $named));
                self.source().poll_call(cx, &call_site, None, &mut Recv(buf))
            }

            #[track_caller]
            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let call_site = CallSite::here(site!(poll_read_vectored, Read, $named));
                self.source().poll_call(cx, &call_site, None, &mut RecvVectored(bufs))
            }
        }

        impl<$($generic)*> AsyncRead for $ty {
            by_reference! {
                poll_read(buf: &mut [u8]) -> usize;
                poll_read_vectored(bufs: &mut [IoSliceMut<'_>]) -> usize;
            }
        }
    )* };
}

/// `$close` ends the writing without closing the fd, which others may use.
macro_rules! writes {
    ($(for [$($generic:tt)*] $ty:ty, as $named:ty, close $close:expr;)*) => { $(
        impl<$($generic)*> AsyncWrite for &$ty {
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

            /// Nothing is buffered here, so there is nothing to flush.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Shuts down writing: the peer sees the end of the stream. The reader of a pipe sees it only when the
            /// sender is dropped.
            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready($close(*self))
            }
        }

        impl<$($generic)*> AsyncWrite for $ty {
            by_reference! {
                poll_write(buf: &[u8]) -> usize;
                poll_write_vectored(bufs: &[IoSlice<'_>]) -> usize;
                poll_flush() -> ();
                poll_close() -> ();
            }
        }
    )* };
}

reads! {
    for [] TcpStream, as TcpStream;
    for [] tcp::ReadHalf<'_>, as TcpStream;
    for [] tcp::OwnedReadHalf, as TcpStream;
    for [] UnixStream, as UnixStream;
    for [] unix::ReadHalf<'_>, as UnixStream;
    for [] unix::OwnedReadHalf, as UnixStream;
    for [] Receiver, as Receiver;
}

writes! {
    for [] TcpStream, as TcpStream, close |this: &TcpStream| close(this.source());
    for [] tcp::WriteHalf<'_>, as TcpStream, close |this: &tcp::WriteHalf<'_>| close(this.source());
    for [] tcp::OwnedWriteHalf, as TcpStream, close |this: &tcp::OwnedWriteHalf| close(this.source());
    for [] UnixStream, as UnixStream, close |this: &UnixStream| close(this.source());
    for [] unix::WriteHalf<'_>, as UnixStream, close |this: &unix::WriteHalf<'_>| close(this.source());
    for [] unix::OwnedWriteHalf, as UnixStream, close |this: &unix::OwnedWriteHalf| close(this.source());
    for [] Sender, as Sender, close |_| Ok(());
}
