//! Stands in for `simulated` in builds without simulations: no socket is ever simulated.

use std::io;
use std::sync::Arc;

use mini::net::UdpSocket;
use quinn::AsyncUdpSocket;

#[inline]
pub(crate) fn bound_as(_: &std::net::UdpSocket) -> io::Result<Option<Arc<dyn AsyncUdpSocket>>> {
    Ok(None)
}

#[inline]
pub(crate) fn adopt(socket: UdpSocket) -> Result<Arc<dyn AsyncUdpSocket>, UdpSocket> {
    Err(socket)
}
