//! Methods of every socket type: its address, its pending error, and conversions from and to the standard library.

/// The address, which is an `$addr`, and the pending error.
macro_rules! address_methods {
    ($addr:ty) => {
        /// Returns the address the socket is bound to. If it was bound to port 0, the port is the one that the system
        /// chose.
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
        /// Returns the errors of getsockname(2).
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
        /// Returns the errors of getsockopt(2).
        pub fn take_error(&self) -> io::Result<Option<io::Error>> {
            sys::socket::take_error(self.as_fd())
        }
    };
}
pub(crate) use address_methods;

/// From and to `$std`, the type of the standard library.
macro_rules! std_methods {
    ($name:ident, $std:ty) => {
        /// Takes over a socket of the standard library, or a descriptor if that has no such type, and makes it
        /// non-blocking.
        ///
        /// The socket belongs to the runtime in which this is called, or else to the one in which it first has to wait.
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
        /// Returns the errors of fcntl(2). In a simulation, returns `Unsupported` for a TCP or UDP socket.
        #[track_caller]
        pub fn from_std(socket: $std) -> io::Result<Self> {
            let fd: OwnedFd = socket.into();
            sys::refuse_real(fd.as_fd(), (stringify!($name), "from_std"))?;
            SockRef::from(&fd).set_nonblocking(true)?;
            Ok(Self::adopt(fd))
        }

        /// Leaves the runtime and becomes a blocking socket of the standard library, or a descriptor if that has no
        /// such type.
        ///
        /// Duplicates of the descriptor share the open file, even those in other processes, so they become blocking
        /// too. If mini still waits for a duplicate, calls on it block the worker.
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
        /// Returns the errors of fcntl(2); after an error the socket is closed.
        #[track_caller]
        pub fn into_std(self) -> io::Result<$std> {
            let text = "a simulated socket cannot become one of the standard library";
            sys::refuse_simulated(self.as_fd(), (stringify!($name), "into_std"), text)?;
            Ok(sys::socket::give_away(self.into_fd())?.into())
        }
    };
}
pub(crate) use std_methods;

/// Conversions from and to `$std` by `TryFrom` and `TryInto`.
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
