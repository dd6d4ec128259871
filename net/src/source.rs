//! `Source`: an fd and its readiness. Registers at the first wait, and has the one loop that runs every operation.
//!
//! Called by `leaf` (the futures), by the `poll_` and `try_` methods of the sockets, and by `async_fd`.
//!
//! The loop tries the operation first. If the kernel returns `WouldBlock`, the fd is registered, once and for both
//! directions. From then on the word of its slot shows when trying is worth a system call. In the steady state of an
//! echo server that is one recv, one send, and a share of one wait: a short read reports as much as the `WouldBlock`
//! that it saves.
//!
//! An fd belongs to one runtime: the one that is entered when the `Source` is made, or else when the fd is registered.
//! Any thread may wait for it, and the reactor of that runtime reports. After the end of that runtime waits fail.
//!
//! # When readiness goes
//!
//! - `WouldBlock` clears the direction, its closed flag too: the fd has just shown that it is not closed. (An error on
//!   a UDP socket looks like a hang-up to epoll, and is over once it has been read.)
//! - A short read or write of a stream clears the direction, but not its closed flag: the end of the stream may have
//!   come with the same edge as the data, and there will be no other. A short datagram means nothing. Nor does a read
//!   that may have been cut short by ancillary data, or by out-of-band data (tcp(7), "urgent").
//! - Neither clears anything if the kernel has reported since the operation began (see `slot`).
//!
//! # Rejected
//!
//! - Wait, operate, clear on `WouldBlock` without a tick: loses the edge that lands between the last two.
//! - Registering when the socket is made: two system calls for a socket that never waits.

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::panic::Location;
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};

use mini_context::{IoKind, Note, Reason, forget_wait, leave_note};

use crate::current;
use crate::reactor::{Registration, WeakReactor, shut_down_error};
use crate::ready::{Interest, Ready};
use crate::slot::{Key, Seen, Slot};
use crate::sys::{self, Closer, Custody};

mod channel;
mod ops;

pub(crate) use channel::Channel;

#[derive(Debug)]
pub struct Source<T: AsFd = OwnedFd> {
    /// That of the runtime in which it was made. A socket that has never waited keeps nothing of it.
    reactor: Option<WeakReactor>,
    /// Before `io`, so that the fd is still open when the registration is removed.
    registration: OnceLock<Registration>,
    /// True after a shutdown for writing. Locked for that, and while registering, so that two tasks do it once.
    has_ended: Mutex<bool>,
    /// Before `io`, too.
    closer: Closer,
    rule: Rule,
    io: T,
}

/// The meaning of a short read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// There is no more data, or no more room.
    Stream,
    /// There is no more data, or no more room, unless ancillary data (a file descriptor, say) ended the read.
    StreamWithAncillary,
    /// No meaning.
    Whole,
    /// No meaning. The fd is registered before its first read: a read that finds no writer looks like the end, even if
    /// none has come yet. Only the kernel's readiness tells the two apart.
    Fifo,
    /// No meaning. Nothing else is known of the fd either, which the user may close.
    Foreign,
}

/// The state in which an operation leaves the fd, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// There may be more.
    Perhaps,
    /// There is nothing to read, or no room to write.
    Nothing,
}

/// The call that made a future, and its line: for messages, and for notes of where a task waits.
///
/// Public for `mini`, whose futures wait on an [`AsyncFd`](crate::AsyncFd) that their users do not see.
#[derive(Clone, Copy, Debug)]
pub struct CallSite {
    pub(crate) site: &'static Site,
    pub(crate) location: &'static Location<'static>,
}

/// A method that can wait.
#[derive(Debug)]
pub struct Site {
    /// The type, as the user knows it.
    pub owner: &'static str,
    /// Its method.
    pub method: &'static str,
    /// The kind of event the method waits for.
    pub kind: IoKind,
}

/// An error that is known without a call. It costs one: a task that tries again and again lets others run.
pub(crate) fn poll_error<L, R>(cx: &mut Context<'_>, leaf: *const L, error: io::Error) -> Poll<io::Result<R>> {
    mini_context::poll_call(cx, leaf).map(|()| Err(error))
}

impl Rule {
    /// Who closes the fd.
    fn custody(self) -> Custody {
        if self == Rule::Foreign { Custody::Users } else { Custody::Ours }
    }
}

impl CallSite {
    /// For a call that is made at the caller's line.
    #[track_caller]
    pub fn here(site: &'static Site) -> Self {
        CallSite::at(site, Location::caller())
    }

    /// For a call that was made at `location`.
    pub fn at(site: &'static Site, location: &'static Location<'static>) -> Self {
        Self { site, location }
    }

    /// For a call that must fail outside a runtime even if it would not have to wait.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime, with the text that names the call.
    pub(crate) fn need_runtime(&self) {
        if !current::is_inside() {
            self.panic_without_runtime();
        }
    }

    /// Adds the name of the call and its line to `error`, if it reports that something is not simulated.
    #[inline]
    pub(crate) fn located(&self, error: io::Error) -> io::Error {
        sys::located(error, (self.site.owner, self.site.method), self.location)
    }

    /// Notes that the task in progress waits here, on `fd`, or on none if that is -1.
    pub fn leave_note(&self, fd: RawFd) {
        leave_note(Note { reason: Reason::Io(self.site.kind, fd), location: self.location });
    }

    /// Takes the note back: the future that waits is dropped.
    pub fn forget_note(&self) {
        forget_wait(|wait| ptr::eq(wait.location(), self.location));
    }

    #[cold]
    pub(crate) fn panic_without_runtime(&self) -> ! {
        let (owner, method, place) = (self.site.owner, self.site.method, self.location);
        assert!(
            !current::is_ending(),
            "`{owner}::{method}`, called at {place}, was used in a destructor of a thread-local, while its \
             thread ends: no mini runtime can run there"
        );
        panic!(
            "`{owner}::{method}`, called at {place}, needs a runtime, but no mini runtime is running on this thread: \
             use `#[mini::main]`, `mini::block_on` or `Runtime::enter`"
        )
    }
}

impl Left {
    fn after(moved: usize, asked: usize) -> Left {
        // The kernel may cut a call at 2 GiB for reasons of its own; a result below 1 GiB is not cut like that.
        const CUT: usize = 1 << 30;
        if moved > 0 && moved < asked.min(CUT) { Left::Nothing } else { Left::Perhaps }
    }
}

impl<T: AsFd> Source<T> {
    pub(crate) fn new(io: T, rule: Rule) -> Source<T> {
        let closer = Closer::new(io.as_fd(), rule.custody());
        let (reactor, registration) = (current::weak_reactor(), OnceLock::new());
        Source { reactor, registration, has_ended: Mutex::default(), closer, rule, io }
    }

    pub(crate) fn io(&self) -> &T {
        &self.io
    }

    pub(crate) fn io_mut(&mut self) -> &mut T {
        &mut self.io
    }

    /// The fd, no longer registered.
    pub(crate) fn into_io(self) -> T {
        let Source { registration, closer, io, .. } = self;
        drop(registration);
        closer.keep();
        io
    }

    /// Runs `op` until it returns something other than `WouldBlock`, waiting for `interest` in between.
    ///
    /// The closure may be run any number of times. Completing spends the cost of a call from the task's budget.
    ///
    /// There is a copy of this for each operation, so it is only what must know the operation.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        interest: Interest,
        mut key: Option<&mut Key>,
        mut op: impl FnMut(&Source<T>) -> io::Result<(R, Left)>,
    ) -> Poll<io::Result<R>> {
        loop {
            let seen = match self.poll_turn(cx, call_site, interest, &mut key) {
                Poll::Ready(Ok(seen)) => seen,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            };
            match op(self) {
                Ok((value, left)) => {
                    self.conclude(seen, interest, left);
                    mini_context::spend_call();
                    return Poll::Ready(Ok(value));
                }
                Err(e) => {
                    if let Err(e) = self.try_again(call_site, seen, interest, e) {
                        return Poll::Ready(Err(e));
                    }
                }
            }
        }
    }

    /// Waits until `interest` is met, without an operation.
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        interest: Interest,
        key: Option<&mut Key>,
    ) -> Poll<io::Result<Seen>> {
        ready!(mini_context::check_budget(cx, self.leaf(interest)));
        let known = match self.register(call_site, Ready::EMPTY) {
            Ok(known) => known,
            Err(e) => {
                mini_context::spend_call();
                return Poll::Ready(Err(e));
            }
        };
        let seen = ready!(self.poll_wait(known, cx, call_site, interest, key))?;
        mini_context::spend_call();
        Poll::Ready(if seen.ready().intersects(interest.mask()) { Ok(seen) } else { Err(shut_down_error()) })
    }

    /// Runs `op` once, whatever the readiness, and learns from it.
    pub(crate) fn try_op<R>(
        &self,
        interest: Interest,
        op: impl FnOnce(&Source<T>) -> io::Result<(R, Left)>,
    ) -> io::Result<R> {
        let seen = self.slot().map_or_else(Slot::unregistered, Slot::seen);
        match op(self) {
            Ok((value, left)) => {
                self.conclude(seen, interest, left);
                Ok(value)
            }
            Err(e) => {
                self.note_failure(seen, interest, &e);
                Err(e)
            }
        }
    }

    /// Registers now if there is a runtime, so that an fd that can't be polled is refused early.
    pub(crate) fn register_early(&self) -> io::Result<()> {
        if let Some(reactor) = &self.reactor {
            let registration = reactor.upgrade()?.register(self.io.as_fd(), self.custody(), Ready::EMPTY)?;
            self.registration.get_or_init(|| registration);
        }
        Ok(())
    }

    pub(crate) fn clear(&self, seen: Seen, ready: Ready) {
        if let Some(slot) = self.slot() {
            slot.clear(seen, ready);
        }
    }

    /// After `WouldBlock` of an operation for `interest`.
    pub(crate) fn clear_interest(&self, seen: Seen, interest: Interest) {
        if let Some(slot) = self.slot() {
            slot.clear_interest(seen, interest);
        }
    }

    /// Removes the waiter of a leaf future that is dropped.
    #[cold]
    pub(crate) fn forget(&self, key: &mut Key) {
        if let Some(slot) = self.slot() {
            slot.forget(key);
        }
    }

    pub(crate) fn slot(&self) -> Option<&Slot> {
        self.registration.get().map(Registration::slot)
    }

    /// Returns an error if it belongs to a runtime that has ended.
    pub(crate) fn check_runtime(&self) -> io::Result<()> {
        let Some(reactor) = &self.reactor else { return Ok(()) };
        let reactor = reactor.upgrade()?;
        reactor.check_process()?;
        reactor.check()
    }

    /// Returns `true` if it belongs to a runtime.
    pub(crate) fn has_runtime(&self) -> bool {
        self.reactor.is_some() || self.registration.get().is_some()
    }

    fn custody(&self) -> Custody {
        self.rule.custody()
    }

    /// Returns `true` if it carries bytes, rather than messages that may be empty.
    pub(crate) fn is_stream(&self) -> bool {
        self.rule != Rule::Whole
    }

    /// The state in which a transfer leaves the fd, as far as the rule shows it. Spends its bytes from the task's
    /// budget.
    fn left(&self, moved: usize, asked: usize) -> Left {
        mini_context::spend_bytes(moved);
        match self.rule {
            Rule::Whole | Rule::Foreign | Rule::Fifo => Left::Perhaps,
            Rule::Stream | Rule::StreamWithAncillary => Left::after(moved, asked),
        }
    }

    /// The registration, if there is one. Makes it if the kernel has to be asked before the first operation.
    fn registration_for(&self, call_site: &CallSite, interest: Interest) -> io::Result<Option<&Registration>> {
        match self.registration.get() {
            None if self.rule == Rule::Fifo && interest.is_readable() => {
                self.register(call_site, Ready::EMPTY).map(Some)
            }
            known => Ok(known),
        }
    }

    /// Ready if the operation may be tried: the budget is not spent, and the slot is ready or the fd is not registered
    /// yet. (The read end of a FIFO is registered first.)
    fn poll_turn(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        interest: Interest,
        key: &mut Option<&mut Key>,
    ) -> Poll<io::Result<Seen>> {
        ready!(mini_context::check_budget(cx, self.leaf(interest)));
        match self.registration_for(call_site, interest) {
            Ok(Some(known)) => self.poll_wait(known, cx, call_site, interest, key.as_deref_mut()),
            Ok(None) => Poll::Ready(Ok(Slot::unregistered())),
            Err(e) => {
                mini_context::spend_call();
                Poll::Ready(Err(e))
            }
        }
    }

    /// The address by which the budget knows a direction.
    #[inline]
    pub(crate) fn leaf(&self, interest: Interest) -> *const () {
        ptr::from_ref(self).wrapping_byte_add(usize::from(interest.is_writable())).cast()
    }

    /// Updates the readiness after a finished operation.
    fn conclude(&self, seen: Seen, interest: Interest, left: Left) {
        // After an error the next call is to tell of it.
        if left == Left::Nothing && !seen.ready().intersects(Ready::PRIORITY | Ready::ERROR) {
            self.clear(seen, interest.open());
        }
    }

    /// Updates the readiness after a failed operation.
    fn note_failure(&self, seen: Seen, interest: Interest, error: &io::Error) {
        if error.kind() == io::ErrorKind::WouldBlock {
            self.clear_interest(seen, interest);
        }
    }

    /// After an error: `Ok` if the operation must be tried again, after a wait if necessary. An error that is returned
    /// has cost a call.
    fn try_again(&self, call_site: &CallSite, seen: Seen, interest: Interest, error: io::Error) -> io::Result<()> {
        let must_wait = error.raw_os_error() == Some(libc::EAGAIN) && !seen.ready().is_shut_down();
        match self.slot().filter(|_| must_wait) {
            Some(slot) => slot.clear_interest(seen, interest),
            None => self.try_again_at_first(call_site, seen, interest, error)?,
        }
        Ok(())
    }

    /// `try_again` before the fd is registered, after its reactor has shut down, and after other errors.
    #[cold]
    fn try_again_at_first(
        &self,
        call_site: &CallSite,
        seen: Seen,
        interest: Interest,
        error: io::Error,
    ) -> io::Result<()> {
        let result = match error.kind() {
            io::ErrorKind::WouldBlock => self.wait_is_needed(call_site, seen, interest),
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        };
        if result.is_err() {
            mini_context::spend_call();
        }
        result
    }

    /// After `WouldBlock`: registers if that is still to be done, and takes the readiness back.
    fn wait_is_needed(&self, call_site: &CallSite, seen: Seen, interest: Interest) -> io::Result<()> {
        if self.registration.get().is_some() && seen.ready().is_shut_down() {
            return Err(shut_down_error());
        }
        // The other direction has not been tried: the better guess is that it would work, which costs one try at most.
        // For this direction there is no guess: the kernel reports as soon as the fd is registered, perhaps on another
        // thread by now, and a guess would survive `clear`.
        let guess = (Ready::READABLE | Ready::WRITABLE).without(interest.mask());
        self.register(call_site, guess)?.slot().clear_interest(seen, interest);
        Ok(())
    }

    fn register(&self, call_site: &CallSite, ready: Ready) -> io::Result<&Registration> {
        if let Some(known) = self.registration.get() {
            return Ok(known);
        }
        let reactor = match &self.reactor {
            Some(reactor) => reactor.upgrade()?,
            None => current::reactor().unwrap_or_else(|| call_site.panic_without_runtime()),
        };
        reactor.check_process()?; // before a lock, which a thread of the parent may have had
        let fd = self.io.as_fd();
        let _alone = self.alone();
        if let Some(known) = self.registration.get() {
            return Ok(known);
        }
        let registration = reactor.register(fd, self.custody(), ready)?;
        Ok(self.registration.get_or_init(|| registration))
    }

    /// Poison is ignored: no user code runs under this lock.
    fn alone(&self) -> MutexGuard<'_, bool> {
        self.has_ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `interest`.
    fn poll_wait(
        &self,
        known: &Registration,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        interest: Interest,
        key: Option<&mut Key>,
    ) -> Poll<io::Result<Seen>> {
        if let Err(error) = known.check_process() {
            // Nothing would end the wait. Without the slot's lock, which a thread of the parent may have had.
            let seen = known.slot().seen();
            mini_context::spend_call();
            return Poll::Ready(if seen.ends(interest) { Ok(seen) } else { Err(error) });
        }
        let polled = known.slot().poll_ready(cx, interest, key);
        if polled.is_pending() {
            call_site.leave_note(known.fd());
        }
        polled.map(Ok)
    }
}
