//! The unparker of a core: how another thread gets a parked worker out of its wait, with one syscall per park at most.
//!
//! Rung after something was put where the worker will look: its inbox, its wheel, the injector. The worker calls
//! [`announce`](Unparker::announce) before its last check and [`retract`](Unparker::retract) after the wait.
//!
//! ```text
//! worker                               other thread
//! A1 announce: where it will wait      B1 put the work in place
//! A2 SeqCst fence                      B2 SeqCst fence
//! A3 look for work; if none, wait      B3 if it waits: take that, and end the wait
//! ```
//!
//! The two fences are ordered. If A2 comes first, B3 reads A1 and rings. If B2 comes first, A3 sees B1 and does not
//! wait. The thread that takes the announcement owes the one ring; a late ring costs the worker one extra turn.
//!
//! The poller (`poller.rs`) waits in the reactor, where a write to the eventfd ends the wait. All other workers, and
//! every worker without timers while nothing is registered with the reactor, wait as threads on a condition variable,
//! which costs 0.5 µs less per wait and wake. A first registration is work in the sense of B1, and rings.
//!
//! Rejected: ringing on every push (a write is 160 ns, and 15 µs where it has to wake another processor). Parking the
//! thread by `std::thread::park`: it may use up the unpark that a caller of `block_on` expects for its own `park`.

use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use crate::primitives::atomic::{
    AtomicU8, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence,
};
use crate::primitives::{Condvar, Deadline, Mutex, lock};

const UP: u8 = 0;

/// Where a parked worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ParkedIn {
    /// In the reactor, for events too.
    Reactor = 1,
    /// On the condition variable, for the unparker or a deadline alone.
    Condvar = 2,
}

/// The state of a worker's wait, and the event that ends it.
#[derive(Debug)]
pub struct Unparker {
    /// [`UP`], or [`ParkedIn`]: where the worker waits, or is about to.
    parked: AtomicU8,
    reactor: mini_net::Reactor,
    /// Rung, and not heard yet, for a worker that waits as a thread.
    rung: Mutex<bool>,
    waiting: Condvar,
}

impl Unparker {
    pub(crate) fn new(reactor: mini_net::Reactor) -> Arc<Self> {
        Arc::new(Self { parked: AtomicU8::new(UP), reactor, rung: Mutex::new(false), waiting: Condvar::new() })
    }

    /// A1, A2.
    pub(crate) fn announce(&self, wait: ParkedIn) {
        // Release: who sees that this thread is parked sees what it has counted (`until_idle.rs`).
        self.parked.store(wait as u8, Release);
        fence(SeqCst);
    }

    /// After the wait, or instead of it. Says whether another thread has taken the announcement to end the wait; a
    /// hint.
    pub(crate) fn retract(&self) -> bool {
        let is_taken = !self.is_parked();
        self.parked.store(UP, Relaxed);
        is_taken
    }

    /// B2, B3: which wait the caller, which has put work in place, must end.
    pub(crate) fn must_unpark(&self) -> Option<ParkedIn> {
        fence(SeqCst);
        if self.parked.load(Relaxed) == UP {
            return None;
        }
        match self.parked.swap(UP, AcqRel) {
            UP => None,
            wait if wait == ParkedIn::Condvar as u8 => Some(ParkedIn::Condvar),
            _ => Some(ParkedIn::Reactor),
        }
    }

    /// Whether the worker waits. For observers, not for deciding to ring.
    pub fn is_parked(&self) -> bool {
        self.parked.load(Relaxed) != UP
    }

    /// Waits as a thread until the unparker has rung since the last time, or until `limit` is over.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let mut deadline = limit.map_or(Deadline::NEVER, Deadline::after);
        let mut rung = lock(&self.rung);
        while !*rung {
            if deadline.is_over() {
                return;
            }
            rung = deadline.wait(&self.waiting, &self.rung, rung);
        }
        *rung = false;
    }

    fn end_wait(&self) {
        *lock(&self.rung) = true;
        self.waiting.notify_one();
    }

    /// Rings if the worker is parked and nobody else has rung; says whether it did.
    pub fn unpark(&self) -> bool {
        match self.must_unpark() {
            None => return false,
            Some(ParkedIn::Reactor) => self.reactor.notify(),
            Some(ParkedIn::Condvar) => self.end_wait(),
        }
        true
    }
}

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
    use loom::{sync::Arc, thread};

    /// Two pushers and a worker that parks: the worker sees all work before it waits, or somebody rings.
    ///
    /// Fails when either fence is left out, or when `must_unpark` reads the flag before the work is in place.
    #[test]
    fn work_is_seen_or_the_bell_rings() {
        loom::model(|| {
            let unparker = Unparker::new(mini_net::Reactor::new().unwrap());
            let shared = Arc::new((unparker, AtomicU32::new(0), AtomicU32::new(0)));
            let pushers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        shared.1.fetch_add(1, Release);
                        if shared.0.must_unpark().is_some() {
                            shared.2.fetch_add(1, Relaxed);
                        }
                    })
                })
                .collect();
            shared.0.announce(ParkedIn::Condvar);
            let seen = shared.1.load(Acquire);
            for pusher in pushers {
                pusher.join().unwrap();
            }
            let rings = shared.2.load(Relaxed);
            assert!(rings <= 1, "one syscall per park");
            assert!(seen == 2 || rings == 1, "work was left behind: {seen} seen, {rings} rings");
        });
    }

    /// The whole unparker: a worker waits as a thread while two others bring work. It hears of all, with one ring per
    /// wait.
    ///
    /// Planted: no `rung = true` in `end_wait`; no fence in `must_unpark`.
    #[test]
    fn who_waits_as_a_thread_hears_the_unparker() {
        loom::model(|| {
            let unparker = Unparker::new(mini_net::Reactor::new().unwrap());
            let work = Arc::new(AtomicU32::new(0));
            let pushers = [(); 2].map(|()| {
                let (unparker, work) = (unparker.clone(), work.clone());
                thread::spawn(move || {
                    work.fetch_add(1, Release);
                    unparker.unpark()
                })
            });
            let mut waits = 0;
            loop {
                unparker.announce(ParkedIn::Condvar);
                let is_all_seen = work.load(Acquire) == 2;
                if !is_all_seen {
                    waits += 1;
                    unparker.wait(None);
                }
                unparker.retract();
                if is_all_seen {
                    break;
                }
            }
            let rings = pushers.map(|pusher| pusher.join().unwrap()).into_iter().filter(|rung| *rung).count();
            assert!(rings <= waits + 1, "{rings} rings for {waits} waits and a last check");
        });
    }
}
