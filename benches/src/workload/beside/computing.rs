//! Sleeps and wakes beside tasks that compute and yield: few with long turns, many with short ones.
//!
//! A task that yields has had its turn. A scheduler lets the other tasks wait for one turn, or one of each computing
//! task, or many. The rows have the same load in sum, all of the time, in pieces of different length.
//!
//! monoio takes no part: it runs a task that wakes itself before all others, so they would wait until the end.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use async_channel::Receiver;

use super::{Flavour, Load, Row, Rt, Started, Stop, Subject, both, compute_and_yield, outside, send_stamps};
use crate::format::number;
use crate::measured::{Figure, Group, Unit};
use crate::stats::percentile;
use crate::workload::stalls::sleeper;

/// Tasks that sleep for 1 ms, again and again.
const SLEEPERS: usize = 10;

/// How often the thread outside wakes a task.
const PACE: Duration = Duration::from_millis(3);

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = both::<Computing<1, 50_000>>().into();
    rows.extend(both::<Computing<4, 5_000>>());
    rows.extend(both::<Computing<4, 500>>());
    rows.extend(both::<Computing<100, 50>>());
    rows.extend(both::<Computing<1_000, 10>>());
    rows.into_iter().map(Row::without_monoio).map(Row::in_five_rounds).collect()
}

/// `TASKS` tasks that compute for `MICROS` microseconds and yield.
struct Computing<const TASKS: u64, const MICROS: u64>;

impl<const TASKS: u64, const MICROS: u64> Subject for Computing<TASKS, MICROS> {
    fn name() -> String {
        let (count, millis) = (number(TASKS as f64).replace(".00", ""), MICROS / 1000);
        let turn = if millis > 0 { format!("{millis} ms") } else { format!("{MICROS} us") };
        format!("beside {count} x {turn}")
    }

    fn group() -> Group {
        Group::Fairness
    }

    fn figures() -> Vec<Figure> {
        let figure = |suffix| Figure::lower(suffix, Unit::Microseconds);
        ["lateness of sleeps, p50", "lateness of sleeps, p99", "wakes by a thread, p50", "wakes by a thread, p99"]
            .map(figure)
            .into()
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let turn = Duration::from_micros(MICROS);
        let sample = move || {
            let scene = Scene { flavour, load, turn, span: span(turn, load) };
            let (lates, wakes) = rt.block_on(async move { R::spawn(scene.play::<R>(TASKS)).await });
            [&lates, &wakes].into_iter().flat_map(|all| [percentile(all, 50.0), percentile(all, 99.0)]).collect()
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

/// Half a second, and at least 30 turns: enough sleeps for a p99.
fn span(turn: Duration, load: Load) -> Duration {
    let span = (30 * turn).max(Duration::from_millis(500));
    load.pick(span, span / 10)
}

#[derive(Clone, Copy)]
struct Scene {
    flavour: Flavour,
    load: Load,
    turn: Duration,
    span: Duration,
}

impl Scene {
    /// How late the sleeps ended, and what the wakes took.
    async fn play<R: Rt>(self, tasks: u64) -> (Vec<f64>, Vec<f64>) {
        let stop = Stop::new();
        let computing: Vec<_> =
            (0..tasks).map(|_| R::spawn(compute_and_yield::<R>(self.turn, self.load, stop.clone()))).collect();
        let sleepers: Vec<_> = (0..SLEEPERS).map(|_| R::spawn(sleeper::<R>(self.span))).collect();
        let (sender, receiver) = async_channel::unbounded();
        let woken = R::spawn(woken(receiver));
        let thread = outside(self.flavour, move || send_stamps(&sender, PACE, self.span));
        let lates = all(sleepers).await;
        let wakes = woken.await;
        stop.end();
        for task in computing {
            task.await;
        }
        thread.join().expect("it only sends");
        (lates, wakes)
    }
}

async fn all(tasks: Vec<impl Future<Output = Vec<f64>>>) -> Vec<f64> {
    let mut values = Vec::new();
    for task in tasks {
        values.extend(task.await);
    }
    values
}

/// The times from each sending to the run of this task, in microseconds.
async fn woken(receiver: Receiver<Instant>) -> Vec<f64> {
    let mut wakes = Vec::new();
    while let Ok(sent) = receiver.recv().await {
        wakes.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    wakes
}
