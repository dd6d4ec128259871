//! Tests of the promises of a channel that keeps the newest value.

mod by_hand;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use by_hand::{calling, now, spawn};
use mini_sync::watch::{self, Sender};

#[test]
fn the_first_value_is_there_and_counts_as_seen() {
    let (_sender, mut receiver) = watch::channel("one");
    assert_eq!(*receiver.borrow(), "one");
    assert!(!receiver.has_changed().unwrap());
    spawn(receiver.changed()).waits();
}

#[test]
fn a_receiver_can_be_made_while_the_value_is_changed() {
    let (sender, _receiver) = watch::channel(1);
    let mut made = None;
    sender.send_modify(|value| {
        made = Some(sender.subscribe());
        *value += 1;
    });
    let mut made = made.unwrap();
    assert_eq!((made.has_changed().unwrap(), *made.borrow_and_update()), (true, 2));
    assert!(!sender.subscribe().has_changed().unwrap());
}

#[test]
fn who_waits_is_woken_by_a_value() {
    let (sender, mut receiver) = watch::channel("one");
    let mut waiting = spawn(receiver.changed());
    waiting.waits();
    sender.send("two").unwrap();
    assert_eq!(waiting.wakes(), 1);
    waiting.ready().unwrap();
    drop(waiting);
    assert_eq!(*receiver.borrow(), "two");
    assert!(!receiver.has_changed().unwrap());
    spawn(receiver.changed()).waits();
}

#[test]
fn of_many_values_the_last_is_seen() {
    let (sender, mut receiver) = watch::channel(1);
    sender.send(2).unwrap();
    sender.send(3).unwrap();
    now(receiver.changed()).unwrap();
    assert_eq!(*receiver.borrow_and_update(), 3);
    spawn(receiver.changed()).waits();
}

#[test]
fn each_receiver_sees_the_value() {
    let (sender, receiver) = watch::channel(1);
    let mut receivers: Vec<_> = (0..100).map(|_| receiver.clone()).collect();
    let mut waiting: Vec<_> = receivers.iter_mut().map(|one| spawn(one.changed())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    sender.send(2).unwrap();
    assert!(waiting.iter_mut().all(|one| one.wakes() == 1 && one.ready().is_ok()));
}

#[test]
fn borrow_lets_a_value_count_as_not_seen_and_borrow_and_update_does_not() {
    let (sender, mut receiver) = watch::channel(1);
    assert!(!receiver.borrow().has_changed());
    sender.send(2).unwrap();
    assert!(receiver.borrow().has_changed());
    assert!(receiver.borrow_and_update().has_changed());
    assert!(!receiver.borrow_and_update().has_changed());
    assert!(!sender.borrow().has_changed());
    spawn(receiver.changed()).waits();
}

#[test]
fn a_value_can_be_marked() {
    let (sender, mut receiver) = watch::channel(1);
    receiver.mark_changed();
    assert!(receiver.has_changed().unwrap());
    now(receiver.changed()).unwrap();
    spawn(receiver.changed()).waits();
    sender.send(2).unwrap();
    receiver.mark_changed();
    assert!(receiver.has_changed().unwrap());
    receiver.mark_unchanged();
    assert!(!receiver.has_changed().unwrap());
    spawn(receiver.changed()).waits();
}

#[test]
fn a_clone_has_seen_what_its_original_has_and_a_subscriber_all() {
    let (sender, receiver) = watch::channel(1);
    sender.send(2).unwrap();
    assert!(receiver.clone().has_changed().unwrap());
    assert!(!sender.subscribe().has_changed().unwrap());
    assert!(receiver.same_channel(&sender.subscribe()));
    assert!(!receiver.same_channel(&watch::channel(1).1));
}

#[test]
fn send_without_a_receiver_leaves_the_value_and_send_replace_does_not() {
    let (sender, receiver) = watch::channel(1);
    drop(receiver);
    assert_eq!(sender.send(2).unwrap_err().0, 2);
    assert_eq!(*sender.borrow(), 1);
    assert_eq!(sender.send_replace(3), 1);
    assert_eq!(*sender.borrow(), 3);
}

#[test]
fn a_change_in_place_is_told_only_if_there_was_one() {
    let (sender, mut receiver) = watch::channel(1);
    let mut waiting = spawn(receiver.changed());
    waiting.waits();
    assert!(!sender.send_if_modified(|value| std::mem::replace(value, 2) == 2));
    assert_eq!(waiting.wakes(), 0);
    waiting.waits();
    assert!(sender.send_if_modified(|value| std::mem::replace(value, 2) == 2));
    assert_eq!(waiting.wakes(), 1);
}

#[test]
fn a_change_that_panics_is_not_told_and_harms_nobody() {
    let (sender, mut receiver) = watch::channel(1);
    let panics = AssertUnwindSafe(|| {
        sender.send_modify(|value| {
            *value = 2;
            resume_unwind(Box::new(()))
        })
    });
    assert!(catch_unwind(panics).is_err());
    spawn(receiver.changed()).waits();
    assert_eq!(*receiver.borrow(), 2);
    sender.send(3).unwrap();
    assert_eq!(*receiver.borrow_and_update(), 3);
}

#[test]
fn a_sender_knows_when_all_receivers_are_gone() {
    let (sender, receiver) = watch::channel(1);
    let other = receiver.clone();
    let mut closed = spawn(sender.closed());
    closed.waits();
    drop(receiver);
    assert_eq!((closed.wakes(), sender.is_closed()), (0, false));
    drop(other);
    assert_eq!(closed.wakes(), 1);
    closed.ready();
    assert!(sender.is_closed());
}

#[test]
fn a_channel_without_receivers_opens_again_with_one() {
    let sender = Sender::new(1);
    assert!(sender.is_closed());
    now(sender.closed());
    let receiver = sender.subscribe();
    assert_eq!((sender.is_closed(), sender.receiver_count()), (false, 1));
    spawn(sender.closed()).waits();
    drop(receiver);
    assert_eq!((sender.is_closed(), sender.receiver_count()), (true, 0));
}

#[test]
fn receivers_are_woken_when_the_last_sender_is_gone() {
    let (sender, mut receiver) = watch::channel(1);
    let other = sender.clone();
    assert!(other.same_channel(&sender));
    assert_eq!(sender.sender_count(), 2);
    let mut waiting = spawn(receiver.changed());
    waiting.waits();
    drop(sender);
    assert_eq!(waiting.wakes(), 0);
    drop(other);
    assert_eq!(waiting.wakes(), 1);
    assert!(waiting.ready().is_err());
    drop(waiting);
    assert!(receiver.is_closed());
    assert_eq!(*receiver.borrow(), 1);
}

#[test]
fn the_last_value_is_seen_after_the_end() {
    let (sender, mut receiver) = watch::channel(1);
    sender.send(2).unwrap();
    drop(sender);
    assert!(receiver.has_changed().is_err());
    now(receiver.changed()).unwrap();
    assert!(now(receiver.changed()).is_err());
    assert!(receiver.has_changed().is_err());
}

#[test]
fn a_wait_for_a_value_looks_at_the_one_that_is_there_first() {
    let (_sender, mut receiver) = watch::channel(1);
    let value = *now(receiver.wait_for(|value| *value == 1)).unwrap();
    assert_eq!(value, 1);
}

#[test]
fn a_wait_for_a_value_goes_on_until_one_is_wanted() {
    let (sender, mut receiver) = watch::channel(1);
    let mut waiting = spawn(receiver.wait_for(|value| *value > 2));
    waiting.waits();
    sender.send(2).unwrap();
    assert_eq!(waiting.wakes(), 1);
    waiting.waits();
    sender.send(3).unwrap();
    assert_eq!(waiting.wakes(), 2);
    let value = waiting.ready().unwrap();
    assert_eq!((*value, value.has_changed()), (3, false), "the wait has told of it");
    drop(value);
    drop(waiting);
    assert!(!receiver.has_changed().unwrap());

    sender.send(4).unwrap();
    let value = now(receiver.wait_for(|value| *value > 3)).unwrap();
    assert!(value.has_changed(), "without a wait");
    drop(value);
    let mut waiting = spawn(receiver.wait_for(|value| *value > 5));
    waiting.waits();
    sender.send(5).unwrap();
    sender.send(6).unwrap();
    assert_eq!(*waiting.ready().unwrap(), 6);
}

#[test]
fn a_wait_for_a_value_ends_with_the_senders_after_a_look_at_the_last() {
    let (sender, mut receiver) = watch::channel(1);
    sender.send(2).unwrap();
    drop(sender);
    assert!(now(receiver.wait_for(|value| *value == 3)).is_err());
    assert!(now(receiver.wait_for(|value| *value == 2)).is_ok());

    let (sender, mut receiver) = watch::channel(1);
    let mut looks = 0;
    let mut waiting = spawn(receiver.wait_for(|_| {
        looks += 1;
        false
    }));
    waiting.waits();
    drop(sender);
    assert!(waiting.ready().is_err());
    drop(waiting);
    assert_eq!(looks, 1);
}

#[test]
fn a_wait_for_a_value_that_panics_harms_nobody() {
    let (sender, mut receiver) = watch::channel(1);
    let mut waiting = spawn(receiver.wait_for(|_| resume_unwind(Box::new(()))));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(waiting.poll()))).is_err());
    drop(waiting);
    sender.send(2).unwrap();
    assert_eq!(*receiver.borrow(), 2);
}

#[test]
fn a_value_replaced_is_dropped_without_the_lock() {
    struct Looks(Option<watch::Receiver<Looks>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            if let Some(receiver) = &self.0 {
                assert!(receiver.borrow().0.is_none());
            }
        }
    }
    let (sender, receiver) = watch::channel(Looks(None));
    sender.send_modify(|value| value.0 = Some(receiver.clone()));
    sender.send(Looks(None)).unwrap_or_else(|_| panic!("there is a receiver"));
}

#[test]
fn wakers_are_called_without_a_lock() {
    let (sender, receiver) = watch::channel(1);
    let sender = Arc::new(sender);
    let mut other = receiver.clone();
    let mut waiting = Box::pin(other.changed());
    let waker = calling({
        let (sender, receiver) = (sender.clone(), receiver.clone());
        move || {
            let value = *receiver.borrow();
            assert_eq!(sender.send_replace(value + 1), 2);
        }
    });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    sender.send(2).unwrap();
    assert_eq!(*receiver.borrow(), 3);
}

#[test]
fn waiters_may_leave_and_move_to_another_task() {
    let (sender, receiver) = watch::channel(1);
    let (mut one, mut two) = (receiver.clone(), receiver.clone());
    let (mut leaves, mut moves) = (spawn(one.changed()), spawn(two.changed()));
    leaves.waits();
    moves.waits();
    drop(leaves);
    assert!(moves.move_and_poll().is_pending());
    sender.send(2).unwrap();
    assert_eq!(moves.wakes(), 1);
    assert!(one.has_changed().unwrap());
}

#[test]
fn loops_over_a_channel_let_others_run() {
    let (sender, mut receiver) = watch::channel(1);
    let mut busy = spawn(async {
        loop {
            sender.send(2).unwrap();
            receiver.changed().await.unwrap();
        }
    });
    assert!(matches!(busy.poll(), Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
    drop(busy);
    let mut busy = spawn(async {
        loop {
            drop(receiver.wait_for(|_| true).await);
        }
    });
    assert!(matches!(busy.poll(), Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
    drop(busy);
    drop(receiver);
    let mut busy = spawn(async {
        loop {
            sender.closed().await;
        }
    });
    assert!(matches!(busy.poll(), Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
}

#[test]
fn threads_see_versions_and_values_together() {
    let rounds = if cfg!(miri) { 20 } else { 2_000 };
    let (sender, receiver) = watch::channel(0);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let mut receiver = receiver.clone();
            thread::spawn(move || {
                let mut last = 0;
                while *receiver.borrow() < rounds {
                    let value = receiver.borrow_and_update();
                    assert!(*value > last || !value.has_changed());
                    last = *value;
                    drop(value);
                    thread::yield_now();
                }
            })
        })
        .collect();
    (1..=rounds).for_each(|round| sender.send(round).unwrap());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
