//! A clock tick: one sleep, set again and again.
//!
//! Rejected:
//! - A boxed sleep, as where sleeps must not move: an interval here is one flat value.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::instant::Instant;
use crate::sleep::{Origin, Sleep};

#[cfg(test)]
mod tests;

/// A tick that is taken less than this late, or less than a period if that is shorter, makes no new plan. Otherwise
/// [`MissedTickBehavior::Delay`] would drift by the time it takes to wake a task.
const TOLERANCE: Duration = Duration::from_millis(5);

/// Ticks at a fixed period, made by [`interval`] and [`interval_at`].
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, Interval, interval};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now();
/// let mut beat: Interval = interval(Duration::from_secs(10));
/// beat.tick().await;
/// beat.tick().await;
/// beat.tick().await;
/// assert_eq!(start.elapsed().as_secs(), 20);
/// # });
/// ```
#[derive(Debug)]
pub struct Interval {
    next: Sleep,
    period: Duration,
    behavior: MissedTickBehavior,
}

/// Future of [`Interval::tick`]: resolves to the [`Instant`] at which the tick was due.
///
/// # Examples
///
/// ```
/// use mini::time::{Tick, interval};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let mut beat = interval(Duration::from_secs(1));
/// let tick: Tick<'_> = beat.tick();
/// tick.await;
/// # });
/// ```
///
/// # Cancel safety
///
/// Safe: a tick that was not returned is kept for the next call.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Tick<'a> {
    interval: &'a mut Interval,
}

/// The behavior of an [`Interval`] when a tick is taken so late that another is due.
///
/// Ticks of a period of 50 ms, the second taken 120 ms late (`|` a tick, `*` a late one):
///
/// ```text
/// planned  0    50   100  150  200  250  300
/// Burst    |                ***|    |    |    170, 170, 170, 200, 250
/// Delay    |                *    |    |       170, 220, 270
/// Skip     |                *  |    |    |    170, 200, 250
/// ```
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, MissedTickBehavior, interval, sleep};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let ms = Duration::from_millis;
/// let start = Instant::now();
/// let mut beat = interval(ms(50));
/// beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// beat.tick().await;
/// sleep(ms(170)).await;
/// beat.tick().await;
/// beat.tick().await;
/// assert_eq!(start.elapsed(), ms(200));
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MissedTickBehavior {
    /// Ticks at once, until it has caught up with the plan.
    #[default]
    Burst,
    /// Makes a new plan that begins with the late tick, if that is late by a period or 5 ms, whichever is less. If it
    /// is less late, the old plan continues; otherwise the interval would drift by the time it takes to wake a task.
    Delay,
    /// Skips the missed ticks and continues with the plan.
    Skip,
}

/// Creates an interval that ticks every `period`, the first time at once.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, interval};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now();
/// let mut beat = interval(Duration::from_millis(10));
/// assert_eq!(beat.tick().await, start);
/// assert_eq!(beat.tick().await, start + Duration::from_millis(10));
/// # });
/// ```
///
/// # Panics
///
/// Panics if `period` is zero.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must not be zero");
    Interval::new(Sleep::new(Instant::now(), Origin::Interval), period)
}

/// Creates an interval that ticks every `period`, the first time at `start`.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, interval_at};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now() + Duration::from_secs(1);
/// let mut beat = interval_at(start, Duration::from_millis(10));
/// assert_eq!(beat.tick().await, start);
/// # });
/// ```
///
/// # Panics
///
/// Panics if `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must not be zero");
    Interval::new(Sleep::new(start, Origin::IntervalAt), period)
}

impl Interval {
    fn new(next: Sleep, period: Duration) -> Interval {
        Interval { next, period, behavior: MissedTickBehavior::default() }
    }

    /// Waits for the next tick and returns the instant it was planned for.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini::time::{Instant, interval};
    /// # use std::time::Duration;
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let mut beat = interval(Duration::from_secs(1));
    /// let first = beat.tick().await;
    /// assert_eq!(beat.tick().await, first + Duration::from_secs(1));
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// A poll before the tick panics on a thread that runs no mini runtime, or whose runtime was shut down. It also
    /// panics if a paused clock was moved too far; see [`sleep`](crate::sleep()). The call itself does not panic.
    ///
    /// # Cancel safety
    ///
    /// Safe: a tick that was not returned is kept for the next call.
    #[track_caller]
    pub fn tick(&mut self) -> Tick<'_> {
        self.next.relabel(Origin::Tick, Location::caller());
        Tick { interval: self }
    }

    /// Polls for the next tick. Returns the instant the tick was planned for; or returns `Pending`, and the task is
    /// woken at the tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini::time::interval;
    /// # use std::time::Duration;
    /// use std::future::poll_fn;
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let mut beat = interval(Duration::from_secs(1));
    /// let first = poll_fn(|cx| beat.poll_tick(cx)).await;
    /// assert_eq!(poll_fn(|cx| beat.poll_tick(cx)).await, first + Duration::from_secs(1));
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the tick lies ahead and the thread runs no mini runtime, or one that was shut down.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.next).poll(cx));
        let due = self.next.deadline();
        let next = self.after(due, Instant::now());
        self.reset_at(next);
        Poll::Ready(due)
    }

    /// Resets the interval: the next tick comes a period from now.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini::time::{Instant, interval, sleep};
    /// # use std::time::Duration;
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let ms = Duration::from_millis;
    /// let start = Instant::now();
    /// let mut beat = interval(ms(100));
    /// beat.tick().await;
    /// sleep(ms(50)).await;
    /// beat.reset();
    /// assert_eq!(beat.tick().await - start, ms(150));
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Same as [`Sleep::reset`](crate::Sleep::reset).
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Resets the interval: the next tick comes at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini::time::{Instant, interval, sleep};
    /// # use std::time::Duration;
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let ms = Duration::from_millis;
    /// let start = Instant::now();
    /// let mut beat = interval(ms(100));
    /// beat.tick().await;
    /// sleep(ms(50)).await;
    /// beat.reset_immediately();
    /// assert_eq!(beat.tick().await - start, ms(50));
    /// assert_eq!(beat.tick().await - start, ms(150));
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Same as [`Sleep::reset`](crate::Sleep::reset).
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// Resets the interval: the next tick comes `duration` from now.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini::time::{Instant, interval, sleep};
    /// # use std::time::Duration;
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let ms = Duration::from_millis;
    /// let start = Instant::now();
    /// let mut beat = interval(ms(100));
    /// beat.reset_after(ms(20));
    /// assert_eq!(beat.tick().await - start, ms(20));
    /// assert_eq!(beat.tick().await - start, ms(120));
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Same as [`Sleep::reset`](crate::Sleep::reset).
    pub fn reset_after(&mut self, duration: Duration) {
        self.reset_at(Instant::now().saturating_add(duration));
    }

    /// Resets the interval: the next tick comes at `deadline`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini::time::{Instant, interval, sleep};
    /// # use std::time::Duration;
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let mut beat = interval(Duration::from_secs(1));
    /// let deadline = Instant::now() + Duration::from_secs(9);
    /// beat.reset_at(deadline);
    /// assert_eq!(beat.tick().await, deadline);
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Same as [`Sleep::reset`](crate::Sleep::reset).
    pub fn reset_at(&mut self, deadline: Instant) {
        Pin::new(&mut self.next).reset(deadline);
    }

    /// Returns the behavior of the interval for missed ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{MissedTickBehavior, interval};
    ///
    /// let beat = interval(std::time::Duration::from_secs(1));
    /// assert_eq!(beat.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// ```
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Sets the behavior for ticks that are missed from now on.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{MissedTickBehavior, interval};
    ///
    /// let mut beat = interval(std::time::Duration::from_secs(1));
    /// beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    /// assert_eq!(beat.missed_tick_behavior(), MissedTickBehavior::Delay);
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }

    /// Returns the time from one tick to the next.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::interval;
    /// use std::time::Duration;
    ///
    /// assert_eq!(interval(Duration::from_secs(1)).period(), Duration::from_secs(1));
    /// ```
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The next tick after one that was planned for `due` and taken at `now`.
    fn after(&self, due: Instant, now: Instant) -> Instant {
        let late = now - due;
        match self.behavior {
            MissedTickBehavior::Delay if late >= self.period.min(TOLERANCE) => now.saturating_add(self.period),
            MissedTickBehavior::Delay | MissedTickBehavior::Burst => due.saturating_add(self.period),
            MissedTickBehavior::Skip => now.saturating_add(self.period - remainder(late, self.period)),
        }
    }
}

/// An endless stream of the ticks. Requires the feature `stream`.
#[cfg(feature = "stream")]
impl futures_core::Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(cx).map(Some)
    }
}

/// The remainder of `duration` divided by `period`.
fn remainder(duration: Duration, period: Duration) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let rest = duration.as_nanos() % period.as_nanos();
    // The remainder is less than `period`, so its seconds fit.
    Duration::new((rest / SECOND) as u64, (rest % SECOND) as u32)
}

impl Drop for Tick<'_> {
    fn drop(&mut self) {
        self.interval.next.forget_note(); // the timer stays
    }
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        self.interval.poll_tick(cx)
    }
}
