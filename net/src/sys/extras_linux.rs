//! Features of Linux and Android alone: Unix socket names that are no paths (unix(7), "abstract"), and some options.

use std::io;
use std::os::unix::net::SocketAddr;

use socket2::Socket;

use super::linux_net::SocketAddrExt;

pub(crate) fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

pub(crate) fn abstract_name(address: &SocketAddr) -> Option<&[u8]> {
    address.as_abstract_name()
}

pub(crate) fn device(socket: &Socket) -> io::Result<Option<Vec<u8>>> {
    socket.device()
}

/// Refuses names that the kernel would cut (too long, or with a zero byte), or take for none (empty).
pub(crate) fn bind_device(socket: &Socket, interface: Option<&[u8]>) -> io::Result<()> {
    if interface.is_some_and(|name| name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(&0)) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    socket.bind_device(interface)
}

pub(crate) fn quickack(socket: &Socket) -> io::Result<bool> {
    socket.tcp_quickack()
}

pub(crate) fn set_quickack(socket: &Socket, quickack: bool) -> io::Result<()> {
    socket.set_tcp_quickack(quickack)
}
