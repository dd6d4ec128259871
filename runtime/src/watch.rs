//! The watch of a multi-threaded runtime: a thread that looks, every millisecond while some workers are up and some
//! rest, whether one of them is stuck in a long poll or sits on work that another could do.
//!
//! Started with the first worker of a runtime that has several, or before that when it is needed. It never runs tasks. A core
//! is *stuck* if its owner has run nothing between two looks, and has used the CPU meanwhile or waits for something: an owner
//! who only waits for a CPU, on a machine that has too few, goes on by itself, and help would have to wait for that CPU too.
//!
//! For a stuck core the watch marks it as stalled, so that thieves may take the task in the `next` slot too, and sees to
//! it that there is a lookout (`lookout.rs`) among the workers that rest, who then minds the timers of that core beside
//! the sockets of all, and is up to do the work. Only if nobody rests does the watch turn the driver itself, and goes on
//! waiting there in the owner's place. Nothing of this costs the owner more than the store that counts its progress.
//!
//! Who has been stuck will be stuck again. After each such look the runtime is on *alert* (`watch/alert.rs`): the lookout minds
//! the timers of all workers that are up, calls the next lookout when it goes to work itself, and a worker that queues a second task
//! brings up a resting one at once, instead of waiting until the backlog is worth it; but a few times between
//! two looks at most, so that a worker with many short tasks does not call for each of them. The alert lasts for a quarter of a
//! second, and then, up to ten seconds, until it has been made use of often enough in vain: a busy runtime, where it costs much,
//! gives it up soon, and one with little to do keeps it.
//!
//! Whether the tasks that wait for a worker are worth waking another one is in `watch/backlog.rs`.
//!
//! A worker in `block_in_place` says so, and counts as stuck at once, without an alert: it has called for help by itself.
//!
//! It also tries again to start the threads of workers for which the system had no room, so that their tasks, sockets and timers
//! are not left alone until somebody comes by.
//!
//! When all workers have rested for a while the watch sleeps without a timeout; the next worker to rise wakes it (once
//! per idle period, so a busy server never pays).
//!
//! ```text
//! worker                           watch
//! A1 rise                          B1 asleep = true
//! A2 SeqCst fence                  B2 SeqCst fence
//! A3 if asleep: unpark             B3 if a worker is up: stay awake, else park
//! ```
//!
//! Rejected: a parked worker that ticks (it has work of its own now and then, and must wake another to take over the
//! watch each time: 15 µs per event on a quiet server). Waking a sibling whenever a core has a backlog (see `idle.rs`).
//! Only turning the driver of a stuck worker at each look (a socket beside a task that computes waited 0.7 ms in the
//! middle; half the tick). Turning it here while a worker rests: one more hop from thread to thread for each event. An alert of
//! ten seconds for all (one poll of 40 ms, and each of 200,000 timers a second cost three times as much), or of a quarter of a
//! second for all (the first batch of tasks behind each later stall waits for the watch, 1 to 2 ms).

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mini_net::Events;

use crate::core::Core;
use crate::pool::Pool;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::sync::thread::{self, Thread};
use crate::sync::{HAS_TIME, Mutex, lock};
use crate::threads;
use crate::unwind::contain;

mod alert;
mod backlog;

use alert::Alert;
use backlog::{Backlog, is_long};

/// How often the watch looks: the delay a stuck worker may impose on its neighbours.
const TICK: Duration = Duration::from_millis(1);

/// How much of its CPU time one poll may take before the worker that does not go on counts as stuck.
const LONG: Duration = Duration::from_micros(500);

/// Looks between two tries to start threads for which the system had no room.
const TRY_INTERVAL: u32 = 16;

/// After how many looks at an idle runtime the watch goes to sleep.
const QUIET_TICKS: u32 = 20;

/// The handle to the watch thread of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    thread: OnceLock<Thread>,
    /// Held to start it.
    starting: Mutex<()>,
    /// It could not be started, and that has been said.
    has_failed: AtomicBool,
    /// Keepers could not be started.
    lacks_keepers: AtomicBool,
    asleep: AtomicBool,
    stopped: AtomicBool,
    alert: Alert,
    /// There are cores whose timers the lookout minds too: a stuck one, or on alert all that are up.
    has_late: AtomicBool,
}

impl Watch {
    /// Starts the thread, unless it has been. If that fails the next worker tries again. There is none where nothing takes time.
    pub(crate) fn start(&self, pool: &Arc<Pool>) {
        if !HAS_TIME || self.thread.get().is_some() {
            return;
        }
        let _alone = lock(&self.starting);
        if self.thread.get().is_some() || self.is_stopped() {
            return;
        }
        let watched = pool.clone();
        let name = format!("{}-watch", pool.config.thread_name);
        pool.note_watch(true);
        let body = Box::new(move || {
            contain(|| run(&watched));
            watched.note_watch(false);
        });
        match threads::start(name, Some(256 * 1024), body) {
            Ok(thread) => drop(self.thread.set(thread)),
            Err(error) => {
                pool.note_watch(false);
                if !self.has_failed.swap(true, Relaxed) {
                    say!("no thread to watch for stalled workers: {error}");
                }
            }
        }
    }

    /// Whether there is a watch: with several workers, or since one was in `block_in_place`.
    pub(crate) fn is_started(&self) -> bool {
        self.thread.get().is_some()
    }

    /// Leaves it to the watch to start the keepers that could not be started; says whether there is one.
    pub(crate) fn start_keepers_later(&self, pool: &Arc<Pool>) -> bool {
        if pool.cores.len() > 1 {
            self.start(pool);
        }
        self.lacks_keepers.store(true, SeqCst);
        self.unpark();
        self.is_started()
    }

    /// The owner of a core is about to block, and says so.
    pub(crate) fn notice(&self, pool: &Arc<Pool>, core: &Core) {
        self.start(pool);
        self.rouse();
        self.has_late.store(true, SeqCst);
        let driver = core.driver();
        if (driver.lacks_lookout() || !driver.timers().is_empty()) && !call_lookout(pool, true) {
            self.unpark();
        }
    }

    /// A worker has risen.
    pub(crate) fn rouse(&self) {
        fence(SeqCst);
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            self.unpark();
        }
    }

    #[inline]
    pub(crate) fn alert(&self) -> &Alert {
        &self.alert
    }

    /// Whether the lookout is to mind the timers of others.
    #[inline]
    pub(crate) fn has_late(&self) -> bool {
        self.has_late.load(Relaxed)
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, SeqCst);
        self.unpark();
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst)
    }
}

fn run(pool: &Arc<Pool>) {
    let mut events = Events::with_capacity(256);
    let mut seen = vec![None; pool.cores.len()];
    let (mut quiet, mut last_stuck) = (0, None);
    let (mut looks, alert) = (0_u32, &pool.watch.alert);
    while !pool.watch.is_stopped() {
        let mut found = Found::default();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(TRY_INTERVAL) && pool.watch.lacks_keepers.swap(false, SeqCst) {
            pool.start_missing_keepers();
        }
        if is_quiet(pool) {
            quiet += 1;
            if quiet >= QUIET_TICKS {
                sleep(pool);
                quiet = 0;
            }
        } else {
            quiet = 0;
            found = look(pool, &mut seen);
            alert.renew_calls();
        }
        let is_stuck = found.stalled.is_some_and(|core| !core.is_blocked.load(Relaxed));
        alert.note_look(is_stuck, &mut last_stuck, Instant::now());
        pool.watch.has_late.store(alert.is_on() || found.stalled.is_some(), SeqCst);
        match found.stalled {
            Some(core) if !is_minded(pool, &found) => stand_in(pool, core, &mut events),
            _ => thread::park_timeout(TICK),
        }
    }
}

/// Sees to it that a resting worker looks after the sockets and timers of those that are stuck; says whether there is one, or
/// nothing to look after.
fn is_minded(pool: &Pool, found: &Found<'_>) -> bool {
    let is_needed = found.needs_lookout || pool.cores[0].driver().lacks_lookout();
    !is_needed || call_lookout(pool, found.is_news)
}

/// Calls a lookout if there is none, or tells it of news; says whether there is one now.
fn call_lookout(pool: &Pool, is_news: bool) -> bool {
    match pool.lookout().holder() {
        Some(index) => {
            if is_news {
                pool.cores[index].bell.ring();
            }
            true
        }
        None => pool.wake_one(),
    }
}

/// Turns the driver of a core in its owner's place, as there is no other worker to do it, for a tick, or until the owner goes on.
fn stand_in(pool: &Pool, core: &Core, events: &mut Events) {
    let (begin, seen) = (Instant::now(), core.counts.progress());
    core.driver().serve(events, None);
    loop {
        // What has been woken went to the injector, and nobody was called as long as one worker is up.
        if !pool.injector.is_empty() && pool.idle.is_someone_resting() {
            pool.wake_one();
        }
        let left = TICK.saturating_sub(begin.elapsed());
        if left.is_zero() || core.counts.progress() != seen || pool.watch.is_stopped() {
            break;
        }
        core.driver().serve(events, Some(left));
    }
}

/// Whether there is nothing to look at.
fn is_quiet(pool: &Pool) -> bool {
    !pool.watch.lacks_keepers.load(SeqCst)
        && pool.idle.is_everyone_resting()
        && !pool.cores.iter().any(|core| core.is_blocked.load(Relaxed))
}

/// Waits until a worker rises.
fn sleep(pool: &Pool) {
    let watch = &pool.watch;
    watch.asleep.store(true, SeqCst);
    fence(SeqCst);
    while watch.asleep.load(SeqCst) && is_quiet(pool) && !watch.is_stopped() {
        thread::park();
    }
    watch.asleep.store(false, SeqCst);
}

/// What a look has found.
#[derive(Default)]
struct Found<'a> {
    /// A core that is stuck.
    stalled: Option<&'a Core>,
    /// One was not at the last look, or is to wake somebody earlier than it was.
    is_news: bool,
    /// One has timers.
    needs_lookout: bool,
}

/// What a look saw of a core whose owner was up.
#[derive(Clone, Copy, Debug)]
struct Seen {
    progress: u64,
    is_stalled: bool,
    /// Its first one, if it was stuck.
    deadline: Option<mini_time::Instant>,
    /// The owner's CPU time when that was seen first.
    cpu_time: Option<Duration>,
    backlog: Backlog,
}

impl Seen {
    fn of(core: &Core) -> Self {
        Self {
            progress: core.counts.progress(),
            is_stalled: false,
            deadline: None,
            cpu_time: core.owner().cpu_time(),
            backlog: Backlog::default(),
        }
    }

    /// Whether the owner, who has run nothing since, does something else than to wait for a CPU.
    fn is_stuck(&self, core: &Core) -> bool {
        let used = self.cpu_time.zip(core.owner().cpu_time()).map(|(before, now)| now.saturating_sub(before));
        let is_busy = used.is_none_or(|used| used >= LONG) || core.owner().is_runnable() != Some(true);
        // Again: it may have gone on, and to rest, just now.
        is_busy && self.progress == core.counts.progress() && !core.bell.is_parked()
    }
}

/// One look at all cores.
fn look<'a>(pool: &'a Pool, seen: &mut [Option<Seen>]) -> Found<'a> {
    let mut runs = 0;
    let mut found = Found::default();
    let mut is_worth_a_wake = false;
    for (core, seen) in pool.cores.iter().zip(seen) {
        let before = seen.take();
        if !core.bell.is_parked() && core.seat.is_held() {
            *seen =
                Some(before.filter(|seen| seen.progress == core.counts.progress()).unwrap_or_else(|| Seen::of(core)));
        }
        let since = before.zip(*seen).map(|(before, now)| now.progress.wrapping_sub(before.progress));
        let is_stuck = || since == Some(0) && seen.is_some_and(|seen| seen.is_stuck(core));
        let is_stalled = core.is_blocked.load(Relaxed) || is_stuck();
        if is_stalled != core.is_stalled.load(Relaxed) {
            core.is_stalled.store(is_stalled, Relaxed);
        }
        if is_stalled {
            core.driver().fire(); // what the lookout does not know of yet
            let deadline = core.driver().timers().next_deadline();
            if let Some(seen) = seen {
                found.is_news |=
                    !seen.is_stalled || deadline.is_some_and(|at| seen.deadline.is_none_or(|known| at < known));
                (seen.is_stalled, seen.deadline) = (true, deadline);
            }
            found.needs_lookout |= deadline.is_some();
            found.stalled = Some(core);
        }
        is_worth_a_wake |= core.is_worth_stealing() && is_long(core.backlog(), since.unwrap_or(0));
        if let (Some(before), Some(seen), Some(runs)) = (&before, seen, since) {
            seen.backlog = before.backlog;
            is_worth_a_wake |= seen.backlog.has_lasted(core.ring_len(), core.counts.parks.get(), runs);
        }
        runs = since.unwrap_or(0).saturating_add(runs);
    }
    is_worth_a_wake |= is_long(pool.injector.len(), runs);
    if is_worth_a_wake && pool.idle.is_someone_resting() && !pool.idle.is_someone_searching() {
        pool.wake_one();
    }
    found
}

#[cfg(all(test, loom))]
mod models;
