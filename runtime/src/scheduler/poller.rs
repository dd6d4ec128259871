//! The poller of a runtime: which of its resting workers waits for events.
//!
//! All workers of a runtime share one reactor. One of those that rest, the *poller*, waits in it; the others wait as
//! threads, and a worker that is up only looks now and then. So a batch of events comes to one worker, who shares it if it
//! is worth that, and no socket has to wait for a certain worker. Asked by `driver.rs`; a worker chooses its wait before
//! it announces it (`unparker.rs`), and gives the place up when it is up again.
//!
//! While workers are stuck in long polls, or may be, the poller minds their timers too (`monitor.rs`), and there is one even
//! without sockets. While sockets are registered and all workers rest, one of them is the poller:
//!
//! ```text
//! worker                                      the poller                    who registers the first socket
//! A1 the place is taken, or nothing is        C1 an event: up again          B1 it counts as registered
//!    registered: it will wait as a thread     C2 give the place up           B2 SeqCst fence
//! A2 announce, rest: SeqCst fence             C3 work; then as A1, or leave  B3 if all workers rest: ring one bell
//! A3 if something is registered and the place     the core to a worker thread
//!    is free: begin again
//! A4 wait
//! ```
//!
//! If the place was free at A3 the worker does not wait. If it was taken, its holder is up at some time later, and comes
//! to A1 itself, or leaves its core to a thread that does. A first socket is seen at A3, or by B3.
//!
//! A poller that has got nothing for itself may leave the place to a worker that has been rung and is on its way, as the
//! `block_on` future or an owned task there is whom the events are for: that one comes to A1 when the place is free already, or
//! sees so at A3. One whose runs are long calls the next one as soon as it goes to work.
//!
//! A ring for the poller is an event of the reactor, which another thread that looks there may be given. Such a one rings
//! again if the place is taken: who rang the first time saw the poller's announcement, so the place is taken until the
//! poller is up. An only worker takes the place too once there is a monitor, which may look there for it.
//!
//! Rejected: a reactor per worker. Two wake up for half a batch each, each with a wait of its own (on two workers 4 to 5
//! requests a wait, with one reactor 7 to 8), and the sockets of a worker that does not get its CPU wait with it. A reactor
//! per worker in one that all share: a second wait for each batch.

use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The place of the one who waits for events: 0 while it is free, else one more than the index of its core.
#[derive(Debug)]
pub(crate) struct PollerRole(AtomicUsize);

impl PollerRole {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes the place for the core `index`, if it is free.
    pub(crate) fn try_take(&self, index: usize) -> bool {
        !self.is_taken() && self.0.compare_exchange(0, index + 1, SeqCst, SeqCst).is_ok()
    }

    /// Its holder gives it up.
    pub(crate) fn leave(&self) {
        self.0.store(0, SeqCst);
    }

    /// Whether somebody waits for events, or is about to.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(SeqCst) != 0
    }

    /// The core that does.
    pub(crate) fn holder(&self) -> Option<usize> {
        self.0.load(SeqCst).checked_sub(1)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::scheduler::idle::ParkedSet;
    use crate::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
    use loom::{sync::Arc, thread};

    struct Runtime {
        poller: PollerRole,
        idle: ParkedSet,
        has_sockets: AtomicBool,
        rings: AtomicUsize,
    }

    impl Runtime {
        fn new(has_sockets: bool) -> Arc<Self> {
            let runtime = Self {
                poller: PollerRole::new(),
                idle: ParkedSet::new(2),
                has_sockets: AtomicBool::new(has_sockets),
                rings: AtomicUsize::new(0),
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

    /// The poller goes up and to rest again, while another worker goes to rest: one of them waits for events then.
    ///
    /// Fails when the poller keeps its place, or gives it up once it has chosen how to wait the next time.
    #[test]
    fn one_of_those_who_rest_looks_out() {
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

    /// The first socket comes while both workers go to rest: one of them waits for its events, or has been rung for.
    ///
    /// Fails when the socket is counted after the look at who rests, or when A3 doesn't ask for sockets again.
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
                runtime.rings.fetch_add(1, Relaxed);
            }
            let waits = workers.map(|worker| worker.join().unwrap());
            assert!(waits.contains(&true) || runtime.rings.load(Relaxed) == 1);
        });
    }
}
