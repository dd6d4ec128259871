//! Models of what the primitives promise, in all orders of their steps; run by `tests/models/run.sh loom`.
//!
//! The lock is loom's mutex here. A model that ends has found nobody who waits for ever: loom fails where all wait.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::thread;

use crate::{Mutex, Notify, RwLock, Semaphore};

fn model(f: impl Fn() + Send + Sync + 'static) {
    loom::model(move || {
        // The budget is the thread's, and loom runs all orders on one thread.
        mini_context::swap_budget(mini_context::BUDGET);
        f();
    });
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A value whose use loom checks.
struct Checked(UnsafeCell<usize>);

// SAFETY: loom fails the model if two threads use it at once.
unsafe impl Sync for Checked {}

impl Checked {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self) {
        // SAFETY: loom looks after that.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    fn get(&self) -> usize {
        // SAFETY: loom looks after that.
        self.0.with(|value| unsafe { *value })
    }
}

#[test]
fn a_permit_is_taken_cancelled_and_released_and_not_lost() {
    model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let takes = thread::spawn({
            let semaphore = semaphore.clone();
            move || drop(block_on(semaphore.acquire()))
        });
        let cancels = thread::spawn({
            let semaphore = semaphore.clone();
            move || drop(poll_once(semaphore.acquire()))
        });
        drop(block_on(semaphore.acquire()));
        takes.join().unwrap();
        cancels.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn what_was_kept_for_a_cancelled_waiter_reaches_the_next() {
    model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let cancels = thread::spawn({
            let semaphore = semaphore.clone();
            move || drop(poll_once(semaphore.acquire_many(2)))
        });
        let adds = thread::spawn({
            let semaphore = semaphore.clone();
            move || semaphore.add_permits(1)
        });
        drop(block_on(semaphore.acquire_many(2)));
        cancels.join().unwrap();
        adds.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_close_wakes_who_waits_and_loses_no_permit() {
    model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let closes = thread::spawn({
            let semaphore = semaphore.clone();
            move || semaphore.close()
        });
        let releases = thread::spawn({
            let semaphore = semaphore.clone();
            move || drop(block_on(semaphore.acquire()))
        });
        assert!(block_on(semaphore.acquire_many(2)).is_err());
        closes.join().unwrap();
        releases.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn mutex_is_held_by_one() {
    model(|| {
        let mutex = Arc::new(Mutex::new(Checked::new()));
        let add = {
            let mutex = mutex.clone();
            move || block_on(mutex.lock()).add()
        };
        let others = [thread::spawn(add.clone()), thread::spawn(add.clone())];
        add();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(block_on(mutex.lock()).get(), 3);
    });
}

#[test]
fn rwlock_is_held_by_one_writer_or_by_readers() {
    model(|| {
        let lock = Arc::new(RwLock::with_max_readers(Checked::new(), 2));
        let writes = thread::spawn({
            let lock = lock.clone();
            move || {
                let guard = block_on(lock.write());
                guard.add();
                assert_eq!(guard.downgrade().get(), 1);
            }
        });
        let reads = thread::spawn({
            let lock = lock.clone();
            move || assert!(block_on(lock.read()).get() <= 1)
        });
        assert!(block_on(lock.read()).get() <= 1);
        writes.join().unwrap();
        reads.join().unwrap();
        assert_eq!(block_on(lock.write()).get(), 1);
    });
}

#[test]
fn a_notification_of_one_is_not_lost() {
    model(|| {
        let notify = Arc::new(Notify::new());
        let notifies = thread::spawn({
            let notify = notify.clone();
            move || notify.notify_one()
        });
        block_on(notify.notified());
        notifies.join().unwrap();
        assert!(poll_once(notify.notified()).is_pending());
    });
}

#[test]
fn a_cancelled_waiter_passes_its_notification_on() {
    model(|| {
        let notify = Arc::new(Notify::new());
        let cancels = thread::spawn({
            let notify = notify.clone();
            move || {
                if poll_once(notify.notified()).is_ready() {
                    notify.notify_one();
                }
            }
        });
        let waits = thread::spawn({
            let notify = notify.clone();
            move || block_on(notify.notified())
        });
        notify.notify_one();
        waits.join().unwrap();
        cancels.join().unwrap();
    });
}

#[test]
fn a_notification_of_all_reaches_every_future_made_before() {
    model(|| {
        let notify = Arc::new(Notify::new());
        let made = notify.clone().notified_owned();
        let notifies = thread::spawn({
            let notify = notify.clone();
            move || notify.notify_waiters()
        });
        let waits = thread::spawn(move || block_on(made));
        let _ = poll_once(notify.notified());
        notifies.join().unwrap();
        waits.join().unwrap();
        assert!(poll_once(notify.notified()).is_pending());
    });
}
