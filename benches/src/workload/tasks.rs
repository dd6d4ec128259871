//! Workloads of the scheduler and the timers: spawn, join, yield, hand over, time out.
//!
//! The outputs of tasks depend on their number and are summed up and checked, so that nothing can be optimised away.

use std::future::Future;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};

use super::Workload;
use crate::rt::Rt;

/// Spawns a task, joins it, spawns the next.
pub(super) struct SpawnJoin;

impl Workload for SpawnJoin {
    const NAME: &'static str = "spawn+join, in a task";
    const OPERATIONS: u64 = 1;

    fn run<R: Rt>(rounds: u64) -> impl Future<Output = Duration> + Send {
        spawn_join::<R>(rounds)
    }
}

/// [`SpawnJoin`] from the future given to `block_on`.
pub(super) struct SpawnJoinRoot;

impl Workload for SpawnJoinRoot {
    const NAME: &'static str = "spawn+join, from block_on";
    const OPERATIONS: u64 = 1;
    const IN_TASK: bool = false;

    fn run<R: Rt>(rounds: u64) -> impl Future<Output = Duration> + Send {
        spawn_join::<R>(rounds)
    }
}

async fn spawn_join<R: Rt>(rounds: u64) -> Duration {
    let start = Instant::now();
    let mut sum = 0u64;
    for round in 0..rounds {
        sum = sum.wrapping_add(R::spawn(async move { round }).await);
    }
    let took = start.elapsed();
    assert_eq!(sum, sum_below(rounds));
    took
}

/// Tasks of a [`Burst`].
const BURST: u64 = 1000;

/// Spawns 1,000 tasks, then joins them all.
pub(super) struct Burst;

impl Workload for Burst {
    const NAME: &'static str = "burst of 1000, in a task";
    const OPERATIONS: u64 = BURST;

    fn run<R: Rt>(rounds: u64) -> impl Future<Output = Duration> + Send {
        burst::<R>(rounds)
    }
}

/// [`Burst`] from the future given to `block_on`.
pub(super) struct BurstRoot;

impl Workload for BurstRoot {
    const NAME: &'static str = "burst of 1000, from block_on";
    const OPERATIONS: u64 = BURST;
    const IN_TASK: bool = false;

    fn run<R: Rt>(rounds: u64) -> impl Future<Output = Duration> + Send {
        burst::<R>(rounds)
    }
}

async fn burst<R: Rt>(rounds: u64) -> Duration {
    let mut tasks = Vec::with_capacity(BURST as usize);
    let start = Instant::now();
    for _ in 0..rounds {
        tasks.extend((0..BURST).map(|number| R::spawn(async move { number })));
        let mut sum = 0;
        for task in tasks.drain(..) {
            sum += task.await;
        }
        assert_eq!(sum, sum_below(BURST));
    }
    start.elapsed()
}

fn sum_below(end: u64) -> u64 {
    (0..end).fold(0, u64::wrapping_add)
}

/// Tasks of [`Yield`].
const YIELDING: u64 = 100;

/// 100 tasks that yield in turn, once per round each.
pub(super) struct Yield;

impl Workload for Yield {
    const NAME: &'static str = "yield, 100 tasks";
    const OPERATIONS: u64 = YIELDING;

    async fn run<R: Rt>(rounds: u64) -> Duration {
        let start = Instant::now();
        let tasks: Vec<_> = (0..YIELDING).map(|_| R::spawn(yield_often::<R>(rounds))).collect();
        for task in tasks {
            task.await;
        }
        start.elapsed()
    }
}

async fn yield_often<R: Rt>(rounds: u64) {
    for _ in 0..rounds {
        R::yield_now().await;
    }
}

/// Two tasks that pass a number to and fro; a hop is an operation.
pub(super) struct PingPong;

impl Workload for PingPong {
    const NAME: &'static str = "ping-pong, per hop";
    const OPERATIONS: u64 = 2;

    async fn run<R: Rt>(rounds: u64) -> Duration {
        let (to_pong, from_ping) = async_channel::bounded(1);
        let (to_ping, from_pong) = async_channel::bounded(1);
        let start = Instant::now();
        let pong = R::spawn(pong(from_ping, to_ping));
        let ping = R::spawn(ping(rounds, to_pong, from_pong));
        assert_eq!(ping.await, rounds);
        pong.await;
        start.elapsed()
    }
}

/// Sends `0`, and each answer back, until `rounds` is reached.
async fn ping(rounds: u64, to_pong: Sender<u64>, from_pong: Receiver<u64>) -> u64 {
    let mut number = 0;
    while number < rounds {
        to_pong.send(number).await.expect("pong listens");
        number = from_pong.recv().await.expect("pong answers");
    }
    number
}

/// Answers with the next number until ping has gone.
async fn pong(from_ping: Receiver<u64>, to_ping: Sender<u64>) {
    while let Ok(number) = from_ping.recv().await {
        to_ping.send(number + 1).await.expect("ping listens");
    }
}

/// A limit of 30 s around one yield: the timer is armed and cancelled, and never fires.
pub(super) struct Timeout;

impl Workload for Timeout {
    const NAME: &'static str = "timeout 30 s, one yield";
    const OPERATIONS: u64 = 1;

    async fn run<R: Rt>(rounds: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..rounds {
            assert!(R::timeout(Duration::from_secs(30), R::yield_now()).await);
        }
        start.elapsed()
    }
}
