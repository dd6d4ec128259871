//! What one socket type has that another has not: the parameter of `Socket`.
//!
//! `TcpStream` is `Socket<kind::TcpStream>`, and so on. The kinds are types without values; the traits that they have
//! decide which methods the socket has. Nobody outside can add one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net;

use socket2::SockAddr;

use crate::socket::Socket;
use crate::source::Rule;

/// Any kind of socket.
pub trait SocketKind: sealed::Kind {
    /// What an address is to it.
    type Addr;
    /// The type of the standard library for the same thing.
    type Std: From<OwnedFd> + Into<OwnedFd>;
}

/// A kind that carries data: a stream, or datagrams.
pub trait DataKind: SocketKind {}

/// A kind that carries a stream of bytes.
pub trait StreamKind: DataKind {}

/// A kind that carries messages, each whole or not at all.
pub trait DatagramKind: DataKind {}

/// A kind whose addresses are those of the internet.
pub trait IpKind: SocketKind<Addr = SocketAddr> {}

/// A kind that waits for connections.
pub trait ListenerKind: SocketKind<Addr = <Self::Stream as SocketKind>::Addr> {
    /// The kind of its connections.
    type Stream: StreamKind;
}

pub(crate) mod sealed {
    use super::{Rule, SockAddr, SocketKind, io};

    pub trait Kind: Sized + 'static {
        /// The alias that users know it by.
        const NAME: &'static str;
        const RULE: Rule;

        fn addr(raw: SockAddr) -> io::Result<Self::Addr>
        where
            Self: SocketKind;
    }
}

/// What a listener gives out: a connection, and the address that it comes from.
pub type Accepted<K> = (Socket<<K as ListenerKind>::Stream>, <K as SocketKind>::Addr);

macro_rules! kinds {
    ($($name:ident($std:ty, $addr:ty, $rule:ident, $decode:path): $($is:ident)*;)*) => { $(
        #[doc = concat!("The kind of [`", stringify!($name), "`](crate::", stringify!($name), ").")]
        #[derive(Debug)]
        pub enum $name {}

        impl sealed::Kind for $name {
            const NAME: &'static str = stringify!($name);
            const RULE: Rule = Rule::$rule;

            fn addr(raw: SockAddr) -> io::Result<$addr> {
                $decode(raw)
            }
        }

        impl SocketKind for $name {
            type Addr = $addr;
            type Std = $std;
        }

        $(impl $is for $name {})*
    )* };
}

kinds! {
    TcpStream(std::net::TcpStream, SocketAddr, Stream, ip): IpKind DataKind StreamKind;
    TcpListener(std::net::TcpListener, SocketAddr, Whole, ip): IpKind;
    UdpSocket(std::net::UdpSocket, SocketAddr, Whole, ip): IpKind DataKind DatagramKind;
    UnixStream(net::UnixStream, net::SocketAddr, StreamWithAncillary, unix): DataKind StreamKind;
    UnixListener(net::UnixListener, net::SocketAddr, Whole, unix):;
    UnixDatagram(net::UnixDatagram, net::SocketAddr, Whole, unix): DataKind DatagramKind;
}

impl ListenerKind for TcpListener {
    type Stream = TcpStream;
}

impl ListenerKind for UnixListener {
    type Stream = UnixStream;
}

fn ip(raw: SockAddr) -> io::Result<SocketAddr> {
    raw.as_socket().ok_or_else(|| io::Error::other("the kernel gave an address that is neither IPv4 nor IPv6"))
}

fn unix(raw: SockAddr) -> io::Result<net::SocketAddr> {
    if let Some(named) = raw.as_unix() {
        return Ok(named);
    }
    match raw.as_abstract_namespace() {
        Some(name) => crate::sys::abstract_address(name),
        // An unnamed socket: what std calls a path of no length.
        None => net::SocketAddr::from_pathname(""),
    }
}
