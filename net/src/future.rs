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
    "Future of `read`: resolves to `io::Result<usize>`, the number of bytes read, 0 at the end."
    Read<'a; T: Channel = OwnedFd> = Op<'a, call::Recv<'a>, T> => usize;

    "Future of `read_vectored`: resolves to `io::Result<usize>`, the number of bytes read, 0 at the end."
    ReadVectored<'a, 'b; T: Channel = OwnedFd> = Op<'a, call::RecvVectored<'a, 'b>, T> => usize;

    "Future of `write`: resolves to `io::Result<usize>`, the number of bytes written."
    Write<'a; T: Channel = OwnedFd> = Op<'a, call::Send<'a>, T> => usize;

    "Future of `write_vectored`: resolves to `io::Result<usize>`, the number of bytes written."
    WriteVectored<'a, 'b; T: Channel = OwnedFd> = Op<'a, call::SendVectored<'a, 'b>, T> => usize;

    "Future of `peek`: resolves to `io::Result<usize>`, the number of bytes seen, which stay to be read."
    Peek<'a> = Op<'a, call::Peek<'a>> => usize;

    "Future of `recv`: resolves to `io::Result<usize>`, the length of the message."
    Recv<'a> = Op<'a, call::Recv<'a>> => usize;

    "Future of `send`: resolves to `io::Result<usize>`, the length of the message."
    Send<'a> = Op<'a, call::Send<'a>> => usize;

    "Future of `recv_from` and `peek_from` of a [`UdpSocket`]: resolves to `io::Result<(usize, SocketAddr)>`."
    RecvFrom<'a> = Op<'a, call::RecvFrom<'a, UdpSocket>> => (usize, SocketAddr);

    "Future of `recv_from` and `peek_from` of a [`UnixDatagram`]: resolves to `io::Result<(usize, SocketAddr)>`."
    RecvFromUnix<'a> = Op<'a, call::RecvFrom<'a, UnixDatagram>> => (usize, UnixAddr);

    "Future of [`TcpListener::accept`]: resolves to `io::Result<(TcpStream, SocketAddr)>`."
    Accept<'a> = Op<'a, call::Accept<TcpListener>> => (TcpStream, SocketAddr);

    "Future of [`UnixListener::accept`]: resolves to `io::Result<(UnixStream, SocketAddr)>`."
    AcceptUnix<'a> = Op<'a, call::Accept<UnixListener>> => (UnixStream, UnixAddr);

    "Future of [`UnixSeqpacketListener::accept`]: resolves to `io::Result<(UnixSeqpacket, SocketAddr)>`."
    AcceptSeqpacket<'a> = Op<'a, call::Accept<UnixSeqpacketListener>> => (UnixSeqpacket, UnixAddr);

    "Future of `readable`: resolves to `io::Result<()>` when a read will probably not wait."
    Readable<'a; T: AsFd = OwnedFd> = Readiness<'a, (), T> => ();

    "Future of `writable`: resolves to `io::Result<()>` when a write will probably not wait."
    Writable<'a; T: AsFd = OwnedFd> = Readiness<'a, (), T> => ();

    "Future of `ready`: resolves to `io::Result<Ready>`, the readiness that was waited for."
    WaitReady<'a; T: AsFd = OwnedFd> = Readiness<'a, Ready, T> => Ready;

    "Future of `send_fds`: resolves to `io::Result<usize>`, the number of bytes sent."
    SendFds<'a> = Op<'a, fds::SendFds<'a>> => usize;

    "Future of `recv_fds`: resolves to `io::Result<(usize, Vec<OwnedFd>)>`, the number of bytes and the descriptors."
    RecvFds<'a> = Op<'a, fds::RecvFds<'a>> => (usize, Vec<OwnedFd>);

    "Future of [`UdpSocket::connect`]: resolves to `io::Result<()>`."
    ConnectUdp<'a> = TryEach<'a, UdpSocket, ()> => ();
}

/// Future of [`TcpListener::bind`]: resolves to `io::Result<TcpListener>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Bind(pub(crate) TryEach<'static, (), TcpListener>);

/// Future of [`UdpSocket::bind`]: resolves to `io::Result<UdpSocket>`.
#[must_use = "futures do nothing unless awaited"]
pub struct BindUdp(pub(crate) TryEach<'static, (), UdpSocket>);

/// Future of `async_io` of a socket: resolves to the `io::Result<R>` of the closure.
#[must_use = "futures do nothing unless awaited"]
pub struct AsyncIo<'a, F>(pub(crate) Op<'a, call::Custom<F>>);

/// Future of `async_io` of an [`AsyncFd`](crate::AsyncFd): resolves to the `io::Result<R>` of the closure.
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
