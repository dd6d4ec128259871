//! Panics: carried to the join handle of the task, reported if that was dropped, and never the end of a worker.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use mini::runtime::Runtime;
use mini::task::{JoinError, yield_now};
use mini_tests::{
    Counts, OnDrop, Token, caught, counted, in_child, line_of, on_each_flavour, on_single_workers, poll_with, text_of,
    until,
};

/// Shows that `runtime` still runs tasks on all its workers.
fn assert_alive(runtime: &Runtime) {
    let sum: u64 = runtime.block_on(async {
        let tasks: Vec<_> = (0..100)
            .map(|i| {
                mini::spawn(async move {
                    yield_now().await;
                    i
                })
            })
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum + mini::spawn_blocking(|| 50).await.unwrap()
    });
    assert_eq!(sum, 5000);
}

#[test]
fn a_panic_reaches_the_join_handle() {
    on_each_flavour(|mut builder| {
        let runtime = builder.on_task_panic(|error| panic!("it was awaited: {error}")).build().unwrap();
        let counts = Counts::new();
        runtime.block_on(async {
            let line = line!() + 1;
            let task = mini::spawn(counted::<(), _>(&counts, |_| panic!("boom {}", 1)));
            let id = task.id();
            let error = task.await.unwrap_err();
            assert!(error.is_panic() && !error.is_cancelled());
            assert_eq!((error.id(), error.location().line(), error.location().file()), (id, line, file!()));
            let column = error.location().column();
            assert_eq!(error.to_string(), format!("task {id} spawned at {}:{line}:{column} panicked: boom 1", file!()));
            assert_eq!(text_of(&*error.into_panic()), "boom 1");

            let error = mini::spawn_local(async { panic_any(17_u8) }).await.unwrap_err();
            assert!(error.to_string().ends_with("panicked: (a payload that is no text)"));
            let payload: Box<u8> = error.try_into_panic().unwrap().downcast().unwrap();
            assert_eq!(*payload, 17);

            let error = mini::spawn_blocking(|| panic!("job")).await.unwrap_err();
            assert_eq!(text_of(&*error.into_panic()), "job");
        });
        assert_eq!((counts.polls(), counts.drops()), (1, 1));
        assert_alive(&runtime);
    });
}

#[test]
fn a_panic_nobody_awaits_reaches_the_hook_once() {
    on_each_flavour(|mut builder| {
        let (send, errors) = mpsc::channel();
        let runtime = builder.on_task_panic(move |error| send.send(error.to_string()).unwrap()).build().unwrap();
        runtime.block_on(async {
            drop(mini::spawn(async { panic!("before") }));
            let task = mini::spawn(async { panic!("after") });
            until(|| task.is_finished()).await;
            drop(task);
            drop(mini::spawn_local(async { panic!("local") }));
            drop(mini::spawn_blocking(|| panic!("job")));
            for _ in 0..4 {
                until_some(
                    || errors.try_recv().ok(),
                    |text| {
                        assert!(["before", "after", "local", "job"].iter().any(|end| text.ends_with(end)), "{text}");
                    },
                )
                .await;
            }
        });
        assert_alive(&runtime);
        drop(runtime);
        assert!(errors.try_recv().is_err(), "each was reported once");
    });
}

/// Yields until `get` has something, and looks at it.
async fn until_some<T>(mut get: impl FnMut() -> Option<T>, look: impl FnOnce(T)) {
    let mut found = None;
    until(|| {
        found = get();
        found.is_some()
    })
    .await;
    look(found.expect("just seen"));
}

#[test]
fn by_default_a_panic_nobody_awaits_is_printed() {
    let line = line_of(include_str!("panics.rs"), "// unseen");
    let Some(stderr) = in_child("by_default_a_panic_nobody_awaits_is_printed", || {
        mini::block_on(async {
            drop(mini::spawn(async { panic!("unseen") })); // unseen
            yield_now().await;
        });
    }) else {
        return;
    };
    assert!(stderr.contains(&format!("spawned at {}:{line}:", file!())), "{stderr}");
    assert!(stderr.contains("panicked: unseen, and no task awaits it"), "{stderr}");
}

#[test]
fn a_panicking_hook_does_not_end_the_worker() {
    on_each_flavour(|mut builder| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let hook = move |_: &JoinError| {
            counted.fetch_add(1, SeqCst);
            panic!("the hook too");
        };
        let runtime = builder.on_task_panic(hook).build().unwrap();
        runtime.block_on(async {
            drop(mini::spawn(async { panic!("first") }));
            until(|| calls.load(SeqCst) == 1).await;
        });
        assert_alive(&runtime);
    });
}

#[test]
fn a_panicking_destructor_reaches_the_join_handle() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let output = Counts::new();
        runtime.block_on(async {
            let guard = OnDrop(|| panic!("in drop"));
            let task = mini::spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await
            });
            yield_now().await;
            let error = task.cancel().await.unwrap_err();
            assert_eq!(text_of(&*error.into_panic()), "in drop");

            // The future is ready, and then its destructor panics: the output is dropped, and the handle gets the
            // panic.
            let (guard, made) = (OnDrop(|| panic!("in drop, done")), output.clone());
            let future = counted(&Counts::new(), move |_| {
                let _part_of_it = &guard;
                Poll::Ready(Token::new(&made))
            });
            let error = mini::spawn(future).await.unwrap_err();
            assert_eq!(text_of(&*error.into_panic()), "in drop, done");
        });
        assert_eq!(output.drops(), 1);
        assert_alive(&runtime);
    });
}

#[test]
fn a_future_that_panics_is_dropped_while_its_panic_unwinds() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, dropped) = mpsc::channel();
        let lock: &Mutex<()> = Box::leak(Box::default());
        runtime.block_on(async {
            let guard = OnDrop(move || send.send((thread::panicking(), mini::task::try_id())).unwrap());
            let task = mini::spawn(counted::<(), _>(&Counts::new(), move |_| {
                let _part_of_it = &guard;
                panic!("beside it");
            }));
            let id = task.id();
            assert!(task.await.unwrap_err().is_panic());
            assert_eq!(dropped.recv().unwrap(), (true, Some(id)));

            let held = lock.lock().unwrap();
            let task = mini::spawn_local(counted::<(), _>(&Counts::new(), move |_| {
                let _part_of_it = &held;
                panic!("with a lock");
            }));
            assert!(task.await.unwrap_err().is_panic());
        });
        assert!(lock.is_poisoned());
    });
}

#[test]
fn a_destructor_that_panics_while_a_panic_unwinds_does_not_end_the_process() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let error = runtime.block_on(async {
            let guard = OnDrop(|| panic!("second"));
            let task = mini::spawn(counted::<(), _>(&Counts::new(), move |_| {
                let _part_of_it = &guard;
                panic!("first");
            }));
            task.await.unwrap_err()
        });
        assert_eq!(text_of(&*error.into_panic()), "first");
        assert_alive(&runtime);
    });
}

#[test]
fn a_panicking_destructor_at_shutdown_is_contained() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (neighbour, polled) = (Counts::new(), Counts::new());
        let task = |counts: &Arc<Counts>| {
            let guard = OnDrop(|| panic!("at shutdown"));
            runtime.spawn(counted::<(), _>(counts, move |_| {
                let _part_of_it = &guard;
                Poll::Pending
            }))
        };
        let (first, quiet, last) = (task(&polled), runtime.spawn(mini_tests::never(&neighbour)), task(&polled));
        runtime.block_on(until(|| polled.polls() == 2 && neighbour.polls() == 1));
        drop(runtime);
        assert_eq!((polled.drops(), neighbour.drops()), (2, 1));
        assert!(mini::block_on(first).unwrap_err().is_panic());
        assert!(mini::block_on(quiet).unwrap_err().is_cancelled());
        assert!(mini::block_on(last).unwrap_err().is_panic());
    });
}

#[test]
fn a_panicking_output_destructor_is_reported() {
    on_each_flavour(|mut builder| {
        let (send, errors) = mpsc::channel();
        let runtime = builder.on_task_panic(move |error| send.send(error.to_string()).unwrap()).build().unwrap();
        runtime.block_on(async {
            let task = mini::spawn(async { OnDrop(|| panic!("output")) });
            drop(task);
            until_some(|| errors.try_recv().ok(), |text| assert!(text.ends_with("panicked: output"))).await;
            let task = mini::spawn(async { OnDrop(|| panic!("later")) });
            until(|| task.is_finished()).await;
            drop(task);
            assert!(errors.try_recv().unwrap().ends_with("panicked: later"));
        });
        assert_alive(&runtime);
    });
}

#[test]
fn a_payload_whose_destructor_panics_does_not_end_the_worker() {
    on_single_workers(|mut builder| {
        let (send, errors) = mpsc::channel();
        let runtime = builder.on_task_panic(move |error| send.send(error.is_panic()).unwrap()).build().unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                drop(mini::spawn(async { panic_any(OnDrop(|| panic!("in the payload"))) }));
                yield_now().await;
                yield_now().await;
            })
        }));
        assert!(outcome.is_ok(), "the panic of a task's payload came out of block_on");
        assert!(errors.recv().unwrap());
        assert_alive(&runtime);
    });
}

#[test]
fn a_joiners_panicking_waker_does_not_end_the_worker() {
    struct Bad(AtomicUsize);
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
            panic!("in wake");
        }
    }

    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let bad = Arc::new(Bad(AtomicUsize::new(0)));
        let (send, receive) = mini_tests::oneshot();
        let mut task = runtime.spawn(receive);
        let waker = Waker::from(bad.clone());
        let poll = std::pin::Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        send.send(3);
        runtime.block_on(until(|| bad.0.load(SeqCst) == 1));
        assert_alive(&runtime);
        assert!(matches!(poll_with(&mut task, &Counts::new()), Poll::Ready(Ok(Some(3)))));
    });
}

#[test]
fn a_panic_in_block_on_comes_out_and_the_runtime_goes_on() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let dropped = Counts::new();
        for round in 0..20 {
            let token = Token::new(&dropped);
            let task = runtime.spawn(async move { round });
            let line = line!() + 4;
            let seen = caught(|| {
                runtime.block_on(counted::<(), _>(&Counts::new(), move |_| {
                    let _part_of_it = &token;
                    panic!("root {round}")
                }))
            });
            assert_eq!((seen.message, seen.line), (format!("root {round}"), line));
            assert_eq!(runtime.block_on(task).unwrap(), round);
        }
        assert_eq!(dropped.drops(), 20);
        assert_alive(&runtime);
    });
}

#[test]
fn a_resumed_panic_passes_through_any_number_of_tasks() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let outer = runtime.spawn(async {
            let inner = mini::spawn(async { panic!("deep") });
            resume_unwind(inner.await.unwrap_err().into_panic());
        });
        let error: JoinError = runtime.block_on(outer).unwrap_err();
        assert_eq!(text_of(&*error.into_panic()), "deep");
    });
}

#[test]
fn a_cancelled_task_has_no_payload() {
    let error = mini::block_on(async {
        let task = mini::spawn(std::future::pending::<()>());
        task.cancel().await.unwrap_err()
    });
    let error = error.try_into_panic().unwrap_err();
    let line = line!() + 1;
    let seen = caught(|| error.into_panic());
    assert_eq!((seen.line, seen.file.as_str()), (line, file!()));
    assert!(seen.message.contains("was cancelled"), "{}", seen.message);
}

#[test]
fn many_panics_at_once() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let tasks: Vec<_> =
            (0..50).map(|i| runtime.spawn(async move { if i % 2 == 0 { panic!("{i}") } else { i } })).collect();
        runtime.block_on(async {
            for (i, task) in tasks.into_iter().enumerate() {
                match task.await {
                    Ok(output) => assert_eq!((output, i % 2), (i, 1)),
                    Err(error) => assert_eq!(text_of(&*error.into_panic()), i.to_string()),
                }
            }
        });
    });
}

#[test]
fn a_waiter_that_panics_when_dropped_leaks_no_task() {
    struct Sore;
    impl Wake for Sore {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Sore {
        fn drop(&mut self) {
            resume_unwind(Box::new("a waker was dropped"));
        }
    }
    let runtime = mini::runtime::Builder::new_current_thread().build().unwrap();
    let held = Arc::new(());
    let inside = held.clone();
    let mut task = runtime.spawn(async move { inside });
    let waker = Waker::from(Arc::new(Sore));
    assert!(std::pin::Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker); // the handle has one too
    assert!(catch_unwind(AssertUnwindSafe(|| drop(task))).is_err());
    runtime.block_on(yield_now());
    drop(runtime);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_second_panic_while_the_future_of_block_on_is_dropped_is_contained() {
    struct Sore;
    impl Drop for Sore {
        fn drop(&mut self) {
            panic!("second");
        }
    }
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let held = Sore;
        let future = std::future::poll_fn(move |_| -> Poll<()> {
            let _held = &held;
            panic!("first")
        });
        let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
        assert_eq!(text_of(&*ended.unwrap_err()), "first");
        assert_alive(&runtime);
    });
}
