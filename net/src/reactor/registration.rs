//! `Registration`: an fd's entry in a reactor.
//!
//! Made by `Reactor::register`; held by `source`. The entry stays in this reactor until the fd is dropped, before or
//! after the end of the runtime. Any thread may wait on it: the events come from the threads that turn the reactor.
//!
//! In a child of fork(2) the entry is the parent's: waits fail (`check_process`), and a drop changes nothing in the
//! reactor.
//!
//! Rejected: an entry that moves to the reactor of the thread that waits, each time or after the end of its runtime.
//! A move adds a lock, a second kind of place in each table and a proof that no event is lost, and `into_std` and
//! `from_std` do the same in two calls.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::Reactor;
use super::cell::{Chunk, SlotLease};
use crate::slot::Slot;
use crate::sys::{Custody, Token};

/// One fd's entry in a reactor; dropping it removes the entry.
pub(crate) struct Registration {
    reactor: Reactor,
    token: Token,
    /// Where the slot is. Not a `SlotLease`, as its padding would be part of every socket.
    chunk: Arc<Chunk>,
    at: u8,
    custody: Custody,
    fd: RawFd,
}

impl Registration {
    pub(super) fn new(reactor: Reactor, lease: SlotLease, token: Token, fd: RawFd, custody: Custody) -> Registration {
        const { assert!(Chunk::LEN <= 1 << u8::BITS, "the place in a chunk is a byte") };
        let SlotLease { chunk, at } = lease;
        Registration { reactor, token, chunk, at: at as u8, custody, fd }
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot {
        self.chunk.slot(self.at.into())
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd
    }

    /// Returns an error in a child of fork(2) if the reactor was made before the fork.
    #[inline]
    pub(crate) fn check_process(&self) -> io::Result<()> {
        self.reactor.check_process()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.remove(self.fd, self.custody, self.token);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("fd", &self.fd)
            .field("ready", &self.slot().seen().ready())
            .field("waiting", &self.slot().waiting())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
