//! A hashed timing wheel of two rings and an overflow: adding, moving and removing a timer costs the same however many are
//! pending, and no timer fires before its deadline, to the nanosecond.
//!
//! [`Timers`](crate::Timers) alone calls it, under its lock. The wheel takes the time as an argument and reads no
//! clock; it runs no user code: wakers are moved in and out, and cloned, woken and dropped by the caller.
//!
//! Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987. Times are nanoseconds since a base
//! that the caller chose.
//!
//! ```text
//!   near ring   1024 slots of one tick (65.5 µs)      the next 67 ms, seen from the cursor
//!   far ring    1024 slots of 1024 ticks (67 ms)      the next 68.7 s
//!   overflow    one list                              the rest, looked at once a round of the far ring at most
//! ```
//!
//! 1. `file` puts an entry where its deadline belongs, seen from the cursor, the tick up to which all is done.
//! 2. `expire` goes from event to event in the order of time (`step`): a far slot begins and is filed again, a round
//!    begins and the overflow is filed again, a near slot is searched for what is due (`sift`). So wakers come out in
//!    the order of their deadlines, and those with equal deadlines first in, first out. An entry that `reset` has moved
//!    keeps the order of deadlines, not the place among equals.
//! 3. Moving an entry later leaves it where it is (`reset`); the wheel files it again when it finds it there before its
//!    time.
//!
//! Rejected:
//! - Rounding deadlines to ticks: with the exact deadline in the entry, a slot whose time has come fires only those
//!   that are due, and the driver sleeps exactly until the next.
//! - One ring with rounds: a slot of a ring full of 30 s timeouts is rescanned every round, and its bit in the map says
//!   nothing.
//! - Waiting for each deadline exactly however close they lie: 200,000 a second cost 3.7 µs each, nearly all of it for
//!   sleeping and waking up; one wait for a crowd costs 0.3 to 1.0 µs each ([`Wheel::wait_until`]).
//! - A heap: O(log n) on a path where nearly every timer is removed before it fires.

mod next;
mod ring;
mod slab;
#[cfg(test)]
mod tests;
mod tick;

use std::mem;
use std::task::Waker;

use ring::{Ring, SLOTS};
use slab::{NIL, Place, Slab};
use tick::Tick;

pub(crate) use slab::Key;

/// A deadline that never comes; the entry can be moved and removed as any other.
pub(crate) const NEVER: u64 = u64::MAX;

/// Entries of `ready` that are kept allocated between two calls.
const READY_KEPT: usize = 1024;

/// Which end of a list an entry is put on.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

/// Timers by deadline.
pub(crate) struct Wheel {
    slab: Slab,
    near: Ring,
    far: Ring,
    /// For each occupied far slot a time not after its first deadline; exact unless an entry left or moved later.
    far_bounds: Box<[u64; SLOTS]>,
    overflow: u32,
    /// As `far_bounds`, for the overflow; `NEVER` when that is empty.
    overflow_bound: u64,
    /// Timers found due, in order.
    due: u32,
    /// Lent to `sift`; empty between calls.
    ready: Vec<(u64, u32)>,
    /// All that happened before this tick is done. Never goes back.
    cursor: Tick,
    /// The first deadline in the near ring, if `near_first_count` is not 0.
    near_first: u64,
    /// How many near entries have that deadline; 0: not known, or the near ring is empty.
    near_first_count: u32,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            slab: Slab::new(),
            near: Ring::new(),
            far: Ring::new(),
            far_bounds: Box::new([NEVER; SLOTS]),
            overflow: NIL,
            overflow_bound: NEVER,
            due: NIL,
            ready: Vec::new(),
            cursor: Tick(0),
            near_first: NEVER,
            near_first_count: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves an empty wheel to `now`, so that the next entry is filed by its distance from now and not from the time
    /// of the last `expire`.
    pub(crate) fn catch_up(&mut self, now: u64) {
        debug_assert!(self.is_empty());
        self.cursor = self.cursor.max(Tick::of(now));
    }

    /// Adds a timer; one whose deadline has passed fires at the next `expire`.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, waker: Waker) -> Key {
        let index = self.slab.add(deadline, waker);
        self.file(index, End::Back);
        self.slab.key(index)
    }

    /// Removes a timer; `None` if it has fired or was removed before.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<Waker> {
        let index = self.slab.find(key)?;
        self.unlink(index);
        self.slab.free(index)
    }

    /// Moves a timer to another deadline; `false` if it has fired or was removed.
    ///
    /// Moving later is a store. So is moving earlier, if the entry's slot does not begin after the new deadline.
    pub(crate) fn reset(&mut self, key: Key, deadline: u64) -> bool {
        let Some(index) = self.slab.find(key) else {
            return false;
        };
        let tick = Tick::of(deadline).max(self.cursor);
        match self.slab.place(index) {
            Place::Near(slot) if tick >= self.near_tick(slot) => {
                self.forget_near(self.slab.deadline(index));
                self.note_near(deadline);
            }
            Place::Far(slot) if tick >= self.far_tick(slot) => {
                let bound = &mut self.far_bounds[usize::from(slot)];
                *bound = deadline.min(*bound);
            }
            Place::Overflow if tick.round() > self.cursor.round() => {
                self.overflow_bound = self.overflow_bound.min(deadline);
            }
            _ => {
                self.unlink(index);
                self.slab.set_deadline(index, deadline);
                self.file(index, End::Back);
                return true;
            }
        }
        self.slab.set_deadline(index, deadline);
        true
    }

    /// The waker of a timer, to look at or to replace, and the deadline; `None` if the timer has fired or was removed.
    pub(crate) fn pending_mut(&mut self, key: Key) -> Option<(&mut Waker, u64)> {
        let index = self.slab.find(key)?;
        let deadline = self.slab.deadline(index);
        Some((self.slab.waker_mut(index)?, deadline))
    }

    /// Appends the wakers of at most `limit` timers due at `now` to `out`, in the order of their deadlines.
    ///
    /// Returns whether the limit ended it, so that there may be more.
    pub(crate) fn expire(&mut self, now: u64, limit: usize, out: &mut Vec<Waker>) -> bool {
        let mut left = limit;
        while self.find_due(now) {
            if left == 0 {
                return true;
            }
            left -= 1;
            let index = self.due;
            self.slab.unlink(&mut self.due, index);
            out.extend(self.slab.free(index));
        }
        false
    }

    /// Goes forward in time, at most to `now`, until something is due; says whether something is.
    fn find_due(&mut self, now: u64) -> bool {
        // NEVER is not due even at the end of time.
        let now = now.min(NEVER - 1);
        while self.due == NIL {
            if !self.step(now) {
                self.cursor = self.cursor.max(Tick::of(now));
                return false;
            }
        }
        true
    }

    /// Removes all timers, in no order.
    pub(crate) fn drain(&mut self, out: &mut Vec<Waker>) {
        self.slab.drain(out);
        self.near.clear();
        self.far.clear();
        self.overflow = NIL;
        self.overflow_bound = NEVER;
        self.due = NIL;
        self.near_first_count = 0;
    }

    /// Handles the next event that is not after `now`; `false` if there is none.
    fn step(&mut self, now: u64) -> bool {
        // A timer that was late when it was added is filed at the cursor, which may be ahead of a clock that was
        // paused.
        let end = Tick::of(now).max(self.cursor);
        let near = self.next_near().unwrap_or(Tick::MAX);
        let far = self.next_far().unwrap_or(Tick::MAX);
        let round = match self.overflow {
            NIL => Tick::MAX,
            _ => Tick::start_of_round(Tick::of(self.overflow_bound).round()),
        };
        let next = near.min(far).min(round);
        if next > end {
            return false;
        }
        debug_assert!(next >= self.cursor);
        self.cursor = next;
        // If several begin at one tick, the near slot is last, as the others feed it. The overflow comes after the far
        // slot, as its entries are older and go in front.
        if next == far {
            self.file_far(next.far_slot());
        } else if next == round {
            self.overflow_bound = NEVER;
            let list = mem::replace(&mut self.overflow, NIL);
            self.file_all(list);
        } else if self.near_first_count > 0 && self.near_first > now {
            return false;
        } else {
            self.sift(next, Some(now));
            // Entries that stay in a searched slot are due in the rest of the tick of `now`.
            return self.due != NIL || self.next_near() != Some(next);
        }
        true
    }

    /// Puts an entry that is on no list where its deadline belongs.
    #[inline]
    fn file(&mut self, index: u32, end: End) {
        let deadline = self.slab.deadline(index);
        let tick = Tick::of(deadline).max(self.cursor);
        let (list, place) = if tick.0 - self.cursor.0 < SLOTS as u64 {
            let slot = tick.near_slot();
            self.note_near(deadline);
            self.near.occupy(slot);
            (self.near.list(slot), Place::Near(slot))
        } else if tick.span() - self.cursor.span() < SLOTS as u64 {
            let slot = tick.far_slot();
            self.far.occupy(slot);
            let list = self.far.list(slot);
            let bound = &mut self.far_bounds[usize::from(slot)];
            *bound = if *list == NIL { deadline } else { deadline.min(*bound) };
            (list, Place::Far(slot))
        } else {
            self.overflow_bound = self.overflow_bound.min(deadline);
            (&mut self.overflow, Place::Overflow)
        };
        match end {
            End::Front => self.slab.push_front(list, index, place),
            End::Back => self.slab.push_back(list, index, place),
        }
    }

    /// Files the entries of an occupied far slot again.
    fn file_far(&mut self, slot: u16) {
        let list = mem::replace(self.far.list(slot), NIL);
        self.far.vacate(slot);
        self.file_all(list);
    }

    /// Files the entries of a detached list again.
    ///
    /// Each entry is nearer now than when it was filed, or was moved. Entries that were added to the nearer list
    /// meanwhile are younger, so these go in front of them, the last one first.
    fn file_all(&mut self, first: u32) {
        let mut index = self.slab.previous(first);
        loop {
            let previous = self.slab.previous(index);
            self.file(index, End::Front);
            if index == first {
                return;
            }
            index = previous;
        }
    }

    /// Searches the near slot of `at`, the first occupied one: entries due at `now` go to the due list, entries that
    /// were moved later to their new place. Notes the first deadline of the rest.
    fn sift(&mut self, at: Tick, now: Option<u64>) {
        let slot = at.near_slot();
        let first = *self.near.list(slot);
        let last = self.slab.previous(first);
        let (mut earliest, mut count) = (NEVER, 0);
        self.near_first_count = 0;
        let mut index = first;
        loop {
            let (next, deadline) = (self.slab.next(index), self.slab.deadline(index));
            if Tick::of(deadline) > at {
                // Even if it is due: others may come before it.
                self.unlink(index);
                self.file(index, End::Back);
            } else if now.is_some_and(|now| deadline <= now) {
                self.unlink(index);
                self.ready.push((deadline, index));
            } else if deadline < earliest || count == 0 {
                (earliest, count) = (deadline, 1);
            } else if deadline == earliest {
                count += 1;
            }
            if index == last {
                break;
            }
            index = next;
        }
        if count > 0 {
            (self.near_first, self.near_first_count) = (earliest, count);
        }
        self.queue_ready();
    }

    /// Moves what `sift` found to the due list, in the order of deadlines; equals stay in theirs.
    fn queue_ready(&mut self) {
        if !self.ready.is_sorted_by_key(|&(deadline, _)| deadline) {
            self.ready.sort_by_key(|&(deadline, _)| deadline);
        }
        for (_, index) in self.ready.drain(..) {
            self.slab.push_back(&mut self.due, index, Place::Due);
        }
        self.ready.shrink_to(READY_KEPT);
    }

    /// Takes an entry off the list it is on.
    #[inline]
    fn unlink(&mut self, index: u32) {
        match self.slab.place(index) {
            Place::Near(slot) => {
                if self.slab.unlink(self.near.list(slot), index) {
                    self.near.vacate(slot);
                }
                self.forget_near(self.slab.deadline(index));
            }
            Place::Far(slot) => {
                if self.slab.unlink(self.far.list(slot), index) {
                    self.far.vacate(slot);
                }
            }
            Place::Overflow => {
                if self.slab.unlink(&mut self.overflow, index) {
                    self.overflow_bound = NEVER;
                }
            }
            Place::Due => {
                self.slab.unlink(&mut self.due, index);
            }
            Place::Free => unreachable!("a free entry is on no list"),
        }
    }

    /// A deadline comes into the near ring; to be called before the list is changed.
    fn note_near(&mut self, deadline: u64) {
        let is_known = self.near_first_count > 0;
        if self.near.is_empty() || (is_known && deadline < self.near_first) {
            (self.near_first, self.near_first_count) = (deadline, 1);
        } else if is_known && deadline == self.near_first {
            self.near_first_count += 1;
        }
    }

    /// A deadline leaves the near ring.
    fn forget_near(&mut self, deadline: u64) {
        if self.near_first_count > 0 && deadline == self.near_first {
            self.near_first_count -= 1;
        }
    }

    /// The tick of an occupied near slot.
    fn near_tick(&self, slot: u16) -> Tick {
        Tick(self.cursor.0 + u64::from(slot.wrapping_sub(self.cursor.near_slot()) % SLOTS as u16))
    }

    /// The first tick of an occupied far slot.
    fn far_tick(&self, slot: u16) -> Tick {
        let ahead = slot.wrapping_sub(self.cursor.far_slot()) % SLOTS as u16;
        Tick::start_of_span(self.cursor.span() + u64::from(ahead))
    }
}
