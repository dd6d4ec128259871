//! A point in time on the clock of the current context.
//!
//! Users and all of this crate pass times in it. It is `std`'s instant with two differences: a test may stop `now` or
//! make it jump, and subtracting a later instant gives zero.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, Instant as SystemInstant};

use crate::current;

/// Stands in for a time that cannot be represented. Timers count 64 bits of nanoseconds, 584 years, so a timer that far
/// away never fires.
const FAR: Duration = Duration::from_secs(1000 * 365 * 24 * 60 * 60);

/// A point in time on a clock that never goes back.
///
/// # Examples
///
/// ```
/// use mini::time::Instant;
/// use std::time::Duration;
///
/// let start = Instant::now();
/// let later = start + Duration::from_millis(20);
/// assert_eq!(later - start, Duration::from_millis(20));
/// assert_eq!(start - later, Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(SystemInstant);

impl Instant {
    /// Returns the time of the current context's clock, or the system's on a thread that is in no context.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::Instant;
    ///
    /// assert!(Instant::now() <= Instant::now());
    /// ```
    #[inline]
    pub fn now() -> Instant {
        current::now()
    }

    /// Converts one of `std`'s instants into the same point in time.
    ///
    /// # Examples
    ///
    /// ```
    /// let now = std::time::Instant::now();
    /// assert_eq!(mini::time::Instant::from_std(now).into_std(), now);
    /// ```
    pub const fn from_std(instant: SystemInstant) -> Instant {
        Instant(instant)
    }

    /// Converts this into `std`'s instant, which knows nothing of paused clocks.
    ///
    /// # Examples
    ///
    /// ```
    /// let now = mini::time::Instant::now();
    /// assert_eq!(mini::time::Instant::from_std(now.into_std()), now);
    /// ```
    pub const fn into_std(self) -> SystemInstant {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is the later one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let start = mini::time::Instant::now();
    /// let end = start + Duration::from_secs(1);
    /// assert_eq!(end.duration_since(start), Duration::from_secs(1));
    /// assert_eq!(start.duration_since(end), Duration::ZERO);
    /// ```
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns the time from `earlier` to `self`, or `None` if `earlier` is the later one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let start = mini::time::Instant::now();
    /// let end = start + Duration::from_secs(1);
    /// assert_eq!(end.checked_duration_since(start), Some(Duration::from_secs(1)));
    /// assert_eq!(start.checked_duration_since(end), None);
    /// ```
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is the later one; same as
    /// [`duration_since`](Instant::duration_since).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let start = mini::time::Instant::now();
    /// let end = start + Duration::from_secs(1);
    /// assert_eq!(start.saturating_duration_since(end), Duration::ZERO);
    /// ```
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns the time from `self` to now, or zero if `self` lies ahead.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use mini::time::Instant;
    ///
    /// let start = Instant::now();
    /// assert!(start.elapsed() <= Instant::now() - start);
    /// assert_eq!((start + Duration::from_secs(3600)).elapsed(), Duration::ZERO);
    /// ```
    pub fn elapsed(&self) -> Duration {
        Instant::now() - *self
    }

    /// Returns the point `duration` later, or `None` if that cannot be represented.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let now = mini::time::Instant::now();
    /// assert_eq!(now.checked_add(Duration::ZERO), Some(now));
    /// assert_eq!(now.checked_add(Duration::MAX), None);
    /// ```
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(duration).map(Instant)
    }

    /// Returns the point `duration` earlier, or `None` if that cannot be represented.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let now = mini::time::Instant::now();
    /// assert_eq!(now.checked_sub(Duration::ZERO), Some(now));
    /// assert_eq!(now.checked_sub(Duration::MAX), None);
    /// ```
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(duration).map(Instant)
    }

    /// The point `duration` later, or one so far away that a timer for it never fires.
    pub(crate) fn saturating_add(self, duration: Duration) -> Instant {
        match self.checked_add(duration) {
            Some(sum) => sum,
            // No clock goes to within FAR of the end of what can be represented: the caller has made this instant.
            None => self.checked_add(FAR).unwrap_or(self),
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// # Panics
    ///
    /// Panics if the sum cannot be represented.
    #[track_caller]
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).expect("the instant is too late to be represented")
    }
}

impl AddAssign<Duration> for Instant {
    #[track_caller]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// # Panics
    ///
    /// Panics if the difference cannot be represented.
    #[track_caller]
    fn sub(self, duration: Duration) -> Instant {
        self.checked_sub(duration).expect("the instant is too early to be represented")
    }
}

impl SubAssign<Duration> for Instant {
    #[track_caller]
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl From<SystemInstant> for Instant {
    fn from(instant: SystemInstant) -> Instant {
        Instant(instant)
    }
}

impl From<Instant> for SystemInstant {
    fn from(instant: Instant) -> SystemInstant {
        instant.0
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn sums_that_cannot_be_represented_never_come() {
        let clock = Clock::pausable(true);
        let far = clock.now().saturating_add(Duration::MAX);
        assert!(far > clock.now() + 999 * Duration::from_secs(365 * 24 * 60 * 60));
        assert_eq!(clock.nanos(far), u64::MAX);
    }

    #[test]
    fn assignment_is_the_operator() {
        let start = Instant::now();
        let mut moved = start;
        moved += Duration::from_secs(5);
        assert_eq!(moved, start + Duration::from_secs(5));
        moved -= Duration::from_secs(2);
        assert_eq!(moved, start + Duration::from_secs(3));
        assert_eq!(SystemInstant::from(Instant::from(moved.into_std())), moved.into_std());
    }

    #[test]
    #[should_panic(expected = "too late")]
    fn adding_too_much_panics() {
        let _ = Instant::now() + Duration::MAX;
    }
}
