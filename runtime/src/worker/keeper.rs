//! The background threads that work on the cores of a multi-threaded runtime while nobody is in `block_on` there.
//!
//! Started by whoever has work for a core that nobody works on; `seat.rs` has the protocol that makes that one thread at most. The hard
//! part is a system that has no thread to give: the work must not be left alone.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::{Pool, Stop, Worker};
use crate::threads;

/// Milliseconds between two tries to start a thread without which nothing would go on. 0.2 s in all.
const PAUSES: [u64; 6] = [1, 4, 15, 30, 60, 90];

/// Starts the background thread that works on a core while nobody else does. The seat has noted the keeper.
///
/// If the system has no thread now it may have one soon. The watch tries again until it has. Without a watch, and if nobody works
/// in the runtime who would come to the tasks, this thread does so for a moment; not each time, though, where it goes on.
pub(crate) fn start_keeper(pool: &Arc<Pool>, index: usize) {
    let Err(lack) = try_start_keeper(pool, index) else { return };
    if pool.watch.start_keepers_later(pool) || !lack.is_news {
        return;
    }
    for pause in PAUSES {
        if pool.cores.iter().any(|core| core.seat.is_held()) {
            return;
        }
        // Real time: the system may have a thread again by then, which nobody tells.
        std::thread::sleep(Duration::from_millis(pause));
        if !pool.cores[index].seat.wants_keeper() || try_start_keeper(pool, index).is_ok() {
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
fn try_start_keeper(pool: &Arc<Pool>, index: usize) -> Result<(), Lack> {
    pool.keeper_started();
    let kept = pool.clone();
    let config = &pool.config;
    let name = format!("{}-{index}", config.thread_name);
    let body = Box::new(move || {
        kept.config.hooks.around(|| keep(&kept, index));
        kept.keeper_ended();
    });
    let Err(error) = threads::start(name, config.stack_size, body) else { return Ok(()) };
    let lack = Lack { is_news: pool.cores[index].seat.keeper_failed() };
    if lack.is_news {
        say!("could not start worker thread {index}: {error}");
    }
    pool.keeper_ended();
    pool.keep_lookout();
    Err(lack)
}

/// The body of a keeper thread.
fn keep(pool: &Arc<Pool>, index: usize) {
    let core = &pool.cores[index];
    while core.seat.take_as_keeper() {
        let worker = Worker::new(pool, core);
        let mut worker = worker.expect("a worker of several takes its local tasks along when it leaves");
        if worker.drive(&mut |_| false, Waker::noop()) == Stop::Closing {
            worker.close();
        }
        drop(worker);
        if pool.is_closing() {
            break;
        }
    }
}
