//! A hierarchical timing wheel: adding, moving and removing a timer costs the same however many are pending, and no
//! timer fires before its deadline, to the nanosecond.
//!
//! [`Timers`](crate::Timers) alone calls it, under its lock. The wheel takes the time as an argument and reads no
//! clock; it runs no user code: wakers are moved in and out, and cloned, woken and dropped by the caller.
//!
//! Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987. Times are nanoseconds since a base
//! that the caller chose.
//!
//! ```text
//!   near ring     2048 slots of one tick (65.5 µs)    the next 134 ms, seen from the cursor
//!   upper ring 1  2048 slots of 1024 ticks (67 ms)    the next 137 s
//!   upper ring 2  2048 slots of 1024 of those (69 s)  the next 39 hours
//!   3, 4          and so on                           4.5 years, all that can be counted
//! ```
//!
//! 1. `file` puts an entry into the lowest ring that reaches its deadline, seen from the cursor, the tick up to which
//!    all is done.
//! 2. `step` finds the next event: a near slot is searched for what is due (`sift`), or an upper slot is refiled, which
//!    moves its entries to lower rings. So wakers come out in the order of their deadlines, and those with equal
//!    deadlines first in, first out. An entry that `reset` has moved keeps the order of deadlines, not the place among
//!    equals.
//! 3. Moving an entry later leaves it where it is (`reset`); the wheel files it again when it finds it there before its
//!    time.
//!
//! A ring reaches over two slots of the ring above it. So an upper slot can be refiled while time is still in the slot
//! before it, and the entries of a full one are refiled a few at a time ([`Wheel::expire`]) without making a timer
//! late. A wheel of few timers does not wake the driver for that ([`Wheel::bound`]).
//!
//! Rejected:
//! - Rounding deadlines to ticks: with the exact deadline in the entry, a slot whose time has come fires only the
//!   entries that are due, and the driver sleeps exactly until the next.
//! - One ring with rounds: a slot of a ring full of 30 s timeouts is rescanned every round, and its bit in the map has
//!   no meaning.
//! - Waiting for each deadline exactly however close they lie: 200,000 a second cost 3.7 µs each, nearly all of it for
//!   sleeping and waking up; one wait for a crowd costs 0.3 to 1.0 µs each ([`Wheel::wait_until`]).
//! - A list for all beyond the second ring, filed again once a round: a million of them stopped all others for 11 ms.
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
use slab::{End, ListId, NIL, Slab};
use tick::{LEVELS, Tick};

pub(crate) use slab::Key;

/// A deadline that never comes; the entry can be moved and removed as any other.
pub(crate) const NEVER: u64 = u64::MAX;

/// Entries of `ready` that are kept allocated between two calls.
const READY_KEPT: usize = 1024;

const MADE: &str = "an entry was filed there";

/// Timers by deadline.
pub(crate) struct Wheel {
    slab: Slab,
    near: Box<Ring>,
    /// The rings above, the lowest first; each is made when its first entry comes.
    upper: [Option<Box<Upper>>; LEVELS],
    /// Timers found due, in order.
    due: u32,
    /// Lent to `sift`; empty between calls.
    ready: Vec<(u64, u32)>,
    /// All that happened before this tick is done. Never goes back.
    cursor: Tick,
    /// All that the rings can reach from this slot of the first upper ring on has been refiled.
    refiled: u64,
    /// The first deadline in the near ring, if `near_first_count` is not 0.
    near_first: u64,
    /// How many near entries have that deadline; 0: not known, or the near ring is empty.
    near_first_count: u32,
}

/// A ring whose slots are refiled before they are due.
struct Upper {
    ring: Ring,
    /// For each occupied slot a time not after its first deadline; exact unless an entry left or moved later.
    bounds: Box<[u64; SLOTS]>,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            slab: Slab::new(),
            near: Box::new(Ring::new()),
            upper: [const { None }; LEVELS],
            due: NIL,
            ready: Vec::new(),
            cursor: Tick(0),
            refiled: 0,
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

    /// Nobody has added a timer for a while.
    pub(crate) fn give_back(&mut self) {
        self.slab.give_back();
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
        self.file(index, 0, End::Back);
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
            ListId::Near(slot) if tick >= self.cursor.next_in(0, slot) => {
                self.forget_near(self.slab.deadline(index));
                self.note_near(deadline);
            }
            ListId::Upper(level, slot) if tick >= self.cursor.next_in(level, slot) => {
                let bound = &mut self.upper(level).bounds[usize::from(slot)];
                *bound = deadline.min(*bound);
            }
            _ => {
                self.unlink(index);
                self.slab.set_deadline(index, deadline);
                self.file_again(index, 0, End::Back);
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

    /// Appends the wakers of the timers due at `now` to `out`, in the order of their deadlines; `limit` timers are
    /// handed out or refiled at most.
    ///
    /// Returns whether the limit ended it, so that there may be more.
    pub(crate) fn expire(&mut self, now: u64, limit: usize, out: &mut Vec<Waker>) -> bool {
        let mut left = limit;
        while self.find_due(now, &mut left) {
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

    /// Goes forward in time, at most to `now`, until something is due or `left`, the number of entries that may be
    /// refiled, is used up; `false` if nothing is left to do.
    fn find_due(&mut self, now: u64, left: &mut usize) -> bool {
        // NEVER is not due even at the end of time.
        let now = now.min(NEVER - 1);
        while self.due == NIL && *left > 0 {
            if !self.step(now, left) {
                return false;
            }
        }
        true
    }

    /// Removes all timers, in no order.
    pub(crate) fn drain(&mut self, out: &mut Vec<Waker>) {
        self.slab.drain(out);
        self.near.clear();
        self.upper = [const { None }; LEVELS];
        self.due = NIL;
        self.near_first_count = 0;
    }

    /// Handles the next event that is not after `now`; `false` if there is none, and nothing to refile ahead of time.
    fn step(&mut self, now: u64, left: &mut usize) -> bool {
        // A timer that was late when it was added is filed at the cursor, which may be ahead of a clock that was
        // paused.
        let end = Tick::of(now).max(self.cursor);
        let near = self.next_near().unwrap_or(Tick::MAX);
        // The upper slot that begins first, and the one to refile ahead of time. If there are several, the highest
        // counts: its entries are older than those of the slots it feeds, and go in front of them.
        let (mut first, mut ahead) = (None, None);
        if end.count(1) > self.refiled {
            for (_, level, start) in self.occupied() {
                first = first.filter(|&(_, before)| before < start).or(Some((level, start)));
                ahead = Some((level, start)).filter(|_| start.ahead(level) <= end).or(ahead);
            }
        }
        // A near slot comes last, as the others feed it.
        let late = first.filter(|&(_, start)| start <= end.min(near));
        if late.is_none() && near <= end {
            self.cursor = near;
            if self.near_first_count == 0 || self.near_first <= now {
                self.sift(near, Some(now));
                // Entries that stay in a searched slot are due in the rest of the tick of `now`.
                if self.due != NIL || self.next_near() != Some(near) {
                    return true;
                }
            }
        }
        self.cursor = late.map_or(end, |(_, start)| start);
        let refile = late.or(ahead);
        match refile {
            Some((level, start)) => self.refile(level, start.slot(level), left),
            None => self.refiled = end.count(1),
        }
        refile.is_some()
    }

    /// Puts an entry that is on no list into the first ring, from level `lowest` on, that reaches its deadline.
    ///
    /// Inlined always: `insert` knows the deadline, and that level and end are the lowest and the back.
    #[inline(always)]
    fn file(&mut self, index: u32, lowest: u8, end: End) {
        let deadline = self.slab.deadline(index);
        let tick = Tick::of(deadline).max(self.cursor);
        match tick.level_from(self.cursor, lowest) {
            0 => {
                let slot = tick.slot(0);
                self.note_near(deadline);
                self.near.occupy(slot);
                self.slab.push(self.near.list(slot), index, ListId::Near(slot), end);
            }
            1 => self.file_in(index, tick, 1, end),
            level => self.file_in(index, tick, level, end),
        }
    }

    /// Puts an entry into an upper ring. Called with a constant for the first, which holds most timeouts.
    #[inline(always)]
    fn file_in(&mut self, index: u32, tick: Tick, level: u8, end: End) {
        let deadline = self.slab.deadline(index);
        let slot = tick.slot(level);
        let upper = self.upper[usize::from(level) - 1].get_or_insert_with(Upper::new);
        upper.ring.occupy(slot);
        let list = upper.ring.list(slot);
        let bound = &mut upper.bounds[usize::from(slot)];
        *bound = if *list == NIL { deadline } else { deadline.min(*bound) };
        self.slab.push(list, index, ListId::Upper(level, slot), end);
    }

    /// As `file`, for an entry that was in the wheel.
    fn file_again(&mut self, index: u32, lowest: u8, end: End) {
        self.file(index, lowest, end);
    }

    /// Files the entries of an occupied upper slot again, `left` of them at most.
    ///
    /// They go to the next lower ring. Entries that are already there are younger, so these go in front of them, the
    /// last one first. In a ring further down they might come before older ones that are still to follow.
    fn refile(&mut self, level: u8, slot: u16, left: &mut usize) {
        let ring = &mut self.upper(level).ring;
        let first = mem::replace(ring.list(slot), NIL);
        ring.vacate(slot);
        let mut index = self.slab.previous(first);
        while *left > 0 {
            *left -= 1;
            let previous = self.slab.previous(index);
            match level {
                1 => self.file(index, 0, End::Front),
                _ => self.file_again(index, level - 1, End::Front),
            }
            if index == first {
                return;
            }
            index = previous;
        }
        self.slab.close(first, index);
        let ring = &mut self.upper(level).ring;
        *ring.list(slot) = first;
        ring.occupy(slot);
    }

    /// Searches the near slot of `at`, the first occupied one: entries due at `now` go to the due list, entries that
    /// were moved later to their new place. Notes the first deadline of the rest.
    fn sift(&mut self, at: Tick, now: Option<u64>) {
        let slot = at.slot(0);
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
                self.file_again(index, 0, End::Back);
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
            self.slab.push(&mut self.due, index, ListId::Due, End::Back);
        }
        self.ready.shrink_to(READY_KEPT);
    }

    /// Takes an entry off the list it is on.
    #[inline]
    fn unlink(&mut self, index: u32) {
        match self.slab.place(index) {
            ListId::Near(slot) => {
                if self.slab.unlink(self.near.list(slot), index) {
                    self.near.vacate(slot);
                }
                self.forget_near(self.slab.deadline(index));
            }
            ListId::Upper(level, slot) => {
                let ring = &mut self.upper[usize::from(level) - 1].as_mut().expect(MADE).ring;
                if self.slab.unlink(ring.list(slot), index) {
                    ring.vacate(slot);
                }
            }
            ListId::Due => {
                self.slab.unlink(&mut self.due, index);
            }
            ListId::Free => unreachable!("a free entry is on no list"),
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

    /// An upper ring that has had an entry.
    fn upper(&mut self, level: u8) -> &mut Upper {
        self.upper[usize::from(level) - 1].as_mut().expect(MADE)
    }
}

impl Upper {
    #[cold]
    fn new() -> Box<Upper> {
        // By a vector, as the stack of the thread may be small.
        let bounds = vec![NEVER; SLOTS].try_into().expect("it has that length");
        Box::new(Upper { ring: Ring::new(), bounds })
    }
}
