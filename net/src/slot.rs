//! `Slot`: the readiness of one fd and everybody who waits for it. No edge is lost, nobody is forgotten.
//!
//! Called by `reactor` (`set`, from the driver) and by `source` (the rest, from tasks).
//!
//! # Why no wake-up is lost
//!
//! - A task looks at the word, leaves its waker, and looks **again**. The driver sets the word, and **then** takes the
//!   wakers. The wakers are under one lock. If the task's turn at the lock comes first, the driver finds its waker; if
//!   the driver's comes first, unlocking and locking order its `set` before the task's second look, which sees it.
//! - Readiness stays in the word until an op has found the fd not ready (see `word`). A woken future that is dropped
//!   before it runs takes nothing with it: an event wakes **all** waiters of its direction, so every other one was woken
//!   by the same event, and one that comes later finds the flag in the word.
//!
//! # Rejected
//!
//! - One waiter per direction: two tasks that accept on one listener displace each other, and spin if the displaced one
//!   is woken.
//! - Waking one waiter per edge: the one chosen may be dropped before it runs, and an edge does not say how many
//!   connections it stands for.
//! - A lock-free list: the lock is held for a few moves, and its two sides seldom meet.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::ready::{Interest, Ready};

mod waiters;
mod word;

pub(crate) use waiters::Key;
pub(crate) use word::Seen;

use waiters::{Displaced, Waiter, Waiters};
use word::Word;

#[derive(Debug)]
pub(crate) struct Slot {
    word: Word,
    waiters: Mutex<Waiters>,
}

impl Slot {
    pub(crate) fn new(ready: Ready) -> Slot {
        Slot { word: Word::new(ready), waiters: Mutex::default() }
    }

    /// What an op has seen of an fd that has no slot yet.
    pub(crate) fn unregistered() -> Seen {
        Word::unregistered()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.word.seen()
    }

    /// Takes note of what the kernel said, and moves out the wakers of those who waited for it.
    pub(crate) fn set(&self, ready: Ready, woken: &mut VecDeque<Waker>) {
        self.word.set(ready);
        // Only the new flags count: an old one has woken its waiters, and who came later saw it.
        self.lock().take(Word::new(ready).seen(), woken);
    }

    /// Takes note that an op, begun when the slot was as `seen`, found it not `ready`.
    pub(crate) fn clear(&self, seen: Seen, ready: Ready) {
        self.word.clear(seen, ready);
    }

    /// Ready once the wait for `interest` is over, at once if it is already.
    ///
    /// With `None` for a key the waiter can't be taken out again: for the `poll_` methods.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>, interest: Interest, key: Option<&mut Key>) -> Poll<Seen> {
        let seen = self.word.seen();
        if seen.ends(interest) {
            return Poll::Ready(seen);
        }
        self.leave_waker(cx.waker(), interest, key);
        let seen = self.word.seen();
        if seen.ends(interest) {
            return Poll::Ready(seen);
        }
        Poll::Pending
    }

    /// Takes the waiter out, if it still is in.
    pub(crate) fn forget(&self, key: &mut Key) {
        if let Some(key) = key.0.take() {
            let waker = self.lock().remove(key);
            drop(waker);
        }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().len()
    }

    fn leave_waker(&self, waker: &Waker, interest: Interest, key: Option<&mut Key>) {
        let keyless = key.is_none();
        let mut none = Key::default();
        let key = key.unwrap_or(&mut none);
        if (keyless || key.0.is_some()) && self.lock().holds(key.0, interest, waker) {
            return;
        }
        let waker = waker.clone();
        let displaced = {
            let mut waiters = self.lock();
            if !keyless {
                key.0.get_or_insert_with(|| waiters.next_key());
            }
            let key: Option<NonZeroU64> = key.0;
            waiters.put(Waiter { key, interest, waker })
        };
        match displaced {
            Displaced::Evicted(waker) => waker.wake(),
            Displaced::Replaced(waker) => drop(waker),
            Displaced::Nobody => {}
        }
    }

    /// Poison is ignored: no user code runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
