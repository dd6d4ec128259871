//! Making sockets and accepting where `SOCK_NONBLOCK` and accept4(2) exist: the flags of the new socket, and of
//! descriptors that come with a message, cost no further system call.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// For send(2): a closed peer is an error, not a signal.
pub(crate) const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;

/// For recvmsg(2): no child process inherits what comes with the message.
pub(crate) const CLOSE_ON_EXEC: libc::c_int = libc::MSG_CMSG_CLOEXEC;

/// Done by the flag above.
pub(crate) fn close_on_exec(_: &OwnedFd) -> io::Result<()> {
    Ok(())
}

/// Makes a socket that never blocks and that no child process inherits.
pub(crate) fn open(domain: Domain, kind: Type) -> io::Result<Socket> {
    Socket::new(domain, kind.nonblocking(), None)
}

/// Makes two that are connected.
pub(crate) fn pair(kind: Type) -> io::Result<(OwnedFd, OwnedFd)> {
    Socket::pair(Domain::UNIX, kind.nonblocking(), None).map(|(a, b)| (a.into(), b.into()))
}

/// Takes one connection, as a non-blocking fd that no child process inherits.
pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, SockAddr)> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let (socket, peer) = SockRef::from(&fd).accept4(flags)?;
    Ok((socket.into(), peer))
}
