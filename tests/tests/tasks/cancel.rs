//! Cancellation in every state of a task, from everywhere, and in races: each future is dropped exactly once, and each
//! handle has an answer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::task::{AbortHandle, JoinHandle, yield_now};
use mini_tests::{
    Counts, LIMIT, OnDrop, counted, multi_thread, never, on_current_thread, on_each_flavour, oneshot, poll_with,
    text_of, until, within,
};

#[test]
fn abort_drops_an_idle_task_without_a_poll() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        runtime.block_on(async {
            let task = mini::spawn(never(&counts));
            until(|| counts.polls() == 1).await;
            task.abort();
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            assert_eq!(counts.drops(), 1, "before the handle says so");
        });
        drop(runtime);
        assert_eq!((counts.polls(), counts.drops()), (1, 1));
    });
}

#[test]
fn abort_drops_a_queued_task_without_a_poll() {
    on_current_thread(|builder| {
        let runtime = builder.build().unwrap();
        let (shared, local, woken) = (Counts::new(), Counts::new(), Counts::new());
        runtime.block_on(async {
            let (first, second) = (mini::spawn(never(&shared)), mini::spawn_local(never(&local)));
            first.abort();
            assert!(second.cancel().await.unwrap_err().is_cancelled());
            assert!(first.await.unwrap_err().is_cancelled());

            let (give, take) = mpsc::channel::<Waker>();
            let task = mini::spawn(counted::<(), _>(&woken, move |cx| {
                give.send(cx.waker().clone()).unwrap();
                Poll::Pending
            }));
            until(|| woken.polls() == 1).await;
            take.recv().unwrap().wake();
            assert!(task.cancel().await.unwrap_err().is_cancelled());
        });
        assert_eq!((shared.polls(), shared.drops()), (0, 1));
        assert_eq!((local.polls(), local.drops()), (0, 1));
        assert_eq!((woken.polls(), woken.drops()), (1, 1));
    });
}

#[test]
fn a_task_that_aborts_itself_is_dropped_after_this_poll() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, wakes) = (Counts::new(), [false, true]);
        for wake in wakes {
            let (send, receive) = oneshot::<AbortHandle>();
            let (mut receive, seen) = (Box::pin(receive), counts.clone());
            let task = runtime.spawn(counted::<(), _>(&counts, move |cx| {
                if let Poll::Ready(Some(me)) = receive.as_mut().poll(cx) {
                    let before = seen.drops();
                    me.abort();
                    if wake {
                        cx.waker().wake_by_ref();
                    }
                    assert_eq!(seen.drops(), before, "a future is not dropped while it is polled");
                    assert!(!me.is_finished());
                }
                Poll::Pending
            }));
            send.send(task.abort_handle());
            assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        }
        assert_eq!(counts.drops(), 2);
        assert!(counts.polls() <= 4, "one poll to wait, one to abort: {} in two rounds", counts.polls());
    });
}

#[test]
fn a_task_that_finishes_in_the_poll_that_aborts_it_keeps_its_output() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = oneshot::<AbortHandle>();
        let task = runtime.spawn(async move {
            receive.await.unwrap().abort();
            9
        });
        send.send(task.abort_handle());
        assert_eq!(runtime.block_on(task).unwrap(), 9);
    });
}

#[test]
fn abort_from_another_thread_while_the_task_is_polled() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let counts = Counts::new();
        for round in 1..=100 {
            let (inside, is_inside) = mpsc::channel();
            let (go, may_go) = mpsc::channel::<()>();
            let seen = counts.clone();
            let task = runtime.spawn(counted::<(), _>(&counts, move |_| {
                inside.send(()).unwrap();
                may_go.recv().unwrap();
                assert_eq!(seen.drops(), round - 1, "not dropped while it is polled");
                Poll::Pending
            }));
            is_inside.recv().unwrap();
            task.abort();
            go.send(()).unwrap();
            assert!(runtime.block_on(task).unwrap_err().is_cancelled());
            assert_eq!((counts.polls(), counts.drops()), (round, round));
        }
    });
}

#[test]
fn a_finished_task_keeps_its_output() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let task = mini::spawn(async { 5 });
            until(|| task.is_finished()).await;
            task.abort();
            thread::scope(|scope| {
                scope.spawn(|| task.abort());
            });
            assert_eq!(task.cancel().await.unwrap(), 5);
        });
    });
}

#[test]
fn cancel_returns_after_the_future_was_dropped() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            for i in 0..200 {
                let gone = Arc::new(AtomicBool::new(false));
                let set = gone.clone();
                let guard = OnDrop(move || {
                    thread::yield_now(); // lets a handle that answers too early be seen
                    set.store(true, SeqCst);
                });
                let task = mini::spawn(async move {
                    let _guard = guard;
                    std::future::pending::<()>().await
                });
                if i % 2 == 0 {
                    yield_now().await;
                }
                assert!(task.cancel().await.unwrap_err().is_cancelled());
                assert!(gone.load(SeqCst));
            }
        });
    });
}

#[test]
fn a_dropped_cancel_goes_on() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, waker) = (Counts::new(), Counts::new());
        let task = runtime.spawn(never(&counts));
        let mut cancel = task.cancel();
        let _ = poll_with(&mut cancel, &waker);
        drop(cancel);
        runtime.block_on(until(|| counts.drops() == 1));
        drop(runtime);
        assert_eq!(Arc::strong_count(&waker), 1);
    });
}

#[test]
fn every_kind_of_task_can_be_aborted_from_another_thread() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let (shared, local) = (Counts::new(), Counts::new());
            let tasks = [mini::spawn(never(&shared)), mini::spawn_local(never(&local))];
            until(|| shared.polls() + local.polls() == 2).await;
            let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
            let thread = thread::spawn(move || aborts.iter().for_each(AbortHandle::abort));
            for task in tasks {
                assert!(task.await.unwrap_err().is_cancelled());
            }
            thread.join().unwrap();
            assert_eq!((shared.polls(), shared.drops()), (1, 1));
            assert_eq!((local.polls(), local.drops()), (1, 1));
        });
    });
}

#[test]
fn a_task_may_be_aborted_by_its_own_destructor() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, me) = (Counts::new(), Arc::new(Mutex::new(None::<AbortHandle>)));
        let mine = me.clone();
        let guard = OnDrop(move || {
            let me = mine.lock().unwrap().take().unwrap();
            me.abort();
            assert!(!me.is_finished());
        });
        let task = runtime.spawn(counted::<(), _>(&counts, move |_| {
            let _part_of_it = &guard;
            Poll::Pending
        }));
        *me.lock().unwrap() = Some(task.abort_handle());
        runtime.block_on(until(|| counts.polls() == 1));
        assert!(runtime.block_on(task.cancel()).unwrap_err().is_cancelled());
        assert_eq!((counts.polls(), counts.drops()), (1, 1));
    });
}

#[test]
fn tasks_may_abort_each_other_while_they_are_dropped() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let others = Arc::new(Mutex::new(Vec::<AbortHandle>::new()));
        let counts = Counts::new();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let aborts = others.clone();
                let guard = OnDrop(move || {
                    let all = aborts.lock().unwrap().clone();
                    all.iter().for_each(AbortHandle::abort);
                });
                runtime.spawn(counted::<(), _>(&counts, move |_| {
                    let _part_of_it = &guard;
                    Poll::Pending
                }))
            })
            .collect();
        others.lock().unwrap().extend(tasks.iter().map(JoinHandle::abort_handle));
        runtime.block_on(until(|| counts.polls() == 20));
        tasks[7].abort();
        for task in tasks {
            assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        }
        others.lock().unwrap().clear();
        drop(runtime);
        assert_eq!((counts.polls(), counts.drops()), (20, 20));
    });
}

#[test]
fn a_destructor_may_spawn_and_block_nobody() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, ran) = mpsc::channel();
        let guard = OnDrop(move || {
            let send = send.clone();
            drop(mini::spawn(async move { send.send(()).unwrap() }));
        });
        runtime.block_on(async {
            let task = mini::spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await
            });
            yield_now().await;
            task.cancel().await.unwrap_err();
            until(|| ran.try_recv().is_ok()).await;
        });
    });
}

#[test]
fn awaiting_oneself_panics() {
    on_each_flavour(|mut builder| {
        let (report, errors) = mpsc::channel();
        let runtime = builder.on_task_panic(move |error| report.send(error.to_string()).unwrap()).build().unwrap();
        let (send, receive) = oneshot::<JoinHandle<()>>();
        let task = runtime.spawn(async move {
            let me = receive.await.unwrap();
            let _ = me.await;
        });
        send.send(task);
        let mut seen = None;
        runtime.block_on(until(|| {
            seen = errors.try_recv().ok();
            seen.is_some()
        }));
        let text = seen.unwrap();
        assert!(text.contains("waits for itself") && text.contains(file!()), "{text}");
    });
}

/// The winner is chance; but each task ends, and its future is dropped once.
#[test]
fn aborts_race_with_wakes_and_completion() {
    const ROUNDS: usize = 1500;
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, finished) = (Counts::new(), AtomicUsize::new(0));
        let barrier = Barrier::new(3);
        let start = &barrier;
        let (to_aborter, aborter) = mpsc::channel::<AbortHandle>();
        let (to_waker, waker) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                for abort in aborter {
                    start.wait();
                    abort.abort();
                }
            });
            scope.spawn(move || {
                for send in waker {
                    start.wait();
                    mini_tests::Sender::<()>::send(send, ());
                }
            });
            for _ in 0..ROUNDS {
                let (send, receive) = oneshot::<()>();
                let mut receive = Box::pin(receive);
                let task = runtime.spawn(counted(&counts, move |cx| receive.as_mut().poll(cx)));
                to_aborter.send(task.abort_handle()).unwrap();
                to_waker.send(send).unwrap();
                start.wait();
                match runtime.block_on(task) {
                    Ok(output) => {
                        assert_eq!(output, Some(()));
                        finished.fetch_add(1, SeqCst);
                    }
                    Err(error) => assert!(error.is_cancelled(), "{error}"),
                }
            }
            drop((to_aborter, to_waker));
        });
        drop(runtime);
        assert_eq!(counts.drops(), ROUNDS);
        assert!(counts.polls() <= 2 * ROUNDS && finished.into_inner() <= ROUNDS);
    });
}

#[test]
fn a_cancelled_job_or_sleep_or_join_leaves_nothing_behind() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let inner = Counts::new();
            let joined = mini::spawn(never(&inner));
            let abort = joined.abort_handle();
            let joiner = mini::spawn(joined);
            let sleeper = mini::spawn(mini::time::sleep(LIMIT * 100));
            yield_now().await;
            assert!(joiner.cancel().await.unwrap_err().is_cancelled());
            assert!(sleeper.cancel().await.unwrap_err().is_cancelled());
            assert!(!abort.is_finished(), "a cancelled joiner detaches what it waited for");
            abort.abort();
            until(|| inner.drops() == 1).await;
            let failed = mini::spawn(async { panic!("first") });
            until(|| failed.is_finished()).await;
            assert_eq!(text_of(&*failed.cancel().await.unwrap_err().into_panic()), "first");
        });
    });
}
