//! `idle`: after everything else that is ready, one at a time, and never too late.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::TcpStream as StdStream;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use mini::net::TcpListener;
use mini::runtime::Builder;
use mini::task::{idle, yield_now};
use mini::time::{Duration, Instant, sleep, timeout};
use mini_tests::{
    Counts, LIMIT, block_on_elsewhere, counted, multi_thread, on_current_thread, on_each_flavour, on_single_workers,
    oneshot, poll_with, until, within,
};

#[test]
fn it_comes_after_all_tasks_that_are_ready() {
    on_current_thread(|builder| {
        builder.build().unwrap().block_on(async {
            let left = Arc::new(AtomicUsize::new(50));
            for i in 0..50 {
                let left = left.clone();
                drop(mini::spawn(async move {
                    for _ in 0..i {
                        yield_now().await;
                    }
                    left.fetch_sub(1, SeqCst);
                }));
            }
            idle().await;
            assert_eq!(left.load(SeqCst), 0);
        });
    });
}

#[test]
fn it_comes_at_once_if_there_is_nothing_to_do() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..100 {
            runtime.block_on(idle());
            runtime.block_on(async {
                mini::spawn(async {
                    for _ in 0..20 {
                        idle().await;
                    }
                })
                .await
                .unwrap();
                mini::spawn_local(idle()).await.unwrap();
            });
        }
        let forgotten = runtime.spawn(async {
            idle().await;
            idle().await;
            7
        });
        if !format!("{runtime:?}").contains("current_thread") {
            assert_eq!(block_on_elsewhere(forgotten).unwrap(), 7, "also where nobody is in block_on");
        }
    });
}

#[test]
fn those_who_wait_are_released_one_at_a_time() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = (0..4)
                .map(|i| {
                    let order = order.clone();
                    mini::spawn_local(async move {
                        for _ in 0..3 {
                            idle().await;
                            order.borrow_mut().push(i);
                            // Tasks that a released task makes ready run before the next one is released.
                            let order = order.clone();
                            drop(mini::spawn_local(async move {
                                yield_now().await;
                                order.borrow_mut().push(i + 10);
                            }));
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            idle().await;
            let round = [0, 10, 1, 11, 2, 12, 3, 13];
            assert_eq!(*order.borrow(), [round, round, round].concat());
        });
    });
}

#[test]
fn events_that_have_happened_come_first() {
    on_current_thread(|builder| {
        builder.build().unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().await.unwrap();
            let served = Rc::new(Cell::new(0));
            let count = served.clone();
            drop(mini::spawn_local(async move {
                let mut buf = [0; 1];
                while let Ok(1) = server.read(&mut buf).await {
                    count.set(count.get() + 1);
                }
            }));
            for i in 1..=20 {
                idle().await;
                client.write_all(b"x").unwrap(); // on the loopback it has arrived when this returns
                idle().await;
                assert_eq!(served.get(), i, "the driver was asked before");
            }
        });
    });
}

#[test]
fn a_paused_clock_stands_still_for_it() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let begin = Instant::now();
            let task = mini::spawn(async move {
                sleep(Duration::from_secs(5)).await;
                begin.elapsed()
            });
            for _ in 0..10 {
                idle().await;
                assert_eq!(begin.elapsed(), Duration::ZERO);
            }
            assert_eq!(task.await.unwrap(), Duration::from_secs(5));
        });
    });
}

#[test]
fn a_place_in_the_line_is_given_up() {
    on_each_flavour(|builder| {
        let counts = Counts::new();
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            for _ in 0..100 {
                let mut given_up = idle();
                assert!(poll_with(&mut given_up, &counts).is_pending());
                assert!(poll_with(&mut given_up, &counts).is_pending(), "polled again, it keeps its place");
            }
            assert_eq!(Arc::strong_count(&counts), 1, "no waker is left behind");

            let task = mini::spawn(counted(&counts, {
                let mut idle = idle();
                move |cx| match std::pin::Pin::new(&mut idle).poll(cx) {
                    Poll::Ready(()) => unreachable!("somebody yields for ever"),
                    Poll::Pending => Poll::<()>::Pending,
                }
            }));
            if mini::runtime::Handle::current().runtime_flavor() == mini::runtime::RuntimeFlavor::CurrentThread {
                until(|| counts.polls() == 1).await;
                assert!(task.cancel().await.unwrap_err().is_cancelled());
            } else {
                task.abort();
            }
            idle().await;
            assert!(timeout(Duration::ZERO, std::future::pending::<()>()).await.is_err());
            idle().await;
        });
        drop(runtime);
        assert_eq!(Arc::strong_count(&counts), 1);
    });
}

/// The memory of this process, in kilobytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// In a process of its own, where no other test takes memory.
#[cfg(target_os = "linux")]
#[test]
fn places_given_up_behind_another_take_no_memory() {
    let _ = mini_tests::in_child("places_given_up_behind_another_take_no_memory", || {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let counts = Counts::new();
            let mut front = idle();
            assert!(poll_with(&mut front, &counts).is_pending());
            let before = resident();
            for _ in 0..1_000_000 {
                let mut given_up = idle();
                assert!(poll_with(&mut given_up, &counts).is_pending());
            }
            let grown = resident().saturating_sub(before);
            assert!(grown < 8_000, "{grown} kB");
            yield_now().await;
            assert!(poll_with(&mut front, &counts).is_pending(), "it keeps its place");
            idle().await;
            assert_eq!(counts.wakes(), 1, "which is the first");
        });
    });
}

#[test]
fn a_release_that_nobody_hears_of_is_passed_on() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let counts = Counts::new();
            let mut first = idle();
            assert!(poll_with(&mut first, &counts).is_pending());
            idle().await; // the second in the line
            assert_eq!(counts.wakes(), 1);
            let mut late = idle();
            assert!(poll_with(&mut late, &counts).is_pending());
            assert!(poll_with(&mut first, &counts).is_ready(), "released is released");
            assert!(poll_with(&mut first, &counts).is_ready());
            drop(late);
            idle().await;
            assert_eq!(counts.wakes(), 1);
        });
    });
}

#[test]
fn it_may_be_polled_anywhere() {
    within(LIMIT, || {
        let counts = Counts::new();
        let (one, two) = (multi_thread(2).build().unwrap(), Builder::new_current_thread().build().unwrap());
        block_on_elsewhere(idle());
        for _ in 0..20 {
            // From worker to worker, and from there to a thread that is no worker.
            let mut wanders = idle();
            assert!(one.block_on(async { poll_with(&mut wanders, &counts) }).is_pending());
            let pending = two.block_on(async { poll_with(&mut wanders, &counts) });
            if pending.is_pending() {
                two.block_on(async {
                    yield_now().await;
                    idle().await;
                });
                block_on_elsewhere(wanders);
            }
            one.block_on(idle());
        }
        let _inside = one.enter();
        block_on_elsewhere(async {
            idle().await;
            sleep(Duration::from_micros(10)).await;
            idle().await;
        });
        one.block_on(async { mini::spawn_blocking(|| mini::block_on(idle())).await.unwrap() });
        drop(one);
        drop(two);
        assert_eq!(Arc::strong_count(&counts), 1);
    });
}

/// Tasks that are stolen while they wait, on workers that are busy by turns.
#[test]
fn none_is_lost_between_workers() {
    within(LIMIT, || {
        let runtime = multi_thread(4).build().unwrap();
        let tasks: Vec<_> = (0..64)
            .map(|i| {
                runtime.spawn(async move {
                    for round in 0..50 {
                        if (i + round) % 3 == 0 {
                            yield_now().await;
                        }
                        if (i + round) % 7 == 0 {
                            // Woken by the timer or the lull, wherever that is.
                            let _ = timeout(Duration::from_micros(50), idle()).await;
                        }
                        idle().await;
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
fn it_waits_for_a_worker_that_others_wake() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = mpsc::channel::<mini_tests::Sender<()>>();
        let waker = thread::spawn(move || receive.into_iter().for_each(|sender| sender.send(())));
        runtime.block_on(async {
            for _ in 0..200 {
                let (sender, receiver) = oneshot();
                send.send(sender).unwrap();
                let low = mini::spawn(idle());
                receiver.await.unwrap();
                idle().await;
                low.await.unwrap();
            }
        });
        drop(send);
        waker.join().unwrap();
    });
}

#[test]
fn a_runtime_that_ends_drops_those_who_wait() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let late = handle.spawn(idle());
        drop(runtime);
        assert!(block_on_elsewhere(late).is_err() || format!("{handle:?}").contains("multi_thread"));
        assert!(block_on_elsewhere(handle.spawn(idle())).unwrap_err().is_cancelled());
    });
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        handle.clone().block_on(async move {
            runtime.shutdown_background();
            idle().await; // the future in block_on goes on
            let mut again = pin!(idle());
            let _ = again.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            again.await;
        });
    });
}

#[test]
fn debug_shows_who_waits_and_where() {
    on_current_thread(|builder| {
        builder.build().unwrap().block_on(async {
            let line = line!() + 1;
            let task = mini::spawn(idle());
            until(|| format!("{task:?}").contains("polls: 1")).await;
            let text = format!("{task:?}");
            assert!(text.contains(&format!("Idle worker at {}:{line}:", file!())), "{text}");
            assert!(format!("{:?}", idle()).contains(file!()));
        });
    });
}

#[test]
fn one_that_was_polled_in_block_on_completes_in_a_task() {
    within(LIMIT, || {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let mut idle = idle();
        runtime.block_on(async { assert!(poll_with(&mut idle, &Counts::new()).is_pending()) });
        runtime.block_on(runtime.spawn(idle)).unwrap();
    });
}

/// A child of a scope is polled only if it is woken.
#[test]
fn one_goes_on_in_block_on_when_its_runtime_ends() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        handle.block_on(async move {
            mini::scope!(|s| {
                s.spawn(idle());
                s.spawn(async move { drop(runtime) });
            })
            .await;
        });
    });
}
