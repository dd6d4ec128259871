//! Unix socket names that are no paths, where there are none.

use std::io;
use std::os::unix::net::SocketAddr;

pub(crate) fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn abstract_name(_: &SocketAddr) -> Option<&[u8]> {
    None
}
