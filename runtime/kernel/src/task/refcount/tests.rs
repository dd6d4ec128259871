//! The transitions of a `RefCount`, each by its edge.

use super::*;

#[test]
fn edges_1_and_4_a_waiter_is_woken() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(refs.offer(), OnJoin::Pending);
    assert_eq!(refs.complete(&local, || 3), OnComplete::Wake(3));
    assert!(refs.is_done());
    assert_eq!(refs.leave(), OnJoin::Done);
    assert_eq!(refs.release(), OnRelease::Free, "the runtime's reference went with the end");
}

#[test]
fn edges_2_and_7_a_waiter_that_is_not_the_first_is_looked_for_again() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    for _ in 0..3 {
        assert_eq!(refs.offer(), OnJoin::Pending);
        assert_eq!(refs.withdraw(), OnWithdraw::Waiter);
        assert!(!refs.has_waiter());
    }
    assert_eq!(refs.offer(), OnJoin::Pending);
    assert_eq!(refs.complete(&local, || 3), OnComplete::LookAndWake);
    assert_eq!(refs.leave(), OnJoin::Done);
    assert_eq!(refs.release(), OnRelease::Nothing, "the runner has not woken it yet");
    assert_eq!(refs.release(), OnRelease::Free);
}

#[test]
fn edge_2_a_withdrawn_waiter_is_not_woken() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(refs.offer(), OnJoin::Pending);
    assert_eq!(refs.withdraw(), OnWithdraw::Waiter);
    assert_eq!(refs.complete(&local, || 3), OnComplete::Nothing);
}

#[test]
fn a_withdrawal_that_is_too_late_leaves_the_waiter_to_the_runner_for_ever() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(refs.withdraw(), OnWithdraw::Nothing);
    assert_eq!(refs.offer(), OnJoin::Pending);
    assert_eq!(refs.complete(&local, || 3), OnComplete::Wake(3));
    assert_eq!(refs.withdraw(), OnWithdraw::Done);
    assert_eq!(refs.withdraw(), OnWithdraw::Done);
}

#[test]
fn edge_3_an_offer_after_the_end_finds_it() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(refs.complete(&local, || 3), OnComplete::Nothing);
    assert_eq!(refs.offer(), OnJoin::Done);
    assert_eq!(refs.release(), OnRelease::Free, "the runtime's reference went with the end");
}

#[test]
fn edge_5_leaving_after_the_end_takes_the_output_along() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(refs.complete(&local, || 3), OnComplete::Nothing);
    assert_eq!(refs.leave(), OnJoin::Done);
    assert_eq!(refs.release(), OnRelease::Free);
}

#[test]
fn edge_6_leaving_before_the_end_lets_the_runner_drop_the_output() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    assert_eq!(refs.leave(), OnJoin::Pending);
    assert_eq!(refs.complete(&local, || 3), OnComplete::DropOutput);
    assert_eq!(refs.release(), OnRelease::Free);
}

#[test]
fn the_last_of_many_frees_wherever_each_was_counted() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    for _ in 0..3 {
        local.retain(&refs);
    }
    let _ = refs.release(); // counted there, given back here: the word is behind by one
    let _ = refs.release();
    let _ = refs.release();
    assert_eq!(refs.leave(), OnJoin::Pending, "the word says -2, and still nobody has the last one");
    refs.retain();
    assert_eq!(refs.complete(&local, || 3), OnComplete::DropOutput);
    assert_eq!(refs.release(), OnRelease::Nothing);
    assert_eq!(refs.release(), OnRelease::Free);
}

#[test]
fn more_references_than_the_cell_counts_go_to_the_word() {
    let (refs, local) = (RefCount::new(), LocalCount::new());
    let many = i32::from(i16::MAX) + 5;
    (0..many).for_each(|_| local.retain(&refs));
    (0..2 * many).for_each(|_| local.release(&refs));
    (0..many).for_each(|_| refs.retain());
    assert_eq!(refs.complete(&local, || 3), OnComplete::Nothing);
    assert_eq!(refs.release(), OnRelease::Free);
}
