//! `Waiters`: the waiters of one fd, in the order of arrival among those with the same interest.
//!
//! Called by `slot`, under its lock; therefore nothing here wakes, clones or drops a waker: they are moved in and out.
//! A waiter is either *keyed* (a leaf future, which can take itself out again) or *polled* (by a `poll_` method, whose
//! caller keeps nothing between polls). There is one polled waiter for each direction: the last.
//!
//! Most sockets have one waiter at a time, and there may be many sockets: the first has its place in the slot itself,
//! and only a second one needs memory (`crowd`).
//!
//! Rejected: a list alone (an allocation of 48 bytes per connection). An intrusive list through the futures (they would
//! have to be pinned, and `unsafe` would decide who may touch them). Polled waiters told apart by their wakers (no
//! caller says that a former one is no longer wanted: their number has to be bounded, and each poll looks through all
//! of them).

use std::num::NonZeroU64;
use std::task::Waker;

use super::crowd::{Crowd, GENERATIONS, Spot};
use crate::ready::{Interest, Ready};
use crate::slot::word::Seen;

/// A leaf future's own place among the waiters. Starts empty; names no other waiter while the slot is one fd's.
#[derive(Debug, Default)]
pub(crate) struct Key(pub(super) Option<Ticket>);

impl Key {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// For a place that has waiters of its own: the key's number, which begins as `new`.
    pub(crate) fn number(&mut self, new: fn() -> NonZeroU64) -> NonZeroU64 {
        self.0.get_or_insert_with(|| Ticket(new())).0
    }
}

/// Names a keyed waiter: the first one by a number that is given out once, one of the crowd by its spot with the
/// highest bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(NonZeroU64);

/// In a ticket: the waiter is in the crowd.
const IN_CROWD: NonZeroU64 = NonZeroU64::new((GENERATIONS as u64) << 32).expect("one bit is set");

/// The waiters of one fd. Dropping it may run user code: the wakers' destructors.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    last_number: u64,
    /// The waiter that came before all others with the same interest.
    first: Option<First>,
    /// Kept when it becomes empty: a slot that has had two waiters will have two again.
    crowd: Option<Box<Crowd>>,
}

#[derive(Debug)]
struct First {
    tag: Tag,
    waker: Waker,
}

/// Names a first waiter and its interest: the number, or 0 for a polled one, above the byte of the interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u64);

impl Ticket {
    fn in_crowd(Spot { index, generation }: Spot) -> Ticket {
        Ticket(IN_CROWD | (u64::from(generation) << 32 | u64::from(index)))
    }

    fn spot(self) -> Option<Spot> {
        let word = self.0.get();
        let generation = (word >> 32) as u32 & (GENERATIONS - 1);
        (word & IN_CROWD.get() != 0).then_some(Spot { index: word as u32, generation })
    }
}

impl Tag {
    fn new(number: u64, interest: Interest) -> Tag {
        Tag(number << 8 | u64::from(interest.open().bits()))
    }

    fn number(self) -> u64 {
        self.0 >> 8
    }

    /// Returns `true` if `seen` ends the wait of this waiter.
    fn is_met(self, seen: Seen) -> bool {
        seen.ends(Interest::from_open(Ready::from_bits(self.0 as u8)))
    }
}

impl Waiters {
    /// Adds a keyed waiter.
    #[inline]
    pub(super) fn add(&mut self, interest: Interest, waker: Waker) -> Ticket {
        if !self.has_room_for_first(interest) {
            return self.add_to_crowd(interest, waker);
        }
        self.last_number += 1;
        self.first = Some(First { tag: Tag::new(self.last_number, interest), waker });
        Ticket(NonZeroU64::new(self.last_number).expect("2^56 waits on one fd take longer than any machine lasts"))
    }

    /// Adds a polled waiter when there is none for this interest.
    pub(super) fn add_polled(&mut self, interest: Interest, waker: Waker) {
        if self.has_room_for_first(interest) {
            self.first = Some(First { tag: Tag::new(0, interest), waker });
        } else {
            self.crowd.get_or_insert_default().add_polled(interest, waker);
        }
    }

    /// The waker of a keyed waiter, if it is still in.
    pub(super) fn waker(&mut self, ticket: Ticket) -> Option<&mut Waker> {
        match ticket.spot() {
            Some(spot) => self.crowd.as_mut()?.waker(spot),
            None => {
                self.first.as_mut().filter(|first| first.tag.number() == ticket.0.get()).map(|first| &mut first.waker)
            }
        }
    }

    /// The waker of the polled waiter for `interest`.
    pub(super) fn polled_waker(&mut self, interest: Interest) -> Option<&mut Waker> {
        match &mut self.first {
            Some(First { tag, waker }) if *tag == Tag::new(0, interest) => Some(waker),
            _ => self.crowd.as_mut()?.polled_waker(interest),
        }
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Waker> {
        match ticket.spot() {
            Some(spot) => self.crowd.as_mut()?.remove(spot),
            None => self.first.take_if(|first| first.tag.number() == ticket.0.get()).map(|first| first.waker),
        }
    }

    /// Moves out the wakers of all waits that are over.
    pub(super) fn take(&mut self, seen: Seen, woken: &mut Vec<Waker>) {
        if let Some(first) = self.first.take_if(|first| first.tag.is_met(seen)) {
            woken.push(first.waker);
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.take(seen, woken);
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.crowd.as_ref().map_or(0, |crowd| crowd.len())
    }

    /// Returns `true` if there is no first waiter, and none in the crowd with this interest.
    #[inline]
    fn has_room_for_first(&self, interest: Interest) -> bool {
        self.first.is_none() && self.crowd.as_ref().is_none_or(|crowd| crowd.lacks(interest))
    }

    #[cold]
    fn add_to_crowd(&mut self, interest: Interest, waker: Waker) -> Ticket {
        Ticket::in_crowd(self.crowd.get_or_insert_default().add(interest, waker))
    }
}
