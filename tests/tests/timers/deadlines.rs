//! Deadlines that are inherited: who reads them, who does not, and which of several counts.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;

use futures::StreamExt;
use futures::future::join;
use futures::stream::FuturesUnordered;
use mini::runtime::Builder;
use mini::sync::oneshot;
use mini::task::block_in_place;
use mini::time::{Deadline, Duration, Instant};
use mini::time::{current_deadline, deadline, inherit, pause, remaining, sleep, sleep_until, timeout};
use mini_tests::{LIMIT, multi_thread, within};

const SECOND: Duration = Duration::from_secs(1);

/// Runs `body` with a paused clock.
fn paused<F: Future<Output = ()>>(body: impl FnOnce() -> F + Send + 'static) {
    within(LIMIT, || {
        mini::block_on(async {
            pause();
            body().await;
        });
    });
}

/// Polls `future` once, and goes on.
async fn polled_once<F: Future + Unpin>(future: &mut F) {
    poll_fn(|cx| {
        assert!(pin!(&mut *future).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

fn in_seconds(seconds: u32) -> Instant {
    Instant::now() + SECOND * seconds
}

#[test]
fn it_ends_at_its_time_and_says_until_then_how_much_is_left() {
    paused(|| async {
        let at = in_seconds(3);
        let limited = deadline(at, async {
            assert_eq!((remaining(), current_deadline()), (Some(3 * SECOND), Some(at)));
            sleep(SECOND).await;
            assert_eq!(remaining(), Some(2 * SECOND));
            sleep(5 * SECOND).await;
        });
        let elapsed = limited.await.unwrap_err();
        assert_eq!(Instant::now(), at);
        assert_eq!(elapsed.limit(), None);
        assert!(elapsed.to_string().starts_with("deadline has elapsed while waiting for Timer at "), "{elapsed}");
        assert_eq!((remaining(), current_deadline()), (None, None));
        // A future that is ready in time costs no more than that.
        assert_eq!(deadline(in_seconds(1), sleep(SECOND)).await, Ok(()));
        assert_eq!(Instant::now(), at + SECOND);
    });
}

#[test]
fn what_is_over_has_nothing_left() {
    paused(|| async {
        let late = Instant::now();
        sleep(SECOND).await;
        assert_eq!(deadline(late, async { remaining() }).await, Ok(Some(Duration::ZERO)));
        assert!(deadline(late, pending::<()>()).await.is_err());
    });
}

#[test]
fn of_two_the_earlier_counts_and_the_code_between_them_can_answer() {
    paused(|| async {
        let at = in_seconds(2);
        let answer = async {
            let inner = deadline(in_seconds(9), async {
                assert_eq!(current_deadline(), Some(at));
                pending::<()>().await;
            });
            let elapsed = inner.await.unwrap_err();
            assert_eq!(Instant::now(), at);
            elapsed
        };
        let (outer, line) = (deadline(at, answer), line!());
        let elapsed = outer.await.expect("it was answered in time");
        assert_eq!(elapsed.location().line(), line, "{elapsed:?}");
    });
}

/// The time comes after the inner one has looked at the clock, and before the outer one does.
#[test]
fn the_inner_one_comes_first_if_the_time_comes_within_a_poll() {
    within(LIMIT, || {
        mini::block_on(async {
            let end = Instant::now() + Duration::from_millis(5);
            let step = async { deadline(end + SECOND, pending::<()>()).await.is_err() };
            let computes = async { while Instant::now() < end {} };
            assert_eq!(deadline(end, join(step, computes)).await, Ok((true, ())));
        });
    });
}

/// The future that awaits the inner one is a different one: the body of a scope for its task, or the other of two that
/// are joined.
#[test]
fn the_inner_one_comes_first_also_through_a_task_of_a_scope_or_a_channel() {
    paused(|| async {
        let scope = mini::scope!(|scope| {
            let step = scope.spawn(async { deadline(in_seconds(9), pending::<()>()).await.is_err() });
            step.await
        });
        assert_eq!(deadline(in_seconds(1), scope).await, Ok(true));
        let (send, receive) = oneshot::channel();
        let step = async { send.send(deadline(in_seconds(9), pending::<()>()).await.is_err()) };
        assert_eq!(deadline(in_seconds(1), join(receive, step)).await, Ok((Ok(true), Ok(()))));
    });
}

#[test]
fn an_earlier_one_inside_ends_first_and_then_the_outer_one_counts_again() {
    paused(|| async {
        let at = in_seconds(9);
        let outer = deadline(at, async {
            let inner = in_seconds(2);
            let line = line!() + 1;
            let elapsed = deadline(inner, pending::<()>()).await.unwrap_err();
            assert_eq!((elapsed.location().line(), Instant::now()), (line, inner));
            current_deadline()
        });
        assert_eq!(outer.await, Ok(Some(at)));
    });
}

#[test]
fn one_that_was_made_outside_or_has_waited_outside_is_moved() {
    paused(|| async {
        for polls in 0..2 {
            let mut inner: Deadline<_> = deadline(in_seconds(9), pending::<()>());
            for _ in 0..polls {
                polled_once(&mut inner).await;
            }
            let at = in_seconds(2);
            let outer = deadline(at, async {
                inner.await.unwrap_err();
                "answered"
            });
            assert_eq!((outer.await, Instant::now()), (Ok("answered"), at));
        }
    });
}

#[test]
fn a_timeout_neither_sets_nor_moves_one() {
    paused(|| async {
        assert_eq!(timeout(SECOND, async { remaining() }).await, Ok(None));
        let outer = deadline(in_seconds(2), async { timeout(SECOND, async { remaining() }).await });
        assert_eq!(outer.await, Ok(Ok(Some(2 * SECOND))));
    });
}

#[test]
fn what_is_polled_inside_inherits_and_a_neighbour_does_not() {
    paused(|| async {
        let at = in_seconds(2);
        let children = async {
            let children: FuturesUnordered<_> = (0..9).map(|_| async { current_deadline() }).collect();
            children.collect::<Vec<_>>().await
        };
        let waits = async {
            sleep(SECOND).await;
            current_deadline()
        };
        let (inside, beside) = join(deadline(at, join(children, waits)), async {
            sleep(SECOND).await;
            current_deadline()
        })
        .await;
        assert_eq!(inside, Ok((vec![Some(at); 9], Some(at))));
        assert_eq!(beside, None);
    });
}

#[test]
fn a_spawned_task_has_none_unless_it_takes_it_along() {
    within(LIMIT, || {
        multi_thread(2).build().unwrap().block_on(async {
            let at = in_seconds(60);
            let limited = deadline(at, async {
                let plain = mini::spawn(async { current_deadline() });
                let heir = mini::spawn(inherit(async move {
                    mini::task::yield_now().await;
                    let earlier = deadline(at - SECOND, async { current_deadline() }).await.unwrap();
                    (current_deadline(), earlier)
                }));
                let read_here = current_deadline();
                (plain.await.unwrap(), heir.await.unwrap(), read_here)
            });
            assert_eq!(limited.await.unwrap(), (None, (Some(at), Some(at - SECOND)), Some(at)));
            assert_eq!(mini::spawn(inherit(async { current_deadline() })).await.unwrap(), None);
        });
    });
}

#[test]
fn what_an_heir_inherits_is_the_earlier_of_both() {
    paused(|| async {
        let [early, late] = [1, 2].map(in_seconds);
        let made_in = |at| deadline(at, poll_fn(|_| Poll::Ready(inherit(async { current_deadline() }))));
        let (heir, other) = (made_in(early).await.unwrap(), made_in(late).await.unwrap());
        assert_eq!(deadline(late, heir).await, Ok(Some(early)));
        assert_eq!(deadline(early, other).await, Ok(Some(early)));
    });
}

#[test]
fn a_panic_inside_leaves_the_outer_one_in_force() {
    paused(|| async {
        let at = in_seconds(9);
        let outer = deadline(at, async {
            let mut inner = Box::pin(deadline(in_seconds(1), async { resume_unwind(Box::new(())) }));
            let panicked: bool = poll_fn(|cx| {
                let poll = catch_unwind(AssertUnwindSafe(|| -> Poll<Result<(), _>> { inner.as_mut().poll(cx) }));
                Poll::Ready(poll.is_err())
            })
            .await;
            (panicked, current_deadline())
        });
        assert_eq!(outer.await, Ok((true, Some(at))));
        assert_eq!(current_deadline(), None);
    });
}

#[test]
fn block_in_place_is_inside_and_a_block_on_in_it_is_not() {
    within(LIMIT, || {
        multi_thread(2).build().unwrap().block_on(async {
            let at = in_seconds(60);
            let limited = deadline(at, async {
                block_in_place(|| {
                    let task = || mini::spawn(async { current_deadline() });
                    let inside = mini::block_on(async move { (current_deadline(), task().await.unwrap()) });
                    (current_deadline(), inside)
                })
            });
            assert_eq!(limited.await, Ok((Some(at), (None, None))));
        });
    });
}

#[test]
fn a_runtime_inside_of_a_poll_of_somebody_elses_executor_has_none() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let limited = deadline(in_seconds(60), async {
            let task = runtime.spawn(async { current_deadline() });
            let in_block_on = runtime.block_on(async { (current_deadline(), task.await.unwrap()) });
            let turned = runtime.spawn(async { current_deadline() });
            while !turned.is_finished() {
                runtime.turn(Duration::ZERO);
            }
            (in_block_on, runtime.block_on(turned).unwrap(), current_deadline().is_some())
        });
        assert_eq!(futures_lite::future::block_on(limited).unwrap(), ((None, None), None, true));
    });
}

#[test]
fn a_limit_on_a_step_does_not_outlive_the_request() {
    paused(|| async {
        // Three tries of a second each, within two and a half.
        let end = Instant::now() + SECOND * 5 / 2;
        let mut tries = 0;
        let request = deadline(end, async {
            while remaining() != Some(Duration::ZERO) {
                tries += 1;
                let step = deadline(in_seconds(1), sleep_until(end + SECOND));
                step.await.unwrap_err();
            }
            "gave up"
        });
        assert_eq!(request.await, Ok("gave up"));
        assert_eq!((tries, Instant::now()), (3, end));
    });
}
