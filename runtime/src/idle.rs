//! How many workers rest, and whether one must be woken for work that belongs to nobody.
//!
//! Called by workers before and after they park, or block in `block_in_place`, and by whoever puts a task into the injector.
//!
//! The protocol only has to make sure that a task in the injector is seen while *all* workers rest; a worker that is
//! up looks into the injector every few polls and once more before it parks:
//!
//! ```text
//! worker                                   other thread
//! A1 rest: resting += 1                    B1 push into the injector
//! A2 SeqCst fence                          B2 SeqCst fence
//! A3 look into the injector; if empty,     B3 if resting == all: ring one bell
//!    wait
//! ```
//!
//! The fences are ordered. If B2 comes before the A2 of some worker, that worker's A3 sees B1. Otherwise every A2 came
//! first, and B3 counts all of them. A worker that rests but whose bell was taken already is on its way up, and will
//! look.
//!
//! Work in a worker's own ring needs no such care: its owner is up. Bringing a resting worker up to share it costs
//! the waker 15 µs and takes 23 µs on a virtual machine, so that is done for a backlog worth more than that, by a worker
//! at its looks and, if its runs are long, where it queues; and by the watch. See `worker.rs`, `pace.rs` and `watch.rs`.
//!
//! One worker at a time searches other rings: a crowd of thieves slows down the one who has the work. The searcher that
//! finds work and leaves some behind brings up the next one.
//!
//! Rejected: waking a sibling per push, as most schedulers do (one wake costs as much as 500 spawns). A list of
//! sleepers under a mutex (every park takes it); the bells' own flags say who sleeps.

use crate::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence,
};

/// The counters shared by the workers of one runtime.
#[derive(Debug)]
pub(crate) struct Idle {
    resting: AtomicUsize,
    searching: AtomicBool,
    workers: usize,
}

impl Idle {
    /// All workers rest at first: no thread holds their cores.
    pub(crate) fn new(workers: usize) -> Self {
        Self { resting: AtomicUsize::new(workers), searching: AtomicBool::new(false), workers }
    }

    /// A1, A2: the worker looks for work once more after this, and then waits (or leaves its core).
    pub(crate) fn rest(&self) {
        self.resting.fetch_add(1, Relaxed);
        fence(SeqCst);
    }

    /// The worker is up again.
    pub(crate) fn rise(&self) {
        self.resting.fetch_sub(1, Relaxed);
    }

    /// B2, B3: after a push, whether nobody is up to see it.
    pub(crate) fn must_wake(&self) -> bool {
        fence(SeqCst);
        // Or more: in `block_in_place` one may count twice.
        self.resting.load(Relaxed) >= self.workers
    }

    /// Whether some worker could be brought up. A hint.
    pub(crate) fn is_someone_resting(&self) -> bool {
        self.resting.load(Relaxed) > 0
    }

    /// Whether all workers rest. A hint.
    pub(crate) fn is_everyone_resting(&self) -> bool {
        self.resting.load(Relaxed) >= self.workers
    }

    /// Whether all workers rest but the caller. A hint.
    pub(crate) fn do_others_rest(&self) -> bool {
        self.resting.load(Relaxed) + 1 >= self.workers
    }

    /// Becomes the one searcher, if there is none.
    pub(crate) fn start_search(&self) -> bool {
        !self.searching.load(Relaxed) && !self.searching.swap(true, Acquire)
    }

    pub(crate) fn finish_search(&self) {
        self.searching.store(false, Release);
    }

    /// Whether a worker is searching. A hint.
    pub(crate) fn is_someone_searching(&self) -> bool {
        self.searching.load(Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_push_wakes_only_if_everyone_rests() {
        let idle = Idle::new(2);
        assert!(idle.must_wake(), "no thread holds a core yet");
        idle.rise();
        assert!(!idle.must_wake() && idle.do_others_rest());
        idle.rise();
        assert!(!idle.do_others_rest());
        idle.rest();
        idle.rest();
        assert!(idle.must_wake());
    }

    #[test]
    fn one_searches_at_a_time() {
        let idle = Idle::new(2);
        assert!(idle.start_search());
        assert!(!idle.start_search());
        idle.finish_search();
        assert!(idle.start_search());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::atomic::AtomicU32;
    use crate::sync::atomic::Ordering::AcqRel;
    use loom::{sync::Arc, thread};

    /// Two workers go to rest while a foreign thread injects: someone sees the task, or the pusher wakes one.
    ///
    /// Fails when either fence is left out, or when a worker looks before it counts itself as resting.
    #[test]
    fn an_injected_task_is_seen_or_someone_is_woken() {
        loom::model(|| {
            let shared = Arc::new((Idle::new(2), AtomicU32::new(0), AtomicU32::new(0)));
            shared.0.rise();
            shared.0.rise();
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        shared.0.rest();
                        shared.2.fetch_add(shared.1.load(Acquire), Relaxed);
                    })
                })
                .collect();
            shared.1.store(1, Release);
            let woken = shared.0.must_wake();
            for worker in workers {
                worker.join().unwrap();
            }
            assert!(woken || shared.2.load(Relaxed) > 0);
        });
    }

    /// A worker that is about to get stuck queues a task, and calls only if somebody rests and nobody searches: the one who
    /// searches finds the task, or sees it in its last look, or is called.
    ///
    /// Planted: no fence in `rest`.
    #[test]
    fn a_call_left_to_a_searcher_is_not_lost() {
        loom::model(|| {
            let shared = Arc::new((Idle::new(2), AtomicU32::new(0)));
            shared.0.rise();
            shared.0.rise();
            let other = shared.clone();
            let searcher = thread::spawn(move || {
                let (idle, queue) = &*other;
                let mut is_found = idle.start_search() && queue.load(Acquire) > 0;
                idle.finish_search();
                if !is_found {
                    idle.rest();
                    is_found = queue.load(Acquire) > 0; // the last look
                }
                is_found
            });
            let (idle, queue) = &*shared;
            queue.store(1, Release);
            fence(SeqCst);
            let calls = idle.is_someone_resting() && !idle.is_someone_searching();
            assert!(searcher.join().unwrap() || calls, "the task waits for the one who is stuck");
        });
    }

    /// One searches at a time, and sees what the one before has left.
    ///
    /// Planted: `start_search` that looks and then stores; Relaxed instead of Release in `finish_search`.
    #[test]
    fn searches_come_one_after_the_other() {
        loom::model(|| {
            let shared = Arc::new((Idle::new(2), AtomicU32::new(0), AtomicU32::new(0)));
            let search = |shared: &(Idle, AtomicU32, AtomicU32)| {
                if !shared.0.start_search() {
                    return 0;
                }
                assert_eq!(shared.2.fetch_add(1, Relaxed), 0, "two search");
                let before = shared.1.load(Relaxed);
                shared.1.store(before + 1, Relaxed);
                shared.2.fetch_sub(1, Relaxed);
                shared.0.finish_search();
                1
            };
            let other = shared.clone();
            let searcher = thread::spawn(move || search(&other));
            let searches = search(&shared) + search(&shared) + searcher.join().unwrap();
            assert_eq!(shared.1.fetch_add(0, AcqRel), searches);
        });
    }
}
