//! `Registration`: an fd's entry in a reactor. The entry follows the task that waits for it.
//!
//! Made by `Reactor::register`; held and asked by `source`. A multi-threaded runtime has a reactor per core, and an event
//! is cheap only where it reaches its task without another thread: a wake across cores costs more than fifty events, and
//! a reactor whose worker is stuck in a long poll is turned late. So when a task has been found waiting on another
//! reactor's thread several times in a row (`stay` says how many), the entry goes there, if that reactor is of the same
//! group: somebody else may go on waiting here, and only within a runtime is the other reactor sure to be turned for them.
//! It goes at once, and anywhere, if its reactor has shut down: a socket serves as long as the runtime does in which it is
//! used, not the one in which it first waited. An fd of the user's stays until then: what `poll` says of a file may be used
//! up by saying it (`/proc/self/mounts`), and two of the same fd are kept apart by where they are.
//!
//! # Why a move loses nothing
//!
//! The slot stays the same object; what changes is the table and the poller that lead to it. The order is *add to the new
//! one, then remove from the old one*, under the lock of `home`:
//!
//! - A change of the fd before the `add`: the kernel tells of it again as the answer to the `add`, edge-triggered or not,
//!   as long as it holds (epoll_ctl(2) looks at the fd, kevent(2) runs the filter). If it holds no longer, somebody's
//!   operation has used it up, and there is nothing to tell.
//! - A change after the `add` is told by the new poller, whatever the old one still does.
//! - So an event that a thread has taken from the old poller and not delivered yet is not needed. If it is delivered before
//!   the old table forgets the token, it sets what is set anyway, and costs one operation at most; afterwards the token is
//!   stale and the event is dropped.
//! - An `add` that fails (`ENOSPC`, `ENOMEM`, `EEXIST`) leaves everything as it was, and the next try is put off.
//! - A table that shuts down marks the slots it has, under its lock. The mark of the old one is taken back, under the lock
//!   of the new one and unless that has shut down too, when the old table has forgotten the slot and can set no other.
//!   After a failed `add` it is the other way round.
//!
//! Locks: `home`, then one table at a time, then (in `Table`) the slot. Nobody who has a table or a slot wants `home`.
//!
//! # Rejected
//!
//! - Remove, then add: if the add fails the fd is nowhere, and going back may fail as well.
//! - One poller for all cores: every event would have to find its core, and an idle worker to be chosen to wait.
//! - Asking the task where it runs, when the event is delivered: `net` knows no tasks, and the event has its cost by then.

use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::stay::Stay;
use super::{Reactor, ReactorId};
use crate::slot::Slot;
use crate::sys::Token;

/// One fd's entry in a reactor; dropping it removes the entry.
pub(crate) struct Registration {
    slot: Arc<Slot>,
    fd: RawFd,
    stay: Stay,
    /// The `ReactorId` of `home`, to compare with; changed under its lock.
    at: AtomicUsize,
    home: Mutex<Home>,
}

struct Home {
    reactor: Reactor,
    token: Token,
}

impl Registration {
    pub(super) fn new(reactor: Reactor, slot: Arc<Slot>, token: Token, fd: RawFd) -> Registration {
        let at = AtomicUsize::new(reactor.id().0);
        Registration { slot, fd, stay: Stay::default(), at, home: Mutex::new(Home { reactor, token }) }
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd
    }

    /// Counts a wait on a thread of the reactor `here`; true if the entry should go there.
    pub(crate) fn count_wait(&self, here: ReactorId) -> bool {
        // Relaxed: nothing is reached through it, and to be wrong is to move late or early.
        if self.at.load(Relaxed) == here.0 {
            self.stay.wait_at_home();
            return false;
        }
        here != ReactorId::NONE && self.stay.wait_away()
    }

    /// Moves the entry to `reactor` if that is of the same group.
    pub(crate) fn follow_to(&self, reactor: Reactor, fd: BorrowedFd<'_>) -> io::Result<()> {
        if self.home.lock().unwrap_or_else(PoisonError::into_inner).reactor.is_beside(&reactor) {
            return self.move_to(reactor, fd);
        }
        self.stay.end();
        Ok(())
    }

    /// Moves the entry to `reactor`, unless it is there. The mark of a shut-down reactor is left behind.
    ///
    /// After an error it is where it was.
    pub(crate) fn move_to(&self, reactor: Reactor, fd: BorrowedFd<'_>) -> io::Result<()> {
        if fd.as_raw_fd() != self.fd {
            let text = "the file descriptor was exchanged for another while it was registered";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // Poison is ignored: no user code runs under this lock.
        let mut home = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if home.reactor.id() == reactor.id() {
            return Ok(());
        }
        self.stay.end();
        let token = reactor.add(fd, &self.slot).inspect_err(|_| home.reactor.revive(&self.slot))?;
        self.at.store(reactor.id().0, Relaxed);
        let left = mem::replace(&mut *home, Home { reactor, token });
        left.reactor.remove(self.fd, left.token);
        home.reactor.revive(&self.slot);
        drop(home);
        // May be the old reactor's last handle.
        drop(left);
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Home { reactor, token } = self.home.get_mut().unwrap_or_else(PoisonError::into_inner);
        reactor.remove(self.fd, *token);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("fd", &self.fd)
            .field("ready", &self.slot.seen().ready())
            .field("waiting", &self.slot.waiting())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
