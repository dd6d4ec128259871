//! The future that waits for a point in time, and that the others of this crate are made of.
//!
//! It registers late: only a poll that finds its deadline ahead adds it to the timers of the thread's context. From
//! then on it belongs to those timers, wherever it is polled or dropped.
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
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::context::{self, Note};
use crate::instant::Instant;
use crate::timers::{Dead, State, Timers};
use crate::wheel::Key;

#[cfg(test)]
mod tests;

/// Waits until a point in time, made by [`sleep`] and [`sleep_until`].
///
/// It may move between polls, and be polled and dropped on any thread.
///
/// # Examples
///
/// ```
/// use mini_time::{Instant, Sleep, sleep};
/// use std::time::Duration;
///
/// # mini_time::doc::block_on(async {
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
    armed: Option<Armed>,
    location: &'static Location<'static>,
    origin: Origin,
    is_done: bool,
}

/// The function that made a [`Sleep`], for messages.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    Sleep,
    SleepUntil,
    Timeout,
    TimeoutAt,
    Interval,
    IntervalAt,
    Tick,
}

struct Armed {
    timers: Timers,
    key: Key,
}

const _: () = {
    assert!(size_of::<Sleep>() <= 56);
    const fn assert_anywhere<T: Send + Sync + Unpin>() {}
    assert_anywhere::<Sleep>();
};

/// Waits for `duration`, counted from this call.
///
/// It never ends early. A duration of zero is ready at the first poll; one too long to be represented, such as
/// [`Duration::MAX`], never ends.
///
/// # Examples
///
/// ```
/// use mini_time::{Instant, sleep};
/// use std::time::Duration;
///
/// # mini_time::doc::block_on(async {
/// let start = Instant::now();
/// sleep(Duration::from_millis(100)).await;
/// assert!(start.elapsed() >= Duration::from_millis(100));
/// # });
/// ```
///
/// # Panics
///
/// Not here, but when polled before its deadline on a thread that runs no mini runtime, or whose runtime was shut
/// down.
///
/// # Cancel safety
///
/// Safe: dropping it removes the timer.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::new(Instant::now().saturating_add(duration), Origin::Sleep)
}

/// Waits until `deadline`; one in the past is ready at the first poll.
///
/// # Examples
///
/// ```
/// use mini_time::{Instant, sleep_until};
/// use std::time::Duration;
///
/// # mini_time::doc::block_on(async {
/// let deadline = Instant::now() + Duration::from_millis(100);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
///
/// # Panics
///
/// As [`sleep`].
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
    pub(crate) fn new(deadline: Instant, origin: Origin) -> Sleep {
        Sleep { deadline, armed: None, location: Location::caller(), origin, is_done: false }
    }

    /// When it ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_time::{Instant, sleep_until};
    ///
    /// let now = Instant::now();
    /// assert_eq!(sleep_until(now).deadline(), now);
    /// ```
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether its time has come, polled or not.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_time::{Instant, sleep, sleep_until};
    /// use std::time::Duration;
    ///
    /// assert!(sleep_until(Instant::now()).is_elapsed());
    /// assert!(!sleep(Duration::from_secs(60)).is_elapsed());
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.is_done || self.now() >= self.deadline
    }

    /// Moves it to another deadline, also after it has ended.
    ///
    /// A task that waits for it is woken at the new deadline. Moving it to a later one costs a store, so a timeout for
    /// idleness can be moved at each message.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_time::{Instant, sleep};
    /// use std::{pin::Pin, time::Duration};
    ///
    /// # mini_time::doc::block_on(async {
    /// let start = Instant::now();
    /// let mut sleep = sleep(Duration::from_secs(1));
    /// Pin::new(&mut sleep).reset(start + Duration::from_secs(60));
    /// sleep.await;
    /// assert_eq!(start.elapsed().as_secs(), 60);
    /// # });
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.get_mut();
        this.deadline = deadline;
        this.is_done = false;
        if let Some(armed) = &this.armed
            && !armed.timers.reset(armed.key, deadline)
        {
            this.armed = None;
        }
    }

    /// Has messages and notes name this call instead of the one that made it.
    pub(crate) fn relabel(&mut self, origin: Origin, location: &'static Location<'static>) {
        (self.origin, self.location) = (origin, location);
    }

    /// As `poll`, but never yields for the budget.
    pub(crate) fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_done {
            let now = self.now();
            if now < self.deadline {
                ready!(self.wait(now, cx));
            }
            self.is_done = true;
            self.disarm();
        }
        Poll::Ready(())
    }

    /// Sees to it that the task is woken at the deadline, which is ahead of `now`. Ready if the timer fired meanwhile.
    fn wait(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let state = match &self.armed {
            Some(armed) => armed.timers.watch(armed.key, cx.waker()),
            None => self.arm(now, cx),
        };
        let state = match state {
            State::Dead => self.rearm(cx),
            state => state,
        };
        match state {
            State::Pending => {
                self.note();
                Poll::Pending
            }
            State::Fired => Poll::Ready(()),
            State::Dead => self.panic_dead(),
        }
    }

    /// Adds it to the timers of the thread's context.
    fn arm(&mut self, now: Instant, cx: &mut Context<'_>) -> State {
        let Some(timers) = context::current() else { self.panic_no_runtime() };
        match timers.add(self.deadline, now, cx.waker().clone()) {
            Ok(key) => {
                self.armed = Some(Armed { timers, key });
                State::Pending
            }
            Err(Dead) => State::Dead,
        }
    }

    /// Leaves timers that were shut down for those of the context, if that is another runtime's.
    #[cold]
    fn rearm(&mut self, cx: &mut Context<'_>) -> State {
        self.armed = None;
        if context::current().is_none() {
            return State::Dead;
        }
        let now = Instant::now();
        if now >= self.deadline { State::Fired } else { self.arm(now, cx) }
    }

    fn disarm(&mut self) {
        if let Some(armed) = self.armed.take() {
            armed.timers.remove(armed.key);
        }
    }

    /// The time of the clock it goes by.
    fn now(&self) -> Instant {
        match &self.armed {
            Some(armed) => armed.timers.clock().now(),
            None => Instant::now(),
        }
    }

    fn note(&self) {
        if let Some(armed) = &self.armed {
            let deadline_ns = armed.timers.clock().nanos(self.deadline);
            context::put_note(Note { deadline_ns, location: self.location });
        }
    }

    #[cold]
    fn panic_no_runtime(&self) -> ! {
        panic!(
            "`{}`, called at {}, was polled on a thread that runs no mini runtime: use `#[mini::main]`, \
             `mini::block_on` or `Runtime::enter`",
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
            Origin::Interval => "mini::time::interval",
            Origin::IntervalAt => "mini::time::interval_at",
            Origin::Tick => "mini::time::Interval::tick",
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.get_mut().poll_elapsed(cx));
        if context::spend(cx) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
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
