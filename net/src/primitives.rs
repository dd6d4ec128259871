//! The locks, atomics and thread-locals of the reactor and its slots: the standard library's, or those of a model
//! checker.
//!
//! loom (`--cfg loom`) runs a slot in every order; shuttle (`--cfg shuttle`) runs whole runtimes with their sockets,
//! see `models.rs` of the runtime. Code that neither reaches (standard streams, name resolution) uses std directly.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
#[cfg(not(shuttle))]
pub(crate) use std::thread_local;
