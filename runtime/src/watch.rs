//! The watch of a multi-threaded runtime: a thread that looks, every millisecond while some workers are up and some
//! rest, whether one of them is stuck in a long poll or sits on work that another could do.
//!
//! Started with the first worker of a runtime that has several. It never runs tasks. For a core whose owner has run nothing between two looks it
//! turns the driver, so that the neighbours' sockets and timers are served, marks the core as stalled, so that thieves
//! may take the task in the `last_in` slot too, and brings up a resting worker to do the work. Nothing of this costs
//! the owner more than the store that counts its progress.
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

use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use mini_net::Events;

use crate::pool::Pool;
use crate::unwind::contain;

/// How often the watch looks: the delay a stuck worker may impose on its neighbours.
const TICK: Duration = Duration::from_millis(1);

/// After how many looks at an idle runtime the watch goes to sleep.
const QUIET_TICKS: u32 = 20;

/// The handle to the watch thread of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    thread: OnceLock<Option<Thread>>,
    asleep: AtomicBool,
    stopped: AtomicBool,
}

impl Watch {
    /// Starts the thread, once.
    pub(crate) fn start(&self, pool: &Arc<Pool>) {
        self.thread.get_or_init(|| {
            let watched = pool.clone();
            let name = format!("{}-watch", pool.config.thread_name);
            pool.keeper_started();
            let body = move || {
                contain(|| run(&watched));
                watched.keeper_ended();
            };
            match thread::Builder::new().name(name).stack_size(256 * 1024).spawn(body) {
                Ok(handle) => Some(handle.thread().clone()),
                Err(error) => {
                    pool.keeper_ended();
                    say!("no thread to watch for stalled workers: {error}");
                    None
                }
            }
        });
    }

    /// A worker has risen.
    pub(crate) fn rouse(&self) {
        fence(SeqCst);
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            self.unpark();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, SeqCst);
        self.unpark();
    }

    fn unpark(&self) {
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst)
    }
}

fn run(pool: &Arc<Pool>) {
    let mut events = Events::with_capacity(256);
    let mut seen: Vec<Option<u32>> = vec![None; pool.cores.len()];
    let mut quiet = 0;
    while !pool.watch.is_stopped() {
        if pool.idle.is_everyone_resting() {
            quiet += 1;
            if quiet >= QUIET_TICKS {
                sleep(pool);
                quiet = 0;
            }
        } else {
            quiet = 0;
            look(pool, &mut seen, &mut events);
        }
        thread::park_timeout(TICK);
    }
}

/// Waits until a worker rises.
fn sleep(pool: &Pool) {
    let watch = &pool.watch;
    watch.asleep.store(true, SeqCst);
    fence(SeqCst);
    while watch.asleep.load(SeqCst) && pool.idle.is_everyone_resting() && !watch.is_stopped() {
        thread::park();
    }
    watch.asleep.store(false, SeqCst);
}

/// One look at all cores.
fn look(pool: &Pool, seen: &mut [Option<u32>], events: &mut Events) {
    let mut runs = 0;
    let mut is_worth_a_wake = false;
    for (core, seen) in pool.cores.iter().zip(seen) {
        let now = (!core.bell.is_parked() && core.seat.is_held()).then(|| core.progress.load(Relaxed));
        let since = now.zip(*seen).map(|(now, before)| now.wrapping_sub(before));
        *seen = now;
        let is_stalled = since == Some(0);
        if is_stalled != core.is_stalled.load(Relaxed) {
            core.is_stalled.store(is_stalled, Relaxed);
        }
        if is_stalled {
            core.driver().poll(events);
            // The turn may have heard the bell in the owner's place, who may have been about to wait for it.
            core.driver().reactor().notify();
        }
        is_worth_a_wake |= core.is_worth_stealing() && is_long(core.backlog(), since.unwrap_or(0));
        runs = since.unwrap_or(0).saturating_add(runs);
    }
    is_worth_a_wake |= is_long(pool.injector.len(), runs);
    if is_worth_a_wake && pool.idle.is_someone_resting() && !pool.idle.is_someone_searching() {
        pool.wake_one();
    }
}

/// Whether a backlog takes longer than a fifth of a tick, at a pace of `runs` per tick.
///
/// Waking a worker takes 40 µs in all; a queue that is gone by then is better left alone.
fn is_long(backlog: usize, runs: u32) -> bool {
    backlog > runs as usize / 5
}
