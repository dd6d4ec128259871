//! The atomics that the hand-made synchronisation here is built on: the standard library's, or loom's when a model runs.
//!
//! The lock and the announcement of a park call it, which have loom models.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
