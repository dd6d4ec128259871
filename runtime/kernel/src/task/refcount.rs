//! The lifetime of a task, and the hand-over of its output to its join handle: a count and four bits in one word.
//!
//! Called by every holder of a reference, by the runner (once, when the future is gone) and by the one join handle of
//! the task. These may be on different threads; the word decides which of them drops the output, which may touch the
//! waiter and which frees the task.
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
//! handle (if DONE came while WAITER was set: the runner, which wakes it and so uses it up).
//!
//! The runner reads the waiter before it sets DONE, as it gives its reference back in the same step: the joiner may
//! free the task before the joiner is woken. The waiter that the runner has read is valid if nothing has changed since,
//! and a waiter changes only after a `withdraw`, which leaves AGAIN. If AGAIN is set (7), the runner keeps its
//! reference and reads the waiter after DONE. (A waiter is two words. The runner may read one of the old waiter and one
//! of the new, so they are atomic.)
//!
//! # The count
//!
//! A task that only one thread polls is woken, cloned and dropped on that thread most of the time. There the *owner*,
//! the thread that holds the task's core, counts its references in `local`, a plain cell, and every other thread counts
//! in the word. Only the sum means anything: a reference may be counted in one place and given back in the other, so
//! each count may go below zero. That does no harm because the runtime has a reference until `complete`, so before that
//! no other reference is the last. `complete` adds `local` to the word together with DONE; from then on only the word
//! counts. (Biased reference counts: Choi, Shull, Torrellas, PACT 2018; theirs need a queue of objects to merge, and
//! the end of a task spares us that.)
//!
//! A shared task has no such thread, but the thread that polls it counts in `local` during the poll, and the state
//! hands the cell over with the future. Wakers for later wakes are cloned in the poll. If a wake uses its waker up,
//! that reference is left in the queue, and given back by the polling thread (`OWES` in `state.rs`).
//!
//! Rejected: a word for the count beside one for the hand-over (three locked instructions at the end of a task instead
//! of one or none, 12 ns of a spawn and join). A reference kept until the waiter has been woken (one more locked
//! instruction, and chance decides whether runner or joiner frees the task). A waker's reference left behind by a wake
//! from outside the runtime: the task may be gone once it is queued, and the runtime with it, which the waking thread
//! needs until it has unparked.

use crate::primitives::atomic::{
    AtomicI16, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

const DONE: u32 = 1;
const WAITER: u32 = 2;
const GONE: u32 = 4;
const AGAIN: u32 = 8;
const FLAGS: u32 = DONE | WAITER | GONE | AGAIN;

/// One reference; the count is signed, in the upper 28 bits.
const REF: u32 = 16;

/// More references than this are leaked ones. It is a quarter of what the count can hold, so the threads that pass it
/// at once, each by one, do not wrap it.
const MAX: i32 = 1 << 25;

/// The runner's duty after the output is in place.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnComplete<W> {
    /// Nothing, and its reference is given back.
    Nothing,
    /// Wake this waiter, which is the runner's now. Its reference is given back; touch the task no more.
    Wake(W),
    /// Take the waiter, wake it, and then give back the reference.
    LookAndWake,
    /// There is no handle: drop the output, and then give back the reference.
    DropOutput,
}

/// The state that the handle found.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum OnJoin {
    /// The output is the handle's.
    Done,
    /// The runner has not finished.
    Pending,
}

/// The handle's duty before it leaves another waiter, or is dropped.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnWithdraw {
    /// The runner has finished, and the handle must not touch the waiter.
    Done,
    /// There is no waiter, and the place is the handle's.
    Nothing,
    /// The waiter is the handle's again.
    Waiter,
}

/// The duty of a caller that gives back a reference.
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
pub(crate) struct RefCount(AtomicU32);

/// The owner's count in addition to the word, by plain loads and stores. A type of its own: in one struct the two would
/// take eight bytes of a header.
#[derive(Debug)]
pub(crate) struct LocalCount(AtomicI16);

impl LocalCount {
    pub(crate) fn new() -> Self {
        Self(AtomicI16::new(0))
    }

    /// One more reference. The owner, before DONE.
    #[inline]
    pub(crate) fn retain(&self, refs: &RefCount) {
        match self.0.load(Relaxed).checked_add(1) {
            Some(more) => self.0.store(more, Relaxed),
            None => refs.retain(),
        }
    }

    /// One reference less, which is not the last. The owner, before DONE.
    #[inline]
    pub(crate) fn release(&self, refs: &RefCount) {
        match self.0.load(Relaxed).checked_sub(1) {
            // Release: a thread that looks whether the task is lost sees the wake that used the reference up.
            Some(less) => self.0.store(less, Release),
            None => drop(refs.0.fetch_sub(REF, Release)),
        }
    }
}

impl RefCount {
    /// A task with two references, one for the runtime and one for the join handle.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(2 * REF))
    }

    // The count.

    /// One more reference. Any thread that has one.
    pub(crate) fn retain(&self) {
        // Relaxed: a thread that clones has a reference already. The bound keeps leaked wakers from wrapping the count.
        if count(self.0.fetch_add(REF, Relaxed)) > MAX {
            std::process::abort();
        }
    }

    /// One reference less. Any thread.
    pub(crate) fn release(&self) -> OnRelease {
        // If the task is done and this is its only reference, no other thread can clone it: no locked instruction then.
        let now = self.0.load(Acquire);
        if now & !(WAITER | GONE | AGAIN) == REF | DONE {
            return OnRelease::Free;
        }
        // Release: pairs with the Acquire of the last one.
        let before = self.0.fetch_sub(REF, Release);
        if before & !(WAITER | GONE | AGAIN) != REF | DONE {
            return OnRelease::Nothing;
        }
        // Pairs with the Release of all others. A load and not a fence, which ThreadSanitizer does not understand.
        let _ = self.0.load(Acquire);
        OnRelease::Free
    }

    /// How many references there are beside those of the runtime and the handle, before DONE. A hint, as the two counts
    /// are read one after the other; exact while the owner counts nothing.
    pub(crate) fn others(&self, local: &LocalCount) -> i32 {
        // Acquire: pairs with the Release of those that have given theirs back.
        let now = self.0.load(Acquire);
        let handle = i32::from(now & GONE == 0);
        count(now) + i32::from(local.0.load(Acquire)) - 1 - handle
    }

    /// Whether there is a handle, and it does not wait.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.load(Relaxed) & (GONE | WAITER) == 0
    }

    // The hand-over.

    /// Returns `true` if the output has been handed over. Acquire: pairs with `complete`.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Acquire) & DONE != 0
    }

    /// Whether the handle has left a waiter. Only the handle changes this, so to it the answer is exact, and `offer`
    /// relies on that; after DONE it says nothing.
    pub(crate) fn has_waiter(&self) -> bool {
        self.0.load(Relaxed) & WAITER != 0
    }

    /// Edges 3, 4, 6 and 7: the output is in place. The owner (or, for a task that was never registered, its only
    /// holder).
    ///
    /// `waiter` reads the waiter; what it returned last is in the answer.
    pub(crate) fn complete<W>(&self, local: &LocalCount, waiter: impl Fn() -> W) -> OnComplete<W> {
        let merged = DONE.wrapping_add((i32::from(local.0.load(Relaxed)) * REF as i32) as u32);
        let mut now = self.0.load(Acquire);
        loop {
            let (next, then) = match now & (WAITER | GONE | AGAIN) {
                WAITER => (now.wrapping_add(merged).wrapping_sub(REF), OnComplete::Wake(waiter())),
                flags if flags & GONE != 0 => (now.wrapping_add(merged), OnComplete::DropOutput),
                flags if flags & WAITER != 0 => (now.wrapping_add(merged), OnComplete::LookAndWake),
                _ => (now.wrapping_add(merged).wrapping_sub(REF), OnComplete::Nothing),
            };
            if matches!(then, OnComplete::DropOutput) && count(next) == 1 {
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

    /// Edge 1: the handle has written the waiter, as there was none or `withdraw` allowed. If done, the waiter is still
    /// the handle's.
    pub(crate) fn offer(&self) -> OnJoin {
        // WAITER is not set, so this sets it.
        on_join(self.0.fetch_add(WAITER, AcqRel))
    }

    /// Edge 2: what the handle may do to the waiter.
    pub(crate) fn withdraw(&self) -> OnWithdraw {
        let now = self.0.load(Acquire);
        if now & DONE != 0 {
            return OnWithdraw::Done; // whether the waiter was withdrawn too late before or not
        }
        if now & WAITER == 0 {
            return OnWithdraw::Nothing;
        }
        let again = if now & AGAIN == 0 { AGAIN } else { 0 }; // which nobody else sets
        // After DONE the bits mean nothing any more.
        match on_join(self.0.fetch_add(again.wrapping_sub(WAITER), AcqRel)) {
            OnJoin::Done => OnWithdraw::Done,
            OnJoin::Pending => OnWithdraw::Waiter,
        }
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, loom))]
mod models;
