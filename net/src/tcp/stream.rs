//! Connecting a `TcpStream`.

use std::net::SocketAddr;
use std::time::Duration;

use super::options::{self, tcp_methods};
use super::{Connect, OwnedReadHalf, OwnedWriteHalf, ReadHalf, TcpStream, WriteHalf};
use crate::addr::{Resolve, ToSocketAddrs};
use crate::socket::methods::*;
use crate::split::split_methods;

impl TcpStream {
    /// Connects to the first address of `addr` that answers.
    ///
    /// The addresses are tried in order, each until the system gives up on it. For a shorter limit, use a timeout.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::{TcpListener, TcpStream};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let addr = listener.local_addr()?;
    /// let stream = TcpStream::connect(addr).await?;
    /// # drop((stream, listener));
    ///
    /// let error = TcpStream::connect(addr).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of connect(2) or [`lookup_host`](crate::lookup_host) for the last address. Fails if it has to
    /// wait and the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is given up.
    #[track_caller]
    pub fn connect(addr: impl ToSocketAddrs) -> Connect {
        Connect::new(Resolve::new(&addr, site!(connect, Connect)), None)
    }

    stream_methods!();
    split_methods!();
    connection_methods!();
    address_methods!(SocketAddr);
    data_methods!(SocketAddr);
    tcp_methods!();
    ip_methods!();
    std_methods!(TcpStream, std::net::TcpStream);
}
