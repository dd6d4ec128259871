//! Work that one task hands out: how much two workers gain over one, and whether they share it fairly.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Started, Subject};
use crate::load::Load;
use crate::measured::{Figure, Group, Unit};
use crate::rt::{Flavour, Rt};

/// 20,000 tasks of 20 µs of computing each, all started by one task; in a smoke run 400.
pub(super) struct Balance;

impl Subject for Balance {
    fn name() -> String {
        "20k x 20 us".to_owned()
    }

    fn group() -> Group {
        Group::Tasks
    }

    fn figures() -> Vec<Figure> {
        vec![Figure::lower("total", Unit::Milliseconds), Figure::higher("speed-up over one worker", Unit::Times)]
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let sample = move || {
            let one = total::<R>(Flavour::MultiThread(1), load);
            let all = total::<R>(flavour, load);
            vec![all.as_secs_f64() * 1e3, one.as_secs_f64() / all.as_secs_f64()]
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

/// How long a runtime of its own needs; its start is not counted, and its threads have worked before.
fn total<R: Rt>(flavour: Flavour, load: Load) -> Duration {
    let rt = R::start(flavour).expect("it has started before");
    rt.block_on(async move { R::spawn(hand_out::<R>(100, load)).await });
    rt.block_on(async move { R::spawn(hand_out::<R>(load.pick(20_000, 400), load)).await })
}

async fn hand_out<R: Rt>(count: usize, load: Load) -> Duration {
    let start = Instant::now();
    let tasks: Vec<_> = (0..count).map(|_| R::spawn(async move { load.compute_20us() })).collect();
    let mut results = Vec::with_capacity(count);
    for task in tasks {
        results.push(task.await);
    }
    let took = start.elapsed();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "all tasks compute the same");
    took
}

/// So many tasks that compute for 1 µs and yield, until one of them has done its part of 200,000 turns; in a smoke run
/// of 2,000.
pub(super) struct Turns<const TASKS: u64>;

impl<const TASKS: u64> Subject for Turns<TASKS> {
    fn name() -> String {
        format!("{TASKS} tasks of 1 us turns")
    }

    fn group() -> Group {
        Group::Tasks
    }

    fn figures() -> Vec<Figure> {
        vec![Figure::lower("per turn", Unit::Nanoseconds), Figure::lower("most by fewest turns", Unit::Times)]
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let sample = move || {
            let rt = R::start(flavour).expect("it has started before");
            rt.block_on(async move { R::spawn(hand_out::<R>(100, load)).await });
            rt.block_on(async move { R::spawn(take_turns::<R>(TASKS, load)).await })
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

async fn take_turns<R: Rt>(tasks: u64, load: Load) -> Vec<f64> {
    let (most, is_over) = (load.pick(200_000, 2_000) / tasks, Arc::new(AtomicBool::new(false)));
    let start = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let is_over = is_over.clone();
            R::spawn(async move {
                let mut turns = 0;
                while turns < most && !is_over.load(Relaxed) {
                    load.compute_1us();
                    turns += 1;
                    R::yield_now().await;
                }
                is_over.store(true, Relaxed);
                turns
            })
        })
        .collect();
    let mut turns = Vec::with_capacity(tasks.len());
    for task in tasks {
        turns.push(task.await);
    }
    let took = start.elapsed().as_nanos() as f64;
    let fewest = turns.iter().min().copied().unwrap_or_default().max(1);
    vec![took / turns.iter().sum::<u64>() as f64, most as f64 / fewest as f64]
}
