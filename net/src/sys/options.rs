//! Options that most systems have: the traffic class of IPv6, and the times of keepalive.

use std::io;
use std::time::Duration;

use socket2::{Socket, TcpKeepalive};

pub(crate) fn tclass(socket: &Socket) -> io::Result<u32> {
    socket.tclass_v6()
}

pub(crate) fn set_tclass(socket: &Socket, class: u32) -> io::Result<()> {
    socket.set_tclass_v6(class)
}

pub(crate) fn keepalive_time(socket: &Socket) -> io::Result<Duration> {
    socket.tcp_keepalive_time()
}

pub(crate) fn set_keepalive_time(socket: &Socket, time: Duration) -> io::Result<()> {
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(time))
}

pub(crate) fn keepalive_interval(socket: &Socket) -> io::Result<Duration> {
    socket.tcp_keepalive_interval()
}

pub(crate) fn set_keepalive_interval(socket: &Socket, interval: Duration) -> io::Result<()> {
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_interval(interval))
}

pub(crate) fn keepalive_retries(socket: &Socket) -> io::Result<u32> {
    socket.tcp_keepalive_retries()
}

pub(crate) fn set_keepalive_retries(socket: &Socket, retries: u32) -> io::Result<()> {
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_retries(retries))
}
