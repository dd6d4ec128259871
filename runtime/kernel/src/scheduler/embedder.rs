//! The loop that a `current_thread` runtime is embedded in, as its core knows it.
//!
//! The hard part is a wake between two turns, from another thread or from the embedder. That wake must make the
//! descriptor readable, but only an announced wait is notified (`unparker.rs`). So a turn ends with the announcement
//! that otherwise begins a worker's wait, and the announcement stands while the embedder is out:
//!
//! ```text
//! embedder                                          other thread, or the embedder itself
//! A1 the turn ends: announce a wait             B1 push a task, add an earlier timer
//! A2 SeqCst fence                               B2 SeqCst fence
//! A3 look for work; if there is some, notify    B3 if a wait is announced: take that, and notify
//! A4 leave the core; wait in poll(2)
//!
//!        turn begins: take the core, retract, see the notification
//!      .-------------------------------------------------.
//!      |                                                 v
//!    OUT, announced or notified                        IN TURN
//!      |   ^                                             |
//!      |   '---------------------------------------------'
//!      |        turn ends: A1 to A4
//!      '---> another thread in `block_on` ---> OUT, notified
//! ```
//!
//! A notification is a write to the eventfd in the epoll, so it makes the epoll readable until a turn polls it. Every
//! turn polls it there, even without sockets. A thread in `block_on` retracts the announcement, and receives
//! notifications in the embedder's place. When it leaves, it notifies, and the embedder's next turn puts everything in
//! order (`Embedder`).
//!
//! Rejected: keeping the core between turns (`block_on` of the embedder would wait for itself). A descriptor of its own
//! in addition to the epoll (a write more per wake).

use crate::primitives::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence};

/// A core's knowledge of an embedder.
#[derive(Debug, Default)]
pub struct Embedder {
    /// The embedder has asked for the descriptor.
    watched: AtomicBool,
    /// The last turn has left work.
    has_more: AtomicBool,
    /// A thread in `block_on` works on the core, and sees to its timers.
    is_served: AtomicBool,
}

impl Embedder {
    /// The descriptor is watched from now on; says if the caller must notify, so that the embedder begins with a turn.
    #[must_use]
    pub fn watch(&self) -> bool {
        !self.watched.load(Relaxed) && !self.watched.swap(true, SeqCst)
    }

    /// Asked by a thread that leaves the core, after its last check of the reactor: whether it must notify.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(SeqCst)
    }

    /// A thread begins to serve the core, or no longer does: then it asks [`is_watched`](Self::is_watched) next.
    pub(crate) fn note_served(&self, is_served: bool) {
        self.is_served.store(is_served, Relaxed);
        fence(SeqCst); // the caller asks for `watched` next, and an embedder notes that first, then asks for this
    }

    /// Whether a thread serves the core, and notifies when it leaves, as the descriptor is watched.
    pub fn is_served(&self) -> bool {
        self.is_watched() && {
            fence(SeqCst);
            self.is_served.load(Relaxed)
        }
    }

    /// Whether the last turn has left work.
    pub fn has_more(&self) -> bool {
        self.has_more.load(Relaxed)
    }

    pub(crate) fn note_more(&self, has_more: bool) {
        self.has_more.store(has_more, Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{
        sync::{Arc, Mutex},
        thread,
    };

    /// An embedder begins to watch while a thread in `block_on` leaves, which may consume the embedder's notification:
    /// the descriptor is readable afterwards.
    ///
    /// Fails when `watch` notifies before it says that it watches, or when the leaver asks before its last check.
    #[test]
    fn who_leaves_a_core_unparks_for_the_embedder() {
        loom::model(|| {
            let shared = Arc::new((Embedder::default(), Mutex::new(false)));
            let leaving = shared.clone();
            let leaver = thread::spawn(move || {
                *leaving.1.lock().unwrap() = false; // its last check
                if leaving.0.is_watched() {
                    *leaving.1.lock().unwrap() = true;
                }
            });
            if shared.0.watch() {
                *shared.1.lock().unwrap() = true;
            }
            leaver.join().unwrap();
            assert!(*shared.1.lock().unwrap());
        });
    }

    /// An embedder that leaves the timers to a thread in `block_on` is notified when that one leaves.
    ///
    /// Fails when the leaver asks before it says that it leaves, or without the fence of `note_served`.
    #[test]
    fn who_leaves_timers_to_another_thread_is_notified() {
        loom::model(|| {
            let shared = Arc::new((Embedder::default(), Mutex::new(false)));
            shared.0.note_served(true);
            let leaving = shared.clone();
            let leaver = thread::spawn(move || {
                leaving.0.note_served(false);
                if leaving.0.is_watched() {
                    *leaving.1.lock().unwrap() = true;
                }
            });
            let _must_notify = shared.0.watch(); // consumed by the thread that serves
            let is_left_to_it = shared.0.is_served();
            leaver.join().unwrap();
            assert!(!is_left_to_it || *shared.1.lock().unwrap());
        });
    }
}
