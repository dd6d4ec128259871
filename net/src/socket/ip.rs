//! The options that TCP and UDP sockets share.

use std::io;

use crate::kind::IpKind;
use crate::socket::Socket;

impl<K: IpKind> Socket<K> {
    /// How many routers a packet may pass: time to live for IPv4, hop limit for IPv6.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// let socket = mini_net::UdpSocket::bind("127.0.0.1:0").await?;
    /// socket.set_ttl(17)?;
    /// assert_eq!(socket.ttl()?, 17);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of getsockopt(2).
    pub fn ttl(&self) -> io::Result<u32> {
        if self.is_ipv6()? { self.sock().unicast_hops_v6() } else { self.sock().ttl_v4() }
    }

    /// Sets what [`ttl`](Socket::ttl) tells, `1..=255`.
    ///
    /// # Examples
    ///
    /// See [`ttl`](Socket::ttl).
    ///
    /// # Errors
    ///
    /// Those of setsockopt(2).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        if self.is_ipv6()? { self.sock().set_unicast_hops_v6(ttl) } else { self.sock().set_ttl_v4(ttl) }
    }

    fn is_ipv6(&self) -> io::Result<bool> {
        Ok(self.sock().local_addr()?.is_ipv6())
    }
}
