//! Tests of the promises of a cell that is set once and awaited.

mod by_hand;

use std::sync::Arc;
use std::thread;

use by_hand::{now, spawn};
use mini_sync::SetOnce;

#[test]
fn who_waits_gets_the_value() {
    let cell = SetOnce::new();
    let mut waiting: Vec<_> = (0..100).map(|_| spawn(cell.wait())).collect();
    waiting.iter_mut().for_each(|one| one.waits());
    cell.set(1).unwrap();
    for one in &mut waiting {
        assert_eq!(one.wakes(), 1);
        assert_eq!(one.ready(), &1);
    }
    assert_eq!(now(cell.wait()), &1);
}

#[test]
fn a_second_value_comes_back() {
    let cell = SetOnce::new();
    assert_eq!((cell.get(), cell.initialized()), (None, false));
    cell.set(1).unwrap();
    assert_eq!(cell.set(2).unwrap_err().0, 2);
    assert_eq!((cell.get(), cell.initialized()), (Some(&1), true));
}

#[test]
fn a_waiter_may_leave_or_move_to_another_task() {
    let cell = SetOnce::new();
    let (mut leaves, mut moves) = (spawn(cell.wait()), spawn(cell.wait()));
    leaves.waits();
    moves.waits();
    drop(leaves);
    assert!(moves.move_and_poll().is_pending());
    cell.set(1).unwrap();
    assert_eq!(moves.wakes(), 1);
}

#[test]
fn the_value_is_dropped_with_the_cell_or_taken_out() {
    let value = Arc::new(());
    let cell = SetOnce::new();
    cell.set(value.clone()).unwrap();
    drop(cell);
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(SetOnce::new_with(Some(1)).into_inner(), Some(1));
    assert_eq!(SetOnce::<u8>::new_with(None).into_inner(), None);
}

#[test]
fn a_constant_cell_may_be_full() {
    static CELL: SetOnce<u8> = SetOnce::const_new_with(1);
    assert_eq!(now(CELL.wait()), &1);
    assert!(CELL.set(2).is_err());
}

#[test]
fn threads_that_set_agree_on_one_value() {
    let cell = Arc::new(SetOnce::new());
    let threads: Vec<_> = (0..3)
        .map(|n| {
            let cell = cell.clone();
            thread::spawn(move || cell.set(n).is_ok().then_some(n))
        })
        .collect();
    let set: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(set, [*cell.get().unwrap()]);
}

#[test]
fn cells_are_cloned_compared_and_shown_by_value() {
    let (empty, full) = (SetOnce::new(), SetOnce::from(1));
    assert_ne!(empty, full);
    assert_eq!(full.clone(), full);
    assert_eq!(format!("{full:?} {empty:?}"), "SetOnce { value: Some(1) } SetOnce { value: None }");
}
