//! The scheduling state of a task: who may touch its future next, and who owes it a place in a queue.
//!
//! Called by the wakers, the abort handles, and the worker that polls the task. Nothing else reads these words.
//!
//! ```text
//!        1 wake            2 start
//!   IDLE -------> QUEUED ----------> RUNNING --. 3 wake: WOKEN set as a mark
//!    ^              ^                 | | | ^--'
//!    |              '-- 4 with mark --' | '---- 6 finish_done --> DONE
//!    '---------- 5 without mark --------'
//!   4, 5 finish_pending
//!   7 cancel = wake with one more bit: start or finish_pending then says Drop
//! ```
//!
//! IDLE is zero; DONE stays DONE, whatever marks late wakes add. A task that is RUNNING is CLAIMED, maybe with marks. A
//! task that is QUEUED is WOKEN (it has marks that `start` takes off); or, if it is shared, CLAIMED already by the wake
//! that found it idle, by its spawn or its yield. Then the word is as it will be in the poll, and `start` has nothing
//! to change: one locked instruction less for most polls. A wake or a cancellation before `start` leaves its mark as on
//! edge 3, and `start` takes it off. If the mark comes so late that `start` misses it, edge 4 finds it: one poll too
//! many.
//!
//! Two kinds of task share the diagram. A *shared* task may run on any worker, so its word is atomic. An *owned* task
//! runs only on the thread that holds its core, so its word is changed by plain loads and stores; other threads leave
//! bits in a second word and post the task to the core's inbox, once until the owner has taken the bits:
//!
//! ```text
//!            8 remote_wake (first one posts)
//!   QUIET ------------------------------------> NOTIFIED
//!     ^---------------- 9 take_remote ------------'   (the owner then does edge 1, 3 or 7 on the plain word)
//! ```
//!
//! A finished owned task leaves NOTIFIED set permanently, so that late wakes post nothing.
//!
//! A task that is CLAIMED or WOKEN, and not DONE, is in one queue, is polled, or is on its way to a queue: in the hands
//! of the thread that made it so. Any other task is in no queue. That is why queue entries need no reference count of
//! their own: the registry's reference is not dropped before edge 6. A queue also orders memory: what was written
//! before a task was put into it, the word too, is seen by the thread that takes the task out (queues need that for the
//! pointer anyway).
//!
//! A waker that is used up by its wake may leave its reference behind on edge 1 (`wake_owing`, shared tasks only): OWES
//! is set with CLAIMED, and edge 2 reports it to the runner, which gives the reference back in plain memory
//! (`refcount.rs`). OWES is cleared at the end of the poll.
//!
//! Rejected: one atomic word for both kinds (a wake, start and finish of an owned task would cost three locked
//! instructions, measured as most of a yield). A "load first, return if queued" shortcut in `wake`: it skips the
//! release, and the poll may miss what the waker wrote before waking; the model below finds it. A start that always
//! exchanges the word, so that a task in a queue looks unlike one that runs (a yield on two workers took 1.3 times as
//! long).

use super::sight::Standing;
use crate::primitives::atomic::{AtomicU8, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The task was woken: its next runner, or its current one, must take note.
const WOKEN: u8 = 1;
/// The task belongs to its runner, or will without another change.
const CLAIMED: u8 = 2;
const DONE: u8 = 4;
const CANCELLED: u8 = 8;
const OWES: u8 = 16;

/// Bits of an owned task's remote word; `REMOTE_CANCEL` is never set without `NOTIFIED`.
const NOTIFIED: u8 = 1;
const REMOTE_CANCEL: u8 = 2;

/// The remote word of a shared task, which never changes.
const SHARED: u8 = 128;

/// The duty of the caller of a wake or a cancellation.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnWake {
    /// Put the task into a queue.
    Enqueue,
    /// The task is queued or polled already, or it has finished.
    Nothing,
}

/// The duty of the thread that took a task from a queue.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnStart {
    /// Poll the future.
    Poll,
    /// Drop the future: the task was cancelled.
    Drop,
}

/// The runner's duty towards a task whose future is not ready.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnPending {
    /// It was woken meanwhile: put it at the back of a queue.
    Requeue,
    /// Nothing; touch it no more, it may already be polled elsewhere.
    Idle,
    /// It was cancelled meanwhile: drop the future (the runner keeps CLAIMED).
    Drop,
}

/// The duty of the caller of a wake from another thread than the owner's.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnRemote {
    /// Post the task to its core's inbox and unpark its owner.
    Post,
    /// It lies in the inbox already, or it has finished.
    Nothing,
}

fn on_wake(before: u8) -> OnWake {
    match before & (WOKEN | CLAIMED | DONE) {
        0 => OnWake::Enqueue,
        _ => OnWake::Nothing,
    }
}

fn on_start(before: u8) -> OnStart {
    debug_assert!(before & (WOKEN | CLAIMED) != 0 && before & DONE == 0, "a task was polled without a queue entry");
    if before & CANCELLED != 0 { OnStart::Drop } else { OnStart::Poll }
}

/// Edges 1 and 3 of a shared task.
#[inline]
fn wake_shared(main: &AtomicU8) -> u8 {
    // Acquire: what the last runner did is passed on to the next one, by the queue. The load only saves an exchange
    // that would fail.
    if main.load(Relaxed) == 0 && main.compare_exchange(0, CLAIMED, AcqRel, Relaxed).is_ok() {
        return 0;
    }
    // Release: what the waker wrote is seen by the thread that takes the mark off, in `start` or at the end of a poll.
    // Acquire: as above.
    main.fetch_or(WOKEN, AcqRel)
}

/// Edge 2 of a shared task.
#[inline]
fn start_shared(main: &AtomicU8) -> u8 {
    // Relaxed: the queue has brought along what was written before the task was claimed.
    let before = main.load(Relaxed);
    if before & !OWES == CLAIMED {
        return before;
    }
    // An exchange, not a change of two bits, which would be a loop: CANCELLED goes to the caller with the answer.
    main.swap(CLAIMED, AcqRel)
}

/// The words of a task.
///
/// For an owned task, `main` is written by the thread that holds the core (or by the one thread that has the task
/// before it is registered or after the core was closed), with plain loads and stores; `remote` by any thread. For a
/// shared task, `main` is written by any thread, and `remote` permanently marks the task as shared.
#[derive(Debug)]
pub(crate) struct State {
    main: AtomicU8,
    remote: AtomicU8,
}

impl State {
    /// A task that any worker may run, which its creator is about to queue.
    pub(crate) fn shared() -> Self {
        Self { main: AtomicU8::new(CLAIMED), remote: AtomicU8::new(SHARED) }
    }

    /// An owned task spawned by the holder of the core, which is about to queue it.
    pub(crate) fn owned() -> Self {
        Self { main: AtomicU8::new(WOKEN), remote: AtomicU8::new(0) }
    }

    /// An owned task spawned on another thread, which is about to post it to the inbox.
    pub(crate) fn posted() -> Self {
        Self { main: AtomicU8::new(0), remote: AtomicU8::new(NOTIFIED) }
    }

    /// Returns `true` if any worker may run the task.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.remote.load(Relaxed) & SHARED != 0
    }

    /// Returns `true` if the task has finished. Exact for the owner of an owned task.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.main.load(Relaxed) & DONE != 0
    }

    /// Returns `true` if the task seems to wait. A hint; exact for the thread that polls the task (which then does not
    /// wait).
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.main.load(Relaxed) == 0
    }

    /// Whether the task wants to run, for a thread that does not poll it.
    pub(crate) fn standing(&self) -> Standing {
        let main = self.main.load(Acquire);
        let is_posted = self.remote.load(Relaxed) & (SHARED | NOTIFIED) == NOTIFIED;
        match main & (DONE | WOKEN | CLAIMED) {
            ended if ended & DONE != 0 => Standing::Ended,
            0 if !is_posted => Standing::Waits,
            _ => Standing::Ready,
        }
    }

    /// Changes the main word and returns what it was.
    #[inline]
    fn change(&self, shared: impl FnOnce(&AtomicU8) -> u8, owned: impl FnOnce(u8) -> u8) -> u8 {
        if self.is_shared() {
            return shared(&self.main);
        }
        let before = self.main.load(Relaxed);
        self.main.store(owned(before), Relaxed);
        before
    }

    /// Edges 1 and 3. Of an owned task only the owner may call this.
    #[inline]
    pub(crate) fn wake(&self) -> OnWake {
        on_wake(self.change(wake_shared, |main| main | WOKEN))
    }

    /// Edge 1 of a shared task, if it is idle: the caller queues it, and leaves a reference to the thread that starts
    /// it. If `false`, nothing has been done.
    #[inline]
    pub(crate) fn wake_owing(&self) -> bool {
        // AcqRel: as in `wake_shared`. Relaxed: nothing has been done, a wake follows.
        self.main.compare_exchange(0, CLAIMED | OWES, AcqRel, Relaxed).is_ok()
    }

    /// Edge 7. Of an owned task only the owner may call this.
    pub(crate) fn cancel(&self) -> OnWake {
        let bits = WOKEN | CANCELLED;
        on_wake(self.change(|main| main.fetch_or(bits, AcqRel), |main| main | bits))
    }

    /// Edge 2. The caller alone may now touch the future. Says also whether a waker has left a reference behind.
    #[inline]
    pub(crate) fn start(&self) -> (OnStart, bool) {
        let before = self.change(start_shared, |_| CLAIMED);
        debug_assert!(self.is_shared() || before & CLAIMED == 0, "an owned task is polled twice at once");
        (on_start(before), before & OWES != 0)
    }

    /// Edges 4, 5 and 7.
    #[inline]
    pub(crate) fn finish_pending(&self) -> OnPending {
        if self.is_shared() {
            return self.finish_pending_shared();
        }
        let now = self.main.load(Relaxed);
        if now & CANCELLED != 0 {
            return OnPending::Drop;
        }
        // Release: a thread that sees that the task waits sees for what (`sight.rs`).
        self.main.store(now & !CLAIMED, Release);
        if now & WOKEN != 0 { OnPending::Requeue } else { OnPending::Idle }
    }

    fn finish_pending_shared(&self) -> OnPending {
        // Relaxed: OWES is set before a poll only, and cleared by its runner only.
        let own = CLAIMED | self.main.load(Relaxed) & OWES;
        // These bits are set, so this clears them; one instruction, where `fetch_and` would be a loop.
        match self.main.fetch_sub(own, AcqRel) {
            before if before & CANCELLED != 0 => self.take_back(),
            before if before & WOKEN != 0 => OnPending::Requeue,
            _ => OnPending::Idle,
        }
    }

    /// Edges 3 and 4 (or 7) in one step, for a task that asks for another poll: no other wake can come first.
    #[inline]
    pub(crate) fn finish_yielded(&self) -> OnPending {
        if self.is_shared() {
            // AcqRel: as in `wake`. CLAIMED, so that the next `start` has nothing to do.
            if self.main.swap(CLAIMED, AcqRel) & CANCELLED != 0 {
                return OnPending::Drop;
            }
        } else {
            if self.main.load(Relaxed) & CANCELLED != 0 {
                return OnPending::Drop;
            }
            self.main.store(WOKEN, Relaxed);
        }
        OnPending::Requeue
    }

    /// A shared task that was cancelled while it was polled is WOKEN and in no queue, so the caller alone may claim it
    /// again.
    #[cold]
    fn take_back(&self) -> OnPending {
        let (_, owes) = self.start();
        debug_assert!(!owes, "it was not idle");
        OnPending::Drop
    }

    /// Edge 6. Only the runner calls this.
    pub(crate) fn finish_done(&self) {
        // Release: pairs with the Acquire of a late `wake`. A plain store: bits set meanwhile mean nothing any more.
        self.main.store(DONE, Release);
        if !self.is_shared() {
            // A wake that read QUIET just before this still posts; the reader of the inbox finds DONE and drops the
            // post.
            self.remote.store(NOTIFIED, Release);
        }
    }

    /// Edge 8. For owned tasks only, as are the methods that follow.
    pub(crate) fn remote_wake(&self) -> OnRemote {
        self.notify(NOTIFIED)
    }

    /// Edge 8, leaving a cancellation for the owner.
    pub(crate) fn remote_cancel(&self) -> OnRemote {
        self.notify(NOTIFIED | REMOTE_CANCEL)
    }

    fn notify(&self, bits: u8) -> OnRemote {
        // AcqRel: releases what the waker wrote to the Acquire in `take_remote`.
        match self.remote.fetch_or(bits, AcqRel) & NOTIFIED {
            0 => OnRemote::Post,
            _ => OnRemote::Nothing,
        }
    }

    /// Edge 9: the owner has the task from its inbox and takes over what was asked of it.
    pub(crate) fn take_remote(&self) -> OnWake {
        if self.is_done() {
            return OnWake::Nothing; // keeps NOTIFIED
        }
        match self.remote.swap(0, AcqRel) & REMOTE_CANCEL {
            0 => self.wake(),
            _ => self.cancel(),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, loom))]
mod models;
