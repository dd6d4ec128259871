//! Models of what the primitives promise, in all orders of their steps; run by `tests/models/run.sh loom`.
//!
//! The lock is loom's mutex here. A model that ends has found no task that waits for ever: loom fails where all wait.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::{model, thread};

use crate::broadcast::error::RecvError;
use crate::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, watch};

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
fn who_joins_between_two_grants_takes_nothing_from_the_others() {
    model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let mut first = Box::pin(semaphore.acquire());
        let mut second = Box::pin(semaphore.acquire());
        assert!(poll_once(first.as_mut()).is_pending() && poll_once(second.as_mut()).is_pending());
        let joins = thread::spawn({
            let semaphore = semaphore.clone();
            move || block_on(semaphore.acquire()).unwrap().forget()
        });
        semaphore.add_permits(3);
        let permits = [poll_once(first), poll_once(second)];
        assert!(permits.iter().all(Poll::is_ready));
        joins.join().unwrap();
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
                assert!(guard.downgrade().get() > 0);
            }
        });
        let reads = thread::spawn({
            let lock = lock.clone();
            move || assert!(block_on(lock.read()).get() <= 2)
        });
        block_on(lock.write()).add();
        writes.join().unwrap();
        reads.join().unwrap();
        assert_eq!(block_on(lock.write()).get(), 2);
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

#[test]
fn a_barrier_lets_all_go_and_one_leads() {
    model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let comes = thread::spawn({
            let barrier = barrier.clone();
            move || block_on(barrier.wait()).is_leader()
        });
        assert_ne!(block_on(barrier.wait()).is_leader(), comes.join().unwrap());
    });
}

#[test]
fn who_gives_up_at_a_barrier_has_not_come() {
    model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let is_over = Arc::new(AtomicBool::new(false));
        let gives_up = thread::spawn({
            let (barrier, is_over) = (barrier.clone(), is_over.clone());
            move || {
                let led = matches!(poll_once(barrier.wait()), Poll::Ready(result) if result.is_leader());
                is_over.store(!led, Ordering::Release);
                led
            }
        });
        let had_given_up = is_over.load(Ordering::Acquire);
        let mut waiting = Box::pin(barrier.wait());
        let was_alone = poll_once(waiting.as_mut()).is_pending();
        assert!(was_alone || !had_given_up);
        if gives_up.join().unwrap() {
            // The two have met.
            assert!(!was_alone || poll_once(waiting.as_mut()).is_ready());
        } else if was_alone {
            // The other one has given up, so this one waits for one more.
            assert!(poll_once(waiting.as_mut()).is_pending());
            assert!(poll_once(barrier.wait()).is_ready());
        }
        drop(waiting);
        assert!(format!("{barrier:?}").ends_with("arrived: 0 }"));
    });
}

#[test]
fn a_value_is_made_once_and_all_get_it() {
    model(|| {
        let (cell, makes) = (Arc::new(OnceCell::new()), Arc::new(Checked::new()));
        let get = {
            let (cell, makes) = (cell.clone(), makes.clone());
            move || {
                let make = || async {
                    makes.add();
                    7
                };
                assert_eq!(block_on(cell.get_or_init(make)), &7);
            }
        };
        let others = [thread::spawn(get.clone()), thread::spawn(get.clone())];
        get();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(makes.get(), 1);
    });
}

#[test]
fn a_maker_that_gives_up_passes_the_right_on() {
    model(|| {
        let cell = Arc::new(OnceCell::new());
        let gives_up = thread::spawn({
            let cell = cell.clone();
            move || drop(poll_once(cell.get_or_init(std::future::pending)))
        });
        let other = thread::spawn({
            let cell = cell.clone();
            move || assert_eq!(block_on(cell.get_or_init(|| async { 7 })), &7)
        });
        assert_eq!(block_on(cell.get_or_init(|| async { 7 })), &7);
        gives_up.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_value_gets_it() {
    model(|| {
        let cell = Arc::new(SetOnce::new());
        let sets = thread::spawn({
            let cell = cell.clone();
            move || cell.set(7).unwrap()
        });
        let waits = thread::spawn({
            let cell = cell.clone();
            move || assert_eq!(block_on(cell.wait()), &7)
        });
        assert_eq!(block_on(cell.wait()), &7);
        sets.join().unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn the_last_value_is_seen_and_then_the_end() {
    model(|| {
        let (sender, mut receiver) = watch::channel(0);
        let sends = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        let mut last = 0;
        while block_on(receiver.changed()).is_ok() {
            let value = receiver.borrow_and_update();
            assert!(*value >= last);
            last = *value;
        }
        assert_eq!(last, 2);
        sends.join().unwrap();
    });
}

#[test]
fn a_sender_learns_that_the_receivers_are_gone() {
    model(|| {
        let (sender, receiver) = watch::channel(0);
        let drops = thread::spawn({
            let other = receiver.clone();
            move || drop(other)
        });
        let other = thread::spawn(move || drop(receiver));
        block_on(sender.closed());
        assert_eq!(sender.receiver_count(), 0);
        drops.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn each_receiver_gets_each_message_and_then_the_end() {
    model(|| {
        let (sender, mut receiver) = broadcast::channel(2);
        let mut other = receiver.resubscribe();
        let sends = thread::spawn(move || {
            sender.send(Arc::new(1)).unwrap();
            sender.send(Arc::new(2)).unwrap();
            sender
        });
        let receives = thread::spawn(move || {
            assert_eq!(block_on(other.recv()).as_deref(), Ok(&1));
        });
        let first = block_on(receiver.recv()).unwrap();
        let second = block_on(receiver.recv()).unwrap();
        assert_eq!((*first, *second), (1, 2));
        drop(sends.join().unwrap());
        assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
        receives.join().unwrap();
        // Nothing is kept for the receiver that left early.
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
    });
}

#[test]
fn a_receiver_that_lags_knows_how_many_it_missed() {
    model(|| {
        let (sender, mut receiver) = broadcast::channel(1);
        let leaves = receiver.resubscribe();
        let leaves = thread::spawn(move || drop(leaves));
        let sends = thread::spawn(move || (0..3).for_each(|n| assert!(sender.send(n).is_ok())));
        let mut expected = 0;
        loop {
            match block_on(receiver.recv()) {
                Ok(message) => {
                    assert_eq!(message, expected);
                    expected += 1;
                }
                Err(RecvError::Lagged(missed)) => expected += missed,
                Err(RecvError::Closed) => break,
            }
        }
        assert_eq!(expected, 3);
        sends.join().unwrap();
        leaves.join().unwrap();
    });
}
