//! The functions of `sim` that are needed even where there are no simulations.

use crate::others::TableEntry;

/// Returns `true` if a simulation runs on this thread: never without the feature `sim`.
#[inline]
pub const fn is_simulated() -> bool {
    false
}

/// The places of a simulation for the waits of its tasks.
pub(crate) fn with_places<T>(_: impl FnOnce(&[TableEntry]) -> T) -> T {
    unreachable!("there are no simulations")
}
