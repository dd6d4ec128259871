//! What runs when: no task starves, and a worker that is stuck in a long poll delays no other task.
//!
//! Asserts order and completion, never durations.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::runtime::{Builder, RuntimeFlavor};
use mini::task::yield_now;
use mini::time::{Duration, sleep};
use mini_tests::{
    Counts, LIMIT, OnDrop, counted, multi_thread, on_current_thread, on_each_flavour, on_single_workers, oneshot,
    spin_until, until, within,
};

/// Yields until the returned guard is dropped.
fn busy() -> (impl Future<Output = ()> + Send + 'static, OnDrop<impl FnMut()>) {
    let over = Arc::new(AtomicBool::new(false));
    let set = over.clone();
    (until(move || over.load(SeqCst)), OnDrop(move || set.store(true, SeqCst)))
}

fn compute(time: Duration) {
    let begin = std::time::Instant::now();
    while begin.elapsed() < time {}
}

/// Two microseconds each: after fifty turns every one of them has run for long.
#[test]
fn yielding_tasks_take_turns() {
    on_current_thread(|builder| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let seen = order.clone();
        builder.build().unwrap().block_on(async move {
            let tasks: Vec<_> = (0..3)
                .map(|i| {
                    let order = order.clone();
                    mini::spawn(async move {
                        for _ in 0..200 {
                            order.lock().unwrap().push(i);
                            compute(Duration::from_micros(2));
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 600);
        // One task may have run for long before another has, and then waits for that one. From there on they take
        // turns.
        let turn = &seen[300..303];
        assert!((0..3).all(|task| turn.contains(&task)), "{seen:?}");
        assert!(seen[300..480].chunks(3).all(|other| other == turn), "{seen:?}");
    });
}

#[test]
fn the_block_on_future_and_yielding_tasks_share_the_thread() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (forever, stop) = busy();
        let task = runtime.spawn(forever);
        runtime.block_on(async {
            for _ in 0..1000 {
                yield_now().await;
            }
        });
        drop(stop);
        runtime.block_on(task).unwrap();
        // The other way round: the future in block_on is always ready.
        let count = Arc::new(AtomicUsize::new(0));
        let counter = count.clone();
        drop(runtime.spawn(async move {
            for _ in 0..1000 {
                counter.fetch_add(1, SeqCst);
                yield_now().await;
            }
        }));
        runtime.block_on(until(|| count.load(SeqCst) == 1000));
    });
}

#[test]
fn yielding_tasks_starve_no_timer_and_no_foreign_wake_and_no_foreign_spawn() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let mut guards = Vec::new();
        for _ in 0..8 {
            let (forever, stop) = busy();
            drop(runtime.spawn(forever));
            guards.push(stop);
        }
        let (send, receive) = oneshot();
        let handle = runtime.handle().clone();
        let thread = thread::spawn(move || {
            let task = handle.spawn(async move { send.send(1) });
            mini_tests::block_on_elsewhere(task).unwrap();
        });
        runtime.block_on(async {
            sleep(Duration::from_micros(300)).await;
            assert_eq!(receive.await, Some(1));
            mini::spawn(sleep(Duration::from_micros(300))).await.unwrap();
            mini::spawn_blocking(|| {}).await.unwrap();
            mini::spawn_local(async {}).await.unwrap();
        });
        thread.join().unwrap();
        drop(guards);
    });
}

#[test]
fn local_and_shared_tasks_do_not_starve_each_other() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let (forever, stop) = busy();
            let local = mini::spawn_local(forever);
            let shared = mini::spawn(async {
                for _ in 0..300 {
                    yield_now().await;
                }
            });
            shared.await.unwrap();
            drop(stop);
            local.await.unwrap();

            let (forever, stop) = busy();
            let shared = mini::spawn(forever);
            let count = Rc::new(Cell::new(0));
            let local = mini::spawn_local({
                let count = count.clone();
                async move { until(|| count.replace(count.get() + 1) == 300).await }
            });
            local.await.unwrap();
            drop(stop);
            shared.await.unwrap();
        });
    });
}

/// However fast tasks come in, the worker goes on running tasks.
#[test]
fn a_flood_from_other_threads_does_not_stop_the_worker() {
    const MOST: usize = 300_000;
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (over, spawned) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            let flood = || {
                let spawn = |_| {
                    drop(runtime.spawn(async {}));
                    spawned.fetch_add(1, SeqCst);
                };
                (0..MOST).take_while(|_| !over.load(SeqCst)).map(spawn).count()
            };
            let floods = [(); 3].map(|()| scope.spawn(flood));
            spin_until(|| spawned.load(SeqCst) > 1000);
            runtime.block_on(async {});
            // On one thread each turn comes after all that has flooded in.
            let turns = if runtime.handle().runtime_flavor() == RuntimeFlavor::MultiThread { 200 } else { 0 };
            runtime.block_on(async {
                for _ in 0..turns {
                    yield_now().await; // for more than one look at what floods in
                }
            });
            over.store(true, SeqCst);
            for flood in floods {
                assert!(flood.join().unwrap() < MOST, "block_on came to its end only after the flood");
            }
        });
    });
}

/// Two tasks that wake each other jump the queue each time.
#[test]
fn a_pair_that_wakes_each_other_starves_nobody() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let wakers = Arc::new(Mutex::new([const { None::<Waker> }; 2]));
        let pair = [0, 1].map(|me| {
            let (over, wakers) = (over.clone(), wakers.clone());
            runtime.spawn(counted(&Counts::new(), move |cx| {
                wakers.lock().unwrap()[me] = Some(cx.waker().clone());
                let is_over = over.load(SeqCst);
                // In this order, a task that sees the end also sees a partner that did not.
                let other = wakers.lock().unwrap()[1 - me].clone();
                if is_over {
                    other.into_iter().for_each(Waker::wake);
                    return Poll::Ready(());
                }
                // Alone it keeps itself awake, until the other one is there.
                other.unwrap_or_else(|| cx.waker().clone()).wake();
                Poll::Pending
            }))
        });
        runtime.block_on(async {
            for _ in 0..100 {
                mini::spawn(yield_now()).await.unwrap();
            }
            over.store(true, SeqCst);
            for task in pair {
                task.await.unwrap();
            }
        });
    });
}

/// The flavours with a second worker.
fn on_several_workers(body: impl Fn(Builder) + Send + Sync + Clone + 'static) {
    for workers in [2, 4] {
        let body = body.clone();
        within(LIMIT, move || body(multi_thread(workers)));
    }
}

#[test]
fn a_stuck_block_on_future_delays_no_task_in_its_queue() {
    on_several_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let ran = Counts::new();
            for _ in 0..3 {
                drop(mini::spawn(counted(&ran, |_| Poll::Ready(()))));
            }
            spin_until(|| ran.polls() == 3);
        });
    });
}

#[test]
fn a_stuck_task_delays_no_task_in_its_queue() {
    on_several_workers(|builder| {
        let runtime = builder.build().unwrap();
        for tasks in [1, 2, 300] {
            let stuck = runtime.spawn(async move {
                let ran = Counts::new();
                for _ in 0..tasks {
                    drop(mini::spawn(counted(&ran, |_| Poll::Ready(()))));
                }
                spin_until(|| ran.polls() == tasks);
            });
            runtime.block_on(stuck).unwrap();
        }
    });
}

#[test]
fn a_stuck_task_delays_not_the_task_it_has_just_woken() {
    on_several_workers(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..10 {
            let (send, receive) = oneshot::<()>();
            let ran = Arc::new(AtomicBool::new(false));
            let set = ran.clone();
            drop(runtime.spawn(async move {
                receive.await;
                set.store(true, SeqCst);
            }));
            let stuck = runtime.spawn(async move {
                yield_now().await;
                send.send(());
                spin_until(|| ran.load(SeqCst));
            });
            runtime.block_on(stuck).unwrap();
        }
    });
}

#[test]
fn a_stuck_task_delays_not_the_timers_of_its_worker() {
    on_several_workers(|builder| {
        let runtime = builder.build().unwrap();
        let stuck = runtime.spawn(async move {
            let ran = Counts::new();
            let polled = Counts::new();
            for i in 1..=5 {
                let (ran, mut nap) = (ran.clone(), Box::pin(sleep(Duration::from_micros(100 * i))));
                drop(mini::spawn(counted(&polled, move |cx| {
                    let poll = nap.as_mut().poll(cx);
                    if poll.is_ready() {
                        drop(mini_tests::Token::new(&ran));
                    }
                    poll
                })));
            }
            // The timers are registered here, or on the worker that has stolen their tasks.
            until(|| polled.polls() >= 5).await;
            spin_until(|| ran.drops() == 5);
        });
        runtime.block_on(stuck).unwrap();
    });
}

#[test]
fn a_stuck_task_delays_not_what_other_threads_spawn_and_wake() {
    on_several_workers(|builder| {
        let runtime = builder.build().unwrap();
        let (inside, is_inside) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let (send, receive) = oneshot();
        let waiting = runtime.spawn(receive);
        let is_over = over.clone();
        let stuck = runtime.spawn(async move {
            inside.send(()).unwrap();
            spin_until(|| is_over.load(SeqCst));
        });
        is_inside.recv().unwrap();
        send.send(8);
        assert_eq!(mini_tests::block_on_elsewhere(waiting).unwrap(), Some(8));
        let tasks: Vec<_> = (0..50).map(|i| runtime.spawn(async move { i })).collect();
        for (i, task) in tasks.into_iter().enumerate() {
            assert_eq!(mini_tests::block_on_elsewhere(task).unwrap(), i);
        }
        over.store(true, SeqCst);
        runtime.block_on(stuck).unwrap();
    });
}

/// A connection of HTTP/2 is woken by each of its streams: it must run once, and write all answers in one go.
#[test]
fn who_is_woken_by_many_that_wait_runs_once_after_them() {
    on_single_workers(|builder| {
        const STREAMS: usize = 16;
        let polls = builder.build().unwrap().block_on(async {
            let (waker, done) = (Arc::new(Mutex::new(None::<Waker>)), Arc::new(AtomicUsize::new(0)));
            let (place, seen) = (waker.clone(), done.clone());
            let connection = mini::spawn(async move {
                let mut polls = 0;
                std::future::poll_fn(|cx| {
                    polls += 1;
                    *place.lock().unwrap() = Some(cx.waker().clone());
                    if seen.load(SeqCst) == STREAMS { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                polls
            });
            until(|| waker.lock().unwrap().is_some()).await;
            let parent = mini::spawn(async move {
                for _ in 0..STREAMS {
                    let (waker, done) = (waker.clone(), done.clone());
                    mini::spawn(async move {
                        done.fetch_add(1, SeqCst);
                        waker.lock().unwrap().as_ref().unwrap().wake_by_ref();
                    });
                }
            });
            parent.await.unwrap();
            connection.await.unwrap()
        });
        assert_eq!(polls, 2, "once before the streams, once after all of them");
    });
}

/// Both happen in a run after which the worker looks at its sockets, as it has taken longer than the time for that;
/// the first rounds show the worker that it does.
#[test]
fn what_another_thread_has_woken_in_a_run_goes_before_what_the_look_after_it_brings() {
    for_rounds(5, async |order| {
        let (near, far) = mini::net::UnixStream::pair().unwrap();
        let (far, (sender, receiver)) = (far.into_std().unwrap(), oneshot());
        let [first, second] = [order.clone(), order.clone()];
        let socket = mini::task::spawn_local(async move {
            near.read(&mut [0]).await.unwrap();
            first.borrow_mut().push("socket");
        });
        let thread = mini::task::spawn_local(async move {
            receiver.await.unwrap();
            second.borrow_mut().push("thread");
        });
        yield_now().await; // both wait
        let happens = thread::spawn(move || {
            std::io::Write::write_all(&mut &far, b"x").unwrap();
            sender.send(());
        });
        happens.join().unwrap();
        compute(Duration::from_millis(1));
        socket.await.unwrap();
        thread.await.unwrap();
        assert_eq!(*order.borrow(), ["thread", "socket"]);
    });
}

/// Runs `round` so often in one task, each time with an empty list.
fn for_rounds(rounds: usize, round: impl AsyncFn(Rc<RefCell<Vec<&'static str>>>)) {
    Builder::new_current_thread().build().unwrap().block_on(async {
        for _ in 0..rounds {
            round(Rc::default()).await;
        }
    });
}
