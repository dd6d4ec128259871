//! `Host`: a name, an address of each family, and the ports that are taken there.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::errno;
use super::event::Id;

/// The ports that the system gives out by itself: Linux's `ip_local_port_range` (ip(7)).
const FIRST: u16 = 32_768;
const LAST: u16 = 60_999;

#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) is_up: bool,
    number: u32,
    next_port: u16,
    ports: BTreeMap<(Protocol, u16), Vec<Bound>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// A socket that has a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) id: Id,
    pub(super) ip: IpAddr,
    /// It takes packets to IPv4 addresses too.
    pub(super) is_dual: bool,
    pub(super) reuses_address: bool,
    pub(super) reuses_port: bool,
    pub(super) listens: bool,
}

impl Host {
    pub(super) fn new(number: u32, name: &str) -> Self {
        Self { name: name.to_owned(), is_up: true, number, next_port: FIRST, ports: BTreeMap::new() }
    }

    /// Its address in a network 10.0.0.0/8.
    pub(super) fn v4(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(0x0a00_0001 + self.number)
    }

    /// Its address in a network fd00::/64.
    pub(super) fn v6(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits((0xfd00 << 112) + 1 + u128::from(self.number))
    }

    pub(super) fn has(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || ip.is_unspecified() || ip == self.v4() || ip == self.v6()
    }

    /// The address from which it sends to `to`.
    pub(super) fn source_for(&self, to: IpAddr) -> IpAddr {
        match to {
            _ if to.is_loopback() => to,
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            IpAddr::V4(_) => self.v4().into(),
            IpAddr::V6(_) => self.v6().into(),
        }
    }

    /// Gives `bound` a port: this one, or any if it is 0.
    pub(super) fn bind(&mut self, protocol: Protocol, port: u16, bound: Bound) -> io::Result<u16> {
        if !self.has(bound.ip) {
            return Err(errno(libc::EADDRNOTAVAIL));
        }
        let port = if port == 0 { self.free_port(protocol)? } else { port };
        let others = self.ports.entry((protocol, port)).or_default();
        if others.iter().any(|other| other.excludes(&bound, protocol)) {
            return Err(errno(libc::EADDRINUSE));
        }
        others.push(bound);
        Ok(port)
    }

    fn free_port(&mut self, protocol: Protocol) -> io::Result<u16> {
        for _ in FIRST..=LAST {
            let port = self.next_port;
            self.next_port = if port == LAST { FIRST } else { port + 1 };
            if !self.ports.contains_key(&(protocol, port)) {
                return Ok(port);
            }
        }
        Err(errno(libc::EADDRINUSE))
    }

    /// The socket begins to listen.
    pub(super) fn listen(&mut self, port: u16, id: Id) -> io::Result<()> {
        let all = self.ports.entry((Protocol::Tcp, port)).or_default();
        let Some(at) = all.iter().position(|bound| bound.id == id) else { return Err(errno(libc::EINVAL)) };
        let own = all[at];
        let is_taken = |other: &Bound| other.listens && other.overlaps(&own) && !(other.reuses_port && own.reuses_port);
        if all.iter().any(|other| other.id != id && is_taken(other)) {
            return Err(errno(libc::EADDRINUSE));
        }
        all[at].listens = true;
        Ok(())
    }

    pub(super) fn release(&mut self, protocol: Protocol, port: u16, id: Id) {
        if let Some(all) = self.ports.get_mut(&(protocol, port)) {
            all.retain(|bound| bound.id != id);
            if all.is_empty() {
                self.ports.remove(&(protocol, port));
            }
        }
    }

    /// The sockets that take packets to `to`: those bound to exactly that address, if there are any.
    pub(super) fn takers(&self, protocol: Protocol, to: SocketAddr) -> Vec<Bound> {
        let all = self.ports.get(&(protocol, to.port())).map_or(&[][..], Vec::as_slice);
        let fits = |bound: &&Bound| protocol == Protocol::Udp || bound.listens;
        let exact: Vec<Bound> = all.iter().filter(fits).filter(|bound| bound.ip == to.ip()).copied().collect();
        if exact.is_empty() {
            all.iter().filter(fits).filter(|bound| bound.takes(to.ip())).copied().collect()
        } else {
            exact
        }
    }

    /// It loses all sockets.
    pub(super) fn clear(&mut self) {
        self.ports.clear();
    }
}

impl Bound {
    fn takes(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V6(own), IpAddr::V4(_)) => own.is_unspecified() && self.is_dual,
            (own, ip) => own.is_ipv4() == ip.is_ipv4() && (own.is_unspecified() || own == ip),
        }
    }

    fn overlaps(&self, other: &Bound) -> bool {
        self.takes(other.ip) || other.takes(self.ip)
    }

    fn excludes(&self, other: &Bound, protocol: Protocol) -> bool {
        let shares = self.reuses_port && other.reuses_port
            || self.reuses_address && other.reuses_address && (protocol == Protocol::Udp || !self.listens);
        self.overlaps(other) && !shares
    }
}
