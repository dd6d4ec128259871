//! `Socket<K>`: an fd that the kernel calls a socket, of the kind `K`, and what all kinds have in common.
//!
//! Users know it under its aliases (`TcpStream`, `UdpSocket`, `UnixListener`, ...). What a kind can do on top of this
//! is in the files below: `data`, `stream`, `datagram`, `listener`, `ip`; what it has alone is in `tcp`, `udp` and
//! `unix`.
//!
//! Rejected: one struct per type. Read, write, readiness and conversion would be written and documented four times
//! over.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use socket2::SockRef;

use crate::error::{Object, failed};
use crate::kind::SocketKind;
use crate::source::Source;

mod connection;
mod data;
mod datagram;
mod ip;
mod listener;
mod stream;

/// A socket of the kind `K`; used through the aliases, such as [`TcpStream`](crate::TcpStream).
///
/// Methods take `&self`, so several tasks may use one socket at the same time, in an `Arc` or by reference. Dropping it
/// closes it.
///
/// A socket joins a runtime when it first has to wait. When that shuts down, those who wait for it get an error, except
/// in another runtime that is still up: there the wait goes on.
///
/// # Polling
///
/// Futures that wait are all woken. Of the tasks that wait by methods whose names begin with `poll_`, those of the I/O
/// traits included, only the one that has polled last is woken: there is one place per socket and direction (reading
/// and accepting, writing). Two tasks that wait for the same direction need a future each.
///
/// # Examples
///
/// See [`TcpStream`](crate::TcpStream), [`UdpSocket`](crate::UdpSocket) and the other aliases.
pub struct Socket<K> {
    source: Source,
    kind: PhantomData<fn() -> K>,
}

/// The `Site` of a method: `site!(read, Read)` is `TcpStream::read`, which waits to read, in every kind's own name. A
/// third word is the kind, if that is not called `K`.
macro_rules! site {
    ($method:ident, $kind:ident) => {
        site!($method, $kind, K)
    };
    ($method:ident, $kind:ident, $owner:ty) => {
        const {
            &crate::source::Site {
                owner: <$owner>::NAME,
                method: stringify!($method),
                kind: mini_context::IoKind::$kind,
            }
        }
    };
}
pub(crate) use ip::options;
pub(crate) use site;

impl<K: SocketKind> Socket<K> {
    /// Takes over a socket of the standard library, and makes it non-blocking. (A kind that the standard library does
    /// not have comes as an `OwnedFd`.)
    ///
    /// It joins a runtime when it first has to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// let std = std::net::UdpSocket::bind("127.0.0.1:0")?;
    /// let socket = mini::net::UdpSocket::from_std(std)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of fcntl(2).
    pub fn from_std(socket: K::Std) -> io::Result<Socket<K>> {
        let fd: OwnedFd = socket.into();
        SockRef::from(&fd).set_nonblocking(true)?;
        Ok(Socket::adopt(fd))
    }

    /// Leaves the runtime and becomes a socket of the standard library, which blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let (a, _b) = mini::net::UnixStream::pair()?;
    /// let mut std: std::os::unix::net::UnixStream = a.into_std()?;
    /// std.write_all(b"hello")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of fcntl(2); the socket is closed then.
    pub fn into_std(self) -> io::Result<K::Std> {
        let fd = self.into_fd();
        SockRef::from(&fd).set_nonblocking(false)?;
        Ok(fd.into())
    }

    /// The address the socket is bound to. Bound to port 0, it has been given a port; this tells which.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let listener = mini::net::TcpListener::bind("127.0.0.1:0").await?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of getsockname(2).
    pub fn local_addr(&self) -> io::Result<K::Addr> {
        K::addr(self.sock().local_addr()?)
    }

    /// Takes the error that is pending on the socket, if any (`SO_ERROR` in socket(7)).
    ///
    /// # Examples
    ///
    /// ```
    /// let (a, _b) = mini::net::UnixStream::pair()?;
    /// assert!(a.take_error()?.is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of getsockopt(2).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.sock().take_error()
    }

    /// Takes over a fd that is non-blocking and of this kind.
    pub(crate) fn adopt(fd: OwnedFd) -> Socket<K> {
        Socket::from_source(Source::new(fd, K::RULE))
    }

    pub(crate) fn from_source(source: Source) -> Socket<K> {
        Socket { source, kind: PhantomData }
    }
}

impl<K> Socket<K> {
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Leaves the runtime.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.source.into_io()
    }

    /// For the options.
    pub(crate) fn sock(&self) -> SockRef<'_> {
        SockRef::from(self.source.io())
    }

    /// What an option says when the system refuses it.
    pub(crate) fn refused(&self, operation: &'static str) -> impl FnOnce(io::Error) -> io::Error {
        failed(operation, Object::Fd(self.source.raw_fd()))
    }
}

impl<K> AsFd for Socket<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.io().as_fd()
    }
}

impl<K> AsRawFd for Socket<K> {
    fn as_raw_fd(&self) -> RawFd {
        self.source.raw_fd()
    }
}

impl<K: SocketKind> fmt::Debug for Socket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct(K::NAME);
        f.field("fd", &self.as_raw_fd());
        if let Ok(Some(local)) = self.sock().local_addr().map(|raw| raw.as_socket()) {
            f.field("local", &local);
        }
        if let Ok(Some(peer)) = self.sock().peer_addr().map(|raw| raw.as_socket()) {
            f.field("peer", &peer);
        }
        f.finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<crate::TcpStream>();
    assert::<crate::UnixListener>();
    assert::<crate::UdpSocket>();
};
