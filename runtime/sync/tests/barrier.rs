//! Tests of the promises of a barrier.

mod by_hand;

use by_hand::{now, spawn};
use mini_sync::Barrier;

#[test]
fn a_barrier_for_none_or_one_lets_everybody_pass() {
    for count in [0, 1] {
        let barrier = Barrier::new(count);
        assert!(now(barrier.wait()).is_leader());
        assert!(now(barrier.wait()).is_leader());
    }
}

#[test]
fn the_last_that_comes_leads_and_wakes_the_others() {
    let barrier = Barrier::new(2);
    let mut first = spawn(barrier.wait());
    first.waits();
    assert_eq!(first.wakes(), 0);
    assert!(now(barrier.wait()).is_leader());
    assert_eq!(first.wakes(), 1);
    assert!(!first.ready().is_leader());
}

#[test]
fn many_pass_together_and_one_leads() {
    let barrier = Barrier::new(100);
    for _ in 0..3 {
        let mut waiting: Vec<_> = (0..99).map(|_| spawn(barrier.wait())).collect();
        waiting.iter_mut().for_each(|one| one.waits());
        assert!(waiting.iter().all(|one| one.wakes() == 0));
        assert!(now(barrier.wait()).is_leader());
        assert!(waiting.iter_mut().all(|one| one.wakes() == 1 && !one.ready().is_leader()));
    }
}

#[test]
fn who_polls_again_counts_once() {
    let barrier = Barrier::new(2);
    let mut first = spawn(barrier.wait());
    first.waits();
    first.waits();
    assert!(first.move_and_poll().is_pending());
    assert!(now(barrier.wait()).is_leader());
    assert_eq!(first.wakes(), 1);
}

#[test]
fn who_comes_before_the_others_have_left_waits_for_the_next_round() {
    let barrier = Barrier::new(2);
    let mut first = spawn(barrier.wait());
    first.waits();
    now(barrier.wait());
    let mut next = spawn(barrier.wait());
    next.waits();
    assert!(!first.ready().is_leader());
    next.waits();
    now(barrier.wait());
    assert!(!next.ready().is_leader());
}

#[test]
fn who_is_dropped_while_it_waits_has_not_come() {
    let barrier = Barrier::new(3);
    let (mut first, mut second) = (spawn(barrier.wait()), spawn(barrier.wait()));
    first.waits();
    second.waits();
    drop(first);
    let mut third = spawn(barrier.wait());
    third.waits();
    assert!(now(barrier.wait()).is_leader());
    assert!(!second.ready().is_leader() && !third.ready().is_leader());
}

#[test]
fn who_is_dropped_when_all_have_come_leaves_the_next_round_alone() {
    let barrier = Barrier::new(2);
    let mut first = spawn(barrier.wait());
    first.waits();
    now(barrier.wait());
    let mut next = spawn(barrier.wait());
    next.waits();
    drop(first);
    assert_eq!(format!("{barrier:?}"), "Barrier { count: 2, arrived: 1 }");
    assert!(now(barrier.wait()).is_leader());
}

#[test]
fn a_loop_at_a_barrier_for_one_lets_others_run() {
    let barrier = Barrier::new(1);
    let mut busy = spawn(async {
        loop {
            barrier.wait().await;
        }
    });
    assert!(matches!(busy.poll(), std::task::Poll::<()>::Pending));
    assert_eq!(busy.wakes(), 1);
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn who_has_passed_does_not_come_again() {
    let barrier = Barrier::new(1);
    let mut waiting = spawn(barrier.wait());
    waiting.ready();
    waiting.ready();
}

const fn is_send<T: Send>() {}
const _: () = is_send::<mini_sync::future::BarrierWait<'_>>();
