//! `Network`: the sockets and hosts of a simulation, and what is on its way between them.
//!
//! It takes the place of the kernel, below the non-blocking calls (`sys/simulated.rs`), which know a socket by its
//! descriptor. TCP is in `tcp`, UDP in `udp`.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mini_context::sim::{self, Random, inject};

use super::event::{Events, Id, What};
use super::host::{Bound, Host, Protocol};
use super::link::{Links, Passage};
use super::socket::{Kind, Room, Socket};
use super::sockets::Sockets;
use super::strays::Strays;
use super::{errno, not_simulated};
use crate::ready::Ready;
use crate::sys::{Event, Token};

#[derive(Debug)]
pub(crate) struct Network {
    /// Of the simulations of this process.
    pub(super) number: u64,
    pub(super) random: Random,
    /// Of faults: one that is skipped does not change how long other packets take.
    pub(super) faults: Random,
    pub(super) hosts: Vec<Host>,
    pub(super) links: Links,
    /// By descriptor.
    fds: Vec<Option<Id>>,
    pub(super) sockets: Sockets,
    /// What the system gives to a socket, by protocol.
    rooms: [Option<Room>; 2],
    /// Where Unix sockets have been bound, by host.
    pub(super) paths: BTreeSet<(u32, PathBuf)>,
    pub(super) events: Events,
    /// Events that the reactor has not got yet.
    reports: Vec<Event>,
    pub(crate) registered: usize,
    /// Shared with what closes the sockets.
    pub(crate) strays: Arc<Strays>,
    /// Writes are short, segments split and wake-ups spurious now and then.
    pub(super) is_rough: bool,
}

/// The options that matter when a socket gets an address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) reuses_address: bool,
    pub(crate) reuses_port: bool,
    pub(crate) only_v6: bool,
}

impl Network {
    pub(super) fn new(seed: u64, number: u64) -> Self {
        Self {
            number,
            random: Random::new(seed, 5),
            faults: Random::new(seed, 6),
            hosts: vec![Host::new(0, "test")],
            links: Links::default(),
            fds: Vec::new(),
            sockets: Sockets::default(),
            rooms: [None; 2],
            paths: BTreeSet::new(),
            events: Events::default(),
            reports: Vec::new(),
            registered: 0,
            strays: Arc::default(),
            is_rough: true,
        }
    }

    /// Lets happen what is due.
    pub(super) fn advance(&mut self) {
        while let Some(what) = self.events.take_due(sim::now()) {
            match what {
                What::Arrive(id) => self.arrive(id),
                What::Window(id) => self.tell_window(id),
                What::Request(id) => self.request(id),
                What::Answer(id, accepted) => self.answer(id, accepted),
                What::Confirmed(id, client, tries) => self.confirmed(id, client, tries),
                What::Rest(id, rest) => self.take_rest(id, rest),
                What::Reset(id) => self.reset(id),
                What::Datagram(datagram) => self.receive(*datagram),
                What::Unreachable(id, to) => self.unreachable(id, to),
                What::Room(id) => self.report(id),
            }
        }
    }

    pub(super) fn take_reports(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.reports)
    }

    pub(crate) fn id(&self, fd: RawFd) -> Option<Id> {
        self.fds.get(fd as usize).copied().flatten()
    }

    /// A socket on the host whose task runs. `system` returns the room that the system gives to one of that protocol.
    pub(crate) fn open(
        &mut self,
        fd: RawFd,
        is_v6: bool,
        protocol: Protocol,
        system: impl FnOnce() -> io::Result<Room>,
    ) -> io::Result<()> {
        let room = match &mut self.rooms[protocol as usize] {
            Some(room) => *room,
            unknown => *unknown.insert(system()?),
        };
        let id = self.sockets.add(Socket::new(sim::host(), is_v6, protocol, room));
        self.adopt(id, fd);
        Ok(())
    }

    /// A socket gets its descriptor.
    pub(crate) fn adopt(&mut self, id: Id, fd: RawFd) {
        self.close(fd); // one that was dropped before it belonged to a source has left its number
        *self.place(fd) = Some(id);
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.fd = Some(fd);
        }
    }

    fn place(&mut self, fd: RawFd) -> &mut Option<Id> {
        let at = fd as usize;
        if self.fds.len() <= at {
            self.fds.resize(at + 1, None);
        }
        &mut self.fds[at]
    }

    pub(crate) fn socket(&mut self, id: Id) -> &mut Socket {
        self.sockets.get_mut(id).expect("a descriptor leads to a socket")
    }

    /// Closes the sockets that other threads have closed.
    #[inline]
    pub(super) fn close_strays(&mut self) {
        if self.strays.has_some() {
            self.strays.take().into_iter().for_each(|fd| self.close(fd));
        }
    }

    /// The program closes the descriptor.
    pub(crate) fn close(&mut self, fd: RawFd) {
        if let Some(id) = self.place(fd).take() {
            let socket = self.socket(id);
            socket.fd = None;
            let was_registered = socket.token.take().is_some(); // by the time it is closed it is not, but on its thread
            self.registered -= usize::from(was_registered);
            match self.socket(id).kind {
                Kind::Stream(_) => self.close_stream(id),
                Kind::Listener(_) => self.close_listener(id),
                _ => self.release(id),
            }
        }
    }

    /// The socket is gone.
    pub(super) fn release(&mut self, id: Id) {
        let Some(Socket { host, protocol, local, kind, .. }) = self.sockets.remove(id) else { return };
        if let Some(local) = local {
            self.hosts[host as usize].release(protocol, local.port(), id);
        }
        if let Kind::Stream(stream) = kind {
            stream.listener.into_iter().for_each(|listener| self.forget(listener, id));
            self.probe(stream.peer);
        }
    }

    /// From now on the reactor hears of it by `token`. Returns what it is ready for now.
    pub(crate) fn register(&mut self, id: Id, token: Token) -> Ready {
        self.registered += 1;
        let socket = self.socket(id);
        socket.token = Some(token);
        socket.ready()
    }

    /// Returns whether it was registered here.
    pub(crate) fn unregister(&mut self, fd: RawFd, token: Token) -> bool {
        let socket = self.id(fd).and_then(|id| self.sockets.get_mut(id));
        let Some(socket) = socket.filter(|socket| socket.token == Some(token)) else { return false };
        socket.token = None;
        self.registered -= 1;
        true
    }

    /// Returns the address to which it is bound, or the unspecified one.
    pub(crate) fn local_addr(&mut self, id: Id) -> SocketAddr {
        let socket = self.socket(id);
        let ip = if socket.is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        socket.local.unwrap_or_else(|| SocketAddr::new(ip, 0))
    }

    pub(crate) fn peer_addr(&mut self, id: Id) -> io::Result<SocketAddr> {
        self.socket(id).peer_addr().ok_or_else(|| errno(libc::ENOTCONN))
    }

    pub(crate) fn take_error(&mut self, id: Id) -> Option<io::Error> {
        self.socket(id).error.take().map(errno)
    }

    /// Receives on a connection or a socket of datagrams; also returns the sender.
    pub(crate) fn recv_any(
        &mut self,
        id: Id,
        into: &mut dyn FnMut(&[u8]) -> usize,
        peeks: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        match self.socket(id).protocol {
            Protocol::Udp => self.recv_datagram(id, into, peeks),
            Protocol::Tcp => {
                let count = self.recv(id, into, peeks)?;
                Ok((count, self.local_addr(id))) // recvfrom(2) says nothing here, and nobody asks
            }
        }
    }

    pub(crate) fn send_any(&mut self, id: Id, bytes: &mut dyn Iterator<Item = &[u8]>) -> io::Result<usize> {
        match self.socket(id).protocol {
            Protocol::Udp => self.send_datagram(id, bytes.collect::<Vec<_>>().concat(), None),
            Protocol::Tcp => self.send(id, bytes),
        }
    }

    /// Something of it has changed.
    pub(super) fn report(&mut self, id: Id) {
        if let Some(socket) = self.sockets.get(id)
            && let Some(token) = socket.token
        {
            self.reports.push(Event { token, ready: socket.ready() });
        }
    }

    /// Reports to the reactor now and then that a socket is ready though it may not be.
    pub(super) fn report_falsely(&mut self, id: Id) {
        let Some(token) = self.sockets.get(id).and_then(|socket| socket.token) else { return };
        let is_drawn = self.is_rough && self.faults.below(32) == 0;
        if is_drawn && inject(|| format!("a spurious wake-up {}", self.host_of(id))) {
            self.reports.push(Event { token, ready: Ready::READABLE | Ready::WRITABLE });
        }
    }

    pub(crate) fn bind(&mut self, id: Id, addr: SocketAddr, options: Options) -> io::Result<()> {
        let socket = self.socket(id);
        if socket.local.is_some() {
            return Err(errno(libc::EINVAL));
        }
        if socket.is_v6 != addr.is_ipv6() {
            return Err(errno(libc::EAFNOSUPPORT));
        }
        let (host, protocol) = (socket.host as usize, socket.protocol);
        let bound = Bound {
            id,
            ip: addr.ip().to_canonical(),
            is_dual: addr.is_ipv6() && !options.only_v6,
            reuses_address: options.reuses_address,
            reuses_port: options.reuses_port,
            listens: false,
        };
        let port = self.hosts[host].bind(protocol, addr.port(), bound)?;
        let socket = self.socket(id);
        socket.local = Some(SocketAddr::new(addr.ip(), port));
        socket.is_only_v6 = options.only_v6 || bound.ip.is_ipv6() && !bound.ip.is_unspecified();
        Ok(())
    }

    /// The address from which `id` sends to `to`; binds it to a port if it has none.
    pub(super) fn source(&mut self, id: Id, to: IpAddr) -> io::Result<SocketAddr> {
        let socket = self.socket(id);
        let host = socket.host as usize;
        let local = match socket.local {
            Some(local) => local,
            None => {
                let any = if socket.is_v6 { "[::]:0" } else { "0.0.0.0:0" };
                self.bind(id, any.parse().expect("an address"), Options::default())?;
                self.socket(id).local.expect("just bound")
            }
        };
        let ip = local.ip().to_canonical();
        let fits = !ip.is_unspecified() && ip.is_ipv4() == to.is_ipv4();
        Ok(SocketAddr::new(if fits { ip } else { self.hosts[host].source_for(to) }, local.port()))
    }

    /// Where `id` sends what is for `to`: for no address in particular, to its own host.
    pub(super) fn target(&mut self, id: Id, to: SocketAddr) -> io::Result<SocketAddr> {
        let socket = self.socket(id);
        let (host, ip) = (socket.host as usize, socket.destination(to)?);
        if ip.is_multicast() || ip == Ipv4Addr::BROADCAST {
            return Err(not_simulated("multicast and broadcasts are not simulated"));
        }
        Ok(SocketAddr::new(if ip.is_unspecified() { self.hosts[host].source_for(ip) } else { ip }, to.port()))
    }

    /// The host that has the address, as a task of `from` sees it.
    pub(super) fn route(&self, from: u32, ip: IpAddr) -> Option<u32> {
        let is_own = self.hosts[from as usize].has(ip);
        let other = || self.hosts.iter().position(|host| ip == host.v4() || ip == host.v6()).map(|at| at as u32);
        if is_own { Some(from) } else { other() }
    }

    /// Decides whether a packet passes from one host to the other. A link that holds it keeps `what`, for later.
    pub(super) fn passage(&mut self, from: u32, to: u32, what: impl FnOnce() -> What) -> Passage {
        if from != to && !self.hosts[to as usize].is_up {
            return Passage::Cut;
        }
        let passage = self.links.passage(from, to);
        if passage == Passage::Holds {
            self.links.hold(from, to, what());
        }
        passage
    }

    pub(super) fn latency(&mut self, from: u32, to: u32) -> Duration {
        self.links.latency(from, to, &mut self.random)
    }

    /// Draws whether a packet is lost.
    pub(super) fn loses(&mut self, from: u32, to: u32, what: &str) -> bool {
        let hosts = &self.hosts;
        let text = || format!("loss of {what} {}", way(hosts, from, to));
        self.links.loses(from, to, &mut self.faults, text)
    }

    /// For the text of a fault: the host of a socket.
    fn host_of(&self, id: Id) -> String {
        let host = self.sockets.get(id).map_or(0, |socket| socket.host);
        format!("on {}", self.hosts[host as usize].name)
    }

    /// For the text of a fault: from where to where a connection sends.
    pub(super) fn way(&self, id: Id) -> String {
        match self.sockets.get(id) {
            Some(Socket { host, kind: Kind::Stream(stream), .. }) => way(&self.hosts, *host, stream.peer_host),
            _ => self.host_of(id),
        }
    }

    pub(super) fn later(&mut self, delay: Duration, what: What) {
        self.events.add(sim::now() + delay, what);
    }
}

/// The two hosts of a packet, in the text of a fault; one, if it stays there.
pub(super) fn way(hosts: &[Host], from: u32, to: u32) -> String {
    let name = |host: u32| &hosts[host as usize].name;
    if from == to { format!("on {}", name(from)) } else { format!("from {} to {}", name(from), name(to)) }
}
