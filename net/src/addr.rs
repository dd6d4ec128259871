//! Host addresses: the types that name a host, and the lookup.
//!
//! Called by everything that connects or binds. A literal address costs nothing; a name goes to the runtime's blocking
//! pool, because the system's resolver (getaddrinfo(3)) blocks.
//!
//! Rejected: a resolver of our own (the system's knows /etc/hosts, nsswitch and the local network; ours would not).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::vec;

use crate::source::Site;
use mini_context::IoKind;

mod resolve;

pub use resolve::LookupHost;
pub(crate) use resolve::TryEach;
pub(crate) use resolve::{Resolve, no_address};

use sealed::{Target, ToTarget};

/// A type that names a host: an address, or a host and a port, in their usual forms.
///
/// A string is `host:port`. The host is an IP address (IPv6 in brackets) or a name; names are looked up on the
/// runtime's blocking pool. Other crates cannot implement this trait.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// for host in ["127.0.0.1:80", "[::1]:80", "localhost:80"] {
///     assert!(mini::net::lookup_host(host).await?.all(|addr| addr.port() == 80));
/// }
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub trait ToSocketAddrs: sealed::ToTarget {}

/// The addresses of a host, in the order in which to try them.
///
/// # Examples
///
/// See [`lookup_host`].
#[derive(Clone, Debug)]
pub struct Addrs(pub(crate) Found);

#[derive(Clone, Debug)]
pub(crate) enum Found {
    One(Option<SocketAddr>),
    Many(vec::IntoIter<SocketAddr>),
}

/// Looks up the addresses of a host.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let addrs = mini::net::lookup_host("localhost:80").await?;
/// assert!(addrs.into_iter().all(|addr| addr.ip().is_loopback()));
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns `InvalidInput` if a string is not an address. If the host is not found, returns the error of getaddrinfo(3).
///
/// # Panics
///
/// Panics outside a mini runtime if the address is a host name.
///
/// # Cancel safety
///
/// A lookup that has begun finishes on the blocking pool; its result is dropped.
#[track_caller]
pub fn lookup_host(host: impl ToSocketAddrs) -> LookupHost {
    const SITE: &Site = &Site { owner: "mini::net", method: "lookup_host", kind: IoKind::Resolve };
    LookupHost::new(Resolve::new(&host, SITE))
}

pub(crate) mod sealed {
    use super::{Addrs, io};

    pub trait ToTarget {
        fn to_target(&self) -> Target;
    }

    #[derive(Debug)]
    pub enum Target {
        Known(Addrs),
        Name { host: String, port: u16 },
        Wrong(io::Error),
    }
}

impl Addrs {
    pub(crate) fn one(addr: SocketAddr) -> Addrs {
        Addrs(Found::One(Some(addr)))
    }
}

impl Iterator for Addrs {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        match &mut self.0 {
            Found::One(addr) => addr.take(),
            Found::Many(addrs) => addrs.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Found::One(addr) => (usize::from(addr.is_some()), Some(usize::from(addr.is_some()))),
            Found::Many(addrs) => addrs.size_hint(),
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(addr: SocketAddr) -> Target {
        Target::Known(Addrs::one(addr))
    }
}

macro_rules! literals {
    ($($ty:ty),*) => { $(
        impl ToTarget for $ty {
            fn to_target(&self) -> Target {
                SocketAddr::from(*self).into()
            }
        }
        impl ToSocketAddrs for $ty {}
    )* };
}

literals!(SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16));

impl ToTarget for str {
    fn to_target(&self) -> Target {
        if let Ok(addr) = self.parse::<SocketAddr>() {
            return addr.into();
        }
        match name_and_port(self) {
            Ok((host, port)) => Target::Name { host: host.to_owned(), port },
            Err(why) => Target::Wrong(invalid(&format!("`{self}` is not an address: {why}"))),
        }
    }
}

fn name_and_port(text: &str) -> Result<(&str, u16), String> {
    match text.rsplit_once(':') {
        None => Err("expected `host:port`".to_owned()),
        Some(("", _)) => Err("the host before the colon is missing".to_owned()),
        Some((host, port)) => match port.parse() {
            Ok(port) => Ok((host, port)),
            Err(_) => Err(format!("`{port}` is not a port, a number from 0 to 65535")),
        },
    }
}

impl ToTarget for (&str, u16) {
    fn to_target(&self) -> Target {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::from((ip, port)).into(),
            Err(_) => Target::Name { host: host.to_owned(), port },
        }
    }
}

impl ToTarget for (String, u16) {
    fn to_target(&self) -> Target {
        (self.0.as_str(), self.1).to_target()
    }
}

impl ToTarget for String {
    fn to_target(&self) -> Target {
        self.as_str().to_target()
    }
}

impl ToTarget for [SocketAddr] {
    fn to_target(&self) -> Target {
        Target::Known(Addrs(Found::Many(Vec::from(self).into_iter())))
    }
}

impl<T: ToTarget + ?Sized> ToTarget for &T {
    fn to_target(&self) -> Target {
        (**self).to_target()
    }
}

impl ToSocketAddrs for str {}
impl ToSocketAddrs for (&str, u16) {}
impl ToSocketAddrs for (String, u16) {}
impl ToSocketAddrs for String {}
impl ToSocketAddrs for [SocketAddr] {}
impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
