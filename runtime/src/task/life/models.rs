//! What a life promises about outputs, waiters and references, under loom.

use super::*;
use loom::{cell::UnsafeCell, sync::Arc, thread};

/// What a task has, as far as a life rules it.
struct Task {
    life: Life,
    local: Local,
    output: UnsafeCell<u32>,
    waiter: UnsafeCell<u32>,
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
            waiter: UnsafeCell::new(0),
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
        Self::write(&self.waiter, 99);
        true
    }

    /// What the runner does at the end of the future; says whether it freed the task.
    fn finish(&self) -> bool {
        Self::write(&self.output, 7);
        match self.life.complete(&self.local) {
            OnComplete::Nothing => return false,
            OnComplete::Wake => assert_eq!(Self::read(&self.waiter) & 3, 1),
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

/// The output is read by the handle xor dropped by one side; a waiter offered in time is woken; one side frees.
///
/// Fails when `complete` or `offer` is Relaxed, or when `withdraw` ignores DONE.
#[test]
fn the_output_has_one_owner_and_a_waiter_is_not_forgotten() {
    loom::model(|| {
        let task = Task::new();
        let runner = thread::spawn({
            let task = task.clone();
            move || task.finish()
        });
        let life = &task.life;
        let mut found = if life.is_done() { OnJoin::Done } else { OnJoin::Pending };
        if found == OnJoin::Pending {
            Task::write(&task.waiter, 1);
            found = life.offer();
        }
        if found == OnJoin::Pending {
            found = life.withdraw();
        }
        if found == OnJoin::Pending {
            Task::write(&task.waiter, 5);
            let _ = life.offer();
        }
        let freed = task.leave();
        assert!(freed ^ runner.join().unwrap());
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
