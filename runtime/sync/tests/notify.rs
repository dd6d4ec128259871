//! Tests of the promises of a notification.

mod by_hand;

use std::sync::Arc;
use std::task::{Context, Waker};

use by_hand::{calling, now, spawn};
use mini_sync::Notify;

#[test]
fn a_notification_before_is_kept_for_the_next() {
    let notify = Notify::new();
    notify.notify_one();
    now(notify.notified());
    spawn(notify.notified()).waits();
}

#[test]
fn one_notification_is_kept_and_no_more() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_last();
    now(notify.notified());
    spawn(notify.notified()).waits();
}

#[test]
fn who_waits_is_woken_once() {
    let notify = Notify::new();
    let mut waiting = spawn(notify.notified());
    waiting.waits();
    notify.notify_one();
    assert_eq!(waiting.wakes(), 1);
    waiting.ready();
    assert_eq!(waiting.wakes(), 1);
    spawn(notify.notified()).waits();
}

#[test]
fn the_first_who_waits_is_notified_first() {
    let notify = Notify::new();
    let mut waiting: Vec<_> = (0..3).map(|_| spawn(notify.notified())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    notify.notify_one();
    notify.notify_one();
    assert_eq!(waiting.iter().map(|one| one.wakes()).collect::<Vec<_>>(), [1, 1, 0]);
}

#[test]
fn the_last_who_waits_is_notified_by_notify_last() {
    let notify = Notify::new();
    let mut waiting: Vec<_> = (0..3).map(|_| spawn(notify.notified())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    notify.notify_last();
    assert_eq!(waiting.iter().map(|one| one.wakes()).collect::<Vec<_>>(), [0, 0, 1]);
    waiting[2].ready();
    notify.notify_one();
    assert_eq!(waiting.iter().map(|one| one.wakes()).collect::<Vec<_>>(), [1, 0, 1]);
}

#[test]
fn all_who_wait_are_notified_however_many() {
    let notify = Notify::new();
    let mut waiting: Vec<_> = (0..100).map(|_| spawn(notify.notified())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    notify.notify_waiters();
    for one in &mut waiting {
        assert_eq!(one.wakes(), 1);
        one.ready();
    }
}

#[test]
fn notify_waiters_keeps_nothing() {
    let notify = Notify::new();
    notify.notify_waiters();
    spawn(notify.notified()).waits();
}

#[test]
fn a_future_made_before_notify_waiters_is_notified_without_a_poll() {
    let notify = Arc::new(Notify::new());
    let (made, owned) = (notify.notified(), notify.clone().notified_owned());
    notify.notify_waiters();
    now(made);
    now(owned);
}

#[test]
fn a_future_that_notify_waiters_notified_takes_no_permit() {
    let notify = Notify::new();
    let made = notify.notified();
    notify.notify_waiters();
    notify.notify_one();
    now(made);
    now(notify.notified());
}

#[test]
fn a_waiter_dropped_in_line_is_passed_over() {
    let notify = Notify::new();
    let mut waiting: Vec<_> = (0..3).map(|_| spawn(notify.notified())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    drop(waiting.remove(1));
    notify.notify_one();
    notify.notify_one();
    assert!(waiting.iter().all(|one| one.wakes() == 1));
}

#[test]
fn a_notification_whose_owner_is_dropped_goes_to_the_next() {
    let notify = Arc::new(Notify::new());
    let mut first = spawn(notify.clone().notified_owned());
    let mut second = spawn(notify.notified());
    first.waits();
    second.waits();
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    second.ready();
}

#[test]
fn a_notification_of_the_last_goes_to_the_last() {
    let notify = Notify::new();
    let mut waiting: Vec<_> = (0..3).map(|_| spawn(notify.notified())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    notify.notify_last();
    drop(waiting.pop());
    assert_eq!((waiting[0].wakes(), waiting[1].wakes()), (0, 1));
}

#[test]
fn a_notification_whose_owner_is_dropped_is_kept_if_nobody_waits() {
    let notify = Notify::new();
    let mut waiting = spawn(notify.notified());
    waiting.waits();
    notify.notify_one();
    drop(waiting);
    now(notify.notified());
}

#[test]
fn a_notification_of_all_is_not_passed_on() {
    let notify = Notify::new();
    let mut waiting = spawn(notify.notified());
    waiting.waits();
    notify.notify_waiters();
    drop(waiting);
    spawn(notify.notified()).waits();
}

#[test]
fn a_notification_of_one_is_passed_on_also_after_one_of_all() {
    let notify = Notify::new();
    let (mut first, mut second) = (spawn(notify.notified()), spawn(notify.notified()));
    first.waits();
    second.waits();
    notify.notify_one();
    notify.notify_waiters();
    drop(first);
    second.ready();
    now(notify.notified());
}

#[test]
fn a_notification_of_one_after_one_of_all_is_kept() {
    let notify = Notify::new();
    let mut waiting = spawn(notify.notified());
    waiting.waits();
    notify.notify_waiters();
    notify.notify_one();
    drop(waiting);
    now(notify.notified());
}

#[test]
fn a_notification_of_one_beside_one_of_all_is_not_spent_on_those_who_leave() {
    let notify = Arc::new(Notify::new());
    let waker = calling({
        let notify = notify.clone();
        move || notify.notify_one()
    });
    let mut first = Box::pin(notify.notified());
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut waiting: Vec<_> = (0..40).map(|_| spawn(notify.notified())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    notify.notify_waiters();
    assert!(waiting.iter().all(|one| one.wakes() == 1));
    drop(waiting);
    now(notify.notified());
}

#[test]
fn who_joins_while_all_are_notified_waits_for_the_next_time() {
    let notify = Arc::new(Notify::new());
    let late = Arc::new(std::sync::Mutex::new(spawn(notify.clone().notified_owned())));
    let waker = calling({
        let (late, notify) = (late.clone(), notify.clone());
        move || {
            let mut joins = spawn(notify.clone().notified_owned());
            joins.waits();
            *late.lock().unwrap() = joins;
        }
    });
    let mut first = Box::pin(notify.notified());
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut others: Vec<_> = (0..40).map(|_| spawn(notify.notified())).collect();
    others.iter_mut().for_each(|one| one.waits());
    notify.notify_waiters();
    late.lock().unwrap().waits();
    assert_eq!(late.lock().unwrap().wakes(), 0);
    notify.notify_waiters();
    assert_eq!(late.lock().unwrap().wakes(), 1);
}

#[test]
fn a_waker_that_panics_keeps_no_other_from_being_notified() {
    let notify = Notify::new();
    let waker = calling(|| std::panic::resume_unwind(Box::new(())));
    let mut first = Box::pin(notify.notified());
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut others: Vec<_> = (0..40).map(|_| spawn(notify.notified())).collect();
    others.iter_mut().for_each(|one| one.waits());
    let notifies = std::panic::AssertUnwindSafe(|| notify.notify_waiters());
    assert!(std::panic::catch_unwind(notifies).is_err());
    assert!(others.iter().all(|one| one.wakes() == 1));
}

#[test]
fn a_waker_may_notify_while_it_is_dropped() {
    struct Notifies(Arc<Notify>);
    impl Drop for Notifies {
        fn drop(&mut self) {
            self.0.notify_waiters();
        }
    }
    let notify = Arc::new(Notify::new());
    let notifies = Notifies(notify.clone());
    let waker = calling(move || assert!(Arc::strong_count(&notifies.0) > 0));
    let mut waiting = Box::pin(notify.clone().notified_owned());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn a_future_is_in_line_from_enable_on() {
    let notify = Notify::new();
    let (mut first, mut second) = (spawn(notify.notified()), spawn(notify.notified()));
    assert!(!first.future().enable());
    second.waits();
    notify.notify_one();
    assert_eq!(second.wakes(), 0);
    assert!(first.future().enable());
    first.ready();
    second.waits();
}

#[test]
fn an_enabled_future_gets_the_waker_of_its_poll() {
    let notify = Notify::new();
    let mut waiting = spawn(notify.notified());
    assert!(!waiting.future().enable());
    waiting.waits();
    assert!(!waiting.future().enable());
    notify.notify_one();
    assert_eq!(waiting.wakes(), 1);
}

#[test]
fn enable_takes_the_notification_that_is_kept() {
    let notify = Notify::new();
    notify.notify_one();
    let mut enabled = spawn(notify.notified());
    assert!(enabled.future().enable());
    spawn(notify.notified()).waits();
    enabled.ready();
}

#[test]
fn an_enabled_future_that_is_dropped_passes_its_notification_on() {
    let notify = Notify::new();
    let mut enabled = spawn(notify.notified());
    assert!(!enabled.future().enable());
    notify.notify_one();
    drop(enabled);
    now(notify.notified());
}

#[test]
fn a_waiter_that_moves_to_another_task_is_woken_there() {
    let notify = Notify::new();
    let mut waiting = spawn(notify.notified());
    waiting.waits();
    assert!(waiting.move_and_poll().is_pending());
    notify.notify_one();
    assert_eq!(waiting.wakes(), 1);
}

#[test]
fn a_loop_over_notifications_lets_others_run() {
    let notify = Notify::new();
    let mut busy = spawn(async {
        loop {
            notify.notify_one();
            notify.notified().await;
        }
    });
    assert!(matches!(busy.poll(), std::task::Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
}

#[test]
fn debug_says_whether_somebody_waits() {
    let notify = Notify::new();
    assert_eq!(format!("{notify:?}"), "Notify { has_permit: false, is_awaited: false }");
    let mut waiting = spawn(notify.notified());
    waiting.waits();
    assert_eq!(format!("{notify:?}"), "Notify { has_permit: false, is_awaited: true }");
}
