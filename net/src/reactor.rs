//! `Reactor`: turns the kernel's reports into readiness and wake-ups, and runs nothing itself.
//!
//! Called by the driver of a runtime (`turn`, `notify`, `shutdown`), by `source` (`register`), and by `registration`,
//! which is an fd's entry. One turn is one wait:
//!
//! 1. `Poller::wait` blocks, with no lock held.
//! 2. `Table::deliver` sets the readiness of each slot and moves out its wakers, under the table's lock, which threads
//!    that deliver share.
//! 3. The wakers are called, with no lock held.
//!
//! A child of fork(2) shares the epoll instance with its parent. In the child a reactor takes no event and no
//! socket, and does not remove sockets that are dropped: they are the parent's.
//!
//! # Rejected
//!
//! - A helper thread that turns a global reactor: one more hand-off per event, and no shutdown per runtime.
//! - A pointer to the slot in the kernel's event: a late event for a freed slot would be a use after free; a token is
//!   looked up in the table and found stale.
//! - One thread that delivers at a time: another thread that looked for events slept until the batch was delivered.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use mini_context::contain;

use crate::primitives::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use crate::primitives::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::ready::Ready;
use crate::sys::{self, Custody, Poller, Token, fork::Process};

mod blocks;
mod cell;
mod events;
mod registration;
#[cfg(feature = "sim")]
mod simulated;
mod table;

pub use events::Events;
pub(crate) use registration::Registration;

use cell::SlotLease;
use table::Table;

/// A handle to one epoll or kqueue instance and the sockets registered with it.
///
/// Clones are handles to the same reactor, which closes when the last handle and the last registered socket are gone.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mini_net::{Events, Reactor};
///
/// let reactor = Reactor::new()?;
/// let mut events = Events::new();
/// reactor.notify();
/// // Returns at once, because of the notification, which is not counted.
/// assert_eq!(reactor.turn(&mut events, None)?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Reactor(Arc<ReactorState>);

/// A handle that does not keep the reactor open.
pub(crate) struct WeakReactor(Weak<ReactorState>);

struct ReactorState {
    poller: Poller,
    /// Read-locked to deliver events, so that several threads can turn at the same time.
    table: RwLock<Table>,
    on_use: OnceLock<Waker>,
    process: Process,
    /// The length of the table, written under its lock: drivers ask for it before every turn.
    registered: AtomicUsize,
}

impl Reactor {
    /// Opens a new epoll or kqueue instance.
    ///
    /// # Examples
    ///
    /// ```
    /// let reactor = mini_net::Reactor::new()?;
    /// assert_eq!(reactor.registrations(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of epoll_create1(2) and eventfd(2), or of kqueue(2), such as too many open files.
    pub fn new() -> io::Result<Reactor> {
        let (poller, table) = (Poller::new()?, RwLock::default());
        let (on_use, registered) = (OnceLock::new(), AtomicUsize::new(0));
        Ok(Reactor(Arc::new(ReactorState { poller, table, on_use, process: Process::current(), registered })))
    }

    /// Waits for events and wakes the tasks that wait for them; returns the number of events.
    ///
    /// Returns after the first events, after [`Reactor::notify`], or after `timeout`: `None` is no limit, zero does not
    /// wait. It returns early without an event only on a notification or a signal. The result is then `Ok(0)`, because
    /// a notification is not counted.
    ///
    /// Several threads may call this at the same time, each with its own `Events`. An event goes to one of them, and so
    /// does a notification.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use mini_net::{Events, Reactor};
    ///
    /// let reactor = Reactor::new()?;
    /// assert_eq!(reactor.turn(&mut Events::new(), Some(Duration::ZERO))?, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of epoll_wait(2) or kevent(2), other than the interruption by a signal.
    ///
    /// # Panics
    ///
    /// Panics in a child of fork(2), if the reactor was made before the fork.
    pub fn turn(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        self.0.process.check("Reactor::turn");
        match self.0.poller.wait(&mut events.events, timeout) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(0),
            result => result?,
        }
        Ok(self.dispatch(events))
    }

    /// Makes one turn return: the current one, or else the next.
    ///
    /// Each call is a system call. A caller that notifies often should check first that a thread waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_net::{Events, Reactor};
    ///
    /// let reactor = Reactor::new()?;
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| reactor.turn(&mut Events::new(), None));
    ///     reactor.notify();
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn notify(&self) {
        self.0.poller.notify();
    }

    /// Sets a waker that is woken whenever a socket is registered and there was none before. So a driver that waits
    /// elsewhere while there is no socket learns that it has to wait here. The first waker that is set stays.
    ///
    /// The socket counts in [`registrations`](Reactor::registrations) before the waker is woken. The waker must not use
    /// sockets.
    ///
    /// # Examples
    ///
    /// ```
    /// let reactor = mini_net::Reactor::new()?;
    /// reactor.call_when_used(std::task::Waker::noop().clone());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn call_when_used(&self, waker: Waker) {
        let _ = self.0.on_use.set(waker);
    }

    /// Returns the number of registered sockets.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(mini_net::Reactor::new()?.registrations(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn registrations(&self) -> usize {
        // Acquire: pairs with the Release in `note_len`.
        self.0.registered.load(Acquire).saturating_sub(sys::registered())
    }

    /// Ends every wait on this reactor: waiters are woken and get an error, and so do later waits.
    ///
    /// Operations that need not wait still work, as do `turn` and `notify`.
    ///
    /// # Examples
    ///
    /// ```
    /// let reactor = mini_net::Reactor::new()?;
    /// reactor.shutdown();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(&self) {
        let mut woken = Vec::new();
        self.table_mut().shut(&mut woken);
        wake_all(&mut woken);
    }

    /// Returns an error in a child of fork(2) if the reactor was made before the fork.
    #[inline]
    pub(crate) fn check_process(&self) -> io::Result<()> {
        if self.0.process.is_current() { Ok(()) } else { Err(not_of_this_process()) }
    }

    /// Returns an error if the runtime has shut down.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.table().check()
    }

    pub(crate) fn downgrade(&self) -> WeakReactor {
        WeakReactor(Arc::downgrade(&self.0))
    }

    /// Returns `true` if the two are handles to the same one.
    #[cfg(test)]
    pub(crate) fn is(&self, other: &Reactor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Adds `fd`, which starts out as `ready` until the kernel reports more.
    pub(crate) fn register(&self, fd: BorrowedFd<'_>, custody: Custody, ready: Ready) -> io::Result<Registration> {
        let (token, lease) = self.enter(ready)?;
        let permanent = self.0.poller.add(fd, token, custody).map_err(|error| {
            self.vacate(token);
            explain(error)
        })?;
        if !permanent.is_empty() {
            // The poller will not report it. There is no waiter yet.
            lease.slot().set(permanent, &mut Vec::new());
        }
        Ok(Registration::new(self.clone(), lease, token, fd.as_raw_fd(), custody))
    }

    /// The socket leaves the reactor.
    fn remove(&self, fd: RawFd, custody: Custody, token: Token) {
        if self.0.process.is_current() {
            self.0.poller.remove(fd, token, custody);
            self.vacate(token);
        }
    }

    /// Steps 2 and 3 of a turn; returns how many events found their slot.
    fn dispatch(&self, events: &mut Events) -> usize {
        let Events { events, woken } = events;
        let mut delivered = 0;
        if events.len() > 0 {
            let table = self.table();
            for event in (0..events.len()).filter_map(|at| events.get(at)) {
                delivered += usize::from(table.deliver(event, woken));
            }
        }
        wake_all(woken);
        delivered
    }

    /// Poison is ignored: no user code runs under this lock.
    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.0.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place in the table. If it is the first, wakes `on_use`.
    fn enter(&self, ready: Ready) -> io::Result<(Token, SlotLease)> {
        self.check_process()?;
        let mut table = self.table_mut();
        let is_first = table.len() == 0;
        let entered = table.insert(ready)?;
        self.note_len(&table);
        drop(table);
        if is_first && let Some(waker) = self.0.on_use.get() {
            // A panic of the waker must not prevent the registration; it has been printed.
            contain(|| waker.wake_by_ref());
        }
        Ok(entered)
    }

    /// Records the new length of the table, whose lock the caller holds.
    fn note_len(&self, table: &Table) {
        self.0.registered.store(table.len(), Release);
    }

    fn vacate(&self, token: Token) {
        let left = {
            let mut table = self.table_mut();
            let left = table.remove(token);
            self.note_len(&table);
            left
        };
        // Wakers run user code: not under the lock.
        drop(left);
    }
}

pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other("its mini runtime has shut down")
}

fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        let text = "this file descriptor is already registered with the mini runtime";
        return io::Error::new(io::ErrorKind::AlreadyExists, text);
    }
    error
}

/// Wakes in the order of arrival. If a waker panics, the others are still woken; its panic has been printed.
fn wake_all(woken: &mut Vec<Waker>) {
    let mut rest = woken.drain(..);
    while contain(|| rest.by_ref().for_each(Waker::wake)).is_none() {}
}

impl WeakReactor {
    /// The reactor, or the error of a wait after the end of its runtime.
    pub(crate) fn upgrade(&self) -> io::Result<Reactor> {
        self.0.upgrade().map(Reactor).ok_or_else(shut_down_error)
    }
}

impl fmt::Debug for WeakReactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakReactor")
    }
}

impl AsFd for Reactor {
    /// The epoll or kqueue fd: readable when a turn would find something, or once the deadline of an earlier turn has
    /// come, until the next one. For use within another event loop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.poller.as_fd()
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor").field("registrations", &self.registrations()).finish_non_exhaustive()
    }
}

#[cold]
fn not_of_this_process() -> io::Error {
    io::Error::other("its mini runtime was built before fork(2) and serves only the parent process")
}

#[cfg(test)]
mod tests;
