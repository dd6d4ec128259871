//! What `sim` has that is asked for also where there are no simulations.

/// Whether a simulation runs on this thread: without the feature `sim` there is none.
#[inline]
pub const fn is_simulated() -> bool {
    false
}
