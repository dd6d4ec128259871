//! The parts of a socket. Each type is a struct around a `Source`, made by `socket!`. It has the methods of the macros
//! in the files below, in the order in which its own file calls them.
//!
//! `stream`, `datagram`, `listener`, `data` (readiness), `connection`, `ip` and `common` are methods that several types
//! have; methods of one type are in `tcp`, `udp` and `unix`. So a method is written once, and the page of a type shows
//! what it has and nothing else.
//!
//! Rejected: one generic struct with a parameter for the kind, and aliases. Its only page shows the methods of all
//! kinds, and only a bound says which kind has a method. Rejected: traits with the methods, which have to be imported.

use std::fmt;
use std::os::fd::AsFd;

use crate::source::Source;
use crate::sys;

mod common;
mod connection;
mod data;
mod datagram;
mod ip;
mod listener;
mod stream;

/// The names that the macros need where they are called.
pub(crate) mod methods {
    pub(crate) use std::io::{self, IoSlice, IoSliceMut};
    pub(crate) use std::marker::PhantomData;
    pub(crate) use std::net::Shutdown;
    pub(crate) use std::os::fd::{AsFd, OwnedFd};
    pub(crate) use std::task::{Context, Poll};

    pub(crate) use socket2::{SockRef, Socket as Raw};

    pub(crate) use super::common::{address_methods, std_conversions, std_methods};
    pub(crate) use super::connection::connection_methods;
    pub(crate) use super::data::data_methods;
    pub(crate) use super::datagram::datagram_methods;
    pub(crate) use super::ip::{ip_methods, options};
    pub(crate) use super::listener::listener_methods;
    pub(crate) use super::site;
    pub(crate) use super::stream::stream_methods;
    pub(crate) use crate::call::{
        Accept, Custom, Peek, Recv, RecvFrom, RecvVectored, Send as SendCall, SendToAddr, SendVectored,
    };
    pub(crate) use crate::error::{BIND, CONNECT, failed};
    pub(crate) use crate::future;
    pub(crate) use crate::kind::sealed::Kind;
    pub(crate) use crate::leaf::{Op, ReadExact, ReadToEnd, Readiness, WriteAll};
    pub(crate) use crate::ready::Interest;
    pub(crate) use crate::source::{CallSite, Left, Source};
    pub(crate) use crate::sys;
    pub(crate) use crate::sys::socket::PEEK;
}

/// The `Site` of a method: `site!(read, Read)` is `TcpStream::read`, which waits to read, in every type's own name. A
/// third word is the type, if that is not `Self`.
macro_rules! site {
    ($method:ident, $kind:ident) => {
        site!($method, $kind, Self)
    };
    ($method:ident, $kind:ident, $owner:ty) => {
        const {
            &crate::source::Site {
                owner: <$owner>::NAME,
                method: stringify!($method),
                kind: mini_context::IoKind::$kind,
            }
        }
    };
}
pub(crate) use site;

/// A type of socket: its documentation, its name, the function of `kind` that reads its addresses, their type, its type
/// for socket(2), and the rule of its readiness.
macro_rules! socket {
    ($(#[$doc:meta])* $name:ident: $addr_of:ident -> $addr:ty, $ty:ident, $rule:ident) => {
        $(#[$doc])*
        ///
        /// # Sharing
        ///
        /// Methods take `&self`, so several tasks may use one socket at the same time, in an `Arc` or by reference.
        /// Dropping the socket closes it.
        ///
        /// # Runtime
        ///
        /// A socket belongs to the runtime in which it is made, or else to the one in which it first has to wait. An
        /// accepted connection belongs to the runtime that polls the accept. A socket may be used on any thread and in
        /// any runtime, as long as its own runtime is served: a `current_thread` runtime needs a thread in `block_on`.
        ///
        /// When its runtime shuts down, every wait for the socket ends with an error, and later waits fail at once.
        /// Calls that need not wait still work. To move a socket to another runtime, call `into_std`, and `from_std`
        /// there.
        ///
        /// # Polling
        ///
        /// All waiting futures are woken. The `poll_` methods, including those of the I/O traits, share one place for
        /// each direction (reading and accepting, writing), so only the last task to poll there is woken. Two tasks
        /// that wait for the same direction each need a future.
        pub struct $name {
            source: crate::source::Source,
        }

        impl crate::kind::sealed::Kind for $name {
            const NAME: &'static str = stringify!($name);
            const RULE: crate::source::Rule = crate::source::Rule::$rule;
            const TYPE: socket2::Type = socket2::Type::$ty;

            fn addr(raw: socket2::SockAddr) -> std::io::Result<$addr> {
                crate::kind::$addr_of(raw)
            }

            fn from_source(source: crate::source::Source) -> Self {
                Self { source }
            }

            fn source(&self) -> &crate::source::Source {
                &self.source
            }
        }

        impl crate::kind::SocketKind for $name {
            type Addr = $addr;
        }

        impl $name {
            /// Leaves the runtime.
            pub(crate) fn into_fd(self) -> std::os::fd::OwnedFd {
                self.source.into_io()
            }

            /// For the options.
            #[allow(dead_code, reason = "not every type has options")]
            pub(crate) fn sock(&self) -> socket2::SockRef<'_> {
                socket2::SockRef::from(self.source.io())
            }
        }

        impl std::os::fd::AsFd for $name {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.source.io().as_fd()
            }
        }

        impl std::os::fd::AsRawFd for $name {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.source.raw_fd()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::socket::show(stringify!($name), &self.source, f)
            }
        }
    };
}
pub(crate) use socket;

/// A socket as it is shown to a person: its type, descriptor and addresses.
pub(crate) fn show(name: &str, source: &Source, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut f = f.debug_struct(name);
    f.field("fd", &source.raw_fd());
    let fd = source.io().as_fd();
    if let Ok(Some(local)) = sys::socket::local_addr(fd).map(|raw| raw.as_socket()) {
        f.field("local", &local);
    }
    if let Ok(Some(peer)) = sys::socket::peer_addr(fd).map(|raw| raw.as_socket()) {
        f.field("peer", &peer);
    }
    f.finish_non_exhaustive()
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<crate::TcpStream>();
    assert::<crate::UnixListener>();
    assert::<crate::UdpSocket>();
};
