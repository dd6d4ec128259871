//! kqueue(2) for Apple systems and the BSDs.
//!
//! Called by `reactor`. An fd is added once, with both of its filters and `EV_CLEAR`, which is what epoll calls edge
//! triggered. The bell is an `EVFILT_USER` event, which needs no fd. There is no out-of-band filter that all of these
//! systems have, so `Ready::PRIORITY` is never reported.
//!
//! Rejected: one `kevent` call for both filters. A list stops at the first error unless every answer is asked for, and some
//! fds (the reading end of a pipe) have only one direction; two calls per fd and lifetime are simpler.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use super::width::{Filter, Flags};
use super::{Event, Token};
use crate::ready::Ready;

/// A token travels in the kernel's user pointer.
const _: () = assert!(size_of::<usize>() == 8, "the kqueue backend needs 64-bit pointers");

pub(crate) struct Poller {
    queue: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        // SAFETY: takes no pointer; every test that turns a reactor runs it.
        let fd = unsafe { libc::kqueue() };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this fd, so nobody else owns it; `a_dropped_reactor_closes_its_fds` checks that
        // it is closed once.
        let queue = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: `queue` is open, and F_SETFD takes a number; `a_dropped_reactor_closes_its_fds` runs it.
        let set = unsafe { libc::fcntl(queue.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        let poller = Poller { queue };
        poller.change(bell(libc::EV_ADD | libc::EV_CLEAR, 0))?;
        Ok(poller)
    }

    /// Reports what `fd` is ready for at once, and from then on every change.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        let flags = libc::EV_ADD | libc::EV_CLEAR;
        let read = self.change(change(fd.as_raw_fd(), libc::EVFILT_READ, flags, token));
        let write = self.change(change(fd.as_raw_fd(), libc::EVFILT_WRITE, flags, token));
        match (read, write) {
            (Ok(()), Ok(())) => Ok(()),
            (Ok(()), Err(e)) | (Err(e), Ok(())) if lacks_direction(&e) => Ok(()),
            (Err(e), _) | (_, Err(e)) => {
                self.remove(fd.as_raw_fd());
                Err(e)
            }
        }
    }

    /// Forgets `fd`. Needed although the fd is closed next: a late event would cost a lookup.
    pub(crate) fn remove(&self, fd: RawFd) {
        for filter in [libc::EVFILT_READ, libc::EVFILT_WRITE] {
            // The one failure is that the filter was never added.
            let _ = self.change(change(fd, filter, libc::EV_DELETE, Token::BELL));
        }
    }

    /// Fills `events` with what is ready, after at most `timeout`; `None` waits without limit. Never early.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.filled = 0;
        let limit = timeout.map(at_most_a_day);
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (list, room) = (events.list.as_mut_ptr(), events.list.len());
        // SAFETY: `list` points to `room` initialised entries that `events` owns and lends to this call alone; `limit` is
        // null or points to a local that outlives the call; `more_events_than_room_arrive_in_several_turns` runs it.
        let filled = unsafe { libc::kevent(self.queue.as_raw_fd(), ptr::null(), 0, list, room as _, limit) };
        if filled < 0 {
            return Err(io::Error::last_os_error());
        }
        events.filled = filled as usize;
        Ok(())
    }

    /// Makes one wait, the current or else the next one, return.
    pub(crate) fn notify(&self) {
        // The bell was added with the queue, so triggering it cannot fail.
        let _ = self.change(bell(0, libc::NOTE_TRIGGER));
    }

    /// The queue itself, readable when a wait would find something.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn change(&self, change: libc::kevent) -> io::Result<()> {
        let change = [change];
        // SAFETY: `change` is one initialised entry that outlives the call, which only reads it, and there is no room for
        // answers, so nothing is written; `a_lazily_registered_read_is_woken_by_data` runs it.
        let done = unsafe { libc::kevent(self.queue.as_raw_fd(), change.as_ptr(), 1, ptr::null_mut(), 0, ptr::null()) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// The kernel's answers to one wait.
pub(crate) struct Events {
    list: Box<[libc::kevent]>,
    filled: usize,
}

// SAFETY: the pointer in a kevent is a token, a number that is never followed;
// `concurrent_turns_deliver_every_event_once` moves one to another thread.
unsafe impl Send for Events {}
// SAFETY: as above, and nothing is changed through a shared reference.
unsafe impl Sync for Events {}

impl Events {
    pub(crate) fn with_capacity(capacity: usize) -> Events {
        let capacity = capacity.clamp(1, 1 << 20);
        Events { list: vec![empty(); capacity].into_boxed_slice(), filled: 0 }
    }

    /// How many answers there are, the bell's included.
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// The answer at `at`, or `None` if it is the bell's.
    pub(crate) fn get(&self, at: usize) -> Option<Event> {
        let event = &self.list[..self.filled][at];
        let token = Token::from_u64(event.udata as u64);
        (token != Token::BELL).then(|| Event { token, ready: translate(event) })
    }
}

/// Errors and hang-ups are shown as readable and writable too: the owner learns the cause from its own system call.
fn translate(event: &libc::kevent) -> Ready {
    let has = |flag| event.flags & flag != 0;
    if has(libc::EV_ERROR) {
        return Ready::CLOSED | Ready::ERROR;
    }
    let (mut ready, closed) = if event.filter == libc::EVFILT_READ {
        (Ready::READABLE, Ready::READ_CLOSED)
    } else {
        (Ready::WRITABLE, Ready::WRITE_CLOSED)
    };
    if has(libc::EV_EOF) {
        ready |= closed;
        if event.fflags != 0 {
            // The reason why the socket is gone: `fflags` is its errno.
            ready |= Ready::CLOSED | Ready::ERROR;
        }
    }
    ready
}

/// Whether a filter was refused because the fd can never do such a thing: its operations will say so themselves.
fn lacks_direction(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPIPE | libc::EINVAL | libc::ENOTSUP))
}

fn bell(flags: Flags, fflags: u32) -> libc::kevent {
    libc::kevent { fflags, ..change(0, libc::EVFILT_USER, flags, Token::BELL) }
}

fn change(fd: RawFd, filter: Filter, flags: Flags, token: Token) -> libc::kevent {
    libc::kevent { ident: fd as usize, filter, flags, udata: token.to_u64() as usize as *mut libc::c_void, ..empty() }
}

fn empty() -> libc::kevent {
    // SAFETY: all zeros is a valid kevent: integers, and a null pointer that is never followed;
    // `more_events_than_room_arrive_in_several_turns` runs it.
    unsafe { std::mem::zeroed() }
}

/// A wait that ends a day early is one turn without events: nobody notices, and no system refuses it.
fn at_most_a_day(limit: Duration) -> libc::timespec {
    let limit = limit.min(Duration::from_secs(24 * 3600));
    libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos() as libc::c_long }
}
