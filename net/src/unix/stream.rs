//! Connecting a `UnixStream` or a `UnixSeqpacket`, and the credentials of the peer.

/// Connecting, pairs, and the credentials of the peer.
macro_rules! unix_connection_methods {
    () => {
        /// Connects to the listener at `path`.
        ///
        /// While the listener's queue of connections is full, this tries again: after 1 ms, then after delays that
        /// double up to 100 ms. Connects that wait are not served in their order. The delays go by the runtime's clock:
        /// one that is paused jumps over them. Apple's systems and the BSDs refuse the connection instead, with
        /// `ConnectionRefused`.
        ///
        /// # Examples
        ///
        /// See [`UnixListener`](crate::UnixListener).
        ///
        /// # Errors
        ///
        /// Returns the errors of connect(2): `NotFound` if there is nothing at `path`, `ConnectionRefused` if no socket
        /// listens there. Fails if it has to wait and the runtime has shut down.
        ///
        /// # Panics
        ///
        /// Panics outside a mini runtime.
        ///
        /// # Cancel safety
        ///
        /// Safe: the connection is given up.
        #[track_caller]
        pub fn connect<P: AsRef<Path>>(path: P) -> ConnectUnix<Self, P> {
            ConnectUnix::new(raw_path(path.as_ref()), path, site!(connect, Connect))
        }

        /// Connects to a listener at an address, which may be an abstract name; see [`connect`](Self::connect).
        ///
        /// # Examples
        ///
        /// See [`UnixListener::bind_addr`](crate::UnixListener::bind_addr).
        ///
        /// # Errors
        ///
        /// Same as [`connect`](Self::connect).
        ///
        /// # Panics
        ///
        /// Same as [`connect`](Self::connect).
        ///
        /// # Cancel safety
        ///
        /// Safe: the connection is given up.
        #[track_caller]
        pub fn connect_addr(addr: &SocketAddr) -> ConnectUnix<Self> {
            ConnectUnix::new(raw_addr(addr), (), site!(connect_addr, Connect))
        }

        /// Creates two sockets that are connected to each other.
        ///
        /// # Examples
        ///
        /// See [`UnixStream`](crate::UnixStream).
        ///
        /// # Errors
        ///
        /// Returns the errors of socketpair(2).
        pub fn pair() -> io::Result<(Self, Self)> {
            pair()
        }

        /// Returns the credentials that the peer had when the connection was made (`SO_PEERCRED` in unix(7),
        /// getpeereid(3)).
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// let peer = a.peer_cred()?;
        /// println!("user {}, group {}, process {:?}", peer.uid(), peer.gid(), peer.pid());
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of getsockopt(2).
        pub fn peer_cred(&self) -> io::Result<UCred> {
            sys::peer(self.as_fd()).map(UCred)
        }
    };
}
pub(crate) use unix_connection_methods;
