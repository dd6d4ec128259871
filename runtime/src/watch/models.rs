//! What the watch, and who is about to block, promise to the timers of others, under loom.

use super::*;
use crate::bell::{Parked, Wait};
use crate::idle::Idle;
use crate::lookout::Lookout;
use loom::sync::Arc;

/// A worker that blocks, with a timer, and one that goes to rest.
struct Runtime {
    watch: Watch,
    lookout: Lookout,
    idle: Idle,
    parked: Parked,
    /// Of the one that blocks.
    is_stalled: AtomicBool,
}

impl Runtime {
    /// The way to a wait, in the order of `Worker::park`; whether the other's timers are minded there.
    fn park(&self) -> bool {
        loop {
            let is_lookout = self.watch.has_late() && self.lookout.try_take(1);
            self.parked.announce(if is_lookout { Wait::Reactor } else { Wait::Thread });
            self.idle.rest();
            if is_lookout || self.lookout.is_taken() || !self.watch.has_late() {
                return is_lookout && self.watch.has_late() && self.is_stalled.load(Relaxed);
            }
            self.parked.retract();
            self.idle.rise();
        }
    }

    /// What the owner of the timer does before it blocks, in the order of `Blocked::begin`, `notice` and `call_lookout`;
    /// whether somebody was rung for.
    fn block(&self) -> bool {
        self.is_stalled.store(true, Relaxed);
        self.idle.rest();
        self.watch.rouse();
        self.watch.has_late.store(true, SeqCst);
        let _holder = self.lookout.holder();
        self.parked.must_ring().is_some()
    }
}

/// A worker blocks while the other one goes to rest: that one minds the timers of both, or is rung for and looks again.
///
/// Planted: no fence in `Parked::must_ring`.
#[test]
fn the_timers_of_who_blocks_are_minded() {
    loom::model(|| {
        let runtime = Runtime {
            watch: Watch::default(),
            lookout: Lookout::new(),
            idle: Idle::new(2),
            parked: Parked::new(),
            is_stalled: AtomicBool::new(false),
        };
        runtime.idle.rise();
        runtime.idle.rise();
        let runtime = Arc::new(runtime);
        let other = runtime.clone();
        let resting = thread::spawn(move || other.park());
        let is_rung = runtime.block();
        assert!(resting.join().unwrap() || is_rung, "nobody minds the timers");
    });
}

/// A worker rises while the watch goes to sleep, with the three lines of `sleep`: it stays awake, or is woken.
///
/// Planted: no fence in `Watch::rouse`.
#[test]
fn the_watch_does_not_sleep_while_a_worker_is_up() {
    loom::model(|| {
        let shared = Arc::new((Watch::default(), Idle::new(1)));
        let other = shared.clone();
        let worker = thread::spawn(move || {
            other.1.rise();
            other.0.rouse();
        });
        let (watch, idle) = &*shared;
        watch.asleep.store(true, SeqCst);
        fence(SeqCst);
        let sleeps = idle.is_everyone_resting();
        worker.join().unwrap();
        assert!(!sleeps || !watch.asleep.load(SeqCst), "the watch sleeps, and a worker is up");
    });
}
