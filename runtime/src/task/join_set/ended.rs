//! The ended tasks of a set: a list of their numbers, filled by the runners of the tasks.
//!
//! Called by the set, which empties it, and by the tasks' ends, through wakers. The lock is held for a few
//! instructions; no user code runs under it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};

use mini_kernel::primitives::{Mutex, lock};

/// The tasks of one set that have ended and have not been joined.
#[derive(Default)]
pub(super) struct Ended {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    numbers: VecDeque<u32>,
    waiter: Option<Waker>,
}

/// Tells the set that one of its tasks has ended: the waker of that task's handle.
struct EndWaker {
    ended: Arc<Ended>,
    number: u32,
}

impl Wake for EndWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Called once, by the runner of the task, after the output is in place.
    fn wake_by_ref(self: &Arc<Self>) {
        self.ended.push(self.number);
    }
}

impl Ended {
    /// The waker for the handle of the task `number`: adds that number when it is woken.
    pub(super) fn waker(self: &Arc<Self>, number: u32) -> Waker {
        Arc::new(EndWaker { ended: self.clone(), number }).into()
    }

    /// Wakes the task that waits for the set.
    pub(super) fn wake(&self) {
        let waiter = lock(&self.list).waiter.take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Adds a task, and wakes the one that waits for the set.
    pub(super) fn push(&self, number: u32) {
        let mut list = lock(&self.list);
        list.numbers.push_back(number);
        let waiter = list.waiter.take();
        drop(list);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Moves all numbers into `taken`, which is empty; if there are none, `waiter` is woken when a task ends.
    pub(super) fn take_or_wait(&self, taken: &mut VecDeque<u32>, waiter: Option<Waker>) {
        let mut list = lock(&self.list);
        std::mem::swap(&mut list.numbers, taken);
        let displaced = match waiter {
            Some(waiter) if taken.is_empty() => list.waiter.replace(waiter),
            unused => unused,
        };
        drop(list);
        drop(displaced); // user code: after the lock
    }
}
