//! Connecting a `TcpStream`, and its options.

use std::io;
use std::time::Duration;

use crate::addr::{Resolve, ToSocketAddrs};
use crate::kind;
use crate::kind::sealed::Kind;
use crate::socket::site;
use crate::tcp::{Connect, TcpStream};

impl TcpStream {
    /// Connects to the first address of `addr` that answers.
    ///
    /// The addresses are tried in order, each until the system gives up on it; put a limit around this for less.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// use mini_net::{TcpListener, TcpStream};
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
    /// Those of connect(2) and [`lookup_host`](crate::lookup_host): the error of the last address. If it has to wait: that
    /// the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is given up.
    #[track_caller]
    pub fn connect(addr: impl ToSocketAddrs) -> Connect {
        type K = kind::TcpStream;
        Connect::new(Resolve::new(&addr, site!(connect, Connect)), None)
    }

    /// Whether small writes are sent at once (`TCP_NODELAY` in tcp(7)), rather than gathered (Nagle's algorithm, RFC 896).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// # let listener = mini_net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let addr = listener.local_addr()?;
    /// let stream = mini_net::TcpStream::connect(addr).await?;
    /// stream.set_nodelay(true)?;
    /// assert!(stream.nodelay()?);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of getsockopt(2).
    pub fn nodelay(&self) -> io::Result<bool> {
        self.sock().tcp_nodelay()
    }

    /// Sets what [`nodelay`](TcpStream::nodelay) tells.
    ///
    /// # Examples
    ///
    /// See [`nodelay`](TcpStream::nodelay).
    ///
    /// # Errors
    ///
    /// Those of setsockopt(2).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.sock().set_tcp_nodelay(nodelay)
    }

    /// How long the kernel goes on sending after the stream is dropped (`SO_LINGER` in socket(7)).
    ///
    /// `None`, the default, is as long as it takes, without anybody waiting. Zero is: not at all, the peer's connection is
    /// reset.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// # let listener = mini_net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let addr = listener.local_addr()?;
    /// let stream = mini_net::TcpStream::connect(addr).await?;
    /// stream.set_linger(Some(std::time::Duration::ZERO))?;
    /// assert!(stream.linger()?.is_some());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of getsockopt(2).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.sock().linger()
    }

    /// Sets what [`linger`](TcpStream::linger) tells, in whole seconds.
    ///
    /// More than zero seconds make the drop of the stream block the thread for as long.
    ///
    /// # Examples
    ///
    /// See [`linger`](TcpStream::linger).
    ///
    /// # Errors
    ///
    /// Those of setsockopt(2).
    pub fn set_linger(&self, limit: Option<Duration>) -> io::Result<()> {
        self.sock().set_linger(limit)
    }
}
