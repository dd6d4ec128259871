//! The transitions of a life, each by its edge.

use super::*;

#[test]
fn edges_1_and_4_a_waiter_is_woken() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(life.offer(), OnJoin::Pending);
    assert_eq!(life.complete(&local, || 3), OnComplete::Wake(3));
    assert!(life.is_done());
    assert_eq!(life.leave(), OnJoin::Done);
    assert_eq!(life.release(), OnRelease::Free, "the runtime's reference went with the end");
}

#[test]
fn edges_2_and_7_a_waiter_that_is_not_the_first_is_looked_for_again() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    for _ in 0..3 {
        assert_eq!(life.offer(), OnJoin::Pending);
        assert_eq!(life.withdraw(), OnWithdraw::Waiter);
        assert!(!life.has_waiter());
    }
    assert_eq!(life.offer(), OnJoin::Pending);
    assert_eq!(life.complete(&local, || 3), OnComplete::LookAndWake);
    assert_eq!(life.leave(), OnJoin::Done);
    assert_eq!(life.release(), OnRelease::Nothing, "the runner has not woken it yet");
    assert_eq!(life.release(), OnRelease::Free);
}

#[test]
fn edge_2_a_withdrawn_waiter_is_not_woken() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(life.offer(), OnJoin::Pending);
    assert_eq!(life.withdraw(), OnWithdraw::Waiter);
    assert_eq!(life.complete(&local, || 3), OnComplete::Nothing);
}

#[test]
fn a_withdrawal_that_is_too_late_leaves_the_waiter_to_the_runner_for_ever() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(life.withdraw(), OnWithdraw::Nothing);
    assert_eq!(life.offer(), OnJoin::Pending);
    assert_eq!(life.complete(&local, || 3), OnComplete::Wake(3));
    assert_eq!(life.withdraw(), OnWithdraw::Done);
    assert_eq!(life.withdraw(), OnWithdraw::Done);
}

#[test]
fn edge_3_an_offer_after_the_end_finds_it() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(life.complete(&local, || 3), OnComplete::Nothing);
    assert_eq!(life.offer(), OnJoin::Done);
    assert_eq!(life.release(), OnRelease::Free, "the runtime's reference went with the end");
}

#[test]
fn edge_5_leaving_after_the_end_takes_the_output_along() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(life.complete(&local, || 3), OnComplete::Nothing);
    assert_eq!(life.leave(), OnJoin::Done);
    assert_eq!(life.release(), OnRelease::Free);
}

#[test]
fn edge_6_leaving_before_the_end_lets_the_runner_drop_the_output() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(life.leave(), OnJoin::Pending);
    assert_eq!(life.complete(&local, || 3), OnComplete::DropOutput);
    assert_eq!(life.release(), OnRelease::Free);
}

#[test]
fn the_last_of_many_frees_wherever_each_was_counted() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    for _ in 0..3 {
        local.retain(&life);
    }
    let _ = life.release(); // counted there, given back here: the word is behind by one
    let _ = life.release();
    let _ = life.release();
    assert_eq!(life.leave(), OnJoin::Pending, "the word says -2, and still nobody has the last one");
    life.retain();
    assert_eq!(life.complete(&local, || 3), OnComplete::DropOutput);
    assert_eq!(life.release(), OnRelease::Nothing);
    assert_eq!(life.release(), OnRelease::Free);
}

#[test]
fn more_references_than_the_cell_counts_go_to_the_word() {
    let (life, local) = (RefCount::new(), LocalCount::new());
    let many = i32::from(i16::MAX) + 5;
    (0..many).for_each(|_| local.retain(&life));
    (0..2 * many).for_each(|_| local.release(&life));
    (0..many).for_each(|_| life.retain());
    assert_eq!(life.complete(&local, || 3), OnComplete::Nothing);
    assert_eq!(life.release(), OnRelease::Free);
}
