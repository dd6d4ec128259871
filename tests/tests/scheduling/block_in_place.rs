//! `block_in_place`: code that may block, on a worker whose other tasks go on.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream as StdStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;

use mini::net::TcpListener;
use mini::runtime::{Builder, Runtime};
use mini::task::{JoinSet, block_in_place, consume_budget, id, idle, try_id, unconstrained, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::{Counts, LIMIT, beside_block_on, caught, in_child, multi_thread, never, oneshot, until, within};

const SHORT: Duration = Duration::from_micros(300);

fn several(workers: usize) -> Runtime {
    multi_thread(workers).build().unwrap()
}

#[test]
fn it_runs_on_the_callers_thread() {
    within(LIMIT, || {
        for workers in [1, 2, 4] {
            let runtime = several(workers);
            runtime.block_on(async {
                let here = thread::current().id();
                let not_send = Rc::new(Cell::new(0));
                let inside = not_send.clone();
                let out = block_in_place(move || {
                    assert_eq!(thread::current().id(), here);
                    inside.set(1);
                    block_in_place(|| block_in_place(|| 7)) // nested
                });
                assert_eq!((out, not_send.get()), (7, 1));
                // Afterwards all is as before.
                mini::spawn_local(async {}).await.unwrap();
                let task = mini::spawn(async {
                    let inside = id();
                    assert_eq!(block_in_place(id), inside);
                    for _ in 0..100 {
                        block_in_place(|| ());
                        yield_now().await;
                    }
                    mini::spawn_local(sleep(SHORT)).await.unwrap();
                    id()
                });
                assert_eq!(task.id(), task.await.unwrap());
            });
        }
    });
}

#[test]
fn where_there_is_no_worker_it_just_runs() {
    within(LIMIT, || {
        assert_eq!(block_in_place(|| 1), 1);
        for runtime in [several(2), Builder::new_current_thread().build().unwrap()] {
            let _inside = runtime.enter();
            assert_eq!(block_in_place(|| 2), 2);
            runtime.block_on(async {
                assert_eq!(mini::spawn_blocking(|| block_in_place(|| 3)).await.unwrap(), 3);
            });
        }
    });
}

#[test]
fn on_a_current_thread_runtime_it_panics() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let seen = caught(|| block_in_place(|| unreachable!("not called")));
            assert!(seen.message.contains("current_thread") && seen.message.contains("spawn_blocking"), "{seen:?}");
            assert_eq!(seen.file, file!());
            assert!(mini::spawn(async { block_in_place(|| ()) }).await.unwrap_err().is_panic());
            mini::spawn(async {}).await.unwrap();
        });
    });
}

#[test]
fn in_block_on_of_a_current_thread_runtime_it_panics_whoever_runs_the_tasks() {
    within(LIMIT, || {
        let runtime = &Builder::new_current_thread().build().unwrap();
        let refused = || {
            let seen = caught(|| block_in_place(|| ()));
            assert!(seen.message.contains("current_thread") && seen.file == file!(), "{seen:?}");
        };
        runtime.handle().block_on(async { refused() });
        beside_block_on(runtime, async {}, || {
            runtime.block_on(async { refused() });
            runtime.handle().block_on(async { refused() });
        });
    });
}

#[test]
fn a_block_on_without_a_worker_s_place_blocks_in_place() {
    within(LIMIT, || {
        let runtime = &several(1);
        beside_block_on(runtime, async {}, || {
            let (inner, after) = runtime.block_on(async {
                let inner = block_in_place(|| mini::block_on(async { 3 }));
                (inner, caught(|| mini::block_on(async {})).message)
            });
            assert_eq!(inner, 3);
            assert!(after.starts_with("block_on inside a task"), "{after}");
        });
    });
}

#[test]
fn neighbours_in_the_queue_run_meanwhile() {
    within(LIMIT, || {
        let runtime = several(2);
        for in_task in [true, false] {
            let body = async {
                let (send, receive) = mpsc::channel();
                for i in 0..10 {
                    let send = send.clone();
                    drop(mini::spawn(async move {
                        yield_now().await;
                        sleep(SHORT).await;
                        send.send(i).unwrap();
                    }));
                }
                let seen: Vec<i32> = block_in_place(|| receive.iter().take(10).collect());
                assert_eq!(seen.iter().sum::<i32>(), 45);
            };
            match in_task {
                true => {
                    let task = runtime.spawn(body);
                    runtime.block_on(task).unwrap();
                }
                false => runtime.block_on(body),
            }
        }
    });
}

#[test]
fn sockets_and_timers_of_the_worker_are_served_meanwhile() {
    within(LIMIT, || {
        let runtime = several(2);
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            let echo = mini::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let mut buf = [0; 1];
                while stream.read(&mut buf).await.unwrap() == 1 {
                    sleep(SHORT).await;
                    stream.write_all(&buf).await.unwrap();
                }
            });
            until(|| format!("{echo:?}").contains("Accept")).await; // registered here, or on the other worker
            block_in_place(|| {
                let mut client = StdStream::connect(addr).unwrap();
                for i in 0..20 {
                    client.write_all(&[i]).unwrap();
                    let mut buf = [0];
                    client.read_exact(&mut buf).unwrap();
                    assert_eq!(buf, [i]);
                }
            });
            echo.await.unwrap();
        });
    });
}

#[test]
fn what_comes_meanwhile_is_run() {
    within(LIMIT, || {
        let runtime = several(2);
        let handle = runtime.handle().clone();
        runtime.block_on(async {
            for _ in 0..50 {
                let (send, receive) = mpsc::channel();
                block_in_place(|| {
                    let spawned = send.clone();
                    drop(mini::spawn(async move { spawned.send(1).unwrap() }));
                    assert_eq!(receive.recv(), Ok(1));
                    let handle = handle.clone();
                    thread::spawn(move || drop(handle.spawn(async move { send.send(2).unwrap() }))).join().unwrap();
                    assert_eq!(receive.recv(), Ok(2));
                });
            }
        });
    });
}

#[test]
fn a_task_that_waits_for_a_lull_runs_meanwhile() {
    within(LIMIT, || {
        let runtime = several(2);
        let task = runtime.spawn(async {
            for _ in 0..100 {
                let (polled, was_polled) = mpsc::channel();
                let (send, receive) = mpsc::channel();
                drop(mini::spawn(async move {
                    polled.send(()).unwrap();
                    idle().await; // often on the worker that is about to block
                    send.send(()).unwrap();
                }));
                until(move || was_polled.try_recv().is_ok()).await;
                block_in_place(|| receive.recv()).unwrap();
            }
        });
        runtime.block_on(task).unwrap();
    });
}

#[test]
fn an_endless_budget_ends_at_its_door() {
    within(LIMIT, || {
        let runtime = several(2);
        let task = runtime.spawn(unconstrained(async {
            block_in_place(|| {
                Builder::new_current_thread().build().unwrap().block_on(async {
                    let is_over = Arc::new(AtomicBool::new(false));
                    let seen = is_over.clone();
                    let busy = mini::spawn(async move {
                        while !seen.load(SeqCst) {
                            consume_budget().await;
                        }
                    });
                    yield_now().await;
                    is_over.store(true, SeqCst);
                    busy.await.unwrap();
                });
            });
        }));
        runtime.block_on(task).unwrap();
    });
}

#[test]
fn block_on_is_possible_inside() {
    within(LIMIT, || {
        for workers in [1, 2, 4] {
            let runtime = several(workers);
            let body = || async move {
                let out = block_in_place(|| {
                    mini::block_on(async {
                        sleep(SHORT).await;
                        yield_now().await;
                        mini::spawn_blocking(|| 5).await.unwrap()
                    })
                });
                assert_eq!(out, 5);
                if workers > 1 {
                    // Another worker is there for the task.
                    let task = || mini::spawn(async { sleep(SHORT).await });
                    block_in_place(|| mini::block_on(task())).unwrap();
                }
            };
            runtime.block_on(body());
            let task = runtime.spawn(body());
            runtime.block_on(task).unwrap();
        }
        let outer = several(2);
        outer.block_on(async {
            let inner = Builder::new_current_thread().build().unwrap();
            assert_eq!(block_in_place(|| inner.block_on(async { mini::spawn(async { 3 }).await.unwrap() })), 3);
            block_in_place(|| drop(inner));
        });
    });
}

/// Otherwise a task could wait for a lock that the caller has.
#[test]
fn a_block_on_inside_polls_no_task_nor_does_one_in_a_job() {
    within(LIMIT, || {
        let runtime = several(3);
        let all_run_elsewhere = || {
            let here = thread::current().id();
            mini::block_on(async {
                let mut others = JoinSet::new();
                for _ in 0..200 {
                    others.spawn(async {
                        yield_now().await;
                        thread::current().id()
                    });
                }
                while let Some(other) = others.join_next().await {
                    assert_ne!(other.unwrap(), here);
                }
            });
        };
        runtime.block_on(async { block_in_place(all_run_elsewhere) });
        runtime.block_on(runtime.spawn(async move { block_in_place(all_run_elsewhere) })).unwrap();
        runtime.block_on(runtime.spawn_blocking(all_run_elsewhere)).unwrap();
    });
}

/// As for a future given to `block_on` anywhere else.
#[test]
fn a_block_on_inside_is_in_no_task() {
    within(LIMIT, || {
        let runtime = several(2);
        let inside = || mini::block_on(async { (try_id(), block_in_place(try_id)) });
        let task = runtime.spawn(async move { (block_in_place(inside), id(), try_id()) });
        let own = Some(task.id());
        let (inside_of_task, after, tried) = runtime.block_on(task).unwrap();
        assert_eq!((inside_of_task, Some(after), tried), ((None, None), own, own));
        assert_eq!(runtime.block_on(runtime.spawn_blocking(inside)).unwrap(), (None, None));
    });
}

/// A thread whose `block_on` has got no core is no worker; what it is in the middle of must not meet other tasks
/// either.
#[test]
fn a_block_on_inside_of_an_external_one_polls_no_task() {
    within(LIMIT, || {
        let runtime = several(1);
        let (end, ended) = oneshot::<()>();
        let (entered, has_entered) = mpsc::channel();
        thread::scope(|scope| {
            let runtime = &runtime;
            let holder = scope.spawn(move || {
                runtime.block_on(async {
                    entered.send(()).unwrap();
                    ended.await;
                });
            });
            has_entered.recv().unwrap();
            runtime.block_on(async {
                let here = thread::current().id();
                let others = block_in_place(|| {
                    drop(end);
                    holder.join().unwrap();
                    mini::block_on(async {
                        let mut others = JoinSet::new();
                        (0..50).for_each(|_| drop(others.spawn(async { thread::current().id() })));
                        others.join_all().await
                    })
                });
                assert!(others.iter().all(|&other| other != here));
            });
        });
    });
}

/// The future polls more leaves than a poll has budget for, of which none would be refused for good.
#[test]
fn the_budget_of_the_poll_is_what_it_was_after_a_block_on_inside() {
    within(LIMIT, || {
        let runtime = several(2);
        let other = Builder::new_current_thread().build().unwrap();
        let body = async move {
            block_in_place(|| mini::block_on(async {}));
            block_in_place(|| other.block_on(async {}));
            block_in_place(|| other.turn(Duration::ZERO));
            let mut leaves: Vec<_> = (0..10_000).map(|_| consume_budget()).collect();
            let mut polls = 0;
            poll_fn(|cx| {
                let polled = leaves.iter_mut().map(|leaf| Pin::new(leaf).poll(cx));
                polls = polled.filter(Poll::is_ready).count();
                Poll::Ready(())
            })
            .await;
            block_in_place(|| drop(other));
            polls
        };
        let polls = runtime.block_on(runtime.spawn(body)).unwrap();
        assert!((128..1_000).contains(&polls), "{polls}");
    });
}

/// It would wait for itself.
#[test]
fn a_runtime_may_be_dropped_inside_of_another_one_in_its_task() {
    within(LIMIT, || {
        let counts = Counts::new();
        let (outer, inner) = (several(2), several(2));
        let handle = outer.handle().clone();
        drop(outer.spawn(never(&counts)));
        let task = handle.spawn(async move {
            block_in_place(|| inner.block_on(async { block_in_place(|| drop(outer)) }));
        });
        mini_tests::block_on_elsewhere(task).unwrap();
        while counts.drops() == 0 {
            thread::yield_now();
        }
    });
}

#[test]
fn a_panic_inside_goes_its_way_and_all_is_as_before() {
    within(LIMIT, || {
        let runtime = several(2);
        runtime.block_on(async {
            let error = mini::spawn(async { block_in_place(|| panic!("inside")) }).await.unwrap_err();
            assert!(error.to_string().ends_with("panicked: inside"), "{error}");
            assert_eq!(caught(|| block_in_place(|| panic!("here"))).message, "here");
            mini::spawn_local(async {}).await.unwrap();
            mini::spawn(async {}).await.unwrap();
        });
    });
}

#[test]
fn local_tasks_wait_until_it_is_over() {
    within(LIMIT, || {
        let runtime = several(2);
        runtime.block_on(async {
            let inside = Arc::new(AtomicBool::new(false));
            let seen = inside.clone();
            let (send, receive) = oneshot();
            let local = mini::spawn_local(async move {
                let value = receive.await.unwrap();
                assert!(!seen.load(SeqCst));
                value
            });
            let caller = mini::spawn_local(async move {
                block_in_place(|| {
                    inside.store(true, SeqCst);
                    send.send(7); // wakes a task of the core that is set aside
                    inside.store(false, SeqCst);
                });
            });
            assert_eq!(local.await.unwrap(), 7);
            caller.await.unwrap();
            let doomed = mini::spawn_local(std::future::pending::<()>());
            yield_now().await;
            block_in_place(|| doomed.abort());
            assert!(doomed.await.unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn all_workers_at_once_get_through() {
    within(LIMIT, || {
        let runtime = several(3);
        let tasks: Vec<_> = (0..60)
            .map(|i| {
                runtime.spawn(async move {
                    for _ in 0..10 {
                        let (send, receive) = mpsc::channel();
                        let job = mini::spawn_blocking(move || send.send(i).unwrap());
                        assert_eq!(block_in_place(|| receive.recv().unwrap()), i);
                        job.await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
    });
}

#[test]
fn a_runtime_may_be_dropped_inside_and_meanwhile() {
    within(LIMIT, || {
        let runtime = several(2);
        let counts = Counts::new();
        drop(runtime.spawn(never(&counts)));
        let handle = runtime.handle().clone();
        handle.block_on(async {
            until(|| counts.polls() == 1).await;
            block_in_place(|| drop(runtime)); // does not wait for this worker
            until(|| counts.drops() == 1).await;
        });
        let late = mini_tests::block_on_elsewhere(handle.spawn(async {}));
        assert!(late.unwrap_err().is_cancelled());

        let runtime = several(2);
        let (entered, is_in) = mpsc::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        let task = runtime.spawn(async move {
            block_in_place(|| {
                entered.send(()).unwrap();
                let _ = wait.recv();
            });
            9
        });
        is_in.recv().unwrap();
        let ended = thread::spawn(move || drop(runtime)); // waits for the worker
        drop(go_on);
        ended.join().unwrap();
        assert!(mini_tests::block_on_elsewhere(task).is_ok_and(|out| out == 9), "its last poll was its last anyway");
    });
}

/// The shutdown does not wait longer for it than its grace, and says so.
#[test]
fn a_shutdown_leaves_it_behind() {
    let Some(stderr) = in_child("a_shutdown_leaves_it_behind", || {
        let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (entered, is_in) = mpsc::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        drop(runtime.spawn(async move {
            block_in_place(|| {
                entered.send(()).unwrap();
                let _ = wait.recv();
            });
        }));
        is_in.recv().unwrap();
        runtime.shutdown_timeout(Duration::from_millis(1));
        drop(go_on);
    }) else {
        return;
    };
    assert!(stderr.contains("shutdown left") && stderr.contains("worker(s) behind"), "{stderr}");
}

/// Polls a future on this thread, and parks the thread in the worker's place: only other threads can fire its timers.
fn park_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[test]
fn timers_that_come_while_it_blocks_fire() {
    within(LIMIT, || {
        let runtime = several(2);
        runtime
            .block_on(runtime.spawn(async {
                block_in_place(|| {
                    for _ in 0..20 {
                        park_on(sleep(SHORT));
                        // The blocking that this test is about: long enough for other threads to see that there is no
                        // timer.
                        thread::sleep(SHORT * 10);
                    }
                });
            }))
            .unwrap();
    });
}

#[test]
fn timers_of_a_block_on_inside_fire() {
    within(LIMIT, || {
        let runtime = several(2);
        let handle = runtime.handle().clone();
        let (over, is_over) = oneshot();
        thread::scope(|scope| {
            let other = scope.spawn(|| runtime.block_on(is_over));
            let inside = handle.clone();
            handle.block_on(async {
                block_in_place(|| {
                    for _ in 0..20 {
                        // As above: no other thread has been told of the next timer.
                        thread::sleep(SHORT * 10);
                        inside.block_on(sleep(SHORT));
                    }
                });
            });
            over.send(());
            other.join().unwrap();
        });
    });
}
