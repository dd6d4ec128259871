//! Work that one task hands out: how much two workers gain over one.

use std::io;
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
