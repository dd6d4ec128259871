//! The numbers of `Metrics`: what counts where, and that none of the sums ever goes back.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use mini::runtime::Handle;
use mini::task::yield_now;
use mini_tests::{
    Counts, LIMIT, caught, counted, multi_thread, never, on_current_thread, on_each_flavour, on_single_workers,
    oneshot, spin_until, until, within,
};

#[test]
fn alive_tasks_are_those_that_have_not_ended() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        assert_eq!(metrics.num_alive_tasks(), 0);
        let posted = runtime.spawn(never(&Counts::new()));
        assert_eq!(metrics.num_alive_tasks(), 1, "also one that nobody has looked at yet");
        runtime.block_on(async {
            let mut tasks: Vec<_> = (0..10).map(|_| mini::spawn(never(&Counts::new()))).collect();
            tasks.push(mini::spawn_local(never(&Counts::new())));
            assert_eq!(metrics.num_alive_tasks(), 12);
            for task in tasks {
                task.cancel().await.unwrap_err();
            }
            assert_eq!(metrics.num_alive_tasks(), 1);
            let (end, ended) = oneshot::<()>();
            let task = mini::spawn(ended);
            drop(end);
            task.await.unwrap();
            assert_eq!(metrics.num_alive_tasks(), 1);
            posted.cancel().await.unwrap_err();
        });
        assert_eq!(metrics.num_alive_tasks(), 0);
        drop(runtime.spawn(never(&Counts::new())));
        drop(runtime);
        assert_eq!(metrics.num_alive_tasks(), 0);
    });
}

#[test]
fn a_task_aborted_before_anybody_saw_it_is_not_alive() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let task = runtime.spawn(never(&Counts::new()));
        task.abort();
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    });
}

/// More than a worker reads of its inbox in a thousand looks.
#[test]
fn none_of_very_many_tasks_that_nobody_saw_is_alive_after_the_end() {
    within(LIMIT, || {
        let runtime = mini::runtime::Builder::new_current_thread().build().unwrap();
        let metrics = runtime.metrics();
        for _ in 0..70_000 {
            drop(runtime.spawn(async {}));
        }
        assert_eq!(metrics.num_alive_tasks(), 70_000);
        drop(runtime);
        assert_eq!(metrics.num_alive_tasks(), 0);
    });
}

#[test]
fn polls_are_counted_exactly() {
    on_current_thread(|builder| {
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        runtime.block_on(async {
            let before = metrics.total_poll_count();
            let task = mini::spawn(async {
                for _ in 0..1000 {
                    yield_now().await;
                }
            });
            task.await.unwrap();
            // 1001 of the task, and this one's.
            let polls = metrics.total_poll_count() - before;
            assert!((1002..=1003).contains(&polls), "{polls}");
        });
        assert_eq!(metrics.worker_poll_count(0), metrics.total_poll_count());
    });
}

#[test]
fn a_wait_is_a_park() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let metrics = &runtime.metrics();
        let before = metrics.total_park_count();
        thread::scope(|threads| {
            runtime.block_on(async {
                for _ in 0..10 {
                    let (wake, woken) = oneshot::<()>();
                    let parks = metrics.total_park_count();
                    threads.spawn(move || {
                        spin_until(|| metrics.total_park_count() > parks); // or the wait may be over before the park
                        wake.send(());
                    });
                    woken.await.unwrap();
                }
            });
        });
        assert!(metrics.total_park_count() >= before + 10);
    });
}

#[test]
fn queues_show_what_waits() {
    on_current_thread(|builder| {
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        runtime.block_on(async {
            for _ in 0..5 {
                drop(mini::spawn(async {}));
            }
            assert_eq!(metrics.worker_local_queue_depth(0), 5);
            until(|| metrics.num_alive_tasks() == 0).await;
            assert_eq!(metrics.total_local_queue_depth() + metrics.global_queue_depth(), 0);
        });
    });
}

/// Another thread wakes the future of `block_on` in its last poll.
#[test]
fn block_on_leaves_nothing_behind() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        runtime.block_on(poll_fn(|cx| {
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake()).join().unwrap();
            Poll::Ready(())
        }));
        assert_eq!(metrics.total_local_queue_depth() + metrics.num_alive_tasks(), 0);
    });
}

#[test]
fn busy_time_grows_in_a_poll_and_stands_while_nobody_works() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        let is_alone = runtime.handle().runtime_flavor() == mini::runtime::RuntimeFlavor::CurrentThread;
        assert!(!is_alone || metrics.total_busy_duration().is_zero(), "no thread has come yet");
        runtime.block_on(async {
            let begin = metrics.total_busy_duration();
            while metrics.total_busy_duration() - begin < Duration::from_micros(200) {} // seen while the poll lasts
        });
        if is_alone {
            let after = metrics.total_busy_duration();
            thread::yield_now();
            assert_eq!(metrics.total_busy_duration(), after, "nobody works now");
        }
    });
}

#[test]
fn stolen_tasks_are_counted_at_the_thief() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let metrics = runtime.metrics();
        let spawns = runtime.spawn(async {
            // Tasks that wait behind this poll, which does not end before another worker has run one of them.
            let (ran, has_run) = mpsc::channel();
            for _ in 0..100 {
                let ran = ran.clone();
                drop(mini::spawn(async move {
                    let _ = ran.send(());
                }));
            }
            has_run.recv().unwrap();
        });
        runtime.block_on(spawns).unwrap();
        assert!(metrics.total_steal_count() >= 1);
        let sum: u64 = (0..2).map(|worker| metrics.worker_steal_count(worker)).sum();
        assert_eq!(sum, metrics.total_steal_count());
    });
}

#[test]
fn blocking_threads_are_busy_idle_or_wanted() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        let metrics = runtime.metrics();
        let gauge =
            || (metrics.num_blocking_threads(), metrics.num_idle_blocking_threads(), metrics.blocking_queue_depth());
        assert_eq!(gauge(), (0, 0, 0));
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let job = runtime.spawn_blocking(move || {
            begun.send(()).unwrap();
            may_go.recv()
        });
        has_begun.recv().unwrap();
        assert_eq!(gauge(), (1, 0, 0));
        let waiting = runtime.spawn_blocking(|| ());
        assert_eq!(gauge(), (1, 0, 1));
        drop(go);
        runtime.block_on(async {
            drop(job.await);
            waiting.await.unwrap();
            until(|| gauge() == (1, 1, 0)).await;
        });
        drop(runtime);
        assert_eq!(gauge(), (0, 0, 0));
    });
}

#[test]
fn no_sum_goes_back_while_a_runtime_works() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (metrics, stop) = (runtime.metrics(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let reader = thread::spawn(move || {
            let sums = || {
                let counts = (metrics.total_poll_count(), metrics.total_park_count(), metrics.total_steal_count());
                (counts, metrics.total_busy_duration())
            };
            let mut before = sums();
            while !stopped.load(SeqCst) {
                let now = sums();
                let ((polls, parks, steals), busy) = now;
                let ((polls_before, parks_before, steals_before), busy_before) = before;
                assert!(polls >= polls_before && parks >= parks_before && steals >= steals_before);
                assert!(busy >= busy_before, "{busy:?} after {busy_before:?}");
                before = now;
            }
        });
        runtime.block_on(async {
            for _ in 0..200 {
                let task = mini::spawn(async {
                    mini::time::sleep(Duration::from_micros(20)).await;
                    yield_now().await;
                });
                task.await.unwrap();
            }
        });
        stop.store(true, SeqCst);
        reader.join().unwrap();
    });
}

#[test]
fn a_handle_inside_tells_the_same_and_debug_shows_it() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            drop(mini::spawn(counted(&Counts::new(), |_| Poll::<()>::Pending)));
            let shown = format!("{:?}", Handle::current().metrics());
            assert!(shown.contains("alive_tasks: 1") && shown.contains("workers: 1"), "{shown}");
        });
    });
}

#[test]
fn a_worker_that_is_not_there_is_a_panic() {
    within(LIMIT, || {
        let metrics = multi_thread(2).build().unwrap().metrics();
        let wrong = caught(|| metrics.worker_park_count(2));
        assert_eq!(wrong.message, "there is no worker 2: the runtime has 2");
        assert_eq!(wrong.file, file!());
    });
}
