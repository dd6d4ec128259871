//! What the primitives are built on besides [`Lock`](mini_context::Lock): the standard library's, or loom's.

#[cfg(loom)]
pub(crate) use loom::sync::{RwLock, RwLockReadGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{RwLock, RwLockReadGuard};
