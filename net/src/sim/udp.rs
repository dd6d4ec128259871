//! Datagrams: they may be lost, come twice, or come in another order.
//!
//! A datagram to an address without a host is lost. A datagram to an unbound port is answered (ICMP, RFC 1122,
//! 4.1.3.1): a socket that is connected to that address gets an error.

use std::io;
use std::net::{IpAddr, SocketAddr};

use mini_context::sim::{Random, inject};

use super::errno;
use super::event::{Datagram, Id, What};
use super::host::Protocol;
use super::link::Passage;
use super::network::{Network, way};
use super::socket::{Inbox, Kind};

/// What fits into a datagram of UDP over IPv4: udp(7).
const LARGEST: usize = 65_507;

impl Network {
    fn inbox(&mut self, id: Id) -> io::Result<&mut Inbox> {
        match &mut self.socket(id).kind {
            Kind::Datagram(inbox) => Ok(inbox),
            _ => Err(errno(libc::EBADF)),
        }
    }

    pub(crate) fn connect_datagrams(&mut self, id: Id, to: SocketAddr) -> io::Result<()> {
        let socket = self.socket(id);
        if socket.is_only_v6 && to.is_ipv4() {
            return Err(errno(libc::EAFNOSUPPORT)); // of connect(2) alone
        }
        let to = self.target(id, to)?;
        let source = self.source(id, to.ip())?;
        let shown = self.socket(id).shown(to);
        self.inbox(id)?.peer = Some(shown);
        let socket = self.socket(id);
        socket.local = Some(socket.shown(source));
        Ok(())
    }

    pub(crate) fn send_datagram(&mut self, id: Id, bytes: Vec<u8>, to: Option<SocketAddr>) -> io::Result<usize> {
        let peer = self.inbox(id)?.peer;
        let to = to.or(peer).ok_or_else(|| errno(libc::EDESTADDRREQ))?;
        if let Some(error) = self.socket(id).error.take() {
            return Err(errno(error));
        }
        if bytes.len() > LARGEST {
            return Err(errno(libc::EMSGSIZE));
        }
        let to = self.target(id, to)?;
        let from = self.source(id, to.ip())?;
        let (own, length) = (self.socket(id).host, bytes.len());
        let Some(host) = self.route(own, to.ip()) else { return Ok(length) };
        let datagram = Datagram { sender: id, from, to, hosts: (own, host), bytes };
        if own == host {
            self.receive(datagram);
            return Ok(length);
        }
        // Drawn in any case, so that a fault that is skipped changes no other packet.
        let delays = [self.latency(own, host), self.latency(own, host)];
        let copies = 1 + usize::from(self.duplicates(own, host));
        for delay in delays.into_iter().take(copies) {
            if !self.loses(own, host, "a datagram") {
                self.later(delay, What::Datagram(Box::new(datagram.clone())));
            }
        }
        Ok(length)
    }

    fn duplicates(&mut self, from: u32, to: u32) -> bool {
        let probability = self.links.quality(from, to).duplication;
        let hosts = &self.hosts;
        let text = || format!("a datagram twice {}", way(hosts, from, to));
        self.faults.happens(probability) && inject(text)
    }

    /// A datagram comes.
    pub(super) fn receive(&mut self, datagram: Datagram) {
        let (from_host, to_host) = datagram.hosts;
        if self.passage(from_host, to_host, || What::Datagram(Box::new(datagram.clone()))) != Passage::Open {
            return;
        }
        let Datagram { sender, from, to, bytes, .. } = datagram;
        let Some(id) = self.taker(to_host, from, to) else {
            if self.passage(to_host, from_host, || What::Unreachable(sender, to)) != Passage::Open {
                return;
            }
            let delay = self.latency(to_host, from_host);
            return self.later(delay, What::Unreachable(sender, to));
        };
        let socket = self.socket(id);
        let (room, shown) = (socket.room.receive, socket.shown(from));
        if let Kind::Datagram(inbox) = &mut socket.kind
            && inbox.bytes + bytes.len() <= room
        {
            inbox.bytes += bytes.len();
            inbox.messages.push_back((bytes, shown));
            self.report(id);
        }
        self.report_falsely(id);
    }

    /// The socket on `host` that takes what comes from `from` to `to`.
    fn taker(&mut self, host: u32, from: SocketAddr, to: SocketAddr) -> Option<Id> {
        let takers = self.hosts[host as usize].takers(Protocol::Udp, to);
        let wanted = |network: &mut Self, id| match network.inbox(id).map(|inbox| inbox.peer) {
            Ok(Some(peer)) => (peer.ip().to_canonical() == from.ip() && peer.port() == from.port()).then_some(true),
            Ok(None) => Some(false),
            Err(_) => None,
        };
        let fitting: Vec<(Id, bool)> =
            takers.iter().filter_map(|taker| wanted(self, taker.id).map(|is_peer| (taker.id, is_peer))).collect();
        // One that is connected to the sender comes before those that take anybody's.
        let connected: Vec<Id> = fitting.iter().filter(|(_, is_peer)| *is_peer).map(|(id, _)| *id).collect();
        let all: Vec<Id> = if connected.is_empty() { fitting.iter().map(|(id, _)| *id).collect() } else { connected };
        // Of several always the same for one sender: Linux picks by a hash of the addresses (socket(7),
        // `SO_REUSEPORT`).
        let ip = match from.ip() {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits() as u64,
        };
        let count = all.len().max(1) as u64;
        all.get(Random::new(ip, from.port().into()).below(count) as usize).copied()
    }

    /// No socket has that port.
    pub(super) fn unreachable(&mut self, id: Id, to: SocketAddr) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let is_of = |peer: SocketAddr| peer.ip().to_canonical() == to.ip() && peer.port() == to.port();
        if let Kind::Datagram(Inbox { peer: Some(peer), .. }) = &socket.kind
            && is_of(*peer)
        {
            socket.error = Some(libc::ECONNREFUSED);
            self.report(id);
        }
    }

    /// Takes a datagram, or with `peeks` a copy, and returns its sender.
    pub(super) fn recv_datagram(
        &mut self,
        id: Id,
        into: &mut dyn FnMut(&[u8]) -> usize,
        peeks: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        let error = self.socket(id).error.take();
        if let Some(error) = error {
            return Err(errno(error));
        }
        let inbox = self.inbox(id)?;
        let Some((bytes, from)) = inbox.messages.front() else { return Err(io::ErrorKind::WouldBlock.into()) };
        let copied = into(bytes);
        let (length, from) = (bytes.len(), *from);
        if !peeks {
            inbox.bytes -= length;
            inbox.messages.pop_front();
        }
        Ok((copied, from))
    }
}
