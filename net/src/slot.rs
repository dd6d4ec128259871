//! `Slot`: the readiness of one fd, and its waiters. No edge is lost, no waiter is forgotten.
//!
//! Called by `reactor` (`set`, from the driver; `reset` and `clear_out`, from its table) and by `source` (the
//! rest, from tasks).
//!
//! # Why no wake-up is lost
//!
//! - A task looks at the word, leaves its waker, and looks **again**. The driver sets the word, and **then** takes the
//!   wakers. The wakers are under one lock. If the task locks first, the driver finds its waker. If the driver locks
//!   first, the lock orders its `set` before the task's second look, which sees it.
//! - Readiness stays in the word until an op has found the fd not ready (see `word`). A woken future that is dropped
//!   before it runs takes nothing with it: an event wakes **all** waiters of its direction, so every other waiter was
//!   woken by the same event, and a later one finds the flag in the word. (Of the tasks that wait by `poll_` methods,
//!   only the last per direction is kept, as their documentation says.)
//!
//! # Why a key need not be given back
//!
//! A future has a key only while its last poll was `Pending`: its second look found no flag that ends the wait. If the
//! first look of a later poll finds such a flag, consider the last `set` of that flag. This `set` came after the second
//! look: otherwise the look would have seen the flag, or the flag would have been cleared since and not set again. Its
//! turn at the lock came after the waker was left: otherwise the lock would have ordered it before the second look.
//! Hence this `set` takes the waiter out, or has done so, and the key can just be dropped. If the task is faster than
//! the driver, it gets one wake too many, from a `take` that was already under way.
//!
//! # Rejected
//!
//! - One waiter per direction for futures too: two tasks that accept on one listener displace each other, and spin if
//!   the displaced one is woken.
//! - Waking one waiter per edge: the one chosen may be dropped before it runs, and an edge does not report the number
//!   of connections behind it.
//! - A lock-free list: the lock is held for a few moves, and its two sides seldom meet.

use std::mem;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::primitives::{Mutex, MutexGuard};
use crate::ready::{Interest, Ready};

mod crowd;
mod waiters;
mod word;

pub(crate) use waiters::{Key, Waiters};
pub(crate) use word::Seen;

use waiters::Ticket;
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

    /// As `new`, for the next fd, which is `ready`. No socket has the slot now.
    pub(crate) fn reset(&self, ready: Ready) {
        self.word.reset(ready);
    }

    /// The fd is gone. Returns the remaining waiters, for the caller to drop without a lock.
    pub(crate) fn clear_out(&self) -> Waiters {
        mem::take(&mut *self.lock())
    }

    pub(crate) fn seen(&self) -> Seen {
        self.word.seen()
    }

    /// Records what the kernel reported, and moves out the wakers of the waiters for it.
    pub(crate) fn set(&self, ready: Ready, woken: &mut Vec<Waker>) {
        self.word.set(ready);
        // Only the new flags count: an old one has woken its waiters, and a later waiter saw it.
        self.lock().take(Word::new(ready).seen(), woken);
    }

    /// Records that an op, begun when the slot was as `seen`, found the fd not `ready`.
    pub(crate) fn clear(&self, seen: Seen, ready: Ready) {
        self.word.clear(seen, ready);
    }

    /// Records that an op, begun when the slot was as `seen`, found the fd not ready for `interest`.
    pub(crate) fn clear_interest(&self, seen: Seen, interest: Interest) {
        self.word.clear_interest(seen, interest);
    }

    /// Ready once the wait for `interest` is over, at once if it is already.
    ///
    /// A key is for one interest. `None` is for the `poll_` methods: the waiter can't be taken out again, and replaces
    /// the last one that came without a key for the same interest.
    #[inline]
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>, interest: Interest, key: Option<&mut Key>) -> Poll<Seen> {
        let seen = self.word.seen();
        if seen.ends(interest) {
            if let Some(key) = key {
                // The driver takes the waiter: see "Why a key need not be given back" above.
                key.0 = None;
            }
            return Poll::Ready(seen);
        }
        self.wait(cx.waker(), interest, key)
    }

    /// Takes the waiter out, if it is still in.
    pub(crate) fn forget(&self, key: &mut Key) {
        if let Some(key) = key.0.take() {
            let waker = self.lock().remove(key);
            drop(waker);
        }
    }

    /// The number of waiters.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// Leaves the waker, and looks again.
    fn wait(&self, waker: &Waker, interest: Interest, mut key: Option<&mut Key>) -> Poll<Seen> {
        self.leave_waker(waker, interest, key.as_deref_mut());
        let seen = self.word.seen();
        if !seen.ends(interest) {
            return Poll::Pending;
        }
        if let Some(key) = key {
            // Here the driver may have looked for the waiter before it was left.
            self.forget(key);
        }
        Poll::Ready(seen)
    }

    fn leave_waker(&self, waker: &Waker, interest: Interest, key: Option<&mut Key>) {
        match key {
            Some(Key(Some(ticket))) => self.renew(ticket, waker, interest),
            Some(key) => {
                let waker = waker.clone();
                key.0 = Some(self.lock().add(interest, waker));
            }
            None => self.leave_polled(waker, interest),
        }
    }

    /// Gives a waiter another waker, and adds it again if an event has taken it out.
    fn renew(&self, ticket: &mut Ticket, waker: &Waker, interest: Interest) {
        if self.lock().waker(*ticket).is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let waker = waker.clone();
        let mut waiters = self.lock();
        let displaced = match waiters.waker(*ticket) {
            Some(known) => Some(mem::replace(known, waker)),
            None => {
                *ticket = waiters.add(interest, waker);
                None
            }
        };
        drop(waiters);
        drop(displaced);
    }

    fn leave_polled(&self, waker: &Waker, interest: Interest) {
        if self.lock().polled_waker(interest).is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let waker = waker.clone();
        let mut waiters = self.lock();
        let displaced = match waiters.polled_waker(interest) {
            Some(known) => Some(mem::replace(known, waker)),
            None => {
                waiters.add_polled(interest, waker);
                None
            }
        };
        drop(waiters);
        drop(displaced);
    }

    /// Poison is ignored: no user code runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, loom))]
mod models;
