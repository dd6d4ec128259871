//! Traits that the socket types share, for the code that serves all of them: futures, halves, copies.
//!
//! `socket!` and `listener!` implement it for each type. Other crates cannot add a type.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net;
use std::sync::Arc;

use socket2::{SockAddr, Type};

use crate::source::{Rule, Source};

/// Any type of socket.
pub trait SocketKind: sealed::Kind {
    /// The type of its addresses.
    type Addr;
}

/// A type that waits for connections.
pub trait ListenerKind: SocketKind {
    /// The type of its connections.
    type Connection: SocketKind<Addr = Self::Addr>;
}

/// A socket that waits for connections: a [`TcpListener`](crate::TcpListener), [`UnixListener`](crate::UnixListener) or
/// [`UnixSeqpacketListener`](crate::UnixSeqpacketListener), a reference to one, or an `Arc` of one.
///
/// For functions that serve all of them, such as `mini::net::next_connection`. Other crates cannot implement it.
pub trait Listener: sealed::Sealed + Send + Sync + Debug {
    /// The type of its connections.
    type Connection: Send + Sync + Unpin + Debug + AsFd + AsRawFd + 'static;

    /// The type of a peer's address.
    type Addr: Send + Sync + Unpin + Debug + 'static;

    /// The future of its `accept`.
    #[doc(hidden)]
    type Accept<'a>: Future<Output = io::Result<Accepted<Self>>> + Debug + Send + Sync + Unpin
    where
        Self: 'a;

    #[doc(hidden)]
    #[track_caller]
    fn accept_next(&self) -> Self::Accept<'_>;
}

macro_rules! by_pointer {
    ($($pointer:ty),*) => { $(
        impl<L: Listener + ?Sized> sealed::Sealed for $pointer {}

        impl<L: Listener + ?Sized> Listener for $pointer {
            type Connection = L::Connection;
            type Addr = L::Addr;
            type Accept<'a>
                = L::Accept<'a>
            where
                Self: 'a;

            #[track_caller]
            fn accept_next(&self) -> L::Accept<'_> {
                (**self).accept_next()
            }
        }
    )* };
}

by_pointer!(&L, Arc<L>);

pub(crate) mod sealed {
    use super::{OwnedFd, Rule, SockAddr, SocketKind, Source, Type, io};

    /// A trait that other crates cannot implement.
    pub trait Sealed {}

    pub trait Kind: Sized + 'static {
        /// The name that users know.
        const NAME: &'static str;
        const RULE: Rule;
        /// The type for socket(2).
        const TYPE: Type;

        fn addr(raw: SockAddr) -> io::Result<Self::Addr>
        where
            Self: SocketKind;

        fn from_source(source: Source) -> Self;

        fn source(&self) -> &Source;

        /// Takes over an fd that is non-blocking and of this kind.
        fn adopt(fd: OwnedFd) -> Self {
            Self::from_source(Source::new(fd, Self::RULE))
        }
    }
}

/// The result of an accept: a connection, and the address that it comes from.
pub type Accepted<L> = (<L as Listener>::Connection, <L as Listener>::Addr);

/// Makes `$listener` give out connections of the type `$connection`.
macro_rules! listener {
    ($listener:ident: $connection:ident, $accept:ident) => {
        impl crate::kind::ListenerKind for $listener {
            type Connection = $connection;
        }

        impl crate::kind::sealed::Sealed for $listener {}

        impl crate::kind::Listener for $listener {
            type Connection = $connection;
            type Addr = <$listener as crate::kind::SocketKind>::Addr;
            type Accept<'a> = crate::future::$accept<'a>;

            #[track_caller]
            fn accept_next(&self) -> Self::Accept<'_> {
                self.accept()
            }
        }
    };
}
pub(crate) use listener;

pub(crate) fn ip(raw: SockAddr) -> io::Result<SocketAddr> {
    raw.as_socket().ok_or_else(|| io::Error::other("the kernel gave an address that is neither IPv4 nor IPv6"))
}

pub(crate) fn unix(raw: SockAddr) -> io::Result<net::SocketAddr> {
    // An unnamed socket: what std calls a path of no length.
    let unnamed = || net::SocketAddr::from_pathname("");
    match (raw.as_pathname(), raw.as_abstract_namespace()) {
        // A peer may have a name that fills its place to the last byte, for which std has no address.
        (Some(path), _) => net::SocketAddr::from_pathname(path).or_else(|_| unnamed()),
        (None, Some(name)) => crate::sys::abstract_address(name),
        (None, None) => unnamed(),
    }
}
