//! `TcpSocket`: a TCP socket that is neither a listener nor a stream yet, so that options can be set first.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Type};

use super::options::{self, tcp_methods};
use super::{Connect, TcpListener};
use crate::addr::Resolve;
use crate::socket::methods::*;
use crate::socket::socket;

socket! {
    /// A TCP socket to set options on before it listens or connects.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_reuseaddr(true)?;
    /// socket.set_nodelay(true)?;
    /// assert!(socket.nodelay()?);
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// let listener = socket.listen(1024)?;
    ///
    /// let stream = TcpSocket::new_v4()?.connect(listener.local_addr()?).await?;
    /// # drop(stream);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    TcpSocket: ip -> SocketAddr, STREAM, Stream
}

impl TcpSocket {
    /// Creates a socket for IPv4.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the errors of socket(2).
    pub fn new_v4() -> io::Result<TcpSocket> {
        open(Domain::IPV4)
    }

    /// Creates a socket for IPv6.
    ///
    /// # Examples
    ///
    /// See [`new_v4`](TcpSocket::new_v4).
    ///
    /// # Errors
    ///
    /// Returns the errors of socket(2).
    pub fn new_v6() -> io::Result<TcpSocket> {
        open(Domain::IPV6)
    }

    /// Takes over a socket of the standard library, made elsewhere and not connected yet, and makes it non-blocking.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::fd::OwnedFd;
    /// use mini::net::TcpSocket;
    ///
    /// // With a crate that makes sockets, such as `socket2`: any socket is an fd.
    /// let fd: OwnedFd = std::net::TcpListener::bind("127.0.0.1:0")?.into();
    /// let socket = TcpSocket::from_std_stream(fd.into())?;
    /// # drop(socket);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fcntl(2), and `Unsupported` in a simulation.
    #[track_caller]
    pub fn from_std_stream(socket: std::net::TcpStream) -> io::Result<TcpSocket> {
        sys::refuse_real(socket.as_fd(), ("TcpSocket", "from_std_stream"))?;
        TcpSocket::from_std(socket)
    }

    /// Binds to an address; port 0 is any free port.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the errors of bind(2).
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        sys::socket::bind(self.as_fd(), &addr.into()).map_err(failed(BIND, addr))
    }

    /// Becomes a listener, on which up to `backlog` connections may wait to be accepted.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the errors of listen(2).
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        sys::socket::listen(self.as_fd(), backlog)?;
        Ok(TcpListener::adopt(self.into_fd()))
    }

    /// Connects to `addr`, and becomes a stream.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the errors of connect(2). Fails if it has to wait and the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is given up, and the socket closed.
    #[track_caller]
    pub fn connect(self, addr: SocketAddr) -> Connect {
        Connect::new(Resolve::new(&addr, site!(connect, Connect)), Some(self.into_fd().into()))
    }

    address_methods!(SocketAddr);
    tcp_methods!();
    ip_methods!();
    std_methods!(TcpSocket, std::net::TcpStream);
}

fn open(domain: Domain) -> io::Result<TcpSocket> {
    Ok(TcpSocket::adopt(sys::socket::open(domain, Type::STREAM)?.into()))
}
