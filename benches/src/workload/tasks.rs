//! Workloads of the scheduler: spawn, join, yield.
//!
//! The outputs of tasks depend on their number and are summed up and checked, so that nothing can be optimised away.

use std::future::Future;
use std::sync::Arc;

use super::bell::Bell;
use super::timed::Workload;
use crate::clock::{Stopwatch, Took};
use crate::load::Load;
use crate::measured::Group;
use crate::rt::Rt;

/// Spawns a task, joins it, spawns the next.
pub(super) struct SpawnJoin;

impl Workload for SpawnJoin {
    const NAME: &'static str = "spawn+join, in a task";
    const GROUP: Group = Group::Tasks;

    fn operations(_: Load) -> u64 {
        1
    }

    fn run<R: Rt>(rounds: u64, _: Load) -> impl Future<Output = Took> + Send {
        spawn_join::<R>(rounds)
    }
}

/// [`SpawnJoin`] from the future given to `block_on`.
pub(super) struct SpawnJoinRoot;

impl Workload for SpawnJoinRoot {
    const NAME: &'static str = "spawn+join, from block_on";
    const GROUP: Group = Group::Tasks;
    const IN_TASK: bool = false;

    fn operations(_: Load) -> u64 {
        1
    }

    fn run<R: Rt>(rounds: u64, _: Load) -> impl Future<Output = Took> + Send {
        spawn_join::<R>(rounds)
    }
}

async fn spawn_join<R: Rt>(rounds: u64) -> Took {
    let watch = Stopwatch::start();
    let mut sum = 0u64;
    for round in 0..rounds {
        sum = sum.wrapping_add(R::spawn(async move { round }).await);
    }
    let took = watch.stop();
    assert_eq!(sum, sum_below(rounds));
    took
}

/// Tasks of a [`Burst`].
const BURST: u64 = 1000;

/// Spawns 1,000 tasks, then joins them all.
pub(super) struct Burst;

impl Workload for Burst {
    const NAME: &'static str = "burst of 1000, in a task";
    const GROUP: Group = Group::Tasks;

    fn operations(_: Load) -> u64 {
        BURST
    }

    fn run<R: Rt>(rounds: u64, _: Load) -> impl Future<Output = Took> + Send {
        burst::<R>(rounds)
    }
}

/// [`Burst`] from the future given to `block_on`.
pub(super) struct BurstRoot;

impl Workload for BurstRoot {
    const NAME: &'static str = "burst of 1000, from block_on";
    const GROUP: Group = Group::Tasks;
    const IN_TASK: bool = false;

    fn operations(_: Load) -> u64 {
        BURST
    }

    fn run<R: Rt>(rounds: u64, _: Load) -> impl Future<Output = Took> + Send {
        burst::<R>(rounds)
    }
}

async fn burst<R: Rt>(rounds: u64) -> Took {
    let mut tasks = Vec::with_capacity(BURST as usize);
    let watch = Stopwatch::start();
    for _ in 0..rounds {
        tasks.extend((0..BURST).map(|number| R::spawn(async move { number })));
        let mut sum = 0;
        for task in tasks.drain(..) {
            sum += task.await;
        }
        assert_eq!(sum, sum_below(BURST));
    }
    watch.stop()
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
    const GROUP: Group = Group::Tasks;

    fn operations(_: Load) -> u64 {
        YIELDING
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let watch = Stopwatch::start();
        let tasks: Vec<_> = (0..YIELDING).map(|_| R::spawn(yield_often::<R>(rounds))).collect();
        for task in tasks {
            task.await;
        }
        watch.stop()
    }
}

async fn yield_often<R: Rt>(rounds: u64) {
    for _ in 0..rounds {
        R::yield_now().await;
    }
}

/// Tasks of a [`Chain`].
const LINKS: u64 = 1000;

/// 1,000 tasks, each started by the one before; the last one tells.
pub(super) struct Chain;

impl Workload for Chain {
    const NAME: &'static str = "chain of 1000 spawns, per link";
    const GROUP: Group = Group::Tasks;

    fn operations(_: Load) -> u64 {
        LINKS
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let end = Arc::new(Bell::default());
        let watch = Stopwatch::start();
        for round in 1..=rounds {
            link::<R>(LINKS, round, end.clone());
            end.wait(round).await;
        }
        watch.stop()
    }
}

/// Starts the first of `left` tasks, which starts the others.
fn link<R: Rt>(left: u64, round: u64, end: Arc<Bell>) {
    R::spawn_detached(async move {
        match left {
            1 => end.ring(round),
            _ => link::<R>(left - 1, round, end),
        }
    });
}
