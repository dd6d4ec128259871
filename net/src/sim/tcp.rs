//! The beginning and the end of a connection of TCP. The part in between is in `flow`.
//!
//! A request that gets no answer is sent again after 1, 2, 4 … seconds, seven times in all, as by Linux
//! (`tcp_syn_retries` in tcp(7)); then the connect has timed out. A full backlog drops requests, so that they come
//! again. A closed port refuses. A host that is down, and an address without a host, do not answer.
//!
//! A listener has a connection to accept when the client has confirmed the answer, by the third packet or by data. Else
//! the answer is sent again after 1, 2, 4 … seconds, five times (`tcp_synack_retries`); then it is forgotten.
//! Requests that were answered have a place in the backlog, so that no client that has connected is turned away.
//! (Linux may forget such a one, and its client learns of it by what it sends next.)

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mini_context::sim::{self, inject};

use super::errno;
use super::event::{Id, Rest, What};
use super::host::Protocol;
use super::link::Passage;
use super::network::Network;
use super::socket::{Connecting, Kind, Listener, Room, Socket, Stream};

/// How often a request is sent again.
const RETRIES: u32 = 6;

/// How often an answer is sent again.
const ANSWERS: u32 = 5;

/// After that time without a word of the client's its request is forgotten, if others need its place.
const FORGOTTEN: Duration = Duration::from_secs((1 << (ANSWERS + 1)) - 1);

impl Network {
    pub(crate) fn listen(&mut self, id: Id, backlog: usize, room: Room) -> io::Result<()> {
        self.source(id, [0, 0, 0, 0].into())?; // binds it, if nobody has
        let socket = self.socket(id);
        let (host, port) = (socket.host as usize, socket.local.expect("it is bound").port());
        if !matches!(socket.kind, Kind::Fresh | Kind::Listener(_)) {
            return Err(errno(libc::EINVAL));
        }
        self.hosts[host].listen(port, id)?;
        let socket = self.socket(id);
        socket.resize(room);
        match &mut socket.kind {
            Kind::Listener(listener) => listener.backlog = backlog,
            kind => *kind = Kind::Listener(Listener { backlog, queue: VecDeque::new(), half_open: BTreeMap::new() }),
        }
        Ok(())
    }

    /// Begins to connect; `connected` has the outcome.
    pub(crate) fn connect_stream(&mut self, id: Id, to: SocketAddr, room: Room) -> io::Result<()> {
        match self.socket(id).kind {
            Kind::Fresh => {}
            Kind::Connecting(_) => return Err(errno(libc::EALREADY)),
            Kind::Stream(_) | Kind::Listener(_) => return Err(errno(libc::EISCONN)),
            _ => return Err(errno(libc::EBADF)),
        }
        let to = self.target(id, to)?;
        let source = self.source(id, to.ip())?;
        let own = self.socket(id).host;
        let route = self.route(own, to.ip());
        let socket = self.socket(id);
        socket.local = Some(socket.shown(source));
        socket.resize(room);
        // To an address that nobody has, the way is that to nobody.
        let to_host = route.unwrap_or(u32::MAX);
        socket.kind = Kind::Connecting(Connecting { to, to_host, tries: 0, accepted: None });
        if to_host == own {
            self.request(id);
        } else {
            let delay = if route.is_some() { self.latency(own, to_host) } else { Duration::ZERO };
            self.later(delay, What::Request(id));
        }
        Ok(())
    }

    /// `WouldBlock` until there is an outcome.
    pub(crate) fn connected(&mut self, id: Id) -> io::Result<()> {
        let socket = self.socket(id);
        match (&socket.kind, socket.error.take()) {
            (_, Some(error)) => Err(errno(error)),
            (Kind::Connecting(_), _) => Err(io::ErrorKind::WouldBlock.into()),
            (Kind::Stream(_), _) => Ok(()),
            _ => Err(errno(libc::ENOTCONN)),
        }
    }

    /// A request comes to the host that it is for.
    pub(super) fn request(&mut self, id: Id) {
        let Some(Socket { host: from, kind: Kind::Connecting(connecting), .. }) = self.sockets.get(id) else { return };
        let (from, to_host, to, accepted) = (*from, connecting.to_host, connecting.to, connecting.accepted);
        if to_host == u32::MAX {
            return self.try_again(id);
        }
        match self.passage(from, to_host, || What::Request(id)) {
            Passage::Open if !self.loses(from, to_host, "a request to connect") => {}
            Passage::Holds => return,
            _ => return self.try_again(id),
        }
        let known = accepted.filter(|known| self.sockets.get(*known).is_some());
        known.into_iter().for_each(|known| self.renew(known));
        let listeners = self.hosts[to_host as usize].takers(Protocol::Tcp, to);
        let outcome = match known {
            Some(known) => Some(known),
            None if listeners.is_empty() => None,
            None => {
                let listener = listeners[self.random.below(listeners.len() as u64) as usize].id;
                let Some(made) = self.prepare(listener, id) else { return self.try_again(id) };
                Some(made)
            }
        };
        if from == to_host {
            return self.answer(id, outcome);
        }
        let delay = self.latency(to_host, from);
        self.later(delay, What::Answer(id, outcome));
        if let Kind::Connecting(connecting) = &mut self.socket(id).kind {
            connecting.accepted = outcome;
        }
    }

    /// Makes a connection whose client has not confirmed it. `None` if the backlog is full.
    fn prepare(&mut self, listener: Id, client: Id) -> Option<Id> {
        let from = self.socket(client);
        let (peer_host, room, peer) = (from.host, from.room, from.local.expect("it connects from somewhere"));
        let Kind::Connecting(Connecting { to, .. }) = from.kind else { return None };
        if !self.has_place(listener) {
            return None;
        }
        let own = self.socket(listener);
        let peer = own.shown(SocketAddr::new(peer.ip().to_canonical(), peer.port()));
        let (mut made, local) = (Socket::new(own.host, own.is_v6, Protocol::Tcp, own.room), own.shown(to));
        (made.local, made.resets, made.room) = (Some(local), own.resets, own.room);
        let mut stream = Stream::new(client, peer_host, peer, own.room.send + room.receive);
        stream.listener = Some(listener);
        made.kind = Kind::Stream(stream);
        let id = self.sockets.add(made);
        self.listener(listener)?.half_open.insert(id, sim::now());
        Some(id)
    }

    /// Its client asks again.
    fn renew(&mut self, id: Id) {
        let stream = self.sockets.get_mut(id).and_then(Socket::stream);
        if let Some(listener) = stream.and_then(|stream| stream.listener)
            && let Some(Listener { half_open, .. }) = self.listener(listener)
        {
            half_open.insert(id, sim::now());
        }
    }

    fn has_place(&mut self, listener: Id) -> bool {
        loop {
            let Some(Listener { backlog, queue, half_open }) = self.listener(listener) else { return false };
            // One more than asked for, as Linux has it.
            if queue.len() + half_open.len() <= *backlog {
                return true;
            }
            let Some((&oldest, &since)) = half_open.iter().min_by_key(|(_, since)| **since) else { return false };
            if sim::now() - since < FORGOTTEN {
                return false;
            }
            self.release(oldest);
        }
    }

    /// The third packet of a handshake comes, from `client` to the connection that was made: the one that the client
    /// has sent by itself, or after `tries` without success one that answers another answer.
    pub(super) fn confirmed(&mut self, id: Id, client: Id, tries: u32) {
        let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(id) else {
            return self.deny(id, client, tries);
        };
        let (own, client_host) = (*host, stream.peer_host);
        if stream.listener.is_none() {
            return;
        }
        if tries > ANSWERS {
            return self.release(id);
        }
        match self.passage(client_host, own, || What::Confirmed(id, client, tries)) {
            Passage::Holds => return,
            // Another answer finds the client as it is now.
            Passage::Open if tries > 0 && self.passage(own, client_host, || What::Window(id)) != Passage::Open => {}
            Passage::Open if tries > 0 && !self.is_connected(client, id) => return self.release(id),
            Passage::Open if !self.loses(client_host, own, "the third packet of a handshake") => {
                return self.establish(id);
            }
            _ => {}
        }
        self.later(Duration::from_secs(1 << tries), What::Confirmed(id, client, tries + 1));
    }

    fn is_connected(&mut self, id: Id, peer: Id) -> bool {
        let stream = self.sockets.get_mut(id).and_then(Socket::stream);
        stream.is_some_and(|stream| stream.peer == peer && !stream.is_reset)
    }

    /// No socket knows the connection that the client has confirmed.
    fn deny(&mut self, made: Id, client: Id, tries: u32) {
        if tries == 0
            && self.is_connected(client, made)
            && let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(client)
        {
            let (to, from) = (*host, stream.peer_host);
            if self.passage(to, from, || What::Confirmed(made, client, 0)) == Passage::Open {
                self.send_reset(from, to, client, sim::now());
            }
        }
    }

    /// Something of the client's comes to a connection: now it waits to be accepted, if it did not.
    pub(super) fn establish(&mut self, id: Id) {
        let stream = self.sockets.get_mut(id).and_then(Socket::stream);
        let Some(listener) = stream.and_then(|stream| stream.listener.take()) else { return };
        if let Some(Listener { half_open, queue, .. }) = self.listener(listener) {
            half_open.remove(&id);
            queue.push_back(id);
        }
        self.report(listener);
        self.report_falsely(listener);
    }

    /// The answer to a request comes back. `None` refuses.
    pub(super) fn answer(&mut self, id: Id, accepted: Option<Id>) {
        let Some(Socket { host, kind: Kind::Connecting(connecting), room, .. }) = self.sockets.get(id) else {
            return self.decline(id, accepted);
        };
        let (own, to_host, to, room) = (*host, connecting.to_host, connecting.to, *room);
        match self.passage(to_host, own, || What::Answer(id, accepted)) {
            Passage::Open => {}
            Passage::Holds => return,
            Passage::Cut => return self.try_again(id),
        }
        let Some(peer) = accepted else { return self.fail_connect(id, libc::ECONNREFUSED) };
        let receive = self.sockets.get(peer).map_or(0, |peer| peer.room.receive);
        let socket = self.socket(id);
        let to = socket.shown(to);
        socket.kind = Kind::Stream(Stream::new(peer, to_host, to, room.send + receive));
        self.report(id);
        if own == to_host {
            return self.establish(peer);
        }
        let comes = sim::now() + self.latency(own, to_host);
        if let Some(stream) = self.socket(id).stream() {
            stream.last_arrival = comes;
        }
        self.events.add(comes, What::Confirmed(peer, id, 0));
    }

    /// An answer reaches a host on which no task waits for it any more: the connection that was made is reset.
    fn decline(&mut self, id: Id, accepted: Option<Id>) {
        let peer = self.sockets.get_mut(id).and_then(Socket::stream).map(|stream| stream.peer);
        let Some(made) = accepted.filter(|_| peer != accepted) else { return };
        let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(made) else { return };
        let (server, client) = (*host, stream.peer_host);
        if self.passage(server, client, || What::Answer(id, accepted)) == Passage::Open {
            self.send_reset(client, server, made, sim::now());
        }
    }

    /// No answer came.
    fn try_again(&mut self, id: Id) {
        let Kind::Connecting(connecting) = &mut self.socket(id).kind else { return };
        let wait = Duration::from_secs(1 << connecting.tries);
        connecting.tries += 1;
        if connecting.tries > RETRIES + 1 {
            return self.fail_connect(id, libc::ETIMEDOUT);
        }
        self.later(wait, What::Request(id));
    }

    fn fail_connect(&mut self, id: Id, error: libc::c_int) {
        let socket = self.socket(id);
        (socket.kind, socket.error) = (Kind::Fresh, Some(error));
        self.report(id);
    }

    /// Takes a connection out of the queue, and returns it with the peer's address.
    pub(crate) fn accept(&mut self, id: Id) -> io::Result<(Id, SocketAddr)> {
        loop {
            let listener = self.listener(id).ok_or_else(|| errno(libc::EINVAL))?;
            let next = listener.queue.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
            if let Some(stream) = self.sockets.get_mut(next).and_then(Socket::stream) {
                return Ok((next, stream.peer_addr));
            }
        }
    }

    /// There was no descriptor for it.
    pub(crate) fn put_back(&mut self, id: Id, connection: Id) {
        if let Some(listener) = self.listener(id) {
            listener.queue.push_front(connection);
        }
    }

    fn listener(&mut self, id: Id) -> Option<&mut Listener> {
        match &mut self.sockets.get_mut(id)?.kind {
            Kind::Listener(listener) => Some(listener),
            _ => None,
        }
    }

    /// It makes no connection of what it has made.
    pub(super) fn forget(&mut self, listener: Id, connection: Id) {
        if let Some(listener) = self.listener(listener) {
            listener.half_open.remove(&connection);
        }
    }

    /// Connections that were not accepted are reset.
    pub(super) fn close_listener(&mut self, id: Id) {
        let Some(Listener { queue, half_open, .. }) = self.listener(id) else { return };
        let waiting: Vec<Id> = queue.drain(..).chain(std::mem::take(half_open).into_keys()).collect();
        self.release(id);
        for connection in waiting {
            self.cut_off(connection);
        }
    }

    pub(super) fn close_stream(&mut self, id: Id) {
        let resets = self.socket(id).resets;
        let Some(stream) = self.socket(id).stream() else { return };
        if resets || !stream.inbox.is_empty() {
            self.cut_off(id);
            return;
        }
        stream.is_closed = true;
        if stream.is_reset {
            return self.release(id);
        }
        let is_over = stream.is_write_shut && stream.outbox.is_empty();
        self.shut_write(id);
        if is_over {
            self.release(id);
        }
    }

    /// Closes a connection, whose peer hears of it as a reset, if it hears of it. Says whether a reset is on its way.
    pub(super) fn cut_off(&mut self, id: Id) -> bool {
        let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(id) else { return false };
        let (own, peer, peer_host, after) = (*host, stream.peer, stream.peer_host, stream.last_arrival);
        let (is_known, rest) = (stream.is_reset, stream.on_its_way());
        self.release(id);
        !is_known && self.send_rest((own, peer_host), peer, after, rest, true)
    }

    /// Sends what is on its way after `after`, and then, with `resets`, that the connection is gone. Says whether a
    /// reset is on its way, alone.
    fn send_rest(&mut self, (from, to): (u32, u32), peer: Id, after: Duration, mut rest: Rest, resets: bool) -> bool {
        if !rest.bytes.is_empty() || rest.is_end {
            rest.resets = resets && !self.loses(from, to, "a reset");
            self.events.add(after, What::Rest(peer, rest));
            return false;
        }
        resets && self.send_reset(from, to, peer, after)
    }

    /// What was on its way when the sender's end of the connection went comes all the same.
    pub(super) fn take_rest(&mut self, id: Id, rest: Rest) {
        let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(id) else { return };
        let (own, peer_host) = (*host, stream.peer_host);
        if self.passage(peer_host, own, || What::Rest(id, rest.clone())) != Passage::Open {
            return;
        }
        self.establish(id);
        if let Some(stream) = self.socket(id).stream().filter(|stream| !stream.is_reset) {
            stream.inbox.extend(rest.bytes);
            stream.has_end |= rest.is_end;
            self.report(id);
        }
        if rest.resets {
            self.reset(id);
        }
    }

    /// Tells `peer`, at the earliest after `after`, that its connection is gone. Says whether that is on its way.
    pub(super) fn send_reset(&mut self, from: u32, to: u32, peer: Id, after: Duration) -> bool {
        if from == to {
            self.reset(peer);
            return true;
        }
        let passage = self.passage(from, to, || What::Reset(peer));
        let comes = passage == Passage::Open && !self.loses(from, to, "a reset");
        if comes {
            let at = after.max(sim::now() + self.latency(from, to));
            self.events.add(at, What::Reset(peer));
        }
        comes || passage == Passage::Holds
    }

    /// A reset comes.
    pub(super) fn reset(&mut self, id: Id) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        match &mut socket.kind {
            Kind::Stream(stream) if stream.is_reset => return,
            Kind::Stream(stream) if stream.listener.is_some() => return self.release(id),
            Kind::Stream(stream) => {
                // To a peer that has ended it says that it hears nothing any more (RFC 9293, 3.10.7.4).
                let error = if stream.has_end { libc::EPIPE } else { libc::ECONNRESET };
                stream.give_up();
                socket.error = Some(error);
            }
            Kind::Connecting(_) => return self.fail_connect(id, libc::ECONNREFUSED),
            _ => return,
        }
        self.drop_if_closed(id);
        self.report(id);
    }

    /// A connection that the program has closed is not kept once it is over.
    pub(super) fn drop_if_closed(&mut self, id: Id) {
        let is_over = |stream: &mut Stream| stream.is_closed && (stream.is_reset || stream.outbox.is_empty());
        if self.sockets.get_mut(id).and_then(Socket::stream).is_some_and(is_over) {
            self.release(id);
        }
    }

    /// A host goes down. With `resets` its kernel closes the connections; otherwise the peers notice nothing. What is
    /// on its way comes.
    pub(super) fn take_down(&mut self, host: u32, resets: bool) {
        let all: Vec<Id> =
            self.sockets.iter_mut().filter(|(_, socket)| socket.host == host).map(|(id, _)| id).collect();
        for id in all {
            let socket = self.socket(id);
            let has_fd = socket.fd.is_some();
            let peer = match &socket.kind {
                Kind::Stream(stream) => Some((stream.peer, stream.peer_host, stream.last_arrival, stream.on_its_way())),
                Kind::Connecting(Connecting { accepted, to_host, .. }) => {
                    accepted.map(|made| (made, *to_host, Duration::ZERO, Rest::default()))
                }
                _ => None,
            };
            if let Some((peer, to, after, rest)) = peer.filter(|(_, to, ..)| *to != host) {
                self.send_rest((host, to), peer, after, rest, resets);
            }
            if has_fd {
                self.socket(id).kind = Kind::Dead;
                self.report(id);
            } else {
                self.sockets.remove(id);
            }
        }
        self.hosts[host as usize].clear();
        self.hosts[host as usize].is_up = false;
        self.probe_all(|_, peer_host| peer_host == host);
    }
}

impl Stream {
    /// What has left the host and not come yet: it comes whatever becomes of the sender.
    fn on_its_way(&self) -> Rest {
        let mut rest = Rest::default();
        for segment in self.outbox.iter().filter(|segment| !segment.has_come && self.stuck.is_none()) {
            rest.bytes.extend_from_slice(&segment.bytes);
            rest.is_end |= segment.is_end;
        }
        rest
    }

    /// The connection is gone. What has come may still be read.
    pub(super) fn give_up(&mut self) {
        (self.is_reset, self.has_end, self.is_write_shut) = (true, true, true);
        self.outbox.clear();
    }
}

/// Draws whether a piece is shorter than it could be; how long it is then, and after what time the rest may come.
pub(super) fn draw_piece(network: &mut Network, length: usize, what: &str, id: Id) -> Option<(usize, Duration)> {
    if !network.is_rough || length < 2 || network.faults.below(16) != 0 {
        return None;
    }
    let piece = 1 + network.faults.below(length as u64 - 1) as usize;
    let gap = Duration::from_micros(1 + network.faults.below(50));
    let text = || format!("{what} of {piece} of {length} bytes {}", network.way(id));
    inject(text).then_some((piece, gap))
}
