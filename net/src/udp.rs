//! UDP: binding, connecting, sending to anybody, and the options that only UDP has.
//!
//! Sending, receiving and readiness are in `socket`, because Unix datagrams do these in the same way.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use socket2::{Domain, Type};

use crate::addr::{Resolve, ToSocketAddrs, TryEach};
use crate::kind;
use crate::kind::sealed::Kind;
use crate::leaf::{Receiver, SendTo};
use crate::ready::Interest;
use crate::socket::{Socket, site};
use crate::source::Wait;
use crate::sys;

/// A UDP socket.
///
/// # Examples
///
/// ```
/// # mini_net::doc::block_on(async {
/// use mini_net::UdpSocket;
///
/// let a = UdpSocket::bind("127.0.0.1:0").await?;
/// let b = UdpSocket::bind("127.0.0.1:0").await?;
/// a.connect(b.local_addr()?).await?;
/// a.send(b"ping").await?;
/// let mut buf = [0; 16];
/// let (received, from) = b.recv_from(&mut buf).await?;
/// assert_eq!(&buf[..received], b"ping");
/// b.send_to(b"pong", from).await?;
/// assert_eq!(a.recv(&mut buf).await?, 4);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub type UdpSocket = Socket<kind::UdpSocket>;

type K = kind::UdpSocket;

/// Each line is an option: its two functions, socket2's two for it, and its documentation.
macro_rules! options {
    ($($get:ident / $set:ident: $ty:ty = $raw_get:ident / $raw_set:ident, $doc:literal;)*) => { $(
        #[doc = concat!("Tells ", $doc, ".")]
        ///
        /// # Examples
        ///
        /// ```
        /// # mini_net::doc::block_on(async {
        /// let socket = mini_net::UdpSocket::bind("127.0.0.1:0").await?;
        #[doc = concat!("let value = socket.", stringify!($get), "();")]
        /// # drop(value);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Those of getsockopt(2).
        pub fn $get(&self) -> io::Result<$ty> {
            self.sock().$raw_get()
        }

        #[doc = concat!("Sets ", $doc, ".")]
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`", stringify!($get), "`](UdpSocket::", stringify!($get), ").")]
        ///
        /// # Errors
        ///
        /// Those of setsockopt(2).
        pub fn $set(&self, value: $ty) -> io::Result<()> {
            self.sock().$raw_set(value)
        }
    )* };
}

impl UdpSocket {
    /// Binds to the first address of `addr` that is free; port 0 is any port that is.
    ///
    /// # Examples
    ///
    /// See [`UdpSocket`].
    ///
    /// # Errors
    ///
    /// Those of bind(2) and [`lookup_host`](crate::lookup_host): the error of the last address.
    ///
    /// # Panics
    ///
    /// For a name, outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is bound.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> TryEach<'static, (), UdpSocket> {
        TryEach::new(&addr, site!(bind, Resolve), |(), addr| bind(addr))
    }

    /// Sends to, and receives from, the first address of `addr` that the system has a route to, and no other.
    ///
    /// # Examples
    ///
    /// See [`UdpSocket`].
    ///
    /// # Errors
    ///
    /// Those of connect(2) and [`lookup_host`](crate::lookup_host): the error of the last address.
    ///
    /// # Panics
    ///
    /// For a name, outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the socket stays as it was.
    #[track_caller]
    pub fn connect(&self, addr: impl ToSocketAddrs) -> TryEach<'_, UdpSocket, ()> {
        let site = site!(connect, Resolve);
        TryEach::with(self, &addr, site, |socket, addr| socket.sock().connect(&addr.into()))
    }

    /// Sends `buf` as one message to the first address of `to`; returns its length.
    ///
    /// # Examples
    ///
    /// See [`UdpSocket`].
    ///
    /// # Errors
    ///
    /// Those of sendto(2), such as a message that is too long, and [`lookup_host`](crate::lookup_host). If it has to wait:
    /// that the runtime has shut down.
    ///
    /// # Panics
    ///
    /// For a name, or if it has to wait, outside a mini runtime, unless the socket has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has sent nothing.
    #[track_caller]
    pub fn send_to<'a>(&'a self, buf: &'a [u8], to: impl ToSocketAddrs) -> SendTo<'a> {
        let site = site!(send_to, Write);
        SendTo::new(self.source(), site, buf, Receiver::Host(Resolve::new(&to, site)))
    }

    /// As [`send_to`](UdpSocket::send_to), as a function to poll.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// let socket = mini_net::UdpSocket::bind("127.0.0.1:0").await?;
    /// let to = socket.local_addr()?;
    /// assert_eq!(std::future::poll_fn(|cx| socket.poll_send_to(cx, b"ping", to)).await?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`send_to`](UdpSocket::send_to).
    ///
    /// # Panics
    ///
    /// As [`send_to`](UdpSocket::send_to).
    #[track_caller]
    pub fn poll_send_to(&self, cx: &mut Context<'_>, buf: &[u8], to: SocketAddr) -> Poll<io::Result<usize>> {
        let wait = Wait::here(site!(poll_send_to, Write));
        let to = to.into();
        self.source().poll_io(cx, &wait, Interest::WRITABLE, None, |source| source.send_to(buf, &to))
    }

    /// Sends once, without waiting; `WouldBlock` if there is no room.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// let socket = mini_net::UdpSocket::bind("127.0.0.1:0").await?;
    /// assert_eq!(socket.try_send_to(b"ping", socket.local_addr()?)?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of sendto(2).
    pub fn try_send_to(&self, buf: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.source().try_op(Interest::WRITABLE, |source| source.send_to(buf, &to.into()))
    }

    options! {
        broadcast / set_broadcast: bool = broadcast / set_broadcast,
            "whether messages may go to broadcast addresses (`SO_BROADCAST` in socket(7))";
        multicast_loop_v4 / set_multicast_loop_v4: bool = multicast_loop_v4 / set_multicast_loop_v4,
            "whether this host hears its own IPv4 multicast messages (`IP_MULTICAST_LOOP` in ip(7))";
        multicast_loop_v6 / set_multicast_loop_v6: bool = multicast_loop_v6 / set_multicast_loop_v6,
            "whether this host hears its own IPv6 multicast messages (`IPV6_MULTICAST_LOOP` in ipv6(7))";
        multicast_ttl_v4 / set_multicast_ttl_v4: u32 = multicast_ttl_v4 / set_multicast_ttl_v4,
            "how many routers an IPv4 multicast message may pass (`IP_MULTICAST_TTL` in ip(7))";
    }

    /// Joins an IPv4 multicast group, on the interface with the address `interface`, or on any if it is unspecified.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini_net::doc::block_on(async {
    /// use std::net::Ipv4Addr;
    ///
    /// let socket = mini_net::UdpSocket::bind("0.0.0.0:0").await?;
    /// let group = Ipv4Addr::new(224, 0, 0, 123);
    /// socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of setsockopt(2).
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
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
    /// Those of setsockopt(2).
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.sock().leave_multicast_v4(&group, &interface)
    }

    /// Joins an IPv6 multicast group, on the interface with the index `interface`, or on any if that is 0.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # mini_net::doc::block_on(async {
    /// let socket = mini_net::UdpSocket::bind("[::]:0").await?;
    /// let group = "ff02::123".parse().unwrap();
    /// socket.join_multicast_v6(&group, 0)?;
    /// socket.leave_multicast_v6(&group, 0)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of setsockopt(2).
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
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
    /// Those of setsockopt(2).
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.sock().leave_multicast_v6(group, interface)
    }
}

fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = sys::socket::open(Domain::for_address(addr), Type::DGRAM)?;
    socket.bind(&addr.into())?;
    Ok(Socket::adopt(socket.into()))
}
