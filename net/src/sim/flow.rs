//! A connection of TCP while it is up: bytes come in order and once, or the connection breaks.
//!
//! The program's bytes go into the outbox in segments, each with its time of arrival. If the link is cut, a packet is
//! lost or the peer's host is down, the first segment that is not confirmed is sent again after 0.2, 0.4, 0.8 …
//! seconds, at most every 120; after 924.6 seconds the connection has timed out (`tcp_retries2` in tcp(7)). The sender
//! may have as many bytes on the way and unread as both buffers hold.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use mini_context::sim;

use super::errno;
use super::event::{Id, What};
use super::link::Passage;
use super::network::Network;
use super::socket::{Kind, Segment, Socket};
use super::tcp::draw_piece;

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(120);

/// The sum of the waits of fifteen retries.
const GIVES_UP: Duration = Duration::from_millis(924_600);

impl Network {
    /// Takes what has come, or with `peeks` a copy: `into` says how many of the bytes that it is given it has taken.
    pub(super) fn recv(&mut self, id: Id, into: &mut dyn FnMut(&[u8]) -> usize, peeks: bool) -> io::Result<usize> {
        let Socket { kind, error, .. } = self.socket(id);
        let stream = match kind {
            Kind::Stream(stream) => stream,
            Kind::Dead => return Err(errno(libc::ECONNRESET)),
            _ => return Err(errno(error.take().unwrap_or(libc::ENOTCONN))),
        };
        if stream.inbox.is_empty() {
            return match error.take() {
                Some(error) if error != libc::EPIPE => Err(errno(error)),
                _ if stream.has_end || stream.is_read_shut => Ok(0),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let (first, second) = stream.inbox.as_slices();
        let copied = into(first) + into(second);
        if !peeks {
            stream.inbox.drain(..copied);
            self.note_read(id, copied);
        }
        Ok(copied)
    }

    /// The peer may send as much more, once it knows.
    fn note_read(&mut self, id: Id, count: usize) {
        let own = self.socket(id).host;
        let Some(stream) = self.socket(id).stream() else { return };
        let (peer, peer_host) = (stream.peer, stream.peer_host);
        if own == peer_host {
            return self.open_window(peer, count);
        }
        stream.unreported += count;
        if stream.window_at.is_none() {
            let at = sim::now() + self.latency(own, peer_host);
            if let Some(stream) = self.socket(id).stream() {
                stream.window_at = Some(at);
            }
            if self.sockets.get_mut(peer).and_then(Socket::stream).is_some_and(|peer| peer.wants_room) {
                self.events.add(at, What::Window(id));
            }
        }
    }

    /// The peer hears how much `id` has read, if it is time.
    pub(super) fn tell_window(&mut self, id: Id) {
        let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(id) else { return };
        let (own, peer, peer_host) = (*host, stream.peer, stream.peer_host);
        if stream.window_at.is_none_or(|at| at > sim::now()) {
            return;
        }
        match self.passage(own, peer_host, || What::Window(id)) {
            Passage::Open => {}
            Passage::Holds => return,
            Passage::Cut => return self.probe(peer),
        }
        let Some(stream) = self.socket(id).stream() else { return };
        stream.window_at = None;
        let count = std::mem::take(&mut stream.unreported);
        self.open_window(peer, count);
    }

    /// `id` waits for room: it wakes when it hears of some.
    fn await_window(&mut self, id: Id) {
        let Some(stream) = self.socket(id).stream() else { return };
        stream.wants_room = true;
        let peer = stream.peer;
        match self.sockets.get_mut(peer).and_then(Socket::stream).map(|reader| reader.window_at) {
            Some(Some(at)) => self.events.add(at.max(sim::now()), What::Window(peer)),
            Some(None) => {}
            None => self.probe(id),
        }
    }

    /// If `id` waits for room of which it may never hear, it asks, as for what it has sent: so it finds out that its
    /// peer is gone. While all is well no socket has to ask, and a deadlock is seen as one.
    pub(super) fn probe(&mut self, id: Id) {
        let Some(stream) = self.sockets.get_mut(id).and_then(Socket::stream) else { return };
        if stream.wants_room && !stream.is_reset && !std::mem::replace(&mut stream.is_moving, true) {
            self.later(FIRST_RETRY, What::Arrive(id));
        }
    }

    /// Those on one host that wait for room on the other ask for it.
    pub(super) fn probe_all(&mut self, is_meant: impl Fn(u32, u32) -> bool) {
        let waits = |(id, socket): (Id, &mut Socket)| {
            let host = socket.host;
            socket.stream().filter(|stream| stream.wants_room && is_meant(host, stream.peer_host)).map(|_| id)
        };
        let all: Vec<Id> = self.sockets.iter_mut().filter_map(waits).collect();
        all.into_iter().for_each(|id| self.probe(id));
    }

    fn open_window(&mut self, id: Id, count: usize) {
        let Some(stream) = self.sockets.get_mut(id).and_then(Socket::stream) else { return };
        stream.unread = stream.unread.saturating_sub(count);
        if std::mem::take(&mut stream.wants_room) {
            self.report(id);
        }
    }

    /// Takes as much as there is room for. `bytes` are all that the program wants to send.
    pub(super) fn send(&mut self, id: Id, bytes: &mut dyn Iterator<Item = &[u8]>) -> io::Result<usize> {
        if let Some(peer) = self.socket(id).stream().map(|stream| stream.peer) {
            self.tell_window(peer);
        }
        let Socket { kind, error, .. } = self.socket(id);
        if let Some(error) = error.take() {
            return Err(errno(error));
        }
        let stream = match kind {
            Kind::Stream(stream) if stream.is_write_shut => return Err(errno(libc::EPIPE)),
            Kind::Stream(stream) => stream,
            Kind::Connecting(_) => return Err(io::ErrorKind::WouldBlock.into()),
            Kind::Dead => return Err(errno(libc::ECONNRESET)),
            _ => return Err(errno(libc::EPIPE)),
        };
        let room = stream.free();
        let mut taken = Vec::new();
        let mut asked = 0;
        for slice in bytes {
            asked += slice.len();
            taken.extend_from_slice(&slice[..slice.len().min(room - taken.len())]);
        }
        if taken.is_empty() && asked > 0 {
            self.await_window(id);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if taken.len() < asked {
            self.await_window(id);
        } else if let Some((piece, gap)) = draw_piece(self, taken.len(), "a short write", id) {
            taken.truncate(piece);
            self.later(gap, What::Room(id));
        }
        let sent = taken.len();
        if sent > 0 {
            self.push(id, taken, false);
        }
        Ok(sent)
    }

    /// Puts bytes on their way, now and then in two segments.
    fn push(&mut self, id: Id, mut bytes: Vec<u8>, is_end: bool) {
        if let Some((piece, gap)) = draw_piece(self, bytes.len(), "a first segment", id) {
            let rest = bytes.split_off(piece);
            self.push_segment(id, bytes, false, Duration::ZERO);
            return self.push_segment(id, rest, is_end, gap);
        }
        self.push_segment(id, bytes, is_end, Duration::ZERO);
    }

    fn push_segment(&mut self, id: Id, bytes: Vec<u8>, is_end: bool, gap: Duration) {
        let own = self.socket(id).host;
        let Some(peer_host) = self.socket(id).stream().map(|stream| stream.peer_host) else { return };
        let delay = gap + self.latency(own, peer_host);
        let Some(stream) = self.socket(id).stream() else { return };
        let arrives = stream.last_arrival.max(sim::now() + delay);
        stream.last_arrival = arrives;
        stream.unread += bytes.len();
        stream.outbox.push_back(Segment { bytes, is_end, arrives, has_come: false });
        if std::mem::replace(&mut stream.is_moving, true) {
            return;
        }
        if arrives <= sim::now() { self.arrive(id) } else { self.events.add(arrives, What::Arrive(id)) }
    }

    /// What `id` has sent first comes to its peer, and what is due behind it.
    pub(super) fn arrive(&mut self, id: Id) {
        let Some(Socket { host, kind: Kind::Stream(stream), .. }) = self.sockets.get(id) else { return };
        let (own, peer, peer_host) = (*host, stream.peer, stream.peer_host);
        if stream.is_reset {
            return;
        }
        match self.passage(own, peer_host, || What::Arrive(id)) {
            Passage::Open if !self.loses(own, peer_host, "a segment") => {}
            Passage::Holds => return,
            _ => return self.retry(id),
        }
        match self.sockets.get(peer).map(|peer| &peer.kind) {
            Some(Kind::Stream(peer)) if !peer.is_reset => {}
            _ => {
                if !self.send_reset(peer_host, own, id, sim::now()) {
                    self.retry(id);
                }
                return;
            }
        }
        self.establish(peer);
        if !self.deliver(id, peer) {
            return;
        }
        match self.passage(peer_host, own, || What::Arrive(id)) {
            Passage::Open => {
                self.confirm(id);
                self.tell_window(peer);
            }
            Passage::Holds => {}
            Passage::Cut => self.retry(id),
        }
    }

    /// Puts what is due into the inbox of the peer. Says whether the connection is still up.
    fn deliver(&mut self, id: Id, peer: Id) -> bool {
        let now = sim::now();
        let Some(stream) = self.socket(id).stream() else { return false };
        let due: Vec<(Vec<u8>, bool)> = stream
            .outbox
            .iter_mut()
            .take_while(|segment| segment.arrives <= now)
            .filter(|segment| !segment.has_come)
            .map(|segment| {
                segment.has_come = true;
                (std::mem::take(&mut segment.bytes), segment.is_end)
            })
            .collect();
        let Some(receiver) = self.socket(peer).stream() else { return false };
        let has_bytes = due.iter().any(|(bytes, _)| !bytes.is_empty());
        if has_bytes && (receiver.is_closed || receiver.is_read_shut && receiver.is_write_shut) {
            if !self.refuse(id, peer) {
                self.retry(id);
            }
            return false;
        }
        for (bytes, is_end) in due {
            receiver.inbox.extend(bytes);
            receiver.has_end |= is_end;
        }
        self.report(peer);
        self.report_falsely(peer);
        true
    }

    /// Bytes of `id` come to `peer`, where no task will read them: both halves are shut, or it is closed. Says whether
    /// a reset is on its way.
    fn refuse(&mut self, id: Id, peer: Id) -> bool {
        if self.socket(peer).fd.is_none() {
            return self.cut_off(peer);
        }
        let (own, peer_host) = (self.socket(id).host, self.socket(peer).host);
        self.reset(peer);
        self.send_reset(peer_host, own, id, sim::now())
    }

    /// The sender hears what has come.
    fn confirm(&mut self, id: Id) {
        let Some(stream) = self.socket(id).stream() else { return };
        while stream.outbox.front().is_some_and(|segment| segment.has_come) {
            stream.outbox.pop_front();
        }
        stream.stuck = None;
        match stream.outbox.front().map(|segment| segment.arrives) {
            Some(arrives) => self.events.add(arrives, What::Arrive(id)),
            None => stream.is_moving = false,
        }
        self.drop_if_closed(id);
    }

    /// No confirmation came.
    fn retry(&mut self, id: Id) {
        let now = sim::now();
        let stream = self.sockets.get_mut(id).and_then(Socket::stream);
        let Some(stream) = stream.filter(|stream| !stream.is_reset) else { return };
        let (since, tries) = stream.stuck.unwrap_or((now, 0));
        if now - since >= GIVES_UP {
            stream.give_up();
            let peer = stream.peer;
            self.socket(id).error = Some(libc::ETIMEDOUT);
            self.probe(peer);
            self.drop_if_closed(id);
            return self.report(id);
        }
        stream.stuck = Some((since, tries + 1));
        let wait = FIRST_RETRY.saturating_mul(1 << tries.min(16)).min(LAST_RETRY);
        self.later(wait, What::Arrive(id));
    }

    pub(crate) fn shutdown(&mut self, id: Id, how: Shutdown) -> io::Result<()> {
        let Some(stream) = self.socket(id).stream() else { return Err(errno(libc::ENOTCONN)) };
        if stream.is_over() {
            return Err(errno(libc::ENOTCONN));
        }
        stream.is_read_shut |= how != Shutdown::Write;
        if how != Shutdown::Read {
            self.shut_write(id);
        }
        self.report(id);
        Ok(())
    }

    /// Sends the end, unless it was sent.
    pub(super) fn shut_write(&mut self, id: Id) {
        let Some(stream) = self.socket(id).stream() else { return };
        if !std::mem::replace(&mut stream.is_write_shut, true) {
            self.push_segment(id, Vec::new(), true, Duration::ZERO);
        }
    }
}
