//! The options that TCP and UDP sockets share.
//!
//! The macro that makes the two functions of an option is here too; `tcp/options` and `udp` use it.
//!
//! Rejected: leaving the options to socket2's `SockRef`, which takes any of these sockets. A user of one option would
//! have to know of that crate, and its version would be a part of ours.

/// Each line is an option: its two functions, those of socket2 or `sys` for it, a value, and its documentation. The
/// first line opens the examples, the second makes their socket.
macro_rules! options {
    ($fence:literal, $socket:literal;
     $($get:ident / $set:ident: $ty:ty = $raw_get:path, $raw_set:path, $value:literal, $doc:literal;)*) => { $(
        #[doc = concat!("Tells ", $doc, ".")]
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`", stringify!($set), "`](Self::", stringify!($set), ").")]
        ///
        /// # Errors
        ///
        /// Returns the errors of getsockopt(2); `Unsupported` where the system has no such option.
        pub fn $get(&self) -> io::Result<$ty> {
            $raw_get(&self.sock())?.try_into().map_err(io::Error::other)
        }

        #[doc = concat!("Sets ", $doc, ".")]
        ///
        /// # Examples
        ///
        #[doc = $fence]
        #[doc = concat!("let socket = mini::net::", $socket, ";")]
        #[doc = concat!("socket.", stringify!($set), "(", $value, ")?;")]
        #[doc = concat!("println!(\"{:?}\", socket.", stringify!($get), "()?);")]
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of setsockopt(2); `Unsupported` where the system has no such option.
        pub fn $set(&self, value: $ty) -> io::Result<()> {
            $raw_set(&self.sock(), value.try_into().map_err(io::Error::other)?)
        }
    )* };
}
pub(crate) use options;

/// The options of everything that has internet addresses.
#[rustfmt::skip] // it moves the second lines of the texts, a column each time
macro_rules! ip_methods {
    () => {
        /// Returns the number of routers a packet may pass: time to live for IPv4, hop limit for IPv6.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let socket = mini::net::UdpSocket::bind("127.0.0.1:0").await?;
        /// socket.set_ttl(17)?;
        /// assert_eq!(socket.ttl()?, 17);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of getsockopt(2).
        pub fn ttl(&self) -> io::Result<u32> {
            let get = |is_v6| if is_v6 { self.sock().unicast_hops_v6() } else { self.sock().ttl_v4() };
            self.is_ipv6().and_then(get)
        }

        /// Sets the value of [`ttl`](Self::ttl), `1..=255`.
        ///
        /// # Examples
        ///
        /// See [`ttl`](Self::ttl).
        ///
        /// # Errors
        ///
        /// Returns the errors of setsockopt(2).
        pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
            let set = |is_v6| if is_v6 { self.sock().set_unicast_hops_v6(ttl) } else { self.sock().set_ttl_v4(ttl) };
            self.is_ipv6().and_then(set)
        }

        options! {
            "```", "TcpSocket::new_v4()?";
            reuseaddr / set_reuseaddr: bool = Raw::reuse_address, Raw::set_reuse_address, "true",
                "whether the address may be one that was just in use (`SO_REUSEADDR` in socket(7)); \
                 to be set before it is bound";
            reuseport / set_reuseport: bool = Raw::reuse_port, Raw::set_reuse_port, "true",
                "whether several sockets may bind to the same address and share what arrives \
                 (`SO_REUSEPORT` in socket(7)); to be set before it is bound";
            send_buffer_size / set_send_buffer_size: u32 =
                Raw::send_buffer_size, sys::socket::set_send_buffer_size, "65536",
                "the size of the kernel's buffer for what is to be sent, in bytes; Linux doubles what is set \
                 (`SO_SNDBUF` in socket(7))";
            recv_buffer_size / set_recv_buffer_size: u32 =
                Raw::recv_buffer_size, sys::socket::set_recv_buffer_size, "65536",
                "the size of the kernel's buffer for what has arrived, in bytes; Linux doubles what is set \
                 (`SO_RCVBUF` in socket(7))";
            tos_v4 / set_tos_v4: u32 = Raw::tos_v4, Raw::set_tos_v4, "0x10",
                "the type of service in the head of IPv4 packets, today six bits of DSCP and two of ECN \
                 (`IP_TOS` in ip(7); RFC 2474)";
        }

        options! {
            "```no_run", "TcpSocket::new_v6()?";
            tclass_v6 / set_tclass_v6: u32 = sys::options::tclass, sys::options::set_tclass, "0x10",
                "the traffic class in the head of IPv6 packets, the same eight bits as `tos_v4` \
                 (`IPV6_TCLASS` in RFC 3542)";
            only_v6 / set_only_v6: bool = Raw::only_v6, Raw::set_only_v6, "true",
                "whether an IPv6 socket leaves IPv4 alone (`IPV6_V6ONLY` in ipv6(7)); to be set before it is bound";
        }

        /// Returns the name of the network interface the socket is bound to, if any (`SO_BINDTODEVICE` in socket(7)).
        ///
        /// # Examples
        ///
        /// See [`bind_device`](Self::bind_device).
        ///
        /// # Errors
        ///
        /// Returns the errors of getsockopt(2), and `Unsupported` on systems other than Linux and Android.
        pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
            sys::device(&self.sock())
        }

        /// Binds the socket to the network interface with this name; `None` allows all interfaces again.
        ///
        /// # Examples
        ///
        /// ```no_run
        /// let socket = mini::net::TcpSocket::new_v4()?;
        /// socket.bind_device(Some(b"lo"))?;
        /// assert_eq!(socket.device()?.as_deref(), Some(&b"lo"[..]));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of setsockopt(2): `ENODEV` if there is no such interface, `PermissionDenied` without the
        /// capability `CAP_NET_RAW` to change it, and `Unsupported` as with [`device`](Self::device).
        pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
            sys::bind_device(&self.sock(), interface)
        }

        fn is_ipv6(&self) -> io::Result<bool> {
            self.local_addr().map(|addr: SocketAddr| addr.is_ipv6())
        }
    };
}
pub(crate) use ip_methods;
