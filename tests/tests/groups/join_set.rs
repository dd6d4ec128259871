//! Sets of tasks: outputs in the order of their ends, nothing lost, nothing left behind.

use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use mini::task::{AbortHandle, Builder, JoinSet, yield_now};
use mini_tests::{
    Counts, LIMIT, Token, block_on_elsewhere, caught, multi_thread, never, on_current_thread, on_each_flavour,
    on_single_workers, oneshot, poll_with, text_of, until, within,
};

#[test]
fn outputs_come_in_the_order_of_their_ends() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            let mut senders = Vec::new();
            let mut ids = Vec::new();
            for i in 0..5 {
                let (send, receive) = oneshot();
                senders.push(Some(send));
                ids.push(
                    set.spawn(async move {
                        receive.await.unwrap();
                        i
                    })
                    .id(),
                );
            }
            for i in [3, 0, 4, 1, 2] {
                assert!(set.try_join_next().is_none());
                senders[i].take().unwrap().send(());
                assert_eq!(set.join_next_with_id().await.unwrap().unwrap(), (ids[i], i));
            }
            assert!(set.is_empty() && set.join_next().await.is_none() && set.try_join_next_with_id().is_none());
        });
    });
}

#[test]
fn every_output_comes_once_while_tasks_are_added() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            let mut seen = HashSet::new();
            for round in 0..50 {
                for i in 0..20 {
                    set.spawn(async move {
                        for _ in 0..i % 4 {
                            yield_now().await;
                        }
                        round * 20 + i
                    });
                }
                for _ in 0..15 {
                    assert!(seen.insert(set.join_next().await.unwrap().unwrap()));
                }
                while let Some(output) = set.try_join_next() {
                    assert!(seen.insert(output.unwrap()));
                }
            }
            while let Some(output) = set.join_next().await {
                assert!(seen.insert(output.unwrap()));
            }
            assert_eq!(seen.len(), 1000);
        });
    });
}

#[test]
fn each_way_to_spawn_has_its_place() {
    on_each_flavour(|builder| {
        let elsewhere = multi_thread(1).build().unwrap();
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            set.spawn(async { 1 });
            set.spawn_on(async { 2 }, elsewhere.handle());
            let local = Rc::new(3);
            set.spawn_local(async move { *local });
            set.spawn_blocking(|| 4);
            set.spawn_blocking_on(|| 5, elsewhere.handle());
            set.insert(Builder::new().name("six").spawn(async { 6 }));
            let done = mini::spawn(async { 7 });
            until(|| done.is_finished()).await;
            set.insert(done);
            assert_eq!((set.len(), format!("{set:?}")), (7, "JoinSet { len: 7, .. }".to_owned()));
            let mut outputs = set.join_all().await;
            outputs.sort();
            assert_eq!(outputs, [1, 2, 3, 4, 5, 6, 7]);

            let mut more = [0, 1].map(std::future::ready).into_iter().collect::<JoinSet<_>>();
            more.extend([2].map(std::future::ready));
            assert_eq!(more.len(), 3);
            let mut outputs = more.join_all().await;
            outputs.sort();
            assert_eq!(outputs, [0, 1, 2]);
            assert!(JoinSet::<()>::default().join_all().await.is_empty());
        });
    });
}

#[test]
fn a_dropped_set_aborts_its_tasks() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (polled, queued) = (Counts::new(), Counts::new());
        runtime.block_on(async {
            let mut set = JoinSet::new();
            set.spawn(never(&polled));
            set.spawn_local(never(&polled));
            until(|| polled.polls() == 2).await;
            set.spawn(never(&queued));
            drop(set);
            until(|| polled.drops() + queued.drops() == 3).await;
        });
        assert!(polled.polls() == 2 && queued.polls() <= 1);
    });
}

#[test]
fn a_shutdown_that_nobody_awaits_has_aborted_the_tasks() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            set.spawn(std::future::pending::<()>());
            drop(set.shutdown());
            assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_shutdown_returns_when_all_futures_are_gone() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let counts = Counts::new();
            let mut set = JoinSet::new();
            for _ in 0..20 {
                set.spawn(never(&counts));
            }
            yield_now().await;
            set.shutdown().await;
            assert_eq!((counts.drops(), set.len()), (20, 0));
            set.spawn(async {});
            set.join_next().await.unwrap().unwrap();
        });
    });
}

#[test]
fn a_shutdown_that_is_dropped_half_way_leaves_the_tasks_in_the_set() {
    on_current_thread(|builder| {
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            set.spawn(never(&Counts::new()));
            {
                let mut half = pin!(set.shutdown());
                assert!(half.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            assert_eq!(set.len(), 1);
            assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn detached_tasks_go_on_and_the_set_may_be_used_again() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let done = Arc::new(AtomicUsize::new(0));
            let mut set = JoinSet::new();
            for round in 1..=20 {
                for _ in 0..5 {
                    let done = done.clone();
                    set.spawn(async move {
                        yield_now().await;
                        done.fetch_add(1, SeqCst);
                    });
                }
                if round % 2 == 0 {
                    yield_now().await; // some of them end in the set
                }
                set.detach_all();
                assert!(set.is_empty() && set.join_next().await.is_none());
            }
            until(|| done.load(SeqCst) == 100).await;
            set.spawn(async {});
            set.join_next().await.unwrap().unwrap();
        });
    });
}

#[test]
fn who_waits_is_woken_when_the_tasks_are_detached() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let counts = Counts::new();
            let waker = Waker::from(counts.clone());
            let mut set = JoinSet::new();
            set.spawn(std::future::pending::<()>());
            assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
            set.detach_all();
            assert_eq!(counts.wakes(), 1);
            assert!(matches!(set.poll_join_next(&mut Context::from_waker(&waker)), Poll::Ready(None)));
        });
    });
}

#[test]
fn panics_and_cancellations_are_outputs() {
    on_each_flavour(|mut builder| {
        let runtime = builder.on_task_panic(|error| panic!("it was joined: {error}")).build().unwrap();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let bad = set.spawn(async { panic!("one of them") }).id();
            let error = set.join_next_with_id().await.unwrap().unwrap_err();
            assert_eq!((error.id(), error.is_panic(), text_of(&*error.into_panic())), (bad, true, "one of them"));
            let abort = set.spawn(std::future::pending::<()>());
            abort.abort();
            let error = set.join_next().await.unwrap().unwrap_err();
            assert!(error.is_cancelled() && error.id() == abort.id() && abort.is_finished());
            set.spawn(std::future::pending());
            set.spawn(async {});
            set.abort_all();
            assert_eq!(set.len(), 2, "they are still to be joined");
            set.spawn(async {});
            let mut good = 0;
            while let Some(output) = set.join_next().await {
                good += usize::from(output.is_ok());
            }
            assert!((1..=2).contains(&good), "tasks that are spawned afterwards are not aborted");
        });
    });
}

#[test]
fn join_all_panics_with_the_first_and_aborts_the_rest() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let seen = caught(|| {
            runtime.block_on(async {
                let mut set = JoinSet::new();
                set.spawn(never(&counts));
                set.spawn(async { std::panic::resume_unwind(Box::new("payload")) });
                let error = mini::spawn(set.join_all()).await.unwrap_err();
                assert_eq!(text_of(&*error.into_panic()), "payload");
                until(|| counts.drops() == 1).await;

                let mut set = JoinSet::new();
                set.spawn(std::future::pending::<()>()).abort();
                set.join_all().await;
            });
        });
        assert!(seen.message.contains("was cancelled"), "{}", seen.message);
    });
}

#[test]
fn a_join_that_is_dropped_loses_nothing() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            let counts = Counts::new();
            let mut joined = 0;
            for i in 0..200 {
                set.spawn(async move {
                    yield_now().await;
                    i
                });
                if let Poll::Ready(output) = poll_with(&mut set.join_next(), &counts) {
                    output.unwrap().unwrap();
                    joined += 1;
                }
                if i % 3 == 0 {
                    yield_now().await;
                }
            }
            while let Some(output) = set.join_next().await {
                output.unwrap();
                joined += 1;
            }
            assert_eq!(joined, 200);
        });
    });
}

#[test]
fn a_completion_wakes_once_and_polls_nobody_else() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let counts = Counts::new();
            let waker = Waker::from(counts.clone());
            let mut cx = Context::from_waker(&waker);
            let mut set = JoinSet::new();
            for _ in 0..1000 {
                set.spawn(std::future::pending());
            }
            assert!(set.poll_join_next(&mut cx).is_pending());
            let pair = [set.spawn(async {}), set.spawn(async {})];
            until(|| pair.iter().all(|task| task.is_finished())).await;
            assert_eq!(counts.wakes(), 1, "the second one finds nobody who waits");
            assert!(set.poll_join_next_with_id(&mut cx).is_ready() && set.poll_join_next(&mut cx).is_ready());
            assert!(set.poll_join_next(&mut cx).is_pending());
            assert_eq!((counts.wakes(), set.len()), (1, 1000));
        });
    });
}

#[test]
fn a_set_is_joined_on_any_thread() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = mpsc::channel();
        let joiner = std::thread::spawn(move || {
            let mut set: JoinSet<u32> = receive.recv().unwrap();
            let mut sum = 0;
            while let Some(output) = block_on_elsewhere(set.join_next()) {
                sum += output.unwrap();
            }
            sum
        });
        let handle = runtime.handle().clone();
        let mut set = JoinSet::new();
        for i in 0..100 {
            set.spawn_on(async move { i }, &handle);
        }
        runtime.block_on(async {
            send.send(set).unwrap();
            mini::spawn_blocking(|| assert_eq!(joiner.join().unwrap(), 4950)).await.unwrap();
        });
    });
}

#[test]
fn tasks_of_a_runtime_that_ends_are_joined_as_cancelled() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let mut set = JoinSet::new();
        for _ in 0..10 {
            set.spawn_on(never(&counts), runtime.handle());
        }
        let handle = runtime.handle().clone();
        drop(runtime);
        set.spawn_on(never(&counts), &handle);
        let mut cancelled = 0;
        while let Some(output) = block_on_elsewhere(set.join_next()) {
            cancelled += usize::from(output.unwrap_err().is_cancelled());
        }
        assert_eq!((cancelled, counts.drops()), (11, 11));
    });
}

/// A task that has the set it is in, and the set the waker of a task in it: nothing keeps itself alive.
#[test]
fn nothing_is_left_of_a_set() {
    on_each_flavour(|builder| {
        let (counts, wakers) = (Counts::new(), Counts::new());
        let runtime = builder.build().unwrap();
        let (inside, outer) = (counts.clone(), Token::new(&counts));
        let waker = Waker::from(wakers.clone());
        let task = runtime.spawn(async move {
            let _outer = outer;
            let mut set = JoinSet::new();
            set.spawn(never(&inside));
            assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
            drop(waker);
            set.join_next().await
        });
        runtime.block_on(async {
            until(|| counts.polls() == 1).await;
            assert!(task.cancel().await.unwrap_err().is_cancelled());
            until(|| counts.drops() == 2).await;
        });
        drop(runtime);
        assert_eq!(Arc::strong_count(&wakers), 1);
    });
}

/// Starts a task in a set, which `body` then gets in that task.
fn in_its_own_set<F>(body: impl FnOnce(JoinSet<()>) -> F + Send + 'static) -> AbortHandle
where
    F: Future<Output = ()> + Send + 'static,
{
    let (send, receive) = oneshot();
    let mut set = JoinSet::new();
    let task = set.spawn(async move { body(receive.await.unwrap()).await });
    send.send(set);
    task
}

#[test]
fn a_task_that_holds_its_own_set_ends_with_it_and_with_its_runtime() {
    on_each_flavour(|builder| {
        let counts = Counts::new();
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let inside = counts.clone();
            let dropped = in_its_own_set(async move |set| {
                drop(set);
                never(&inside).await
            });
            until(|| dropped.is_finished() && counts.drops() == 1).await;

            let inside = counts.clone();
            let shut_down = in_its_own_set(async move |mut set| {
                set.spawn(never(&inside));
                set.shutdown().await;
                unreachable!("it has aborted itself");
            });
            until(|| shut_down.is_finished() && counts.drops() == 2).await;

            let inside = counts.clone();
            let (begun, has_begun) = oneshot();
            let alone = in_its_own_set(async move |mut set| {
                let _inside = Token::new(&inside);
                begun.send(());
                set.join_next().await;
            });
            has_begun.await;
            assert!(!alone.is_finished());
        });
        drop(runtime);
        assert_eq!(counts.drops(), 3);
    });
}

#[test]
fn a_handle_that_was_joined_is_refused() {
    within(LIMIT, || {
        mini::block_on(async {
            let mut task = mini::spawn(async { 1 });
            Pin::new(&mut task).await.unwrap();
            let mut set = JoinSet::new();
            let seen = caught(|| set.insert(task));
            assert!(seen.message.contains("has been joined already") && seen.file == file!(), "{seen:?}");
            assert!(set.is_empty());
        });
        assert!(caught(|| JoinSet::new().spawn(async {})).message.contains("needs a mini runtime"));
    });
}

#[test]
fn a_waker_that_panics_when_a_task_is_inserted_loses_nothing() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("a waker's drop");
        }
    }
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut set = JoinSet::new();
            let (send, receive) = oneshot();
            let mut task = mini::spawn(receive);
            let waker = Waker::from(Arc::new(Bad));
            assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
            drop(waker);
            assert_eq!(caught(|| set.insert(task)).message, "a waker's drop");
            assert_eq!(set.len(), 1);
            send.send(7);
            assert_eq!(set.join_next().await.unwrap().unwrap(), Some(7));
            assert!(set.join_next().await.is_none());
        });
    });
}

#[test]
fn debug_shows_who_waits_for_a_set() {
    on_current_thread(|builder| {
        builder.build().unwrap().block_on(async {
            let line = line!() + 4;
            let task = mini::spawn(async {
                let mut set = JoinSet::new();
                (0..3).for_each(|_| drop(set.spawn(std::future::pending::<()>())));
                set.join_next().await
            });
            yield_now().await;
            let text = format!("{task:?}");
            assert!(text.contains(&format!("Join of one of 3 tasks at {}:{line}:", file!())), "{text}");
        });
    });
}
