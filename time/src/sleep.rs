//! The future that waits for a point in time; the other futures of this crate are made of it.
//!
//! A sleep registers late: only a poll that finds the deadline ahead adds it to the timers of the thread's context.
//! From then on the sleep belongs to those timers, wherever it is polled or dropped, without keeping them alive.
//!
//! A sleep is ready at every poll after its deadline, the first one included. Only the limit of a `timeout`, which
//! nearly always lies ahead, is armed at its first poll without reading the clock, which saves 25 ns of 100. If its
//! time has come since it was made, the next turn of the driver fires it.
//!
//! ```text
//!        1              2
//!   NEW ----> ARMED -------> DONE      1 `arm`: a poll finds the deadline ahead
//!    ^          |              |       2 `poll_elapsed`: the timer fired, or a poll finds the deadline passed
//!    '--- 4 ----'              |       3 `reset`, from anywhere; ARMED stays ARMED while the timer is pending
//!    '----------- 3 -----------'       4 `rearm`: the timers were shut down; 1 follows, in those of the context
//! ```
//! A NEW one whose deadline has passed at its first poll is DONE without a timer.
//!
//! Rejected:
//! - Keeping the entry inside the future: then it must not move, and `reset` and `select` need a pin.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mini_context::{Note, Reason, forget_timer, leave_note};

use crate::current;
use crate::instant::Instant;
use crate::timers::{Refusal, State, Store, WheelLease};
use crate::wheel::Key;

#[cfg(test)]
mod tests;

/// Future of [`sleep`] and [`sleep_until`]: resolves to `()` at a point in time.
///
/// It may move between polls, and be polled and dropped on any thread.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, Sleep, sleep};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now();
/// let short: Sleep = sleep(Duration::from_micros(1300));
/// short.await;
/// assert!(start.elapsed() >= Duration::from_micros(1300));
/// # });
/// ```
///
/// # Cancel safety
///
/// Safe: dropping it removes the timer.
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    deadline: Instant,
    location: &'static Location<'static>,
    /// The place of the timer, if the sleep is ARMED. Together with `number` it is the lease, in two fields that leave
    /// no gap.
    store: Option<&'static Store>,
    number: u32,
    key: Key,
    origin: Origin,
    is_done: bool,
    /// The sleep is NEW, and the limit of a `timeout` that was ahead when it was made.
    is_ahead: bool,
}

/// The function that made a [`Sleep`], for messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Sleep,
    SleepUntil,
    Timeout,
    TimeoutAt,
    Deadline,
    Interval,
    IntervalAt,
    Tick,
    Retry,
}

const _: () = {
    #[cfg(target_pointer_width = "64")]
    assert!(size_of::<Sleep>() == 48);
    const fn assert_anywhere<T: Send + Sync + Unpin>() {}
    assert_anywhere::<Sleep>();
};

/// Waits for `duration`, counted from this call.
///
/// The sleep never ends early. If its time is over at the first poll, it is ready then. With a duration that ends more
/// than 584 years after the start of the runtime, such as [`Duration::MAX`], it never ends. The call reads the clock of
/// the runtime around it, and the poll waits by the clock of the polling runtime. So poll a sleep that is made under a
/// paused clock in the same runtime.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, sleep};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now();
/// sleep(Duration::from_millis(100)).await;
/// assert!(start.elapsed() >= Duration::from_millis(100));
/// # });
/// ```
///
/// # Panics
///
/// A poll before the deadline panics on a thread that runs no mini runtime, or whose runtime was shut down. It also
/// panics if `duration` is less than a century and a paused clock was moved so far that the deadline lies more than 584
/// years after the clock's start. The call itself does not panic.
///
/// # Cancel safety
///
/// Safe: dropping it removes the timer.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::after(duration, Origin::Sleep)
}

/// [`sleep`] as called at `location`, for a runtime that waits on behalf of others.
#[doc(hidden)]
pub fn sleep_of(location: &'static Location<'static>, duration: Duration) -> Sleep {
    let mut sleep = sleep(duration);
    sleep.relabel(Origin::Sleep, location);
    sleep
}

/// Waits before a call at `location` is tried again, for a runtime. Dumps show the caller's wait. If a [`sleep`] would
/// panic, without a runtime or after its shutdown, this is ready early: the caller returns the error.
#[doc(hidden)]
pub fn retry_after(location: &'static Location<'static>, duration: Duration) -> Sleep {
    let mut sleep = sleep(duration);
    sleep.relabel(Origin::Retry, location);
    sleep
}

/// Waits until `deadline`. If that has passed, the sleep is ready at the first poll.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, sleep_until};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let deadline = Instant::now() + Duration::from_millis(100);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
///
/// # Panics
///
/// Same as [`sleep`].
///
/// # Cancel safety
///
/// Safe: dropping it removes the timer.
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline, Origin::SleepUntil)
}

impl Sleep {
    #[track_caller]
    #[inline]
    pub(crate) fn new(deadline: Instant, origin: Origin) -> Sleep {
        Sleep {
            deadline,
            location: Location::caller(),
            store: None,
            number: 0,
            key: Key::NONE,
            origin,
            is_done: false,
            is_ahead: false,
        }
    }

    #[track_caller]
    #[inline]
    pub(crate) fn after(duration: Duration, origin: Origin) -> Sleep {
        let mut sleep = Sleep::new(Instant::now().saturating_add(duration), origin);
        sleep.is_ahead = origin.is_limit() && !duration.is_zero();
        sleep
    }

    /// Returns the instant at which the sleep ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Instant, sleep_until};
    ///
    /// let now = Instant::now();
    /// assert_eq!(sleep_until(now).deadline(), now);
    /// ```
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns `true` if the deadline has passed, even if the sleep was never polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Instant, sleep, sleep_until};
    /// use std::time::Duration;
    ///
    /// assert!(sleep_until(Instant::now()).is_elapsed());
    /// assert!(!sleep(Duration::from_secs(60)).is_elapsed());
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.is_done || self.now() >= self.deadline
    }

    /// Moves the sleep to another deadline, even after it has ended.
    ///
    /// A waiting task is woken at the new deadline. Moving to a later deadline costs one store, so an idle timeout can
    /// be moved at each message.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Instant, sleep};
    /// use std::{pin::Pin, time::Duration};
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let start = Instant::now();
    /// let mut sleep = sleep(Duration::from_secs(1));
    /// Pin::new(&mut sleep).reset(start + Duration::from_secs(60));
    /// sleep.await;
    /// assert_eq!(start.elapsed().as_secs(), 60);
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the timer is pending, and the paused clock was moved so far that the new deadline can never come (see
    /// [`sleep`]). The deadline is unchanged then.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.get_mut();
        let reset = this.lease().map(|lease| lease.reset(this.key, deadline));
        if let Some(Err(Refusal::OutOfReach)) = reset {
            this.panic_out_of_reach();
        }
        this.deadline = deadline;
        (this.is_done, this.is_ahead) = (false, false);
        if let Some(Ok(false) | Err(_)) = reset {
            this.store = None;
        }
    }

    /// The call that messages and notes name.
    pub(crate) fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Makes messages and notes name this call instead of the one that made the sleep.
    pub(crate) fn relabel(&mut self, origin: Origin, location: &'static Location<'static>) {
        (self.origin, self.location) = (origin, location);
    }

    /// Returns `true` if the sleep has never waited.
    pub(crate) fn is_new(&self) -> bool {
        !self.is_done && self.store.is_none()
    }

    /// Polls like `poll`, but never yields for the budget.
    #[inline]
    pub(crate) fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_done {
            ready!(self.wait(cx));
            self.is_done = true;
            self.disarm();
        }
        Poll::Ready(())
    }

    /// Arranges that the task is woken at the deadline; ready if that has passed.
    #[inline]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_ahead {
            self.is_ahead = false;
            return self.arm(cx);
        }
        let Some(lease) = self.lease() else {
            return if self.now() >= self.deadline { Poll::Ready(()) } else { self.arm(cx) };
        };
        // The wheel is asked before the clock: if it has fired the timer, the clock need not be read.
        match lease.watch(self.key, cx.waker()) {
            State::Fired => {
                self.store = None;
                Poll::Ready(())
            }
            State::Dead => self.rearm(cx),
            State::Pending(_) if self.now() >= self.deadline => Poll::Ready(()),
            State::Pending(deadline_ns) => self.pend(deadline_ns),
        }
    }

    /// Adds the sleep to the timers of the thread's context.
    #[inline]
    fn arm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(lease) = current::lease() else { return self.ready_or(Sleep::panic_no_runtime) };
        match lease.add(self.deadline, cx.waker().clone()) {
            Ok((key, deadline_ns)) => {
                (self.store, self.number, self.key) = (Some(lease.store), lease.number, key);
                self.pend(deadline_ns)
            }
            Err(Refusal::Dead) => self.ready_or(Sleep::panic_dead),
            Err(Refusal::OutOfReach) => self.panic_out_of_reach(),
        }
    }

    /// Changes from timers that were shut down to those of the context, if that is another runtime's.
    #[cold]
    fn rearm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_over = self.now() >= self.deadline;
        self.store = None;
        if is_over {
            return Poll::Ready(());
        }
        if current::lease().is_none() {
            return self.ready_or(Sleep::panic_dead);
        }
        if self.now() >= self.deadline { Poll::Ready(()) } else { self.arm(cx) }
    }

    /// Ready if the deadline has passed, or the caller finds out by itself. Otherwise there is nothing to wait on, and
    /// `refuse` panics.
    #[cold]
    fn ready_or(&self, refuse: fn(&Sleep) -> !) -> Poll<()> {
        if self.origin == Origin::Retry || self.now() >= self.deadline { Poll::Ready(()) } else { refuse(self) }
    }

    /// Leaves a note of the wait.
    #[inline]
    fn pend(&self, deadline_ns: u64) -> Poll<()> {
        if self.origin != Origin::Retry {
            let reason = if self.origin.is_limit() { Reason::Limit(deadline_ns) } else { Reason::Timer(deadline_ns) };
            leave_note(Note { reason, location: self.location });
        }
        Poll::Pending
    }

    /// Takes back the note of a call that no longer waits.
    #[inline]
    pub(crate) fn forget_note(&self) {
        if self.store.is_some() {
            forget_timer(|timer| ptr::eq(timer.location(), self.location));
        }
    }

    #[inline]
    fn disarm(&mut self) {
        if let Some(lease) = self.lease() {
            self.store = None;
            lease.remove(self.key);
        }
    }

    #[inline]
    fn lease(&self) -> Option<WheelLease> {
        self.store.map(|store| WheelLease { store, number: self.number })
    }

    /// The time of the clock that the sleep uses.
    fn now(&self) -> Instant {
        self.lease().and_then(WheelLease::now).unwrap_or_else(Instant::now)
    }

    #[cold]
    fn panic_no_runtime(&self) -> ! {
        let (call, place) = (self.origin.name(), self.location);
        assert!(
            !current::is_ending(),
            "`{call}`, called at {place}, was polled in a destructor of a thread-local, while its thread ends: \
             no mini runtime can run there"
        );
        panic!(
            "`{call}`, called at {place}, was polled on a thread that runs no mini runtime: use `#[mini::main]`, \
             `mini::block_on` or `Runtime::enter`"
        )
    }

    #[cold]
    fn panic_out_of_reach(&self) -> ! {
        panic!(
            "`{}`, called at {}, would never end: the paused clock was moved so far that the deadline is more than \
             584 years after its start, where timers end",
            self.origin.name(),
            self.location
        )
    }

    #[cold]
    fn panic_dead(&self) -> ! {
        panic!("`{}`, called at {}, was polled after its mini runtime was shut down", self.origin.name(), self.location)
    }
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Origin::Sleep => "mini::time::sleep",
            Origin::SleepUntil => "mini::time::sleep_until",
            Origin::Timeout => "mini::time::timeout",
            Origin::TimeoutAt => "mini::time::timeout_at",
            Origin::Deadline => "mini::time::deadline",
            Origin::Interval => "mini::time::interval",
            Origin::IntervalAt => "mini::time::interval_at",
            Origin::Tick => "mini::time::Interval::tick",
            Origin::Retry => "a call that is tried again",
        }
    }

    /// Returns `true` if the sleep only limits the wait of another future.
    fn is_limit(self) -> bool {
        matches!(self, Origin::Timeout | Origin::TimeoutAt | Origin::Deadline)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.get_mut();
        ready!(sleep.poll_elapsed(cx));
        mini_context::poll_budget(cx, sleep)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.forget_note();
        self.disarm();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("is_elapsed", &self.is_elapsed())
            .finish_non_exhaustive()
    }
}
