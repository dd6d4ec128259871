//! The timers that a thread uses while it polls futures: those of the runtime that has entered them ([`enter`]).
//!
//! Rejected:
//! - Passing the timers in the waker: works with one executor's wakers alone, and no combinator keeps it.
//! - A reference-counted cell with a destructor: the compiler asks at each use whether it has run, and the cell whether
//!   it is borrowed; 3 ns of each read of the clock.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock;
use crate::instant::Instant;
use crate::primitives::thread_local;
use crate::simulated::shown;
use crate::timers::{Timers, TimersState, WheelLease};

/// A guard that leaves the context of [`enter`] when it is dropped.
///
/// # Examples
///
/// It stays on its thread:
///
/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<mini_time::EnterGuard>();
/// ```
#[must_use = "dropping it leaves the context at once"]
pub struct EnterGuard {
    outer: Option<Timers>,
    /// The context belongs to this thread.
    stays: PhantomData<*const ()>,
}

struct Local {
    /// The timers of the context, or null. The count that this stands for belongs to the cell.
    current: Cell<*const TimersState>,
    /// Zero until it is first read.
    thread_number: Cell<u64>,
}

/// Leaves all contexts when the thread ends: a guard may have been leaked.
struct Leave;

thread_local! {
    // Nothing in it has to be dropped: the compiler makes this a plain address.
    static LOCAL: Local = const {
        Local { current: Cell::new(ptr::null()), thread_number: Cell::new(0) }
    };
    static LEAVE: Leave = const { Leave };
}

/// Makes `timers` those of the current thread until the guard is dropped. Then the previous timers are current again.
///
/// On a thread that is ending, which has dropped its thread-locals, it does nothing.
///
/// # Examples
///
/// ```
/// use mini_time::{Clock, Instant, Timers, enter};
/// use std::task::Waker;
///
/// let timers = Timers::new(Clock::pausable(true), Waker::noop().clone());
/// let guard = enter(&timers);
/// assert_eq!(Instant::now(), timers.clock().now());
/// drop(guard);
/// ```
pub fn enter(timers: &Timers) -> EnterGuard {
    let outer = if is_ending() { None } else { replace(Some(timers.clone())) };
    EnterGuard { outer, stays: PhantomData }
}

/// Returns `true` if this thread has dropped its thread-locals.
pub(crate) fn is_ending() -> bool {
    LEAVE.try_with(|_| ()).is_err()
}

/// Makes `timers` the current ones and returns those before.
fn replace(timers: Option<Timers>) -> Option<Timers> {
    let new = timers.map_or(ptr::null(), |timers| Arc::into_raw(timers.0));
    let old = LOCAL.with(|local| local.current.replace(new));
    if old.is_null() {
        return None;
    }
    // SAFETY: all that is not null in the cell comes from `into_raw` above, and it has just been taken out, so its
    // count is claimed here and nowhere else. Test: `contexts_nest_and_each_guard_brings_back_the_one_before`.
    Some(Timers(unsafe { Arc::from_raw(old) }))
}

/// A number that no other thread has had. Cheaper than `ThreadId`, which the standard library gives out with a count.
#[inline]
pub(crate) fn thread_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LOCAL.with(|local| {
        if local.thread_number.get() == 0 {
            local.thread_number.set(LAST.fetch_add(1, Relaxed) + 1);
        }
        local.thread_number.get()
    })
}

/// The timers of this thread's context.
pub(crate) fn timers() -> Option<Timers> {
    // Out and in again: a count can be added only to an `Arc`.
    let current = replace(None);
    replace(current.clone());
    current
}

/// The lease of the timers of this thread's context.
#[inline]
pub(crate) fn lease() -> Option<WheelLease> {
    with_current(|timers| timers.map(|timers| timers.lease))
}

/// The time of this thread's context.
#[inline]
pub(crate) fn now() -> Instant {
    with_current(|timers| timers.map(|timers| shown(timers.clock.now()))).unwrap_or_else(clock::system_now)
}

/// The time of this thread's context, if it is that of `lease`.
#[inline]
pub(crate) fn now_of(lease: WheelLease) -> Option<Instant> {
    with_current(|timers| timers.filter(|timers| timers.lease.is(lease)).map(|timers| shown(timers.clock.now())))
}

/// Looks at the timers of this thread's context; `look` must not run user code, which could leave it.
#[inline]
fn with_current<T>(look: impl FnOnce(Option<&TimersState>) -> T) -> T {
    LOCAL.with(|local| {
        // SAFETY: null, or from `into_raw` in `replace`, with a count that belongs to the cell. Only `replace` on this
        // thread takes it out, and the three callers above do not call that while they look.
        look(unsafe { local.current.get().as_ref() })
    })
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        // On a thread that is ending there is no context left to restore.
        if !is_ending() {
            drop(replace(self.outer.take()));
        }
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        drop(replace(None));
    }
}

impl fmt::Debug for EnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::cell::RefCell;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::Instant;
    use crate::probe::paused_timers;

    #[test]
    fn contexts_nest_and_each_guard_brings_back_the_one_before() {
        let (outer, _) = paused_timers();
        let (inner, _) = paused_timers();
        outer.clock().advance(Duration::from_secs(1)).unwrap();
        inner.clock().advance(Duration::from_secs(1000)).unwrap();
        assert!(timers().is_none());
        let outer_guard = enter(&outer);
        assert_eq!(Instant::now(), outer.clock().now());
        let inner_guard = enter(&inner);
        assert_eq!(Instant::now(), inner.clock().now());
        drop(inner_guard);
        assert_eq!(Instant::now(), outer.clock().now());
        drop(outer_guard);
        assert!(timers().is_none());
    }

    #[test]
    fn a_thread_that_is_ending_has_the_real_clock_and_no_context() {
        struct Late(Timers);
        impl Drop for Late {
            fn drop(&mut self) {
                let before = Instant::now();
                let _entered = enter(&self.0);
                assert!(Instant::now() >= before);
            }
        }
        thread_local!(static LATE: RefCell<Option<Late>> = const { RefCell::new(None) });
        let (timers, _) = paused_timers();
        let ended = thread::spawn(move || {
            // Registered before the context, so dropped after it.
            LATE.with(|late| *late.borrow_mut() = Some(Late(timers.clone())));
            drop(enter(&timers));
        });
        ended.join().unwrap();
    }

    #[test]
    fn a_guard_that_is_leaked_lets_go_when_the_thread_ends() {
        let (timers, notifier) = paused_timers();
        let ended = thread::spawn(move || {
            std::mem::forget(enter(&timers));
            assert_eq!(Instant::now(), timers.clock().now());
        });
        ended.join().unwrap();
        assert_eq!(notifier.wakers(), 0, "the timers are gone");
    }

    #[test]
    fn guards_dropped_in_the_wrong_order_leave_timers_that_live() {
        let (first, _) = paused_timers();
        let (second, _) = paused_timers();
        let (outer, inner) = (enter(&first), enter(&second));
        drop((first, second));
        drop(outer);
        assert!(timers().is_none());
        drop(inner);
        let left = timers().unwrap();
        assert!(left.is_empty() && Instant::now() == left.clock().now());
        drop(enter(&left));
        replace(None);
    }
}
