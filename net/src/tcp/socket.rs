//! `TcpSocket`: a TCP socket that is neither a listener nor a stream yet, so that options can be set before.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use socket2::{Domain, Socket as RawSocket, Type};

use crate::addr::Resolve;
use crate::context::Kind;
use crate::socket::Socket;
use crate::source::Site;
use crate::sys;
use crate::tcp::{Connect, TcpListener};

/// A TCP socket to set options on before it listens or connects.
///
/// # Examples
///
/// ```
/// # mini_net::doc::block_on(async {
/// use mini_net::TcpSocket;
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
pub struct TcpSocket(RawSocket);

/// Each line is an option: its two functions, socket2's two for it, and its documentation.
macro_rules! options {
    ($($get:ident / $set:ident: $ty:ty = $raw_get:ident / $raw_set:ident, $doc:literal;)*) => { $(
        #[doc = concat!("Tells ", $doc, ".")]
        ///
        /// # Examples
        ///
        /// See [`TcpSocket`].
        ///
        /// # Errors
        ///
        /// Those of getsockopt(2).
        pub fn $get(&self) -> io::Result<$ty> {
            self.0.$raw_get()?.try_into().map_err(io::Error::other)
        }

        #[doc = concat!("Sets ", $doc, ".")]
        ///
        /// # Examples
        ///
        /// See [`TcpSocket`].
        ///
        /// # Errors
        ///
        /// Those of setsockopt(2).
        pub fn $set(&self, value: $ty) -> io::Result<()> {
            self.0.$raw_set(value.try_into().map_err(io::Error::other)?)
        }
    )* };
}

impl TcpSocket {
    /// Makes a socket for IPv4.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Those of socket(2).
    pub fn new_v4() -> io::Result<TcpSocket> {
        Ok(TcpSocket(sys::socket::open(Domain::IPV4, Type::STREAM)?))
    }

    /// Makes a socket for IPv6.
    ///
    /// # Examples
    ///
    /// As with [`new_v4`](TcpSocket::new_v4).
    ///
    /// # Errors
    ///
    /// Those of socket(2).
    pub fn new_v6() -> io::Result<TcpSocket> {
        Ok(TcpSocket(sys::socket::open(Domain::IPV6, Type::STREAM)?))
    }

    /// Takes over a socket of the standard library, made elsewhere and not connected yet, and makes it non-blocking.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::fd::OwnedFd;
    /// use mini_net::TcpSocket;
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
    /// Those of fcntl(2).
    pub fn from_std_stream(socket: std::net::TcpStream) -> io::Result<TcpSocket> {
        let socket = RawSocket::from(OwnedFd::from(socket));
        socket.set_nonblocking(true)?;
        Ok(TcpSocket(socket))
    }

    options! {
        reuseaddr / set_reuseaddr: bool = reuse_address / set_reuse_address,
            "whether the address may be one that was just in use (`SO_REUSEADDR` in socket(7))";
        reuseport / set_reuseport: bool = reuse_port / set_reuse_port,
            "whether several sockets may bind to the same address and share what arrives (`SO_REUSEPORT` in socket(7))";
        keepalive / set_keepalive: bool = keepalive / set_keepalive,
            "whether an idle peer is asked now and then whether it is still there (`SO_KEEPALIVE` in socket(7))";
        nodelay / set_nodelay: bool = tcp_nodelay / set_tcp_nodelay,
            "whether small writes are sent at once (`TCP_NODELAY` in tcp(7))";
        send_buffer_size / set_send_buffer_size: u32 = send_buffer_size / set_send_buffer_size,
            "the size of the kernel's buffer for what is to be sent, in bytes; Linux doubles what is set (`SO_SNDBUF` in socket(7))";
        recv_buffer_size / set_recv_buffer_size: u32 = recv_buffer_size / set_recv_buffer_size,
            "the size of the kernel's buffer for what has arrived, in bytes; Linux doubles what is set (`SO_RCVBUF` in socket(7))";
    }

    /// Binds to an address; port 0 is any that is free.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Those of bind(2).
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.0.bind(&addr.into())
    }

    /// The address it is bound to.
    ///
    /// # Examples
    ///
    /// ```
    /// let socket = mini_net::TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of getsockname(2).
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let addr = self.0.local_addr()?;
        addr.as_socket().ok_or_else(|| io::Error::other("not bound to an internet address"))
    }

    /// Becomes a listener, on which up to `backlog` connections may wait to be accepted.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Those of listen(2).
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.0.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(Socket::adopt(self.0.into()))
    }

    /// Becomes a connection.
    ///
    /// # Examples
    ///
    /// See [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// Those of connect(2). If it has to wait: that the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is given up, and the socket closed.
    #[track_caller]
    pub fn connect(self, addr: SocketAddr) -> Connect {
        const SITE: &Site = &Site { owner: "TcpSocket", method: "connect", kind: Kind::Connect };
        Connect::new(Resolve::new(&addr, SITE), Some(self.0))
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket").field("fd", &self.as_raw_fd()).finish()
    }
}
