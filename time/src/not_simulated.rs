//! Clocks without the feature `sim`: none belongs to a simulation.

use crate::instant::Instant;

#[inline]
pub(crate) const fn is_simulated() -> bool {
    false
}

/// All tasks see the same time.
#[inline]
pub(crate) const fn shown(now: Instant) -> Instant {
    now
}

/// A timer goes off when it is set to.
#[inline]
pub(crate) fn meant(deadline: Instant, _: impl FnOnce() -> Instant) -> Instant {
    deadline
}
