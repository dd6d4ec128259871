//! What this thread knows: the runtime it works for, the budget of the running task, and where that task waits.
//!
//! Called by the runtime (`enter`, `take_note`, the budget) and by the leaf futures of this crate. Everything is
//! thread-local, so nothing here is atomic. What every operation touches has no destructor, and therefore costs no check
//! on access; the runtime's handles, touched once per registration, live apart.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use crate::reactor::Reactor;
use crate::sync::thread_local;

/// What a task may spend before it has to let others run.
pub const BUDGET: u8 = 128;

/// What a system call costs of that: it takes 0.3 to 20 µs, where what else is counted takes a tenth. So a task whose sockets are always
/// ready makes 32 calls in a run, which is some tens of microseconds with small messages, and half a millisecond with large ones.
const CALL: u8 = 4;

/// Runs a closure on the runtime's pool of threads that may block.
///
/// If the pool drops the closure without running it, whoever waits for its result gets an error.
pub type Blocking = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// Data to read, or a datagram.
    Read,
    /// Room to write.
    Write,
    /// A connection to accept.
    Accept,
    /// A connection being made.
    Connect,
    /// A host name being looked up.
    Resolve,
    /// Readiness alone (`readable`, `writable`, `ready`, `async_io`).
    Ready,
}

/// Where a task waits: left by a leaf future each time it returns `Pending`, taken back when that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it waits for.
    pub kind: Kind,
    /// On which file descriptor; -1 if on none.
    pub fd: RawFd,
    /// The source line of the call that made the future.
    pub location: &'static Location<'static>,
}

/// The thread's runtime is the previous one again when this is dropped.
///
/// Guards have to be dropped in the reverse order of their making.
#[must_use = "the runtime is left again when the guard is dropped"]
pub struct EnterGuard {
    previous: Option<Current>,
    /// The context is the thread's own, so the guard must stay on it.
    stays_here: PhantomData<*const ()>,
}

struct Current {
    reactor: Reactor,
    blocking: Blocking,
}

struct Local {
    budget: Cell<u8>,
    note: Cell<Option<Note>>,
}

thread_local! {
    static LOCAL: Local = const { Local { budget: Cell::new(BUDGET), note: Cell::new(None) } };
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Makes `reactor` and `blocking` what this thread's sockets use, until the guard is dropped.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use mini_net::{Blocking, Reactor, enter};
///
/// let reactor = Reactor::new()?;
/// let blocking: Blocking = Arc::new(|job| drop(std::thread::spawn(job)));
/// let guard = enter(&reactor, &blocking);
/// // Sockets that have to wait in here register with `reactor`.
/// drop(guard);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn enter(reactor: &Reactor, blocking: &Blocking) -> EnterGuard {
    let current = Current { reactor: reactor.clone(), blocking: Arc::clone(blocking) };
    let previous = replace(Some(current));
    EnterGuard { previous, stays_here: PhantomData }
}

/// Takes the note that the task polled last on this thread has left, if it left one.
///
/// A runtime calls this after a poll that returned `Pending`, and [`begin_poll`] before each: what is left over is not
/// the next task's.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
/// use mini_net::{Kind, UdpSocket, doc, take_note};
///
/// doc::block_on(async {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     let mut buf = [0; 8];
///     let mut recv = Box::pin(socket.recv(&mut buf));
///     let mut cx = Context::from_waker(Waker::noop());
///     assert!(Future::poll(recv.as_mut(), &mut cx).is_pending());
///     let note = take_note().expect("it waits");
///     assert_eq!(note.kind, Kind::Read);
///     assert_eq!(note.location.file(), file!());
///     assert_eq!(take_note(), None);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline]
pub fn take_note() -> Option<Note> {
    swap_note(None)
}

/// Whether there is a note. Mostly there is none, and to know that takes less time than to look at it.
///
/// # Examples
///
/// ```
/// assert!(!mini_net::has_note());
/// ```
#[inline]
pub fn has_note() -> bool {
    LOCAL.with(|local| local.note.get().is_some())
}

/// The note, which stays. Where [`begin_poll`] throws away what is left over, this takes less time than to take it.
///
/// # Examples
///
/// ```
/// assert!(mini_net::note().is_none());
/// ```
#[inline]
pub fn note() -> Option<Note> {
    LOCAL.with(|local| local.note.get())
}

/// Sets the note, and returns the one before. For polls within a poll: they are not to touch the note of the outer one.
///
/// # Examples
///
/// ```
/// let outer = mini_net::swap_note(None);
/// // What is polled here leaves its own.
/// mini_net::swap_note(outer);
/// ```
#[inline]
pub fn swap_note(note: Option<Note>) -> Option<Note> {
    LOCAL.with(|local| local.note.replace(note))
}

/// Spends one unit of the running task's budget.
///
/// Once [`BUDGET`] units are spent this wakes the task and returns `Pending` once, so that an operation that is always
/// ready starves nobody. The budget is then full again, so where no runtime refills it, it lasts for several polls.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// # mini_net::swap_budget(mini_net::BUDGET);
/// for _ in 0..mini_net::BUDGET {
///     assert!(mini_net::poll_budget(&mut cx).is_ready());
/// }
/// assert!(mini_net::poll_budget(&mut cx).is_pending());
/// assert!(mini_net::poll_budget(&mut cx).is_ready());
/// ```
pub fn poll_budget(cx: &mut TaskContext<'_>) -> Poll<()> {
    let spent = check_budget(cx);
    if spent.is_ready() {
        spend(1);
    }
    spent
}

/// As [`poll_budget`], for an operation that makes a system call, which costs four units.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// # mini_net::swap_budget(mini_net::BUDGET);
/// for _ in 0..mini_net::BUDGET / 4 {
///     assert!(mini_net::poll_call(&mut cx).is_ready());
/// }
/// assert!(mini_net::poll_call(&mut cx).is_pending());
/// ```
pub fn poll_call(cx: &mut TaskContext<'_>) -> Poll<()> {
    let spent = check_budget(cx);
    if spent.is_ready() {
        spend_call();
    }
    spent
}

/// Makes the budget full, whatever was left, and throws away a note that was left. A runtime calls this before it polls a
/// task.
///
/// # Examples
///
/// ```
/// mini_net::swap_budget(1);
/// mini_net::begin_poll();
/// assert_eq!(mini_net::swap_budget(mini_net::BUDGET), mini_net::BUDGET);
/// assert_eq!(mini_net::take_note(), None);
/// ```
#[inline]
pub fn begin_poll() {
    LOCAL.with(|local| {
        local.budget.set(BUDGET);
        local.note.set(None);
    });
}

/// Sets what is left of the budget, and returns what was left. `u8::MAX` is a budget that never ends.
///
/// # Examples
///
/// ```
/// let left = mini_net::swap_budget(u8::MAX);
/// // Nothing polled here is made to yield.
/// mini_net::swap_budget(left);
/// ```
pub fn swap_budget(left: u8) -> u8 {
    LOCAL.with(|local| local.budget.replace(left))
}

/// `Pending`, with the task woken and the budget full again, if nothing is left of it.
pub(crate) fn check_budget(cx: &mut TaskContext<'_>) -> Poll<()> {
    if LOCAL.with(|local| local.budget.get()) == 0 {
        return yield_now(cx);
    }
    Poll::Ready(())
}

#[cold]
fn yield_now(cx: &mut TaskContext<'_>) -> Poll<()> {
    swap_budget(BUDGET);
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Counts one completed operation that has made a system call.
pub(crate) fn spend_call() {
    spend(CALL);
}

fn spend(units: u8) {
    LOCAL.with(|local| match local.budget.get() {
        u8::MAX => {}
        left => local.budget.set(left.saturating_sub(units)),
    });
}

pub(crate) fn leave_note(note: Note) {
    LOCAL.with(|local| local.note.set(Some(note)));
}

/// Takes back the note of a future that is dropped, if it is the last one. Another's is lost with it: then nothing is known.
pub(crate) fn forget_note(location: &'static Location<'static>) {
    LOCAL.with(|local| {
        if local.note.get().is_some_and(|note| ptr::eq(note.location, location)) {
            local.note.set(None);
        }
    });
}

/// The reactor of the runtime this thread works for, if any.
pub(crate) fn reactor() -> Option<Reactor> {
    current(|current| current.reactor.clone())
}

/// The pool of the runtime this thread works for, if any.
pub(crate) fn blocking() -> Option<Blocking> {
    current(|current| Arc::clone(&current.blocking))
}

/// Whether this thread works for a runtime.
pub(crate) fn is_inside() -> bool {
    current(|_| ()).is_some()
}

/// Whether this thread has dropped its thread-locals.
pub(crate) fn is_ending() -> bool {
    CURRENT.try_with(|_| ()).is_err()
}

/// A thread whose locals are already gone has no runtime either.
fn current<R>(get: impl FnOnce(&Current) -> R) -> Option<R> {
    CURRENT.try_with(|current| current.borrow().as_ref().map(get)).ok().flatten()
}

/// Sets what this thread works for, and returns what that was.
///
/// On a thread that is ending, which has dropped its thread-locals, there is nothing to enter.
fn replace(current: Option<Current>) -> Option<Current> {
    CURRENT.try_with(|now| now.replace(current)).unwrap_or_default()
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        let left = replace(self.previous.take());
        // May be the reactor's last handle: dropped here, when nothing is borrowed.
        drop(left);
    }
}

impl fmt::Debug for EnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocking_none() -> Blocking {
        Arc::new(|_| {})
    }

    #[test]
    fn contexts_nest_and_are_restored() {
        assert!(reactor().is_none());
        let (outer, inner) = (Reactor::new().unwrap(), Reactor::new().unwrap());
        let first = enter(&outer, &blocking_none());
        let second = enter(&inner, &blocking_none());
        assert!(reactor().unwrap().is(&inner));
        drop(second);
        assert!(reactor().unwrap().is(&outer));
        drop(first);
        assert!(reactor().is_none() && blocking().is_none());
    }

    #[test]
    fn an_endless_budget_is_not_spent() {
        let before = swap_budget(u8::MAX);
        for _ in 0..1_000 {
            spend_call();
        }
        assert_eq!(swap_budget(before), u8::MAX);
    }
}
