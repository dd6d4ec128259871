//! Threads, and what they synchronise by: the standard library's, or a model checker's.
//!
//! Used by everything a worker does, from the task state to the end of a runtime. loom (`--cfg loom`) runs small parts
//! in every order, with the reordering that the memory model allows; shuttle (`--cfg shuttle`) runs a whole pool in
//! many orders (`models.rs`). Both need to see each step. Code that they never reach uses std directly: files,
//! processes, the counters.
//!
//! Rejected: a type parameter for the kind of atomics (it would stand in every signature).

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(shuttle)]
pub use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread, thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread, thread_local,
};

use std::sync::PoisonError;

#[cfg_attr(any(loom, shuttle), path = "primitives/untimed.rs")]
mod deadline;

pub use deadline::{Deadline, HAS_TIME};

/// The fences of a [list of tasks](crate::task::owned): models make them of ordinary ones.
pub mod fences {
    #[cfg(not(any(loom, shuttle)))]
    pub use mini_net::{heavy_fence as heavy, light_fence as light};

    #[cfg(any(loom, shuttle))]
    pub fn light() {
        super::atomic::fence(super::atomic::Ordering::SeqCst);
    }

    #[cfg(any(loom, shuttle))]
    pub fn heavy() -> bool {
        light();
        true
    }
}

/// Threads of loom, which has no park with a time limit.
#[cfg(loom)]
pub mod thread {
    pub use loom::thread::*;

    pub fn park_timeout(_limit: std::time::Duration) {
        yield_now();
    }
}

/// The macro of loom, which doesn't know constants.
#[cfg(loom)]
#[macro_export]
macro_rules! loom_local {
    ($($(#[$meta:meta])* static $name:ident: $type:ty = const { $init:expr };)+) => {
        loom::thread_local! { $($(#[$meta])* static $name: $type = $init;)+ }
    };
}
#[cfg(loom)]
pub use crate::loom_local as thread_local;

/// Locks `mutex`. Poison is ignored: no user code runs under a lock of this crate.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
