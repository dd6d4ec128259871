//! The transitions of a state, each by its edge.

use super::*;

/// Runs one test body on both kinds, whose local transitions have the same names.
macro_rules! both {
    ($name:ident, |$state:ident| $body:block) => {
        #[test]
        fn $name() {
            {
                let $state = State::shared();
                $body
            }
            {
                let $state = State::owned();
                $body
            }
        }
    };
}

both!(edge_1_wake_while_idle_enqueues_once, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_pending(), OnPending::Idle);
    assert_eq!(state.wake(), OnWake::Enqueue);
    assert_eq!(state.wake(), OnWake::Nothing);
});

both!(edge_2_one_poll_serves_all_wakes_before_it, |state| {
    assert_eq!(state.wake(), OnWake::Nothing, "it has been queued by its spawn");
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_pending(), OnPending::Idle);
    assert_eq!([state.wake(), state.wake()], [OnWake::Enqueue, OnWake::Nothing]);
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_yielded(), OnPending::Requeue);
    assert_eq!(state.wake(), OnWake::Nothing);
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_pending(), OnPending::Idle);
});

both!(edge_3_and_4_wake_while_running_leaves_a_mark, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.wake(), OnWake::Nothing);
    assert_eq!(state.wake(), OnWake::Nothing);
    assert_eq!(state.finish_pending(), OnPending::Requeue);
    assert_eq!(state.wake(), OnWake::Nothing, "it is queued");
    assert_eq!(state.start(), (OnStart::Poll, false));
});

both!(edge_4_a_task_that_yields_is_queued_once, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.wake(), OnWake::Nothing);
    assert_eq!(state.finish_yielded(), OnPending::Requeue);
    assert_eq!(state.wake(), OnWake::Nothing, "it is queued");
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_pending(), OnPending::Idle);
});

both!(edge_7_cancel_while_running_drops_a_task_that_yields, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.cancel(), OnWake::Nothing);
    assert_eq!(state.finish_yielded(), OnPending::Drop);
    assert_eq!(state.wake(), OnWake::Nothing, "the task stays claimed while the future is dropped");
    state.finish_done();
});

both!(edge_5_pending_without_a_mark_is_idle, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_pending(), OnPending::Idle);
});

both!(edge_6_a_finished_task_ignores_everything, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.wake(), OnWake::Nothing);
    state.finish_done();
    assert_eq!(state.wake(), OnWake::Nothing);
    assert_eq!(state.cancel(), OnWake::Nothing);
});

both!(edge_7_cancel_while_queued_drops_at_start, |state| {
    assert_eq!(state.cancel(), OnWake::Nothing);
    assert_eq!(state.start(), (OnStart::Drop, false));
});

both!(edge_7_cancel_while_idle_enqueues_to_be_dropped, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.finish_pending(), OnPending::Idle);
    assert_eq!(state.cancel(), OnWake::Enqueue);
    assert_eq!(state.start(), (OnStart::Drop, false));
});

both!(edge_7_cancel_while_running_drops_after_the_poll, |state| {
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.cancel(), OnWake::Nothing);
    assert_eq!(state.finish_pending(), OnPending::Drop);
    assert_eq!(state.wake(), OnWake::Nothing, "the task stays claimed while the future is dropped");
    state.finish_done();
});

#[test]
fn edge_8_only_the_first_remote_wake_posts() {
    let state = State::owned();
    assert_eq!(state.remote_wake(), OnRemote::Post);
    assert_eq!(state.remote_wake(), OnRemote::Nothing);
    assert_eq!(state.remote_cancel(), OnRemote::Nothing);
}

#[test]
fn edge_9_the_owner_takes_over_a_remote_wake() {
    let state = State::posted();
    assert_eq!(state.remote_wake(), OnRemote::Nothing);
    assert_eq!(state.take_remote(), OnWake::Enqueue);
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert_eq!(state.remote_wake(), OnRemote::Post);
    assert_eq!(state.take_remote(), OnWake::Nothing, "a mark for the runner");
    assert_eq!(state.finish_pending(), OnPending::Requeue);
}

#[test]
fn edge_9_a_remote_cancel_is_a_cancel() {
    let state = State::posted();
    assert_eq!(state.remote_cancel(), OnRemote::Nothing);
    assert_eq!(state.take_remote(), OnWake::Enqueue);
    assert_eq!(state.start(), (OnStart::Drop, false));
}

#[test]
fn a_finished_owned_task_is_never_posted_again() {
    let state = State::owned();
    assert_eq!(state.start(), (OnStart::Poll, false));
    state.finish_done();
    assert_eq!(state.remote_wake(), OnRemote::Nothing);
    assert_eq!(state.take_remote(), OnWake::Nothing);
    assert_eq!(state.remote_wake(), OnRemote::Nothing);
}

#[test]
fn edge_1_a_waker_leaves_its_reference_with_an_idle_task_alone() {
    let state = State::shared();
    assert!(!state.wake_owing(), "it is queued");
    assert_eq!(state.start(), (OnStart::Poll, false));
    assert!(!state.wake_owing(), "it is polled");
    assert_eq!(state.finish_pending(), OnPending::Idle, "nothing was done");
    assert!(state.wake_owing());
    assert_eq!(state.start(), (OnStart::Poll, true));
    assert_eq!(state.finish_pending(), OnPending::Idle);
    assert!(state.wake_owing(), "the one before has been given back");
    assert_eq!(state.wake(), OnWake::Nothing);
    assert_eq!(state.cancel(), OnWake::Nothing);
    assert_eq!(state.start(), (OnStart::Drop, true));
    state.finish_done();
    assert!(!state.wake_owing(), "it has ended");
}
