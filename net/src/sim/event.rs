//! `Events`: what the network does later, by its virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::Duration;

/// A socket, with or without a descriptor: a connection that is not accepted yet, or a closed one that still sends, has
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(super) u64);

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// What this socket has sent first, and has not been confirmed, comes to its peer.
    Arrive(Id),
    /// The peer hears how much this socket has read.
    Window(Id),
    /// The request of this socket for a connection comes to the listener.
    Request(Id),
    /// This socket hears that its request was accepted, by the socket that is then its peer, or refused.
    Answer(Id, Option<Id>),
    /// This socket, made by a listener, hears that the other one has got the answer, after this many failed tries.
    Confirmed(Id, Id, u32),
    /// What its peer had sent comes to this socket, whose peer is gone.
    Rest(Id, Rest),
    /// This socket hears that its connection is gone.
    Reset(Id),
    Datagram(Box<Datagram>),
    /// This socket hears that no socket receives at the address to which it has sent.
    Unreachable(Id, SocketAddr),
    /// This socket has room again after a write that was short by chance.
    Room(Id),
}

/// Data still on its way from a sender that is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rest {
    pub(super) bytes: Vec<u8>,
    /// Nothing comes after it.
    pub(super) is_end: bool,
    /// But that the connection is gone.
    pub(super) resets: bool,
}

/// A datagram on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Datagram {
    pub(super) sender: Id,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) hosts: (u32, u32),
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(Duration, u64, What)>>,
    /// Events of the same time come in the order in which they were added.
    sequence: u64,
}

impl Events {
    pub(super) fn add(&mut self, at: Duration, what: What) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, what)));
    }

    pub(super) fn next_time(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn take_due(&mut self, now: Duration) -> Option<What> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((.., what))| what)
    }
}
