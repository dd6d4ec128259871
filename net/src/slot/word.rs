//! `Word`: the readiness of one fd in one atomic word.
//!
//! Called by `slot` alone. The low byte holds the flags of `Ready`; the rest is the tick, a count of what the kernel
//! has reported. Two events differ in their tick even when their flags are the same, and that is what makes `clear`
//! safe:
//!
//! ```text
//!   task                                driver
//!   seen = word.seen()      (tick 4)
//!   op → WouldBlock
//!                                       data arrives: word.set(READABLE)   (tick 5)
//!   word.clear(seen, ..)    refused: the edge came after `seen`, so the op is tried again
//! ```
//!
//! Had the edge come before `seen`, the op would have found the data. So an edge is lost in neither order.

use crate::primitives::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::ready::{Interest, Ready};

const FLAGS: usize = 0xff;
const ONE_TICK: usize = 0x100;

#[derive(Debug)]
pub(crate) struct Word(AtomicUsize);

/// The word at one moment: what `clear` compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(usize);

impl Seen {
    pub(crate) fn ready(self) -> Ready {
        Ready::from_bits((self.0 & FLAGS) as u8)
    }

    /// Returns `true` if a wait for `interest` is over. A shut-down reactor ends them all.
    pub(crate) fn ends(self, interest: Interest) -> bool {
        self.ready().intersects(interest.mask() | Ready::SHUTDOWN)
    }

    fn same_tick(self, other: Seen) -> bool {
        self.0 / ONE_TICK == other.0 / ONE_TICK
    }
}

impl Word {
    /// At tick 0, which is also what an op that ran before the registration has seen.
    pub(crate) fn new(ready: Ready) -> Word {
        Word(AtomicUsize::new(usize::from(ready.bits())))
    }

    /// As new, for another fd.
    pub(crate) fn reset(&self, ready: Ready) {
        // Relaxed: the table's lock, or the registration's cell, orders this before any other thread's access.
        self.0.store(usize::from(ready.bits()), Relaxed);
    }

    /// What an op has seen of an fd that is not registered yet.
    pub(crate) fn unregistered() -> Seen {
        Seen(0)
    }

    pub(crate) fn seen(&self) -> Seen {
        // Acquire: pairs with the Release in `set`, so that an op that follows comes after the event it answers.
        Seen(self.0.load(Acquire))
    }

    /// Records a report of the kernel: adds the flags, and advances the tick.
    pub(crate) fn set(&self, ready: Ready) {
        let bits = usize::from(ready.bits());
        let update = |word: usize| Some((word | bits).wrapping_add(ONE_TICK));
        let _ = self.0.fetch_update(AcqRel, Acquire, update);
    }

    /// An op that started from `seen` found the fd not `ready`: clears the flags, unless the kernel spoke since.
    pub(crate) fn clear(&self, seen: Seen, ready: Ready) {
        let bits = usize::from(ready.without(Ready::SHUTDOWN).bits());
        let update = |word: usize| Seen(word).same_tick(seen).then_some(word & !bits);
        let _ = self.0.fetch_update(AcqRel, Acquire, update);
    }

    /// As [`clear`](Self::clear), of what ends waits for `interest`, for which an op found the fd not ready. One that
    /// does not read knows nothing of the end of what can be read, which stays for those that do.
    pub(crate) fn clear_interest(&self, seen: Seen, interest: Interest) {
        let cleared = interest.mask();
        let update = |word: usize| {
            let found = Seen(word).ready() & cleared;
            let is_for_readers = !interest.is_readable() && found.is_read_closed();
            let left = if is_for_readers { Ready::READ_END } else { Ready::EMPTY };
            let bits = |ready: Ready| usize::from(ready.bits());
            Seen(word).same_tick(seen).then_some(word & !bits(cleared) | bits(left))
        };
        let _ = self.0.fetch_update(AcqRel, Acquire, update);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Every set of flags, every set to add or clear, with and without an event in between.
    #[test]
    fn set_and_clear_over_all_flags() {
        for start in 0..=u8::MAX {
            for bits in 0..=u8::MAX {
                let (start, bits) = (Ready::from_bits(start), Ready::from_bits(bits));

                let word = Word::new(start);
                word.set(bits);
                assert_eq!(word.seen().ready(), start | bits);

                let word = Word::new(start);
                word.clear(word.seen(), bits);
                assert_eq!(word.seen().ready(), start.without(bits) | start & Ready::SHUTDOWN);

                let word = Word::new(start);
                let seen = word.seen();
                word.set(Ready::EMPTY);
                word.clear(seen, bits);
                assert_eq!(word.seen().ready(), start, "an event in between keeps the flags");
            }
        }
    }

    #[test]
    fn an_op_that_does_not_read_leaves_the_end_to_those_that_do() {
        let word = Word::new(Ready::READABLE | Ready::READ_CLOSED);
        word.clear_interest(word.seen(), Interest::PRIORITY);
        assert!(!word.seen().ends(Interest::PRIORITY));
        word.clear(word.seen(), Interest::READABLE.open()); // a short read
        assert!(word.seen().ends(Interest::READABLE));
        assert_eq!(word.seen().ready().shown(), Ready::READ_CLOSED);
        word.clear_interest(word.seen(), Interest::READABLE);
        assert_eq!(word.seen().ready(), Ready::EMPTY);
    }

    #[test]
    fn clearing_does_not_move_the_tick() {
        let word = Word::new(Ready::READABLE | Ready::WRITABLE);
        let seen = word.seen();
        word.clear(seen, Ready::READABLE);
        word.clear(seen, Ready::WRITABLE);
        assert_eq!(word.seen().ready(), Ready::EMPTY);
    }

    #[test]
    fn the_tick_wraps_without_touching_the_flags() {
        let word = Word(AtomicUsize::new(usize::MAX & !FLAGS | usize::from(Ready::WRITABLE.bits())));
        let seen = word.seen();
        word.set(Ready::READABLE);
        assert_eq!(word.seen(), Seen(usize::from((Ready::READABLE | Ready::WRITABLE).bits())));
        word.clear(seen, Ready::ALL);
        assert!(word.seen().ends(Interest::READABLE));
    }

    #[test]
    fn shutdown_ends_every_wait_for_good() {
        let word = Word::new(Ready::EMPTY);
        word.set(Ready::SHUTDOWN);
        word.clear(word.seen(), Ready::from_bits(0xff));
        for interest in [Interest::READABLE, Interest::WRITABLE, Interest::PRIORITY, Interest::ERROR] {
            assert!(word.seen().ends(interest));
        }
    }
}
