//! `Phases`: one turn of a worker's loop, as the user's hook is told of it. Made in `scheduler/worker/phases.rs`.

use std::fmt;
use std::time::Duration;

/// What one turn of a worker's loop has done, phase by phase: see [`Builder::on_turn`](crate::runtime::Builder::on_turn).
///
/// A worker waits if it has nothing to do, or else looks without a wait, after half a millisecond of work at most and
/// the poll in progress. Either way it delivers the events and timers that are due. Then it polls the tasks that have
/// been woken, and for the rest of the time those that have run for long without a wait and ask to go on. If no task
/// is left, it lets one future go on that waits for [`task::idle`](crate::task::idle()).
///
/// Times are measured as the scheduler needs them: short polls are measured several at a time, so those of a turn may
/// be told in part as the rest of it. Under a [paused](crate::time::pause) clock polls are counted, and not timed: their
/// times mean nothing. `Display` gives one line.
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
    /// The index of the worker in its runtime, as in [`Metrics`](crate::runtime::Metrics).
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// How long the worker has waited, the hooks around the wait included. The wait ends when what has come is
    /// delivered.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Descriptors that the system has reported as ready.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn events(&self) -> usize {
        self.events
    }

    /// Timers that the worker has fired, those of other workers included: not those that the runtime's monitor fires
    /// while all workers are busy.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn timers(&self) -> usize {
        self.timers
    }

    /// Polls of tasks that had been woken, the future in `block_on` included.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn woken(&self) -> usize {
        self.woken.0
    }

    /// How long those polls took together.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn woken_time(&self) -> Duration {
        self.woken.1
    }

    /// Polls of tasks that had run for long without a wait and asked to go on.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn again(&self) -> usize {
        self.again.0
    }

    /// How long those polls took together.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn again_time(&self) -> Duration {
        self.again.1
    }

    /// Futures that waited for [`task::idle`](crate::task::idle()) and were let go on: one, or none.
    ///
    /// # Examples
    ///
    /// See [`Phases`].
    pub fn idle(&self) -> usize {
        self.idle
    }

    /// The rest of the turn's time: what a look takes, and the scheduler itself.
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
            "worker {worker}: waited {}, {events} events, {timers} timers, woken {} in {}, again {} in {}, idle {idle}, rest {}",
            short(waited),
            woken.0,
            short(&woken.1),
            again.0,
            short(&again.1),
            short(rest)
        )
    }
}
