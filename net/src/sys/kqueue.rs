//! kqueue(2) for Apple systems and the BSDs.
//!
//! Called by `reactor`. An fd is added once, with both of its filters and `EV_CLEAR`, which is what epoll calls edge
//! triggered. The notifier (`notifier`) is an event like any other. There is no out-of-band filter that all of these
//! systems have, so `Ready::PRIORITY` is never reported.
//!
//! Each change of a call gets an answer (`EV_RECEIPT`), in order: without that the first failure ends the list,
//! and some fds have only one direction. There are as many answers as there is room for, so such a call never waits,
//! and takes no event that another thread should have.
//!
//! The hard part: a kqueue accepts an fd that is already in it. The second `EV_ADD` replaces the token, and the first
//! registration gets no event any more. So `added` records which numbers are registered, and for which token. If the fd
//! is the user's, it may have been closed, which removes its filters, and its number reused; then an `EV_ENABLE` asks
//! the kernel whether the filters are there, and leaves the token as it was.
//!
//! A registration with `Custody::Users` removes its number only if `added` still names its token. Such a number is
//! added, looked up and removed under the lock. A number with `Custody::Ours` needs no lock for the calls: no other fd
//! can get it before it is removed, and a second `add` is refused.
//!
//! A child of fork(2) does not inherit a kqueue. Another file has its number there, and must not be closed.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bsd::{self, kevent};
use super::width::{Filter, Flags};
use super::{Custody, Event, Token, fork::Process};
use crate::ready::Ready;

use notifier::Notifier;

#[deny(unsafe_code)]
mod notifier;

/// A token travels in the kernel's user pointer.
const _: () = assert!(size_of::<usize>() == 8, "the kqueue backend needs 64-bit pointers");

/// `true` if a read that brings less than was asked for has brought all there is. No event reports urgent data, where a
/// read ends. Not all systems report that a read ended at descriptors that no caller wanted.
pub(crate) const SHORT_READS_TELL: bool = false;

/// Both directions.
const FILTERS: [Filter; 2] = [bsd::EVFILT_READ, bsd::EVFILT_WRITE];

pub(crate) struct Poller {
    /// Dropped in the process that has opened it.
    queue: ManuallyDrop<OwnedFd>,
    process: Process,
    notifier: Notifier,
    added: Mutex<HashMap<RawFd, Entry>>,
}

/// The registration that a number was added for.
#[derive(Clone, Copy)]
struct Entry {
    token: Token,
    custody: Custody,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let queue = open()?;
        let notifier = Notifier::new(&queue)?;
        Ok(Poller { queue: ManuallyDrop::new(queue), process: Process::current(), notifier, added: Mutex::default() })
    }

    /// Reports what `fd` is ready for at once, and from then on every change. Returns its permanent readiness, which
    /// will not be reported.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: Token, custody: Custody) -> io::Result<Ready> {
        let number = fd.as_raw_fd();
        let mut added = self.added();
        if added.get(&number).is_some_and(|entry| self.is_in(number, *entry)) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        added.insert(number, Entry { token, custody });
        let lock = match custody {
            Custody::Ours => {
                drop(added);
                None
            }
            Custody::Users => Some(added),
        };
        self.add_new(number, token).inspect_err(|_| {
            self.delete(number);
            lock.unwrap_or_else(|| self.added()).remove(&number);
        })
    }

    /// Returns `true` if the number still belongs to the fd that was added.
    fn is_in(&self, number: RawFd, Entry { token, custody }: Entry) -> bool {
        if custody == Custody::Ours {
            return true;
        }
        let mut both = FILTERS.map(|filter| change(number, filter, bsd::EV_ENABLE, token));
        // If the kernel says nothing, it is better to refuse than to take the number from another registration.
        apply(&self.queue, &mut both).is_err() || both.iter().any(|answer| refusal(answer).is_none())
    }

    fn add_new(&self, fd: RawFd, token: Token) -> io::Result<Ready> {
        let flags = bsd::EV_ADD | bsd::EV_CLEAR;
        let mut both = FILTERS.map(|filter| change(fd, filter, flags, token));
        apply(&self.queue, &mut both)?;
        match both.map(|answer| refusal(&answer)) {
            [Some(error), Some(_)] => Err(error),
            [Some(error), None] => refused(error, Ready::READABLE | Ready::READ_CLOSED),
            [None, Some(error)] => refused(error, Ready::WRITABLE | Ready::WRITE_CLOSED),
            [None, None] => Ok(Ready::EMPTY),
        }
    }

    /// Forgets `fd`, which was added for `token`, unless the number now belongs to another fd. Needed although the fd
    /// is closed next: a late event would cost a lookup.
    pub(crate) fn remove(&self, fd: RawFd, token: Token, custody: Custody) {
        if custody == Custody::Ours {
            self.delete(fd);
            self.added().remove(&fd);
            return;
        }
        let mut added = self.added();
        if added.get(&fd).is_some_and(|entry| entry.token == token) {
            self.delete(fd);
            added.remove(&fd);
        }
    }

    fn delete(&self, fd: RawFd) {
        let mut both = FILTERS.map(|filter| change(fd, filter, bsd::EV_DELETE, Token::NOTIFIER));
        // Fails only if a filter was never added.
        let _ = apply(&self.queue, &mut both);
    }

    /// Poison is ignored: no code panics under this lock.
    fn added(&self) -> MutexGuard<'_, HashMap<RawFd, Entry>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `events` with what is ready, after at most `timeout`; `None` waits without limit. Never early.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.filled = 0;
        let limit = timeout.map(at_most_a_day);
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (list, room) = (events.list.as_mut_ptr(), events.list.len());
        // SAFETY: `list` points to `room` initialised entries that `events` owns and lends to this call alone; `limit`
        // is null or points to a local that outlives the call; `more_events_than_room_arrive_in_several_turns` runs it.
        let filled = unsafe { bsd::kevent(self.queue.as_raw_fd(), ptr::null(), 0, list, room as _, limit) };
        if filled < 0 {
            return Err(io::Error::last_os_error());
        }
        events.filled = filled as usize;
        if self.notifier.must_be_drained() && events.all().any(|event| token(event) == Token::NOTIFIER) {
            self.notifier.drain();
        }
        Ok(())
    }

    /// Makes one wait, the current or else the next one, return.
    pub(crate) fn notify(&self) {
        self.notifier.notify(&self.queue);
    }

    /// The queue itself, readable when a wait would find something.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        if self.process.is_current() {
            // SAFETY: the field is not used after this.
            // Test: net/src/reactor/tests.rs `a_dropped_reactor_closes_its_fds`.
            unsafe { ManuallyDrop::drop(&mut self.queue) };
        }
    }
}

/// The kernel's answers to one wait.
pub(crate) struct Events {
    list: Box<[kevent]>,
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

    /// Returns the number of answers, with that of the notifier.
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// The answer at `at`, or `None` if it is the notifier's.
    pub(crate) fn get(&self, at: usize) -> Option<Event> {
        let event = &self.list[..self.filled][at];
        let token = token(event);
        (token != Token::NOTIFIER).then(|| Event { token, ready: translate(event) })
    }

    fn all(&self) -> impl Iterator<Item = &kevent> {
        self.list[..self.filled].iter()
    }
}

fn token(event: &kevent) -> Token {
    Token::from_u64(event.udata as u64)
}

/// Errors and hang-ups are shown as readable and writable too: the owner learns the cause from its own system call.
///
/// NetBSD reports to the writer of a pipe, when the reader goes, an end of reading and nothing else.
fn translate(event: &kevent) -> Ready {
    let has = |flag| event.flags & flag != 0;
    if has(bsd::EV_ERROR) {
        return Ready::CLOSED | Ready::ERROR;
    }
    let is_of_reading = event.filter == bsd::EVFILT_READ && !(has(bsd::EV_EOF) && is_write_only(event.ident as RawFd));
    let (mut ready, closed) =
        if is_of_reading { (Ready::READABLE, Ready::READ_CLOSED) } else { (Ready::WRITABLE, Ready::WRITE_CLOSED) };
    if has(bsd::EV_EOF) {
        ready |= closed;
        if event.fflags != 0 {
            // The reason why the socket is gone: `fflags` is its errno.
            ready |= Ready::CLOSED | Ready::ERROR;
        }
    }
    ready
}

/// True for a file that is not open for reading. If the number has been closed since the event, the event's token is
/// stale.
fn is_write_only(fd: RawFd) -> bool {
    // SAFETY: F_GETFL takes a number; `a_closed_side_is_seen_and_stays` runs it.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags & libc::O_ACCMODE == libc::O_WRONLY
}

/// One direction of an fd was refused, the other was not.
///
/// `EPIPE` is said of a pipe without a reader, for which NetBSD says `EBADF`: its writer need not wait. `EINVAL`,
/// `ENOTSUP` and `ENODEV` mean that there is no such direction; any other error is the caller's.
fn refused(error: io::Error, over: Ready) -> io::Result<Ready> {
    match error.raw_os_error() {
        Some(libc::EPIPE | libc::EBADF) => Ok(over),
        Some(libc::EINVAL | libc::ENOTSUP | libc::ENODEV) => Ok(Ready::EMPTY),
        _ => Err(error),
    }
}

fn open() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointer; every test that turns a reactor runs it.
    let fd = unsafe { bsd::kqueue() };
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
    Ok(queue)
}

/// Applies the changes, each of which becomes its answer.
fn apply(queue: &OwnedFd, changes: &mut [kevent]) -> io::Result<()> {
    changes.iter_mut().for_each(|change| change.flags |= bsd::EV_RECEIPT);
    let (list, len) = (changes.as_mut_ptr(), changes.len());
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        // SAFETY: `list` has `len` initialised entries, borrowed exclusively, which may be read and written in one call
        // (kqueue(2): "may be the same array"); `at_once` outlives the call.
        // `a_lazily_registered_read_is_woken_by_data` runs it.
        let done = unsafe { bsd::kevent(queue.as_raw_fd(), list, len as _, list, len as _, &at_once) };
        match io::Error::last_os_error() {
            _ if done >= 0 => return Ok(()),
            // Interrupted before the first answer was written; the changes can be made again.
            e if is_interruption(&e) => {}
            e => return Err(e),
        }
    }
}

fn is_interruption(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// The error in an answer to a change, unless the answer is "done".
fn refusal(answer: &kevent) -> Option<io::Error> {
    let is_error = answer.flags & bsd::EV_ERROR != 0 && answer.data != 0;
    is_error.then(|| io::Error::from_raw_os_error(answer.data as i32))
}

fn change(ident: RawFd, filter: Filter, flags: Flags, token: Token) -> kevent {
    kevent { ident: ident as usize, filter, flags, udata: token.to_u64() as usize as *mut libc::c_void, ..empty() }
}

fn empty() -> kevent {
    // SAFETY: all zeros is a valid kevent: integers, and a null pointer that is never followed;
    // `more_events_than_room_arrive_in_several_turns` runs it.
    unsafe { std::mem::zeroed() }
}

/// A wait that ends a day early is one turn without events: no caller notices, and no system refuses it.
fn at_most_a_day(limit: Duration) -> libc::timespec {
    let limit = limit.min(Duration::from_secs(24 * 3600));
    libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos() as libc::c_long }
}
