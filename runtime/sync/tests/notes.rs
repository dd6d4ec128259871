//! Tests of the notes of waiting tasks: what they wait for, and where.

mod by_hand;

use std::future::{pending, ready};

use by_hand::{now, spawn};
use mini_context::{ITSELF, Reason, SyncKind, Wait, begin_poll, notes, take_notes, taken};
use mini_sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, watch};

/// Polls a future that waits, made in the line `line`.
#[track_caller]
fn check<F: Future>(future: F, kind: SyncKind, holder: u64, line: u32) {
    take_notes();
    let mut waiting = spawn(future);
    waiting.waits();
    let wait = Wait::of(notes()).expect("a note of what it waits for").resolve(mini_context::task());
    assert_eq!(wait.reason(), Reason::Sync(kind, holder));
    assert_eq!((wait.location().file(), wait.location().line()), (file!(), line));
    drop(waiting);
    assert!(notes().is_empty(), "the note of a dropped future is forgotten");
}

#[test]
fn who_waits_for_a_lock_says_for_which_kind_and_who_has_it() {
    begin_poll(7);
    let (mutex, lock, semaphore) = (Mutex::new(()), RwLock::new(()), Semaphore::new(1));
    let _held = (now(mutex.lock()), now(lock.write()), now(semaphore.acquire()));
    begin_poll(8);
    check(mutex.lock(), SyncKind::Lock, 7, line!());
    check(lock.read(), SyncKind::ReadLock, taken(7), line!());
    check(lock.write(), SyncKind::WriteLock, taken(7), line!());
    check(semaphore.acquire(), SyncKind::Permit, taken(7), line!());
    begin_poll(0);
}

#[test]
fn who_waits_for_others_says_so() {
    let (notify, barrier) = (Notify::new(), Barrier::new(2));
    check(notify.notified(), SyncKind::Notify, 0, line!());
    check(barrier.wait(), SyncKind::Barrier, 0, line!());
    let (cell, set) = (OnceCell::<u8>::new(), SetOnce::<u8>::new());
    check(set.wait(), SyncKind::Once, 0, line!());
    begin_poll(7);
    let mut makes = spawn(cell.get_or_init(pending));
    makes.waits();
    check(cell.get_or_init(|| ready(1)), SyncKind::Once, ITSELF, line!());
    begin_poll(8);
    check(cell.get_or_init(|| ready(1)), SyncKind::Once, 7, line!());
    begin_poll(0);
}

#[test]
fn who_waits_at_a_channel_says_so() {
    let (values, mut value) = watch::channel(0);
    check(value.changed(), SyncKind::Receive, 0, line!());
    check(value.wait_for(|value| *value > 0), SyncKind::Receive, 0, line!());
    check(values.closed(), SyncKind::Closed, 0, line!());
    let (messages, mut receiver) = broadcast::channel::<u8>(1);
    check(receiver.recv(), SyncKind::Receive, 0, line!());
    check(messages.closed(), SyncKind::Closed, 0, line!());
}

#[test]
fn a_maker_of_a_value_says_what_it_waits_for_itself() {
    let (cell, notify) = (OnceCell::new(), Notify::new());
    take_notes();
    let mut makes = spawn(cell.get_or_init(|| notify.notified()));
    makes.waits();
    assert_eq!(notes().wait.unwrap().reason(), Reason::Sync(SyncKind::Notify, 0));
}

#[test]
fn who_waits_names_the_holder_of_now_and_not_that_of_its_last_poll() {
    let mutex = std::sync::Arc::new(Mutex::new(()));
    begin_poll(5);
    let first = now(mutex.lock());
    begin_poll(6);
    let mut second = spawn(mutex.lock());
    second.waits();
    begin_poll(7);
    let mut third = spawn(mutex.lock());
    take_notes();
    third.waits();
    let told = || Wait::of(notes()).unwrap().resolve(7).reason();
    let noted = Wait::of(notes()).unwrap();
    assert_eq!(told(), Reason::Sync(SyncKind::Lock, 5));
    drop(first); // which hands it to the second
    assert_eq!(noted.resolve(7).reason(), Reason::Sync(SyncKind::Lock, 6));
    begin_poll(8);
    drop(second.ready());
    drop(third);
    // An owned guard may leave the task that took it.
    let _owned = now(mutex.clone().lock_owned());
    begin_poll(9);
    check(mutex.lock(), SyncKind::Lock, taken(8), line!());
    begin_poll(0);
}
