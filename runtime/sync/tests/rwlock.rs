//! Tests of the promises of a read-write lock.

mod by_hand;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;

use by_hand::{now, spawn};
use mini_sync::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockMappedWriteGuard,
    RwLockReadGuard, RwLockWriteGuard,
};

#[test]
fn many_read_at_a_time() {
    let lock = RwLock::new(1);
    let (one, two) = (now(lock.read()), now(lock.read()));
    assert_eq!(*one + *two, 2);
    assert!(lock.try_read().is_ok());
    assert!(lock.try_write().is_err());
}

#[test]
fn one_writes_at_a_time_and_nobody_reads() {
    let lock = RwLock::new(1);
    let mut writer = now(lock.write());
    *writer = 2;
    let (mut reading, mut writing) = (spawn(lock.read()), spawn(lock.write()));
    reading.waits();
    writing.waits();
    assert!(lock.try_read().is_err() && lock.try_write().is_err());
    drop(writer);
    assert_eq!((reading.wakes(), writing.wakes()), (1, 0));
    assert_eq!(*reading.ready(), 2);
    assert_eq!(writing.wakes(), 1);
    *writing.ready() = 3;
    assert_eq!(*lock.try_read().unwrap(), 3);
}

#[test]
fn a_writer_waits_until_the_last_reader_is_gone() {
    let lock = RwLock::new(());
    let (one, two) = (now(lock.read()), now(lock.read()));
    let mut writing = spawn(lock.write());
    writing.waits();
    drop(one);
    assert_eq!(writing.wakes(), 0);
    drop(two);
    assert_eq!(writing.wakes(), 1);
    assert!(writing.poll().is_ready());
}

#[test]
fn readers_do_not_pass_a_writer_that_waits() {
    let lock = RwLock::new(());
    let reader = now(lock.read());
    let mut writing = spawn(lock.write());
    writing.waits();
    let mut reading = spawn(lock.read());
    reading.waits();
    assert!(lock.try_read().is_err());
    drop(reader);
    assert_eq!((writing.wakes(), reading.wakes()), (1, 0));
    drop(writing.ready());
    assert_eq!(reading.wakes(), 1);
}

#[test]
fn readers_behind_a_writer_that_gives_up_go_on() {
    let lock = RwLock::new(());
    let reader = now(lock.read());
    let mut writing = spawn(lock.write());
    writing.waits();
    let mut reading: Vec<_> = (0..3).map(|_| spawn(lock.read())).collect();
    reading.iter_mut().for_each(|one| one.waits());
    drop(writing);
    assert!(reading.iter().all(|one| one.wakes() == 1));
    drop(reader);
}

#[test]
fn readers_that_wait_come_in_together() {
    let lock = RwLock::new(());
    let writer = now(lock.write());
    let mut reading: Vec<_> = (0..40).map(|_| spawn(lock.read())).collect();
    reading.iter_mut().for_each(|one| one.waits());
    drop(writer);
    assert!(reading.iter().all(|one| one.wakes() == 1));
    let guards: Vec<_> = reading.iter_mut().map(|one| one.ready()).collect();
    assert_eq!(guards.len(), 40);
}

#[test]
fn a_grant_whose_owner_is_dropped_goes_to_the_next() {
    let lock = RwLock::new(());
    let writer = now(lock.write());
    let (mut first, mut second) = (spawn(lock.write()), spawn(lock.write()));
    first.waits();
    second.waits();
    drop(writer);
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert!(second.poll().is_ready());
}

#[test]
fn there_are_no_more_readers_than_asked_for() {
    let lock = RwLock::with_max_readers((), 2);
    let (one, _two) = (now(lock.read()), now(lock.read()));
    let mut third = spawn(lock.read());
    third.waits();
    drop(one);
    assert_eq!(third.wakes(), 1);
}

#[test]
#[should_panic(expected = "at least one reader")]
fn a_lock_without_readers_is_refused() {
    RwLock::with_max_readers((), 0);
}

#[test]
#[should_panic(expected = "at least one reader")]
fn a_constant_lock_without_readers_is_refused() {
    RwLock::const_with_max_readers((), 0);
}

#[test]
#[should_panic(expected = "at most")]
fn a_lock_for_too_many_readers_is_refused() {
    RwLock::with_max_readers((), u32::MAX);
}

#[test]
fn a_downgrade_lets_readers_in_and_no_writer() {
    let lock = RwLock::new(1);
    let mut writer = now(lock.write());
    *writer = 2;
    let (mut reading, mut writing) = (spawn(lock.read()), spawn(lock.write()));
    reading.waits();
    writing.waits();
    let reader = writer.downgrade();
    assert_eq!((reading.wakes(), writing.wakes()), (1, 0));
    assert_eq!(*reading.ready() + *reader, 4);
    drop(reader);
    assert_eq!(writing.wakes(), 1);
}

#[test]
fn an_owned_guard_is_downgraded() {
    let lock = Arc::new(RwLock::new(1));
    let reader = now(lock.clone().write_owned()).downgrade();
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&reader), &lock));
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    drop(reader);
    assert!(lock.try_write().is_ok());
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn a_guard_of_a_part_is_downgraded_with_it() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let part = RwLockWriteGuard::downgrade_map(now(lock.write()), |pair| &pair.1);
    assert_eq!(*part, 2);
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    drop(part);
    let part = OwnedRwLockWriteGuard::downgrade_map(now(lock.clone().write_owned()), |pair| &pair.1);
    assert_eq!(*part, 2);
    drop(part);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_downgrade_to_no_part_leaves_the_write_lock() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let writer = RwLockWriteGuard::try_downgrade_map(now(lock.write()), |_| None::<&u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    drop(RwLockWriteGuard::try_downgrade_map(writer, |pair| Some(&pair.0)).unwrap());
    let writer = now(lock.clone().write_owned());
    let writer = OwnedRwLockWriteGuard::try_downgrade_map(writer, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    let reader = OwnedRwLockWriteGuard::try_downgrade_map(writer, |pair| Some(&pair.0)).unwrap();
    assert!(lock.try_read().is_ok());
    drop(reader);
}

#[test]
fn a_read_guard_of_a_part_holds_the_lock() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let part = RwLockReadGuard::map(now(lock.read()), |pair| &pair.1);
    let part = RwLockReadGuard::try_map(part, |_| None::<&u8>).unwrap_err();
    assert_eq!(format!("{part} {part:?}"), "2 2");
    assert!(lock.try_write().is_err());
    drop(part);
    let part = OwnedRwLockReadGuard::map(now(lock.clone().read_owned()), |pair| &pair.1);
    let part = OwnedRwLockReadGuard::try_map(part, |one| Some(one)).unwrap();
    assert!(lock.try_write().is_err());
    drop(part);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_write_guard_of_a_part_holds_the_lock() {
    let lock = Arc::new(RwLock::new((1, [2, 3])));
    let part = RwLockWriteGuard::map(now(lock.write()), |value| &mut value.1);
    let mut part = RwLockMappedWriteGuard::map(part, |array| &mut array[0]);
    *part = 7;
    let part = RwLockMappedWriteGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    drop(part);
    let part = RwLockWriteGuard::try_map(now(lock.write()), |_| None::<&mut u8>).unwrap_err();
    *RwLockWriteGuard::into_mapped(part) = (8, [7, 3]);

    let part = OwnedRwLockWriteGuard::try_map(now(lock.clone().write_owned()), |value| Some(&mut value.1)).unwrap();
    let mut part = OwnedRwLockMappedWriteGuard::map(part, |array| &mut array[1]);
    assert!(Arc::ptr_eq(OwnedRwLockMappedWriteGuard::rwlock(&part), &lock));
    *part = 9;
    assert!(lock.try_read().is_err());
    drop(OwnedRwLockMappedWriteGuard::try_map(part, |one| Some(one)).unwrap());
    assert_eq!(*lock.try_read().unwrap(), (8, [7, 9]));
    drop(OwnedRwLockWriteGuard::into_mapped(now(lock.clone().write_owned())));
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn a_part_whose_function_panics_releases_the_lock() {
    let lock = RwLock::new(1);
    let panics =
        || RwLockWriteGuard::map(now(lock.write()), |_| -> &mut u8 { std::panic::resume_unwind(Box::new(())) });
    assert!(std::panic::catch_unwind(|| drop(panics())).is_err());
    assert!(lock.try_write().is_ok());
}

#[test]
fn threads_that_may_block_wait_for_the_lock() {
    let lock = Arc::new(RwLock::new(1));
    let guard = now(lock.clone().write_owned());
    let threads = [false, true].map(|writes| {
        let lock = lock.clone();
        thread::spawn(move || match writes {
            true => *lock.blocking_write() = 2,
            false => assert!(*lock.blocking_read() > 0),
        })
    });
    drop(guard);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*lock.blocking_read(), 2);
}

#[test]
fn debug_shows_the_value_or_the_holder() {
    let lock = RwLock::new(1);
    assert_eq!(format!("{lock:?}"), "RwLock { value: 1 }");
    let guard = now(lock.write());
    assert!(format!("{lock:?}").starts_with("RwLock { value: <taken at "), "{lock:?}");
    drop(guard);
}

#[test]
fn readers_and_writers_on_threads_see_whole_values() {
    let rounds = if cfg!(miri) { 10 } else { 500 };
    let lock = Arc::new(RwLock::new([0u64; 4]));
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let lock = lock.clone();
            thread::spawn(move || {
                for _ in 0..rounds {
                    if n % 2 == 0 {
                        lock.blocking_write().iter_mut().for_each(|one| *one += 1);
                    } else {
                        let value = *lock.blocking_read();
                        assert!(value.iter().all(|one| *one == value[0]));
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*lock.try_read().unwrap(), [2 * rounds; 4]);
}

/// A waker that panics once.
fn panicking() -> Waker {
    by_hand::calling(|| resume_unwind(Box::new(())))
}

#[test]
fn a_writer_that_becomes_a_reader_leaves_nothing_behind_if_a_waker_panics() {
    let lock = RwLock::new(7);
    let writer = now(lock.write());
    let mut reading = pin!(lock.read());
    assert!(reading.as_mut().poll(&mut Context::from_waker(&panicking())).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| writer.downgrade())).is_err());
    drop(reading.poll(&mut Context::from_waker(Waker::noop())));
    assert!(lock.try_write().is_ok(), "it is still read");

    let lock = Arc::new(RwLock::new(7));
    let writer = now(lock.clone().write_owned());
    let mut reading = pin!(lock.read());
    assert!(reading.as_mut().poll(&mut Context::from_waker(&panicking())).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| writer.downgrade())).is_err());
    drop(reading.poll(&mut Context::from_waker(Waker::noop())));
    assert!(lock.try_write().is_ok(), "it is still read");
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_lock_without_a_wait_is_not_polled_again() {
    let lock = RwLock::new(7);
    let mut reading = spawn(lock.read());
    drop(reading.ready());
    drop(reading.poll());
}

#[test]
fn whoever_prints_a_lock_does_not_hold_it() {
    let lock = RwLock::new(7);
    let held = now(lock.read());
    let line = line!() - 1;
    assert_eq!(format!("{lock:?}"), "RwLock { value: 7 }");
    let mut writing = spawn(lock.write());
    writing.waits();
    let told = format!("{lock:?}");
    assert!(told.contains(&format!("{}:{line}:", file!())), "{told}");
    drop(held);
}

const fn is_send<T: Send>() {}
const fn is_sync<T: Sync>() {}
const _: () = is_send::<RwLock<Cell<u8>>>();
const _: () = is_sync::<RwLock<u8>>();
const _: () = is_send::<RwLockReadGuard<'_, u8>>();
const _: () = is_send::<RwLockWriteGuard<'_, u8>>();
const _: () = is_send::<OwnedRwLockMappedWriteGuard<u8>>();
