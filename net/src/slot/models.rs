//! The promises of a slot to its waiters, under loom.

use std::task::{Context, Poll, Wake};

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::primitives::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts its wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn waker() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), count.into())
}

/// What the driver does with an event.
fn deliver(slot: &Slot, ready: Ready) {
    let mut woken = Vec::new();
    slot.set(ready, &mut woken);
    woken.into_iter().for_each(Waker::wake);
}

/// The kernel reports while a task leaves its waker: the task sees the report, or is woken.
///
/// Planted: no second look after the waker is left in `Slot::wait`; wakers taken before the word is set in `Slot::set`.
#[test]
fn an_event_is_seen_or_wakes() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(Ready::EMPTY));
        let driver = {
            let slot = slot.clone();
            thread::spawn(move || deliver(&slot, Ready::READABLE))
        };
        let (count, waker) = waker();
        let mut key = Key::default();
        let poll = slot.poll_ready(&mut Context::from_waker(&waker), Interest::READABLE, Some(&mut key));
        driver.join().unwrap();
        assert!(poll.is_ready() || count.0.load(Relaxed) == 1, "a task sleeps, and nobody has woken it");
        assert_eq!(slot.waiting(), 0);
    });
}

/// An operation finds nothing, and clears, while the kernel reports new data: the report stays.
///
/// Planted: no comparison of the ticks in `Word::clear`; a tick that `Word::set` doesn't move on.
#[test]
fn what_comes_after_a_look_is_not_cleared() {
    loom::model(|| {
        let shared = Arc::new((Slot::new(Ready::READABLE), AtomicUsize::new(0)));
        let driver = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.store(1, Relaxed); // data in the kernel's buffer
                deliver(&shared.0, Ready::READABLE);
            })
        };
        let seen = shared.0.seen();
        let mut has_data = shared.1.load(Relaxed) == 1;
        if !has_data {
            shared.0.clear(seen, Ready::READABLE);
        }
        driver.join().unwrap();
        has_data |= shared.0.seen().ends(Interest::READABLE);
        assert!(has_data, "an edge was lost");
    });
}

/// One waiter goes while the kernel reports, and another stays: the second is woken, and no waiter is left behind.
///
/// Planted: `Slot::set` that takes only the first waiter whose wait is over.
#[test]
fn a_waiter_that_goes_takes_no_wake_along() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(Ready::EMPTY));
        let (gone, stays) = (waker(), waker());
        let (mut key, mut other) = (Key::default(), Key::default());
        let poll = |waker: &Waker, key: &mut Key| {
            slot.poll_ready(&mut Context::from_waker(waker), Interest::READABLE, Some(key))
        };
        assert_eq!(poll(&gone.1, &mut key), Poll::Pending);
        assert_eq!(poll(&stays.1, &mut other), Poll::Pending);
        let driver = {
            let slot = slot.clone();
            thread::spawn(move || deliver(&slot, Ready::READABLE))
        };
        slot.forget(&mut key);
        driver.join().unwrap();
        assert_eq!(stays.0.0.load(Relaxed), 1);
        assert!(gone.0.0.load(Relaxed) <= 1);
        assert_eq!(slot.waiting(), 0);
    });
}

/// A woken future polls again while the driver is still at the slot, and just drops its key: no waiter stays in the
/// list, though the future did not take it out.
///
/// Planted: the key dropped as well after the second look, which the driver's turn may precede (`Slot::wait`).
#[test]
fn a_key_may_be_dropped_once_the_wait_is_over() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(Ready::EMPTY));
        let driver = {
            let slot = slot.clone();
            thread::spawn(move || deliver(&slot, Ready::READABLE))
        };
        let (_count, waker) = waker();
        let mut key = Key::default();
        for _ in 0..2 {
            let mut cx = Context::from_waker(&waker);
            if slot.poll_ready(&mut cx, Interest::READABLE, Some(&mut key)).is_ready() {
                break;
            }
        }
        driver.join().unwrap();
        assert_eq!(slot.waiting(), 0);
    });
}
