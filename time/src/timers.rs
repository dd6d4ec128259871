//! The timers of one driver: a wheel behind a lock, with a notifier for the driver that sleeps.
//!
//! The driver calls, in its loop: `turn`, run what is ready, `prepare_park`, wait for the time it returned,
//! `finish_park`. The futures of this crate register here, through a [`WheelLease`] of the store that holds the wheel.
//!
//! While nothing is due a `turn` costs a clock read, and none at all if no timer is pending: it compares the time with
//! a bound that is kept outside the lock. A driver that reads the bound too early misses a timer that another thread is
//! just adding, and finds it at the next turn or in `prepare_park`. `park.rs` describes how a deadline from another
//! thread reaches a sleeping driver. A wait that begins after the notification must still see it.
//!
//! Wakers are woken and dropped with no lock held.
//!
//! Rejected:
//! - Reporting each registration to the driver: with one thread the driver is the one awake, and every sleep would cost
//!   a write to the notifier.
//! - A queue of registrations and cancellations that the owner drains: most timers are cancelled before they fire, and
//!   each would be queued twice; an uncontended lock costs less. While the owner is in a long poll, no other thread
//!   could serve them.
//! - Reading the clock once a turn instead of once a timer (20 ns of the 60 that a limit costs): a limit would count
//!   from the turn after its first poll, and not from the call that made it.
//! - The coarse clock (5.6 ns for 23 ns) for limits of seconds: it is as old as the last tick of one processor, and
//!   where a hypervisor delays that tick nothing bounds the lag, so a limit could end early.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;
use std::time::Duration;

use mini_context::rules::{TIMER_BATCH, TIMER_TIME};

use crate::clock::Clock;
use crate::current;
use crate::instant::Instant;
use crate::wheel::{NEVER, Wheel};

mod park;
mod store;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod wakes;

use store::Loan;
use wakes::Wakes;

pub(crate) use store::{Refusal, State, Store, WheelLease};

/// The timers of one driver; clones are handles to the same timers.
///
/// # Examples
///
/// ```
/// use mini_time::{Clock, Park, Timers, enter, sleep};
/// use std::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
///
/// let timers = Timers::new(Clock::pausable(true), Waker::noop().clone());
/// let _entered = enter(&timers);
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut sleep = pin!(sleep(Duration::from_secs(60)));
/// assert!(sleep.as_mut().poll(&mut cx).is_pending());
///
/// assert_eq!(timers.turn(), 0);
/// assert!(timers.auto_advance());
/// assert_eq!(timers.turn(), 1);
/// assert!(sleep.as_mut().poll(&mut cx).is_ready());
/// assert_eq!(timers.prepare_park(), Park::Forever);
/// ```
#[derive(Clone)]
pub struct Timers(pub(crate) Arc<TimersState>);

/// The time a driver may sleep; see [`Timers::prepare_park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says how long the driver may sleep"]
pub enum Park {
    /// Do not sleep: a timer is due.
    Ready,
    /// Sleep at most this long.
    Until(Duration),
    /// Sleep until the notifier is called.
    Forever,
}

pub(crate) struct TimersState {
    pub(crate) clock: Clock,
    pub(crate) lease: WheelLease,
}

impl Timers {
    /// Creates the timers of a driver. `notifier` must end the wait that the driver begins after
    /// [`prepare_park`](Timers::prepare_park), even if the wait has not begun yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_time::{Clock, Timers};
    ///
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert!(timers.is_empty());
    /// ```
    pub fn new(clock: Clock, notifier: Waker) -> Timers {
        let lease = store::lend(clock.clone(), notifier);
        Timers(Arc::new(TimersState { clock, lease }))
    }

    /// Returns the clock of these timers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::pausable(true), std::task::Waker::noop().clone());
    /// assert!(timers.clock().is_paused());
    /// ```
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Wakes the tasks whose timers are due, in the order of their deadlines, and returns their number.
    ///
    /// A turn that takes more than 40 µs by the clock leaves the rest to the next, which
    /// [`prepare_park`](Timers::prepare_park) then asks for at once.
    ///
    /// Any thread may call this, even while others do. It ends an announcement of the calling thread, as
    /// [`finish_park`](Timers::finish_park) does. With no timer pending it reads no clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.turn(), 0);
    /// ```
    #[inline]
    pub fn turn(&self) -> usize {
        self.finish_park();
        let store = self.store();
        let bound = store.bound.load(Relaxed);
        if bound == NEVER {
            return 0;
        }
        let now = self.0.clock.now_nanos();
        store.seen.store(now, Relaxed);
        if now < bound { 0 } else { self.fire(now) }
    }

    /// Returns `true` if a timer may be due at `now`, in [system nanoseconds](Clock::system_nanos). It costs two loads,
    /// and no clock is read.
    ///
    /// This is a hint: it is sometimes `true` a little early, and always `false` for a clock that has been paused.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert!(!timers.may_be_due(timers.clock().system_nanos()));
    /// ```
    #[inline]
    pub fn may_be_due(&self, now: u64) -> bool {
        self.store().bound.load(Relaxed) <= now && self.0.clock.is_system()
    }

    /// Wakes the tasks whose timers are due, a batch per lock, for as long as a turn may take.
    fn fire(&self, begin: u64) -> usize {
        let mut woken = 0;
        let mut wakes = Wakes::default();
        loop {
            let (more, now) = self.with(|loan| {
                if wakes.0.capacity() == 0 {
                    mem::swap(&mut wakes.0, &mut loan.batch);
                }
                // The clock is read under the lock, so that the wheel never sees it go back.
                let now = self.0.clock.now_nanos();
                let more = loan.wheel.expire(now, TIMER_BATCH, &mut wakes.0);
                self.store().bound.store(loan.wheel.bound(), Relaxed);
                (more, now)
            });
            woken += wakes.wake_all();
            // A paused clock stands still, so one turn fires all.
            if !more || now.saturating_sub(begin) >= TIMER_TIME {
                // One lock more, but no allocation at the next turn that fires.
                self.with(|loan| mem::swap(&mut wakes.0, &mut loan.batch));
                return woken;
            }
        }
    }

    /// Returns how long the driver may sleep, and announces the sleep: from this call until
    /// [`finish_park`](Timers::finish_park) or [`turn`](Timers::turn) in this thread, a timer that another thread adds
    /// with an earlier deadline notifies the driver, once.
    ///
    /// If many deadlines lie ahead, less than 40 µs apart, one wait serves those of up to 0.5 ms, all but the last of
    /// them late.
    ///
    /// While the clock is paused no deadline comes by itself, and the answer is [`Park::Forever`] if nothing is due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Park, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.prepare_park(), Park::Forever);
    /// timers.finish_park();
    /// ```
    #[inline]
    pub fn prepare_park(&self) -> Park {
        let me = current::thread_number();
        if self.store().announcement.renew(me) { Park::Forever } else { self.announce(me) }
    }

    fn announce(&self, me: u64) -> Park {
        self.with(|loan| {
            let next = loan.wheel.next_deadline();
            if next.is_none() {
                loan.wheel.give_back();
            }
            let park = next.map_or(Park::Forever, |next| self.park_until(next, &loan.wheel));
            match park {
                Park::Ready => self.store().announcement.withdraw(),
                Park::Until(_) | Park::Forever => self.store().announcement.stand(next.unwrap_or(NEVER), me),
            }
            self.store().bound.store(next.unwrap_or(NEVER), Relaxed);
            park
        })
    }

    fn park_until(&self, next: u64, wheel: &Wheel) -> Park {
        match self.0.clock.now_nanos() {
            now if now >= next => Park::Ready,
            _ if self.0.clock.is_paused() => Park::Forever,
            now => Park::Until(Duration::from_nanos(wheel.wait_until(next) - now)),
        }
    }

    /// Ends the announcement of [`prepare_park`](Timers::prepare_park), if this thread made it.
    ///
    /// Timers that this thread adds no longer notify the driver. A timer of another thread may, once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// let _ = timers.prepare_park();
    /// timers.finish_park();
    /// ```
    #[inline]
    pub fn finish_park(&self) {
        self.store().announcement.end(current::thread_number());
    }

    /// Returns a time before which no timer fires, or `None` if no pending timer will ever fire.
    ///
    /// It is the first deadline, or earlier if timers that were more than 67 ms ahead have been removed or moved, or if
    /// more than a thousand are pending: a turn at that time fires nothing, and the next answer is later.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.next_deadline(), None);
    /// ```
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = self.with(|loan| loan.wheel.next_deadline())?;
        Some(self.0.clock.instant(next))
    }

    /// Returns how long a wait in place of the driver may last: zero if a timer is due, `None` if none is pending.
    /// Unlike [`prepare_park`](Timers::prepare_park) it announces nothing: an earlier deadline notifies no driver.
    ///
    /// Under a paused clock it is the time from now to the next deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.wait_limit(), None);
    /// ```
    pub fn wait_limit(&self) -> Option<Duration> {
        let clock = &self.0.clock;
        self.with(|loan| {
            let next = loan.wheel.next_deadline()?;
            let limit = match clock.now_nanos() {
                now if now >= next => 0,
                now if clock.is_paused() => next - now,
                now => loan.wheel.wait_until(next) - now,
            };
            Some(Duration::from_nanos(limit))
        })
    }

    /// Returns the number of pending timers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.with(|loan| loan.wheel.len())
    }

    /// Returns `true` if no timer is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert!(timers.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// If the clock is paused, moves it on to the first deadline, which [`turn`](Timers::turn) then finds due.
    ///
    /// Returns `true` if there is one; `false` if the clock runs or no timer is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::pausable(true), std::task::Waker::noop().clone());
    /// assert!(!timers.auto_advance());
    /// ```
    pub fn auto_advance(&self) -> bool {
        self.advance_to_first(None)
    }

    /// No further than to `limit`, in nanoseconds of the clock.
    pub(crate) fn advance_to_first(&self, limit: Option<u64>) -> bool {
        let clock = &self.0.clock;
        if !clock.is_paused() {
            return false;
        }
        self.with(|loan| {
            let first = loan.wheel.first_deadline().into_iter().chain(limit).min();
            // Less if another thread has let the clock run.
            first.is_some_and(|first| clock.advance_to(first) >= first)
        })
    }

    /// Wakes all waiting tasks and refuses new timers. A second call does no harm.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// timers.shutdown();
    /// assert!(timers.is_empty());
    /// ```
    pub fn shutdown(&self) {
        let mut wakes = Wakes::default();
        self.with(|loan| {
            loan.is_dead = true;
            loan.wheel.drain(&mut wakes.0);
            self.store().bound.store(NEVER, Relaxed);
        });
        wakes.wake_all();
    }

    /// Notifies the driver if it sleeps: the clock was paused, moved or let run, so the limit that the driver got
    /// when it went to sleep no longer holds.
    pub(crate) fn notify(&self) {
        self.0.lease.notify_for(0);
    }

    /// Calls `look` with the wheel, under the lock.
    fn with<T>(&self, look: impl FnOnce(&mut Loan) -> T) -> T {
        let mut held = self.0.lease.lock();
        look(held.loan().expect("a store is lent for as long as its `Timers` live"))
    }

    #[inline]
    fn store(&self) -> &'static Store {
        self.0.lease.store
    }
}

impl Drop for TimersState {
    /// Wakes the tasks that still wait, as [`Timers::shutdown`] does.
    fn drop(&mut self) {
        let mut wakes = Wakes::default();
        let loan = store::give_back(self.lease);
        if let Some(mut loan) = loan {
            loan.wheel.drain(&mut wakes.0);
        }
        wakes.wake_all();
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("clock", &self.0.clock).field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod models;
