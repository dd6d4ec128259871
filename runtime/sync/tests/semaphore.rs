//! Tests of the promises of a semaphore.

mod by_hand;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use by_hand::{calling, now, spawn};
use mini_sync::{AcquireError, Semaphore, TryAcquireError};

#[test]
fn try_acquire_takes_and_a_dropped_permit_comes_back() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.try_acquire().unwrap();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(permit);
    assert!(semaphore.try_acquire().is_ok());
    assert!(Semaphore::new(0).try_acquire().is_err());
}

#[test]
fn a_waiter_is_woken_when_a_permit_comes_back() {
    let semaphore = Semaphore::new(1);
    let first = now(semaphore.acquire()).unwrap();
    let mut second = spawn(semaphore.acquire());
    second.waits();
    assert_eq!(second.wakes(), 0);
    drop(first);
    assert_eq!(second.wakes(), 1);
    let second = second.ready().unwrap();
    assert_eq!(semaphore.available_permits(), 0);
    drop(second);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn added_permits_go_to_those_who_wait() {
    let semaphore = Semaphore::new(0);
    let mut waiting = spawn(semaphore.acquire());
    waiting.waits();
    semaphore.add_permits(2);
    assert_eq!((waiting.wakes(), semaphore.available_permits()), (1, 1));
    assert!(waiting.ready().is_ok());
}

#[test]
fn who_waits_for_many_is_not_overtaken() {
    let semaphore = Semaphore::new(1);
    let mut many = spawn(semaphore.acquire_many(3));
    many.waits();
    let mut few = spawn(semaphore.acquire());
    few.waits();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    semaphore.add_permits(1);
    assert_eq!((many.wakes(), few.wakes()), (0, 0));
    semaphore.add_permits(2);
    assert_eq!((many.wakes(), few.wakes()), (1, 1));
}

#[test]
fn a_release_serves_all_whom_it_completes() {
    let semaphore = Semaphore::new(0);
    let mut waiting: Vec<_> = (0..40).map(|_| spawn(semaphore.acquire())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    semaphore.add_permits(39);
    assert!(waiting[..39].iter().all(|one| one.wakes() == 1));
    assert_eq!(waiting[39].wakes(), 0);
}

#[test]
fn a_dropped_waiter_gives_back_what_was_kept_for_it() {
    let semaphore = Semaphore::new(2);
    let mut many = spawn(semaphore.acquire_many(3));
    many.waits();
    let mut few = spawn(semaphore.acquire_many(2));
    few.waits();
    assert_eq!(semaphore.available_permits(), 0);
    drop(many);
    assert_eq!(few.wakes(), 1);
    assert!(few.ready().is_ok());
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn a_grant_whose_owner_is_dropped_goes_to_the_next() {
    let semaphore = Semaphore::new(0);
    let (mut first, mut second) = (spawn(semaphore.acquire()), spawn(semaphore.acquire()));
    first.waits();
    second.waits();
    semaphore.add_permits(1);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert!(second.ready().is_ok());
}

#[test]
fn a_grant_that_nobody_has_seen_goes_back_when_the_semaphore_is_closed() {
    let semaphore = Semaphore::new(0);
    let mut waiting = spawn(semaphore.acquire_many(2));
    waiting.waits();
    semaphore.add_permits(3);
    assert_eq!((waiting.wakes(), semaphore.available_permits()), (1, 1));
    semaphore.close();
    assert!(waiting.ready().is_err());
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn in_the_middle_of_a_release_what_others_wait_for_is_not_free() {
    let semaphore = Arc::new(Semaphore::new(0));
    let seen = Arc::new(std::sync::Mutex::new(None));
    let mut first = Box::pin(semaphore.acquire());
    let waker = calling({
        let (semaphore, seen) = (semaphore.clone(), seen.clone());
        move || *seen.lock().unwrap() = Some((semaphore.available_permits(), semaphore.forget_permits(1)))
    });
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut others: Vec<_> = (0..3).map(|_| spawn(semaphore.acquire())).collect();
    others.iter_mut().for_each(|other| other.waits());
    semaphore.add_permits(4);
    assert_eq!(*seen.lock().unwrap(), Some((0, 0)));
    others.iter_mut().for_each(|other| assert!(other.ready().is_ok()));
}

#[test]
fn a_waiter_in_the_middle_may_leave() {
    let semaphore = Semaphore::new(0);
    let mut waiting: Vec<_> = (0..3).map(|_| spawn(semaphore.acquire())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    drop(waiting.remove(1));
    semaphore.add_permits(2);
    assert!(waiting.iter().all(|one| one.wakes() == 1));
}

#[test]
fn a_waiter_that_joins_between_two_grants_of_a_release_takes_nothing_and_loses_nothing() {
    let semaphore = Arc::new(Semaphore::new(0));
    let late = Arc::new(std::sync::Mutex::new(spawn(semaphore.clone().acquire_owned())));
    let mut first = Box::pin(semaphore.acquire());
    let waker = calling({
        let late = late.clone();
        move || late.lock().unwrap().waits()
    });
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut second = spawn(semaphore.acquire_many(3));
    second.waits();
    semaphore.add_permits(3);
    assert_eq!(second.wakes(), 0);
    semaphore.add_permits(1);
    assert_eq!(second.wakes(), 1);
    semaphore.add_permits(1);
    assert_eq!(late.lock().unwrap().wakes(), 1);
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn who_asks_for_no_permit_waits_for_nobody() {
    let semaphore = Semaphore::new(0);
    assert_eq!(now(semaphore.acquire_many(0)).unwrap().num_permits(), 0);
    let mut waiting = spawn(semaphore.acquire());
    waiting.waits();
    assert!(now(semaphore.acquire_many(0)).is_ok());
    semaphore.close();
    assert!(now(semaphore.acquire_many(0)).is_err());
}

#[test]
fn a_waiter_that_moves_to_another_task_is_woken_there() {
    let semaphore = Semaphore::new(0);
    let mut waiting = spawn(semaphore.acquire());
    waiting.waits();
    assert!(waiting.move_and_poll().is_pending());
    semaphore.add_permits(1);
    assert_eq!(waiting.wakes(), 1);
}

#[test]
fn a_closed_semaphore_gives_no_permits_and_wakes_all_who_wait() {
    let semaphore = Semaphore::new(0);
    let mut waiting: Vec<_> = (0..40).map(|_| spawn(semaphore.acquire())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    semaphore.close();
    assert!(semaphore.is_closed());
    for one in &mut waiting {
        assert_eq!(one.wakes(), 1);
        assert!(one.ready().is_err());
    }
    semaphore.add_permits(1);
    assert!(now(semaphore.acquire()).is_err());
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
}

#[test]
fn a_close_frees_what_was_kept_for_a_waiter() {
    let semaphore = Semaphore::new(2);
    let mut waiting = spawn(semaphore.acquire_many(3));
    waiting.waits();
    semaphore.close();
    assert_eq!(semaphore.available_permits(), 2);
    assert!(waiting.ready().is_err());
    drop(waiting);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn nothing_is_granted_while_a_close_wakes_those_who_wait() {
    let semaphore = Arc::new(Semaphore::new(0));
    let mut first = Box::pin(semaphore.acquire());
    let waker = calling({
        let semaphore = semaphore.clone();
        move || semaphore.add_permits(1)
    });
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut second = spawn(semaphore.acquire());
    second.waits();
    semaphore.close();
    assert!(second.ready().is_err());
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn wakers_are_called_and_dropped_without_the_lock() {
    let semaphore = Arc::new(Semaphore::new(0));
    struct Uses(Arc<Semaphore>);
    impl Drop for Uses {
        fn drop(&mut self) {
            self.0.add_permits(1);
        }
    }
    let uses = Uses(semaphore.clone());
    let waker = calling(move || uses.0.add_permits(1));
    let mut waiting = Box::pin(semaphore.clone().acquire_owned());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    semaphore.close();
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_a_permit() {
    let semaphore = Semaphore::new(0);
    let waker = calling(|| std::panic::resume_unwind(Box::new(())));
    let mut first = Box::pin(semaphore.acquire());
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut second = spawn(semaphore.acquire());
    second.waits();
    let adds = std::panic::AssertUnwindSafe(|| semaphore.add_permits(2));
    assert!(std::panic::catch_unwind(adds).is_err());
    assert_eq!(second.wakes(), 1);
}

#[test]
fn permits_can_be_forgotten() {
    let semaphore = Semaphore::new(3);
    now(semaphore.acquire()).unwrap().forget();
    assert_eq!(semaphore.available_permits(), 2);
    assert_eq!(semaphore.forget_permits(1), 1);
    assert_eq!(semaphore.forget_permits(5), 1);
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn permits_are_merged_and_split() {
    let semaphore = Arc::new(Semaphore::new(3));
    let mut one = now(semaphore.acquire()).unwrap();
    one.merge(now(semaphore.acquire_many(2)).unwrap());
    assert_eq!((one.num_permits(), semaphore.available_permits()), (3, 0));
    let two = one.split(2).unwrap();
    assert!(one.split(2).is_none());
    assert!(std::ptr::eq(two.semaphore(), &*semaphore));
    drop(one);
    assert_eq!(semaphore.available_permits(), 1);
    drop(two);
    let mut owned = now(semaphore.clone().acquire_many_owned(3)).unwrap();
    drop(owned.split(1).unwrap());
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
#[should_panic(expected = "different semaphores")]
fn permits_of_two_semaphores_are_not_merged() {
    let (one, other) = (Semaphore::new(1), Semaphore::new(1));
    one.try_acquire().unwrap().merge(other.try_acquire().unwrap());
}

#[test]
fn there_may_be_max_permits() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS - 1);
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

#[test]
#[should_panic(expected = "at most")]
fn there_are_no_more_than_max_permits() {
    Semaphore::new(1).add_permits(Semaphore::MAX_PERMITS);
}

#[test]
#[should_panic(expected = "at most")]
fn so_many_permits_that_they_wrap_are_refused() {
    Semaphore::new(1).add_permits(usize::MAX);
}

#[test]
fn a_thread_that_may_block_waits_in_line() {
    let semaphore = Arc::new(Semaphore::new(0));
    let thread = thread::spawn({
        let semaphore = semaphore.clone();
        move || semaphore.blocking_acquire_many_owned(2).unwrap().forget()
    });
    semaphore.add_permits(3);
    thread.join().unwrap();
    assert_eq!(semaphore.available_permits(), 1);
    semaphore.close();
    assert!(semaphore.blocking_acquire().is_err());
}

#[test]
#[cfg_attr(miri, ignore = "a runtime")]
fn a_task_must_not_block_its_thread() {
    let error =
        mini::block_on(async { mini::spawn(async { drop(Semaphore::new(1).blocking_acquire()) }).await.unwrap_err() });
    assert!(error.to_string().contains("blocking_acquire"), "{error}");
}

#[test]
fn a_loop_that_finds_permits_lets_others_run() {
    let semaphore = Semaphore::new(1);
    let mut busy = spawn(async {
        loop {
            drop(semaphore.acquire().await);
        }
    });
    assert!(matches!(busy.poll(), Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
}

#[test]
fn the_errors_say_what_is_wrong() {
    let semaphore = Semaphore::new(0);
    assert_eq!(semaphore.try_acquire().unwrap_err().to_string(), "no permits are available");
    semaphore.close();
    let error: AcquireError = now(semaphore.acquire()).unwrap_err();
    assert_eq!(error.to_string(), "the semaphore is closed");
}
