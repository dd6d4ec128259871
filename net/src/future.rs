//! The futures that the methods of sockets return, under the names that people know.
//!
//! A future does nothing before its `.await`. The page of the method that returns it describes what is lost if it is
//! dropped.

// Each is an operation of `leaf` (`Op` with a call, `Readiness`, `TryEach`) in a struct of its own, made by `futures!`.
//
// Rejected: the generic types themselves. Their output stands in the impl of a trait that users cannot see, and their
// names say how they are built.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::SocketAddr as UnixAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::addr::TryEach;
use crate::call;
use crate::leaf::{Op, Readiness};
use crate::ready::Ready;
use crate::source::Channel;
use crate::unix::fds;
use crate::{
    TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixSeqpacket, UnixSeqpacketListener, UnixStream,
};

pub use crate::addr::LookupHost;
pub use crate::async_fd::FdReady;
#[cfg(feature = "futures-io")]
pub use crate::copy::{Copy, CopyBidirectional};
pub use crate::leaf::{ReadExact, ReadToEnd, SendTo, WriteAll};
pub use crate::stdio::{FlushOutput, ReadStdin, WriteAllOutput, WriteOutput};
pub use crate::tcp::Connect;
pub use crate::unix::ConnectUnix;

macro_rules! futures {
    ($(
        $doc:literal
        $name:ident<$($l:lifetime),+ $(; $g:ident: $bound:path $(= $default:ty)?)?> = $inner:ty => $output:ty;
    )*) => { $(
        #[doc = $doc]
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<$($l),+ $(, $g: $bound $(= $default)?)?>($inner);

        impl<$($l),+ $(, $g: $bound)?> $name<$($l),+ $(, $g)?> {
            pub(crate) fn of(inner: $inner) -> Self {
                Self(inner)
            }
        }

        impl<$($l),+ $(, $g: $bound)?> Future for $name<$($l),+ $(, $g)?> {
            type Output = io::Result<$output>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                Pin::new(&mut self.get_mut().0).poll(cx)
            }
        }

        impl<$($l),+ $(, $g: $bound)?> fmt::Debug for $name<$($l),+ $(, $g)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.show(stringify!($name), f)
            }
        }
    )* };
}

futures! {
    "Resolves to the number of bytes that were read, 0 at the end; returned by `read`."
    Read<'a; T: Channel = OwnedFd> = Op<'a, call::Recv<'a>, T> => usize;

    "Resolves to the number of bytes that were read into several buffers, 0 at the end; returned by `read_vectored`."
    ReadVectored<'a, 'b; T: Channel = OwnedFd> = Op<'a, call::RecvVectored<'a, 'b>, T> => usize;

    "Resolves to the number of bytes that were written; returned by `write`."
    Write<'a; T: Channel = OwnedFd> = Op<'a, call::Send<'a>, T> => usize;

    "Resolves to the number of bytes that were written from several buffers; returned by `write_vectored`."
    WriteVectored<'a, 'b; T: Channel = OwnedFd> = Op<'a, call::SendVectored<'a, 'b>, T> => usize;

    "Resolves to the number of bytes that were seen and stay to be read; returned by `peek`."
    Peek<'a> = Op<'a, call::Peek<'a>> => usize;

    "Resolves to the length of the message that was received; returned by `recv`."
    Recv<'a> = Op<'a, call::Recv<'a>> => usize;

    "Resolves to the length of the message that was sent; returned by `send`."
    Send<'a> = Op<'a, call::Send<'a>> => usize;

    "Resolves to the length of a UDP message and its sender; returned by `recv_from` and `peek_from`."
    RecvFrom<'a> = Op<'a, call::RecvFrom<'a, UdpSocket>> => (usize, SocketAddr);

    "Resolves to the length of a message between Unix sockets and its sender; returned by `recv_from` and `peek_from`."
    RecvFromUnix<'a> = Op<'a, call::RecvFrom<'a, UnixDatagram>> => (usize, UnixAddr);

    "Resolves to a TCP connection, and the address that it comes from; returned by `accept`."
    Accept<'a> = Op<'a, call::Accept<TcpListener>> => (TcpStream, SocketAddr);

    "Resolves to a Unix connection, and the address that it comes from; returned by `accept`."
    AcceptUnix<'a> = Op<'a, call::Accept<UnixListener>> => (UnixStream, UnixAddr);

    "Resolves to a Unix connection for messages, and the address that it comes from; returned by `accept`."
    AcceptSeqpacket<'a> = Op<'a, call::Accept<UnixSeqpacketListener>> => (UnixSeqpacket, UnixAddr);

    "Resolves when it can probably be read, a socket or a pipe; returned by `readable`."
    Readable<'a; T: AsFd = OwnedFd> = Readiness<'a, (), T> => ();

    "Resolves when it can probably be written, a socket or a pipe; returned by `writable`."
    Writable<'a; T: AsFd = OwnedFd> = Readiness<'a, (), T> => ();

    "Resolves to the readiness that there is, of what is waited for; returned by `ready`."
    WaitReady<'a; T: AsFd = OwnedFd> = Readiness<'a, Ready, T> => Ready;

    "Resolves to the number of bytes that were sent with descriptors; returned by `send_fds`."
    SendFds<'a> = Op<'a, fds::SendFds<'a>> => usize;

    "Resolves to the number of bytes that were received, and the descriptors with them; returned by `recv_fds`."
    RecvFds<'a> = Op<'a, fds::RecvFds<'a>> => (usize, Vec<OwnedFd>);

    "Resolves to the result of `connect` on a UDP socket; returned by it."
    ConnectUdp<'a> = TryEach<'a, UdpSocket, ()> => ();
}

/// Resolves to a listener; returned by `bind` of a TCP listener.
#[must_use = "futures do nothing unless awaited"]
pub struct Bind(pub(crate) TryEach<'static, (), TcpListener>);

/// Resolves to a socket; returned by `bind` of a UDP socket.
#[must_use = "futures do nothing unless awaited"]
pub struct BindUdp(pub(crate) TryEach<'static, (), UdpSocket>);

/// Resolves to what a closure returns; returned by `async_io` of a socket.
#[must_use = "futures do nothing unless awaited"]
pub struct AsyncIo<'a, F>(pub(crate) Op<'a, call::Custom<F>>);

/// Resolves to what a closure returns; returned by `async_io` of an `AsyncFd`.
#[must_use = "futures do nothing unless awaited"]
pub struct AsyncFdIo<'a, F, T: AsFd>(pub(crate) Op<'a, call::CustomOn<F>, T>);

macro_rules! by_hand {
    ($([$($generic:tt)*] $ty:ty => $output:ty;)*) => { $(
        impl<$($generic)*> Future for $ty {
            type Output = io::Result<$output>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                Pin::new(&mut self.get_mut().0).poll(cx)
            }
        }
    )* };
}

by_hand! {
    [] Bind => TcpListener;
    [] BindUdp => UdpSocket;
    [F: FnMut() -> io::Result<R>, R] AsyncIo<'_, F> => R;
    [T: AsFd, F: FnMut(&T) -> io::Result<R>, R] AsyncFdIo<'_, F, T> => R;
}

impl fmt::Debug for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("Bind", f)
    }
}

impl fmt::Debug for BindUdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("BindUdp", f)
    }
}

impl<F> fmt::Debug for AsyncIo<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("AsyncIo", f)
    }
}

impl<F, T: AsFd> fmt::Debug for AsyncFdIo<'_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("AsyncFdIo", f)
    }
}

impl<F, T: AsFd> AsyncFdIo<'_, F, T> {
    /// Panics with a message that names the call, if this thread runs no mini runtime and the fd has not joined one.
    #[doc(hidden)]
    pub fn need_runtime(&self) {
        self.0.need_runtime();
    }
}

const _: fn() = || {
    fn assert<T: std::marker::Send + Sync + Unpin>() {}
    assert::<(Read<'_>, Read<'_, File>, Accept<'_>, RecvFrom<'_>, Readable<'_>, Bind, ConnectUdp<'_>, RecvFds<'_>)>();
};
