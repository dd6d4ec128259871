//! How long a task lives, and the hand-over of its output to its join handle: a count and three bits in one word.
//!
//! Called by everybody who has a reference, by the runner (once, when the future is gone) and by the one join handle of
//! the task. They may sit on different threads; the word decides who drops the output, who may touch the waiter and who
//! frees the task.
//!
//! ```text
//!                     2 withdraw
//!           .-----------------------------.
//!           v                             |
//!      NO WAITER ------ 1 offer -----> WAITER
//!          |                              |            5 leave: GONE is set in any state. Before DONE the
//!          | 3 complete: nothing          | 4 complete:   runner drops the output (6), after it the handle.
//!          v                              v   wake
//!        DONE <---------------------------'
//! ```
//!
//! Field rights. `output`: the runner until DONE, then the handle (if GONE came first: the runner). `waiter`: the
//! handle while WAITER is not set; while it is set nobody writes, and the runner may wake it through a shared
//! reference; after DONE the handle leaves it alone and it is dropped with the task.
//!
//! # The count
//!
//! A task that only one thread runs is woken, cloned and dropped on that thread most of the time. There the *owner*, the
//! thread that holds the task's core, counts its references in `local`, a plain cell, and everybody else counts in the
//! word. Only the sum means anything: a reference may be counted in one place and given back in the other, so each of
//! them may go below zero. That does no harm because the runtime has a reference until `complete`, so nobody can have
//! the last one before. `complete` adds `local` to the word together with DONE; from there on the word counts alone.
//! (Biased reference counts: Choi, Shull, Torrellas, PACT 2018; theirs need a queue of objects to merge, and the end of
//! a task spares us that.)
//!
//! Rejected: a word for the count beside one for the hand-over (three locked instructions at the end of a task instead of
//! one or none, 12 ns of a spawn and join).

use std::cell::Cell;

use crate::sync::atomic::{
    AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};

const DONE: u32 = 1;
const WAITER: u32 = 2;
const GONE: u32 = 4;
const FLAGS: u32 = DONE | WAITER | GONE;

/// One reference; the count is signed, in the upper 29 bits.
const REF: u32 = 8;

/// More references than this in one place are leaked ones. Two such counts still fit in 29 bits.
const MAX: i32 = 1 << 26;

/// What the runner owes after the output is in place.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnComplete {
    /// Nothing, and its reference is given back.
    Nothing,
    /// Wake the waiter, by reference, and then give back the reference.
    Wake,
    /// There is no handle: drop the output, and then give back the reference.
    DropOutput,
}

/// What the handle found.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnJoin {
    /// The output is the handle's.
    Done,
    /// The runner has not finished.
    Pending,
}

/// What is left to somebody who gives back a reference.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnRelease {
    /// It was the last one: free the task.
    Free,
    /// Nothing; touch the task no more.
    Nothing,
}

/// The word.
#[derive(Debug)]
pub(crate) struct Life(AtomicU32);

/// What the owner counts beside it. A type of its own, since in one struct the two would take eight bytes of a header.
#[derive(Debug)]
pub(crate) struct Local(Cell<i16>);

impl Local {
    pub(crate) fn new() -> Self {
        Self(Cell::new(0))
    }

    /// One more reference. The owner, before DONE.
    #[inline]
    pub(crate) fn retain(&self, life: &Life) {
        match self.0.get().checked_add(1) {
            Some(more) => self.0.set(more),
            None => life.retain(),
        }
    }

    /// One reference less, which is not the last. The owner, before DONE.
    #[inline]
    pub(crate) fn release(&self, life: &Life) {
        match self.0.get().checked_sub(1) {
            Some(less) => self.0.set(less),
            None => drop(life.0.fetch_sub(REF, Release)),
        }
    }
}

impl Life {
    /// A task with two references, one for the runtime and one for the join handle.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(2 * REF))
    }

    // The count.

    /// One more reference. Any thread that has one.
    pub(crate) fn retain(&self) {
        // Relaxed: who clones has a reference already. The bound keeps leaked wakers from wrapping the count.
        if count(self.0.fetch_add(REF, Relaxed)) > MAX {
            std::process::abort();
        }
    }

    /// One reference less. Any thread.
    pub(crate) fn release(&self) -> OnRelease {
        // The only reference of a task that is done cannot be cloned by anybody else: no locked instruction then.
        let now = self.0.load(Acquire);
        if now & !(WAITER | GONE) == REF | DONE {
            return OnRelease::Free;
        }
        // Release: pairs with the Acquire of the last one.
        let before = self.0.fetch_sub(REF, Release);
        if before & !(WAITER | GONE) != REF | DONE {
            return OnRelease::Nothing;
        }
        fence(Acquire);
        OnRelease::Free
    }

    // The hand-over.

    /// Whether the output has been handed over. Acquire: pairs with `complete`.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Acquire) & DONE != 0
    }

    /// Whether the handle has left a waiter. Only the handle changes this before DONE.
    pub(crate) fn has_waiter(&self) -> bool {
        self.0.load(Relaxed) & WAITER != 0
    }

    /// Edges 3, 4 and 6: the output is in place. The owner (or, for a task that was never registered, its only holder).
    pub(crate) fn complete(&self, local: &Local) -> OnComplete {
        let merged = DONE.wrapping_add((i32::from(local.0.get()) * REF as i32) as u32);
        let mut now = self.0.load(Acquire);
        loop {
            let (next, then) = match now & (WAITER | GONE) {
                0 => (now.wrapping_add(merged).wrapping_sub(REF), OnComplete::Nothing),
                WAITER => (now.wrapping_add(merged), OnComplete::Wake),
                _ => (now.wrapping_add(merged), OnComplete::DropOutput),
            };
            if then == OnComplete::DropOutput && count(next) == 1 {
                self.0.store(next, Relaxed); // nobody else has a reference, so nobody else is here
                return then;
            }
            // AcqRel: releases the output to `is_done` and to the last `release`, acquires the waiter from `offer`.
            match self.0.compare_exchange_weak(now, next, AcqRel, Acquire) {
                Ok(_) => return then,
                Err(other) => now = other,
            }
        }
    }

    /// Edge 1: the handle has written the waiter.
    pub(crate) fn offer(&self) -> OnJoin {
        on_join(self.0.fetch_or(WAITER, AcqRel))
    }

    /// Edge 2: if pending, the waiter is the handle's to write again.
    pub(crate) fn withdraw(&self) -> OnJoin {
        // After DONE the bit means nothing any more.
        on_join(self.0.fetch_and(!WAITER, AcqRel))
    }

    /// Edge 5. If pending, the handle's reference is given back too. If done, the handle drops the output and releases.
    pub(crate) fn leave(&self) -> OnJoin {
        let mut now = self.0.load(Acquire);
        while now & DONE == 0 {
            match self.0.compare_exchange_weak(now, (now | GONE).wrapping_sub(REF), AcqRel, Acquire) {
                Ok(_) => return OnJoin::Pending,
                Err(other) => now = other,
            }
        }
        OnJoin::Done
    }
}

fn count(word: u32) -> i32 {
    (word & !FLAGS) as i32 / REF as i32
}

fn on_join(before: u32) -> OnJoin {
    if before & DONE != 0 { OnJoin::Done } else { OnJoin::Pending }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn edges_1_and_4_a_waiter_is_woken() {
        let (life, local) = (Life::new(), Local::new());
        assert_eq!(life.offer(), OnJoin::Pending);
        assert_eq!(life.complete(&local), OnComplete::Wake);
        assert!(life.is_done());
        assert_eq!(life.release(), OnRelease::Nothing);
        assert_eq!(life.leave(), OnJoin::Done);
        assert_eq!(life.release(), OnRelease::Free);
    }

    #[test]
    fn edge_2_a_withdrawn_waiter_is_not_woken() {
        let (life, local) = (Life::new(), Local::new());
        assert_eq!(life.offer(), OnJoin::Pending);
        assert_eq!(life.withdraw(), OnJoin::Pending);
        assert_eq!(life.complete(&local), OnComplete::Nothing);
    }

    #[test]
    fn edge_3_an_offer_after_the_end_finds_it() {
        let (life, local) = (Life::new(), Local::new());
        assert_eq!(life.complete(&local), OnComplete::Nothing);
        assert_eq!(life.offer(), OnJoin::Done);
        assert_eq!(life.release(), OnRelease::Free, "the runtime's reference went with the end");
    }

    #[test]
    fn edge_5_leaving_after_the_end_takes_the_output_along() {
        let (life, local) = (Life::new(), Local::new());
        assert_eq!(life.complete(&local), OnComplete::Nothing);
        assert_eq!(life.leave(), OnJoin::Done);
        assert_eq!(life.release(), OnRelease::Free);
    }

    #[test]
    fn edge_6_leaving_before_the_end_lets_the_runner_drop_the_output() {
        let (life, local) = (Life::new(), Local::new());
        assert_eq!(life.leave(), OnJoin::Pending);
        assert_eq!(life.complete(&local), OnComplete::DropOutput);
        assert_eq!(life.release(), OnRelease::Free);
    }

    #[test]
    fn the_last_of_many_frees_wherever_each_was_counted() {
        let (life, local) = (Life::new(), Local::new());
        for _ in 0..3 {
            local.retain(&life);
        }
        let _ = life.release(); // counted there, given back here: the word is behind by one
        let _ = life.release();
        let _ = life.release();
        assert_eq!(life.leave(), OnJoin::Pending, "the word says -2, and still nobody has the last one");
        life.retain();
        assert_eq!(life.complete(&local), OnComplete::DropOutput);
        assert_eq!(life.release(), OnRelease::Nothing);
        assert_eq!(life.release(), OnRelease::Free);
    }

    #[test]
    fn more_references_than_the_cell_counts_go_to_the_word() {
        let (life, local) = (Life::new(), Local::new());
        let many = i32::from(i16::MAX) + 5;
        (0..many).for_each(|_| local.retain(&life));
        (0..2 * many).for_each(|_| local.release(&life));
        (0..many).for_each(|_| life.retain());
        assert_eq!(life.complete(&local), OnComplete::Nothing);
        assert_eq!(life.release(), OnRelease::Free);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// What a task has, as far as a life rules it.
    struct Task {
        life: Life,
        local: Local,
        output: UnsafeCell<u32>,
        waiter: UnsafeCell<u32>,
    }

    // SAFETY: `local` is touched by the thread of the model that runs the task; loom checks the other cells.
    #[allow(unsafe_code)]
    unsafe impl Sync for Task {}
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe impl Send for Task {}

    impl Task {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                life: Life::new(),
                local: Local::new(),
                output: UnsafeCell::new(0),
                waiter: UnsafeCell::new(0),
            })
        }

        fn write(cell: &UnsafeCell<u32>, value: u32) {
            #[allow(unsafe_code)]
            // SAFETY: the model checks that nobody else touches the cell now.
            cell.with_mut(|cell| unsafe { *cell = value });
        }

        fn read(cell: &UnsafeCell<u32>) -> u32 {
            #[allow(unsafe_code)]
            // SAFETY: as above.
            cell.with(|cell| unsafe { *cell })
        }

        /// Frees the task if this was the last reference: touches all there is. Says whether it did.
        fn release(&self) -> bool {
            if self.life.release() == OnRelease::Nothing {
                return false;
            }
            Self::write(&self.output, 99);
            Self::write(&self.waiter, 99);
            true
        }

        /// What the runner does at the end of the future; says whether it freed the task.
        fn finish(&self) -> bool {
            Self::write(&self.output, 7);
            match self.life.complete(&self.local) {
                OnComplete::Nothing => return false,
                OnComplete::Wake => assert_eq!(Self::read(&self.waiter) & 3, 1),
                OnComplete::DropOutput => Self::write(&self.output, 0),
            }
            self.release()
        }

        /// What the handle does when it is dropped; says whether it freed the task.
        fn leave(&self) -> bool {
            if self.life.leave() == OnJoin::Pending {
                return false;
            }
            assert_eq!(Self::read(&self.output), 7);
            Self::write(&self.output, 0);
            self.release()
        }
    }

    /// The output is read by the handle xor dropped by one side; a waiter offered in time is woken; one side frees.
    ///
    /// Fails when `complete` or `offer` is Relaxed, or when `withdraw` ignores DONE.
    #[test]
    fn the_output_has_one_owner_and_a_waiter_is_not_forgotten() {
        loom::model(|| {
            let task = Task::new();
            let runner = thread::spawn({
                let task = task.clone();
                move || task.finish()
            });
            let life = &task.life;
            let mut found = if life.is_done() { OnJoin::Done } else { OnJoin::Pending };
            if found == OnJoin::Pending {
                Task::write(&task.waiter, 1);
                found = life.offer();
            }
            if found == OnJoin::Pending {
                found = life.withdraw();
            }
            if found == OnJoin::Pending {
                Task::write(&task.waiter, 5);
                let _ = life.offer();
            }
            let freed = task.leave();
            assert!(freed ^ runner.join().unwrap());
        });
    }

    /// A waker that the owner counted is dropped elsewhere while the task ends and its handle goes: freed once, by the last.
    ///
    /// Fails when `complete` forgets `local`, when `release` frees before DONE, or is Relaxed.
    #[test]
    fn the_last_reference_frees_and_it_frees_once() {
        loom::model(|| {
            let task = Task::new();
            task.local.retain(&task.life);
            let waker = thread::spawn({
                let task = task.clone();
                move || task.release()
            });
            let handle = thread::spawn({
                let task = task.clone();
                move || task.leave()
            });
            task.local.retain(&task.life);
            task.local.release(&task.life);
            let freed = u32::from(task.finish());
            assert_eq!(freed + u32::from(waker.join().unwrap()) + u32::from(handle.join().unwrap()), 1);
        });
    }

    /// Fails when `leave` and `complete` are a load and a store each.
    #[test]
    fn a_leaving_handle_and_the_runner_drop_the_output_once() {
        loom::model(|| {
            let task = Task::new();
            let runner = thread::spawn({
                let task = task.clone();
                move || task.finish()
            });
            let freed = task.leave();
            assert!(freed ^ runner.join().unwrap());
        });
    }
}
