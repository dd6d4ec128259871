//! `Registration`: an fd's entry in a reactor.
//!
//! Made by `Reactor::register`; held by `source`. If its reactor has shut down, the entry moves to the reactor of the
//! next wait: a socket depends on the runtime that uses it now, not on the runtime of its first wait.
//!
//! # Why a move loses nothing
//!
//! The slot stays the same object, in the memory of its first reactor; what changes is the table and the poller that
//! lead to it. The order is *add to the new one, then remove from the old one*, under the lock of `home`:
//!
//! - A change of the fd before the `add`: the `add` makes the kernel report it again, edge-triggered or not, as long as
//!   it holds (epoll_ctl(2) looks at the fd, kevent(2) runs the filter). If it no longer holds, an operation has used
//!   it up, and there is nothing to report.
//! - A change after the `add` is reported by the new poller, whatever the old one still does.
//! - So an event that a thread has taken from the old poller and not delivered yet is not needed. If it is delivered
//!   before the old table forgets the token, it sets what is set anyway, and costs one operation at most; afterwards
//!   the token is stale and the event is dropped.
//! - An `add` that fails (`ENOSPC`, `ENOMEM`, `EEXIST`) leaves everything as it was, and the next try is put off.
//! - A table that shuts down marks its slots, under its lock. When the old table has forgotten the slot, and can set no
//!   other mark, its mark is taken back, under the lock of the new table and unless that has shut down too. After a
//!   failed `add` the two tables change roles.
//!
//! Locks: `home`, then one table at a time, then (in `Table`) the slot. No thread with a table or a slot locks `home`.
//!
//! In a child of fork(2) the entry moves from the parent's reactor to one of the child's in the same way, but changes
//! nothing in the parent's (`leave_parent`).
//!
//! # Rejected
//!
//! - Remove, then add: if the add fails the fd is nowhere, and going back may fail as well.
//! - A move to the reactor of the task that waits, for runtimes with a reactor per worker: each wait took a count, and
//!   a runtime with one reactor for all workers is faster.

use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, PoisonError};

use super::Reactor;
use super::place::{Chunk, Lease};
use crate::primitives::Mutex;
use crate::ready::Ready;
use crate::slot::Slot;
use crate::sys::{Custody, Token};

/// One fd's entry in a reactor; dropping it removes the entry.
pub(crate) struct Registration {
    /// Where the slot is. Not a `Lease`, as its padding would be part of every socket.
    chunk: Arc<Chunk>,
    at: u8,
    custody: Custody,
    fd: RawFd,
    home: Mutex<Home>,
}

struct Home {
    reactor: Reactor,
    token: Token,
}

impl Registration {
    pub(super) fn new(reactor: Reactor, lease: Lease, token: Token, fd: RawFd, custody: Custody) -> Registration {
        const { assert!(Chunk::LEN <= 1 << u8::BITS, "the place in a chunk is a byte") };
        let Lease { chunk, at } = lease;
        Registration { chunk, at: at as u8, custody, fd, home: Mutex::new(Home { reactor, token }) }
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot {
        self.chunk.slot(self.at.into())
    }

    fn lease(&self) -> Lease {
        Lease { chunk: Arc::clone(&self.chunk), at: self.at.into() }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd
    }

    /// Moves the entry to `reactor`, unless it is there. The mark of a shut-down reactor is left behind.
    ///
    /// After an error the entry is where it was.
    pub(crate) fn move_to(&self, reactor: Reactor, fd: BorrowedFd<'_>) -> io::Result<()> {
        if fd.as_raw_fd() != self.fd {
            let text = "the file descriptor was replaced by another while it was registered";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // Poison is ignored: no user code runs under this lock.
        let mut home = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if home.reactor.is(&reactor) {
            return Ok(());
        }
        let (token, known) =
            reactor.receive(fd, self.custody, self.lease()).inspect_err(|_| home.reactor.revive(self.slot()))?;
        let left = mem::replace(&mut *home, Home { reactor, token });
        left.reactor.release(self.fd, self.custody, left.token);
        home.reactor.revive(self.slot());
        drop(home);
        known.tell(self.slot());
        // May be the old reactor's last handle.
        drop(left);
        Ok(())
    }

    /// If the reactor belongs to a process that this one was forked from, ends the waits here. The waits continue
    /// elsewhere, as after a shutdown: the waiters of this process poll the slot afterwards. Tasks of the parent are
    /// left alone.
    #[cold]
    pub(crate) fn leave_parent(&self) {
        let home = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if !home.reactor.is_own() {
            self.slot().abandon(Ready::SHUTDOWN);
        }
    }

    /// Returns `true` if no event comes, because this is a child of the process that made the reactor.
    #[cold]
    pub(crate) fn is_left_in_parent(&self) -> bool {
        !self.home.lock().unwrap_or_else(PoisonError::into_inner).reactor.is_own()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Home { reactor, token } = self.home.get_mut().unwrap_or_else(PoisonError::into_inner);
        reactor.remove(self.fd, self.custody, *token);
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
