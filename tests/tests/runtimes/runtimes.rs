//! Runtimes as values: several at once, entered, blocked on from several threads, used where there is no runtime, or no
//! longer one. `shutdown.rs` has how they end, `fairness.rs` what runs when.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use mini::task::yield_now;
use mini::time::Duration;
use mini_tests::{
    Caught, Counts, LIMIT, caught, counted, flavours, multi_thread, never, on_each_flavour, on_single_workers, oneshot,
    until, within,
};

/// The name of the runtime this thread is inside of, as its blocking threads show it.
fn name_here() -> String {
    let name = mini::spawn_blocking(|| thread::current().name().unwrap().to_owned());
    let name = thread::spawn(move || mini_tests::block_on_elsewhere(name)).join().unwrap().unwrap();
    name.split('-').next().unwrap().to_owned()
}

fn named(mut builder: Builder, name: &str) -> Runtime {
    builder.thread_name(name).build().unwrap()
}

#[test]
fn two_threads_take_turns_in_block_on() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (done, ran) = (AtomicUsize::new(0), Counts::new());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..150 {
                        let ran = ran.clone();
                        let output = runtime.block_on(async {
                            let task = mini::spawn(counted(&ran, move |_| Poll::Ready(round)));
                            yield_now().await;
                            task.await.unwrap()
                        });
                        assert_eq!(output, round);
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!((done.into_inner(), ran.polls(), ran.drops()), (450, 450, 450));
    });
}

#[test]
fn threads_in_block_on_wake_each_other() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..100 {
            let ((to_b, from_a), (to_a, from_b)) = (oneshot(), oneshot());
            thread::scope(|scope| {
                scope.spawn(|| {
                    let got = runtime.block_on(async {
                        to_b.send(1);
                        from_b.await
                    });
                    assert_eq!(got, Some(2));
                });
                let got = runtime.block_on(async {
                    let got = from_a.await;
                    to_a.send(2);
                    got
                });
                assert_eq!(got, Some(1));
            });
        }
    });
}

#[test]
fn an_external_thread_takes_over_when_the_first_thread_leaves() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..50 {
            let (release, released) = oneshot::<()>();
            let (entered, is_entered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    runtime.block_on(async {
                        entered.send(()).unwrap();
                        released.await
                    })
                });
                is_entered.recv().unwrap();
                // The first thread leaves while this one waits; from then on this one must run the task.
                let task = runtime.spawn(async move {
                    release.send(());
                    yield_now().await;
                    mini::time::sleep(Duration::from_micros(50)).await;
                    5
                });
                assert_eq!(runtime.block_on(task).unwrap(), 5);
            });
        }
    });
}

#[test]
fn a_guard_restores_the_runtime_it_replaced() {
    on_each_flavour(|builder| {
        let (a, b) = (named(builder, "a"), named(multi_thread(2), "b"));
        assert!(Handle::try_current().is_err());
        {
            let _a = a.enter();
            assert_eq!(name_here(), "a");
            {
                let _b = b.enter();
                assert_eq!(name_here(), "b");
                let handle = a.handle().clone();
                let _a = handle.enter();
                assert_eq!(name_here(), "a");
            }
            assert_eq!(name_here(), "a");
            b.block_on(async { assert_eq!(name_here(), "b") });
            assert_eq!(name_here(), "a");
            let caught = caught(|| b.block_on(async { panic!("through the guard") }));
            assert_eq!(caught.message, "through the guard");
            assert_eq!(name_here(), "a");
        }
        assert!(Handle::try_current().is_err());
        a.block_on(async {
            let inside_b = b.enter();
            assert_eq!(name_here(), "b", "spawns go to the runtime that was entered last");
            let task = mini::spawn(async { name_here() });
            drop(inside_b);
            assert_eq!(name_here(), "a");
            assert_eq!(task.await.unwrap(), "b");
            assert_eq!(mini::spawn(async { name_here() }).await.unwrap(), "a");
        });
    });
}

/// The waker is used on another thread, while the call returns or later; every third call panics.
#[test]
fn a_waker_of_block_on_outlives_it() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (give, take) = mpsc::channel::<Waker>();
        let other = thread::spawn(move || {
            let mut last = None;
            for waker in take {
                waker.wake_by_ref();
                last = Some(waker);
            }
            last.unwrap().wake();
        });
        for round in 0..if cfg!(miri) { 6 } else { 300 } {
            let (local, mut polls) = (format!("{round}"), 0);
            let mut call = || {
                runtime.block_on(poll_fn(|cx| {
                    give.send(cx.waker().clone()).unwrap();
                    polls += 1;
                    assert!(local.parse::<u32>().unwrap() % 3 < 2 || polls < 2, "as it should");
                    if polls == 2 { Poll::Ready(local.len()) } else { Poll::Pending }
                }))
            };
            match round % 3 {
                2 => assert_eq!(caught(&mut call).message, "as it should"),
                _ => assert_eq!(call(), local.len()),
            }
        }
        drop(give);
        other.join().unwrap();
        assert_eq!(runtime.block_on(async { mini::task::try_id() }), None, "it is no task of the user's");
    });
}

#[test]
fn a_waker_may_outlive_its_runtime() {
    on_each_flavour(|builder| {
        let (give, take) = mpsc::channel::<Waker>();
        let counts = Counts::new();
        let runtime = builder.build().unwrap();
        let (sender, root) = (give.clone(), give.clone());
        drop(runtime.spawn(counted::<(), _>(&counts, move |cx| {
            sender.send(cx.waker().clone()).unwrap();
            Poll::Pending
        })));
        runtime.block_on(counted(&Counts::new(), move |cx| {
            root.send(cx.waker().clone()).unwrap();
            Poll::Ready(())
        }));
        runtime.block_on(until(|| counts.polls() > 0));
        drop((runtime, give));
        let wakers: Vec<Waker> = take.into_iter().collect();
        assert!(wakers.len() >= 2);
        let polls = counts.polls();
        for waker in &wakers {
            waker.wake_by_ref();
            thread::scope(|scope| {
                let foreign = waker.clone();
                scope.spawn(|| foreign.wake());
            });
            assert!(waker.will_wake(&waker.clone()));
        }
        assert_eq!((counts.polls(), counts.drops()), (polls, 1));
    });
}

#[test]
fn a_handle_that_outlives_its_runtime_cancels_at_once() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        let (counts, job) = (Counts::new(), Arc::new(()));
        let held = job.clone();
        let (task, blocking) = (handle.spawn(never(&counts)), handle.spawn_blocking(move || drop(held)));
        assert!(task.is_finished() && blocking.is_finished());
        assert_eq!((counts.polls(), counts.drops(), Arc::strong_count(&job)), (0, 1, 1));
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
        assert!(mini::block_on(blocking).unwrap_err().is_cancelled());
        {
            let _inside = handle.enter();
            assert!(mini::spawn(async {}).is_finished());
        }
        let (send, receive) = oneshot();
        let thread = thread::spawn(move || send.send(3));
        let got = handle.block_on(async {
            assert!(mini::spawn_local(async {}).await.unwrap_err().is_cancelled());
            receive.await
        });
        assert_eq!(got, Some(3), "a future that needs nothing of the runtime still comes to its end");
        thread.join().unwrap();
    });
}

#[test]
fn runtimes_of_all_flavours_talk_to_each_other() {
    within(LIMIT, || {
        let runtimes: Vec<_> = flavours().into_iter().map(|(_, builder)| builder.build().unwrap()).collect();
        for (i, a) in runtimes.iter().enumerate() {
            for b in &runtimes[i + 1..] {
                thread::scope(|scope| {
                    let (stop, stopped) = oneshot::<()>();
                    scope.spawn(|| b.block_on(stopped)); // drives `b`, if that needs it
                    let there = b.handle();
                    a.block_on(async {
                        for round in 0..100 {
                            let (send, receive) = oneshot();
                            let echo = there.spawn(async move { receive.await.map(|x: i32| x + 1) });
                            send.send(round);
                            assert_eq!(echo.await.unwrap(), Some(round + 1));
                        }
                    });
                    drop(stop);
                });
            }
        }
    });
}

#[test]
fn a_runtime_inside_spawn_blocking() {
    on_each_flavour(|mut builder| {
        let (outer, inner) = (builder.clone().build().unwrap(), builder.thread_name("inner").build().unwrap());
        let output = outer.block_on(async move {
            let job = mini::spawn_blocking(move || {
                let name = inner.block_on(async { mini::spawn(async { name_here() }).await.unwrap() });
                drop(inner);
                // And the outer runtime, which the thread is inside of.
                (name, mini::block_on(async { mini::spawn(async { name_here() }).await.unwrap() }))
            });
            job.await.unwrap()
        });
        assert_eq!(output, ("inner".to_owned(), "mini".to_owned()));
    });
}

#[allow(clippy::redundant_closure, reason = "a function that is called by std has no line of its own")]
#[test]
fn without_a_runtime_the_panic_names_the_call_and_its_line() {
    let check = |seen: Caught, line: u32, call: &str| {
        assert_eq!((seen.file.as_str(), seen.line), (file!(), line), "{seen:?}");
        assert!(seen.message.starts_with(call), "{seen:?}");
        assert!(seen.message.contains("runtime") || seen.message.contains("task"), "{seen:?}");
    };
    check(caught(|| mini::spawn(async {})), line!(), "mini::spawn needs");
    check(caught(|| mini::spawn_local(async {})), line!(), "mini::spawn_local needs");
    check(caught(|| mini::spawn_blocking(|| {})), line!(), "mini::spawn_blocking needs");
    check(caught(|| Handle::current()), line!(), "Handle::current needs");
    check(caught(|| mini::task::id()), line!(), "mini::task::id");
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    check(caught(|| mini::spawn_local(async {})), line!(), "mini::spawn_local needs a worker");
}

#[test]
fn block_on_inside_a_task_panics_and_says_what_to_do() {
    on_each_flavour(|builder| {
        let (runtime, other) = (builder.build().unwrap(), multi_thread(1).build().unwrap());
        let handle = runtime.handle().clone();
        let check = |seen: Caught, line: u32| {
            assert_eq!((seen.file.as_str(), seen.line), (file!(), line), "{seen:?}");
            assert!(seen.message.contains("block_on inside a task") && seen.message.contains("`.await`"), "{seen:?}");
        };
        runtime.block_on(async {
            check(caught(|| mini::block_on(async {})), line!());
            check(caught(|| handle.block_on(async {})), line!());
            check(caught(|| other.block_on(async {})), line!());
            let handle = handle.clone();
            let task = mini::spawn(async move {
                let line = line!() + 1;
                (caught(|| handle.block_on(async {})), line)
            });
            let (seen, line) = task.await.unwrap();
            check(seen, line);
            let output = mini::spawn_blocking(|| mini::block_on(async { mini::spawn(async { 3 }).await.unwrap() }));
            assert_eq!(output.await.unwrap(), 3);
        });
    });
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |builder: &Builder, setting: &str| {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with(setting), "{error}");
    };
    refused(Builder::new_multi_thread().worker_threads(0), "worker_threads(0)");
    refused(Builder::new_multi_thread().worker_threads(1 << 20), "worker_threads(1048576)");
    refused(Builder::new_current_thread().worker_threads(2), "worker_threads(2)");
    refused(Builder::new_current_thread().max_blocking_threads(0), "max_blocking_threads(0)");
    refused(Builder::new_multi_thread().start_paused(true), "start_paused(true)");
    refused(Builder::new_multi_thread().thread_name("a\0b"), "thread_name(");
    assert!(Builder::new_current_thread().worker_threads(1).start_paused(true).build().is_ok());
}

#[test]
fn threads_have_the_name_and_the_stack_they_were_given() {
    within(LIMIT, || {
        let runtime = multi_thread(2).thread_name("shop").thread_stack_size(8 << 20).build().unwrap();
        let deep = || {
            let room = [1_u8; 6 << 20]; // overflows the stack that std threads have
            std::hint::black_box(&room);
            thread::current().name().unwrap().to_owned()
        };
        let (task, job) = (runtime.spawn(async move { deep() }), runtime.spawn_blocking(deep));
        let (task, job) = (mini_tests::block_on_elsewhere(task).unwrap(), mini_tests::block_on_elsewhere(job).unwrap());
        assert!(task.starts_with("shop-") && job.starts_with("shop-block-"), "{task} and {job}");
    });
}

#[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
#[test]
fn timers_are_as_exact_as_was_asked_for() {
    use rustix::thread::current_timer_slack;

    on_each_flavour(|builder| {
        let usual = current_timer_slack().unwrap();
        let asked = [None, Some(Duration::from_nanos(1)), Some(Duration::from_micros(77))];
        for (slack, expected) in asked.into_iter().zip([usual, 1, 77_000]) {
            let runtime = builder.clone().timer_slack(slack).build().unwrap();
            let seen = runtime.block_on(async {
                let task = mini::spawn(async { current_timer_slack().unwrap() });
                (current_timer_slack().unwrap(), task.await.unwrap())
            });
            let is_worker = runtime.handle().runtime_flavor() == RuntimeFlavor::CurrentThread;
            assert_eq!(seen, (if is_worker { expected } else { usual }, expected));
            assert_eq!(current_timer_slack().unwrap(), usual, "the thread has its own again");
        }
        let by_default = builder.build().unwrap();
        let slack = by_default.spawn(async { current_timer_slack().unwrap() });
        assert_eq!(by_default.block_on(slack).unwrap(), 1);
    });
}

#[test]
fn the_block_on_future_is_dropped_inside_the_runtime() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let guard = |runtime: &Runtime| {
            let (handle, ran) = (runtime.handle().clone(), ran.clone());
            mini_tests::OnDrop(move || {
                let ran = ran.clone();
                drop(handle.spawn(async {}));
                drop(mini::spawn(async move { ran.fetch_add(1, SeqCst) }));
            })
        };
        let first = guard(&runtime);
        runtime.block_on(async move { drop(first) });
        let (second, mut polled) = (guard(&runtime), false);
        runtime.block_on(counted(&Counts::new(), move |cx| {
            let _part_of_it = &second;
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
        }));
        runtime.block_on(until(|| ran.load(SeqCst) == 2));
    });
}

#[test]
fn an_unpark_during_block_on_is_left_to_the_caller() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let me = thread::current();
        runtime.block_on(async move {
            let other = thread::spawn(move || me.unpark());
            mini::time::sleep(Duration::from_millis(1)).await;
            other.join().unwrap();
        });
        thread::park(); // for ever, if the token is gone
    });
}

/// A `current_thread` runtime has no thread of its own, whatever is registered there from outside.
#[test]
fn a_socket_from_outside_brings_up_no_worker_of_a_single_thread() {
    within(LIMIT, || {
        let threads = Arc::new(AtomicUsize::new(0));
        let seen = threads.clone();
        let count = move || {
            seen.fetch_add(1, SeqCst);
        };
        let runtime = Builder::new_current_thread().on_thread_start(count).build().unwrap();
        let inside = runtime.enter();
        let (stream, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let socket = mini::io::AsyncFd::new(stream).unwrap();
        runtime.block_on(yield_now());
        drop((socket, inside));
        drop(runtime); // waits for the threads there are
        assert_eq!(threads.load(SeqCst), 0);
    });
}

/// Wakes itself when it is dropped.
struct WakesLate(Option<Waker>);

impl Future for WakesLate {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        self.0 = Some(cx.waker().clone());
        Poll::Ready(())
    }
}

impl Drop for WakesLate {
    fn drop(&mut self) {
        self.0.take().unwrap().wake();
    }
}

#[test]
fn a_future_that_wakes_itself_when_it_is_dropped_leaves_nothing_queued() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..10 {
            runtime.block_on(WakesLate(None));
        }
        assert_eq!(runtime.metrics().total_local_queue_depth(), 0);
    });
}

/// What programs that come from tokio keep in their structs.
#[test]
fn handles_are_shared_whatever_the_output_is() {
    fn is_shared<T: Send + Sync + Unpin>() {}
    is_shared::<mini::task::JoinHandle<Cell<u8>>>();
    is_shared::<mini::task::JoinSet<Cell<u8>>>();
    fn is_looked_at_from_elsewhere<T: Sync>() {}
    is_looked_at_from_elsewhere::<mini::runtime::EnterGuard<'_>>();
}

/// A thread in `block_on` has nothing to do with tasks that wait for a worker, and does not look for them.
#[test]
fn a_thread_in_block_on_waits_while_tasks_wait_for_a_worker() {
    within(LIMIT, || {
        let runtime = multi_thread(1).build().unwrap();
        let (go, may_go) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let busy = runtime.spawn(async move {
            begun.send(()).unwrap();
            may_go.recv().unwrap_err();
        });
        has_begun.recv().unwrap();
        let metrics = runtime.metrics();
        let queued = runtime.spawn(async {});
        thread::scope(|scope| {
            let parks = metrics.total_park_count();
            scope.spawn(|| runtime.block_on(queued).unwrap());
            mini_tests::spin_until(|| metrics.total_park_count() > parks);
            for _ in 0..10_000 {
                thread::yield_now();
            }
            assert!(metrics.total_park_count() <= parks + 2, "{} parks", metrics.total_park_count() - parks);
            drop(go);
        });
        runtime.block_on(busy).unwrap();
    });
}
