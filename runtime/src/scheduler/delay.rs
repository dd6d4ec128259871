//! Estimates how long a task that is spawned now would wait for its first poll, from data that workers have anyway.
//!
//! Called by [`queue_delay`] and [`Handle::queue_delay`](crate::runtime::Handle::queue_delay). At each look and before
//! each wait a worker notes in its core how long a run of a woken task takes ([`Pace`]), and after it when that was
//! ([`Load`]): a division and three plain stores. A caller multiplies the pace by the number of runs that come before
//! the new task ([`Ahead`]).
//!
//! The hard part: a queue of runs that take 20 µs or 5 ms has no typical run. The mean since the last look is often
//! that of a single run, and an answer that jumps between 1 and 100 ms admits all requests, then none. The mean of a
//! second does not see that the load has changed. So [`Pace`] forgets a sixteenth at each look: it remembers sixteen
//! runs where runs are long, and a thousand where they are short. `benches/EXPERIMENTS.md` has the error.
//!
//! The number of waiting tasks does not show the rest of the run in progress. The worker itself is in that run. Another
//! thread sees when the worker should have looked ([`Load::overdue`]): a run that has lasted for a second will, if
//! nothing else is known of it, last for about another one (Gott, "Implications of the Copernican principle", 1993).
//!
//! Rejected:
//! - The delay of the task that was measured last, by a stamp in every n-th wake. In a steady queue it is as good. But
//!   it is the delay of a task that was queued one delay ago: it reports a burst when the burst is over, and a layer
//!   that sheds by it admits too many, then too few. A stamp is a reading of the clock, and a word in the header.
//! - The age of the oldest waiting task: equally late, and half of the answer on average.
//! - The mean of all runs since the last look (`Worker::mean_run`): its error is two to five times as large.
//! - Reading the clock in [`queue_delay`] (30 ns): a layer that sheds asks for each request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mini_context::rules::{HEAD_START, LOOK_RUNS, LOOK_TIME, WOKEN_SHARE};
use mini_time::Clock;

use crate::scheduler::context;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::part_of_injector;
use crate::task::Class;

/// A look forgets one part in so many of what is remembered.
const FORGET: u64 = 16;

/// Runs are counted in parts, so that a sixteenth of a few is not nothing.
const PARTS: u64 = 1 << 10;

/// The recent mean duration of a woken task's run.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Neither grows beyond sixteen times what comes between two looks.
    nanos: u64,
    parts: u64,
}

impl Pace {
    /// Since the last look `runs` woken runs have taken `nanos`.
    fn note(&mut self, runs: u64, nanos: u64) {
        if runs > 0 {
            self.nanos = (self.nanos - self.nanos / FORGET).wrapping_add(nanos);
            self.parts = (self.parts - self.parts / FORGET).wrapping_add(runs.wrapping_mul(PARTS));
        }
    }

    /// Nanoseconds of a run; zero if there was none.
    fn mean(&self) -> u64 {
        self.nanos.saturating_mul(PARTS).checked_div(self.parts).unwrap_or(0)
    }
}

/// A worker's pace, as other threads see it. Written by the owner of the core. These are atomics of the standard
/// library, as in `counts.rs`: no protocol depends on them, and models stay small.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// The pace. In two words: a reader between the two stores errs by the last look's part.
    nanos: AtomicU64,
    parts: AtomicU64,
    /// When the last look or wait has ended, in system nanoseconds of the clock.
    looked: AtomicU64,
}

impl Load {
    /// Since the last look `runs` woken runs have taken `nanos`.
    pub(super) fn note_runs(&self, runs: u64, nanos: u64) {
        let mut pace = self.pace();
        pace.note(runs, nanos);
        self.nanos.store(pace.nanos, Relaxed);
        self.parts.store(pace.parts, Relaxed);
    }

    /// A look or a wait is over.
    #[inline]
    pub(super) fn note_look(&self, now: u64) {
        self.looked.store(now, Relaxed);
    }

    fn overdue(&self, now: u64) -> u64 {
        now.saturating_sub(self.looked.load(Relaxed)).saturating_sub(LOOK_TIME)
    }

    fn pace(&self) -> Pace {
        Pace { nanos: self.nanos.load(Relaxed), parts: self.parts.load(Relaxed) }
    }
}

impl Core {
    fn clock(&self) -> &Clock {
        self.driver().timers().clock()
    }

    /// How long a woken run takes, in nanoseconds: one, if runs are counted.
    fn mean_run(&self) -> u64 {
        let mean = self.load.pace().mean();
        if self.clock().is_system() { mean } else { mean.min(1) }
    }

    /// For how long the worker should have looked. One that is parked looks when it comes back.
    fn overdue(&self) -> u64 {
        if !self.is_up.load(Relaxed) || !self.clock().is_system() {
            return 0;
        }
        self.load.overdue(self.clock().system_nanos())
    }
}

/// The runs that come before a new task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ahead {
    /// Tasks in front of it on its worker.
    here: usize,
    /// Tasks in the injector, of which this worker runs a part.
    injected: usize,
    /// Woken tasks that wait anywhere, and the workers that run them.
    all: usize,
    workers: usize,
    /// Tasks of the class *again* wait too.
    has_again: bool,
}

impl Ahead {
    /// How many runs of woken tasks come before that of the new task.
    ///
    /// The injector gets its part of the runs, three quarters at most. Other workers take tasks from the front of this
    /// worker's queue, so the new task waits for no more than its share of all.
    fn runs(&self) -> usize {
        let injected = (self.injected / self.workers.max(1)).min(WOKEN_SHARE as usize * (self.here + 1));
        (self.here + injected).min(self.all.div_ceil(self.workers.max(1)))
    }

    /// The nanoseconds until then, if a woken run takes `mean`. From the head start on *again* has its share.
    fn nanos(&self, mean: u64) -> u64 {
        let woken = mean.saturating_mul(self.runs() as u64);
        let shares = self.has_again && woken >= HEAD_START as u64;
        if shares { woken.saturating_add(woken / WOKEN_SHARE as u64) } else { woken }
    }
}

impl Shared {
    /// How long a task that this thread spawns now would wait.
    pub(crate) fn queue_delay(&self) -> Duration {
        let nanos = match context::held_of(self) {
            Some(core) => self.ahead(core).nanos(core.mean_run()),
            None => self.delay_from_outside(),
        };
        Duration::from_nanos(nanos)
    }

    /// What runs before a task that the owner of `core`, this thread, spawns.
    fn ahead(&self, core: &Core) -> Ahead {
        let [owned, again] = Class::ALL.map(|class| core.owned_len(class));
        let mut ahead = Ahead { workers: 1, has_again: again + core.len_of(Class::Again) > 0, ..Ahead::default() };
        if !self.is_multi_thread() {
            ahead.here = owned + core.in_inbox();
            ahead.all = ahead.here;
            return ahead;
        }
        // Owned and shared tasks run in turn.
        let shared = core.len_of(Class::Woken);
        ahead.here = shared + owned.min(shared + 1);
        ahead.injected = self.injector(Class::Woken).len();
        ahead.all = ahead.here + ahead.injected;
        for other in self.cores.iter().filter(|other| other.index() != core.index()) {
            ahead.all += other.len_of(Class::Woken);
            ahead.workers += usize::from(!other.run.is_away());
        }
        ahead
    }

    /// The delay of a task that comes through an injector or an inbox. A parked worker has nothing to do and is late
    /// for nothing, so it counts as one that comes at once. One in `block_in_place` takes nothing, and is late.
    fn delay_from_outside(&self) -> u64 {
        let overdue = self.cores.iter().map(Core::overdue).min().unwrap_or(0);
        let at_work = self.cores.iter().filter(|core| !core.run.is_blocked.load(Relaxed));
        let here = |core: &Core| core.noted_owned() + core.in_inbox() + core.len_of(Class::Woken);
        let queued = if self.is_multi_thread() {
            let there = self.injector(Class::Woken).len();
            injector_delay(there, at_work.map(|core| (here(core), core.mean_run())))
        } else {
            let core = &self.cores[0];
            core.mean_run().saturating_mul(here(core) as u64)
        };
        queued.saturating_add(overdue)
    }
}

/// The nanoseconds until a task behind `there` others in the injector is taken by one of the workers, of each of which
/// is known how many tasks wait there, and how long a run takes.
fn injector_delay(there: usize, workers: impl Iterator<Item = (usize, u64)>) -> u64 {
    /// In which the tasks that the workers take are counted.
    const LONG: u64 = 1 << 40;
    let behind = there as u64;
    let mut taken = 0_u64;
    for (here, mean) in workers {
        if here == 0 {
            return mean.saturating_mul(behind); // the injector is all that this worker has to do
        }
        let part = u64::from(part_of_injector(there + 1, here));
        taken = taken.saturating_add(LONG * part / mean.saturating_mul(LOOK_RUNS.into()).max(1));
    }
    (u128::from(behind + 1) * u128::from(LONG)).checked_div(taken.into()).unwrap_or(0) as u64
}

/// Estimates how long a task that is spawned now would wait for its first poll: the load of this thread's worker in one
/// number.
///
/// Use it in an overloaded server: answer the requests that can be answered in time, and refuse the others at once.
/// Otherwise all requests wait, and all too long. [The guide](crate::guide::servers#too-much-load) has a layer of ten
/// lines for axum. The call is cheap enough for each request: ten nanoseconds, no lock, no clock.
///
/// The estimate is the number of tasks that wait for this worker, plus its share of those that wait for any worker,
/// times the recent mean duration of a poll. It is zero if no tasks wait. On one worker with a queue of 10 to 100 ms,
/// half of the estimates were wrong by less than a quarter, and nine out of ten by less than three quarters. On two
/// workers, which take tasks from each other, half were wrong by less than two thirds. The estimate does not include:
///
/// - The rest of the poll in which it is called.
/// - Changes in the duration of polls: a burst of tasks with longer or shorter polls than before. Before a worker's
///   first check for events, no duration is known, and the estimate is zero.
/// - Work that only the kernel knows of: clients in a listener's queue, and requests that have arrived since the
///   worker's last check for events, up to half a millisecond and a poll ago.
///
/// On a thread that is inside the runtime but not a worker, such as one of [`spawn_blocking`](crate::spawn_blocking),
/// it is the delay of a task that is spawned from there. If all workers have been in long polls since they last checked
/// for events, that time is added.
///
/// Under a [paused](crate::time::pause) clock a poll counts as a nanosecond, so the result is the number of polls.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// async fn answer(work: impl Future<Output = String>) -> Result<String, &'static str> {
///     if mini::task::queue_delay() > Duration::from_millis(20) {
///         return Err("503: too much to do, come back later");
///     }
///     Ok(work.await)
/// }
///
/// # mini::block_on(async {
/// assert_eq!(answer(async { "done".into() }).await.unwrap(), "done");
/// # });
/// ```
///
/// # Panics
///
/// Outside of a runtime, at the caller's line.
#[track_caller]
pub fn queue_delay() -> Duration {
    match context::with_shared(|shared| shared.queue_delay()) {
        Some(delay) => delay,
        None => context::missing("mini::task::queue_delay"),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_pace_is_that_of_runs_not_of_looks() {
        let mut pace = Pace::default();
        assert_eq!(pace.mean(), 0);
        pace.note(1, 4 * MS);
        pace.note(0, 0);
        assert_eq!(pace.mean(), 4 * MS);
        let mut pace = Pace::default();
        for _ in 0..1_000 {
            pace.note(64, 64_000);
            pace.note(1, MS);
        }
        assert!((15_000..18_000).contains(&pace.mean()), "{}", pace.mean());
    }

    #[test]
    fn the_pace_follows_a_change_within_fifty_looks_and_not_at_once() {
        let mut pace = Pace::default();
        for _ in 0..1_000 {
            pace.note(10, 10_000);
        }
        pace.note(10, 10 * MS);
        assert!((50_000..80_000).contains(&pace.mean()), "{}", pace.mean());
        for _ in 0..50 {
            pace.note(10, 10 * MS);
        }
        assert!(pace.mean() > MS * 9 / 10, "{}", pace.mean());
    }

    #[test]
    fn what_is_ahead_is_a_share_of_all() {
        let alone = Ahead { here: 10, all: 10, workers: 1, ..Ahead::default() };
        assert_eq!(alone.nanos(1_000), 10_000);
        let helped = Ahead { workers: 2, ..alone };
        assert_eq!(helped.runs(), 5, "the other worker takes half");
        let busy = Ahead { all: 100, ..helped };
        assert_eq!(busy.runs(), 10, "what waits elsewhere does not wait here");
        let injected = Ahead { injected: 8, all: 18, ..alone };
        assert_eq!(injected.runs(), 18);
        let crowd = Ahead { injected: 1_000, all: 1_010, ..alone };
        assert_eq!(crowd.runs(), 43, "the injector gets three quarters");
    }

    #[test]
    fn tasks_that_ask_for_more_get_a_quarter_after_the_head_start() {
        let ahead = Ahead { here: 3, all: 3, workers: 1, has_again: true, ..Ahead::default() };
        assert_eq!(ahead.nanos(100_000), 300_000);
        assert_eq!(ahead.nanos(MS), 4 * MS);
        assert_eq!(Ahead { has_again: false, ..ahead }.nanos(MS), 3 * MS);
    }

    #[test]
    fn the_injector_is_served_by_all_workers_beside_their_own_tasks() {
        let near = |delay: u64, expected: u64| assert!(delay.abs_diff(expected) <= expected / 20, "{delay} {expected}");
        near(injector_delay(100, [(100, MS)].into_iter()), 202 * MS);
        near(injector_delay(100, [(100, MS), (100, MS)].into_iter()), 101 * MS);
        assert_eq!(injector_delay(5, [(100, MS), (0, MS)].into_iter()), 5 * MS);
        assert_eq!(injector_delay(5, [(7, 0)].into_iter()), 0, "nothing has run");
        assert_eq!(injector_delay(5, [].into_iter()), 0);
    }

    #[test]
    fn a_worker_that_does_not_look_is_overdue() {
        let load = Load::default();
        load.note_look(MS);
        assert_eq!(load.overdue(MS + LOOK_TIME), 0);
        assert_eq!(load.overdue(9 * MS + LOOK_TIME), 8 * MS);
    }
}
