//! `Socket`: what the simulated kernel knows of one.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;
use std::time::Duration;

use libc::c_int;

use super::errno;
use super::event::Id;
use super::host::Protocol;
use crate::ready::Ready;
use crate::sys::Token;

#[derive(Debug)]
pub(crate) struct Socket {
    /// None for a connection that was not accepted yet, or was closed and still sends.
    pub(super) fd: Option<RawFd>,
    /// By which the reactor knows it, once it is registered.
    pub(super) token: Option<Token>,
    pub(super) host: u32,
    pub(super) is_v6: bool,
    /// It has no way to addresses of IPv4: the program has said so before it bound it, or it is bound to an address of
    /// IPv6.
    pub(super) is_only_v6: bool,
    pub(super) protocol: Protocol,
    pub(super) local: Option<SocketAddr>,
    /// The error that `SO_ERROR` would return.
    pub(super) error: Option<c_int>,
    pub(crate) room: Room,
    /// As the system has made it, if it has.
    system: Room,
    /// Its end is a reset: `SO_LINGER` of zero seconds (socket(7)).
    pub(crate) resets: bool,
    pub(super) kind: Kind,
}

/// The sizes of the buffers, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) send: usize,
    pub(crate) receive: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Of TCP, and neither a listener nor a connection.
    Fresh,
    Listener(Listener),
    Connecting(Connecting),
    Stream(Stream),
    Datagram(Inbox),
    /// Its host has crashed.
    Dead,
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) backlog: usize,
    /// Those that wait to be accepted.
    pub(super) queue: VecDeque<Id>,
    /// Those whose clients have not confirmed them, and when they were made.
    pub(super) half_open: BTreeMap<Id, Duration>,
}

#[derive(Debug)]
pub(super) struct Connecting {
    pub(super) to: SocketAddr,
    pub(super) to_host: u32,
    pub(super) tries: u32,
    /// The socket that the listener has made of the request.
    pub(super) accepted: Option<Id>,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) peer: Id,
    pub(super) peer_host: u32,
    pub(super) peer_addr: SocketAddr,
    /// Which of them has made it, as long as the client has not confirmed the connection.
    pub(super) listener: Option<Id>,

    pub(super) inbox: VecDeque<u8>,
    /// The peer sends no more.
    pub(super) has_end: bool,
    pub(super) is_read_shut: bool,
    /// Read, and not on its way to the peer.
    pub(super) unreported: usize,
    /// When the peer hears of that, which it does without an event if it does not wait for it.
    pub(super) window_at: Option<Duration>,

    /// What was sent and is not confirmed.
    pub(super) outbox: VecDeque<Segment>,
    /// Bytes that were sent and not yet reported as read.
    pub(super) unread: usize,
    pub(super) capacity: usize,
    pub(super) last_arrival: Duration,
    pub(super) wants_room: bool,
    pub(super) is_write_shut: bool,
    /// An arrival is among the events.
    pub(super) is_moving: bool,
    /// Since when nothing was confirmed, and how often it was sent since.
    pub(super) stuck: Option<(Duration, u32)>,

    pub(super) is_reset: bool,
    /// The program has closed it.
    pub(super) is_closed: bool,
}

/// Bytes that travel together.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) bytes: Vec<u8>,
    /// Nothing comes after it.
    pub(super) is_end: bool,
    pub(super) arrives: Duration,
    /// It has come, but the sender has not heard so.
    pub(super) has_come: bool,
}

/// The datagrams that a UDP socket has received.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<(Vec<u8>, SocketAddr)>,
    pub(super) bytes: usize,
    pub(super) peer: Option<SocketAddr>,
}

impl Socket {
    /// For one that has no descriptor yet, for which the system has made that room.
    pub(super) fn new(host: u32, is_v6: bool, protocol: Protocol, system: Room) -> Self {
        let (kind, room) = match protocol {
            Protocol::Tcp => (Kind::Fresh, Room { send: 16_384, receive: 131_072 }),
            Protocol::Udp => (Kind::Datagram(Inbox::default()), Room { send: 212_992, receive: 212_992 }),
        };
        let (fd, token, local, error) = (None, None, None, None);
        let (is_only_v6, resets) = (false, false);
        Self { fd, token, host, is_v6, is_only_v6, protocol, local, error, room, system, resets, kind }
    }

    /// Has as much room as the program has set. What it has left alone is as in Linux's defaults (tcp(7), socket(7)):
    /// what a seed does must not depend on how a system is set up.
    pub(super) fn resize(&mut self, now: Room) {
        if now.send != self.system.send {
            self.room.send = now.send;
        }
        if now.receive != self.system.receive {
            self.room.receive = now.receive;
        }
    }

    /// What epoll(7) would report.
    pub(super) fn ready(&self) -> Ready {
        let state = match &self.kind {
            Kind::Fresh => Ready::CLOSED,
            Kind::Dead => Ready::CLOSED | Ready::ERROR,
            Kind::Connecting(_) => Ready::EMPTY,
            Kind::Listener(listener) if listener.queue.is_empty() => Ready::EMPTY,
            Kind::Listener(_) => Ready::READABLE,
            Kind::Stream(stream) => stream.ready(),
            Kind::Datagram(inbox) if inbox.messages.is_empty() => Ready::WRITABLE,
            Kind::Datagram(_) => Ready::READABLE | Ready::WRITABLE,
        };
        if self.error.is_some() { state | Ready::CLOSED | Ready::ERROR } else { state }
    }

    pub(super) fn stream(&mut self) -> Option<&mut Stream> {
        match &mut self.kind {
            Kind::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    pub(super) fn peer_addr(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Stream(stream) if !stream.is_over() => Some(stream.peer_addr),
            Kind::Datagram(inbox) => inbox.peer,
            _ => None,
        }
    }

    /// The address to which packets for `to` go, if its family leads there.
    pub(super) fn destination(&self, to: SocketAddr) -> io::Result<IpAddr> {
        let is_mapped = |local: SocketAddr| self.is_v6 && local.ip().to_canonical().is_ipv4();
        let ip = match to.ip().to_canonical() {
            IpAddr::V6(ip) if ip.is_unspecified() && self.local.is_some_and(is_mapped) => Ipv4Addr::UNSPECIFIED.into(),
            ip => ip,
        };
        match (self.is_v6, to.is_ipv6(), ip.is_ipv6()) {
            (false, true, _) => Err(errno(libc::EAFNOSUPPORT)),
            (true, false, _) if self.protocol == Protocol::Tcp => Err(errno(libc::EINVAL)),
            (true, _, false) if self.is_only_v6 => Err(errno(libc::ENETUNREACH)),
            (true, _, true) if self.local.is_some_and(is_mapped) => Err(errno(libc::EAFNOSUPPORT)),
            _ => Ok(ip),
        }
    }

    /// An address as its family shows it: those of IPv4 are mapped to IPv6 if the socket is of that.
    pub(super) fn shown(&self, addr: SocketAddr) -> SocketAddr {
        match addr.ip() {
            IpAddr::V4(ip) if self.is_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), addr.port()),
            _ => addr,
        }
    }
}

impl Stream {
    pub(super) fn new(peer: Id, peer_host: u32, peer_addr: SocketAddr, capacity: usize) -> Self {
        Self {
            peer,
            peer_host,
            peer_addr,
            listener: None,
            inbox: VecDeque::new(),
            has_end: false,
            is_read_shut: false,
            unreported: 0,
            window_at: None,
            outbox: VecDeque::new(),
            unread: 0,
            capacity,
            last_arrival: Duration::ZERO,
            wants_room: false,
            is_write_shut: false,
            is_moving: false,
            stuck: None,
            is_reset: false,
            is_closed: false,
        }
    }

    pub(super) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.unread)
    }

    /// Returns `true` if the kernel has closed it: both ends have come, or it was reset. What has come may still be
    /// read.
    pub(super) fn is_over(&self) -> bool {
        self.is_reset || self.has_end && self.is_write_shut && self.outbox.is_empty()
    }

    fn ready(&self) -> Ready {
        let ended = self.has_end || self.is_read_shut;
        let table = [
            (!self.inbox.is_empty(), Ready::READABLE),
            (ended, Ready::READABLE | Ready::READ_CLOSED),
            (self.free() > 0 && !self.is_write_shut, Ready::WRITABLE),
            (self.is_write_shut, Ready::WRITABLE),
            (self.is_reset || ended && self.is_write_shut, Ready::CLOSED),
        ];
        table.into_iter().filter(|(holds, _)| *holds).fold(Ready::EMPTY, |all, (_, ready)| all | ready)
    }
}
