//! The counting of references to a shared task, which threads poll in turn, wake and cancel.

use super::super::super::state::{OnPending, OnStart, OnWake, State};
use super::*;
use crate::primitives::atomic::AtomicBool;

/// A shared task: the thread that polls it counts in `local`. loom watches that, and the memory.
struct Shared {
    state: State,
    refs: RefCount,
    local: LocalCount,
    watched: UnsafeCell<u32>,
    memory: UnsafeCell<u32>,
    /// Wakers lie here, with their references.
    wakers: AtomicU32,
    /// Places in queues.
    queued: AtomicU32,
    has_ended: AtomicBool,
    freed: AtomicU32,
}

// SAFETY: `local` is touched together with `watched`, which loom checks.
#[allow(unsafe_code)]
unsafe impl Sync for Shared {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: State::shared(),
            refs: RefCount::new(),
            local: LocalCount::new(),
            watched: UnsafeCell::new(0),
            memory: UnsafeCell::new(0),
            wakers: AtomicU32::new(0),
            queued: AtomicU32::new(1),
            has_ended: AtomicBool::new(false),
            freed: AtomicU32::new(0),
        })
    }

    fn count(&self, change: impl FnOnce(&LocalCount, &RefCount)) {
        Task::write(&self.watched, 1);
        change(&self.local, &self.refs);
    }

    fn release(&self) {
        Task::read(&self.memory);
        if self.refs.release() == OnRelease::Free {
            Task::write(&self.memory, 99);
            self.freed.fetch_add(1, Relaxed);
        }
    }

    fn queue(&self) {
        self.queued.fetch_add(1, Release);
    }

    /// What `Queued::poll_or_drop` does, if there is a place in a queue. Each poll but the last leaves a waker behind.
    fn poll_or_drop(&self, is_last: bool) {
        if self.queued.swap(0, Acquire) == 0 {
            return;
        }
        Task::read(&self.memory);
        let (then, owes) = self.state.start();
        if owes {
            self.count(LocalCount::release);
        }
        if is_last || then == OnStart::Drop {
            return self.end();
        }
        self.count(LocalCount::retain);
        self.wakers.fetch_add(1, Relaxed);
        match self.state.finish_pending() {
            OnPending::Requeue => self.queue(),
            OnPending::Drop => self.end(),
            OnPending::Idle => {}
        }
    }

    fn end(&self) {
        self.state.finish_done();
        Task::write(&self.watched, 2);
        if self.refs.complete(&self.local, || ()) == OnComplete::DropOutput {
            self.release();
        }
        self.has_ended.store(true, Relaxed);
    }

    fn take_waker(&self) -> bool {
        self.wakers.fetch_update(Relaxed, Relaxed, |wakers| wakers.checked_sub(1)).is_ok()
    }

    /// Takes a waker, wakes with it, and uses it up.
    fn wake(&self) {
        if !self.take_waker() {
            return;
        }
        if self.state.wake_owing() {
            return self.queue();
        }
        self.wake_by_ref();
        self.release();
    }

    fn wake_by_ref(&self) {
        if self.state.wake() == OnWake::Enqueue {
            self.queue();
        }
    }

    fn cancel(&self) {
        if self.state.cancel() == OnWake::Enqueue {
            self.queue();
        }
    }

    fn drop_wakers(&self) {
        while self.take_waker() {
            self.release();
        }
    }

    fn leave(&self) {
        if self.refs.leave() == OnJoin::Done {
            self.release();
        }
    }

    /// Another worker, which wakes the task and ends it.
    fn wake_elsewhere(task: &Arc<Self>) -> thread::JoinHandle<()> {
        let other = task.clone();
        thread::spawn(move || {
            other.wake();
            other.poll_or_drop(true);
        })
    }

    /// All other threads have ended; this one does what is left.
    fn settle(&self) {
        if !self.has_ended.load(Relaxed) {
            self.cancel();
        }
        self.poll_or_drop(true);
        assert!(self.has_ended.load(Relaxed));
        self.drop_wakers();
    }

    /// The same, when the handle has gone too.
    fn check(&self) {
        self.settle();
        assert_eq!(self.freed.load(Relaxed), 1);
    }
}

/// A task is polled by one worker, woken by that worker and another one, and run to its end by either: references that
/// were counted in the poll and left in the queue are counted once, and the last one frees.
///
/// Planted: an exchange in `wake` or `wake_owing`, or `finish_pending`, that is Relaxed; `finish_pending` that leaves
/// OWES; a reference that is left and given back as well.
#[test]
fn references_counted_by_who_polls_and_left_in_the_queue_come_out_even() {
    loom::model(|| {
        let task = Shared::new();
        let other = task.clone();
        let worker = thread::spawn(move || {
            other.wake();
            other.poll_or_drop(false);
            other.wake();
            other.poll_or_drop(true);
        });
        task.poll_or_drop(false);
        task.wake_by_ref();
        worker.join().unwrap();
        task.settle();
        assert_eq!(task.freed.load(Relaxed), 0, "the handle is left");
        task.leave();
        assert_eq!(task.freed.load(Relaxed), 1);
    });
}

/// The handle goes meanwhile: the worker that ends the task may free it, while the other one still looks for its place.
///
/// Planted: as above; `complete` that forgets `local`.
#[test]
fn a_task_without_a_handle_is_freed_where_it_ends() {
    loom::model(|| {
        let task = Shared::new();
        let worker = Shared::wake_elsewhere(&task);
        task.poll_or_drop(false);
        task.leave();
        worker.join().unwrap();
        task.check();
    });
}

/// A third thread cancels the task, whether a reference has been left in the queue or not.
///
/// Planted: `start` that forgets OWES if the task was cancelled.
#[test]
fn a_reference_left_in_the_queue_of_a_cancelled_task_is_given_back() {
    loom::model(|| {
        let task = Shared::new();
        task.refs.retain(); // of the abort handle
        let worker = Shared::wake_elsewhere(&task);
        let other = task.clone();
        let canceller = thread::spawn(move || {
            other.cancel();
            other.release();
            other.drop_wakers();
        });
        task.poll_or_drop(false);
        task.leave();
        worker.join().unwrap();
        canceller.join().unwrap();
        task.check();
    });
}
