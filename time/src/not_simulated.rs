//! Without the feature `sim` no clock is a simulation's.

#[inline]
pub(crate) const fn is_simulated() -> bool {
    false
}
