//! The progress of a runtime's end: whether it has begun, and the cores and threads that are left.
//!
//! Written by workers, worker threads and the monitor; waited for by `Shared::shutdown` (`shutdown.rs`).

use crate::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use crate::primitives::{Condvar, Deadline, Mutex, lock};

pub(crate) struct End {
    closing: AtomicBool,
    open_cores: AtomicUsize,
    /// Cores that are not closed yet and threads that have not ended.
    ending: Mutex<Ending>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Ending {
    open_cores: usize,
    threads: usize,
    has_monitor: bool,
}

impl End {
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            closing: AtomicBool::new(false),
            open_cores: AtomicUsize::new(cores),
            ending: Mutex::new(Ending { open_cores: cores, ..Ending::default() }),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Begins the end; says whether the caller is the first to do so.
    pub(crate) fn begin(&self) -> bool {
        !self.closing.swap(true, SeqCst)
    }

    /// A core is closed; says whether it was the last one. Followed by [`core_closed`](Self::core_closed).
    pub(crate) fn is_last_core(&self) -> bool {
        self.open_cores.fetch_sub(1, SeqCst) == 1
    }

    /// All that belongs to the closing of a core is done.
    pub(crate) fn core_closed(&self) {
        lock(&self.ending).open_cores -= 1;
        self.ended.notify_all();
    }

    pub(crate) fn thread_started(&self) {
        lock(&self.ending).threads += 1;
    }

    pub(crate) fn thread_ended(&self) {
        lock(&self.ending).threads -= 1;
        self.ended.notify_all();
    }

    /// The monitor has been started, or has ended.
    pub(crate) fn note_monitor(&self, is_there: bool) {
        lock(&self.ending).has_monitor = is_there;
        self.ended.notify_all();
    }

    /// Waits until all cores are closed and all threads gone; returns how many cores were not closed, and how many of
    /// their threads have not ended. (The monitor ends when it is told to.)
    pub(crate) fn wait(&self, mut deadline: Deadline) -> (usize, usize) {
        let mut ending = lock(&self.ending);
        while (ending.open_cores > 0 || ending.threads > 0 || ending.has_monitor) && !deadline.is_over() {
            ending = deadline.wait(&self.ended, &self.ending, ending);
        }
        (ending.open_cores, ending.threads)
    }
}
