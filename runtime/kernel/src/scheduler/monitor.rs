//! The monitor of a multi-threaded runtime: a thread that checks every millisecond, while a worker is up, whether one
//! is stalled.
//!
//! Started with the first worker of a runtime that has several, or before that when it is needed. It never polls tasks,
//! and turns the driver only while all workers are stuck. A worker is *stalled* if it has made no progress between two
//! checks, and has used the CPU in that time or waits for something other than a CPU. A worker that only waits for a
//! CPU, on a machine that has too few, continues by itself, and a helper would have to wait for that CPU too.
//!
//! A stalled worker is *stuck*, as is one in a poll that it expects to be long (`worker.rs`) or in `block_in_place`.
//! The tasks and timers of a stuck worker are open to others: thieves may take even the task in its next slot, the
//! poller serves its timers along with the sockets of all, and workers that are up fire its timers at their driver
//! checks. The monitor wakes a parked worker for the tasks that wait there, and makes sure that there is a poller.
//!
//! If all workers are parked at a check, the monitor sleeps without a timeout; the next worker that is unparked wakes
//! it, and it checks after a tick. An unpark pays a fence and a load for this, and a system call once a tick at most.
//!
//! ```text
//! worker                           monitor
//! A1 unpark                        B1 asleep = true
//! A2 SeqCst fence                  B2 SeqCst fence
//! A3 if asleep: unpark its thread  B3 if a worker is up: stay awake, else park
//! ```
//!
//! Rejected: a parked worker that ticks (it has work of its own now and then, and must wake another to take over the
//! monitor's place each time: 15 µs per event on a quiet server). Turning the driver of a stalled worker here (while a
//! task computed, a socket waited for a median of 0.7 ms; half the tick).

use std::sync::OnceLock;

use crate::primitives::Mutex;
use crate::primitives::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::primitives::thread::Thread;

pub mod thread;

/// The handle to the monitor thread of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    thread: OnceLock<Thread>,
    /// Held while the thread is started.
    starting: Mutex<()>,
    /// The thread could not be started, and that has been reported.
    has_failed: AtomicBool,
    asleep: AtomicBool,
    stopped: AtomicBool,
    /// There are stuck workers.
    has_stuck: AtomicBool,
}

impl Monitor {
    /// A worker has been unparked.
    pub(crate) fn rouse(&self) {
        fence(SeqCst);
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            self.unpark();
        }
    }

    /// Whether there is a monitor: with several workers, or since one was in `block_in_place`.
    pub(crate) fn is_started(&self) -> bool {
        self.thread.get().is_some()
    }

    /// Returns `true` if the poller, thieves and workers at their driver checks must serve stuck workers too.
    #[inline]
    pub(crate) fn has_stuck(&self) -> bool {
        self.has_stuck.load(Relaxed)
    }

    /// A worker is stuck, and has said so in its core.
    pub(crate) fn note_stuck(&self) {
        self.has_stuck.store(true, SeqCst);
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, SeqCst);
        self.unpark();
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst)
    }
}

#[cfg(all(test, loom))]
mod models;
