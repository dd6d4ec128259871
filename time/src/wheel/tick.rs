//! Time as the wheel's rings divide it: ticks, and for each level above slots of 1024 of those below.
//!
//! The wheel alone calls it. No sum here overflows: 2^64 ns are 2^48 ticks.

use mini_context::rules::SLOT_BITS;

use super::ring::SLOTS;

/// The upper rings: slots of level 4 are so wide, 2.3 years, that 256 of them hold all times.
pub(crate) const LEVELS: usize = 4;

/// A slot is as wide as 2^10 slots of the ring below, which has twice as many.
const LEVEL_BITS: u32 = (SLOTS / 2).ilog2();

const _: () = assert!((u64::MAX >> SLOT_BITS) >> (LEVELS as u32 * LEVEL_BITS) < SLOTS as u64);

/// A time since the base in steps of 2^[`SLOT_BITS`] ns, 65.5 µs, the width of a near slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(pub(crate) u64);

impl Tick {
    pub(crate) const MAX: Tick = Tick(u64::MAX);

    pub(crate) fn of(nanos: u64) -> Tick {
        Tick(nanos >> SLOT_BITS)
    }

    /// Its first nanosecond.
    pub(crate) fn start(self) -> u64 {
        self.0 << SLOT_BITS
    }

    /// The slots of a level since the base.
    #[inline]
    pub(crate) fn count(self, level: u8) -> u64 {
        self.0 >> (u32::from(level) * LEVEL_BITS)
    }

    /// The slot of a ring that holds this tick.
    #[inline]
    pub(crate) fn slot(self, level: u8) -> u16 {
        (self.count(level) % SLOTS as u64) as u16
    }

    /// The first level, from `lowest` on, whose ring reaches this tick, seen from `cursor`, which is not after it.
    #[inline]
    pub(crate) fn level_from(self, cursor: Tick, lowest: u8) -> u8 {
        let reaches = |&level: &u8| self.count(level) - cursor.count(level) < SLOTS as u64;
        (lowest..LEVELS as u8).find(reaches).unwrap_or(LEVELS as u8)
    }

    /// The first tick of a slot of a ring, the next time that it comes from here on.
    pub(crate) fn next_in(self, level: u8, slot: u16) -> Tick {
        self.after(level, slot.wrapping_sub(self.slot(level)) % SLOTS as u16)
    }

    /// The first tick of the slot that is `distance` slots from the one of this tick.
    pub(crate) fn after(self, level: u8, distance: u16) -> Tick {
        Tick((self.count(level) + u64::from(distance)) << (u32::from(level) * LEVEL_BITS))
    }

    /// From here on the ring below reaches over the whole slot that begins at this tick.
    pub(crate) fn ahead(self, level: u8) -> Tick {
        Tick(self.0.saturating_sub(1 << (u32::from(level) * LEVEL_BITS)))
    }
}
