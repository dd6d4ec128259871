//! A queue that any thread may push to and pop from: a core's inbox, and the runtime's injector.
//!
//! Tasks that do not fit into a full local queue go to the injector, and a worker that has nothing left takes a share
//! under one lock. Asking whether the queue is empty is one plain load, as workers ask before every poll; only a thread
//! that adds or takes an entry locks. Neither orders anything outside of the queue. Ordering comes from the fence of
//! `idle.rs` or `unparker.rs`: it follows a push, and the worker's last check before its wait follows it.
//!
//! Rejected: a list of blocks without a lock (`SegQueue` of `crossbeam-queue`, which stood here). A push and a pop take
//! more instructions than with the lock, as does a check for work, and no fewer locked ones; with 1, 2 and 8 threads
//! that push at once the times are the same within their spread. It allocates and frees every few dozen entries, on
//! different threads, and malloc answers that with a lock that sleeps in the kernel: a third of all futex calls while
//! 200,000 timers fired in a second on two workers. Its two crates were a tenth of what a user compiles.

use std::collections::VecDeque;

use crate::primitives::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::primitives::{Mutex, lock};

/// An empty queue with room for more entries than this gives its memory back.
const KEPT: usize = 1024;

/// First in, first out, for all threads.
#[derive(Debug)]
pub struct Fifo<T> {
    /// How many entries there are; written under the lock.
    len: AtomicUsize,
    entries: Mutex<VecDeque<T>>,
}

impl<T> Fifo<T> {
    pub(crate) fn new() -> Self {
        Self { len: AtomicUsize::new(0), entries: Mutex::default() }
    }

    /// Entries in the queue, as of some moment during the call.
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry at the back.
    pub(crate) fn push(&self, entry: T) {
        let mut entries = lock(&self.entries);
        entries.push_back(entry);
        self.len.store(entries.len(), Relaxed);
    }

    /// Takes the oldest entry.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        if self.is_empty() { None } else { self.pop_locked() }
    }

    fn pop_locked(&self) -> Option<T> {
        let mut entries = lock(&self.entries);
        let entry = entries.pop_front();
        self.note_taken(&mut entries);
        entry
    }

    /// Takes one of `parts` equal parts, at least one entry and at most `most` more; all but the first go to `keep`,
    /// which runs under the lock. The caller has seen that there may be some.
    pub(crate) fn take_share(&self, parts: usize, most: usize, keep: impl FnMut(T)) -> Option<T> {
        let mut entries = lock(&self.entries);
        let first = entries.pop_front();
        let share = (entries.len() / parts).min(most);
        entries.drain(..share).for_each(keep);
        self.note_taken(&mut entries);
        first
    }

    fn note_taken(&self, entries: &mut VecDeque<T>) {
        self.len.store(entries.len(), Relaxed);
        if entries.is_empty() && entries.capacity() > KEPT {
            *entries = VecDeque::new(); // a crowd has passed
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn entries_come_out_in_order_and_a_burst_leaves_little_behind() {
        let fifo = Fifo::new();
        assert_eq!(fifo.pop(), None);
        for i in 0..3 * KEPT {
            fifo.push(i);
        }
        assert_eq!(fifo.len(), 3 * KEPT);
        for i in 0..3 * KEPT {
            assert_eq!(fifo.pop(), Some(i));
        }
        assert!(fifo.is_empty());
        assert!(lock(&fifo.entries).capacity() <= KEPT);
    }

    #[test]
    fn a_share_is_a_part_in_order_and_bounded() {
        let fifo = Fifo::new();
        let mut kept = Vec::new();
        assert_eq!(fifo.take_share(2, 4, |entry| kept.push(entry)), None);
        (0..7).for_each(|i| fifo.push(i));
        assert_eq!(fifo.take_share(2, 4, |entry| kept.push(entry)), Some(0));
        assert_eq!((kept.as_slice(), fifo.len()), ([1, 2, 3].as_slice(), 3));
        (7..30).for_each(|i| fifo.push(i));
        assert_eq!(fifo.take_share(2, 4, |entry| kept.push(entry)), Some(4));
        assert_eq!((kept.len(), fifo.len()), (7, 21));
    }

    #[test]
    fn threads_that_push_and_pop_lose_nothing() {
        let (threads, each) = if cfg!(miri) { (2, 20) } else { (4, 10_000) };
        let fifo = Fifo::new();
        let sum: usize = thread::scope(|scope| {
            let takers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        (1..=each).for_each(|i| fifo.push(i));
                        std::iter::from_fn(|| fifo.pop()).sum::<usize>()
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        let left: usize = std::iter::from_fn(|| fifo.pop()).sum();
        assert_eq!(sum + left, threads * each * (each + 1) / 2);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::scheduler::idle::ParkedSet;
    use loom::{sync::Arc, thread};

    /// A task goes into the injector while both workers go to rest: one of them takes it, or one is woken.
    ///
    /// Planted: no note of the length in `push`; no fence in `ParkedSet::park`.
    #[test]
    fn what_is_injected_is_taken_or_someone_is_woken() {
        loom::model(|| {
            let shared = Arc::new((Fifo::new(), ParkedSet::new(2)));
            shared.1.unpark(0);
            shared.1.unpark(1);
            let workers = [0, 1].map(|worker| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.1.park(worker);
                    shared.0.pop().is_some()
                })
            });
            shared.0.push(1);
            let is_woken = shared.1.must_wake();
            let taken = workers.map(|worker| worker.join().unwrap()).into_iter().filter(|taken| *taken).count();
            assert!(taken <= 1, "taken twice");
            assert!(is_woken || taken == 1, "left behind");
            assert_eq!(shared.0.len(), 1 - taken);
        });
    }

    /// Two workers take their shares while a third adds to the queue: each entry comes out once.
    ///
    /// Planted: `note_taken` forgotten in `take_share`.
    #[test]
    fn each_entry_has_one_taker() {
        loom::model(|| {
            let fifo = Arc::new(Fifo::new());
            (1..=3).for_each(|i| fifo.push(i));
            let takers = [(); 2].map(|()| {
                let fifo = fifo.clone();
                thread::spawn(move || {
                    let mut kept = Vec::new();
                    let first = fifo.take_share(2, 4, |entry| kept.push(entry));
                    kept.extend(first);
                    kept
                })
            });
            fifo.push(4);
            let mut taken: Vec<_> = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
            assert_eq!(fifo.len(), 4 - taken.len());
            taken.extend(std::iter::from_fn(|| fifo.pop()));
            taken.sort_unstable();
            assert_eq!(taken, [1, 2, 3, 4]);
        });
    }
}
