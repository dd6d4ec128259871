//! What `sim` has that is asked for also where there are no simulations.

use crate::others::Place;

/// Whether a simulation runs on this thread: without the feature `sim` there is none.
#[inline]
pub const fn is_simulated() -> bool {
    false
}

/// Where a simulation writes what its tasks wait for.
pub(crate) fn with_places<T>(_: impl FnOnce(&[Place]) -> T) -> T {
    unreachable!("there are no simulations")
}
