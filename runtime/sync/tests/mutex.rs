//! Tests of the promises of a mutex.

mod by_hand;

use std::sync::Arc;
use std::task::Poll;
use std::thread;

use by_hand::{now, spawn};
use mini_sync::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};

#[test]
fn a_free_mutex_is_locked_at_once() {
    let mutex = Mutex::new(1);
    *now(mutex.lock()) += 1;
    assert_eq!(*now(mutex.lock()), 2);
    assert_eq!(mutex.into_inner(), 2);
}

#[test]
fn who_waits_is_woken_by_the_release() {
    let mutex = Mutex::new(0);
    let guard = now(mutex.lock());
    let mut waiting = spawn(mutex.lock());
    waiting.waits();
    assert_eq!(waiting.wakes(), 0);
    drop(guard);
    assert_eq!(waiting.wakes(), 1);
    let guard = waiting.ready();
    assert!(mutex.try_lock().is_err());
    drop(guard);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn owned_guards_wait_in_the_same_line() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = now(mutex.clone().lock_owned());
    let (mut first, mut second) = (spawn(mutex.clone().lock_owned()), spawn(mutex.lock()));
    first.waits();
    second.waits();
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first.ready());
    assert_eq!(second.wakes(), 1);
}

#[test]
fn nobody_takes_what_was_released_for_a_waiter() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = now(mutex.lock());
    let mut waiting = spawn(mutex.lock());
    waiting.waits();
    drop(guard);
    assert!(mutex.try_lock().is_err());
    assert!(mutex.clone().try_lock_owned().is_err());
    spawn(mutex.lock()).waits();
    assert!(waiting.poll().is_ready());
}

#[test]
fn a_waiter_dropped_before_its_turn_is_passed_over() {
    let mutex = Mutex::new(0);
    let guard = now(mutex.lock());
    let (mut first, mut second) = (spawn(mutex.lock()), spawn(mutex.lock()));
    first.waits();
    second.waits();
    drop(first);
    drop(guard);
    assert_eq!(second.wakes(), 1);
    assert!(second.poll().is_ready());
}

#[test]
fn a_waiter_dropped_in_its_turn_passes_the_lock_on() {
    let mutex = Mutex::new(0);
    let guard = now(mutex.lock());
    let (mut first, mut second) = (spawn(mutex.lock()), spawn(mutex.lock()));
    first.waits();
    second.waits();
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert!(second.poll().is_ready());
}

#[test]
fn a_panic_releases_the_lock() {
    let mutex = Mutex::new(1);
    let panics = || {
        let mut guard = mutex.try_lock().unwrap();
        *guard = 2;
        std::panic::resume_unwind(Box::new(()));
    };
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn a_loop_that_finds_the_lock_free_lets_others_run() {
    let mutex = Mutex::new(0);
    let mut busy = spawn(async {
        loop {
            *mutex.lock().await += 1;
        }
    });
    assert!(matches!(busy.poll(), Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn debug_shows_the_value_or_the_holder() {
    let mutex = Mutex::new(vec![1]);
    assert_eq!(format!("{mutex:?}"), "Mutex { value: [1] }");
    let line = line!() + 1;
    let guard = now(mutex.lock());
    assert_eq!(format!("{mutex:?}"), format!("Mutex {{ value: <taken at {}:{line}:27> }}", file!()));
    assert_eq!(format!("{guard:?}"), "[1]");
}

#[test]
fn debug_says_that_the_holder_has_not_been_polled() {
    let mutex = Mutex::new(());
    let guard = now(mutex.lock());
    let mut waiting = spawn(mutex.lock());
    waiting.waits();
    drop(guard);
    assert!(format!("{mutex:?}").contains("which has not been polled since"), "{mutex:?}");
    let _guard = waiting.ready();
    assert!(!format!("{mutex:?}").contains("polled"), "{mutex:?}");
}

#[test]
fn a_guard_of_a_part_holds_the_lock() {
    let mutex = Mutex::new((1, [2, 3]));
    let part = MutexGuard::map(now(mutex.lock()), |value| &mut value.1);
    let mut part = MappedMutexGuard::map(part, |array| &mut array[0]);
    *part = 7;
    assert!(mutex.try_lock().is_err());
    let part = MappedMutexGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    assert_eq!(format!("{part} {part:?}"), "7 7");
    drop(part);
    let guard = MutexGuard::try_map(now(mutex.lock()), |_| None::<&mut u8>).unwrap_err();
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    drop(guard);
    assert_eq!(mutex.into_inner(), (1, [7, 3]));
}

#[test]
fn an_owned_guard_of_a_part_holds_the_lock() {
    let mutex = Arc::new(Mutex::new((1, [2, 3])));
    let part = OwnedMutexGuard::map(now(mutex.clone().lock_owned()), |value| &mut value.1);
    let mut part = OwnedMappedMutexGuard::try_map(part, |array| array.get_mut(1)).unwrap();
    assert!(Arc::ptr_eq(OwnedMappedMutexGuard::mutex(&part), &mutex));
    let changed = thread::spawn(move || {
        *part = 7;
        part
    });
    let part = changed.join().unwrap();
    assert!(mutex.try_lock().is_err());
    drop(part);
    assert_eq!(*mutex.try_lock().unwrap(), (1, [2, 7]));
}

#[test]
fn a_thread_that_may_block_waits_for_the_lock() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = now(mutex.clone().lock_owned());
    let thread = thread::spawn({
        let mutex = mutex.clone();
        move || *mutex.blocking_lock() += 1
    });
    drop(guard);
    thread.join().unwrap();
    assert_eq!(*mutex.blocking_lock_owned(), 1);
}

#[test]
fn a_value_without_a_size_can_be_locked() {
    let mutex: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2]));
    now(mutex.lock())[0] = 3;
    assert_eq!(now(mutex.lock_owned())[..], [3, 2]);
}

const fn is_send_sync<T: Send + Sync>() {}
const _: () = is_send_sync::<Mutex<std::cell::Cell<u8>>>();
const _: () = is_send_sync::<MutexGuard<'_, u8>>();
const _: () = is_send_sync::<OwnedMappedMutexGuard<u8>>();

#[test]
fn a_future_that_is_over_keeps_no_lock_alive() {
    let lock = Arc::new(Mutex::new(1));
    let mut future = Box::pin(lock.clone().lock_owned());
    drop(by_hand::block_on(future.as_mut()));
    assert_eq!(Arc::try_unwrap(lock).unwrap().into_inner(), 1);
}
