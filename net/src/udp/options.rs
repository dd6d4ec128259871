//! The options that only UDP has: broadcast and multicast. A macro, as the docs list the methods of a submodule before
//! the others.

/// The options, for the impl of `UdpSocket`.
#[rustfmt::skip] // it moves the second lines of the texts, a column each time
macro_rules! udp_methods { () => {
    options! {
        "```", "UdpSocket::bind_with(\"127.0.0.1:0\".parse().unwrap(), |_| Ok(()))?";
        broadcast / set_broadcast: bool = Raw::broadcast, Raw::set_broadcast, "true",
            "whether messages may go to broadcast addresses (`SO_BROADCAST` in socket(7))";
        multicast_loop_v4 / set_multicast_loop_v4: bool = Raw::multicast_loop_v4, Raw::set_multicast_loop_v4, "false",
            "whether this host hears its own IPv4 multicast messages (`IP_MULTICAST_LOOP` in ip(7))";
        multicast_ttl_v4 / set_multicast_ttl_v4: u32 = Raw::multicast_ttl_v4, Raw::set_multicast_ttl_v4, "3",
            "how many routers an IPv4 multicast message may pass (`IP_MULTICAST_TTL` in ip(7))";
    }

    options! {
        "```no_run", "UdpSocket::bind_with(\"[::]:0\".parse().unwrap(), |_| Ok(()))?";
        multicast_loop_v6 / set_multicast_loop_v6: bool = Raw::multicast_loop_v6, Raw::set_multicast_loop_v6, "false",
            "whether this host hears its own IPv6 multicast messages (`IPV6_MULTICAST_LOOP` in ipv6(7))";
        multicast_hops_v6 / set_multicast_hops_v6: u32 = Raw::multicast_hops_v6, Raw::set_multicast_hops_v6, "3",
            "how many routers an IPv6 multicast message may pass (`IPV6_MULTICAST_HOPS` in ipv6(7))";
        multicast_if_v6 / set_multicast_if_v6: u32 = Raw::multicast_if_v6, Raw::set_multicast_if_v6, "0",
            "the index of the interface that IPv6 multicast messages leave by, 0 for the system's choice \
             (`IPV6_MULTICAST_IF` in ipv6(7))";
    }

    /// Returns the address of the interface that IPv4 multicast messages leave by (`IP_MULTICAST_IF` in ip(7)). If it
    /// is unspecified, the system chooses.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::net::Ipv4Addr;
    ///
    /// let socket = mini::net::UdpSocket::bind("0.0.0.0:0").await?;
    /// socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
    /// assert_eq!(socket.multicast_if_v4()?, Ipv4Addr::LOCALHOST);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of getsockopt(2).
    pub fn multicast_if_v4(&self) -> io::Result<Ipv4Addr> {
        self.sock().multicast_if_v4()
    }

    /// Sets the value of [`multicast_if_v4`](UdpSocket::multicast_if_v4).
    ///
    /// # Examples
    ///
    /// See [`multicast_if_v4`](UdpSocket::multicast_if_v4).
    ///
    /// # Errors
    ///
    /// Returns the errors of setsockopt(2): `AddrNotAvailable` if no interface has that address.
    pub fn set_multicast_if_v4(&self, interface: &Ipv4Addr) -> io::Result<()> {
        self.sock().set_multicast_if_v4(interface)
    }

    /// Joins an IPv4 multicast group on the interface with the address `interface`, or on one of the system's choice if
    /// that is unspecified.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::net::Ipv4Addr;
    ///
    /// let socket = mini::net::UdpSocket::bind("0.0.0.0:0").await?;
    /// let group = Ipv4Addr::new(224, 0, 0, 123);
    /// socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of setsockopt(2).
    #[track_caller]
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        sys::refuse_simulated(self.as_fd(), ("UdpSocket", "join_multicast_v4"), "multicast is not simulated")?;
        self.sock().join_multicast_v4(&group, &interface)
    }

    /// Leaves an IPv4 multicast group.
    ///
    /// # Examples
    ///
    /// See [`join_multicast_v4`](UdpSocket::join_multicast_v4).
    ///
    /// # Errors
    ///
    /// Returns the errors of setsockopt(2).
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.sock().leave_multicast_v4(&group, &interface)
    }

    /// Joins an IPv6 multicast group on the interface with the index `interface`, or on one of the system's choice if
    /// that is 0.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # mini::block_on(async {
    /// let socket = mini::net::UdpSocket::bind("[::]:0").await?;
    /// let group = "ff02::123".parse().unwrap();
    /// socket.join_multicast_v6(&group, 0)?;
    /// socket.leave_multicast_v6(&group, 0)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of setsockopt(2).
    #[track_caller]
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        sys::refuse_simulated(self.as_fd(), ("UdpSocket", "join_multicast_v6"), "multicast is not simulated")?;
        self.sock().join_multicast_v6(group, interface)
    }

    /// Leaves an IPv6 multicast group.
    ///
    /// # Examples
    ///
    /// See [`join_multicast_v6`](UdpSocket::join_multicast_v6).
    ///
    /// # Errors
    ///
    /// Returns the errors of setsockopt(2).
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.sock().leave_multicast_v6(group, interface)
    }
} }
pub(crate) use udp_methods;
