//! `mini::task::queue_delay`: what it counts, and what it does not. Times are counted runs, or compared with each other
//! within one run, so that no speed matters.

use std::future::pending;
use std::panic;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mini::runtime::{Builder, Handle};
use mini::task::queue_delay;
use mini::time::sleep;
use mini_tests::LIMIT;

fn nanos(delay: Duration) -> u64 {
    delay.as_nanos() as u64
}

/// On a runtime whose clock is paused, where each run counts as a nanosecond, after the first look.
fn counted<T>(test: impl AsyncFnOnce() -> T) -> T {
    let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
    runtime.block_on(async {
        sleep(Duration::from_secs(1)).await;
        test().await
    })
}

#[test]
fn each_waiting_task_counts_as_a_run_and_none_afterwards() {
    counted(async || {
        assert_eq!(nanos(queue_delay()), 0);
        let tasks: Vec<_> = (0..100).map(|_| mini::spawn(async { nanos(queue_delay()) })).collect();
        assert_eq!(nanos(queue_delay()), 100);
        for (index, task) in tasks.into_iter().enumerate() {
            // The tasks behind it, and from the first end on the future of `block_on`, which waits for that.
            let seen = task.await.unwrap();
            assert!(seen.abs_diff(99 - index as u64) <= 1, "{seen} behind task {index}");
        }
        assert_eq!(nanos(queue_delay()), 0);
    });
}

#[test]
fn tasks_that_wait_for_something_else_do_not_count() {
    counted(async || {
        for _ in 0..100 {
            mini::spawn(pending::<()>());
        }
        assert_eq!(nanos(queue_delay()), 100);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(nanos(queue_delay()), 0);
    });
}

#[test]
fn what_other_threads_have_spawned_counts_on_both_sides() {
    counted(async || {
        let handle = Handle::current();
        let thread = std::thread::spawn(move || {
            let before = handle.queue_delay();
            for _ in 0..10 {
                drop(handle.spawn(async {}));
            }
            handle.queue_delay() - before
        });
        assert_eq!(nanos(thread.join().unwrap()), 10); // this run goes on meanwhile
        assert_eq!(nanos(queue_delay()), 10);
    });
}

#[test]
fn a_blocking_job_asks_for_the_runtime_it_belongs_to() {
    counted(async || {
        let job = mini::spawn_blocking(|| {
            let before = queue_delay();
            drop(mini::spawn(async {}));
            (before, queue_delay())
        });
        // The worker is in this run until the job is done, so it takes nothing from its inbox.
        while !job.is_finished() {
            std::thread::yield_now();
        }
        let (before, after) = job.await.unwrap();
        assert_eq!(nanos(after - before), 1);
    });
}

#[test]
fn within_a_run_the_delay_grows_by_the_same_for_each_task() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let seen = runtime.block_on(async {
        for _ in 0..1_000 {
            mini::task::yield_now().await; // runs, and looks between them
        }
        sleep(Duration::from_millis(1)).await;
        let measure = async {
            let mut seen = vec![nanos(queue_delay())];
            for _ in 0..3 {
                (0..100).for_each(|_| drop(mini::spawn(async {})));
                seen.push(nanos(queue_delay()));
            }
            seen
        };
        mini::spawn(measure).await.unwrap()
    });
    let [none, one, two, three] = seen[..] else { panic!("{seen:?}") };
    assert!(one > none, "{seen:?}");
    assert_eq!((two - one, three - two), (one - none, one - none));
}

#[test]
fn a_run_that_goes_on_and_on_counts_for_other_threads() {
    for runtime in [Builder::new_current_thread().build(), Builder::new_multi_thread().worker_threads(1).build()] {
        let runtime = runtime.unwrap();
        assert!(runtime.handle().queue_delay().is_zero(), "nobody works, and nothing waits");
        runtime.block_on(async {
            sleep(Duration::from_millis(1)).await;
            let handle = Handle::current();
            let thread = std::thread::spawn(move || {
                let begin = Instant::now();
                while handle.queue_delay() < Duration::from_millis(2) && begin.elapsed() < LIMIT {
                    std::thread::yield_now();
                }
                (handle.queue_delay(), begin.elapsed())
            });
            let (delay, elapsed) = thread.join().unwrap();
            assert!(delay >= Duration::from_millis(2), "{delay:?} after {elapsed:?}");
            assert!(queue_delay() < delay, "for the worker it is this run, which is about to end");
        });
    }
}

#[test]
fn outside_of_a_runtime_it_panics_at_the_callers_line() {
    let (send, said) = mpsc::channel();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let line = info.location().map(|at| (at.file().to_owned(), at.line()));
        send.send((line, info.payload_as_str().unwrap_or_default().to_owned())).unwrap();
    }));
    let line = line!() + 1;
    let ended = panic::catch_unwind(|| queue_delay());
    panic::set_hook(before);
    assert!(ended.is_err());
    let (at, text) = said.recv().unwrap();
    assert_eq!(at, Some((file!().to_owned(), line)));
    assert!(text.starts_with("mini::task::queue_delay needs a mini runtime"), "{text}");
}
