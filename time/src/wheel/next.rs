//! The next deadline as far as the wheel knows it, and the time until which a driver waits for it.
//!
//! `Timers` asks after each turn and before each park.

use mini_context::rules::{CHECK_TIME, CROWD_SLOTS, FEW_TIMERS, LEAST_CROWD, WAKE_COST};

use super::slab::NIL;
use super::tick::{LEVELS, Tick};
use super::{NEVER, Wheel};

impl Wheel {
    /// A time before which nothing fires; `None` if nothing ever will.
    ///
    /// It is exactly the first deadline if that is in the near ring and nothing of the upper rings may come before it.
    /// Otherwise it may be too early, if timers were removed or moved, or if there are more than [`FEW_TIMERS`], as
    /// slots are then refiled ahead of time: an `expire` at that time then fires nothing, and the next answer is later.
    pub(crate) fn next_deadline(&mut self) -> Option<u64> {
        if self.due != NIL {
            return Some(self.slab.deadline(self.due));
        }
        let near = self.near_deadline();
        let next = near.min(self.upper_bound(near));
        (next != NEVER).then_some(next)
    }

    /// The first deadline; `None` if none ever comes.
    ///
    /// It costs more than [`next_deadline`](Wheel::next_deadline) where the first upper slot comes before all near
    /// ones: it looks at each entry there.
    pub(crate) fn first_deadline(&mut self) -> Option<u64> {
        if self.due != NIL {
            return Some(self.slab.deadline(self.due));
        }
        loop {
            let near = self.near_deadline();
            let upper = self.occupied().map(|(bound, level, start)| (bound, level, start.slot(level))).min();
            let Some((bound, level, slot)) = upper.filter(|&(bound, ..)| bound < near) else {
                return (near != NEVER).then_some(near);
            };
            if self.has_deadline(level, slot, bound) {
                return Some(bound);
            }
            // Entries that were moved later leave the slot, and the others give it an exact bound.
            self.refile(level, slot, &mut { usize::MAX });
        }
    }

    /// Returns `true` if an entry of an occupied upper slot has that deadline.
    fn has_deadline(&mut self, level: u8, slot: u16, deadline: u64) -> bool {
        let first = *self.upper(level).ring.list(slot);
        let (mut index, last) = (first, self.slab.previous(first));
        while self.slab.deadline(index) != deadline {
            if index == last {
                return false;
            }
            index = self.slab.next(index);
        }
        true
    }

    /// A time before which nothing is due; `NEVER` if nothing ever will be. It costs less than
    /// [`next_deadline`](Wheel::next_deadline), and may be a tick earlier.
    pub(crate) fn bound(&mut self) -> u64 {
        match self.next_near() {
            // A timer that was late when it was added lies behind its slot.
            Some(tick) if self.due == NIL && self.near_first_count == 0 && tick > self.cursor => {
                self.upper_bound(tick.start()).min(tick.start())
            }
            _ => self.next_deadline().unwrap_or(NEVER),
        }
    }

    /// Until when to wait if the next deadline is `first`: not before `first`, and at most [`CHECK_TIME`] after it.
    ///
    /// If deadlines follow each other by less than [`WAKE_COST`], one wait to the last of them serves all: a wake for
    /// each would take longer than the distance between them. Equal deadlines are no crowd, as one wait serves them
    /// anyway. Nor are fewer than [`LEAST_CROWD`] deadlines: most of them are due when the wait for the first has
    /// ended. A tick counts for half as many at most, so the deadlines of a single tick are never a crowd. If a tick
    /// has more, the distances within it are not looked at.
    ///
    /// Rejected: going by the number of deadlines in a time alone (thirty that are nearly equal, ten thousand times a
    /// second, were waited for as if they were evenly apart: 0.7 ms late, and no wait was saved).
    pub(crate) fn wait_until(&self, first: u64) -> u64 {
        let begin = Tick::of(first);
        if self.next_near() != Some(begin) {
            return first;
        }
        let (mut until, mut count) = (first, 0);
        for ahead in 0..CROWD_SLOTS {
            if let Some((here, from, to)) = self.later_in(Tick(begin.0 + ahead), first) {
                if from > until.saturating_add(WAKE_COST) {
                    break;
                }
                (until, count) = (to, count + here);
            }
        }
        if count < LEAST_CROWD { first } else { until.min(first.saturating_add(CHECK_TIME)) }
    }

    /// How many of the timers in the near slot of `tick` have a deadline in that tick and after `first`, and the first
    /// and the last of these. Where there are many, only the first few of the list and its last one are looked at.
    fn later_in(&self, tick: Tick, first: u64) -> Option<(usize, u64, u64)> {
        const MOST: usize = LEAST_CROWD.div_ceil(2);
        let list = self.near.first(tick.slot(0));
        let last = self.slab.iter(list).nth(MOST).map(|_| self.slab.previous(list));
        let deadlines = self.slab.iter(list).take(MOST).chain(last).map(|index| self.slab.deadline(index));
        let later = deadlines.filter(|&deadline| deadline > first && Tick::of(deadline) == tick);
        let found = later.fold((0, NEVER, 0), |(count, from, to), at| (count + 1, at.min(from), at.max(to)));
        (found.0 > 0).then_some((found.0.min(MOST), found.1, found.2))
    }

    /// The first deadline of the near ring, `NEVER` if that is empty.
    fn near_deadline(&mut self) -> u64 {
        while self.near_first_count == 0 {
            let Some(at) = self.next_near() else {
                return NEVER;
            };
            self.sift(at, None);
        }
        self.near_first
    }

    /// As `next_deadline`, for the upper rings, or `NEVER` if that is not before `near`. More than [`FEW_TIMERS`] are
    /// refiled ahead of time: each slot as soon as that is possible.
    fn upper_bound(&self, near: u64) -> u64 {
        if Tick::of(near).count(1) <= self.refiled {
            return NEVER;
        }
        let is_ahead = self.len() > FEW_TIMERS;
        let mut first = NEVER;
        for (bound, level, start) in self.occupied() {
            first = first.min(bound);
            if is_ahead && bound != NEVER {
                first = first.min(start.ahead(level).start());
            }
        }
        first
    }

    /// The first tick of the first occupied near slot.
    #[inline]
    pub(super) fn next_near(&self) -> Option<Tick> {
        Some(self.cursor.after(0, self.near.distance_from(self.cursor.slot(0))?))
    }

    /// Bound, level and first tick of the first occupied slot, for each upper ring that has an entry.
    #[inline]
    pub(super) fn occupied(&self) -> impl DoubleEndedIterator<Item = (u64, u8, Tick)> {
        self.upper.iter().zip(1..=LEVELS as u8).filter_map(|(upper, level)| {
            let upper = upper.as_ref()?;
            let start = self.cursor.after(level, upper.ring.distance_from(self.cursor.slot(level))?);
            Some((upper.bounds[usize::from(start.slot(level))], level, start))
        })
    }
}
