//! The monitor of a multi-threaded runtime: a thread that looks, every millisecond while some workers are up and some are parked,
//! whether one of them is stalled.
//!
//! Started with the first worker of a runtime that has several, or before that when it is needed. It never runs tasks, and turns the
//! driver only while all workers are stuck. A worker is *stalled* if it has run nothing between two looks, and has used the CPU meanwhile or waits for something: one
//! that only waits for a CPU, on a machine that has too few, goes on by itself, and help would have to wait for that CPU too.
//!
//! A stalled worker is *stuck*, as is one in a run that it expects to be long (`worker.rs`) or in `block_in_place`. Whatever is stuck
//! is open to others: thieves may take the task in its next slot too, the poller minds its timers beside the sockets of all, and a
//! worker that is up fires them at its looks. The monitor wakes a parked worker for what waits there, and sees to it that there is a
//! poller. Nothing of this costs the owner more than the store that counts its progress.
//!
//! It also tries again to start the threads of workers for which the system had no room, so that their tasks, sockets and timers
//! are not left alone until somebody comes by.
//!
//! When all workers have been parked for a while the monitor sleeps without a timeout; the next worker that is unparked wakes it (once
//! per idle period, so a busy server never pays).
//!
//! ```text
//! worker                           monitor
//! A1 unpark                        B1 asleep = true
//! A2 SeqCst fence                  B2 SeqCst fence
//! A3 if asleep: unpark its thread  B3 if a worker is up: stay awake, else park
//! ```
//!
//! Rejected: a parked worker that ticks (it has work of its own now and then, and must wake another to take over the
//! monitor's place each time: 15 µs per event on a quiet server). Turning the driver of a stalled worker here (a socket beside a task
//! that computes waited 0.7 ms in the middle; half the tick).

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mini_net::Events;

use crate::scheduler::core::Core;
use crate::scheduler::rules::{STALL, TICK};
use crate::scheduler::shared::Shared;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::sync::thread::{self, Thread};
use crate::sync::{HAS_TIME, Mutex, lock};
use crate::threads;
use crate::unwind::contain;

/// Looks between two tries to start threads for which the system had no room: nobody waits for one in the moment.
const TRY_INTERVAL: u32 = 16;

/// After how many looks at a runtime whose workers are parked the monitor goes to sleep: to wake it costs as much as twenty looks.
const QUIET_TICKS: u32 = 20;

/// The handle to the monitor thread of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    thread: OnceLock<Thread>,
    /// Held to start it.
    starting: Mutex<()>,
    /// It could not be started, and that has been said.
    has_failed: AtomicBool,
    /// Worker threads could not be started.
    lacks_thread: AtomicBool,
    asleep: AtomicBool,
    stopped: AtomicBool,
    /// There are stuck workers.
    has_stuck: AtomicBool,
}

impl Monitor {
    /// Starts the thread, unless it has been. If that fails the next worker tries again. There is none where nothing takes time.
    pub(crate) fn start(&self, shared: &Arc<Shared>) {
        if !HAS_TIME || self.thread.get().is_some() {
            return;
        }
        let _alone = lock(&self.starting);
        if self.thread.get().is_some() || self.is_stopped() {
            return;
        }
        let watched = shared.clone();
        let name = format!("{}-monitor", shared.config.thread_name);
        shared.end.note_monitor(true);
        let body = Box::new(move || {
            contain(|| run(&watched));
            watched.end.note_monitor(false);
        });
        match threads::start(name, Some(256 * 1024), body) {
            Ok(thread) => drop(self.thread.set(thread)),
            Err(error) => {
                shared.end.note_monitor(false);
                if !self.has_failed.swap(true, Relaxed) {
                    say!("no thread to monitor workers for stalls: {error}");
                }
            }
        }
    }

    /// Leaves it to the monitor to start the worker threads that could not be started; says whether there is one.
    pub(crate) fn start_threads_later(&self, shared: &Arc<Shared>) -> bool {
        if shared.cores.len() > 1 {
            self.start(shared);
        }
        self.lacks_thread.store(true, SeqCst);
        self.unpark();
        self.is_started()
    }

    /// A worker has been unparked.
    pub(crate) fn rouse(&self) {
        fence(SeqCst);
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            self.unpark();
        }
    }

    /// Whether there is a monitor: with several workers, or since one was in `block_in_place`.
    pub(crate) fn is_started(&self) -> bool {
        self.thread.get().is_some()
    }

    /// Whether the poller, thieves and who looks around are to mind stuck workers too.
    #[inline]
    pub(crate) fn has_stuck(&self) -> bool {
        self.has_stuck.load(Relaxed)
    }

    /// A worker is stuck, and has said so in its core.
    pub(crate) fn note_stuck(&self) {
        self.has_stuck.store(true, SeqCst);
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

fn run(shared: &Arc<Shared>) {
    let mut events = Events::with_capacity(256);
    let mut seen = vec![None; shared.cores.len()];
    let (mut quiet, mut looks) = (0, 0_u32);
    while !shared.monitor.is_stopped() {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(TRY_INTERVAL) && shared.monitor.lacks_thread.swap(false, SeqCst) {
            shared.start_missing_threads();
        }
        if is_quiet(shared) {
            quiet += 1;
            if quiet >= QUIET_TICKS {
                sleep(shared);
                quiet = 0;
            }
        } else {
            quiet = 0;
            if let Some(stuck) = look(shared, &mut seen)
                && !has_help(shared)
            {
                stand_in(shared, stuck, &mut events);
                continue;
            }
        }
        thread::park_timeout(TICK);
    }
}

/// Whether a worker is parked, or up and not stuck: such a one minds what is stuck.
fn has_help(shared: &Shared) -> bool {
    let mut workers = shared.idle.parked().chain(shared.idle.up());
    workers.any(|worker| !shared.cores[worker].is_stuck() && shared.cores[worker].ownership.is_held())
        || shared.wake_one()
}

/// Turns the driver of a core in its owner's place, for a tick, or until the owner goes on: all workers are stuck, and what they wait for
/// may come from here, as in a `block_on` inside of `block_in_place`.
fn stand_in(shared: &Shared, core: &Core, events: &mut Events) {
    let (begin, seen) = (Instant::now(), core.counts.progress());
    core.driver().serve(events, None);
    loop {
        // What has been woken went to the injector, and nobody was woken as long as one worker is up.
        if !shared.injector.is_empty() && shared.idle.is_someone_parked() {
            shared.wake_one();
        }
        let left = TICK.saturating_sub(begin.elapsed());
        if left.is_zero() || core.counts.progress() != seen || shared.monitor.is_stopped() {
            break;
        }
        core.driver().serve(events, Some(left));
    }
}

/// Whether there is nothing to look at.
fn is_quiet(shared: &Shared) -> bool {
    !shared.monitor.lacks_thread.load(SeqCst)
        && shared.idle.is_everyone_parked()
        && !shared.cores.iter().any(|core| core.is_blocked.load(Relaxed))
}

/// Waits until a worker is unparked.
fn sleep(shared: &Shared) {
    let monitor = &shared.monitor;
    monitor.asleep.store(true, SeqCst);
    fence(SeqCst);
    while monitor.asleep.load(SeqCst) && is_quiet(shared) && !monitor.is_stopped() {
        thread::park();
    }
    monitor.asleep.store(false, SeqCst);
}

/// What a look saw of a worker that was up.
#[derive(Clone, Copy, Debug)]
struct Seen {
    progress: u64,
    /// Its CPU time when that was seen first.
    cpu_time: Option<Duration>,
    /// It was stuck, and others were told of its first deadline, if it had one.
    told: Option<Option<mini_time::Instant>>,
}

impl Seen {
    fn of(core: &Core) -> Self {
        Self { progress: core.counts.progress(), cpu_time: core.owner().cpu_time(), told: None }
    }

    /// Whether the worker, which has run nothing since, does something else than to wait for a CPU.
    fn is_stalled(&self, core: &Core) -> bool {
        let used = self.cpu_time.zip(core.owner().cpu_time()).map(|(before, now)| now.saturating_sub(before));
        let is_busy = used.is_none_or(|used| used >= STALL) || core.owner().is_runnable() != Some(true);
        // Again: it may have gone on, or parked, just now.
        is_busy && self.progress == core.counts.progress() && !core.unparker.is_parked()
    }
}

/// One look at all workers; returns one that is stuck.
fn look<'a>(shared: &'a Shared, seen: &mut [Option<Seen>]) -> Option<&'a Core> {
    let (mut stuck, mut needs_worker) = (None, false);
    for (core, seen) in shared.cores.iter().zip(seen) {
        let is_up = !core.unparker.is_parked() && core.ownership.is_held();
        let before = seen.filter(|seen| is_up && seen.progress == core.counts.progress());
        let is_stalled = before.is_some_and(|seen| seen.is_stalled(core));
        *seen = is_up.then(|| before.unwrap_or_else(|| Seen::of(core)));
        if is_stalled != core.is_stalled.load(Relaxed) {
            core.is_stalled.store(is_stalled, Relaxed);
        }
        if core.is_stuck() {
            stuck = Some(core);
            needs_worker |= core.shared_len() > 0;
            core.driver().fire(); // what the poller does not know of yet
            let deadline = core.driver().timers().next_deadline();
            let told = seen.and_then(|seen| seen.told);
            if told.is_none_or(|told| deadline.is_some_and(|at| told.is_none_or(|told| told > at))) {
                shared.hand_over(core, u64::MAX - 1);
            }
            if let Some(seen) = seen {
                seen.told = Some(deadline);
            }
        }
    }
    shared.monitor.has_stuck.store(stuck.is_some(), SeqCst);
    // Again: one may have said so after this has looked at it.
    if stuck.is_none() && shared.cores.iter().any(Core::is_stuck) {
        shared.monitor.note_stuck();
    }
    needs_worker |= stuck.is_some() && !(shared.injector.is_empty() && shared.again.is_empty());
    if needs_worker {
        shared.wake_for_work();
    }
    stuck
}

#[cfg(all(test, loom))]
mod models;
