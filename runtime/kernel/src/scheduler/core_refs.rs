//! The number of references from tasks to their core, and so to the scheduler that the core is a part of.
//!
//! Called by [`Schedule`](crate::task::schedule::Schedule), and when a thread takes a core or leaves it. Nearly all
//! tasks are spawned and freed by the thread that holds their core. So the number has two parts: the holder counts in
//! `here`, a plain cell, and all other threads in `word`. `here` is negative when the holder frees tasks that others
//! have made. A holder that leaves adds it to the word, which then is the whole number.
//!
//! ```text
//! word:  0  ---- first reference, or a holder comes ---->  more  ---- last reference gone, and no holder ---->  0
//! ```
//!
//! While a thread holds the core the word is larger by `HOLDER`, and so never zero, whatever is in `here`. All
//! references and the holder together have one count of `Shared`: the thread that leads the word away from zero takes
//! that count, and the one that leads it back gives the count back.
//!
//! Rejected: a count of the scheduler for each task (two locked instructions per task, 10 ns of a spawn).

use std::cell::Cell;

use crate::primitives::atomic::{AtomicI64, Ordering::AcqRel};

/// What a holder adds to the word. It comes near zero only if others give back as many references that the holder
/// counted: at 10 ns each in 700 years.
const HOLDER: i64 = 1 << 61;

/// The word, and what the holder counts.
#[derive(Debug)]
pub(crate) struct CoreRefs {
    word: AtomicI64,
    here: Cell<i64>,
}

impl CoreRefs {
    pub(crate) fn new() -> Self {
        Self { word: AtomicI64::new(0), here: Cell::new(0) }
    }

    /// A thread has taken the core; whether the caller must take the count of `Shared`.
    #[must_use]
    pub(crate) fn hold(&self) -> bool {
        self.word.fetch_add(HOLDER, AcqRel) == 0
    }

    /// The holder leaves; whether the caller must give the count of `Shared` back.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        let change = self.here.take() - HOLDER;
        self.word.fetch_add(change, AcqRel) + change == 0
    }

    /// A reference made by another thread than the holder; whether the caller must take the count of `Shared`.
    #[must_use]
    pub(crate) fn add(&self) -> bool {
        self.word.fetch_add(1, AcqRel) == 0
    }

    /// A reference that another thread than the holder gives back; whether the caller must give back the count of
    /// `Shared`.
    #[must_use]
    pub(crate) fn remove(&self) -> bool {
        // AcqRel: what others did with the scheduler happens before the last one gives it back.
        self.word.fetch_sub(1, AcqRel) == 1
    }

    /// A reference made by the holder.
    #[inline]
    pub(crate) fn add_here(&self) {
        self.here.set(self.here.get() + 1);
    }

    /// A reference given back by the holder.
    #[inline]
    pub(crate) fn remove_here(&self) {
        self.here.set(self.here.get() - 1);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_holder_without_tasks_takes_the_count_and_gives_it_back() {
        let core_refs = CoreRefs::new();
        assert!(core_refs.hold());
        core_refs.add_here();
        core_refs.remove_here();
        assert!(core_refs.leave());
    }

    #[test]
    fn a_holder_that_frees_what_others_make_stays_one() {
        let core_refs = CoreRefs::new();
        assert!(core_refs.hold());
        for _ in 0..1000 {
            assert!(!core_refs.add());
            core_refs.remove_here();
        }
        assert!(core_refs.leave());
    }

    #[test]
    fn a_holder_that_makes_what_others_free_stays_one() {
        let core_refs = CoreRefs::new();
        assert!(core_refs.hold());
        for _ in 0..1000 {
            core_refs.add_here();
            assert!(!core_refs.remove());
        }
        assert!(core_refs.leave());
    }

    #[test]
    fn the_last_reference_gives_the_count_back_wherever_it_was_counted() {
        let core_refs = CoreRefs::new();
        assert!(core_refs.hold());
        core_refs.add_here();
        core_refs.add_here();
        assert!(!core_refs.remove(), "counted by the holder, given back by another");
        assert!(!core_refs.leave());
        assert!(core_refs.remove());
        assert!(core_refs.add());
        assert!(!core_refs.hold());
        core_refs.remove_here();
        assert!(core_refs.leave());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
    use loom::{sync::Arc, thread};

    struct Shared {
        core_refs: CoreRefs,
        count: AtomicU32,
    }

    // SAFETY: `here` is touched by the thread of the model that holds the core.
    #[allow(unsafe_code)]
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe impl Send for Shared {}

    impl Shared {
        fn take(&self, must: bool) {
            if must {
                self.count.fetch_add(1, SeqCst);
            }
        }

        fn give_back(&self, must: bool) {
            if must {
                assert!(self.count.fetch_sub(1, SeqCst) > 0, "given back twice");
            }
        }
    }

    /// The holder leaves a task behind that another thread frees, while a third thread makes a task and frees it.
    /// `Shared` is counted as long as there is a reference, and not at the end.
    ///
    /// Fails when `leave` looks at the word and then stores, or forgets `here`.
    #[test]
    fn the_scheduler_is_counted_while_anybody_refers_to_it_and_not_longer() {
        loom::model(|| {
            // 1: the handle's own
            let shared = Arc::new(Shared { core_refs: CoreRefs::new(), count: AtomicU32::new(1) });
            shared.take(shared.core_refs.hold());
            shared.core_refs.add_here();
            let freeing = thread::spawn({
                let shared = shared.clone();
                move || {
                    assert!(shared.count.load(Relaxed) > 1);
                    shared.give_back(shared.core_refs.remove());
                }
            });
            let visiting = thread::spawn({
                let shared = shared.clone();
                move || {
                    shared.take(shared.core_refs.add());
                    assert!(shared.count.load(Relaxed) > 1);
                    shared.give_back(shared.core_refs.remove());
                }
            });
            shared.give_back(shared.core_refs.leave());
            freeing.join().unwrap();
            visiting.join().unwrap();
            assert_eq!(shared.count.load(SeqCst), 1);
        });
    }
}
