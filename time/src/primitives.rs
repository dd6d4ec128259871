//! The atomics and thread-locals of the synchronisation in this crate: the standard library's, or those of a model
//! checker.
//!
//! loom (`--cfg loom`) runs the announcement of a park and the timers in every order, the latter with a lock that does
//! not spin; shuttle (`--cfg shuttle`) runs whole runtimes, see `models.rs` of the runtime. It treats the code of this
//! crate as one step.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(shuttle)]
pub(crate) use shuttle::thread_local;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
#[cfg(not(shuttle))]
pub(crate) use std::thread_local;

/// `true` if every run of a model has its own memory: then nothing may go from one to the next.
pub(crate) const IS_MODEL: bool = cfg!(any(loom, shuttle));

pub(crate) use mini_context::{Guard, Lock};
