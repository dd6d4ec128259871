//! How a runtime ends: from outside, from its own tasks, with work left, under load; and that nothing of it is left.

use std::fs;
use std::future::poll_fn;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread;

use mini::net::UnixStream;
use mini::runtime::{Handle, Runtime};
use mini::task::{JoinHandle, block_in_place, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::net_support::open_files;
use mini_tests::{
    Counts, LIMIT, OnDrop, Token, counted, in_child, multi_thread, never, on_each_flavour, on_single_workers, oneshot,
    spin_until, until, within,
};

#[test]
fn a_runtime_dropped_inside_its_own_task() {
    on_each_flavour(|builder| {
        for _ in 0..50 {
            let runtime = builder.clone().build().unwrap();
            let handle = runtime.handle().clone();
            let counts = Counts::new();
            let (neighbour, last) = handle.block_on(async {
                let neighbour = mini::spawn(never(&counts));
                let last = mini::spawn(async move {
                    drop(runtime);
                    7
                });
                (neighbour, last.await)
            });
            assert_eq!(last.unwrap(), 7, "the task that did it goes on to its end");
            assert!(mini::block_on(neighbour).unwrap_err().is_cancelled());
            assert_eq!(counts.drops(), 1);
        }
    });
}

#[test]
fn a_runtime_dropped_by_the_future_in_block_on() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let (send, receive) = oneshot();
        let thread = thread::spawn(move || send.send(4));
        let output = handle.block_on(async move {
            let task = mini::spawn(std::future::pending::<()>());
            drop(runtime);
            assert!(task.await.unwrap_err().is_cancelled());
            receive.await
        });
        assert_eq!(output, Some(4));
        thread.join().unwrap();
    });
}

#[test]
fn a_runtime_dropped_inside_another_ones_task() {
    on_each_flavour(|builder| {
        let (mine, other) = (builder.clone().build().unwrap(), builder.build().unwrap());
        let counts = Counts::new();
        let task = other.spawn(never(&counts));
        mine.block_on(async {
            mini::spawn(async move { drop(other) }).await.unwrap();
            assert_eq!(counts.drops(), 1, "it is gone when the drop returns");
            assert!(task.await.unwrap_err().is_cancelled());
            mini::spawn(async {}).await.unwrap();
        });
    });
}

#[test]
fn a_runtime_dropped_inside_its_own_blocking_job() {
    on_each_flavour(|builder| {
        // The grace is ten minutes: a runtime that waits for itself does not end within the limit.
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let (done, is_done) = mpsc::channel();
        let job = handle.spawn_blocking(move || {
            drop(runtime);
            done.send(()).unwrap();
            3
        });
        is_done.recv().unwrap();
        assert_eq!(mini_tests::block_on_elsewhere(job).unwrap(), 3);
        let late = handle.spawn(std::future::pending::<()>());
        assert!(mini_tests::block_on_elsewhere(late).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_runtime_dropped_by_the_destructor_of_its_last_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let mut kept = Some(runtime);
        let guard = OnDrop(move || drop(kept.take()));
        handle.block_on(async {
            let task = mini::spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await
            });
            yield_now().await;
            assert!(task.cancel().await.unwrap_err().is_cancelled());
        });
        let late = handle.spawn(std::future::pending::<()>());
        assert!(mini_tests::block_on_elsewhere(late).unwrap_err().is_cancelled());
    });
}

#[test]
fn destructors_may_spawn_at_shutdown() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (first, late) = (Counts::new(), Counts::new());
        let (seen, handles) = (late.clone(), Arc::new(Mutex::new(Vec::<JoinHandle<()>>::new())));
        let (kept, inside) = (handles.clone(), runtime.handle().clone());
        let guard = OnDrop(move || {
            let mut handles = kept.lock().unwrap();
            handles.push(mini::spawn(never(&seen)));
            handles.push(inside.spawn(never(&seen)));
            handles.push(mini::spawn_local(never(&seen)));
        });
        drop(runtime.spawn(counted::<(), _>(&first, move |_| {
            let _part_of_it = &guard;
            Poll::Pending
        })));
        runtime.block_on(until(|| first.polls() == 1));
        drop(runtime);
        assert_eq!((first.drops(), late.drops(), late.polls()), (1, 3, 0));
        for task in handles.lock().unwrap().drain(..) {
            assert!(mini::block_on(task).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn who_waits_for_a_task_of_a_dropped_runtime_is_told() {
    on_each_flavour(|builder| {
        let runtime = builder.clone().build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>());
        let joined = Arc::new(AtomicBool::new(false));
        let seen = joined.clone();
        thread::scope(|scope| {
            let (polling, is_polling) = mpsc::channel();
            scope.spawn(move || {
                mini::block_on(async {
                    let mut task = Box::pin(task);
                    let error = std::future::poll_fn(move |cx| {
                        let poll = task.as_mut().poll(cx);
                        let _ = polling.send(());
                        poll
                    })
                    .await
                    .unwrap_err();
                    seen.store(error.is_cancelled(), SeqCst);
                });
            });
            is_polling.recv().unwrap();
            drop(runtime);
        });
        assert!(joined.load(SeqCst));
    });
}

#[test]
fn shutdown_under_fire_drops_each_future_once() {
    on_each_flavour(|builder| {
        for _ in 0..20 {
            let runtime = builder.clone().build().unwrap();
            let (counts, spawned) = (Counts::new(), AtomicUsize::new(0));
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                for i in 0..3 {
                    let handle = runtime.handle().clone();
                    let (counts, spawned, over) = (&counts, &spawned, &over);
                    scope.spawn(move || {
                        let mut tasks = Vec::new();
                        while !over.load(SeqCst) && tasks.len() < 20_000 {
                            let (send, receive) = oneshot::<()>();
                            let mut receive = Box::pin(receive);
                            tasks.push(handle.spawn(counted(counts, move |cx| receive.as_mut().poll(cx))));
                            spawned.fetch_add(1, SeqCst);
                            if i == 0 {
                                drop(send);
                            } else {
                                tasks.last().unwrap().abort();
                            }
                        }
                        for task in tasks {
                            let _ = mini_tests::block_on_elsewhere(task); // each has an answer
                        }
                    });
                }
                runtime.block_on(until(|| spawned.load(SeqCst) > 20));
                drop(runtime);
                over.store(true, SeqCst);
            });
            assert_eq!(counts.drops(), spawned.into_inner());
        }
    });
}

#[test]
fn block_on_goes_on_while_another_thread_drops_the_runtime() {
    on_each_flavour(|builder| {
        for _ in 0..30 {
            let runtime = builder.clone().build().unwrap();
            let handle = runtime.handle().clone();
            let (entered, is_entered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    handle.block_on(async {
                        let task = mini::spawn(std::future::pending::<()>());
                        entered.send(()).unwrap();
                        assert!(task.await.unwrap_err().is_cancelled());
                    })
                });
                is_entered.recv().unwrap();
                drop(runtime);
            });
        }
    });
}

#[test]
fn a_worker_in_a_long_poll_is_left_behind_and_it_is_said() {
    let Some(stderr) = in_child("a_worker_in_a_long_poll_is_left_behind_and_it_is_said", || {
        let (inside, is_inside) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let runtime = multi_thread(2).shutdown_grace(Duration::from_millis(1)).build().unwrap();
        let counts = Counts::new();
        let task = runtime.spawn(counted::<(), _>(&counts, move |_| {
            inside.send(()).unwrap();
            let _ = may_go.recv();
            Poll::Pending
        }));
        is_inside.recv().unwrap();
        drop(runtime);
        assert_eq!(counts.drops(), 0);
        drop(go);
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
        assert_eq!((counts.polls(), counts.drops()), (1, 1));
    }) else {
        return;
    };
    assert!(stderr.contains("worker(s) behind in a long poll"), "{stderr}");
}

#[test]
fn workers_at_rest_are_not_left_behind_without_a_grace() {
    for _ in 0..50 {
        let runtime = multi_thread(2).build().unwrap();
        let counts = Counts::new();
        let task = runtime.spawn(never(&counts));
        spin_until(|| counts.polls() == 1 && runtime.handle().dump().to_string().contains("parked"));
        let left = runtime.shutdown_timeout(Duration::ZERO);
        assert!(left.is_empty(), "{left}");
        assert_eq!(counts.drops(), 1);
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
    }
}

/// Tasks that were spawned on a worker which does not come back end with the runtime: another worker drops them.
fn are_dropped_beside(block: fn(mpsc::Receiver<()>)) {
    within(LIMIT, move || {
        let runtime = multi_thread(4).build().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (dropped, drops) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let busy = runtime.spawn(async move {
            for task in 0..40 {
                let (begun, dropped) = (begun.clone(), dropped.clone());
                let guard = OnDrop(move || dropped.send(()).unwrap());
                drop(mini::spawn(async move {
                    let _guard = guard;
                    begun.send(()).unwrap();
                    loop {
                        match task % 2 {
                            0 => yield_now().await,
                            _ => sleep(Duration::from_millis(1)).await,
                        }
                    }
                }));
            }
            block(may_go);
        });
        for _ in 0..40 {
            has_begun.recv().unwrap(); // on other workers
        }
        let shutdown = thread::spawn(move || runtime.shutdown_timeout(LIMIT * 100));
        for _ in 0..40 {
            drops.recv().unwrap();
        }
        drop(go);
        let left = shutdown.join().unwrap();
        assert!(left.is_empty(), "{left}");
        drop(mini::block_on(busy)); // cancelled, or ended before
    });
}

#[test]
fn tasks_of_a_worker_in_a_long_poll_are_dropped_by_another_one() {
    are_dropped_beside(|may_go| assert!(may_go.recv().is_err()));
}

#[test]
fn tasks_of_a_worker_in_block_in_place_are_dropped_by_another_one() {
    are_dropped_beside(|may_go| assert!(block_in_place(|| may_go.recv()).is_err()));
}

#[test]
fn the_thread_that_shuts_down_runs_no_destructor_of_a_task_that_has_a_worker() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let guard = OnDrop(move || assert!(may_go.recv().is_err()));
        let task = runtime.spawn(async move {
            let _guard = guard;
            begun.send(()).unwrap();
            std::future::pending::<()>().await
        });
        has_begun.recv().unwrap();
        runtime.shutdown_background();
        drop(go);
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
    });
}

/// Waits for an hour in place, as a task of the runtime that the calling thread is inside of; ready when that has
/// begun.
async fn wait_in_place() {
    let (begun, has_begun) = oneshot();
    let handle = Handle::current();
    drop(mini::spawn(async move {
        block_in_place(move || {
            begun.send(());
            handle.block_on(sleep(Duration::from_secs(3600)));
        });
    }));
    has_begun.await;
}

#[mini::main(worker_threads = 2)]
async fn program_beside_a_wait_in_place() {
    wait_in_place().await;
}

#[test]
fn a_program_ends_beside_a_task_that_waits_in_place() {
    within(LIMIT, program_beside_a_wait_in_place);
}

#[test]
fn block_on_returns_beside_a_task_that_waits_in_place() {
    within(LIMIT, || {
        let runtime = multi_thread(2).shutdown_grace(Duration::from_millis(1)).build().unwrap();
        runtime.block_on(wait_in_place());
    });
}

#[test]
fn what_the_future_of_block_on_sends_reaches_a_task_that_blocks_in_place() {
    within(LIMIT, || {
        let (send, receive) = mpsc::channel();
        let runtime = multi_thread(8).build().unwrap();
        let received = runtime.block_on(async {
            let task = mini::spawn(async move { block_in_place(|| receive.recv()) });
            yield_now().await;
            send.send(7).unwrap();
            task.await
        });
        assert_eq!(received.unwrap(), Ok(7));
    });
}

#[test]
fn a_wait_in_place_ends_with_its_runtime() {
    within(LIMIT, || {
        let runtime = multi_thread(4).build().unwrap();
        let waits = runtime.spawn(wait_in_place());
        mini::block_on(waits).unwrap();
        let left = runtime.shutdown_timeout(LIMIT * 100);
        assert!(left.is_empty(), "{left}");
    });
}

/// The core of the nested `block_on` was closed before, as nobody held it. That is a race, so a few rounds.
#[test]
fn a_wait_in_place_that_begins_in_a_shutdown_ends_with_it() {
    within(LIMIT, || {
        for _ in 0..20 {
            let runtime = multi_thread(1).build().unwrap();
            runtime.block_on(async {}); // leaves the core of a guest
            let (begun, has_begun) = mpsc::channel();
            let handle = runtime.handle().clone();
            drop(runtime.spawn(async move {
                begun.send(()).unwrap();
                spin_until(|| handle.dump().to_json().contains("\"has_ended\":true"));
                block_in_place(|| handle.block_on(sleep(Duration::from_secs(3600))));
            }));
            has_begun.recv().unwrap();
            let left = runtime.shutdown_timeout(LIMIT * 100);
            assert!(left.is_empty(), "{left}");
        }
    });
}

/// Blocks the calling thread until `may_go` is closed.
fn block(in_place: bool, begun: mpsc::Sender<()>, may_go: mpsc::Receiver<()>) {
    let blocks = || {
        begun.send(()).unwrap();
        may_go.recv().unwrap_err();
    };
    if in_place { block_in_place(blocks) } else { blocks() }
}

/// A task that is in its poll when the runtime ends, or in `block_in_place`, and waits as `wait` does after that.
fn goes_on<F: Future<Output = ()> + Send + 'static>(wait: impl Fn() -> F + Copy + Send + 'static) {
    for (grace, in_place) in [(None, false), (None, true), (Some(1), false), (Some(1), true)] {
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let runtime = multi_thread(2).build().unwrap();
        let task = runtime.spawn(async move {
            block(in_place, begun, may_go);
            wait().await;
        });
        has_begun.recv().unwrap();
        match grace {
            None => runtime.shutdown_background(),
            Some(millis) => drop(runtime.shutdown_timeout(Duration::from_millis(millis))),
        }
        drop(go);
        let error = mini::block_on(task).unwrap_err();
        assert!(error.is_cancelled(), "{error}");
    }
}

#[test]
fn a_task_in_its_poll_at_the_end_is_cancelled_and_sees_no_dead_reactor() {
    goes_on(|| sleep(Duration::from_secs(3600)));
    goes_on(|| async {
        let (one, _other) = UnixStream::pair().unwrap();
        one.read(&mut [0]).await.unwrap();
    });
}

/// A sleep and a socket that have waited in a runtime, which has ended but for a worker in a long poll, and go on in
/// another one.
#[test]
fn waits_of_another_runtime_go_on_beside_a_worker_that_is_left_behind() {
    let first = multi_thread(2).build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let stuck = first.spawn(async move {
        begun.send(()).unwrap();
        may_go.recv().unwrap_err();
    });
    has_begun.recv().unwrap();
    let (here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
    here.set_nonblocking(true).unwrap();
    let (nap, stream) = first.block_on(async {
        let (mut nap, stream) = (Box::pin(sleep(Duration::from_millis(100))), UnixStream::from_std(here).unwrap());
        let mut buf = [0];
        let mut read = Box::pin(stream.read(&mut buf));
        poll_fn(|cx| {
            assert!(nap.as_mut().poll(cx).is_pending() && read.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(read);
        (nap, stream)
    });
    let left = first.shutdown_timeout(Duration::from_millis(1));
    assert!(left.workers() >= 1, "{left:?}");
    within(LIMIT, move || {
        Runtime::new().unwrap().block_on(async {
            nap.await;
            there.write_all(b"!").unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 1);
            let read = async { stream.read(&mut [0]).await.unwrap() };
            let write = async {
                mini::task::yield_now().await;
                there.write_all(b"!").unwrap();
            };
            assert_eq!(mini::join!(read, write), (1, ()));
        });
    });
    drop(go);
    drop(mini::block_on(stuck)); // it has ended by itself, or not
}

/// Descriptors and threads of this process.
fn used() -> (usize, usize) {
    (open_files(), fs::read_dir("/proc/self/task").unwrap().count())
}

#[cfg(target_os = "linux")]
#[test]
fn two_hundred_runtimes_leave_no_descriptor_and_no_thread() {
    let _ = in_child("two_hundred_runtimes_leave_no_descriptor_and_no_thread", || {
        let round = |i: usize| {
            let (_, builder) = mini_tests::flavours().swap_remove(i % 4);
            let runtime = builder.build().unwrap();
            let task = runtime.spawn(mini::time::sleep(LIMIT * 100));
            drop(runtime.spawn(async { mini::spawn(async {}).await }));
            runtime.block_on(async {
                mini::time::sleep(Duration::from_micros(10)).await;
                mini::spawn_blocking(|| {}).await.unwrap();
            });
            drop(runtime);
            assert!(mini::block_on(task).unwrap_err().is_cancelled());
        };
        let before = used();
        (0..200).for_each(round);
        // Threads that a shutdown has waited for may need a moment to be gone, with their descriptors.
        for _ in 0..100_000 {
            if used() == before {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(used(), before);
    });
}

#[test]
fn a_handle_kept_for_long_holds_no_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (handle, counts) = (runtime.handle().clone(), Counts::new());
        let token = Token::new(&counts);
        let abort = runtime.spawn(async move {
            let _token = token;
            std::future::pending::<()>().await
        });
        let abort = abort.abort_handle();
        drop(runtime);
        assert_eq!(counts.drops(), 1);
        assert!(abort.is_finished());
        abort.abort();
        drop(handle);
    });
}

#[test]
fn runtimes_dropped_in_any_order() {
    within(LIMIT, || {
        let build = |i: usize| -> Runtime { mini_tests::flavours().swap_remove(i % 4).1.build().unwrap() };
        let mut runtimes: Vec<Option<Runtime>> = (0..8).map(|i| Some(build(i))).collect();
        // Each runtime has a task that waits for a task of the next one, or is cancelled before.
        let mut next = runtimes[7].as_ref().unwrap().spawn(std::future::pending::<()>());
        for runtime in runtimes[..7].iter().rev().flatten() {
            next = runtime.spawn(async { drop(next.await) });
        }
        for i in [3, 0, 7, 1, 4, 6, 2, 5] {
            drop(runtimes[i].take());
        }
        let _ = mini::block_on(next); // whichever it is, there is an answer
    });
}

#[test]
fn a_current_thread_runtime_keeps_its_tasks_between_calls() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = oneshot();
        let task = runtime.spawn(async move {
            yield_now().await;
            receive.await
        });
        runtime.block_on(yield_now());
        send.send(1);
        assert_eq!(runtime.block_on(task).unwrap(), Some(1));
    });
}

/// A thread that comes into `block_on` then works on a core that has ended.
#[test]
fn a_block_on_that_begins_during_the_end_ends() {
    within(LIMIT, || {
        for _ in 0..20 {
            let runtime = multi_thread(2).build().unwrap();
            let handle = runtime.handle().clone();
            let (tell, told) = mpsc::channel();
            let (release, stuck) = mpsc::channel::<()>();
            drop(runtime.spawn(async move {
                tell.send(mini::spawn(async {
                    loop {
                        yield_now().await;
                    }
                }))
                .unwrap();
                let _released = stuck.recv();
            }));
            let endless: JoinHandle<()> = told.recv().unwrap();
            thread::scope(|scope| {
                scope.spawn(|| runtime.shutdown_timeout(LIMIT));
                // Jobs are refused when the core without a thread has ended.
                while mini_tests::block_on_elsewhere(handle.spawn_blocking(|| ())).is_ok() {}
                let ended = handle.block_on(async {
                    for _ in 0..200 {
                        yield_now().await;
                    }
                    drop(release);
                    endless.await
                });
                assert!(ended.unwrap_err().is_cancelled());
            });
        }
    });
}
