//! Workloads of the timers: those that do not fire, those that fire, and how late they fire.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;

use super::bell::Bell;
use super::timed::{Clocks, Workload};
use super::{Started, Subject};
use crate::clock::{Stopwatch, Took};
use crate::load::Load;
use crate::measured::{Figure, Group, Unit};
use crate::rt::{Flavour, Rt};
use crate::stats::percentile;

/// A limit of 30 s around one yield: the timer is armed and cancelled, and never fires.
///
/// `CROWDED`: while a million tasks sleep in the runtime.
pub(super) struct Timeout<const CROWDED: bool>;

impl<const CROWDED: bool> Workload for Timeout<CROWDED> {
    const NAME: &'static str = match CROWDED {
        false => "timeout 30 s, one yield",
        true => "timeout 30 s, one yield, 1M timers pending",
    };
    const GROUP: Group = Group::Timers;

    fn operations(_: Load) -> u64 {
        1
    }

    async fn prepare<R: Rt>(load: Load) {
        if CROWDED {
            sleepers::<R>(load.pick(1_000_000, 10_000)).await;
        }
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let watch = Stopwatch::start();
        for _ in 0..rounds {
            assert!(R::timeout(Duration::from_secs(30), R::yield_now()).await);
        }
        watch.stop()
    }
}

/// Leaves `count` tasks behind, each in an hour's sleep.
async fn sleepers<R: Rt>(count: u64) {
    let awake = Arc::new(AtomicU64::new(count));
    let end = Arc::new(Bell::default());
    for _ in 0..count {
        let (awake, end) = (awake.clone(), end.clone());
        R::spawn_detached(async move {
            if awake.fetch_sub(1, Ordering::Relaxed) == 1 {
                end.ring(1);
            }
            R::sleep(Duration::from_secs(3600)).await;
        });
    }
    end.wait(1).await;
}

/// 200,000 tasks that sleep once; the ends are spread over one second. In a smoke run a fiftieth of both.
pub(super) struct Fire;

impl Workload for Fire {
    const NAME: &'static str = "200k sleeps over 1 s, spawned and fired";
    const GROUP: Group = Group::Timers;
    const CLOCKS: Clocks = Clocks::Cpu;

    fn operations(load: Load) -> u64 {
        load.pick(200_000, 4000)
    }

    async fn run<R: Rt>(rounds: u64, load: Load) -> Took {
        let count = Self::operations(load);
        let end = Arc::new(Bell::default());
        let watch = Stopwatch::start();
        for round in 1..=rounds {
            let left = Arc::new(AtomicU64::new(count));
            for number in 0..count {
                let (left, end) = (left.clone(), end.clone());
                R::spawn_detached(async move {
                    R::sleep(Duration::from_micros(5 * number)).await;
                    if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                        end.ring(round);
                    }
                });
            }
            end.wait(round).await;
        }
        watch.stop()
    }
}

/// A time that no tick of a millisecond meets.
const TIME: Duration = Duration::from_micros(1300);

/// How late a task comes back from a sleep of 1.3 ms.
pub(super) struct Lateness;

impl Subject for Lateness {
    fn name() -> String {
        "sleep of 1.3 ms, lateness".to_owned()
    }

    fn group() -> Group {
        Group::Timers
    }

    fn figures() -> Vec<Figure> {
        vec![Figure::lower("p50", Unit::Microseconds), Figure::lower("p99", Unit::Microseconds)]
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let sleeps = load.pick(200, 10);
        let sample = move || {
            let lates = rt.block_on(async move { R::spawn(lates::<R>(sleeps)).await });
            vec![percentile(&lates, 50.0), percentile(&lates, 99.0)]
        };
        Ok(Started::Probe(Box::new(sample)))
    }

    /// A thread that sleeps as often (clock_nanosleep(2)), as exactly as the kernel can: without timer slack. It is a
    /// new thread, since other threads keep their slack.
    fn limit(load: Load) -> io::Result<Started> {
        let sleeps = load.pick(200, 10);
        let sample = move || {
            let lates = thread::spawn(move || lates_of_thread(sleeps)).join().expect("it only sleeps");
            vec![percentile(&lates, 50.0), percentile(&lates, 99.0)]
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

/// As `lates`, of this thread.
fn lates_of_thread(sleeps: usize) -> Vec<f64> {
    set_current_timer_slack(NonZeroU64::new(1)).expect("a thread may be exact");
    let sleep = |_| {
        let start = Instant::now();
        thread::sleep(TIME);
        late(start, TIME)
    };
    (0..sleeps).map(sleep).collect()
}

/// How late each of `sleeps` sleeps ended, in microseconds.
async fn lates<R: Rt>(sleeps: usize) -> Vec<f64> {
    let mut lates = Vec::with_capacity(sleeps);
    for _ in 0..sleeps {
        lates.push(lateness::<R>(TIME).await);
    }
    lates
}

/// Sleeps for `time`; how late it ended, in microseconds.
pub(super) async fn lateness<R: Rt>(time: Duration) -> f64 {
    let start = Instant::now();
    R::sleep(time).await;
    late(start, time)
}

/// By how many microseconds what began at `start` took longer than `time`.
fn late(start: Instant, time: Duration) -> f64 {
    (start.elapsed().as_secs_f64() - time.as_secs_f64()) * 1e6
}
