//! Scopes: what children may borrow, who runs when, and how a scope ends.

#![allow(clippy::async_yields_async)] // handles leave their scopes on purpose

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use mini::block_on as run;
use mini::runtime::Builder;
use mini::sync::{mpsc, oneshot};
use mini::task::{JoinSet, ScopedJoinHandle, yield_now};
use mini::{local_scope, scope, try_local_scope, try_scope};
use mini_tests::{caught, multi_thread};

mod turns;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Writes its name when it is dropped.
struct Named<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

/// A waker that holds something.
struct Held(#[expect(dead_code)] Arc<()>);

impl std::task::Wake for Held {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn children_borrow_from_outside_also_mutably() {
    run(async {
        let text = String::from("text");
        let (mut length, mut seen) = (0, Vec::new());
        let first = scope!(|s| {
            s.spawn(async { length = text.len() });
            s.spawn(async {
                yield_now().await;
                seen.push(&text[..1]);
            });
            s.spawn(async { text.as_bytes()[0] }).await
        })
        .await;
        assert_eq!((first, length, seen), (b't', 4, vec!["t"]));
    });
}

#[test]
fn a_scope_waits_for_children_whose_handles_were_dropped() {
    run(async {
        let (count, count_in) = (AtomicUsize::new(0), 10);
        scope!(|s| {
            for turns in 0..count_in {
                let count = &count;
                s.spawn(async move {
                    for _ in 0..turns {
                        yield_now().await;
                    }
                    count.fetch_add(1, Relaxed);
                });
            }
        })
        .await;
        assert_eq!(count.into_inner(), count_in);
    });
}

#[test]
fn children_spawn_children() {
    type Grown<'env> = std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'env>>;
    fn grow<'env>(s: mini::task::Scope<'env>, depth: usize, leaves: &'env AtomicUsize) -> Grown<'env> {
        Box::pin(async move {
            if depth == 0 {
                leaves.fetch_add(1, Relaxed);
                return;
            }
            for _ in 0..2 {
                s.spawn(grow(s.clone(), depth - 1, leaves));
                yield_now().await;
            }
        })
    }
    run(async {
        let leaves = AtomicUsize::new(0);
        scope!(|s| drop(s.spawn(grow(s.clone(), 8, &leaves)))).await;
        assert_eq!(leaves.into_inner(), 256);
    });
}

#[test]
fn a_scope_that_owns_what_it_needs_is_spawned() {
    let runtime = multi_thread(2).build().unwrap();
    runtime.block_on(async {
        let names = [String::from("a"), String::from("bc")];
        let task = mini::spawn(scope!(move |s| {
            let lengths = [s.spawn(async { names[0].len() }), s.spawn(async { names[1].len() })];
            let mut sum = 0;
            for length in lengths {
                sum += length.await;
            }
            sum
        }));
        assert_eq!(task.await.unwrap(), 3);
    });
}

#[test]
fn the_first_error_cancels_the_others_and_waits_for_their_drop() {
    run(async {
        let gone = RefCell::new(Vec::new());
        let failed: Result<(), &str> = try_local_scope!(|s| {
            let _body = Named("body", &gone);
            s.spawn(async {
                let _child = Named("waits", &gone);
                pending::<Result<(), _>>().await
            });
            s.spawn(async {
                let _child = Named("fails", &gone);
                yield_now().await;
                Err::<(), _>("failed")
            });
            pending().await
        })
        .await;
        assert_eq!(failed, Err("failed"));
        assert_eq!(gone.into_inner(), ["fails", "body", "waits"]);
    });
}

#[test]
fn an_error_that_the_body_waits_for_is_the_scopes() {
    run(async {
        let failed = try_scope!(|s| {
            let child: ScopedJoinHandle<Result<u32, String>> = s.spawn(async { Err("a child".to_owned()) });
            let _ = child.await; // goes no further
            Ok(7)
        });
        assert_eq!(failed.await, Err("a child".to_owned()));
        let failed: Result<u32, String> = try_scope!(|s| {
            s.spawn(pending::<Result<(), String>>());
            let number: u32 = "x".parse().map_err(|_| "the body".to_owned())?;
            Ok(number)
        })
        .await;
        assert_eq!(failed, Err("the body".to_owned()));
    });
}

#[test]
fn a_body_left_by_a_question_mark_still_waits_for_its_children() {
    run(async {
        let mut done = false;
        let left: Result<(), std::num::ParseIntError> = scope!(|s| {
            s.spawn(async {
                yield_now().await;
                done = true;
            });
            "x".parse::<u32>()?;
            Ok(())
        })
        .await;
        assert!(left.is_err() && done);
    });
}

#[test]
fn a_panic_passes_on_when_the_others_are_gone() {
    run(async {
        for in_body in [false, true] {
            let gone = RefCell::new(Vec::new());
            let scope = local_scope!(|s| {
                let _body = Named("body", &gone);
                s.spawn(async {
                    let _child = Named("waits", &gone);
                    pending::<()>().await
                });
                s.spawn(async {
                    yield_now().await;
                    assert!(in_body, "the child has panicked");
                });
                yield_now().await;
                assert!(!in_body, "the body has panicked");
                pending::<()>().await
            });
            let panic = caught_future(scope).await.unwrap_err();
            let text = panic.downcast_ref::<&str>().unwrap();
            assert_eq!(*text, if in_body { "the body has panicked" } else { "the child has panicked" });
            assert_eq!(gone.borrow()[..], ["body", "waits"]);
        }
    });
}

async fn caught_future<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[test]
fn a_destructor_that_panics_leaves_nobody_behind() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a destructor");
        }
    }
    let gone = RefCell::new(Vec::new());
    let panicked = caught(|| {
        let mut scope = Box::pin(local_scope!(|s| {
            for _ in 0..2 {
                s.spawn(async {
                    let _panics = Panics;
                    pending::<()>().await
                });
                s.spawn(async {
                    let _child = Named("child", &gone);
                    pending::<()>().await
                });
            }
            pending::<()>().await
        }));
        assert!(poll(scope.as_mut()).is_pending());
    });
    assert!(panicked.message.contains("a destructor"), "{}", panicked.message);
    assert_eq!(gone.into_inner(), ["child", "child"]);
}

#[test]
fn a_scope_is_cancelled_in_every_state() {
    let (live, polled) = (Rc::new(()), Cell::new(0));
    for polls in 0..5 {
        let (ask, answer) = oneshot::channel::<()>();
        let mut scope = Box::pin(local_scope!(|s| {
            let (body, s2) = (live.clone(), s.clone());
            let (child, polled) = (live.clone(), &polled);
            s.spawn(async move {
                let _child = child;
                polled.set(polled.get() + 1);
                let _ = answer.await;
                let late = _child.clone();
                s2.spawn(async move { drop(late) }); // a handle in a child
            });
            yield_now().await;
            drop(body);
        }));
        let mut ask = Some(ask);
        for n in 0..polls {
            if n == 3 {
                ask.take().unwrap().send(()).unwrap();
            }
            if poll(scope.as_mut()).is_ready() {
                assert_eq!(n, 3);
                break;
            }
        }
        drop(scope);
        assert_eq!(Rc::strong_count(&live), 1, "after {polls} polls");
    }
    assert_eq!(polled.get(), 4);
}

#[test]
fn a_scope_that_is_forgotten_is_no_harm() {
    let mut number = 7;
    let text = String::from("text");
    {
        let mut scope = Box::pin(scope!(|s| {
            s.spawn(async {
                number += 1;
                yield_now().await;
                number += text.len();
                pending::<()>().await
            });
            pending::<()>().await
        }));
        assert!(poll(scope.as_mut()).is_pending());
        std::mem::forget(scope);
    }
    number += 1;
    assert_eq!((number, text), (9, "text".to_owned()));
}

#[test]
fn a_child_that_nobody_woke_is_not_polled() {
    let polls = [const { Cell::new(0) }; 1000];
    let (senders, receivers): (Vec<_>, Vec<_>) = polls.iter().map(|_| oneshot::channel::<()>()).unzip();
    let mut scope = Box::pin(local_scope!(|s| {
        for (polls, mut receiver) in polls.iter().zip(receivers) {
            s.spawn(async move {
                poll_fn(|cx| {
                    polls.set(polls.get() + 1);
                    std::pin::Pin::new(&mut receiver).poll(cx)
                })
                .await
            });
        }
    }));
    // The budget of a poll is not enough for all to begin to wait.
    while polls.iter().any(|polls| polls.get() == 0) {
        assert!(poll(scope.as_mut()).is_pending());
    }
    (0..100).for_each(|_| assert!(poll(scope.as_mut()).is_pending()));
    for (n, sender) in senders.into_iter().enumerate() {
        polls.iter().for_each(|polls| polls.set(0));
        sender.send(()).unwrap();
        let is_last = n + 1 == polls.len();
        let is_ready = (0..3).any(|_| poll(scope.as_mut()).is_ready());
        assert_eq!(is_ready, is_last);
        assert!(polls[n].get() > 0 && polls.iter().filter(|polls| polls.get() > 0).count() == 1);
    }
}

#[test]
fn ten_thousand_children_come_and_go() {
    run(async {
        let sum = AtomicUsize::new(0);
        scope!(|s| {
            for n in 0..10_000 {
                let sum = &sum;
                s.spawn(async move {
                    if n % 3 == 0 {
                        yield_now().await;
                    }
                    sum.fetch_add(n, Relaxed);
                });
                if n % 100 == 0 {
                    yield_now().await;
                }
            }
        })
        .await;
        assert_eq!(sum.into_inner(), 10_000 * 9_999 / 2);
    });
}

#[test]
fn children_are_woken_from_other_threads_while_the_task_moves() {
    let runtime = multi_thread(2).build().unwrap();
    runtime.block_on(async {
        let mut scopes = JoinSet::new();
        for _ in 0..20 {
            scopes.spawn(async {
                let mut received = 0;
                let (sender, mut receiver) = mpsc::channel(4);
                scope!(|s| {
                    for n in 0..50 {
                        let sender = sender.clone();
                        s.spawn(async move {
                            let sent = mini::spawn(async move {
                                yield_now().await;
                                sender.send(n).await
                            });
                            sent.await.unwrap().unwrap();
                        });
                    }
                    drop(sender);
                    while receiver.recv().await.is_some() {
                        received += 1;
                    }
                })
                .await;
                received
            });
        }
        while let Some(received) = scopes.join_next().await {
            assert_eq!(received.unwrap(), 50);
        }
    });
}

#[test]
fn a_handle_that_leaves_the_scope_has_the_output_of_a_finished_child() {
    run(async {
        let handle = scope!(|s| s.spawn(async { 7 })).await;
        assert!(handle.is_finished());
        assert_eq!(handle.await, 7);
    });
}

/// It compiles: only what has a destructor must live until the handle goes.
#[test]
fn a_handle_may_go_after_what_its_output_borrows() {
    run(async {
        let mut handles = Vec::new();
        let text = String::from("text");
        scope!(|s| handles.push(s.spawn(async { &*text }))).await;
        assert_eq!(handles.pop().unwrap().await, "text");
        scope!(|s| handles.push(s.spawn(async { &*text }))).await;
    });
}

/// The number of such a child has no place yet.
#[test]
fn a_wake_of_a_child_that_was_ready_at_once_is_one_too_many() {
    run(async {
        let mut wakers = Vec::new();
        let wakes_itself = |cx: &mut Context<'_>| {
            cx.waker().wake_by_ref();
            Poll::Ready(())
        };
        scope!(|s| {
            s.spawn(poll_fn(wakes_itself));
            s.spawn(poll_fn(|cx| {
                wakers.push(cx.waker().clone());
                Poll::Ready(())
            }))
            .await;
            yield_now().await;
            s.spawn(async {
                yield_now().await;
                yield_now().await;
            })
            .await;
        })
        .await;
        wakers.into_iter().for_each(Waker::wake);
    });
}

#[test]
fn awaiting_a_child_that_was_cancelled_says_where_it_was_spawned() {
    let text = caught(|| {
        mini::block_on(async {
            let kept = Cell::new(None);
            let _: Result<(), ()> = try_local_scope!(|s| {
                kept.set(Some(s.spawn(pending::<Result<(), ()>>())));
                Err(())
            })
            .await;
            let _ = kept.take().unwrap().await;
        });
    })
    .message;
    assert!(text.contains("the child spawned at ") && text.contains("scopes.rs"), "{text}");
}

#[test]
fn a_handle_that_outlives_its_scope_starts_nothing() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let started = Arc::new(AtomicUsize::new(0));
        let kept = scope!(|s| s.clone()).await;
        let in_child = started.clone();
        let handle = kept.spawn(async move { in_child.fetch_add(1, Relaxed) });
        assert!(handle.is_finished());
        yield_now().await;
        assert_eq!(Arc::strong_count(&started), 1);
        assert_eq!(started.load(Relaxed), 0);
    });
}

#[test]
fn a_spawn_from_another_thread_is_taken_over() {
    let runtime = multi_thread(2).build().unwrap();
    runtime.block_on(async {
        let (done, ended) = oneshot::channel();
        scope!(move |s| {
            let s = s.clone();
            std::thread::spawn(move || drop(s.spawn(async move { done.send(()).unwrap() })));
            ended.await.unwrap();
        })
        .await;
    });
}

#[test]
fn children_without_leaves_give_way_too() {
    let mut scope = Box::pin(scope!(|s| {
        for _ in 0..10_000 {
            s.spawn(async {});
        }
    }));
    let mut polls = 0;
    mini::block_on(poll_fn(|cx| {
        polls += 1;
        scope.as_mut().poll(cx)
    }));
    assert!((10..1000).contains(&polls), "{polls} polls");
}

#[test]
fn a_scope_that_has_ended_keeps_no_waker() {
    let (sender, mut receiver) = mpsc::unbounded_channel::<()>();
    let count = Arc::new(());
    let mut scope = Box::pin(scope!(|s| {
        s.spawn(async { receiver.recv().await });
    }));
    let waker = Waker::from(Arc::new(Held(count.clone())));
    assert!(scope.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop((scope, waker));
    assert_eq!(Arc::strong_count(&count), 1);
    drop(sender);
}

#[test]
fn a_timeout_around_a_scope_says_that_it_waits_for_children() {
    run(async {
        mini::time::pause();
        let limit = std::time::Duration::from_secs(1);
        let waits = scope!(|s| {
            s.spawn(pending::<()>());
            s.spawn(pending::<()>());
        });
        let elapsed = mini::time::timeout(limit, waits).await.unwrap_err();
        assert!(elapsed.to_string().contains("one of 2 tasks at "), "{elapsed}");
    });
}

/// More children than a poll has budget for, so that the second pass takes over what the first one's children have
/// spawned behind those that are left.
#[test]
fn new_children_begin_in_the_order_of_their_spawns_also_if_a_pass_does_not_suffice() {
    let began = RefCell::new(Vec::new());
    run(local_scope!(|s| {
        let began = &began;
        for number in 0..300 {
            let spawner = s.clone();
            s.spawn(async move {
                began.borrow_mut().push(number);
                if number < 100 {
                    spawner.spawn(async move { began.borrow_mut().push(300 + number) });
                }
            });
        }
    }));
    assert_eq!(began.into_inner(), (0..400).collect::<Vec<_>>());
}
