//! Whether the clock of this thread's runtime is a simulation's.

#[inline]
pub(crate) fn is_simulated() -> bool {
    mini_context::sim::is_simulated()
}
