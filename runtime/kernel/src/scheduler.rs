//! The scheduler: what the workers of one runtime share, a worker's core and loop, how a worker parks and is unparked.
//!
//! Used by `runtime/`, which builds, enters and ends it, and by `task/`, which queues tasks through a `Schedule`.

#[cfg(all(test, not(shuttle)))]
mod bare;
mod block_on;
pub mod config;
pub mod core;
pub mod core_refs;
pub mod counts;
pub mod current;
pub mod driver;
pub mod embedder;
pub mod end;
pub mod extension;
pub mod fifo;
mod guests;
pub mod idle;
pub mod idle_queue;
mod in_place;
pub mod local_queue;
mod meter;
pub mod monitor;
pub mod observe;
pub mod ownership;
pub mod parker;
pub mod pick;
pub mod poller;
pub mod shared;
pub mod shutdown;
mod spawn_local;
pub mod spin;
pub mod unparker;
pub mod until_idle;
mod wake;
pub mod worker;

pub use block_on::{ExternalThread, block_on, refuse_inside_worker};
pub use in_place::block_in_place;
pub use spawn_local::spawn_local;
