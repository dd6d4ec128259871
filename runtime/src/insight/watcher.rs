//! The watcher: a thread, one in a process, that looks at every runtime which is to be warned about.
//!
//! It looks while all workers are stuck or parked, so it is neither of them; and a `current_thread` runtime, which has
//! no monitor, needs it most. It looks each 50 ms, half of what a poll may last, and asks nothing of the workers: what
//! it reads they write anyway. It ends with the last of its runtimes.
//!
//! A watcher that comes late was itself without a CPU, or the process was stopped: what it has seen before says
//! nothing then, and it begins anew. So a machine that has too much to do warns of nothing.
//!
//! Rejected: a part of the monitor (one thread for each runtime, and one more for each `current_thread` runtime of a
//! test). A look at the end of each run (a reading of the clock, and nothing is said of a poll that never ends).

use std::process;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mini_context::contain;
use mini_kernel::primitives::HAS_TIME;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::threads;

use super::watch::Watch;

/// How long it waits between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// What the watcher has to take over.
static NEW: Mutex<New> = Mutex::new(New { runtimes: Vec::new(), watcher: 0 });

/// There is something. Looked at without the lock: a fork(2) while the watcher has that would leave it locked in the
/// child.
static HAS_NEW: AtomicBool = AtomicBool::new(false);

struct New {
    runtimes: Vec<Weak<Shared>>,
    /// The process in which there is a watcher, or 0: the child of a fork(2) has none.
    watcher: u32,
}

/// Has `shared` watched from now on, until it ends.
pub(crate) fn watch(shared: &Arc<Shared>) {
    // Miri refuses to end a program while another thread runs.
    if !HAS_TIME || cfg!(miri) {
        return;
    }
    let mut new = lock();
    match new.watcher {
        0 => new.runtimes.retain(|runtime| runtime.strong_count() > 0), // no watcher has come to take them
        watcher if watcher == process::id() => {}
        _ => std::mem::forget(std::mem::take(&mut new.runtimes)), // in the child of a fork(2) they are its parent's
    }
    new.runtimes.push(Arc::downgrade(shared));
    HAS_NEW.store(true, Relaxed);
    if std::mem::replace(&mut new.watcher, process::id()) == process::id() {
        return;
    }
    let body = Box::new(|| {
        if contain(run).is_none() {
            lock().watcher = 0; // the next runtime that is to be watched starts another one
        }
    });
    if let Err(error) = threads::start("mini-watch".to_owned(), Some(256 * 1024), body) {
        new.watcher = 0;
        say!("no warnings: the thread that looks for problems could not be started: {error}");
    }
}

fn run() {
    let mut watches = Vec::new();
    while take_over(&mut watches) {
        let begin = Instant::now();
        thread::sleep(LOOK); // real time, as it is what the watched lose
        let is_late = begin.elapsed() > 2 * LOOK;
        watches.retain_mut(|watch| {
            // Contained with the end of what it looks at: the runtime may end meanwhile, and then ends here, with what
            // its hooks own.
            contain(|| {
                let Some(shared) = watch.runtime() else { return false };
                if is_late {
                    watch.begin_anew();
                }
                watch.look(&shared);
                true
            })
            .unwrap_or(false)
        });
    }
}

fn lock() -> MutexGuard<'static, New> {
    NEW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over new runtimes; says whether there is one to watch. If not, there is no watcher any more.
fn take_over(watches: &mut Vec<Watch>) -> bool {
    if !HAS_NEW.swap(false, Relaxed) && !watches.is_empty() {
        return true;
    }
    let mut new = lock();
    watches.extend(new.runtimes.drain(..).map(Watch::new));
    if watches.is_empty() {
        new.watcher = 0;
    }
    !watches.is_empty()
}
