//! `Waiters`: who waits for one fd, in the order of arrival.
//!
//! Called by `slot`, under its lock; therefore nothing here wakes, clones or drops a waker: they are moved in and out.
//! A waiter is either *keyed* (a leaf future, which can take itself out again) or *keyless* (a `poll_` method, whose caller
//! keeps nothing between polls). Keyless ones are told apart by their wakers and bounded in number.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::task::Waker;

use crate::ready::Interest;
use crate::slot::word::Seen;

/// With this many keyless waiters for one interest, the oldest has to go when one more comes.
///
/// Each eviction doubles the limit, so that a steady set of tasks comes to rest instead of evicting one another.
const FIRST_KEYLESS_LIMIT: usize = 8;

/// The limit grows no further than this.
const LAST_KEYLESS_LIMIT: usize = 1024;

/// A leaf future's own place in the list. Starts empty; never reused within one slot.
#[derive(Debug, Default)]
pub(crate) struct Key(pub(super) Option<NonZeroU64>);

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) key: Option<NonZeroU64>,
    pub(super) interest: Interest,
    pub(super) waker: Waker,
}

/// A waker that had to make room; the caller deals with it once the lock is gone.
#[must_use]
pub(super) enum Displaced {
    /// Its own waiter has brought a newer one.
    Replaced(Waker),
    /// Its waiter is no longer in the list, and has to be woken so that it notices.
    Evicted(Waker),
    Nobody,
}

#[derive(Debug, Default)]
pub(super) struct Waiters {
    last_key: u64,
    /// How often the limit for keyless waiters has been doubled.
    doublings: u8,
    list: Vec<Waiter>,
}

impl Waiters {
    pub(super) fn next_key(&mut self) -> NonZeroU64 {
        self.last_key += 1;
        NonZeroU64::new(self.last_key).expect("2^64 waits on one fd take longer than any machine lasts")
    }

    /// Whether this waiter is in the list with a waker that wakes the same task.
    pub(super) fn holds(&self, key: Option<NonZeroU64>, interest: Interest, waker: &Waker) -> bool {
        self.list.iter().any(|w| w.key == key && w.interest == interest && w.waker.will_wake(waker))
    }

    pub(super) fn put(&mut self, waiter: Waiter) -> Displaced {
        let mut displaced = Displaced::Nobody;
        if waiter.key.is_some() {
            if let Some(old) = self.list.iter_mut().find(|w| w.key == waiter.key) {
                return Displaced::Replaced(std::mem::replace(old, waiter).waker);
            }
        } else if let Some(oldest) = self.keyless_to_evict(waiter.interest) {
            self.doublings = self.doublings.saturating_add(1);
            displaced = Displaced::Evicted(self.list.remove(oldest).waker);
        }
        if self.list.capacity() == 0 {
            // Most sockets have one waiter at a time, and there may be many sockets.
            self.list.reserve_exact(1);
        }
        self.list.push(waiter);
        displaced
    }

    pub(super) fn remove(&mut self, key: NonZeroU64) -> Option<Waker> {
        let at = self.list.iter().position(|w| w.key == Some(key))?;
        Some(self.list.remove(at).waker)
    }

    /// Moves out everybody whose wait is over.
    pub(super) fn take(&mut self, seen: Seen, woken: &mut VecDeque<Waker>) {
        woken.extend(self.list.extract_if(.., |w| seen.ends(w.interest)).map(|w| w.waker));
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    fn keyless_to_evict(&self, interest: Interest) -> Option<usize> {
        let alike = |w: &Waiter| w.key.is_none() && w.interest == interest;
        let limit = FIRST_KEYLESS_LIMIT.checked_shl(self.doublings.into()).unwrap_or(LAST_KEYLESS_LIMIT);
        let full = self.list.iter().filter(|w| alike(w)).count() >= limit.min(LAST_KEYLESS_LIMIT);
        full.then(|| self.list.iter().position(alike)).flatten()
    }
}
