//! The promises of `RefCount` about outputs, waiters and references, under loom.

use super::*;
use loom::{cell::UnsafeCell, sync::Arc, thread};

mod shared;

/// What a task has, as far as `RefCount` rules it.
struct Task {
    refs: RefCount,
    local: LocalCount,
    output: UnsafeCell<u32>,
    /// The number of the waiter that was put there last.
    waiter: AtomicU32,
    /// How often each waiter was taken: to be woken or dropped.
    taken: [AtomicU32; 5],
    /// Touched by the threads that use the task, and by the one that frees it.
    memory: UnsafeCell<u32>,
}

// SAFETY: `local` is touched by the thread of the model that polls the task; loom checks the other cells.
#[allow(unsafe_code)]
unsafe impl Sync for Task {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Task {}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            refs: RefCount::new(),
            local: LocalCount::new(),
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
        if self.refs.release() == OnRelease::Nothing {
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
        if self.refs.is_done() || self.refs.has_waiter() && self.take_back() == OnWithdraw::Done {
            return (OnJoin::Done, false);
        }
        self.waiter.store(waiter, Relaxed);
        let found = self.refs.offer();
        if found == OnJoin::Done {
            self.take();
        }
        (found, true)
    }

    /// What the handle does to take its waiter back.
    fn take_back(&self) -> OnWithdraw {
        let found = self.refs.withdraw();
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
        match self.refs.complete(&self.local, || self.waiter.load(Relaxed)) {
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
        if self.refs.leave() == OnJoin::Pending {
            return false;
        }
        assert_eq!(Self::read(&self.output), 7);
        Self::write(&self.output, 0);
        self.release()
    }
}

/// The output is read by the handle xor dropped by one side; a waiter offered in time is woken, each is taken once; one
/// side frees.
///
/// Planted: `complete` or `offer` Relaxed; `withdraw` that ignores DONE, before its step or in it, or forgets AGAIN;
/// `complete` that ignores AGAIN, or gives its reference back where it has to look again.
#[test]
fn the_output_has_one_owner_and_a_waiter_is_not_forgotten() {
    loom::model(|| {
        let task = Task::new();
        let runner = thread::spawn({
            let task = task.clone();
            move || task.finish()
        });
        // The task may be done before the last one: nothing keeps a user from trying again.
        let put = [1, 2, 3, 4].map(|waiter| task.put(waiter).1);
        let _ = task.take_back();
        let freed = task.leave();
        assert!(freed ^ runner.join().unwrap());
        assert_eq!(task.taken(), [false, put[0], put[1], put[2], put[3]].map(u32::from));
    });
}

/// A handle that keeps its waiter there is woken, and may free the task before the runner has come to the wake.
///
/// Planted: as above; `complete` that keeps its reference where it wakes.
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
        if found == OnJoin::Done || task.refs.is_done() {
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

/// A waker that the owner counted is dropped elsewhere while the task ends and its handle goes: freed once, by the
/// last.
///
/// Fails when `complete` forgets `local`, when `release` frees before DONE, or is Relaxed.
#[test]
fn the_last_reference_frees_and_it_frees_once() {
    loom::model(|| {
        let task = Task::new();
        task.local.retain(&task.refs);
        let waker = thread::spawn({
            let task = task.clone();
            move || task.release()
        });
        let handle = thread::spawn({
            let task = task.clone();
            move || task.leave()
        });
        task.local.retain(&task.refs);
        task.local.release(&task.refs);
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
