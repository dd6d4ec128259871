//! The hosts of a simulation: which tasks belong to them, and what becomes of those in a crash or a pause.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream};
use mini::sim::{Sim, current};
use mini::task::spawn_local;
use mini::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// Counts its runs, one in a second.
async fn tick(count: Rc<Cell<u32>>) {
    loop {
        count.set(count.get() + 1);
        sleep(SECOND).await;
    }
}

/// Calls the function when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[mini::test(sim, seeds = 20)]
async fn tasks_from_before_the_first_host_are_the_tests() {
    let early = spawn_local(async {
        sleep(SECOND).await;
        TcpListener::bind("0.0.0.0:1").await.unwrap().accept().await.unwrap();
    });
    sleep(SECOND / 2).await; // it waits
    let sim = current();
    sim.host("busy", || tick(Rc::default()));
    sleep(2 * SECOND).await; // a task of that host ran before it
    sim.crash("busy");
    TcpStream::connect("127.0.0.1:1").await.unwrap();
    early.await.unwrap();
}

#[mini::test(sim, seeds = 20)]
async fn what_a_dying_task_spawns_dies_with_it() {
    let (sim, ticks) = (current(), Rc::new(Cell::new(0)));
    let count = ticks.clone();
    sim.host("host", move || {
        let count = count.clone();
        async move {
            let last_will = OnDrop(|| drop(spawn_local(tick(count.clone()))));
            std::future::pending::<()>().await;
            drop(last_will);
        }
    });
    sleep(SECOND).await;
    sim.crash("host");
    sim.restart("host");
    sleep(10 * SECOND).await;
    assert_eq!(ticks.get(), 0);
}

#[mini::test(sim, seeds = 20)]
async fn a_task_may_crash_its_own_host() {
    let (sim, ticks, starts) = (current(), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (count, begun) = (ticks.clone(), starts.clone());
    sim.host("host", move || {
        let (count, begun) = (count.clone(), begun.clone());
        async move {
            begun.set(begun.get() + 1);
            if begun.get() == 1 {
                current().crash("host");
                drop(spawn_local(tick(count.clone())));
            }
            sleep(SECOND).await;
            assert_eq!(begun.get(), 2, "the first is gone");
            tick(count).await;
        }
    });
    sleep(10 * SECOND).await;
    assert_eq!((starts.get(), ticks.get()), (1, 0));
    sim.restart(["host", "host"]);
    sleep(SECOND + SECOND / 2).await;
    assert_eq!((starts.get(), ticks.get()), (2, 1));
}

#[mini::test(sim, seeds = 20)]
async fn a_task_may_pause_its_own_host() {
    let (sim, runs) = (current(), Rc::new(Cell::new(0)));
    let count = runs.clone();
    sim.host("host", move || {
        let count = count.clone();
        async move {
            current().pause("host");
            spawn_local(async move { count.set(count.get() + 1) }).await.unwrap();
        }
    });
    sleep(10 * SECOND).await;
    assert_eq!(runs.get(), 0, "a child that nobody knew yet");
    sim.resume("host");
    sim.settle().await;
    assert_eq!(runs.get(), 1);
}

#[mini::test(sim, seeds = 20)]
async fn a_host_that_has_come_to_its_end_can_be_restarted() {
    let (sim, starts) = (current(), Rc::new(Cell::new(0)));
    let count = starts.clone();
    sim.host("host", move || {
        count.set(count.get() + 1);
        sleep(SECOND)
    });
    sim.settle().await;
    sim.restart("host");
    sleep(2 * SECOND).await;
    assert_eq!(starts.get(), 1, "it was up");
    sim.restart("host");
    sim.settle().await;
    assert_eq!(starts.get(), 2);
}

#[mini::test(sim, seeds = 20)]
async fn a_pause_ends_with_a_crash() {
    let (sim, ticks) = (current(), Rc::new(Cell::new(0)));
    let count = ticks.clone();
    sim.host("host", move || tick(count.clone()));
    sleep(SECOND / 2).await;
    sim.pause("host");
    sleep(10 * SECOND).await;
    sim.crash("host");
    assert!(!sim.is_up("host"));
    sim.pause("host"); // nothing is there to be paused
    sleep(10 * SECOND).await;
    assert_eq!(ticks.get(), 1);
    sim.restart("host");
    sim.settle().await;
    assert_eq!(ticks.get(), 2);
}

#[mini::test(sim, seeds = 20)]
async fn settle_waits_for_what_was_just_sent() {
    let (sim, received) = (current(), Rc::new(Cell::new(0)));
    let (count, listener) = (received.clone(), TcpListener::bind("127.0.0.1:1").await.unwrap());
    sim.rough(false);
    spawn_local(async move {
        let (stream, _) = listener.accept().await.unwrap();
        while let Ok(more @ 1..) = stream.read(&mut [0; 8]).await {
            count.set(count.get() + more);
        }
    });
    let stream = TcpStream::connect("127.0.0.1:1").await.unwrap();
    sim.settle().await;
    stream.write_all(b"hello").await.unwrap();
    sim.settle().await;
    assert_eq!(received.get(), 5);
}

#[test]
fn a_simulation_inside_of_another_is_refused_and_does_not_end_it() {
    Sim::new(1)
        .run(async {
            let sim = current();
            sim.host("server", || async {
                let listener = TcpListener::bind("0.0.0.0:1").await?;
                listener.accept().await.map(drop)
            });
            sim.settle().await;
            let inner = std::panic::catch_unwind(|| Sim::new(2).run(async {}));
            let text = *inner.unwrap_err().downcast::<&str>().unwrap();
            assert!(text.contains("a simulation cannot run inside another"), "{text}");
            TcpStream::connect("server:1").await.unwrap();
        })
        .unwrap();
}

#[mini::test(sim, seeds = 20)]
async fn a_skewed_clock_is_the_hosts_alone() {
    let sim = current();
    let nap = |length: u64| async move {
        let begin = Instant::now();
        sleep(Duration::from_secs(length)).await;
        let slept = begin.elapsed();
        assert!(slept >= Duration::from_secs(length) && slept < Duration::from_secs(length) + Duration::from_micros(1));
    };
    let (fast, slow) = (sim.client("fast", nap(1100)), sim.client("slow", nap(900)));
    sim.skew("fast", 100_000);
    sim.skew("slow", -100_000);
    let begin = Instant::now();
    let ends = mini::join! {
        async { fast.await.unwrap(); begin.elapsed() },
        async { slow.await.unwrap(); begin.elapsed() },
        async { sleep(Duration::from_secs(1000)).await; begin.elapsed() },
    };
    for end in [ends.0, ends.1, ends.2] {
        assert!(end.abs_diff(Duration::from_secs(1000)) < Duration::from_micros(1), "{end:?}");
    }
}

#[mini::test(sim, seeds = 20)]
async fn a_clock_that_is_skewed_again_does_not_jump() {
    let sim = current();
    sim.skew("test", 500_000);
    let begin = Instant::now();
    sleep(Duration::from_secs(30)).await; // 20 by the time of the simulation
    sim.skew("test", -500_000);
    assert!(begin.elapsed().abs_diff(Duration::from_secs(30)) < Duration::from_micros(1));
    sleep(Duration::from_secs(5)).await; // 10
    sim.skew("test", 0);
    sleep(Duration::from_secs(1)).await;
    assert!(begin.elapsed().abs_diff(Duration::from_secs(36)) < Duration::from_micros(1));
    assert!(sim.elapsed().abs_diff(Duration::from_secs(31)) < Duration::from_micros(1), "{:?}", sim.elapsed());
}

#[mini::test(sim, seeds = 20)]
async fn a_late_timer_is_a_fault() {
    let sim = current();
    sim.late_timers(0.5, Duration::from_millis(10));
    let mut late = 0;
    for _ in 0..100 {
        let begin = Instant::now();
        sleep(Duration::from_millis(1)).await;
        let by = begin.elapsed() - Duration::from_millis(1);
        assert!(by <= Duration::from_millis(10));
        late += u32::from(by > Duration::ZERO);
    }
    assert!((20..80).contains(&late), "{late} of 100");
}
