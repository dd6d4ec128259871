//! Unix socket names that are no paths: unix(7), "abstract". Linux and Android have them.

use std::io;
use std::os::unix::net::SocketAddr;

use super::linux_net::SocketAddrExt;

pub(crate) fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

pub(crate) fn abstract_name(address: &SocketAddr) -> Option<&[u8]> {
    address.as_abstract_name()
}
