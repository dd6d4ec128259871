//! The runtime that this thread works for: its reactor, its pool of threads that may block, and its clock.
//!
//! The runtime sets it ([`enter`]); the sockets and leaf futures of this crate read it, once for each socket.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::primitives::thread_local;
use crate::reactor::{Reactor, WeakReactor};

/// Runs a closure on the runtime's pool of threads that may block.
///
/// If the pool drops the closure without running it, the task that waits for its result gets an error.
pub type Blocking = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Creates a future that is ready when the duration has passed on the runtime's clock, on behalf of the call at the
/// location.
///
/// It is ready early if the runtime shuts down before, or if its first poll is outside of a runtime.
pub type Delay = fn(&'static Location<'static>, Duration) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A guard that makes the previous runtime the thread's own again when it is dropped.
///
/// Drop guards in the reverse order of their creation.
#[must_use = "the runtime is left again when the guard is dropped"]
pub struct EnterGuard {
    previous: Option<Current>,
    /// The context is the thread's own, so the guard must stay on it.
    stays_here: PhantomData<*const ()>,
}

struct Current {
    reactor: Reactor,
    blocking: Blocking,
    delay: Delay,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Makes this thread's sockets use `reactor`, `blocking` and `delay` until the guard is dropped.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use mini_net::{Blocking, Delay, Reactor, enter};
///
/// let reactor = Reactor::new()?;
/// let blocking: Blocking = Arc::new(|job| drop(std::thread::spawn(job)));
/// let delay: Delay = |_, _| Box::pin(std::future::ready(())); // a runtime has a better one
/// let guard = enter(&reactor, &blocking, delay);
/// // Sockets that are made or first have to wait in here register with `reactor`.
/// drop(guard);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn enter(reactor: &Reactor, blocking: &Blocking, delay: Delay) -> EnterGuard {
    let current = Current { reactor: reactor.clone(), blocking: Arc::clone(blocking), delay };
    let previous = replace(Some(current));
    EnterGuard { previous, stays_here: PhantomData }
}

/// The reactor of the runtime this thread works for, if any.
pub(crate) fn reactor() -> Option<Reactor> {
    with_current(|current| current.reactor.clone())
}

/// The reactor of the runtime this thread works for, if any. The reference does not keep the reactor open.
pub(crate) fn weak_reactor() -> Option<WeakReactor> {
    with_current(|current| current.reactor.downgrade())
}

/// The pool of the runtime this thread works for, if any.
pub(crate) fn blocking() -> Option<Blocking> {
    with_current(|current| Arc::clone(&current.blocking))
}

/// The delays of the runtime this thread works for, if any.
pub(crate) fn delay() -> Option<Delay> {
    with_current(|current| current.delay)
}

/// Returns `true` if this thread works for a runtime.
pub(crate) fn is_inside() -> bool {
    with_current(|_| ()).is_some()
}

/// Returns `true` if this thread has dropped its thread-locals.
pub(crate) fn is_ending() -> bool {
    CURRENT.try_with(|_| ()).is_err()
}

/// A thread whose locals are already gone has no runtime either.
fn with_current<R>(get: impl FnOnce(&Current) -> R) -> Option<R> {
    CURRENT.try_with(|current| current.borrow().as_ref().map(get)).ok().flatten()
}

/// Sets the runtime that this thread works for, and returns the previous one.
///
/// Does nothing on a thread that is ending, which has dropped its thread-locals.
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

    const NO_DELAY: Delay = |_, _| Box::pin(std::future::ready(()));

    #[test]
    fn contexts_nest_and_are_restored() {
        assert!(reactor().is_none());
        let (outer, inner) = (Reactor::new().unwrap(), Reactor::new().unwrap());
        let first = enter(&outer, &blocking_none(), NO_DELAY);
        let second = enter(&inner, &blocking_none(), NO_DELAY);
        assert!(reactor().unwrap().is(&inner));
        drop(second);
        assert!(reactor().unwrap().is(&outer));
        drop(first);
        assert!(reactor().is_none() && blocking().is_none());
    }
}
