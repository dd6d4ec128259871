//! Tokens that ask for an end: who is told, with which reason, and that trees of any shape leave nothing behind.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use mini::sync::mpsc;
use mini::task::{CancelToken, Reason};
use mini_tests::net_support::in_each_runtime;
use mini_tests::{Counts, Token, caught, counted, line_of, never, poll_with};

#[test]
fn all_that_wait_below_are_woken_once_with_the_first_reason_and_its_line() {
    let root = CancelToken::new();
    let tokens = [root.clone(), root.child(), root.child().child()];
    let counts: Vec<_> = tokens.iter().map(|_| Counts::new()).collect();
    let mut waits: Vec<_> = tokens.iter().map(CancelToken::cancelled).collect();
    for (wait, counts) in waits.iter_mut().zip(&counts) {
        assert!(poll_with(wait, counts).is_pending());
        assert!(poll_with(wait, counts).is_pending());
    }
    assert!(root.cancel(Reason::Deadline)); // the line
    assert!(!root.cancel(Reason::Requested) && !tokens[1].cancel(Reason::Requested));
    let line = line_of(include_str!("cancel_token.rs"), "// the line");
    for (wait, counts) in waits.iter_mut().zip(&counts) {
        let Poll::Ready(why) = poll_with(wait, counts) else { panic!("it is cancelled") };
        assert_eq!((why.reason(), why.location().line(), counts.wakes()), (Reason::Deadline, line, 1));
        assert!(why.to_string().ends_with(&format!("cancel_token.rs:{line}:18")), "{why}");
        assert!(poll_with(wait, counts).is_ready(), "and again");
    }
}

#[test]
fn siblings_and_parents_are_left_alone() {
    let root = CancelToken::new();
    let (one, other) = (root.child(), root.child());
    let below = one.child();
    assert!(one.cancel(Reason::SiblingFailed));
    assert_eq!(below.reason(), Some(Reason::SiblingFailed));
    assert_eq!((root.reason(), other.reason()), (None, None));
    assert!(root.cancel(Reason::Shutdown));
    assert_eq!((one.reason(), other.reason()), (Some(Reason::SiblingFailed), Some(Reason::Shutdown)));
}

#[test]
fn a_wait_that_is_dropped_or_moves_to_another_task_leaves_no_waker() {
    let token = CancelToken::new();
    let (first, second) = (Counts::new(), Counts::new());
    let mut wait = token.clone().cancelled_owned();
    assert!(poll_with(&mut wait, &first).is_pending());
    assert!(poll_with(&mut wait, &second).is_pending());
    assert_eq!((Arc::strong_count(&first), format!("{token:?}").contains("waiters: 1")), (1, true));
    drop(wait);
    assert_eq!((Arc::strong_count(&second), format!("{token:?}").contains("waiters: 0")), (1, true));
    token.cancel(Reason::Requested);
    assert_eq!((first.wakes(), second.wakes()), (0, 0));
}

#[test]
fn many_waiters_come_and_go_in_any_order() {
    let token = CancelToken::new();
    let counts = Counts::new();
    let mut waits: Vec<_> = (0..1000).map(|_| Some(token.cancelled())).collect();
    for round in 0..3 {
        for wait in waits.iter_mut().flatten() {
            assert!(poll_with(wait, &counts).is_pending());
        }
        for wait in waits.iter_mut().skip(round).step_by(2 + round) {
            *wait = None;
        }
        for wait in waits.iter_mut().skip(round).step_by(4) {
            *wait = Some(token.cancelled());
        }
    }
    let mut left = waits.into_iter().flatten().collect::<Vec<_>>();
    left.iter_mut().for_each(|wait| assert!(poll_with(wait, &counts).is_pending()));
    token.cancel(Reason::Requested);
    assert_eq!(counts.wakes(), left.len());
    drop(left);
    assert_eq!(Arc::strong_count(&counts), 1);
}

#[test]
fn run_drops_its_future_before_it_returns_and_prefers_the_cancellation() {
    in_each_runtime(|| async {
        let token = CancelToken::new();
        let counts = Counts::new();
        let mut run = Box::pin(token.run(never(&counts)));
        assert!(poll_with(&mut run, &counts).is_pending());
        assert_eq!((counts.polls(), counts.drops()), (1, 0));
        token.cancel(Reason::Requested);
        assert_eq!(counts.wakes(), 1);
        let Poll::Ready(Err(why)) = poll_with(&mut run, &counts) else { panic!("it is cancelled") };
        assert_eq!((why.reason(), counts.polls(), counts.drops()), (Reason::Requested, 1, 1));

        let mut ready = Box::pin(token.run(counted(&counts, |_| Poll::Ready(7))));
        assert!(matches!(poll_with(&mut ready, &counts), Poll::Ready(Err(_))));
        assert_eq!((counts.polls(), counts.drops()), (1, 2), "never polled");
    });
}

#[test]
fn run_gives_the_output_and_leaves_no_waiter() {
    let token = CancelToken::new();
    let dropped = Counts::new();
    let inside = Token::new(&dropped);
    let mut run = Box::pin(token.run(async move {
        let _inside = inside;
        mini::task::yield_now().await;
        7
    }));
    mini::block_on(async {
        assert_eq!(run.as_mut().await, Ok(7));
        assert_eq!(dropped.drops(), 1, "before the Run is");
    });
    assert!(caught(|| poll_with(&mut run, &dropped)).message.contains("polled after it was ready"));
    drop(run);
    assert!(format!("{token:?}").contains("waiters: 0"), "{token:?}");
}

#[test]
fn a_chain_of_a_hundred_thousand_is_cancelled_and_dropped_without_recursion() {
    // A small stack: recursion would need 100,000 frames of it.
    let body = || {
        let root = CancelToken::new();
        let mut last = root.clone();
        for _ in 0..100_000 {
            last = last.child();
        }
        assert!(root.cancel(Reason::Requested));
        assert_eq!(last.reason(), Some(Reason::Requested));
        drop(root);
        drop(last); // keeps all the others
        let mut last = CancelToken::new();
        for _ in 0..100_000 {
            last = last.child();
        }
        drop(last);
    };
    thread::Builder::new().stack_size(128 << 10).spawn(body).unwrap().join().unwrap();
}

#[test]
fn a_child_that_is_dropped_is_forgotten() {
    let token = CancelToken::new();
    let children: Vec<_> = (0..100).map(|_| token.child()).collect();
    assert!(format!("{token:?}").contains("children: 100"), "{token:?}");
    let grandchild = children[7].child();
    drop(children);
    assert!(format!("{token:?}").contains("children: 1,"), "{token:?}");
    token.cancel(Reason::ParentGone);
    assert_eq!(grandchild.reason(), Some(Reason::ParentGone), "though nobody holds what is between");
    drop(grandchild);
}

#[test]
fn debug_tells_name_and_reason() {
    let token = CancelToken::new().name("upload");
    assert_eq!(format!("{token:?}"), "CancelToken { name: \"upload\", children: 0, waiters: 0 }");
    token.cancel(Reason::Signal);
    let text = format!("{token:?}");
    assert!(text.starts_with("CancelToken { name: \"upload\", cancelled: signal at tests/"), "{text}");
}

#[test]
fn a_waker_that_panics_keeps_no_other_from_being_woken() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker of the test");
        }
    }
    let token = CancelToken::new();
    let (mut bad, mut good) = (pin!(token.cancelled()), pin!(token.cancelled()));
    assert!(bad.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(Panics)))).is_pending());
    let counts = Counts::new();
    assert!(poll_with(&mut good, &counts).is_pending());
    assert!(token.cancel(Reason::Requested));
    assert_eq!(counts.wakes(), 1);
}

#[test]
fn a_task_says_that_it_waits_for_a_cancellation() {
    in_each_runtime(|| async {
        let token = CancelToken::new();
        let inside = token.clone();
        let waits = mini::spawn(async move { inside.cancelled().await }); // waits here
        let runs = mini::spawn(token.run(pending::<()>())); // runs here
        let sleeps = mini::spawn(token.run(mini::time::sleep(std::time::Duration::from_secs(99)))); // sleeps here
        let line = |mark| line_of(include_str!("cancel_token.rs"), mark);
        for (task, what, mark) in [
            (format_when_idle(&waits).await, "Cancellation", "// waits here"),
            (format_when_idle(&runs).await, "Cancellation", "// runs here"),
            (format_when_idle(&sleeps).await, "Timer", "// sleeps here"),
        ] {
            assert!(task.contains(&format!("{what} at tests/tests/tasks/cancel_token.rs:{}:", line(mark))), "{task}");
        }
        token.cancel(Reason::Requested);
        assert_eq!(waits.await.unwrap().reason(), Reason::Requested);
        assert!(runs.await.unwrap().is_err() && sleeps.await.unwrap().is_err());
    });
}

async fn format_when_idle<T>(task: &mini::task::JoinHandle<T>) -> String {
    mini_tests::until(|| format!("{task:?}").contains(" at tests/")).await;
    mini_tests::until(|| !format!("{task:?}").contains("last_wait: None")).await;
    format!("{task:?}")
}

#[test]
fn threads_that_cancel_wait_and_make_children_at_once_all_come_to_an_end() {
    for _ in 0..200 {
        let token = CancelToken::new();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = token.child();
                    for _ in 0..50 {
                        last = last.child();
                    }
                    mini_tests::block_on_elsewhere(last.cancelled()).reason()
                });
            }
            scope.spawn(|| token.cancel(Reason::Requested));
        });
    }
}

/// Also where the budget is spent, after which other leaves of the poll get a unit now and then.
#[test]
fn a_cancellation_that_is_looked_for_first_comes_before_all_that_is_ready() {
    in_each_runtime(async || {
        let (first, run) = (CancelToken::new(), CancelToken::new());
        for last in 0..300 {
            let (sender, mut messages) = mpsc::unbounded_channel();
            (0..1000).for_each(|message| sender.send(message).unwrap());
            let [first, run] = [&first, &run].map(CancelToken::child);
            let mut received = Vec::new();
            let mut note = |message: Option<u32>| {
                received.push(message.unwrap());
                if message == Some(last) {
                    first.cancel(Reason::Requested);
                    run.cancel(Reason::Requested);
                }
            };
            loop {
                mini::race! {
                    biased;
                    _ = first.cancelled() => break,
                    message = messages.recv() => note(message),
                }
            }
            loop {
                mini::race! {
                    biased;
                    _ = run.run(pending::<()>()) => break,
                    message = messages.recv() => note(message),
                }
            }
            assert!(received.into_iter().eq(0..=last));
        }
    });
}
