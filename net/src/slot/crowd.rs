//! `Crowd`: the waiters of one fd, except the first. Adding, removing or changing a waiter takes the same time however
//! many there are.
//!
//! Called by `waiters`, which holds the first waiter. A waiter has a place in one array. The places in use form a ring
//! for each interest, in the order of arrival: so an event touches only the waiters it wakes, and a future finds its
//! place by index.
//!
//! A future may return with the index of a place that an event has emptied and another waiter has taken. So a place has
//! a generation, which is part of the key. It never wraps: a place whose generations are used up is not given out
//! again.
//!
//! Rejected: a list that is searched (20,000 receivers of one socket took 170 ms per datagram, all of it in the
//! search). A list in order of the keys, with holes (a binary search, and time to close the holes). Waiters that only
//! the future removes, which need no generation (a lock at the end of each wait).

use std::task::Waker;

use crate::ready::{Interest, Ready};
use crate::slot::word::Seen;

/// In place of an index.
const NOBODY: u32 = u32::MAX;

/// The generations of a place are fewer than this, so that they fit into a key.
pub(super) const GENERATIONS: u32 = 1 << 31;

/// The number of non-empty sets of four flags.
const QUEUES: usize = 15;

#[derive(Debug)]
pub(super) struct Crowd {
    places: Vec<Waiter>,
    /// The place to be given out next; its `next` is the place after it.
    free: u32,
    len: u32,
    /// A bit for each queue that is not empty.
    busy: u16,
    /// The first place of each queue that is not empty: that of the oldest waiter.
    queues: [u32; QUEUES],
    /// The places of the polled waiters, to read and to write.
    polled: [u32; 2],
}

/// A place, and one of its successive tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) index: u32,
    pub(super) generation: u32,
}

#[derive(Debug)]
struct Waiter {
    /// `None` if the place is free.
    waker: Option<Waker>,
    generation: u32,
    /// The neighbours in the ring.
    previous: u32,
    next: u32,
    /// Its number in `queues`.
    queue: u8,
}

impl Default for Crowd {
    fn default() -> Crowd {
        // One place to begin with: a second waiter is common, a third one is not.
        let places = Vec::with_capacity(1);
        Crowd { places, free: NOBODY, len: 0, busy: 0, queues: [NOBODY; QUEUES], polled: [NOBODY; 2] }
    }
}

impl Crowd {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns `true` if no waiter has exactly this interest.
    pub(super) fn lacks(&self, interest: Interest) -> bool {
        self.is_empty(queue_of(interest))
    }

    /// Adds a waiter at the end of its queue.
    pub(super) fn add(&mut self, interest: Interest, waker: Waker) -> Spot {
        let queue = queue_of(interest);
        let index = self.take_place();
        let place = self.place(index);
        (place.waker, place.queue) = (Some(waker), queue as u8);
        (place.previous, place.next) = (index, index);
        let generation = place.generation;
        self.len += 1;
        if self.is_empty(queue) {
            self.busy |= 1 << queue;
            self.queues[queue] = index;
        } else {
            let head = self.queues[queue];
            let tail = self.place(head).previous;
            self.link(tail, index);
            self.link(index, head);
        }
        Spot { index, generation }
    }

    /// As `add`, for a `poll_` method: there is no other polled waiter for this interest.
    pub(super) fn add_polled(&mut self, interest: Interest, waker: Waker) {
        let Spot { index, .. } = self.add(interest, waker);
        self.polled[direction_of(interest)] = index;
    }

    /// The waker of this waiter, if it is still in.
    pub(super) fn waker(&mut self, spot: Spot) -> Option<&mut Waker> {
        if spot.index as usize >= self.places.len() {
            return None;
        }
        let place = self.place(spot.index);
        place.waker.as_mut().filter(|_| place.generation == spot.generation)
    }

    /// The waker that a `poll_` method has left for `interest`.
    pub(super) fn polled_waker(&mut self, interest: Interest) -> Option<&mut Waker> {
        match self.polled[direction_of(interest)] {
            NOBODY => None,
            index => self.place(index).waker.as_mut(),
        }
    }

    pub(super) fn remove(&mut self, spot: Spot) -> Option<Waker> {
        self.waker(spot)?;
        let Waiter { previous, next, queue, .. } = *self.place(spot.index);
        self.link(previous, next);
        if next == spot.index {
            self.busy &= !(1 << queue);
        } else if self.queues[usize::from(queue)] == spot.index {
            self.queues[usize::from(queue)] = next;
        }
        self.free_place(spot.index).0
    }

    /// Moves out the wakers of all waits that are over.
    pub(super) fn take(&mut self, seen: Seen, woken: &mut Vec<Waker>) {
        let mut busy = self.busy;
        while busy != 0 {
            let queue = busy.trailing_zeros() as usize;
            busy &= busy - 1;
            if seen.ends(interest_of(queue)) {
                self.take_queue(queue, woken);
            }
        }
    }

    fn take_queue(&mut self, queue: usize, woken: &mut Vec<Waker>) {
        self.busy &= !(1 << queue);
        let head = self.queues[queue];
        let mut index = head;
        loop {
            let (waker, next) = self.free_place(index);
            if let Some(waker) = waker {
                woken.push(waker);
            }
            if next == head {
                return;
            }
            index = next;
        }
    }

    fn is_empty(&self, queue: usize) -> bool {
        self.busy >> queue & 1 == 0
    }

    fn take_place(&mut self) -> u32 {
        if self.free == NOBODY {
            let index = u32::try_from(self.places.len()).ok().filter(|index| *index < NOBODY);
            self.places.push(Waiter { waker: None, generation: 0, previous: NOBODY, next: NOBODY, queue: 0 });
            return index.expect("the memory of 2^32 waiters is more than any machine has");
        }
        let index = self.free;
        self.free = self.place(index).next;
        index
    }

    /// Ends the generation of a place; returns the waker, and the next one in the ring.
    fn free_place(&mut self, index: u32) -> (Option<Waker>, u32) {
        for polled in &mut self.polled {
            if *polled == index {
                *polled = NOBODY;
            }
        }
        self.len -= 1;
        let free = self.free;
        let place = self.place(index);
        let (waker, next) = (place.waker.take(), place.next);
        place.generation += 1;
        if place.generation < GENERATIONS {
            place.next = free;
            self.free = index;
        }
        (waker, next)
    }

    fn link(&mut self, former: u32, latter: u32) {
        self.place(former).next = latter;
        self.place(latter).previous = former;
    }

    fn place(&mut self, index: u32) -> &mut Waiter {
        steps::count();
        &mut self.places[index as usize]
    }
}

/// The four flags of an interest side by side, as a number.
fn queue_of(interest: Interest) -> usize {
    let bits = interest.open().bits();
    usize::from(bits & 0b11 | bits >> 2 & 0b1100) - 1
}

fn interest_of(queue: usize) -> Interest {
    let bits = queue as u8 + 1;
    Interest::from_open(Ready::from_bits(bits & 0b11 | (bits & 0b1100) << 2))
}

/// The `poll_` methods have these two interests.
fn direction_of(interest: Interest) -> usize {
    debug_assert!(interest == Interest::READABLE || interest == Interest::WRITABLE);
    usize::from(interest.is_writable())
}

/// The number of places visited, for tests that compare crowds.
#[cfg(test)]
pub(super) mod steps {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        STEPS.set(STEPS.get() + 1);
    }

    /// The steps of `f`.
    #[cfg(not(any(loom, shuttle)))]
    pub(in crate::slot) fn of(f: impl FnOnce()) -> usize {
        let before = STEPS.get();
        f();
        STEPS.get() - before
    }
}

#[cfg(not(test))]
mod steps {
    pub(super) fn count() {}
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const READABLE: Interest = Interest::READABLE;

    fn waker() -> Waker {
        Waker::noop().clone()
    }

    #[test]
    fn every_interest_has_a_queue_of_its_own() {
        let all: Vec<_> = (0..QUEUES).map(interest_of).collect();
        for (queue, interest) in all.iter().enumerate() {
            assert_eq!(queue_of(*interest), queue);
            assert!(!interest.open().is_empty());
        }
        assert!(all.contains(&Interest::ERROR) && all.contains(&(Interest::PRIORITY | READABLE)));
    }

    #[test]
    fn a_spot_leads_to_its_own_tenant_alone() {
        let mut crowd = Crowd::default();
        let old = crowd.add(READABLE, waker());
        assert!(crowd.remove(old).is_some() && crowd.remove(old).is_none());
        let new = crowd.add(Interest::WRITABLE, waker());
        assert_eq!(new.index, old.index);
        assert!(crowd.waker(old).is_none() && crowd.remove(old).is_none());
        assert!(crowd.waker(Spot { index: 9, generation: 0 }).is_none());
        assert!(crowd.waker(new).is_some());
        assert_eq!(crowd.len(), 1);
    }

    #[test]
    fn a_place_without_generations_is_not_given_out_again() {
        let mut crowd = Crowd::default();
        let first = crowd.add(READABLE, waker());
        crowd.places[0].generation = GENERATIONS - 1;
        let last = Spot { generation: GENERATIONS - 1, ..first };
        assert!(crowd.remove(last).is_some());
        let next = crowd.add(READABLE, waker());
        assert_ne!(next.index, first.index);
        assert!(crowd.waker(last).is_none());
    }

    /// Waiters come, go, and are taken in an order that is as good as random; a list says which must be in.
    #[test]
    fn a_crowd_is_what_a_list_would_be() {
        let interests = [READABLE, Interest::WRITABLE, READABLE | Interest::WRITABLE, Interest::ERROR];
        let (mut crowd, mut list) = (Crowd::default(), Vec::<(Spot, Interest)>::new());
        let (mut random, mut most) = (1u32, 0);
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let pick = (random >> 8) as usize;
            match random >> 29 {
                0..4 => {
                    let interest = interests[pick % 4];
                    list.push((crowd.add(interest, waker()), interest));
                }
                4..7 if !list.is_empty() => {
                    let (spot, _) = list.remove(pick % list.len());
                    assert!(crowd.remove(spot).is_some());
                }
                _ if random >> 20 & 7 == 0 => {
                    let seen = super::super::Word::new(interests[pick % 4].open()).seen();
                    let mut woken = Vec::new();
                    crowd.take(seen, &mut woken);
                    let before = list.len();
                    list.retain(|(_, interest)| !seen.ends(*interest));
                    assert_eq!(woken.len(), before - list.len());
                }
                _ => {}
            }
            assert_eq!(crowd.len(), list.len());
            most = most.max(list.len());
        }
        assert!(most > 50);
        for (spot, _) in list {
            assert!(crowd.remove(spot).is_some());
        }
        assert_eq!((crowd.len(), crowd.busy), (0, 0));
    }
}
