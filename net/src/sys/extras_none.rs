//! Features of Linux and Android alone: the version for other systems.

use std::io;
use std::os::unix::net::SocketAddr;

use socket2::Socket;

pub(crate) fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn abstract_name(_: &SocketAddr) -> Option<&[u8]> {
    None
}

pub(crate) fn device(_: &Socket) -> io::Result<Option<Vec<u8>>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn bind_device(_: &Socket, _: Option<&[u8]>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn quickack(_: &Socket) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn set_quickack(_: &Socket, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
