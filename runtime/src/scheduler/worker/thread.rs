//! The background threads that work on the cores of a multi-threaded runtime while nobody is in `block_on` there.
//!
//! Started by whoever has work for a core that nobody works on; `ownership.rs` has the protocol that makes that one
//! thread at most. The hard part is a system that has no thread to give: the work must not be left alone.

use std::sync::Arc;
use std::task::Waker;

use mini_context::rules::{PATIENCE, TICK};

use super::{Shared, Stop, Worker};
use crate::scheduler::monitor;
use crate::threads;

/// Starts the background thread that works on a core while nobody else does. The ownership has noted the worker thread.
///
/// If the system has no thread now it may have one soon. The monitor tries again until it has. Without a monitor, and
/// if nobody works in the runtime that would come to the tasks, this thread does so for a moment; not each time,
/// though, where it goes on.
///
/// Not in a child of fork(2): a wake there may be one of the parent's, but its events are not the child's to take.
pub(crate) fn start_thread(shared: &Arc<Shared>, index: usize) {
    if !shared.process.is_current() {
        return;
    }
    let Err(lack) = try_start_thread(shared, index) else { return };
    if monitor::thread::start_threads_later(shared) || !lack.is_news {
        return;
    }
    let mut pause = TICK;
    while pause < PATIENCE {
        if shared.cores.iter().any(|core| core.ownership.is_held()) {
            return;
        }
        // Real time: the system may have a thread again by then, which nobody tells.
        std::thread::sleep(pause);
        pause *= 2;
        if !shared.cores[index].ownership.wants_thread() || try_start_thread(shared, index).is_ok() {
            return;
        }
    }
}

/// The system has no thread.
struct Lack {
    /// It had one when it was last asked for this core.
    is_news: bool,
}

/// Tries it once.
fn try_start_thread(shared: &Arc<Shared>, index: usize) -> Result<(), Lack> {
    shared.end.thread_started();
    let kept = shared.clone();
    let config = &shared.config;
    let name = config.thread_name.of(format_args!("-{index}"));
    let body = Box::new(move || {
        kept.config.hooks.around(|| keep(&kept, index));
        kept.end.thread_ended();
    });
    let Err(error) = threads::start(name, config.stack_size, body) else { return Ok(()) };
    let lack = Lack { is_news: shared.cores[index].ownership.thread_failed() };
    if lack.is_news {
        say!("could not start worker thread {index}: {error}");
    }
    shared.end.thread_ended();
    shared.keep_poller();
    Err(lack)
}

/// The body of a worker thread.
fn keep(shared: &Arc<Shared>, index: usize) {
    let core = &shared.cores[index];
    while core.ownership.take_as_worker_thread() {
        let worker = Worker::new(shared, core);
        let mut worker = worker.expect("a worker of several takes its local tasks along when it leaves");
        if worker.drive(&mut |_| false, Waker::noop()) == Stop::Closing {
            worker.close();
        }
        drop(worker);
        if shared.is_closing() {
            break;
        }
    }
}
