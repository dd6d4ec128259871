//! Tests of the promises of a cell that is filled once.

mod by_hand;

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use by_hand::{now, spawn};
use mini_sync::{OnceCell, SetError};

#[test]
fn the_value_is_made_once() {
    let cell = OnceCell::new();
    assert_eq!((cell.get(), cell.initialized()), (None, false));
    assert_eq!(now(cell.get_or_init(|| ready(1))), &1);
    assert_eq!(now(cell.get_or_init(|| ready(2))), &1);
    assert_eq!((cell.get(), cell.initialized()), (Some(&1), true));
}

#[test]
fn who_needs_the_value_waits_for_the_one_that_makes_it() {
    let cell = OnceCell::new();
    let notify = mini_sync::Notify::new();
    let mut makes = spawn(cell.get_or_init(|| async {
        notify.notified().await;
        1
    }));
    let (mut waits, mut tries) = (spawn(cell.get_or_init(|| ready(2))), spawn(cell.get_or_try_init(|| ready(Err(())))));
    makes.waits();
    waits.waits();
    tries.waits();
    notify.notify_one();
    assert_eq!((makes.wakes(), waits.wakes()), (1, 0));
    assert_eq!(makes.ready(), &1);
    assert_eq!((waits.wakes(), tries.wakes()), (1, 1));
    assert_eq!(waits.ready(), &1);
    assert_eq!(tries.ready(), Ok(&1));
}

#[test]
fn a_cancelled_maker_passes_the_right_on() {
    let cell = OnceCell::new();
    let mut makes = spawn(cell.get_or_init(pending));
    let mut waits = spawn(cell.get_or_init(|| ready(2)));
    makes.waits();
    waits.waits();
    drop(makes);
    assert_eq!(waits.wakes(), 1);
    assert_eq!(waits.ready(), &2);
}

#[test]
fn a_right_whose_owner_is_dropped_goes_to_the_next() {
    let cell = OnceCell::new();
    let mut makes = spawn(cell.get_or_init(pending));
    let mut waits: Vec<_> = (0..2).map(|n| spawn(cell.get_or_init(move || ready(n)))).collect();
    makes.waits();
    waits.iter_mut().for_each(|one| one.waits());
    drop(makes);
    drop(waits.remove(0));
    assert_eq!(waits[0].ready(), &1);
}

#[test]
fn a_maker_that_fails_passes_the_right_on() {
    let cell = OnceCell::new();
    let notify = mini_sync::Notify::new();
    let mut fails = spawn(cell.get_or_try_init(|| async {
        notify.notified().await;
        Err("no")
    }));
    let mut waits = spawn(cell.get_or_init(|| ready(2)));
    fails.waits();
    waits.waits();
    notify.notify_one();
    assert_eq!(fails.ready(), Err("no"));
    assert_eq!(waits.ready(), &2);
}

#[test]
fn a_maker_that_panics_passes_the_right_on_at_once() {
    let cell: OnceCell<u8> = OnceCell::new();
    let mut panics = spawn(cell.get_or_init(|| async { resume_unwind(Box::new(())) }));
    assert!(catch_unwind(AssertUnwindSafe(|| panics.poll().is_ready())).is_err());
    assert_eq!(now(cell.get_or_init(|| ready(2))), &2);
    let cell: OnceCell<u8> = OnceCell::new();
    let mut panics = spawn(cell.get_or_init(|| -> std::future::Ready<u8> { resume_unwind(Box::new(())) }));
    assert!(catch_unwind(AssertUnwindSafe(|| panics.poll().is_ready())).is_err());
    assert_eq!(now(cell.get_or_init(|| ready(3))), &3);
}

#[test]
fn a_makers_future_is_dropped_before_the_right_goes_on() {
    struct Looks<'a>(&'a OnceCell<u8>);
    impl Drop for Looks<'_> {
        fn drop(&mut self) {
            assert!(self.0.set(1).unwrap_err().is_initializing_err());
        }
    }
    let cell = OnceCell::new();
    let looks = Looks(&cell);
    let mut makes = spawn(cell.get_or_init(|| async move {
        let _looks = looks;
        pending().await
    }));
    makes.waits();
    drop(makes);
    cell.set(2).unwrap();
}

#[test]
fn set_fills_an_empty_cell_and_gives_the_value_back_otherwise() {
    let cell = OnceCell::new();
    let mut makes = spawn(cell.get_or_init(pending));
    makes.waits();
    assert_eq!(cell.set(1), Err(SetError::InitializingError(1)));
    drop(makes);
    assert_eq!(cell.set(2), Ok(()));
    assert_eq!(cell.set(3), Err(SetError::AlreadyInitializedError(3)));
    assert!(cell.set(3).unwrap_err().is_already_init_err());
    assert_eq!(now(cell.get_or_init(pending)), &2);
}

#[test]
fn the_value_is_dropped_with_the_cell_or_taken_out() {
    let value = Arc::new(());
    let mut cell = OnceCell::new_with(Some(value.clone()));
    assert_eq!(Arc::strong_count(&value), 2);
    drop(cell.take().unwrap());
    assert_eq!((Arc::strong_count(&value), cell.initialized()), (1, false));
    cell.set(value.clone()).unwrap();
    assert!(cell.get_mut().is_some());
    drop(cell);
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(OnceCell::from(1).into_inner(), Some(1));
    assert_eq!(OnceCell::<u8>::new_with(None).into_inner(), None);
}

#[test]
fn a_constant_cell_may_be_full() {
    static CELL: OnceCell<u8> = OnceCell::const_new_with(1);
    assert_eq!(CELL.get(), Some(&1));
    assert!(CELL.set(2).unwrap_err().is_already_init_err());
    assert_eq!(now(CELL.get_or_init(pending)), &1);
}

#[test]
fn cells_are_cloned_and_compared_by_value() {
    let (empty, full) = (OnceCell::new(), OnceCell::from(1));
    assert_ne!(empty, full);
    assert_eq!(full.clone(), full);
    assert_eq!(empty.clone(), empty);
}

#[test]
fn debug_shows_the_value_or_who_makes_it() {
    let cell = OnceCell::<u8>::new();
    assert_eq!(format!("{cell:?}"), "OnceCell { value: None }");
    let mut makes = spawn(cell.get_or_init(pending));
    makes.waits();
    assert!(format!("{cell:?}").contains("<made at "), "{cell:?}");
    drop(makes);
    cell.set(1).unwrap();
    assert_eq!(format!("{cell:?}"), "OnceCell { value: Some(1) }");
}
