//! What every type of socket has: its address, its pending error, and the way from and to the standard library.

/// The address, which is an `$addr`, and the pending error.
macro_rules! address_methods {
    ($addr:ty) => {
        /// The address the socket is bound to. If it was bound to port 0, this tells the port that it got.
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
        pub fn local_addr(&self) -> io::Result<$addr> {
            <Self as Kind>::addr(sys::socket::local_addr(self.as_fd())?)
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
            sys::socket::take_error(self.as_fd())
        }
    };
}
pub(crate) use address_methods;

/// From and to `$std`, the type of the standard library.
macro_rules! std_methods {
    ($name:ident, $std:ty) => {
        /// Takes over a socket of the standard library (a descriptor, if that has no such type), and makes it
        /// non-blocking.
        ///
        /// The socket joins a runtime when it first has to wait.
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
        /// Those of fcntl(2). In a simulation `Unsupported` for a socket of TCP or UDP.
        #[track_caller]
        pub fn from_std(socket: $std) -> io::Result<Self> {
            let fd: OwnedFd = socket.into();
            sys::refuse_real(fd.as_fd(), (stringify!($name), "from_std"))?;
            SockRef::from(&fd).set_nonblocking(true)?;
            Ok(Self::adopt(fd))
        }

        /// Leaves the runtime and becomes a blocking socket of the standard library (a descriptor, if that has no such
        /// type).
        ///
        /// Whether calls block is a property of the open file, which duplicates of the descriptor share, also those in
        /// other processes. One that mini still waits for would block its worker.
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
        /// Those of fcntl(2); after an error the socket is closed.
        #[track_caller]
        pub fn into_std(self) -> io::Result<$std> {
            let text = "a simulated socket cannot become one of the standard library";
            sys::refuse_simulated(self.as_fd(), (stringify!($name), "into_std"), text)?;
            Ok(sys::socket::give_away(self.into_fd())?.into())
        }
    };
}
pub(crate) use std_methods;

/// The same by `TryFrom` and `TryInto`.
macro_rules! std_conversions {
    ($name:ident, $std:ty) => {
        impl TryFrom<$std> for $name {
            type Error = io::Error;

            #[track_caller]
            fn try_from(socket: $std) -> io::Result<Self> {
                Self::from_std(socket)
            }
        }

        impl TryFrom<$name> for $std {
            type Error = io::Error;

            #[track_caller]
            fn try_from(socket: $name) -> io::Result<Self> {
                socket.into_std()
            }
        }
    };
}
pub(crate) use std_conversions;
