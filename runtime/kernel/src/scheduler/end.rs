//! The progress of a runtime's end: whether it has begun, and the cores and threads that are left.
//!
//! Written by workers, worker threads and the monitor; waited for by `Shared::shutdown` (`shutdown.rs`).

use crate::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
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

    /// Whether the runtime ends, and each of `cores` is closed or in `block_in_place`, as the two flags say. Asked by
    /// whoever has just begun the end or set such a flag: the last of them sees all.
    pub(crate) fn is_over_but_for_waits<'a>(&self, mut cores: impl Iterator<Item = [&'a AtomicBool; 2]>) -> bool {
        fence(SeqCst);
        self.is_closing() && cores.all(|flags| flags.iter().any(|flag| flag.load(Relaxed)))
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

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{sync::Arc, thread};

    /// The end begins while one worker blocks in place and another closes its core: one of the three sees that nothing
    /// else is left.
    ///
    /// Planted: no fence in `is_over_but_for_waits`; one that does not ask whether the runtime ends.
    #[test]
    fn who_comes_last_sees_that_only_waits_in_place_are_left() {
        loom::model(|| {
            let flags = [(); 4].map(|()| AtomicBool::new(false));
            let shared = Arc::new((End::new(2), flags));
            let sees =
                |(end, [a, b, c, d]): &(End, [AtomicBool; 4])| end.is_over_but_for_waits([[a, b], [c, d]].into_iter());
            let threads = [1, 2].map(|flag| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.1[flag].store(true, Relaxed);
                    sees(&shared)
                })
            });
            assert!(!sees(&shared), "it has not begun");
            shared.0.begin();
            let is_seen = sees(&shared);
            assert!(threads.map(|thread| thread.join().unwrap()).contains(&true) || is_seen);
        });
    }
}
