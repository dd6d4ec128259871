//! Wakes from threads that belong to no runtime, and tasks that foreign executors wait for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::task::yield_now;
use mini_tests::{
    Counts, LIMIT, Sender, block_on_elsewhere, counted, flavours, multi_thread, on_each_flavour, oneshot, until, within,
};

#[test]
fn many_threads_wake_many_tasks() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (senders, tasks): (Vec<_>, Vec<_>) = (0..4000_u64)
            .map(|i| {
                let (send, receive) = oneshot();
                ((i, send), runtime.spawn(receive))
            })
            .unzip();
        let mut shares: Vec<Vec<(u64, Sender<u64>)>> = (0..8).map(|_| Vec::new()).collect();
        for (i, send) in senders {
            shares[i as usize % 8].push((i, send));
        }
        thread::scope(|scope| {
            for share in shares {
                scope.spawn(move || share.into_iter().for_each(|(i, send)| send.send(i)));
            }
            runtime.block_on(async {
                for (i, task) in tasks.into_iter().enumerate() {
                    assert_eq!(task.await.unwrap(), Some(i as u64));
                }
            });
        });
    });
}

/// A ball between a task and a thread: each message is one wake from outside, mostly of a parked worker.
#[test]
fn a_task_and_a_thread_play_ping_pong() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (serve, served) = mpsc::channel::<(usize, Sender<usize>)>();
        let thread = thread::spawn(move || {
            let mut count = 0;
            for (ball, back) in served {
                back.send(ball + 1);
                count += 1;
            }
            count
        });
        let player = serve.clone();
        let task = runtime.spawn(async move {
            for ball in 0..2000 {
                let (send, receive) = oneshot();
                player.send((ball, send)).unwrap();
                assert_eq!(receive.await, Some(ball + 1));
            }
        });
        runtime.block_on(task).unwrap();
        // And with the future in block_on itself.
        runtime.block_on(async move {
            for ball in 0..2000 {
                let (send, receive) = oneshot();
                serve.send((ball, send)).unwrap();
                assert_eq!(receive.await, Some(ball + 1));
            }
        });
        assert_eq!(thread.join().unwrap(), 4000);
    });
}

#[test]
fn a_wake_during_the_poll_makes_one_more_poll() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let mut polls = 0;
        let task = runtime.spawn(counted(&counts, move |cx| {
            polls += 1;
            if polls == 50 {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            // Woken and forgotten before this poll is over.
            thread::spawn(move || waker.wake()).join().unwrap();
            Poll::Pending
        }));
        runtime.block_on(task).unwrap();
        drop(runtime);
        assert_eq!((counts.polls(), counts.drops()), (50, 1));
    });
}

#[test]
fn every_wake_publishes_what_came_before_it() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..200 {
            let (shared, start) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(3)));
            let (give, take) = mpsc::channel::<Waker>();
            let seen = shared.clone();
            let task = runtime.spawn(counted(&Counts::new(), move |cx| {
                let _ = give.send(cx.waker().clone());
                if seen.load(SeqCst) == 3 { Poll::Ready(()) } else { Poll::Pending }
            }));
            let reader = {
                let (shared, start) = (shared.clone(), start.clone());
                thread::spawn(move || {
                    let waker = take.recv().unwrap();
                    thread::scope(|scope| {
                        for _ in 0..3 {
                            scope.spawn(|| {
                                start.wait();
                                shared.fetch_add(1, SeqCst);
                                waker.wake_by_ref();
                            });
                        }
                    });
                    drop(take);
                })
            };
            runtime.block_on(task).unwrap();
            reader.join().unwrap();
        }
    });
}

#[test]
fn foreign_executors_wait_for_tasks() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (stop, stopped) = oneshot::<()>();
        thread::scope(|scope| {
            scope.spawn(|| runtime.block_on(stopped)); // drives a current_thread runtime
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let runtime = &runtime;
                    scope.spawn(move || {
                        for round in 0..200 {
                            let task = runtime.spawn(async move {
                                yield_now().await;
                                round * i
                            });
                            assert_eq!(block_on_elsewhere(task).unwrap(), round * i);
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            drop(stop);
        });
    });
}

#[test]
fn a_multi_threaded_runtime_needs_nobody_in_block_on() {
    within(LIMIT, || {
        for workers in [1, 2, 4] {
            let runtime = multi_thread(workers).build().unwrap();
            for round in 0..300 {
                let task = runtime.spawn(async move {
                    mini::spawn(yield_now()).await.unwrap();
                    mini::spawn_local(yield_now()).await.unwrap();
                    round
                });
                assert_eq!(block_on_elsewhere(task).unwrap(), round);
            }
        }
    });
}

#[test]
fn tasks_of_two_runtimes_play_ping_pong() {
    within(LIMIT, || {
        let all = || flavours().into_iter().map(|(_, builder)| builder);
        for (a, b) in all().flat_map(|a| all().map(move |b| (a.clone(), b))) {
            let (a, b) = (a.build().unwrap(), b.build().unwrap());
            let (mut evens, mut odds) = (Vec::new(), Vec::new());
            for _ in 0..200 {
                let ((to_b, from_a), (to_a, from_b)) = (oneshot(), oneshot());
                evens.push((to_b, from_b));
                odds.push((to_a, from_a));
            }
            let server = b.spawn(async move {
                for (i, (send, receive)) in odds.into_iter().enumerate() {
                    assert_eq!(receive.await, Some(2 * i));
                    send.send(2 * i + 1);
                }
            });
            thread::scope(|scope| {
                scope.spawn(|| b.block_on(server).unwrap());
                a.block_on(a.spawn(async move {
                    for (i, (send, receive)) in evens.into_iter().enumerate() {
                        send.send(2 * i);
                        assert_eq!(receive.await, Some(2 * i + 1));
                    }
                }))
                .unwrap();
            });
        }
    });
}

#[test]
fn a_burst_of_wakes_and_spawns_from_outside_is_not_lost() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, over) = (Counts::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        drop(runtime.spawn(counted(&counts, |_| Poll::Ready(()))));
                    }
                });
            }
            runtime.block_on(until(|| counts.drops() == 8000));
            over.store(true, SeqCst);
        });
        assert!(over.into_inner());
        assert_eq!((counts.polls(), counts.drops()), (8000, 8000));
    });
}
