//! Time on the real clock: never early, the same on every flavour and across threads. `paused.rs` has the exact tests.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use mini::task::yield_now;
use mini::time::{Duration, sleep, timeout};
use mini_tests::{
    Counts, LIMIT, OnDrop, block_on_elsewhere, caught, counted, multi_thread, on_each_flavour, poll_with, until, within,
};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

#[test]
fn no_sleep_ends_early() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..300_u64)
                .map(|i| {
                    let time = Duration::from_micros(i * 7919 % 5000);
                    mini::spawn(async move {
                        let start = std::time::Instant::now();
                        sleep(time).await;
                        assert!(start.elapsed() >= time, "{:?} of {time:?}", start.elapsed());
                        let start = std::time::Instant::now();
                        assert!(timeout(time / 4, std::future::pending::<()>()).await.is_err());
                        assert!(start.elapsed() >= time / 4);
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
fn sleeps_travel_between_tasks_and_threads() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let made_outside = sleep(MS);
        runtime.block_on(async {
            made_outside.await;
            let mut naps: Vec<_> = (0..20).map(|_| Box::pin(sleep(2 * MS))).collect();
            let polled = Counts::new();
            for nap in &mut naps {
                assert!(poll_with(nap, &polled).is_pending()); // registered here, awaited elsewhere
            }
            let tasks: Vec<_> = naps.into_iter().map(mini::spawn).collect();
            for task in tasks {
                task.await.unwrap();
            }
            let nap = Box::pin(sleep(MS));
            let job = mini::spawn_blocking(move || mini::block_on(nap));
            job.await.unwrap();
            let mut nap = sleep(HOUR);
            assert!(poll_with(&mut nap, &polled).is_pending());
            thread::spawn(move || drop(nap)).join().unwrap();
        });
    });
}

#[test]
fn somebody_elses_executor_sleeps_inside_a_runtime() {
    within(LIMIT, || {
        for workers in [1, 2, 4] {
            let runtime = multi_thread(workers).build().unwrap();
            let _inside = runtime.enter();
            for _ in 0..20 {
                let start = std::time::Instant::now();
                block_on_elsewhere(sleep(MS));
                assert!(start.elapsed() >= MS);
            }
        }
    });
}

#[test]
fn thousands_of_timeouts_that_do_not_fire() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..5000)
                .map(|i| {
                    let mut polls = 0;
                    let twice = counted(&Counts::new(), move |cx| {
                        polls += 1;
                        cx.waker().wake_by_ref();
                        if polls == 2 { Poll::Ready(i) } else { Poll::Pending }
                    });
                    mini::spawn(timeout(HOUR, twice))
                })
                .collect();
            for (i, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), Ok(i));
            }
        });
    });
}

#[test]
fn a_sleep_that_outlives_its_runtime_does_not_hang() {
    on_each_flavour(|builder| {
        let (first, second) = (builder.clone().build().unwrap(), builder.build().unwrap());
        let (waker, mut naps) = (Counts::new(), [sleep(5 * MS), sleep(HOUR)]);
        first.block_on(async {
            for nap in &mut naps {
                assert!(poll_with(nap, &waker).is_pending());
            }
        });
        drop(first);
        assert_eq!(waker.wakes(), 2, "who waits is told");
        let [near, far] = naps;
        second.block_on(near); // another runtime takes it over
        let seen = caught(|| block_on_elsewhere(far));
        assert!(seen.message.contains("was polled after its mini runtime was shut down"), "{}", seen.message);
        assert!(seen.message.contains(file!()), "{}", seen.message);
    });
}

#[test]
fn a_sleep_without_a_runtime_says_so() {
    let line = line!() + 1;
    let mut nap = sleep(HOUR);
    let seen = caught(|| poll_with(&mut nap, &Counts::new()));
    assert!(seen.message.contains("runs no mini runtime"), "{}", seen.message);
    assert!(seen.message.contains(&format!("{}:{line}:", file!())), "{}", seen.message);
    let mut due = sleep(Duration::ZERO);
    assert!(poll_with(&mut due, &Counts::new()).is_ready());
}

#[test]
fn a_destructor_may_drop_other_timers() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let naps = Arc::new(Mutex::new(Vec::new()));
        let (taken, polled) = (naps.clone(), Counts::new());
        runtime.block_on(async {
            for _ in 0..100 {
                let mut nap = sleep(HOUR);
                assert!(poll_with(&mut nap, &polled).is_pending());
                naps.lock().unwrap().push(nap);
            }
            let guard = OnDrop(move || drop(std::mem::take(&mut *taken.lock().unwrap())));
            let task = mini::spawn(async move {
                let _guard = guard;
                sleep(HOUR).await
            });
            yield_now().await;
            task.cancel().await.unwrap_err();
            until(|| naps.lock().unwrap().is_empty()).await;
        });
    });
}
