//! The promises of the monitor, and of a worker that is about to block, to the timers of others, under loom.

use super::*;
use crate::primitives::thread;
use crate::scheduler::idle::ParkedSet;
use crate::scheduler::poller::PollerRole;
use crate::scheduler::unparker::{ParkedIn, Unparker};
use loom::sync::Arc;

/// A worker that blocks, with a timer, and one that parks.
struct Runtime {
    monitor: Monitor,
    poller: PollerRole,
    idle: ParkedSet,
    unparker: std::sync::Arc<Unparker>,
    /// Of the worker that blocks.
    is_stalled: AtomicBool,
}

impl Runtime {
    /// The way to a wait, in the order of `Worker::park`; whether the other worker's timers are served there.
    fn park(&self) -> bool {
        loop {
            let is_poller = self.monitor.has_stuck() && self.poller.try_take(1);
            self.unparker.announce(if is_poller { ParkedIn::Reactor } else { ParkedIn::Condvar });
            self.idle.park(1);
            if is_poller || self.poller.is_taken() || !self.monitor.has_stuck() {
                return is_poller && self.monitor.has_stuck() && self.is_stalled.load(Relaxed);
            }
            self.unparker.retract();
            self.idle.unpark(1);
        }
    }

    /// What the owner of the timer does before it blocks, in the order of `Blocked::begin` and `Shared::hand_over`;
    /// whether the other worker was unparked.
    fn block(&self) -> bool {
        self.is_stalled.store(true, Relaxed);
        self.idle.park(0);
        self.monitor.rouse();
        self.monitor.note_stuck();
        let mut unparked = match self.poller.holder() {
            Some(_) => true,
            None => {
                fence(SeqCst); // that of `Shared::unpark_one`
                self.idle.parked().any(|worker| worker == 1)
            }
        };
        unparked &= self.unparker.must_unpark().is_some();
        unparked
    }
}

/// A worker blocks while the other one parks: the other one serves the timers of both, or is unparked and looks again.
///
/// Planted: no fence in `Shared::unpark_one`; no `SeqCst` store in `note_stuck`.
#[test]
fn the_timers_of_who_blocks_are_minded() {
    loom::model(|| {
        let runtime = Runtime {
            monitor: Monitor::default(),
            poller: PollerRole::new(),
            idle: ParkedSet::new(2),
            unparker: Unparker::new(mini_net::Reactor::new().unwrap()),
            is_stalled: AtomicBool::new(false),
        };
        runtime.idle.unpark(0);
        runtime.idle.unpark(1);
        let runtime = Arc::new(runtime);
        let other = runtime.clone();
        let resting = thread::spawn(move || other.park());
        let is_unparked = runtime.block();
        assert!(resting.join().unwrap() || is_unparked, "nobody minds the timers");
    });
}

/// A worker is unparked while the monitor goes to sleep, by the lines of `sleep`: the monitor stays awake, or is woken.
///
/// Planted: no fence in `Monitor::rouse`.
#[test]
fn the_monitor_does_not_sleep_while_a_worker_is_up() {
    loom::model(|| {
        let shared = Arc::new((Monitor::default(), ParkedSet::new(1)));
        let other = shared.clone();
        let worker = thread::spawn(move || {
            other.1.unpark(0);
            other.0.rouse();
        });
        let (watch, idle) = &*shared;
        watch.asleep.store(true, SeqCst);
        fence(SeqCst);
        let sleeps = idle.is_everyone_parked();
        worker.join().unwrap();
        assert!(!sleeps || !watch.asleep.load(SeqCst), "the monitor sleeps, and a worker is up");
    });
}
