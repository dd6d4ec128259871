//! The set of parked workers, and the decision to wake one for work without an owner.
//!
//! Called by workers before and after they park, or block in `block_in_place`, and by every thread that puts a task
//! into the injector.
//!
//! The protocol only has to make sure that a task in the injector is seen while *all* workers are parked; a worker that
//! is up looks into the injector at each driver check, and once more before it parks:
//!
//! ```text
//! worker                                   other thread
//! A1 park: set its bit                     B1 push into the injector
//! A2 SeqCst fence                          B2 SeqCst fence
//! A3 look into the injector; if empty,     B3 if all bits are set: unpark one worker
//!    wait
//! ```
//!
//! The fences are ordered. If B2 comes before the A2 of some worker, that worker's A3 sees B1. Otherwise every A2 came
//! first, and B3 sees all bits. A worker that is parked but has been unparked already is on its way up, and will look
//! there.
//!
//! Work in a worker's own queue needs no such care: its owner is up. `wake.rs` says when another worker is woken for
//! it.
//!
//! The bits are in words of 64: a thread that looks for a worker to wake, or to steal from, reads one word for 64
//! workers.
//!
//! One worker at a time searches other queues: a crowd of thieves slows down the worker that has the work. A worker
//! that was woken and has found more tasks than the one it polls next wakes the next worker.
//!
//! Rejected: waking a sibling per push, as most schedulers do (one wake costs as much as 500 spawns). A list of
//! sleepers under a mutex (every park takes it). Only a count of parked workers (a thread that looks for one must then
//! ask each).

use std::iter::Enumerate;
use std::slice;

use crate::primitives::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence,
};

/// Workers in a word.
const WORD: usize = u64::BITS as usize;

/// The parked workers of one runtime.
#[derive(Debug)]
pub struct ParkedSet {
    /// A bit for each worker. Unused bits of the last word are always set.
    parked: Box<[AtomicU64]>,
    searching: AtomicBool,
    workers: usize,
}

/// The numbers of the workers that are parked, or of those that are up. Each word is read when its turn comes.
///
/// A plain type: each search among workers is a loop around one function. Nested adaptors are compiled once more for
/// each search, and were 3 % of a small program.
#[derive(Debug)]
pub struct Workers<'a> {
    words: Enumerate<slice::Iter<'a, AtomicU64>>,
    /// What makes those bits 1 that are asked for.
    flip: u64,
    /// The bits of the word read last that are still to be told, and the number of its first worker.
    left: u64,
    first: usize,
    /// How many workers there are.
    end: usize,
}

impl Iterator for Workers<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            let (index, word) = self.words.next()?;
            (self.left, self.first) = (word.load(Relaxed) ^ self.flip, index * WORD);
        }
        let worker = self.first + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        (worker < self.end).then_some(worker)
    }
}

impl ParkedSet {
    /// All workers are parked at first: no thread holds their cores.
    pub(crate) fn new(workers: usize) -> Self {
        let parked = (0..workers.div_ceil(WORD)).map(|_| AtomicU64::new(u64::MAX)).collect();
        Self { parked, searching: AtomicBool::new(false), workers }
    }

    /// A1, A2: the worker looks for work once more after this, and then waits (or leaves its core).
    pub fn park(&self, worker: usize) {
        // Release: for `are_all_through`.
        self.parked[worker / WORD].fetch_or(1 << (worker % WORD), Release);
        fence(SeqCst);
    }

    /// The worker is up again.
    pub fn unpark(&self, worker: usize) {
        self.parked[worker / WORD].fetch_and(!(1 << (worker % WORD)), Relaxed);
    }

    /// B2, B3: after a push, whether no worker is up to see it.
    pub(crate) fn must_wake(&self) -> bool {
        fence(SeqCst);
        self.is_everyone_parked()
    }

    /// Whether some worker is parked. A hint.
    pub(crate) fn is_someone_parked(&self) -> bool {
        // All but the last word are full words.
        let (last, words) = self.parked.split_last().expect("a runtime has a worker");
        last.load(Relaxed) & self.last_mask() != 0 || words.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Whether all workers are parked. A hint.
    pub(crate) fn is_everyone_parked(&self) -> bool {
        self.parked.iter().all(|word| word.load(Relaxed) == u64::MAX)
    }

    /// Whether all workers but this one are parked. A hint.
    pub(crate) fn are_others_parked(&self, worker: usize) -> bool {
        self.up().all(|other| other == worker)
    }

    /// Whether all workers but this one are parked, so that what they have done is seen.
    pub(crate) fn are_all_through(&self, but: Option<usize>) -> bool {
        let are_parked = self.up().all(|other| Some(other) == but);
        fence(Acquire);
        are_parked
    }

    /// The workers that are parked. A hint.
    pub fn parked(&self) -> Workers<'_> {
        self.each(0)
    }

    /// The workers that are up. A hint.
    pub fn up(&self) -> Workers<'_> {
        self.each(u64::MAX)
    }

    fn each(&self, flip: u64) -> Workers<'_> {
        Workers { words: self.parked.iter().enumerate(), flip, left: 0, first: 0, end: self.workers }
    }

    /// The bits of the last word that stand for workers.
    fn last_mask(&self) -> u64 {
        u64::MAX >> ((WORD - self.workers % WORD) % WORD)
    }

    /// Makes the caller the one searcher, if there is none.
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
    fn a_push_wakes_only_if_everyone_is_parked() {
        let idle = ParkedSet::new(2);
        assert!(idle.must_wake(), "no thread holds a core yet");
        idle.unpark(1);
        assert!(!idle.must_wake() && idle.are_others_parked(1) && !idle.are_others_parked(0));
        idle.unpark(0);
        assert!(!idle.are_others_parked(1) && !idle.is_someone_parked());
        idle.park(0);
        idle.park(1);
        assert!(idle.must_wake());
    }

    #[test]
    fn each_worker_of_many_has_a_bit() {
        for workers in [1, 63, 64, 65, 128, 200] {
            let idle = ParkedSet::new(workers);
            assert!(idle.parked().eq(0..workers) && idle.up().next().is_none());
            for worker in 0..workers {
                idle.unpark(worker);
                assert!(idle.parked().eq(worker + 1..workers) && idle.up().eq(0..=worker));
                assert_eq!(idle.is_someone_parked(), worker + 1 < workers);
            }
            idle.park(workers - 1);
            assert!(idle.parked().eq([workers - 1]));
        }
    }

    #[test]
    fn one_searches_at_a_time() {
        let idle = ParkedSet::new(2);
        assert!(idle.start_search());
        assert!(!idle.start_search());
        idle.finish_search();
        assert!(idle.start_search());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::atomic::AtomicU32;
    use crate::primitives::atomic::Ordering::AcqRel;
    use loom::{sync::Arc, thread};

    /// Two workers park while another thread injects: a worker sees the task, or the pusher wakes one.
    ///
    /// Fails when either fence is left out, or when a worker looks before it sets its bit.
    #[test]
    fn an_injected_task_is_seen_or_someone_is_woken() {
        loom::model(|| {
            let shared = Arc::new((ParkedSet::new(2), AtomicU32::new(0), AtomicU32::new(0)));
            shared.0.unpark(0);
            shared.0.unpark(1);
            let workers: Vec<_> = (0..2)
                .map(|worker| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        shared.0.park(worker);
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

    /// A worker that is about to get stuck queues a task, and wakes another one only if one is parked and none
    /// searches. The searcher finds the task, or sees it in its last check, or is woken.
    ///
    /// Planted: no fence in `park`.
    #[test]
    fn a_call_left_to_a_searcher_is_not_lost() {
        loom::model(|| {
            let shared = Arc::new((ParkedSet::new(2), AtomicU32::new(0)));
            shared.0.unpark(0);
            shared.0.unpark(1);
            let other = shared.clone();
            let searcher = thread::spawn(move || {
                let (idle, queue) = &*other;
                let mut is_found = idle.start_search() && queue.load(Acquire) > 0;
                idle.finish_search();
                if !is_found {
                    idle.park(0);
                    is_found = queue.load(Acquire) > 0; // the last check
                }
                is_found
            });
            let (idle, queue) = &*shared;
            queue.store(1, Release);
            fence(SeqCst);
            let calls = idle.is_someone_parked() && !idle.is_someone_searching();
            assert!(searcher.join().unwrap() || calls, "the task waits for the one who is stuck");
        });
    }

    /// One worker searches at a time, and sees what the searcher before it has left.
    ///
    /// Planted: `start_search` that looks and then stores; Relaxed instead of Release in `finish_search`.
    #[test]
    fn searches_come_one_after_the_other() {
        loom::model(|| {
            let shared = Arc::new((ParkedSet::new(2), AtomicU32::new(0), AtomicU32::new(0)));
            let search = |shared: &(ParkedSet, AtomicU32, AtomicU32)| {
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
