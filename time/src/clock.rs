//! The clock: the only place that asks the system for the time, and the only one that can stop it.
//!
//! A runtime makes one clock and gives a clone to each of its [`Timers`](crate::Timers);
//! [`Instant::now`](crate::Instant::now) reads the one of the current context.
//!
//! Rejected:
//! - One virtual clock for the whole process: two tests in two threads would move each other's time.
//! - Reading the time in a lock whenever it *might* be paused: `current_thread` runtimes always can be, so a clock that
//!   was never paused costs one load more than the system's own.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as SystemInstant};

use crate::instant::Instant;

#[cfg(test)]
mod tests;

/// A source of time: the system's, or one that can be paused and moved by hand.
///
/// Clones are the same clock. It never goes backwards.
///
/// # Examples
///
/// ```
/// use mini_time::Clock;
/// use std::time::Duration;
///
/// let clock = Clock::pausable(true);
/// let start = clock.now();
/// clock.advance(Duration::from_secs(3600))?;
/// assert_eq!(clock.now() - start, Duration::from_secs(3600));
/// # Ok::<(), mini_time::ClockError>(())
/// ```
#[derive(Clone)]
pub struct Clock {
    /// The time of creation. It is here so that a worker that measures its runs reads it without the rest.
    base: SystemInstant,
    pausable: Option<Arc<Pausable>>,
}

struct Pausable {
    /// `true` if the clock has ever been paused. Before that it is the system's, and `run` is not read.
    was_paused: AtomicBool,
    run: Mutex<Run>,
}

#[derive(Clone, Copy)]
enum Run {
    /// The time was `from` when the system's clock showed `since`.
    Running {
        from: SystemInstant,
        since: SystemInstant,
    },
    Paused {
        at: SystemInstant,
    },
}

/// The reason why a [`Clock`] refused to be paused, resumed or moved.
///
/// # Examples
///
/// ```
/// use mini_time::{Clock, ClockError};
///
/// assert_eq!(Clock::real().pause(), Err(ClockError::Unpausable));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockError {
    /// The clock is the system's, which other threads read as well.
    Unpausable,
    /// The clock is running, and only a paused clock can be moved.
    Running,
    /// The clock would show a time 584 years after its start, where timers end.
    TooFar,
}

/// The last time, in nanoseconds since the base, at which a timer fires; a clock is not moved past it. `u64::MAX` is
/// never.
const LAST: u64 = u64::MAX - 1;

/// A wait shorter than this is meant to end; a longer one means "never".
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl Clock {
    /// Creates a handle to the system's monotonic clock, which cannot be paused.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::real();
    /// assert!(!clock.is_paused());
    /// ```
    pub fn real() -> Clock {
        Clock { base: SystemInstant::now(), pausable: None }
    }

    /// Creates a clock that runs with the system's until it is paused.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::pausable(true);
    /// assert_eq!(clock.now(), clock.now());
    /// ```
    pub fn pausable(start_paused: bool) -> Clock {
        let base = SystemInstant::now();
        let run = if start_paused { Run::Paused { at: base } } else { Run::Running { from: base, since: base } };
        Clock::with_run(base, start_paused, run)
    }

    /// Creates a clock that is paused at `at`, and moved by hand.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// let at = Instant::now();
    /// assert_eq!(mini_time::Clock::paused_at(at).now().into_std(), at);
    /// ```
    pub fn paused_at(at: SystemInstant) -> Clock {
        Clock::with_run(at, true, Run::Paused { at })
    }

    fn with_run(base: SystemInstant, was_paused: bool, run: Run) -> Clock {
        let pausable = Pausable { was_paused: AtomicBool::new(was_paused), run: Mutex::new(run) };
        Clock { base, pausable: Some(Arc::new(pausable)) }
    }

    /// Returns the time that the clock shows.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::real();
    /// assert!(clock.now() <= clock.now());
    /// ```
    #[inline]
    pub fn now(&self) -> Instant {
        let now = match &self.pausable {
            None => SystemInstant::now(),
            Some(pausable) => pausable.now(),
        };
        Instant::from_std(now)
    }

    /// Returns the nanoseconds from the clock's base, its time of creation, to `instant`.
    ///
    /// Returns `0` if `instant` lies before the base, and `u64::MAX` if it lies more than 584 years after it. Timers
    /// and [`Note`](mini_context::Note)s count in these nanoseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = mini_time::Clock::pausable(true);
    /// let second = Duration::from_secs(1);
    /// assert_eq!(clock.nanos(clock.now() + second), 1_000_000_000);
    /// assert_eq!(clock.nanos(clock.now() - second), 0);
    /// ```
    #[inline]
    pub fn nanos(&self, instant: Instant) -> u64 {
        let since = instant.into_std().saturating_duration_since(self.base);
        since.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(since.subsec_nanos()))
    }

    /// Returns the instant `nanos` nanoseconds after the clock's base.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::real();
    /// assert_eq!(clock.nanos(clock.instant(1300)), 1300);
    /// ```
    pub fn instant(&self, nanos: u64) -> Instant {
        Instant::from_std(self.base).saturating_add(Duration::from_nanos(nanos))
    }

    /// Returns the nanoseconds of the system's time since the clock was made, whether or not the clock is paused.
    ///
    /// For a runtime that measures its own work. While the clock was never paused, these are the nanoseconds that
    /// timers count in.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::pausable(true);
    /// let begin = clock.system_nanos();
    /// while clock.system_nanos() == begin {}
    /// ```
    #[inline]
    pub fn system_nanos(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    /// Returns `true` if the clock shows the system's time, because it was never paused.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(mini_time::Clock::real().is_system());
    /// assert!(!mini_time::Clock::pausable(true).is_system());
    /// ```
    #[inline]
    pub fn is_system(&self) -> bool {
        self.pausable.as_ref().is_none_or(|pausable| !pausable.was_paused.load(Ordering::Relaxed))
    }

    /// Returns `true` if the clock is paused.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::pausable(false);
    /// assert!(!clock.is_paused());
    /// clock.pause()?;
    /// assert!(clock.is_paused());
    /// # Ok::<(), mini_time::ClockError>(())
    /// ```
    pub fn is_paused(&self) -> bool {
        self.pausable.as_ref().is_some_and(|pausable| pausable.is_paused())
    }

    /// Pauses the clock; does nothing if it is paused.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::pausable(false);
    /// clock.pause()?;
    /// assert_eq!(clock.now(), clock.now());
    /// # Ok::<(), mini_time::ClockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::Unpausable`] for a clock made by [`Clock::real`].
    pub fn pause(&self) -> Result<(), ClockError> {
        let pausable = self.as_pausable()?;
        let mut run = pausable.lock();
        *run = Run::Paused { at: run.now() };
        // Relaxed: a thread that must see the pause at once takes the lock, or was told by the thread that paused.
        pausable.was_paused.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Resumes the clock from the time that it shows; does nothing if it runs.
    ///
    /// # Examples
    ///
    /// ```
    /// let clock = mini_time::Clock::pausable(true);
    /// let paused_at = clock.now();
    /// clock.resume()?;
    /// assert!(!clock.is_paused());
    /// assert!(clock.now() >= paused_at);
    /// # Ok::<(), mini_time::ClockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::Unpausable`] for a clock made by [`Clock::real`].
    pub fn resume(&self) -> Result<(), ClockError> {
        let mut run = self.as_pausable()?.lock();
        if let Run::Paused { at } = *run {
            *run = Run::Running { from: at, since: SystemInstant::now() };
        }
        Ok(())
    }

    /// Moves the clock forward by `duration`. Timers that become due are not fired; see
    /// [`Timers::turn`](crate::Timers::turn).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = mini_time::Clock::pausable(true);
    /// clock.advance(Duration::from_nanos(5))?;
    /// assert_eq!(clock.nanos(clock.now()), 5);
    /// # Ok::<(), mini_time::ClockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::Unpausable`] for a clock made by [`Clock::real`], [`ClockError::Running`] for one that is
    /// not paused, [`ClockError::TooFar`] if it would show a time more than 584 years after its base.
    pub fn advance(&self, duration: Duration) -> Result<(), ClockError> {
        let pausable = self.as_pausable()?;
        let run = &mut *pausable.lock();
        let Run::Paused { at } = run else { return Err(ClockError::Running) };
        let target = at.checked_add(duration).ok_or(ClockError::TooFar)?;
        if self.nanos(Instant::from_std(target)) > LAST {
            return Err(ClockError::TooFar);
        }
        *at = target;
        Ok(())
    }

    /// Returns `true` if a timer for `deadline` is meant to fire and never would: the clock has been moved to within a
    /// century of the last time that timers count.
    #[cold]
    pub(crate) fn is_out_of_reach(&self, deadline: Instant) -> bool {
        self.nanos(deadline) > LAST && deadline - self.now() < CENTURY
    }

    /// Moves a paused clock forward to `nanos`, if that is ahead. Returns the time the clock shows then.
    pub(crate) fn advance_to(&self, nanos: u64) -> u64 {
        let target = self.instant(nanos).into_std();
        if let Some(pausable) = &self.pausable
            && let Run::Paused { at } = &mut *pausable.lock()
        {
            *at = target.max(*at);
        }
        self.now_nanos()
    }

    /// The time in nanoseconds since the base.
    #[inline]
    pub(crate) fn now_nanos(&self) -> u64 {
        self.nanos(self.now())
    }

    fn as_pausable(&self) -> Result<&Pausable, ClockError> {
        self.pausable.as_deref().ok_or(ClockError::Unpausable)
    }
}

impl Pausable {
    #[inline]
    fn now(&self) -> SystemInstant {
        if self.was_paused.load(Ordering::Relaxed) { self.lock().now() } else { SystemInstant::now() }
    }

    fn is_paused(&self) -> bool {
        self.was_paused.load(Ordering::Relaxed) && matches!(*self.lock(), Run::Paused { .. })
    }

    /// Poison is ignored: nothing under this lock leaves `Run` half changed.
    fn lock(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn now(self) -> SystemInstant {
        match self {
            Run::Running { from, since } => from + since.elapsed(),
            Run::Paused { at } => at,
        }
    }
}

/// The time of the system's clock, for a thread that is in no context.
pub(crate) fn system_now() -> Instant {
    Instant::from_std(SystemInstant::now())
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.pausable {
            None => "real",
            Some(pausable) if pausable.is_paused() => "paused",
            Some(_) => "pausable",
        };
        write!(f, "Clock({kind})")
    }
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClockError::Unpausable => "this clock cannot be paused: only that of a current_thread runtime can",
            ClockError::Running => "the clock is running: pause it before moving it",
            ClockError::TooFar => "the clock cannot be moved further than 584 years after its start, where timers end",
        })
    }
}

impl Error for ClockError {}
