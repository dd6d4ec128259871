//! `Waiters`: who waits for one fd, in the order of arrival.
//!
//! Called by `slot`, under its lock; therefore nothing here wakes, clones or drops a waker: they are moved in and out.
//! A waiter is either *keyed* (a leaf future, which can take itself out again) or *keyless* (a `poll_` method, whose caller
//! keeps nothing between polls). Keyless ones are told apart by their wakers and bounded in number.
//!
//! Most sockets have one waiter at a time, and there may be many sockets: the first has its place in the slot itself, and
//! only a second one needs memory.
//!
//! Rejected: a list alone (an allocation of 48 bytes per connection). An intrusive list through the futures (they would
//! have to be pinned, and `unsafe` would decide who may touch them).

use std::num::NonZeroU64;
use std::task::Waker;

use crate::ready::{Interest, Ready};
use crate::slot::word::Seen;

/// With this many keyless waiters for one interest, the oldest has to go when one more comes.
///
/// Each eviction doubles the limit, so that a steady set of tasks comes to rest instead of evicting one another.
const FIRST_KEYLESS_LIMIT: usize = 8;

/// The limit grows no further than this.
const LAST_KEYLESS_LIMIT: usize = 1024;

/// A leaf future's own place among the waiters. Starts empty; never reused while the slot is one fd's.
#[derive(Debug, Default)]
pub(crate) struct Key(pub(super) Option<NonZeroU64>);

impl Key {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) tag: Tag,
    pub(super) waker: Waker,
}

/// Whose waiter it is, and what it waits for: the key, or 0 for none, above the byte of the interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u64);

/// A waker that had to make room; the caller deals with it once the lock is gone.
#[must_use]
pub(super) enum Displaced {
    /// Its own waiter has brought a newer one.
    Replaced(Waker),
    /// Its waiter is no longer in the list, and has to be woken so that it notices.
    Evicted(Waker),
    Nobody,
}

/// Who waits for one fd. Dropping it may run user code: the wakers' destructors.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    last_key: u64,
    /// Who came before all the others.
    first: Option<Waiter>,
    others: Option<Box<Others>>,
}

/// All but the first. Kept when it becomes empty: who has had two waiters will have two again.
#[derive(Debug, Default)]
struct Others {
    list: Vec<Waiter>,
    /// How often the limit for keyless waiters has been doubled.
    doublings: u8,
}

impl Tag {
    pub(super) fn keyed(key: NonZeroU64, interest: Interest) -> Tag {
        Tag(key.get() << 8 | u64::from(interest.open().bits()))
    }

    pub(super) fn keyless(interest: Interest) -> Tag {
        Tag(interest.open().bits().into())
    }

    fn is_keyless(self) -> bool {
        self.0 >> 8 == 0
    }

    /// Whether what the slot has seen is what this one waits for.
    fn is_met(self, seen: Seen) -> bool {
        seen.ends(Interest::from_open(Ready::from_bits(self.0 as u8)))
    }
}

impl Waiters {
    /// Puts in a waiter that has not been here before; returns its key.
    pub(super) fn add(&mut self, interest: Interest, waker: Waker) -> NonZeroU64 {
        self.last_key += 1;
        let key = NonZeroU64::new(self.last_key).expect("2^56 waits on one fd take longer than any machine lasts");
        self.push(Waiter { tag: Tag::keyed(key, interest), waker });
        key
    }

    /// Whether this waiter is here with a waker that wakes the same task.
    pub(super) fn holds(&self, tag: Tag, waker: &Waker) -> bool {
        self.iter().any(|w| w.tag == tag && w.waker.will_wake(waker))
    }

    /// Puts in a waiter that may be here already, with another waker.
    pub(super) fn put(&mut self, waiter: Waiter) -> Displaced {
        let mut displaced = Displaced::Nobody;
        if waiter.tag.is_keyless() {
            if let Some(waker) = self.make_room(waiter.tag) {
                displaced = Displaced::Evicted(waker);
            }
        } else if let Some(old) = self.find(waiter.tag) {
            return Displaced::Replaced(std::mem::replace(old, waiter).waker);
        }
        self.push(waiter);
        displaced
    }

    pub(super) fn remove(&mut self, key: NonZeroU64) -> Option<Waker> {
        let is_it = |w: &Waiter| w.tag.0 >> 8 == key.get();
        if let Some(first) = self.first.take_if(|w| is_it(w)) {
            return Some(first.waker);
        }
        let list = &mut self.others.as_mut()?.list;
        let at = list.iter().position(is_it)?;
        Some(list.remove(at).waker)
    }

    /// Moves out everybody whose wait is over.
    pub(super) fn take(&mut self, seen: Seen, woken: &mut Vec<Waker>) {
        if let Some(first) = self.first.take_if(|w| w.tag.is_met(seen)) {
            woken.push(first.waker);
        }
        if let Some(others) = &mut self.others {
            woken.extend(others.list.extract_if(.., |w| w.tag.is_met(seen)).map(|w| w.waker));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    fn push(&mut self, waiter: Waiter) {
        match &mut self.others {
            Some(others) if self.first.is_some() || !others.list.is_empty() => others.list.push(waiter),
            None if self.first.is_some() => {
                self.others = Some(Box::new(Others { list: vec![waiter], doublings: 0 }));
            }
            _ => self.first = Some(waiter),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.first.iter().chain(self.others.iter().flat_map(|others| &others.list))
    }

    fn find(&mut self, tag: Tag) -> Option<&mut Waiter> {
        let others = self.others.iter_mut().flat_map(|others| &mut others.list);
        self.first.iter_mut().chain(others).find(|w| w.tag == tag)
    }

    /// Takes the oldest keyless waiter out if there are too many of this kind.
    fn make_room(&mut self, tag: Tag) -> Option<Waker> {
        // Where there are no others there is nothing to evict.
        let doublings = self.others.as_ref()?.doublings;
        let limit = (FIRST_KEYLESS_LIMIT << doublings.min(7)).min(LAST_KEYLESS_LIMIT);
        if self.iter().filter(|w| w.tag == tag).count() < limit {
            return None;
        }
        let others = self.others.as_mut()?;
        others.doublings = others.doublings.saturating_add(1);
        if let Some(first) = self.first.take_if(|w| w.tag == tag) {
            return Some(first.waker);
        }
        let at = others.list.iter().position(|w| w.tag == tag)?;
        Some(others.list.remove(at).waker)
    }
}
