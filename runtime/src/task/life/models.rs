//! What a life promises about outputs, waiters and references, under loom.

use super::super::state::{OnPending, OnStart, OnWake, State};
use super::*;
use crate::sync::atomic::AtomicBool;
use loom::{cell::UnsafeCell, sync::Arc, thread};

/// What a task has, as far as a life rules it.
struct Task {
    life: Life,
    local: Local,
    output: UnsafeCell<u32>,
    /// The number of the waiter that was put there last.
    waiter: AtomicU32,
    /// How often each waiter was taken: to be woken or dropped.
    taken: [AtomicU32; 5],
    /// Touched by who uses the task, and by who frees it.
    memory: UnsafeCell<u32>,
}

// SAFETY: `local` is touched by the thread of the model that runs the task; loom checks the other cells.
#[allow(unsafe_code)]
unsafe impl Sync for Task {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Task {}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            life: Life::new(),
            local: Local::new(),
            output: UnsafeCell::new(0),
            waiter: AtomicU32::new(0),
            taken: Default::default(),
            memory: UnsafeCell::new(0),
        })
    }

    fn write(cell: &UnsafeCell<u32>, value: u32) {
        #[allow(unsafe_code)]
        // SAFETY: the model checks that nobody else touches the cell now.
        cell.with_mut(|cell| unsafe { *cell = value });
    }

    fn read(cell: &UnsafeCell<u32>) -> u32 {
        #[allow(unsafe_code)]
        // SAFETY: as above.
        cell.with(|cell| unsafe { *cell })
    }

    /// Frees the task if this was the last reference: touches all there is. Says whether it did.
    fn release(&self) -> bool {
        if self.life.release() == OnRelease::Nothing {
            return false;
        }
        Self::write(&self.output, 99);
        Self::write(&self.memory, 99);
        true
    }

    /// The waiter in the place, which is the caller's to take.
    fn take(&self) {
        self.take_it(self.waiter.load(Relaxed));
    }

    fn take_it(&self, waiter: u32) {
        self.taken[waiter as usize].fetch_add(1, Relaxed);
    }

    /// What the handle does to leave a waiter; says whether it has put it there, too.
    fn put(&self, waiter: u32) -> (OnJoin, bool) {
        if self.take_back() == OnWithdraw::Done {
            return (OnJoin::Done, false);
        }
        self.waiter.store(waiter, Relaxed);
        let found = self.life.offer();
        if found == OnJoin::Done {
            self.take();
        }
        (found, true)
    }

    /// What it does to have it back.
    fn take_back(&self) -> OnWithdraw {
        let found = self.life.withdraw();
        if found == OnWithdraw::Waiter {
            self.take();
        }
        found
    }

    fn taken(&self) -> [u32; 5] {
        [0, 1, 2, 3, 4].map(|waiter: usize| self.taken[waiter].load(Relaxed))
    }

    /// What the runner does at the end of the future; says whether it freed the task.
    fn finish(&self) -> bool {
        Self::write(&self.output, 7);
        match self.life.complete(&self.local, || self.waiter.load(Relaxed)) {
            OnComplete::Nothing => return false,
            OnComplete::Wake(waiter) => {
                self.take_it(waiter); // not of the task any more
                return false;
            }
            OnComplete::LookAndWake => {
                Self::read(&self.memory);
                self.take();
            }
            OnComplete::DropOutput => Self::write(&self.output, 0),
        }
        self.release()
    }

    /// What the handle does when it is dropped; says whether it freed the task.
    fn leave(&self) -> bool {
        if self.life.leave() == OnJoin::Pending {
            return false;
        }
        assert_eq!(Self::read(&self.output), 7);
        Self::write(&self.output, 0);
        self.release()
    }
}

/// The output is read by the handle xor dropped by one side; a waiter offered in time is woken, each is taken once; one side frees.
///
/// Planted: `complete` or `offer` Relaxed; `withdraw` that ignores DONE, before its step or in it, or forgets AGAIN; `complete` that ignores AGAIN, or
/// gives its reference back where it has to look again.
#[test]
fn the_output_has_one_owner_and_a_waiter_is_not_forgotten() {
    loom::model(|| {
        let task = Task::new();
        let runner = thread::spawn({
            let task = task.clone();
            move || task.finish()
        });
        // Though it may be done before the last: nothing keeps a user from trying again.
        let put = [1, 2, 3, 4].map(|waiter| task.put(waiter).1);
        let _ = task.take_back();
        let freed = task.leave();
        assert!(freed ^ runner.join().unwrap());
        assert_eq!(task.taken(), [false, put[0], put[1], put[2], put[3]].map(u32::from));
    });
}

/// A handle that keeps its waiter there is woken, and may free the task before the runner has come to the wake.
///
/// Planted: as above; `complete` that gives its reference back after the wake, without having kept it.
#[test]
fn a_waiter_is_woken_when_its_task_may_be_gone() {
    loom::model(|| {
        let task = Task::new();
        let runner = thread::spawn({
            let task = task.clone();
            move || task.finish()
        });
        let (found, _) = task.put(1);
        let mut freed = false;
        if found == OnJoin::Done || task.life.is_done() {
            freed = task.leave();
        }
        freed |= runner.join().unwrap();
        if !freed {
            freed = task.leave();
        }
        assert!(freed);
        assert_eq!(task.taken(), [0, 1, 0, 0, 0]);
    });
}

/// A waker that the owner counted is dropped elsewhere while the task ends and its handle goes: freed once, by the last.
///
/// Fails when `complete` forgets `local`, when `release` frees before DONE, or is Relaxed.
#[test]
fn the_last_reference_frees_and_it_frees_once() {
    loom::model(|| {
        let task = Task::new();
        task.local.retain(&task.life);
        let waker = thread::spawn({
            let task = task.clone();
            move || task.release()
        });
        let handle = thread::spawn({
            let task = task.clone();
            move || task.leave()
        });
        task.local.retain(&task.life);
        task.local.release(&task.life);
        let freed = u32::from(task.finish());
        assert_eq!(freed + u32::from(waker.join().unwrap()) + u32::from(handle.join().unwrap()), 1);
    });
}

/// Fails when `leave` and `complete` are a load and a store each.
#[test]
fn a_leaving_handle_and_the_runner_drop_the_output_once() {
    loom::model(|| {
        let task = Task::new();
        let runner = thread::spawn({
            let task = task.clone();
            move || task.finish()
        });
        let freed = task.leave();
        assert!(freed ^ runner.join().unwrap());
    });
}

/// A shared task: whoever polls it counts in `local`. loom watches that, and the memory.
struct Shared {
    state: State,
    life: Life,
    local: Local,
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
            life: Life::new(),
            local: Local::new(),
            watched: UnsafeCell::new(0),
            memory: UnsafeCell::new(0),
            wakers: AtomicU32::new(0),
            queued: AtomicU32::new(1),
            has_ended: AtomicBool::new(false),
            freed: AtomicU32::new(0),
        })
    }

    fn count(&self, change: impl FnOnce(&Local, &Life)) {
        Task::write(&self.watched, 1);
        change(&self.local, &self.life);
    }

    fn release(&self) {
        Task::read(&self.memory);
        if self.life.release() == OnRelease::Free {
            Task::write(&self.memory, 99);
            self.freed.fetch_add(1, Relaxed);
        }
    }

    fn queue(&self) {
        self.queued.fetch_add(1, Release);
    }

    /// What `Queued::run` does, if there is a place in a queue. A poll leaves a waker behind, but the last one.
    fn run(&self, is_last: bool) {
        if self.queued.swap(0, Acquire) == 0 {
            return;
        }
        Task::read(&self.memory);
        let (then, owes) = self.state.start();
        if owes {
            self.count(Local::release);
        }
        if is_last || then == OnStart::Drop {
            return self.end();
        }
        self.count(Local::retain);
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
        if self.life.complete(&self.local, || ()) == OnComplete::DropOutput {
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
        if self.life.leave() == OnJoin::Done {
            self.release();
        }
    }

    /// Another worker, which wakes the task and ends it.
    fn wake_elsewhere(task: &Arc<Self>) -> thread::JoinHandle<()> {
        let other = task.clone();
        thread::spawn(move || {
            other.wake();
            other.run(true);
        })
    }

    /// All threads but this one have gone; what is left over is done.
    fn settle(&self) {
        if !self.has_ended.load(Relaxed) {
            self.cancel();
        }
        self.run(true);
        assert!(self.has_ended.load(Relaxed));
        self.drop_wakers();
    }

    /// The same, when the handle has gone too.
    fn check(&self) {
        self.settle();
        assert_eq!(self.freed.load(Relaxed), 1);
    }
}

/// A task is polled by one worker, woken by that and by another one, and run to its end by either: references that were counted in
/// the poll and left in the queue are counted once, and the last one frees.
///
/// Planted: an exchange in `wake` or `wake_owing`, or `finish_pending`, that is Relaxed; `finish_pending` that leaves OWES; a reference
/// that is left and given back as well.
#[test]
fn references_counted_by_who_polls_and_left_in_the_queue_come_out_even() {
    loom::model(|| {
        let task = Shared::new();
        let other = task.clone();
        let worker = thread::spawn(move || {
            other.wake();
            other.run(false);
            other.wake();
            other.run(true);
        });
        task.run(false);
        task.wake_by_ref();
        worker.join().unwrap();
        task.settle();
        assert_eq!(task.freed.load(Relaxed), 0, "the handle is left");
        task.leave();
        assert_eq!(task.freed.load(Relaxed), 1);
    });
}

/// The handle goes meanwhile: who ends the task may free it, while the other still looks for its place in the queue.
///
/// Planted: as above; `complete` that forgets `local`.
#[test]
fn a_task_without_a_handle_is_freed_where_it_ends() {
    loom::model(|| {
        let task = Shared::new();
        let worker = Shared::wake_elsewhere(&task);
        task.run(false);
        task.leave();
        worker.join().unwrap();
        task.check();
    });
}

/// A third thread cancels it, whether a reference has been left in the queue or not.
///
/// Planted: `start` that forgets OWES if the task was cancelled.
#[test]
fn a_reference_left_in_the_queue_of_a_cancelled_task_is_given_back() {
    loom::model(|| {
        let task = Shared::new();
        task.life.retain(); // of the abort handle
        let worker = Shared::wake_elsewhere(&task);
        let other = task.clone();
        let canceller = thread::spawn(move || {
            other.cancel();
            other.release();
            other.drop_wakers();
        });
        task.run(false);
        task.leave();
        worker.join().unwrap();
        canceller.join().unwrap();
        task.check();
    });
}
