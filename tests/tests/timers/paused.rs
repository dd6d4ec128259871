//! Time under a paused clock: exact, in order, and moving only when nothing else can.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use mini::runtime::Builder;
use mini::task::yield_now;
use mini::time::{
    Duration, Instant, MissedTickBehavior, advance, deadline, interval, interval_at, pause, resume, sleep, sleep_until,
    timeout, timeout_at,
};
use mini_tests::{Counts, LIMIT, block_on_elsewhere, caught, multi_thread, oneshot, poll_with, text_of, within};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

/// Runs what `make` makes under a paused clock.
fn paused<F: Future<Output = ()>>(make: impl FnOnce() -> F + Send + 'static) {
    within(LIMIT, || Builder::new_current_thread().start_paused(true).build().unwrap().block_on(make()));
}

#[test]
fn a_paused_clock_moves_by_what_is_slept() {
    paused(|| async {
        let mut expected = Instant::now();
        let odd =
            [Duration::from_micros(1300), 17 * MS, 67 * MS, HOUR, 24 * 400 * HOUR, Duration::from_nanos(1_234_567), MS];
        for time in odd {
            sleep(time).await;
            expected += time;
            assert_eq!(Instant::now(), expected, "after {time:?}");
        }
        mini::spawn(sleep(HOUR)).await.unwrap();
        assert_eq!(Instant::now(), expected + HOUR);
    });
}

#[test]
fn futures_of_time_are_made_outside_of_the_runtime_that_polls_them() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let start = runtime.block_on(async { Instant::now() });
        runtime.block_on(advance(HOUR));
        assert_eq!(runtime.block_on(async { start.elapsed() }), HOUR);
        let far = Instant::now() + HOUR;
        let mut beat = interval(MS);
        runtime.block_on(beat.tick());
        runtime.block_on(sleep(MS));
        runtime.block_on(sleep_until(far));
        runtime.block_on(timeout(MS, yield_now())).unwrap();
        runtime.block_on(timeout_at(far + HOUR, yield_now())).unwrap();
        runtime.block_on(deadline(far + HOUR, yield_now())).unwrap();
    });
}

#[test]
fn time_stands_still_while_anything_can_run() {
    paused(|| async {
        let start = Instant::now();
        let sleeper = mini::spawn(sleep(MS));
        for _ in 0..500 {
            yield_now().await;
            mini::spawn(yield_now()).await.unwrap();
        }
        assert_eq!((Instant::now(), sleeper.is_finished()), (start, false));
        sleeper.await.unwrap();
        assert_eq!(start.elapsed(), MS);
    });
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    paused(|| async {
        let start = Instant::now();
        let order = Arc::new(Mutex::new(Vec::new()));
        // Every distance that the wheel knows: the factor is a generator of the numbers below a prime.
        let times: Vec<Duration> = (1..500_u64).map(|i| Duration::from_micros((i * 263 % 503).pow(3) * 5)).collect();
        let tasks: Vec<_> = times
            .iter()
            .map(|&time| {
                let order = order.clone();
                mini::spawn(async move {
                    sleep(time).await;
                    assert!(start.elapsed() >= time);
                    order.lock().unwrap().push(time);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let order = order.lock().unwrap();
        assert_eq!(order.len(), times.len());
        assert!(order.is_sorted(), "{order:?}");
        assert_eq!(start.elapsed(), *order.last().unwrap());
    });
}

#[test]
fn auto_advance_waits_for_blocking_jobs() {
    paused(|| async {
        let start = Instant::now();
        let sleeper = mini::spawn(async { sleep(HOUR).await });
        let (send, receive) = oneshot();
        let job = mini::spawn_blocking(move || {
            for _ in 0..2000 {
                thread::yield_now(); // long enough for a runtime that does not wait to move its clock
            }
            let now = Instant::now();
            send.send(());
            now
        });
        receive.await;
        assert_eq!(job.await.unwrap(), start);
        sleeper.await.unwrap();
        assert_eq!(start.elapsed(), HOUR);
    });
}

#[test]
fn advance_fires_what_it_passes_and_nothing_else() {
    paused(|| async {
        let start = Instant::now();
        let (near, far) = (mini::spawn(sleep(5 * MS)), mini::spawn(sleep(20 * MS)));
        yield_now().await;
        advance(10 * MS).await;
        assert_eq!(start.elapsed(), 10 * MS);
        yield_now().await;
        assert!(near.is_finished() && !far.is_finished());
        advance(Duration::ZERO).await;
        assert_eq!(start.elapsed(), 10 * MS);
        far.await.unwrap();
        assert_eq!(start.elapsed(), 20 * MS);
    });
}

#[test]
fn advance_lets_all_run_that_it_wakes() {
    paused(|| async {
        for count in [127, 200, 1000] {
            let sleepers: Vec<_> = (0..count).map(|_| mini::spawn(sleep(5 * MS))).collect();
            yield_now().await;
            advance(10 * MS).await;
            assert!(sleepers.iter().all(|sleeper| sleeper.is_finished()), "{count}");
        }
    });
}

#[test]
fn tasks_that_sleep_end_in_the_order_of_their_deadlines() {
    paused(|| async {
        let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        for millis in (1..=500).rev() {
            let order = order.clone();
            drop(mini::spawn(async move {
                sleep(millis * MS).await;
                order.lock().unwrap().push(millis);
            }));
        }
        yield_now().await;
        advance(501 * MS).await;
        assert!(order.lock().unwrap().iter().copied().eq(1..=500));
    });
}

#[test]
fn timeouts_that_are_over_at_once_do_not_keep_others_away() {
    paused(|| async {
        let other = mini::spawn(async {});
        for round in 0.. {
            assert!(round < 1000, "nobody else runs");
            let past = Instant::now() - MS;
            assert!(timeout(Duration::ZERO, std::future::pending::<()>()).await.is_err());
            assert!(timeout_at(past, std::future::pending::<()>()).await.is_err());
            if other.is_finished() {
                break;
            }
        }
    });
}

#[test]
fn a_timeout_fires_or_does_not() {
    paused(|| async {
        let start = Instant::now();
        assert!(timeout(MS, std::future::pending::<()>()).await.is_err());
        assert_eq!(start.elapsed(), MS);
        assert_eq!(timeout(HOUR, async { 4 }).await, Ok(4));
        assert_eq!(start.elapsed(), MS);
        assert!(timeout(2 * MS, sleep(MS)).await.is_ok());
        assert!(timeout(MS, sleep(2 * MS)).await.is_err());
        assert_eq!(start.elapsed(), 3 * MS);
        assert!(timeout(MS, sleep(MS)).await.is_ok(), "if both are due the output wins");
        assert!(timeout_at(start, std::future::pending::<()>()).await.is_err());
        assert_eq!(timeout(Duration::ZERO, async { 5 }).await, Ok(5));
        assert!(timeout(Duration::ZERO, std::future::pending::<()>()).await.is_err());
        assert_eq!(start.elapsed(), 4 * MS);
        let counts = Counts::new();
        assert!(timeout(MS, mini_tests::never(&counts)).await.is_err());
        assert_eq!((counts.polls(), counts.drops()), (2, 1));
    });
}

#[test]
fn the_shortest_and_the_longest_durations() {
    paused(|| async {
        let start = Instant::now();
        sleep(Duration::ZERO).await;
        sleep_until(start).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(timeout(HOUR, sleep(Duration::MAX)).await.is_err());
        assert!(timeout(Duration::MAX, sleep(HOUR)).await.is_ok());
        let never = mini::spawn(timeout(Duration::MAX, std::future::pending::<()>()));
        sleep(HOUR).await;
        assert!(!never.is_finished());
        assert_eq!(start.elapsed(), 3 * HOUR);
    });
}

/// The last time that timers count, seen from the start of the clock.
const END: Duration = Duration::from_nanos(u64::MAX - 1);

fn poll_advance(duration: Duration) {
    let _ = poll_with(&mut advance(duration), &Arc::new(Counts::default()));
}

#[test]
fn advance_refuses_to_go_where_no_timer_ends() {
    paused(|| async {
        let start = Instant::now();
        for too_far in [END + MS, 2 * END, Duration::MAX] {
            assert!(caught(|| poll_advance(too_far)).message.contains("further than 584 years after its start"));
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "it has not moved");
        advance(END - MS).await;
        sleep(MS).await;
        assert_eq!(start.elapsed(), END);
        advance(Duration::ZERO).await;
        assert!(caught(|| poll_advance(MS)).message.contains("further than 584 years after its start"));
    });
}

/// Such waits would never end, and nothing would say why.
#[test]
fn waits_that_end_after_the_last_timer_say_so() {
    paused(|| async {
        let (start, mut beat) = (Instant::now(), interval(MS));
        beat.tick().await;
        for _ in 0..6 {
            sleep(END / 6).await; // time jumps there by itself
        }
        advance(END - start.elapsed()).await;
        let line = line!() + 1;
        let text = text_of(&*mini::spawn(sleep(MS)).await.unwrap_err().into_panic()).to_owned();
        assert!(text.contains("584 years"), "{text}");
        assert!(text.contains(&format!("`mini::time::sleep`, called at {}:{line}:", file!())), "{text}");
        for error in [
            mini::spawn(timeout(MS, std::future::pending::<()>())).await.unwrap_err(),
            mini::spawn(timeout_at(Instant::now() + HOUR, std::future::pending::<()>())).await.unwrap_err(),
            mini::spawn(sleep_until(Instant::now() + HOUR)).await.unwrap_err(),
            mini::spawn(async move {
                beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
                beat.tick().await; // it was due long ago
                beat.tick().await
            })
            .await
            .unwrap_err(),
        ] {
            assert!(text_of(&*error.into_panic()).contains("584 years"));
        }
        // A wait that is not meant to end goes on.
        assert_eq!(timeout(Duration::MAX, async { 7 }).await, Ok(7));
        let never = mini::spawn(sleep(Duration::MAX));
        yield_now().await;
        assert!(!never.is_finished());
        sleep_until(Instant::now()).await;
    });
}

#[test]
fn a_sleep_can_be_moved() {
    paused(|| async {
        let start = Instant::now();
        let polled = Counts::new();
        for (first, second) in [(HOUR, MS), (MS, HOUR), (MS, MS)] {
            let mut nap = sleep(first);
            let (to, begun) = (Instant::now() + second, Instant::now());
            assert!(poll_with(&mut nap, &polled).is_pending());
            Pin::new(&mut nap).reset(to);
            nap.await;
            assert_eq!(begun.elapsed(), second);
        }
        let mut again = pin!(sleep(MS));
        again.as_mut().await;
        again.as_mut().reset(start + 5 * HOUR);
        assert!(!again.is_elapsed());
        again.await;
        assert_eq!(start.elapsed(), 5 * HOUR);
    });
}

#[test]
fn intervals_catch_up_delay_or_skip() {
    paused(|| async {
        let plans = [
            (MissedTickBehavior::Burst, [170, 170, 170, 200, 250]),
            (MissedTickBehavior::Delay, [170, 220, 270, 320, 370]),
            (MissedTickBehavior::Skip, [170, 200, 250, 300, 350]),
        ];
        for (behavior, plan) in plans {
            let start = Instant::now();
            let mut beat = interval(50 * MS);
            beat.set_missed_tick_behavior(behavior);
            beat.tick().await;
            sleep(170 * MS).await;
            for at in plan {
                beat.tick().await;
                assert_eq!(start.elapsed(), at * MS, "{behavior:?}");
            }
        }
        let start = Instant::now();
        let mut beat = interval_at(start + HOUR, MS);
        assert_eq!(beat.tick().await, start + HOUR);
        for _ in 0..3 {
            assert!(timeout(Duration::from_micros(200), beat.tick()).await.is_err(), "a tick given up is not lost");
        }
        assert_eq!(beat.tick().await, start + HOUR + MS);
    });
}

#[test]
fn pause_and_resume() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            sleep(MS).await;
            pause();
            let start = Instant::now();
            sleep(HOUR).await;
            assert_eq!(start.elapsed(), HOUR);
            resume();
            let (real, mine) = (std::time::Instant::now(), Instant::now());
            sleep(MS).await;
            assert!(real.elapsed() >= MS && mine.elapsed() >= MS);
        });
    });
}

#[test]
fn another_thread_registers_a_timer_under_a_paused_clock() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let (stop, stopped) = oneshot::<()>();
        let (entered, is_entered) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                runtime.block_on(async {
                    entered.send(()).unwrap();
                    stopped.await
                })
            });
            is_entered.recv().unwrap();
            for _ in 0..100 {
                let _inside = runtime.enter();
                let start = Instant::now();
                block_on_elsewhere(sleep(HOUR));
                assert_eq!(start.elapsed(), HOUR);
            }
            drop(stop);
        });
    });
}

#[test]
fn another_thread_lets_a_paused_clock_run() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let (send, receive) = oneshot();
        let (entered, is_entered) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                runtime.block_on(async {
                    // The job keeps the clock from moving by itself.
                    let (release, released) = mpsc::channel::<()>();
                    let job = mini::spawn_blocking(move || released.recv().is_err());
                    let nap = mini::spawn(sleep(MS));
                    mini::spawn(async move {
                        entered.send(()).unwrap();
                        receive.await
                    })
                    .await
                    .unwrap();
                    nap.await.unwrap();
                    drop(release);
                    job.await.unwrap();
                })
            });
            is_entered.recv().unwrap();
            let _inside = runtime.enter();
            resume();
            send.send(());
        });
    });
}

#[test]
fn a_shared_clock_cannot_be_paused() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        runtime.block_on(async {
            for call in [pause, resume, || poll_advance(MS)] {
                let seen = caught(call);
                assert!(seen.message.starts_with("`mini::time::"), "{}", seen.message);
            }
        });
        let line = line!() + 1;
        let seen = caught(|| pause());
        assert_eq!((seen.file.as_str(), seen.line), (file!(), line), "{}", seen.message);
        assert!(seen.message.contains("no mini runtime"), "{}", seen.message);
    });
}
