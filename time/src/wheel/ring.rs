//! One ring of 2048 slots: a list per slot, and a bitmap that finds the next occupied slot in a few instructions.
//!
//! The wheel alone calls it, and keeps list and bit together.
//!
//! Rejected:
//! - Looking at slot after slot: a clock that jumps by hours would visit them all, and an idle ring costs as much as a
//!   full one.

use super::slab::NIL;

/// Slots of a ring; a power of two.
pub(crate) const SLOTS: usize = 2048;

const WORDS: usize = SLOTS / 64;

/// Lists of entries, one per slot.
pub(crate) struct Ring {
    lists: [u32; SLOTS],
    /// One bit per slot that has an entry.
    occupied: [u64; WORDS],
    /// One bit per word of `occupied` that is not zero.
    summary: u64,
}

impl Ring {
    pub(crate) fn new() -> Ring {
        Ring { lists: [NIL; SLOTS], occupied: [0; WORDS], summary: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.summary == 0
    }

    /// The list of a slot.
    pub(crate) fn first(&self, slot: u16) -> u32 {
        self.lists[usize::from(slot)]
    }

    /// The list of a slot, to be changed; [`Ring::occupy`] or [`Ring::vacate`] has to follow.
    #[inline]
    pub(crate) fn list(&mut self, slot: u16) -> &mut u32 {
        &mut self.lists[usize::from(slot)]
    }

    /// The list of `slot` has an entry.
    #[inline]
    pub(crate) fn occupy(&mut self, slot: u16) {
        let word = usize::from(slot) / 64;
        self.occupied[word] |= 1 << (slot % 64);
        self.summary |= 1 << word;
    }

    /// The list of `slot` is empty.
    #[inline]
    pub(crate) fn vacate(&mut self, slot: u16) {
        let word = usize::from(slot) / 64;
        self.occupied[word] &= !(1 << (slot % 64));
        if self.occupied[word] == 0 {
            self.summary &= !(1 << word);
        }
    }

    /// The distance from `slot` to the first occupied slot, going round once; `0` is `slot` itself.
    pub(crate) fn distance_from(&self, slot: u16) -> Option<u16> {
        let (word, bit) = (usize::from(slot) / 64, slot % 64);
        let found = match self.occupied[word] & (u64::MAX << bit) {
            0 => self.first_after(word)?,
            bits => word as u16 * 64 + bits.trailing_zeros() as u16,
        };
        Some(found.wrapping_sub(slot) % SLOTS as u16)
    }

    /// Empties all slots; the entries are the caller's.
    pub(crate) fn clear(&mut self) {
        self.lists.fill(NIL);
        self.occupied = [0; WORDS];
        self.summary = 0;
    }

    /// The first occupied slot in the words after `word`, going round, `word` itself last.
    fn first_after(&self, word: usize) -> Option<u16> {
        let after = self.summary & (u64::MAX << (word + 1));
        let candidates = if after == 0 { self.summary } else { after };
        if candidates == 0 {
            return None;
        }
        let word = candidates.trailing_zeros() as u16;
        Some(word * 64 + self.occupied[usize::from(word)].trailing_zeros() as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupy(ring: &mut Ring, slot: u16) {
        *ring.list(slot) = 0;
        ring.occupy(slot);
    }

    #[test]
    fn distance_goes_round_from_every_slot() {
        for occupied in [0, 1, 63, 64, 511, 1984, 2047] {
            let mut ring = Ring::new();
            occupy(&mut ring, occupied);
            for from in 0..SLOTS as u16 {
                let expected = (occupied + SLOTS as u16 - from) % SLOTS as u16;
                assert_eq!(ring.distance_from(from), Some(expected), "{from} to {occupied}");
            }
        }
    }

    #[test]
    fn distance_finds_the_nearest_of_several() {
        let mut ring = Ring::new();
        for slot in [3, 70, 2024] {
            occupy(&mut ring, slot);
        }
        assert_eq!(ring.distance_from(0), Some(3));
        assert_eq!(ring.distance_from(4), Some(66));
        assert_eq!(ring.distance_from(71), Some(1953));
        assert_eq!(ring.distance_from(2025), Some(26));
    }

    #[test]
    fn distance_is_none_once_the_last_slot_is_emptied() {
        let mut ring = Ring::new();
        occupy(&mut ring, 640);
        *ring.list(640) = NIL;
        ring.vacate(640);
        assert!(ring.is_empty());
        assert_eq!(ring.distance_from(640), None);
    }
}
