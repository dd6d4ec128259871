//! Connecting a `UnixStream`.

use std::io;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::Type;

use super::{ConnectUnix, UnixStream, pair, raw_addr, raw_path};

impl UnixStream {
    /// Connects to the listener at `path`.
    ///
    /// If too many connections wait there to be accepted, this waits too.
    ///
    /// # Examples
    ///
    /// See [`UnixListener`](crate::UnixListener).
    ///
    /// # Errors
    ///
    /// Those of connect(2): `NotFound` if there is nothing at `path`, `ConnectionRefused` if nobody listens.
    ///
    /// # Panics
    ///
    /// If it has to wait outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is given up.
    #[track_caller]
    pub fn connect(path: impl AsRef<Path>) -> ConnectUnix {
        ConnectUnix::new(raw_path(path.as_ref()))
    }

    /// As [`connect`](UnixStream::connect), to an address, which may be an abstract name.
    ///
    /// # Examples
    ///
    /// See [`UnixListener::bind_addr`](crate::UnixListener::bind_addr).
    ///
    /// # Errors
    ///
    /// As [`connect`](UnixStream::connect).
    ///
    /// # Panics
    ///
    /// As [`connect`](UnixStream::connect).
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is given up.
    #[track_caller]
    pub fn connect_addr(addr: &SocketAddr) -> ConnectUnix {
        ConnectUnix::new(raw_addr(addr))
    }

    /// Makes two streams that are connected to each other.
    ///
    /// # Examples
    ///
    /// See [`UnixStream`].
    ///
    /// # Errors
    ///
    /// Those of socketpair(2).
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        pair(Type::STREAM)
    }
}
