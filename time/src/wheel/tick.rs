//! Time as the wheel's rings divide it: ticks, spans of 1024 ticks, rounds of 1024 spans.
//!
//! The wheel alone calls it. No sum here overflows: 2^64 ns are 2^48 ticks.

use mini_context::rules::SLOT_BITS;

use super::ring::SLOTS;

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

    /// The far slots since the base.
    pub(crate) fn span(self) -> u64 {
        self.0 / SLOTS as u64
    }

    /// The rounds of the far ring since the base.
    pub(crate) fn round(self) -> u64 {
        self.span() / SLOTS as u64
    }

    pub(crate) fn start_of_span(span: u64) -> Tick {
        Tick(span * SLOTS as u64)
    }

    pub(crate) fn start_of_round(round: u64) -> Tick {
        Tick::start_of_span(round * SLOTS as u64)
    }

    pub(crate) fn near_slot(self) -> u16 {
        slot_of(self.0)
    }

    pub(crate) fn far_slot(self) -> u16 {
        slot_of(self.span())
    }
}

fn slot_of(count: u64) -> u16 {
    (count % SLOTS as u64) as u16
}
