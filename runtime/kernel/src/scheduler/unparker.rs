//! The unparker of a core: how another thread gets a parked worker out of its wait, with one syscall per park at most.
//!
//! Called after something was put where the worker will look: its inbox, its wheel, the injector. The worker calls
//! [`announce`](Unparker::announce) before its last check and [`retract`](Unparker::retract) after the wait.
//!
//! ```text
//! worker                               other thread
//! A1 announce: where it will wait      B1 put the work in place
//! A2 SeqCst fence                      B2 SeqCst fence
//! A3 look for work; if none, wait      B3 if it waits: take that, and end the wait
//! ```
//!
//! The two fences are ordered. If A2 comes first, B3 reads A1 and unparks. If B2 comes first, A3 sees B1 and does not
//! wait. The thread that takes the announcement owes the one unpark; a late one costs the worker one extra turn.
//!
//! The poller (`poller.rs`) waits in the reactor, where a write to the eventfd ends the wait. All other workers, and
//! every worker without timers while nothing is registered with the reactor, wait as threads on a condition variable,
//! which costs 0.5 µs less per wait and wake. A first registration is work in the sense of B1, and unparks.
//!
//! Rejected: unparking on every push (a write is 160 ns, and 15 µs where it has to wake another processor). Parking the
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
    /// A notification is pending, for a worker that waits as a thread.
    notified: Mutex<bool>,
    waiting: Condvar,
}

impl Unparker {
    pub(crate) fn new(reactor: mini_net::Reactor) -> Arc<Self> {
        Arc::new(Self { parked: AtomicU8::new(UP), reactor, notified: Mutex::new(false), waiting: Condvar::new() })
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

    /// Whether the worker waits. For observers, not for deciding to unpark.
    pub fn is_parked(&self) -> bool {
        self.parked.load(Relaxed) != UP
    }

    /// Waits as a thread for a notification, and takes it; for at most `limit`.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let mut deadline = limit.map_or(Deadline::NEVER, Deadline::after);
        let mut notified = lock(&self.notified);
        while !*notified {
            if deadline.is_over() {
                return;
            }
            notified = deadline.wait(&self.waiting, &self.notified, notified);
        }
        *notified = false;
    }

    fn end_wait(&self) {
        *lock(&self.notified) = true;
        self.waiting.notify_one();
    }

    /// Ends the wait if the worker is parked and no other thread has ended it; returns whether it did.
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

    /// Two pushers and a worker that parks: the worker sees all work before it waits, or a pusher unparks it.
    ///
    /// Fails when either fence is left out, or when `must_unpark` reads the flag before the work is in place.
    #[test]
    fn work_is_seen_or_the_worker_is_unparked() {
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
            let unparks = shared.2.load(Relaxed);
            assert!(unparks <= 1, "one syscall per park");
            assert!(seen == 2 || unparks == 1, "work was left behind: {seen} seen, {unparks} unparks");
        });
    }

    /// The whole unparker: a worker waits as a thread while two others bring work. It sees all of it, with one unpark
    /// per wait.
    ///
    /// Planted: no `notified = true` in `end_wait`; no fence in `must_unpark`.
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
            let unparks = pushers.map(|pusher| pusher.join().unwrap()).into_iter().filter(|unparked| *unparked).count();
            assert!(unparks <= waits + 1, "{unparks} unparks for {waits} waits and a last check");
        });
    }
}
