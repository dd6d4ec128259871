//! TCP: listening, connecting, and the options that only TCP has.
//!
//! Reading, writing, accepting and readiness are in `socket`, because Unix sockets do these in the same way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Type};

use crate::addr::{ToSocketAddrs, TryEach};
use crate::kind::listener;
use crate::socket::methods::*;
use crate::socket::socket;
use crate::split;

mod connect;
mod options;
mod socket;
mod stream;

use options::tcp_methods;

pub use connect::Connect;
pub use socket::TcpSocket;

socket! {
    /// A TCP socket that waits for connections.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::{TcpListener, TcpStream};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let (server, _from) = listener.accept().await?;
    /// client.write_all(b"ping").await?;
    /// let mut buf = [0; 4];
    /// server.read_exact(&mut buf).await?;
    /// assert_eq!(&buf, b"ping");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    TcpListener: ip -> SocketAddr, STREAM, Whole
}

socket! {
    /// A TCP connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::{TcpListener, TcpStream};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let stream = TcpStream::connect(listener.local_addr()?).await?;
    /// stream.write_all(b"ping").await?;
    ///
    /// let (other_end, _) = listener.accept().await?;
    /// let mut buf = [0; 16];
    /// let received = other_end.read(&mut buf).await?; // what is there, up to 16 bytes
    /// assert_eq!(&buf[..received], b"ping");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    TcpStream: ip -> SocketAddr, STREAM, Stream
}

split::halves!(TcpStream, SocketAddr);
listener!(TcpListener: TcpStream, Accept);
std_conversions!(TcpListener, std::net::TcpListener);
std_conversions!(TcpStream, std::net::TcpStream);

/// The number of connections that may wait to be accepted. With the 128 of the standard library a burst of a thousand
/// connects falls to 200 a second; the kernel lowers this to its own limit (`somaxconn` in listen(2)).
pub(crate) const BACKLOG: u32 = 4096;

impl TcpListener {
    /// Listens on the first address of `addr` that can be bound to.
    ///
    /// The address may be one that an earlier server has just left (`SO_REUSEADDR`). Up to 4096 connections may wait to
    /// be accepted. To choose both yourself, use [`TcpSocket`].
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::TcpListener;
    ///
    /// let listener = TcpListener::bind(("localhost", 0)).await?;
    /// assert!(listener.local_addr()?.ip().is_loopback());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of bind(2) or [`lookup_host`](crate::lookup_host) for the last address.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime if the address is a host name.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is bound.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> future::Bind {
        future::Bind(TryEach::new(&addr, site!(bind, Resolve), BIND, |(), addr| bind(addr, false)))
    }

    /// Listens like [`bind`](Self::bind), on an address that several listeners may share. On Linux the kernel spreads
    /// the connections over them (`SO_REUSEPORT` in socket(7)), so that each core of a server can have its own. All of
    /// them must be bound by this method.
    ///
    /// On the BSDs and Apple systems the last one to listen gets all connections. With port 0 each call gets a port of
    /// its own: bind the second listener to the [`local_addr`](Self::local_addr) of the first.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::TcpListener;
    ///
    /// let first = TcpListener::bind_reuse_port("127.0.0.1:0").await?;
    /// let second = TcpListener::bind_reuse_port(first.local_addr()?).await?;
    /// assert_eq!(first.local_addr()?, second.local_addr()?);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`bind`](Self::bind); `AddrInUse` if another socket listens there and does not share the
    /// port.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime if the address is a host name.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is bound.
    #[track_caller]
    pub fn bind_reuse_port(addr: impl ToSocketAddrs) -> future::Bind {
        future::Bind(TryEach::new(&addr, site!(bind_reuse_port, Resolve), BIND, |(), addr| bind(addr, true)))
    }

    listener_methods!(TcpStream, SocketAddr, Accept);
    address_methods!(SocketAddr);
    tcp_methods!();
    ip_methods!();
    std_methods!(TcpListener, std::net::TcpListener);
}

fn bind(addr: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let listener = TcpListener::adopt(sys::socket::open(Domain::for_address(addr), Type::STREAM)?.into());
    listener.sock().set_reuse_address(true)?;
    if is_shared {
        listener.sock().set_reuse_port(true)?;
    }
    sys::socket::bind(listener.as_fd(), &addr.into())?;
    sys::socket::listen(listener.as_fd(), BACKLOG)?;
    Ok(listener)
}
