//! `Phases`: one turn of a worker's loop, as passed to the user's hook. Made in `turns.rs`.

use std::fmt;
use std::time::Duration;

/// One turn of a worker's loop, phase by phase; see [`Builder::on_turn`](crate::runtime::Builder::on_turn).
///
/// A turn begins with a check for events and timers. A worker that has nothing to do waits for them; a busy worker
/// checks without a wait, after at most half a millisecond of work and the poll in progress. The worker delivers the
/// events and timers that are due, and polls the tasks that have been woken. For the rest of the time it polls tasks
/// that have run for long without a wait and ask to run again. If no task is left, it wakes one future that waits for
/// [`task::idle`](crate::task::idle()).
///
/// Times are those of the system's clock, even if the runtime's is [paused](crate::time::pause). Reading it takes
/// about 50 ns for each poll, of which the turn counts half as its rest. `Display` prints one line.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// let (sender, turns) = mpsc::channel();
/// let runtime = mini::runtime::Builder::new_current_thread()
///     .on_turn(move |phases| sender.send(phases.clone()).unwrap())
///     .build()?;
/// runtime.block_on(mini::time::sleep(std::time::Duration::from_millis(1)));
/// drop(runtime);
/// let turns: Vec<_> = turns.iter().collect();
/// assert_eq!(turns.iter().map(|turn| turn.timers()).sum::<usize>(), 1);
/// assert!(turns.iter().all(|turn| turn.worker() == 0 && turn.again() == 0));
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases {
    pub(crate) worker: usize,
    pub(crate) waited: Duration,
    pub(crate) events: usize,
    pub(crate) timers: usize,
    pub(crate) woken: (usize, Duration),
    pub(crate) again: (usize, Duration),
    pub(crate) idle: usize,
    pub(crate) rest: Duration,
}

impl Phases {
    /// Returns the index of the worker in its runtime, as in [`Metrics`](crate::runtime::Metrics).
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Returns the time that the worker has waited. The wait ends when events and timers have been delivered.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the number of descriptors that the system has reported as ready.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn events(&self) -> usize {
        self.events
    }

    /// Returns the number of timers that the worker has fired, including those of other workers, but not those that the
    /// runtime's monitor fires while all workers are busy.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn timers(&self) -> usize {
        self.timers
    }

    /// Returns the number of polls of tasks that had been woken, including the future in `block_on`.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn woken(&self) -> usize {
        self.woken.0
    }

    /// Returns the total duration of those polls.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn woken_time(&self) -> Duration {
        self.woken.1
    }

    /// Returns the number of polls of tasks that had run for long without a wait and asked to run again.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn again(&self) -> usize {
        self.again.0
    }

    /// Returns the total duration of those polls.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn again_time(&self) -> Duration {
        self.again.1
    }

    /// Returns the number of futures waiting for [`task::idle`](crate::task::idle()) that were woken: one or none.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn idle(&self) -> usize {
        self.idle
    }

    /// Returns the rest of the turn's time: the check for events, and the scheduler itself.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn rest(&self) -> Duration {
        self.rest
    }

    /// Whether nothing has happened.
    pub(crate) fn is_empty(&self) -> bool {
        let count = self.events + self.timers + self.woken.0 + self.again.0 + self.idle;
        count == 0 && self.waited.is_zero()
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, waited, events, timers, woken, again, idle, rest } = self;
        let short = |time: &Duration| format!("{:.1} us", time.as_nanos() as f64 / 1e3);
        write!(
            f,
            "worker {worker}: waited {}, {events} events, {timers} timers, woken {} in {}, again {} in {}, \
             idle {idle}, rest {}",
            short(waited),
            woken.0,
            short(&woken.1),
            again.0,
            short(&again.1),
            short(rest)
        )
    }
}
