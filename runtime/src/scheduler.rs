//! The scheduler: what the workers of one runtime share, a worker's core and loop, how a worker parks and is unparked.
//!
//! Used by `runtime/`, which builds, enters and ends it, and by `task/`, which queues tasks through a `Schedule`.

mod block_on;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod core_refs;
pub(crate) mod counts;
pub(crate) mod driver;
pub(crate) mod embedder;
pub(crate) mod end;
pub(crate) mod extension;
pub(crate) mod fifo;
mod guests;
pub(crate) mod idle;
pub(crate) mod idle_queue;
pub(crate) mod local_queue;
mod meter;
pub(crate) mod monitor;
pub(crate) mod observe;
pub(crate) mod ownership;
pub(crate) mod parker;
pub(crate) mod pick;
pub(crate) mod poller;
pub(crate) mod shared;
pub(crate) mod shutdown;
pub(crate) mod spin;
pub(crate) mod unparker;
pub(crate) mod until_idle;
mod wake;
pub(crate) mod worker;

pub(crate) use block_on::{ExternalThread, block_on, refuse_inside_worker};
