//! The poller of a runtime: which of its parked workers waits for events.
//!
//! All workers of a runtime share one reactor. One parked worker, the *poller*, waits in it; the other parked workers
//! wait as threads, and a worker that is up only checks now and then. So a batch of events comes to one worker, which
//! shares it if that pays, and no socket has to wait for a certain worker. Asked by `driver.rs`; a worker chooses its
//! wait before it announces it (`unparker.rs`), and gives the role up when it is up again.
//!
//! While workers are stuck, or may be, the poller serves their timers too (`monitor.rs`), and there is one even without
//! sockets. A worker with timers takes the role if it is free, as its deadline costs less there; without the role, it
//! waits for its timers as a thread. While sockets are registered and all workers are parked, one of them is the
//! poller:
//!
//! ```text
//! worker                                      the poller                    thread that registers the first socket
//! A1 the role is taken, or nothing is         C1 an event: up again         B1 it counts as registered
//!    registered: it will wait as a thread     C2 give the role up           B2 SeqCst fence
//! A2 announce, park: SeqCst fence             C3 work; then as A1, or leave B3 if all workers are parked: unpark one
//! A3 if something is registered and the role     the core to a worker thread
//!    is free: begin again
//! A4 wait
//! ```
//!
//! If the role was free at A3 the worker does not wait. If it was taken, its holder is up at some time later, and comes
//! to A1 itself, or leaves its core to a thread that does. A first socket is seen at A3, or by B3.
//!
//! If the events are for the main task or an owned task of another worker, the poller may leave the role to that
//! worker, which has been unparked and is on its way up: it comes to A1 when the role is free already, or sees at A3
//! that it is. A poller whose polls of tasks are long wakes another worker as soon as it begins one.
//!
//! An unpark of the poller is an event of the reactor, and another thread that polls the reactor may receive it. That
//! thread unparks again if the role is taken: the first unpark saw the poller's announcement, so the role is taken
//! until the poller is up. A single worker takes the role too once there is a monitor, which may poll the reactor in
//! its place.
//!
//! Rejected: a reactor per worker. Two wake up for half a batch each, each with a wait of its own (on two workers 4 to
//! 5 requests a wait, with one reactor 7 to 8), and the sockets of a worker that does not get its CPU wait with it. A
//! reactor per worker in one that all share: a second wait for each batch.

use crate::primitives::atomic::{AtomicUsize, Ordering::SeqCst};

/// The role of the poller: 0 while it is free, else one more than the index of its holder's core.
#[derive(Debug)]
pub(crate) struct PollerRole(AtomicUsize);

impl PollerRole {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes the role for the core `index`, if it is free.
    pub(crate) fn try_take(&self, index: usize) -> bool {
        !self.is_taken() && self.0.compare_exchange(0, index + 1, SeqCst, SeqCst).is_ok()
    }

    /// The holder gives the role up.
    pub(crate) fn leave(&self) {
        self.0.store(0, SeqCst);
    }

    /// Whether a worker waits for events, or is about to.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(SeqCst) != 0
    }

    /// The core whose worker has the role.
    pub(crate) fn holder(&self) -> Option<usize> {
        self.0.load(SeqCst).checked_sub(1)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
    use crate::scheduler::idle::ParkedSet;
    use loom::{sync::Arc, thread};

    struct Runtime {
        poller: PollerRole,
        idle: ParkedSet,
        has_sockets: AtomicBool,
        unparks: AtomicUsize,
    }

    impl Runtime {
        fn new(has_sockets: bool) -> Arc<Self> {
            let runtime = Self {
                poller: PollerRole::new(),
                idle: ParkedSet::new(2),
                has_sockets: AtomicBool::new(has_sockets),
                unparks: AtomicUsize::new(0),
            };
            runtime.idle.unpark(0);
            runtime.idle.unpark(1);
            Arc::new(runtime)
        }

        /// A1 to A4; whether the worker waits for events.
        fn park(&self, index: usize) -> bool {
            loop {
                let is_poller = self.has_sockets.load(Acquire) && self.poller.try_take(index);
                self.idle.park(index);
                if is_poller || !self.has_sockets.load(Acquire) || self.poller.is_taken() {
                    return is_poller;
                }
                self.idle.unpark(index);
                thread::yield_now();
            }
        }
    }

    /// The poller is unparked and parks again, while another worker parks: one of them waits for events then.
    ///
    /// Fails when the poller keeps its role, or gives it up once it has chosen how to wait the next time.
    #[test]
    fn one_of_the_parked_workers_polls() {
        loom::model(|| {
            let runtime = Runtime::new(true);
            assert!(runtime.park(0));
            let other = {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.park(1))
            };
            runtime.idle.unpark(0);
            runtime.poller.leave();
            let waits = runtime.park(0);
            assert_ne!(waits, other.join().unwrap());
            assert_eq!(runtime.poller.holder(), Some(usize::from(!waits)));
        });
    }

    /// The first socket comes while both workers park: one of them waits for its events, or is unparked.
    ///
    /// Fails when the socket is counted after the check of the parked workers, or when A3 doesn't ask for sockets
    /// again.
    #[test]
    fn a_first_socket_is_seen_or_someone_is_woken() {
        loom::model(|| {
            let runtime = Runtime::new(false);
            let workers = [0, 1].map(|index| {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.park(index))
            });
            runtime.has_sockets.store(true, Release);
            if runtime.idle.must_wake() {
                runtime.unparks.fetch_add(1, Relaxed);
            }
            let waits = workers.map(|worker| worker.join().unwrap());
            assert!(waits.contains(&true) || runtime.unparks.load(Relaxed) == 1);
        });
    }
}
