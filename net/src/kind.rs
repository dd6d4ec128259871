//! What one socket type has that another has not: the parameter of `Socket`.
//!
//! `TcpStream` is `Socket<kind::TcpStream>`, and so on. The kinds are types without values; the traits that they have
//! decide which methods the socket has. Nobody outside can add one.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net;

use socket2::{SockAddr, Type};

use crate::socket::Socket;
use crate::source::Rule;

/// Any kind of socket.
pub trait SocketKind: sealed::Kind {
    /// What an address is to it.
    type Addr;
    /// The type of the standard library for the same thing, or for any fd if it has none.
    type Std: From<OwnedFd> + Into<OwnedFd>;
}

/// A kind that carries data: a stream, or datagrams.
pub trait DataKind: SocketKind {}

/// A kind that is connected to one peer, who learns when this side has ended.
pub trait ConnectionKind: DataKind {}

/// A kind that carries a stream of bytes.
pub trait StreamKind: ConnectionKind {}

/// A kind that carries messages, each whole or not at all.
pub trait DatagramKind: DataKind {}

/// A kind whose addresses are those of the internet.
pub trait IpKind: SocketKind<Addr = SocketAddr> {}

/// A kind that is TCP: a connection, what becomes one, or what waits for them.
pub trait TcpKind: IpKind {}

/// A kind between processes of one machine.
pub trait UnixKind: SocketKind {}

/// A kind that waits for connections.
pub trait ListenerKind: SocketKind<Addr = <Self::Connection as SocketKind>::Addr> {
    /// The kind of its connections.
    type Connection: ConnectionKind;
}

pub(crate) mod sealed {
    use super::{Debug, Rule, SockAddr, SocketKind, Type, io};

    pub trait Kind: Sized + Debug + 'static {
        /// The alias that users know it by.
        const NAME: &'static str;
        const RULE: Rule;
        /// What socket(2) makes one of.
        const TYPE: Type;

        fn addr(raw: SockAddr) -> io::Result<Self::Addr>
        where
            Self: SocketKind;
    }
}

/// What a listener gives out: a connection, and the address that it comes from.
pub type Accepted<K> = (Socket<<K as ListenerKind>::Connection>, <K as SocketKind>::Addr);

macro_rules! kinds {
    ($($name:ident($std:ty, $addr:ty, $decode:path, $ty:ident, $rule:ident): $($is:ident)*;)*) => { $(
        #[doc = concat!("The kind of [`", stringify!($name), "`](crate::", stringify!($name), ").")]
        #[derive(Debug)]
        pub enum $name {}

        impl sealed::Kind for $name {
            const NAME: &'static str = stringify!($name);
            const RULE: Rule = Rule::$rule;
            const TYPE: Type = Type::$ty;

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
    TcpSocket(std::net::TcpStream, SocketAddr, ip, STREAM, Stream): IpKind TcpKind;
    TcpStream(std::net::TcpStream, SocketAddr, ip, STREAM, Stream): IpKind TcpKind DataKind ConnectionKind StreamKind;
    TcpListener(std::net::TcpListener, SocketAddr, ip, STREAM, Whole): IpKind TcpKind;
    UdpSocket(std::net::UdpSocket, SocketAddr, ip, DGRAM, Whole): IpKind DataKind DatagramKind;
    UnixStream(net::UnixStream, net::SocketAddr, unix, STREAM, StreamWithAncillary):
        UnixKind DataKind ConnectionKind StreamKind;
    UnixListener(net::UnixListener, net::SocketAddr, unix, STREAM, Whole): UnixKind;
    UnixDatagram(net::UnixDatagram, net::SocketAddr, unix, DGRAM, Whole): UnixKind DataKind DatagramKind;
    UnixSeqpacket(OwnedFd, net::SocketAddr, unix, SEQPACKET, Whole): UnixKind DataKind ConnectionKind DatagramKind;
    UnixSeqpacketListener(OwnedFd, net::SocketAddr, unix, SEQPACKET, Whole): UnixKind;
}

/// To and from the types of the standard library, as [`Socket::from_std`] and [`Socket::into_std`] have it.
macro_rules! conversions {
    ($($name:ident($std:ty);)*) => { $(
        impl TryFrom<$std> for Socket<$name> {
            type Error = io::Error;

            fn try_from(socket: $std) -> io::Result<Self> {
                Self::from_std(socket)
            }
        }

        impl TryFrom<Socket<$name>> for $std {
            type Error = io::Error;

            fn try_from(socket: Socket<$name>) -> io::Result<Self> {
                socket.into_std()
            }
        }
    )* };
}

conversions! {
    TcpStream(std::net::TcpStream);
    TcpListener(std::net::TcpListener);
    UdpSocket(std::net::UdpSocket);
    UnixStream(net::UnixStream);
    UnixListener(net::UnixListener);
    UnixDatagram(net::UnixDatagram);
}

macro_rules! listeners {
    ($($name:ident: $connection:ident;)*) => { $(
        impl ListenerKind for $name {
            type Connection = $connection;
        }
    )* };
}

listeners! {
    TcpListener: TcpStream;
    UnixListener: UnixStream;
    UnixSeqpacketListener: UnixSeqpacket;
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
