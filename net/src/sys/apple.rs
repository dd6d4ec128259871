//! Making sockets and accepting where there is neither `SOCK_NONBLOCK` nor accept4(2): each flag of the new socket is a
//! call of its own.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// For send(2): nothing, because every socket carries `SO_NOSIGPIPE` (socket2 and std both set it).
pub(crate) const NO_SIGNAL: libc::c_int = 0;

/// For recvmsg(2): there is no such flag.
pub(crate) const CLOSE_ON_EXEC: libc::c_int = 0;

/// No child process inherits `fd`, unless it starts between recvmsg(2) and this call.
pub(crate) fn close_on_exec(fd: &OwnedFd) -> io::Result<()> {
    SockRef::from(fd).set_cloexec(true)
}

/// Makes a socket that never blocks and that no child process inherits.
pub(crate) fn open(domain: Domain, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(domain, kind, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Makes two that are connected.
pub(crate) fn pair(kind: Type) -> io::Result<(OwnedFd, OwnedFd)> {
    let (a, b) = Socket::pair(Domain::UNIX, kind, None)?;
    a.set_nonblocking(true)?;
    b.set_nonblocking(true)?;
    Ok((a.into(), b.into()))
}

/// Takes one connection, as a non-blocking fd that no child process inherits.
pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, SockAddr)> {
    let (socket, peer) = SockRef::from(&fd).accept()?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), peer))
}
