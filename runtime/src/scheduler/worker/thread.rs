//! The background threads that work on the cores of a multi-threaded runtime while no thread is in `block_on` there.
//!
//! Started by any thread that has work for a core on which none works; by the protocol of `ownership.rs` a core has one
//! worker thread at most. The hard part is a system that cannot start a thread: the work must not be left alone.

use std::sync::Arc;
use std::task::Waker;

use mini_context::rules::{PATIENCE, TICK};

use super::{Shared, Stop, Worker};
use crate::primitives::lock;
use crate::scheduler::monitor;
use crate::threads;

/// Starts the background thread that works on a core while no other does. The ownership has noted the worker thread.
///
/// If the system cannot start a thread now, it may do so soon. The monitor tries again until it can. Without a monitor,
/// and if no thread works in the runtime, the calling thread tries again for a moment; while the failure goes on, it
/// does so only once.
///
/// Not in a child of fork(2): a wake there may be the parent's, whose events the child must not take.
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
        // Real time: the system does not tell when it can start a thread again.
        std::thread::sleep(pause);
        pause *= 2;
        if !shared.cores[index].ownership.wants_thread() || try_start_thread(shared, index).is_ok() {
            return;
        }
    }
}

/// The system could not start a thread.
struct Lack {
    /// The last attempt for this core did not fail.
    is_news: bool,
}

/// Tries once to start the thread.
fn try_start_thread(shared: &Arc<Shared>, index: usize) -> Result<(), Lack> {
    shared.end.thread_started();
    let (kept, end) = (shared.clone(), shared.end.clone());
    let config = &shared.config;
    let name = config.thread_name.of(format_args!("-{index}"));
    let body = Box::new(move || {
        kept.config.hooks.around(|| keep(&kept, index));
        drop(kept); // first: a thread that has waited for the end finds the runtime's descriptors closed
        end.thread_ended();
    });
    let Err(error) = threads::start(name, config.stack_size, body) else { return Ok(()) };
    let lack = Lack { is_news: shared.cores[index].ownership.thread_failed() };
    if lack.is_news {
        say!("could not start worker thread {index}: {error}");
    }
    shared.end.thread_ended();
    shared.keep_poller();
    // One of them may take the core.
    lock(&shared.externals).iter().for_each(|(_, parker)| parker.unpark());
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
