//! UDP: binding, connecting, sending to any address. The options that only UDP has are in `udp/options`.
//!
//! Sending, receiving and readiness are in `socket`, because Unix datagrams do these in the same way.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::Location;

use socket2::{Domain, Type};

use crate::addr::{Resolve, ToSocketAddrs, TryEach};
use crate::leaf::{Receiver, SendTo};
use crate::socket::methods::*;
use crate::socket::socket;

mod options;

use options::udp_methods;

socket! {
    /// A UDP socket.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::UdpSocket;
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
    UdpSocket: ip -> SocketAddr, DGRAM, Whole
}

std_conversions!(UdpSocket, std::net::UdpSocket);

impl UdpSocket {
    /// Binds to the first address of `addr` that is free; port 0 is any free port.
    ///
    /// # Examples
    ///
    /// See [`UdpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the error of bind(2) or [`lookup_host`](crate::lookup_host) for the last address.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime if the address is a host name.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is bound.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> future::BindUdp {
        future::BindUdp(TryEach::new(&addr, site!(bind, Resolve), BIND, |(), addr| bind(addr, |_| Ok(()))))
    }

    /// Binds to `addr`, after `prepare` has set the options that have to be set first.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::net::UdpSocket;
    ///
    /// let first = UdpSocket::bind_with("127.0.0.1:0".parse().unwrap(), |socket| socket.set_reuseport(true))?;
    /// let second = UdpSocket::bind_with(first.local_addr()?, |socket| socket.set_reuseport(true))?;
    /// # drop(second);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `prepare` and bind(2).
    pub fn bind_with(addr: SocketAddr, prepare: impl FnOnce(&UdpSocket) -> io::Result<()>) -> io::Result<UdpSocket> {
        bind(addr, prepare).map_err(failed(BIND, addr))
    }

    /// Connects to the first address of `addr` that the system has a route to. The socket then sends to and receives
    /// from no other address.
    ///
    /// # Examples
    ///
    /// See [`UdpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the error of connect(2) or [`lookup_host`](crate::lookup_host) for the last address.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime if the address is a host name.
    ///
    /// # Cancel safety
    ///
    /// Safe: the socket stays as it was.
    #[track_caller]
    pub fn connect(&self, addr: impl ToSocketAddrs) -> future::ConnectUdp<'_> {
        let site = site!(connect, Resolve);
        future::ConnectUdp::of(TryEach::with(self, &addr, site, CONNECT, |socket, addr| {
            sys::socket::connect_datagrams(socket.as_fd(), &addr.into())
        }))
    }

    /// Sends `buf` as one message to the first address of `to`; returns its length.
    ///
    /// # Examples
    ///
    /// See [`UdpSocket`].
    ///
    /// # Errors
    ///
    /// Returns the errors of sendto(2), such as a message that is too long, and of [`lookup_host`](crate::lookup_host).
    /// Fails if it has to wait and the runtime has shut down. A connected socket fails with `EISCONN` on every system
    /// but Linux.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime, panics for a host name, and if it has to wait on a socket that has not joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has sent nothing.
    #[track_caller]
    pub fn send_to<'a>(&'a self, buf: &'a [u8], to: impl ToSocketAddrs) -> SendTo<'a> {
        let site = site!(send_to, Write);
        SendTo::new(self.source(), site, buf, Receiver::Host(Resolve::new(&to, site)), ())
    }

    /// Polls to send one message to an address: the `poll` form of [`send_to`](UdpSocket::send_to).
    ///
    /// Only the task that polled [last](Self#polling) is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let socket = mini::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// let to = socket.local_addr()?;
    /// assert_eq!(std::future::poll_fn(|cx| socket.poll_send_to(cx, b"ping", to)).await?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`send_to`](UdpSocket::send_to).
    ///
    /// # Panics
    ///
    /// Same as [`send_to`](UdpSocket::send_to).
    #[track_caller]
    pub fn poll_send_to(&self, cx: &mut Context<'_>, buf: &[u8], to: SocketAddr) -> Poll<io::Result<usize>> {
        let call_site = CallSite::here(site!(poll_send_to, Write));
        let to = to.into();
        self.source().poll_call(cx, &call_site, None, &mut SendToAddr { buf, to: &to })
    }

    /// Sends once, without waiting. Returns `WouldBlock` if there is no room.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let socket = mini::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// assert_eq!(socket.try_send_to(b"ping", socket.local_addr()?)?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of sendto(2).
    #[track_caller]
    pub fn try_send_to(&self, buf: &[u8], to: SocketAddr) -> io::Result<usize> {
        let sent = self.source().try_call(SendToAddr { buf, to: &to.into() });
        let at = Location::caller(); // not in the closure, whose caller is here
        sent.map_err(|error| sys::located(error, ("UdpSocket", "try_send_to"), at))
    }

    datagram_methods!(SocketAddr, RecvFrom, UdpSocket);
    address_methods!(SocketAddr);
    data_methods!(SocketAddr);
    udp_methods!();
    ip_methods!();
    std_methods!(UdpSocket, std::net::UdpSocket);
}

fn bind(addr: SocketAddr, prepare: impl FnOnce(&UdpSocket) -> io::Result<()>) -> io::Result<UdpSocket> {
    let socket = UdpSocket::adopt(sys::socket::open(Domain::for_address(addr), Type::DGRAM)?.into());
    prepare(&socket)?;
    sys::socket::bind(socket.as_fd(), &addr.into())?;
    Ok(socket)
}
