//! Tests of the promises of a channel to all receivers.

mod by_hand;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use by_hand::{calling, now, spawn};
use mini_sync::broadcast::error::{RecvError, TryRecvError};
use mini_sync::broadcast::{self, Receiver, Sender};

#[test]
fn each_receiver_gets_each_message_in_order() {
    let (sender, mut one) = broadcast::channel(4);
    let mut two = sender.subscribe();
    assert_eq!(one.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(sender.send(1).unwrap(), 2);
    sender.send(2).unwrap();
    for receiver in [&mut one, &mut two] {
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(now(receiver.recv()), Ok(2));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    }
}

#[test]
fn who_subscribes_later_gets_what_is_sent_later() {
    let (sender, mut one) = broadcast::channel(4);
    sender.send(1).unwrap();
    let (mut two, mut three) = (sender.subscribe(), one.resubscribe());
    sender.send(2).unwrap();
    assert_eq!((one.try_recv(), two.try_recv(), three.try_recv()), (Ok(1), Ok(2), Ok(2)));
}

#[test]
fn all_who_wait_are_woken_by_a_message() {
    let (sender, first) = broadcast::channel(4);
    let mut receivers: Vec<_> = (0..100).map(|_| first.resubscribe()).collect();
    let mut waiting: Vec<_> = receivers.iter_mut().map(|one| spawn(one.recv())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    sender.send(1).unwrap();
    assert!(waiting.iter_mut().all(|one| one.wakes() == 1 && one.ready() == Ok(1)));
}

#[test]
fn a_waiter_may_leave_or_move_to_another_task() {
    let (sender, mut one) = broadcast::channel(4);
    let mut two = sender.subscribe();
    let (mut leaves, mut moves) = (spawn(one.recv()), spawn(two.recv()));
    leaves.waits();
    moves.waits();
    drop(leaves);
    assert!(moves.move_and_poll().is_pending());
    sender.send(1).unwrap();
    assert_eq!(moves.wakes(), 1);
    assert_eq!(one.try_recv(), Ok(1));
}

#[test]
fn a_future_dropped_after_a_message_came_has_not_taken_it() {
    let (sender, mut receiver) = broadcast::channel(4);
    let mut waiting = spawn(receiver.recv());
    waiting.waits();
    sender.send(1).unwrap();
    drop(waiting);
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn a_receiver_that_falls_behind_is_told_once_and_goes_on_with_the_oldest() {
    let (sender, mut receiver) = broadcast::channel(2);
    (1..=5).for_each(|n| assert!(sender.send(n).is_ok()));
    assert_eq!(receiver.len(), 5);
    assert_eq!(now(receiver.recv()), Err(RecvError::Lagged(3)));
    assert_eq!(receiver.len(), 2);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(4), Ok(5)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    (6..=8).for_each(|n| assert!(sender.send(n).is_ok()));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(receiver.try_recv(), Ok(7));
}

#[test]
fn a_receiver_that_lags_and_lags_again_before_it_goes_on_is_told_twice() {
    let (sender, mut receiver) = broadcast::channel(1);
    (1..=2).for_each(|n| assert!(sender.send(n).is_ok()));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    sender.send(3).unwrap();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(receiver.try_recv(), Ok(3));
}

#[test]
fn a_receiver_that_is_slow_and_not_behind_misses_nothing() {
    let (sender, mut slow) = broadcast::channel(2);
    let mut quick = sender.subscribe();
    sender.send(1).unwrap();
    assert_eq!(quick.try_recv(), Ok(1));
    sender.send(2).unwrap();
    assert_eq!((slow.try_recv(), slow.try_recv()), (Ok(1), Ok(2)));
    (3..=5).for_each(|n| {
        sender.send(n).unwrap();
        assert_eq!(quick.try_recv(), if n == 3 { Ok(2) } else { Ok(n - 1) });
    });
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(quick.try_recv(), Ok(5));
}

#[test]
fn the_capacity_is_the_next_power_of_two() {
    let (sender, mut receiver) = broadcast::channel(3);
    (1..=4).for_each(|n| assert!(sender.send(n).is_ok()));
    assert_eq!(receiver.try_recv(), Ok(1));
    (5..=6).for_each(|n| assert!(sender.send(n).is_ok()));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(receiver.try_recv(), Ok(3));
}

#[test]
#[should_panic(expected = "at least one message")]
fn a_channel_that_keeps_nothing_is_refused() {
    broadcast::channel::<u8>(0);
}

#[test]
#[should_panic(expected = "at most")]
fn a_channel_that_keeps_too_much_is_refused() {
    broadcast::channel::<u8>(usize::MAX / 2 + 1);
}

#[test]
fn a_message_without_a_receiver_comes_back() {
    let (sender, receiver) = broadcast::channel(2);
    drop(receiver);
    assert_eq!(sender.send("one").unwrap_err().0, "one");
    let mut receiver = sender.subscribe();
    sender.send("two").unwrap();
    assert_eq!(receiver.try_recv(), Ok("two"));
}

#[test]
fn the_end_comes_after_what_is_kept() {
    let (sender, mut receiver) = broadcast::channel(2);
    (1..=3).for_each(|n| assert!(sender.send(n).is_ok()));
    drop(sender);
    assert!(receiver.is_closed());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!((now(receiver.recv()), now(receiver.recv())), (Ok(2), Ok(3)));
    assert_eq!(now(receiver.recv()), Err(RecvError::Closed));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(receiver.resubscribe().try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn receivers_are_woken_when_the_last_sender_is_gone() {
    let (sender, mut receiver) = broadcast::channel::<u8>(2);
    let other = sender.clone();
    assert!(other.same_channel(&sender));
    let mut waiting = spawn(receiver.recv());
    waiting.waits();
    drop(sender);
    assert_eq!(waiting.wakes(), 0);
    drop(other);
    assert_eq!(waiting.wakes(), 1);
    assert_eq!(waiting.ready(), Err(RecvError::Closed));
}

#[test]
fn a_message_is_dropped_when_all_have_got_it_or_gone() {
    let (sender, mut one) = broadcast::channel(4);
    let two = sender.subscribe();
    let message = Arc::new(());
    sender.send(message.clone()).unwrap();
    drop(one.try_recv().unwrap());
    assert_eq!((Arc::strong_count(&message), sender.len()), (2, 1));
    drop(two);
    assert_eq!((Arc::strong_count(&message), sender.len()), (1, 0));
    sender.send(message.clone()).unwrap();
    drop(one);
    assert_eq!(Arc::strong_count(&message), 1);
    let receiver = sender.subscribe();
    sender.send(message.clone()).unwrap();
    drop((sender, receiver));
    assert_eq!(Arc::strong_count(&message), 1);
}

#[test]
fn an_overwritten_message_is_dropped() {
    let (sender, receiver) = broadcast::channel(1);
    let message = Arc::new(());
    sender.send(message.clone()).unwrap();
    sender.send(Arc::new(())).unwrap();
    assert_eq!(Arc::strong_count(&message), 1);
    drop(receiver);
    assert!(sender.is_empty());
}

#[test]
fn the_last_receiver_gets_the_message_itself() {
    #[derive(Debug)]
    struct Counts(Arc<AtomicUsize>);
    impl Clone for Counts {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::Relaxed);
            Self(self.0.clone())
        }
    }
    let (sender, mut one) = broadcast::channel(1);
    let mut two = sender.subscribe();
    let clones = Arc::new(AtomicUsize::new(0));
    sender.send(Counts(clones.clone())).unwrap();
    drop(one.try_recv().unwrap());
    assert_eq!(clones.load(Ordering::Relaxed), 1);
    drop(two.try_recv().unwrap());
    assert_eq!(clones.load(Ordering::Relaxed), 1);
}

#[test]
fn a_clone_that_panics_loses_that_message_alone() {
    #[derive(Debug, PartialEq)]
    struct Picky(u8);
    impl Clone for Picky {
        fn clone(&self) -> Self {
            if self.0 == 0 {
                resume_unwind(Box::new(()));
            }
            Self(self.0)
        }
    }
    let (sender, mut one) = broadcast::channel(4);
    let mut two = sender.subscribe();
    sender.send(Picky(0)).unwrap();
    sender.send(Picky(1)).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(one.try_recv()))).is_err());
    assert_eq!(one.try_recv(), Ok(Picky(1)));
    assert_eq!((two.try_recv(), two.try_recv()), (Ok(Picky(0)), Ok(Picky(1))));
}

#[test]
fn messages_are_cloned_and_dropped_without_the_lock() {
    #[derive(Debug)]
    struct Uses(Option<Sender<Uses>>);
    impl Uses {
        fn channel(&self) {
            self.0.iter().for_each(|sender| assert!(sender.receiver_count() < 10));
        }
    }
    impl Clone for Uses {
        fn clone(&self) -> Self {
            self.channel();
            Self(self.0.clone())
        }
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            self.channel();
        }
    }
    let (sender, mut one) = broadcast::channel(1);
    let two = sender.subscribe();
    sender.send(Uses(Some(sender.clone()))).unwrap();
    drop(one.try_recv().unwrap());
    sender.send(Uses(Some(sender.clone()))).unwrap();
    drop((one, two));
    assert!(sender.send(Uses(Some(sender.clone()))).is_err());
}

#[test]
fn wakers_are_called_and_dropped_without_the_lock() {
    struct Sends(Sender<u8>);
    impl Drop for Sends {
        fn drop(&mut self) {
            let _ = self.0.send(9);
        }
    }
    let (sender, mut receiver) = broadcast::channel(4);
    let sends = Sends(sender.clone());
    let waker = calling(move || assert!(sends.0.send(8).is_ok()));
    let mut waiting = Box::pin(receiver.recv());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    sender.send(7).unwrap();
    drop(waiting);
    assert_eq!([receiver.try_recv(), receiver.try_recv(), receiver.try_recv()], [Ok(7), Ok(8), Ok(9)]);
}

#[test]
fn a_sender_knows_when_all_receivers_are_gone() {
    let (sender, receiver) = broadcast::channel::<u8>(2);
    let other = receiver.resubscribe();
    assert!(receiver.same_channel(&other));
    let mut closed = spawn(sender.closed());
    closed.waits();
    drop(receiver);
    assert_eq!((closed.wakes(), sender.receiver_count()), (0, 1));
    drop(other);
    assert_eq!(closed.wakes(), 1);
    closed.ready();
}

#[test]
fn a_channel_without_receivers_opens_again_with_one() {
    let sender = Sender::<u8>::new(1);
    now(sender.closed());
    let receiver = sender.subscribe();
    let mut closed = spawn(sender.closed());
    closed.waits();
    drop(receiver);
    let _receiver = sender.subscribe();
    closed.waits();
}

#[test]
fn a_channel_is_empty_when_its_last_receiver_is_gone() {
    let (sender, receiver) = broadcast::channel(1);
    sender.send(()).unwrap();
    let waker = calling({
        let sender = sender.clone();
        move || {
            assert_eq!((sender.receiver_count(), sender.len()), (0, 0));
            assert!(sender.send(()).is_err());
        }
    });
    let mut closed = Box::pin(sender.closed());
    assert!(closed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(receiver);
    assert!(closed.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn a_message_whose_drop_panics_does_not_hide_that_the_receivers_are_gone() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            resume_unwind(Box::new(()));
        }
    }
    let sender = Sender::new(1);
    let receiver = sender.subscribe();
    let _ = sender.send(Panics);
    let mut closed = spawn(sender.closed());
    closed.waits();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert_eq!(closed.wakes(), 1);
}

#[test]
fn len_counts_what_is_owed_to_somebody() {
    let (sender, mut one) = broadcast::channel(8);
    let mut two = sender.subscribe();
    for sent in 0..20 {
        sender.send(sent).unwrap();
        if sent % 3 == 0 {
            let _ = one.try_recv();
        }
        if sent % 5 == 0 {
            let _ = two.try_recv();
        }
        assert_eq!(sender.len(), one.len().max(two.len()).min(8));
    }
    while one.try_recv() != Err(TryRecvError::Empty) {}
    assert_eq!(sender.len(), 8);
    while two.try_recv() != Err(TryRecvError::Empty) {}
    assert!(sender.is_empty() && one.is_empty());
}

#[test]
fn a_weak_sender_keeps_no_channel_open() {
    let (sender, mut receiver) = broadcast::channel(2);
    let weak = sender.downgrade();
    weak.upgrade().unwrap().send(1).unwrap();
    assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
    let other = weak.clone();
    assert_eq!((receiver.sender_strong_count(), receiver.sender_weak_count()), (1, 2));
    assert_eq!((sender.strong_count(), sender.weak_count()), (1, 2));
    drop((sender, weak));
    assert_eq!((other.strong_count(), other.weak_count()), (0, 1));
    assert!(other.upgrade().is_none());
    assert_eq!((now(receiver.recv()), now(receiver.recv())), (Ok(1), Err(RecvError::Closed)));
}

#[test]
fn loops_over_a_channel_let_others_run() {
    let (sender, mut receiver) = broadcast::channel(1);
    let mut busy = spawn(async {
        loop {
            sender.send(1).unwrap();
            receiver.recv().await.unwrap();
        }
    });
    assert!(matches!(busy.poll(), Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
}

#[test]
fn threads_get_all_messages_or_know_how_many_they_missed() {
    let messages: u64 = if cfg!(miri) { 30 } else { 5_000 };
    let (sender, receiver) = broadcast::channel(4);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let mut receiver = receiver.resubscribe();
            thread::spawn(move || {
                let mut expected = 0;
                loop {
                    match receiver.blocking_recv() {
                        Ok(message) => {
                            assert_eq!(message, expected);
                            expected += 1;
                        }
                        Err(RecvError::Lagged(missed)) => expected += missed,
                        Err(RecvError::Closed) => return expected,
                    }
                }
            })
        })
        .collect();
    (0..messages).for_each(|n| assert!(sender.send(n).is_ok()));
    drop(sender);
    threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), messages));
}

const fn is_send_sync<T: Send + Sync>() {}
const _: () = is_send_sync::<Sender<Cell<u8>>>();
const _: () = is_send_sync::<Receiver<Cell<u8>>>();
