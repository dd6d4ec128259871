//! The background threads that work on the cores of a multi-threaded runtime.
//!
//! The first is started with the runtime, so that there is one whatever happens; the others by a thread that has work
//! for them (`wake.rs`). By `ownership.rs` a core has one worker thread at most, which stays until the runtime ends.
//!
//! Rejected: none until there is something to do. If the system cannot start a thread then, nobody is left to hear of
//! it.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use super::{Shared, Stop, Worker};
use crate::threads;

/// Starts the thread that works on a core. The ownership has noted that the core has one.
pub(crate) fn start_thread(shared: &Arc<Shared>, index: usize) -> io::Result<()> {
    shared.end.thread_started();
    let (kept, end) = (shared.clone(), shared.end.clone());
    let config = &shared.config;
    let name = config.thread_name.of(format_args!("-{index}"));
    let body = Box::new(move || {
        kept.config.hooks.around(|| keep(&kept, index));
        drop(kept); // first: a thread that has waited for the end finds the runtime's descriptors closed
        end.thread_ended();
    });
    threads::start(name, config.stack_size, body).map(drop).inspect_err(|_| {
        shared.cores[index].ownership.thread_failed();
        shared.end.thread_ended();
    })
}

/// The body of a worker thread.
fn keep(shared: &Arc<Shared>, index: usize) {
    let core = &shared.cores[index];
    if core.ownership.take_as_worker_thread() {
        let mut worker = Worker::new(shared, core).expect("no other thread has worked here");
        let stop = worker.drive(&Cell::new(false));
        debug_assert_eq!(stop, Stop::Closing);
    }
}
