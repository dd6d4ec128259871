//! Many tasks at once, and few that are always there: they are spread over the workers, and none of them is left
//! behind.
//!
//! Asserts order and completion, never durations.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::{self, ThreadId};

use mini::task::{JoinHandle, yield_now};
use mini::time::{Duration, Instant};
use mini_tests::{Counts, LIMIT, counted, multi_thread, on_each_flavour, spin_until, until, within};

#[test]
fn ten_thousand_tasks_at_once() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let sum = runtime.block_on(async {
            let (open, is_open) = (Arc::new(AtomicBool::new(false)), Counts::new());
            let tasks: Vec<_> = (0..10_000_u64)
                .map(|i| {
                    let (open, is_open) = (open.clone(), is_open.clone());
                    mini::spawn(async move {
                        let first = counted(&is_open, |_| Poll::Ready(()));
                        first.await;
                        until(|| open.load(SeqCst)).await;
                        i
                    })
                })
                .collect();
            until(|| is_open.polls() == 10_000).await;
            open.store(true, SeqCst);
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 49_995_000);
    });
}

/// More than a worker has room for in its own queue wait where any worker may take them. Each has its turns. If the
/// system has stopped a task in the middle of a run, the task counts as one that has run for long, and has the turns of
/// that class.
#[test]
fn in_a_crowd_of_yielding_tasks_everybody_has_turns() {
    const TASKS: usize = 4000;
    const TURNS: usize = 20;
    within(LIMIT, || {
        let runtime = multi_thread(1).build().unwrap();
        let (through, runs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| {
                    let (through, runs) = (through.clone(), runs.clone());
                    mini::spawn(async move {
                        for turn in 1.. {
                            runs.fetch_add(1, SeqCst);
                            if turn == TURNS {
                                through.fetch_add(1, SeqCst);
                            }
                            if through.load(SeqCst) == TASKS {
                                break;
                            }
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let runs = runs.load(SeqCst);
        assert!(runs < 6 * TASKS * TURNS, "{runs} runs until each task had {TURNS}");
    });
}

/// All are made on one worker, and the other has a task already that keeps it from looking for others.
#[test]
fn a_crowd_of_yielding_tasks_spreads_evenly() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (is_over, has_begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        runtime.block_on(async {
            let crowd: Vec<_> = (0..901)
                .map(|_| {
                    let (is_over, begun) = (is_over.clone(), has_begun.clone());
                    let task = mini::spawn(until(move || {
                        begun.store(true, SeqCst);
                        is_over.load(SeqCst)
                    }));
                    spin_until(|| has_begun.load(SeqCst)); // on the other worker
                    task
                })
                .collect();
            let metrics = runtime.metrics();
            let runs = || (0..2).map(|worker| metrics.worker_poll_count(worker)).min().unwrap();
            let limit = runs() + 500_000;
            while (0..2).any(|worker| metrics.worker_local_queue_depth(worker) < 300) {
                assert!(runs() < limit, "{metrics:?}");
                yield_now().await;
            }
            is_over.store(true, SeqCst);
            for task in crowd {
                task.await.unwrap();
            }
        });
    });
}

/// Tasks from another thread wait only behind the same share of a crowd.
#[test]
fn many_tasks_from_another_thread_are_not_left_behind_by_a_crowd() {
    within(LIMIT, || {
        let runtime = multi_thread(1).build().unwrap();
        let (is_over, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        runtime.block_on(async {
            // First, as none of the crowd is compute-bound then: those would have their share after this poll,
            // which takes long.
            let handle = runtime.handle().clone();
            let others: Vec<JoinHandle<()>> =
                thread::spawn(move || (0..900).map(|_| handle.spawn(async {})).collect()).join().unwrap();
            let crowd: Vec<_> = (0..900)
                .map(|_| {
                    let (is_over, runs) = (is_over.clone(), runs.clone());
                    mini::spawn(until(move || {
                        runs.fetch_add(1, SeqCst);
                        is_over.load(SeqCst)
                    }))
                })
                .collect();
            for other in others {
                other.await.unwrap();
            }
            let waited = runs.load(SeqCst);
            is_over.store(true, SeqCst);
            for task in crowd {
                task.await.unwrap();
            }
            // A worker that the system stops owes the compute-bound tasks a millisecond at once.
            assert!(waited < 12 * 900, "{waited}");
        });
    });
}

#[test]
fn a_hundred_thousand_spawns_and_joins() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let sum = runtime.block_on(async {
            let mut sum = 0;
            for i in 0..100_000_u64 {
                sum += mini::spawn(async move { i }).await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 4_999_950_000);
    });
}

#[test]
fn tasks_that_spawn_tasks() {
    fn tree(depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                return 1;
            }
            let (left, right) = (mini::spawn(tree(depth - 1)), mini::spawn(tree(depth - 1)));
            left.await.unwrap() + right.await.unwrap()
        })
    }
    on_each_flavour(|builder| assert_eq!(builder.build().unwrap().block_on(tree(12)), 4096));
}

/// Where each of some tasks has run.
type Threads = Vec<HashSet<ThreadId>>;

/// Makes so many tasks on one of two workers, and runs them until they have run where they should. In between a task
/// computes for a microsecond, which is no long poll.
fn run_until(count: usize, is_done: impl Fn(&Threads) -> bool + Send + Sync + 'static) {
    within(LIMIT, move || {
        let runtime = multi_thread(2).build().unwrap();
        let (threads, is_done) = (Arc::new(Mutex::new(vec![HashSet::new(); count])), Arc::new(is_done));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..count)
                .map(|nth| {
                    let (threads, is_done) = (threads.clone(), is_done.clone());
                    let goes_on = move || {
                        let mut threads = threads.lock().unwrap();
                        threads[nth].insert(thread::current().id());
                        !is_done(&threads)
                    };
                    mini::spawn(async move {
                        while goes_on() {
                            let begin = Instant::now();
                            while begin.elapsed() < Duration::from_micros(1) {}
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
}

#[test]
fn a_few_yielding_tasks_get_a_second_worker() {
    // Where the second worker is up for the spawns already there is nothing to be seen.
    for _ in 0..20 {
        run_until(2, |threads| threads.iter().flatten().collect::<HashSet<_>>().len() == 2);
    }
}

#[test]
fn yielding_tasks_take_turns_at_having_a_worker_to_themselves() {
    for count in [3, 5] {
        run_until(count, |threads| threads.iter().all(|threads| threads.len() == 2));
    }
}
