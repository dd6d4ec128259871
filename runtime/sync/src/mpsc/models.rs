//! Models of a channel: every order of the steps of two or three threads.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::future::block_on;
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;

use super::*;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(f);
}

/// The receiver is woken for each message, handed over or queued, and for the end.
///
/// Fails if `hand` stores `is_full` Relaxed, if `Chan::wait` does not look again under the lock, or if `prepare` takes
/// CALLING for EMPTY.
#[test]
fn seat_messages_and_the_end_wake_the_receiver() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        let sending = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        block_on(async {
            assert_eq!(receiver.recv().await, Some(1));
            assert_eq!(receiver.recv().await, Some(2));
            assert_eq!(receiver.recv().await, None);
        });
        sending.join().unwrap();
    });
}

/// Two callers at once, of which the second finds the spare waker of a receiver that came back early. Then the receiver
/// moves to another task, when both may still be calling. (That `prepare` must not sit down in place while CALLING is
/// shown by argument: what a waker still does after the wake took effect is no step of the model.)
///
/// Fails if edge 4 is Relaxed, or if `sit` with a spare does not seat the receiver.
#[test]
fn seat_two_senders_lose_nothing() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        let other = sender.clone();
        let sending = thread::spawn(move || other.send(1).unwrap());
        let more = thread::spawn(move || sender.send(2).unwrap());
        let sum = block_on(async { receiver.recv().await.unwrap() + receiver.recv().await.unwrap() });
        assert_eq!(sum, 3);
        let _ = receiver.poll_recv(&mut Context::from_waker(Waker::noop()));
        sending.join().unwrap();
        more.join().unwrap();
    });
}

/// A waker that must not end while it wakes.
#[derive(Default)]
struct Touched(Arc<AtomicBool>);

impl Wake for Touched {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let has_ended = self.0.clone();
        thread::yield_now();
        assert!(!has_ended.load(Relaxed), "it ends while it is called");
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A receiver that looks before its sender has called it, sits down again, and goes: the call may be going on.
///
/// Fails if `Chan::deliver` hands the message over before it announces the call.
#[test]
fn seat_a_waker_outlives_its_call() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        let kept = sender.downgrade(); // so that the channel goes last
        let waker = Waker::from(Arc::new(Touched::default()));
        let cx = &mut Context::from_waker(&waker);
        assert!(receiver.poll_recv(cx).is_pending());
        let sending = thread::spawn(move || drop(sender.send(1)));
        if receiver.poll_recv(cx).is_ready() {
            let _ = receiver.poll_recv(cx);
        }
        drop(receiver);
        drop(waker);
        sending.join().unwrap();
        drop(kept);
    });
}

/// A receiver that moves to another task takes its wake along.
#[test]
fn seat_a_receiver_moves_between_tasks() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let sending = thread::spawn(move || block_on(sender.send(1)).unwrap());
        let first = receiver.poll_recv(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(message) = first {
            assert_eq!(message, Some(1));
        } else {
            assert_eq!(block_on(receiver.recv()), Some(1));
        }
        sending.join().unwrap();
    });
}

/// Room that comes back wakes the sender that waits for it.
#[test]
fn a_full_channel_goes_on() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let sending = thread::spawn(move || block_on(sender.send(2)).unwrap());
        block_on(async {
            assert_eq!(receiver.recv().await, Some(1));
            assert_eq!(receiver.recv().await, Some(2));
            assert_eq!(receiver.recv().await, None);
        });
        sending.join().unwrap();
    });
}

/// Closing wakes the senders that wait for room; what was reserved still arrives, and the receiver waits for it.
///
/// Fails if `Chan::take_back` does not call the receiver.
#[test]
fn a_closed_channel_ends_when_reservations_are_back() {
    for is_used in [true, false] {
        model(move || {
            let (sender, mut receiver) = channel(1);
            let _other = sender.clone(); // the end is not that of the last sender
            let sending = thread::spawn(move || {
                if let Ok(room) = sender.try_reserve() {
                    if is_used {
                        room.send(7)
                    } else {
                        drop(room)
                    }
                    return is_used;
                }
                false
            });
            receiver.close();
            let received = block_on(receiver.recv());
            assert_eq!(received.is_some(), sending.join().unwrap());
        });
    }
}

/// The last sender and the receiver may go at the same time: an unreceived message is dropped, though the channel still
/// exists.
#[test]
fn both_ends_go_at_once() {
    for is_seated in [true, false] {
        model(move || {
            let (sender, mut receiver) = unbounded_channel();
            let kept = sender.downgrade(); // so that the channel goes last
            if is_seated {
                assert!(receiver.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            let message = Arc::new(());
            let sent = message.clone();
            let sending = thread::spawn(move || drop(sender.send(sent)));
            drop(receiver);
            sending.join().unwrap();
            assert_eq!(Arc::strong_count(&message), 1, "nobody keeps the message");
            drop(kept);
        });
    }
}

/// A receiver that is seated and looks, as `try_recv` does, finds what was handed over before what was queued, and
/// before the end.
///
/// Fails if `Chan::pop` or `pop_chunk` does not look into the seat under the lock.
#[test]
fn seat_what_is_handed_over_comes_first() {
    for is_bounded in [true, false] {
        model(move || {
            let mut expected = 1;
            let mut check = |received: Result<u32, error::TryRecvError>| match received {
                Ok(message) => {
                    assert_eq!(message, expected);
                    expected += 1;
                }
                Err(error) => assert!(expected > 2 || error == error::TryRecvError::Empty),
            };
            let noop = &mut Context::from_waker(Waker::noop());
            if is_bounded {
                let (sender, mut receiver) = channel(2);
                assert!(receiver.poll_recv(noop).is_pending());
                let sending = thread::spawn(move || (1..=2).for_each(|n| sender.try_send(n).unwrap()));
                check(receiver.try_recv());
                sending.join().unwrap();
                (0..2).for_each(|_| check(receiver.try_recv()));
            } else {
                let (sender, mut receiver) = unbounded_channel();
                assert!(receiver.poll_recv(noop).is_pending());
                let sending = thread::spawn(move || (1..=2).for_each(|n| sender.send(n).unwrap()));
                check(receiver.try_recv());
                sending.join().unwrap();
                (0..2).for_each(|_| check(receiver.try_recv()));
            }
            assert_eq!(expected, 3);
        });
    }
}
