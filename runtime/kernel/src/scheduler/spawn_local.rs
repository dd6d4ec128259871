//! Starts a task that never leaves the thread, on the core that the thread holds or may take.

use std::future::Future;

use super::core::Core;
use super::current;
use super::worker::{self, NoCore};
use crate::task::{self, JoinHandle, Origin, Start};

/// Starts the task; `call` is what the user has called.
///
/// # Panics
///
/// Where the thread has no core and may take none.
#[track_caller]
pub fn spawn_local<F>(future: F, origin: impl Origin, call: &str) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let spawn = |core: &Core| {
        let (task, handle) = task::new(future, core.schedule(), Start::Owned, origin);
        core.spawn_pinned(task);
        handle
    };
    if !current::held().is_null() {
        return current::with_held(spawn).expect("just looked");
    }
    match worker::with_free_core(&current::shared(call), spawn) {
        Ok(handle) => handle,
        Err(NoCore::Pinned(thread)) => {
            panic!("{call}: tasks made by spawn_local bind this runtime to {thread:?}: call it there")
        }
        Err(NoCore::Taken) => panic!(
            "{call} needs a worker, and another thread runs the worker of this runtime: call it from a task or inside \
             block_on on that thread"
        ),
        Err(NoCore::Shared | NoCore::Blocking) => {
            panic!("{call} needs a worker: call it from a task, or inside block_on on the thread that runs it")
        }
    }
}
