//! Binding and connecting a `UnixDatagram`, and sending to a path.

use std::os::fd::BorrowedFd;
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;

use socket2::{SockAddr, Type};

use super::fds::{RecvFds, SendFds, fds_methods};
use super::{Shown, UnixDatagram, open, open_bound, pair, raw_addr, raw_path};
use crate::leaf::SendTo;
use crate::socket::methods::*;
use crate::source::poll_error;

impl UnixDatagram {
    /// Binds to `path`, which must not exist. The file remains when the socket is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::UnixDatagram;
    ///
    /// # let path = std::env::temp_dir().join(format!("mini-doc-datagram-{}", std::process::id()));
    /// # let _ = std::fs::remove_file(&path);
    /// let a = UnixDatagram::bind(&path)?;
    /// let b = UnixDatagram::unbound()?;
    /// b.send_to(b"ping", &path).await?;
    /// let mut buf = [0; 16];
    /// let (received, from) = a.recv_from(&mut buf).await?;
    /// assert!(received == 4 && from.is_unnamed());
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`UnixListener::bind`](crate::UnixListener::bind).
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        Ok(UnixDatagram::adopt(open_bound(Type::DGRAM, &raw_path(path.as_ref())?)?.into()))
    }

    /// Binds to an address, which may be an abstract name; see [`bind`](UnixDatagram::bind).
    ///
    /// # Examples
    ///
    /// See [`UnixListener::bind_addr`](crate::UnixListener::bind_addr).
    ///
    /// # Errors
    ///
    /// Same as [`bind`](UnixDatagram::bind).
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<UnixDatagram> {
        Ok(UnixDatagram::adopt(open_bound(Type::DGRAM, &raw_addr(addr)?)?.into()))
    }

    /// Creates a socket without an address. Other sockets cannot send to it unless it connects.
    ///
    /// # Examples
    ///
    /// See [`bind`](UnixDatagram::bind).
    ///
    /// # Errors
    ///
    /// Returns the errors of socket(2).
    pub fn unbound() -> io::Result<UnixDatagram> {
        Ok(UnixDatagram::adopt(open(Type::DGRAM)?.into()))
    }

    /// Creates two sockets that are connected to each other.
    ///
    /// # Examples
    ///
    /// See [`UnixDatagram`].
    ///
    /// # Errors
    ///
    /// Returns the errors of socketpair(2).
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        pair()
    }

    /// Connects to the socket at `path`: this socket then sends to and receives from no other.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::UnixDatagram;
    ///
    /// # let path = std::env::temp_dir().join(format!("mini-doc-connect-{}", std::process::id()));
    /// # let _ = std::fs::remove_file(&path);
    /// let a = UnixDatagram::bind(&path)?;
    /// let b = UnixDatagram::unbound()?;
    /// b.connect(&path)?;
    /// b.send(b"ping").await?;
    /// assert_eq!(a.recv(&mut [0; 16]).await?, 4);
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of connect(2).
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.connect_raw(&raw_path(path.as_ref())?)
    }

    /// Connects to an address, which may be an abstract name; see [`connect`](UnixDatagram::connect).
    ///
    /// # Examples
    ///
    /// See [`UnixListener::bind_addr`](crate::UnixListener::bind_addr).
    ///
    /// # Errors
    ///
    /// Returns the errors of connect(2).
    pub fn connect_addr(&self, addr: &SocketAddr) -> io::Result<()> {
        self.connect_raw(&raw_addr(addr)?)
    }

    fn connect_raw(&self, addr: &SockAddr) -> io::Result<()> {
        sys::socket::connect_datagrams(self.as_fd(), addr).map_err(failed(CONNECT, Shown(addr)))
    }

    /// Sends `buf` as one message to the socket at `path`; returns its length.
    ///
    /// If that socket's queue is full of other senders' messages, the kernel does not report when there is room, and
    /// the send keeps waiting. A [connected](UnixDatagram::connect) socket gets the report.
    ///
    /// # Examples
    ///
    /// See [`bind`](UnixDatagram::bind).
    ///
    /// # Errors
    ///
    /// Returns the errors of sendto(2). Fails if it has to wait and the runtime has shut down. A connected socket fails
    /// with `EISCONN` on every system but Linux.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless the socket has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has sent nothing.
    #[track_caller]
    pub fn send_to<'a, P: AsRef<Path>>(&'a self, buf: &'a [u8], path: P) -> SendTo<'a, P> {
        SendTo::new(self.source(), site!(send_to, Write), buf, raw_path(path.as_ref()).into(), path)
    }

    /// Sends `buf` as one message to an address, which may be an abstract name; see [`send_to`](UnixDatagram::send_to).
    ///
    /// # Examples
    ///
    /// See [`UnixListener::bind_addr`](crate::UnixListener::bind_addr).
    ///
    /// # Errors
    ///
    /// Same as [`send_to`](UnixDatagram::send_to).
    ///
    /// # Panics
    ///
    /// Same as [`send_to`](UnixDatagram::send_to).
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has sent nothing.
    #[track_caller]
    pub fn send_to_addr<'a>(&'a self, buf: &'a [u8], addr: &SocketAddr) -> SendTo<'a> {
        SendTo::new(self.source(), site!(send_to_addr, Write), buf, raw_addr(addr).into(), ())
    }

    /// Polls to send one message to an address: the `poll` form of [`send_to`](UnixDatagram::send_to).
    ///
    /// Only the task that polled [last](Self#polling) is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let socket = mini::net::UnixDatagram::unbound()?;
    /// let sent = std::future::poll_fn(|cx| socket.poll_send_to(cx, b"ping", "/there/is/nobody")).await;
    /// assert_eq!(sent.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`send_to`](UnixDatagram::send_to).
    ///
    /// # Panics
    ///
    /// Same as [`send_to`](UnixDatagram::send_to).
    #[track_caller]
    pub fn poll_send_to(&self, cx: &mut Context<'_>, buf: &[u8], path: impl AsRef<Path>) -> Poll<io::Result<usize>> {
        let call_site = CallSite::here(site!(poll_send_to, Write));
        let to = match raw_path(path.as_ref()) {
            Ok(to) => to,
            Err(e) => return poll_error(cx, self, e),
        };
        self.source().poll_call(cx, &call_site, None, &mut SendToAddr { buf, to: &to })
    }

    /// Sends once, without waiting. Returns `WouldBlock` if there is no room.
    ///
    /// # Examples
    ///
    /// ```
    /// let socket = mini::net::UnixDatagram::unbound()?;
    /// let error = socket.try_send_to(b"ping", "/there/is/nobody").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of sendto(2).
    pub fn try_send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let to = raw_path(path.as_ref())?;
        self.source().try_call(SendToAddr { buf, to: &to })
    }

    /// Sends to an address, which may be an abstract name; see [`try_send_to`](UnixDatagram::try_send_to).
    ///
    /// # Examples
    ///
    /// See [`UnixListener::bind_addr`](crate::UnixListener::bind_addr).
    ///
    /// # Errors
    ///
    /// Returns the errors of sendto(2).
    pub fn try_send_to_addr(&self, buf: &[u8], addr: &SocketAddr) -> io::Result<usize> {
        let to = raw_addr(addr)?;
        self.source().try_call(SendToAddr { buf, to: &to })
    }

    /// Shuts down reading, writing or both, at once: the peer's sends fail. A `recv` that waits on this socket keeps
    /// waiting, because Linux does not wake it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// use std::net::Shutdown;
    ///
    /// # mini::block_on(async {
    /// let (a, b) = mini::net::UnixDatagram::pair()?;
    /// a.shutdown(Shutdown::Read)?;
    /// assert_eq!(b.send(b"ping").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of shutdown(2).
    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        self.source().shutdown(how)
    }

    datagram_methods!(SocketAddr, RecvFromUnix, UnixDatagram);
    address_methods!(SocketAddr);
    data_methods!(SocketAddr);
    fds_methods!();
    std_methods!(UnixDatagram, net::UnixDatagram);
}
