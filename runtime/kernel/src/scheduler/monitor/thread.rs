//! The thread of the monitor: one check of all workers, and what follows from it. `monitor.rs` says what it is for.
//!
//! Rejected: a part of `Monitor`, which the workers ask and tell (it would need `Shared`, which contains `Monitor`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use mini_context::contain;
use mini_context::rules::{STALL, TICK};
use mini_net::Events;

use crate::primitives::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::primitives::{HAS_TIME, lock, thread};
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::task::Class;
use crate::threads;

/// Starts the monitor, once. If that fails, the next worker tries again. A model, where nothing takes time, has none.
pub(crate) fn start(shared: &Arc<Shared>) {
    let monitor = &shared.monitor;
    if !HAS_TIME || monitor.is_started() {
        return;
    }
    let name = shared.config.thread_name.of(format_args!("-monitor")); // may be a function of the user: before the lock
    let _alone = lock(&monitor.starting);
    if monitor.is_started() || monitor.is_stopped() {
        return;
    }
    let (watched, end) = (shared.clone(), shared.end.clone());
    shared.end.note_monitor(true);
    let body = Box::new(move || {
        contain(|| run(&watched));
        drop(watched); // first, as a worker thread does
        end.note_monitor(false);
    });
    match threads::start(name, Some(256 * 1024), body) {
        Ok(thread) => drop(monitor.thread.set(thread)),
        Err(error) => {
            shared.end.note_monitor(false);
            if !monitor.has_failed.swap(true, Relaxed) {
                say!("could not start the thread that monitors workers for stalls: {error}");
            }
        }
    }
}

fn run(shared: &Arc<Shared>) {
    let mut events = Events::new();
    let mut seen = vec![None; shared.cores.len()];
    while !shared.monitor.is_stopped() {
        let stuck = check_workers(shared, &mut seen); // also if all is quiet: a stall may have ended in a park
        if is_quiet(shared) {
            if stuck.is_none() {
                sleep(shared); // else it has ended since, and the next check says so
            }
        } else if let Some(stuck) = stuck
            && (shared.is_closing() || !has_help(shared))
        {
            stand_in(shared, stuck, &mut events);
            continue;
        }
        thread::park_timeout(TICK);
    }
}

/// Whether a worker is parked, or up and not stuck: such a worker serves the stuck ones.
fn has_help(shared: &Shared) -> bool {
    let helps = |worker: usize| !shared.cores[worker].is_stuck() && shared.cores[worker].ownership.is_held();
    shared.idle.parked().any(helps) || shared.idle.up().any(helps) || shared.wake_one()
}

/// Turns the driver of a core in its owner's place, for a tick, or until the owner goes on: all workers are stuck, and
/// what they wait for may come from here, as in a `block_on` inside of `block_in_place`.
fn stand_in(shared: &Shared, core: &Core, events: &mut Events) {
    let (begin, seen) = (Instant::now(), core.counts.progress());
    core.driver().serve(events, None);
    loop {
        // Tasks that were woken went to the injector, and no worker is woken for them as long as one is up.
        if !shared.injector(Class::Woken).is_empty() && shared.idle.is_someone_parked() {
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
    shared.idle.is_everyone_parked() && !shared.cores.iter().any(|core| core.poll.is_blocked.load(Relaxed))
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

/// The state of a worker that was up, as a check saw it.
#[derive(Clone, Copy, Debug)]
struct LastCheck {
    progress: u64,
    /// Its CPU time when this progress was first seen.
    cpu_time: Option<Duration>,
    /// When it was first seen to be stalled at this progress, in nanoseconds since the runtime began.
    stalled_at: Option<u64>,
    /// It was stuck, and others were told of its first deadline, if it had one.
    told: Option<Option<mini_time::Instant>>,
}

impl LastCheck {
    fn of(core: &Core) -> Self {
        Self { progress: core.counts.progress(), cpu_time: core.owner().cpu_time(), stalled_at: None, told: None }
    }

    /// Whether the worker, which has polled nothing since, does something other than wait for a CPU.
    fn is_stalled(&self, core: &Core) -> bool {
        let used = self.cpu_time.zip(core.owner().cpu_time()).map(|(before, now)| now.saturating_sub(before));
        let is_busy = used.is_none_or(|used| used >= STALL) || core.owner().is_runnable() != Some(true);
        // Asked again: the worker may have gone on, or parked, just now.
        is_busy && self.progress == core.counts.progress() && !core.unparker.is_parked()
    }
}

/// One check of all workers; returns one that is stuck.
fn check_workers<'a>(shared: &'a Shared, seen: &mut [Option<LastCheck>]) -> Option<&'a Core> {
    let (mut stuck, mut needs_worker) = (None, false);
    for (core, seen) in shared.cores.iter().zip(seen) {
        let is_up = !core.unparker.is_parked() && core.ownership.is_held();
        if shared.is_closing() && !core.ownership.is_held() {
            core.driver().fire(); // nobody comes back to it, and tasks of other runtimes may sleep there
        }
        let before = seen.filter(|seen| is_up && seen.progress == core.counts.progress());
        let is_stalled = before.is_some_and(|seen| seen.is_stalled(core));
        *seen = is_up.then(|| before.unwrap_or_else(|| LastCheck::of(core)));
        if is_stalled != core.poll.is_stalled.load(Relaxed) {
            if is_stalled && let Some(seen) = seen {
                // A worker that waits for a CPU meanwhile, as after a signal, is in the same stall.
                let at = seen.stalled_at.get_or_insert_with(|| shared.begun_at.elapsed().as_nanos() as u64);
                core.poll.stalled_at.store(*at, Relaxed);
            }
            core.poll.is_stalled.store(is_stalled, Relaxed);
        }
        if core.is_stuck() {
            stuck = Some(core);
            needs_worker |= core.shared_len() > 0;
            core.driver().fire(); // what the poller does not know of yet
            let deadline = core.driver().timers().next_deadline();
            let told = seen.and_then(|seen| seen.told);
            let is_news = told.is_none_or(|told| deadline.is_some_and(|at| told.is_none_or(|told| told > at)));
            // A first socket may have come when this core did not look stuck yet.
            if is_news || core.driver().lacks_poller() {
                shared.hand_over(core, u64::MAX - 1);
            }
            if let Some(seen) = seen {
                seen.told = Some(deadline);
            }
        }
    }
    shared.monitor.has_stuck.store(stuck.is_some(), SeqCst);
    // Asked again: a worker may have become stuck after the check of it above.
    if stuck.is_none() && shared.cores.iter().any(Core::is_stuck) {
        shared.monitor.note_stuck();
    }
    needs_worker |= stuck.is_some() && shared.has_injected();
    if needs_worker {
        shared.wake_for_work();
    }
    stuck
}
