//! Tests of the sockets' promises, on real sockets. Futures are polled by hand and the reactor is turned by hand, so
//! every interleaving is the one that is written down.

mod async_fd;
mod connect;
mod datagram;
mod host;
mod limits;
mod listener;
mod readiness;
pub(crate) mod rig;
mod short;
mod stream;
