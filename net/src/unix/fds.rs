//! Sending and receiving open files, over every Unix socket that carries data.
//!
//! The kernel's format is in `sys/ancillary`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::leaf::Call;
use crate::ready::Interest;
use crate::source::{Left, Source};
use crate::sys::ancillary::MAX_FDS;

/// Sends bytes with file descriptors.
pub(crate) struct SendFds<'a> {
    buf: &'a [u8],
    fds: &'a [BorrowedFd<'a>],
}

/// Receives bytes with file descriptors.
pub(crate) struct RecvFds<'a> {
    buf: &'a mut [u8],
    max: usize,
}

/// Sending and receiving descriptors.
macro_rules! fds_methods {
    () => {
        /// Sends as much of `buf` as there is room for, and `fds` with it. The other side receives its own descriptors
        /// for the same open files (`SCM_RIGHTS` in unix(7)).
        ///
        /// Returns the number of bytes sent, `1..=buf.len()` for a stream. The descriptors go with the first byte, so
        /// the rest can be [written](crate::UnixStream::write_all) as usual. A message is sent whole. There may be up
        /// to 253 descriptors.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use std::io::{Read, Write};
        /// use std::os::fd::AsFd;
        ///
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// let (mut reader, writer) = std::io::pipe()?;
        /// a.send_fds(b"a pipe", &[writer.as_fd()]).await?;
        ///
        /// let mut buf = [0; 16];
        /// let (received, mut fds) = b.recv_fds(&mut buf, 1).await?;
        /// assert_eq!(&buf[..received], b"a pipe");
        /// std::fs::File::from(fds.remove(0)).write_all(b"ping")?;
        /// let mut heard = [0; 4];
        /// reader.read_exact(&mut heard)?;
        /// assert_eq!(&heard, b"ping");
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of sendmsg(2) and unix(7): `ETOOMANYREFS` if too many descriptors are in flight. Returns
        /// `InvalidInput` for more than 253 descriptors, and for descriptors without a byte on a stream, where they
        /// would not arrive. Fails if it has to wait and the runtime has shut down.
        ///
        /// # Panics
        ///
        /// Panics if it has to wait outside a mini runtime, unless the socket has already joined one.
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has sent nothing.
        #[track_caller]
        pub fn send_fds<'a>(&'a self, buf: &'a [u8], fds: &'a [BorrowedFd<'a>]) -> future::SendFds<'a> {
            future::SendFds::of(Op::new(self.source(), site!(send_fds, Write), SendFds::new(buf, fds)))
        }

        /// Receives what has arrived into the front of `buf`, and up to `max` descriptors that came with it, at most
        /// 253.
        ///
        /// Returns the number of bytes, as [`read`](crate::UnixStream::read) and [`recv`](crate::UnixDatagram::recv)
        /// do, and the descriptors, which no child process inherits. The descriptors of several sends take several
        /// receives, and bytes may arrive without descriptors. A plain read drops the descriptors that come with its
        /// bytes.
        ///
        /// # Examples
        ///
        /// See [`send_fds`](Self::send_fds).
        ///
        /// # Errors
        ///
        /// Returns the errors of recvmsg(2). Returns `InvalidData` if there were more than `max`, or more than this
        /// process may open. Then all of them are closed and the bytes are lost, so the rest of a stream may make no
        /// sense. Fails if it has to wait and the runtime has shut down.
        ///
        /// # Panics
        ///
        /// Same as [`send_fds`](Self::send_fds).
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has received nothing.
        #[track_caller]
        pub fn recv_fds<'a>(&'a self, buf: &'a mut [u8], max: usize) -> future::RecvFds<'a> {
            future::RecvFds::of(Op::new(self.source(), site!(recv_fds, Read), RecvFds::new(buf, max)))
        }

        /// Sends once, without waiting, like [`send_fds`](Self::send_fds). Returns `WouldBlock` if there is no room.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::os::fd::AsFd;
        ///
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// assert_eq!(a.try_send_fds(b"", &[std::io::stdin().as_fd()])?, 0);
        /// let (received, fds) = b.try_recv_fds(&mut [0; 16], 1)?;
        /// assert_eq!((received, fds.len()), (0, 1));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`send_fds`](Self::send_fds).
        pub fn try_send_fds(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
            self.source().try_call(SendFds::new(buf, fds))
        }

        /// Receives once, without waiting, like [`recv_fds`](Self::recv_fds). Returns `WouldBlock` if nothing has
        /// arrived.
        ///
        /// # Examples
        ///
        /// See [`try_send_fds`](Self::try_send_fds).
        ///
        /// # Errors
        ///
        /// Same as [`recv_fds`](Self::recv_fds).
        pub fn try_recv_fds(&self, buf: &mut [u8], max: usize) -> io::Result<(usize, Vec<OwnedFd>)> {
            self.source().try_call(RecvFds::new(buf, max))
        }
    };
}
pub(crate) use fds_methods;

impl<'a> SendFds<'a> {
    pub(crate) fn new(buf: &'a [u8], fds: &'a [BorrowedFd<'a>]) -> Self {
        Self { buf, fds }
    }
}

impl<'a> RecvFds<'a> {
    pub(crate) fn new(buf: &'a mut [u8], max: usize) -> Self {
        Self { buf, max }
    }
}

impl Call<OwnedFd> for SendFds<'_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::WRITABLE
    }

    fn call(&mut self, source: &Source) -> io::Result<(usize, Left)> {
        let refused = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if self.fds.len() > MAX_FDS {
            return refused(format!("{} file descriptors in a message: at most {MAX_FDS} are allowed", self.fds.len()));
        }
        if self.buf.is_empty() && !self.fds.is_empty() && source.is_stream() {
            return refused("file descriptors on a stream need at least one byte of data".to_owned());
        }
        source.send_fds(self.buf, self.fds)
    }
}

impl Call<OwnedFd> for RecvFds<'_> {
    type Output = (usize, Vec<OwnedFd>);

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn call(&mut self, source: &Source) -> io::Result<(Self::Output, Left)> {
        source.recv_fds(self.buf, self.max)
    }
}
