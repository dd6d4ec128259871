//! What tasks get from a scheduler beside neighbours that could take all of its time.
//!
//! `computing.rs` has neighbours that compute and yield, `ready.rs` neighbours whose I/O never ends, `polite.rs` tasks
//! that yield themselves and must not pay for it. The neighbours of a sample go on until those that are measured have
//! ended ([`Stop`]), for 3 s at most: a shorter latency is not cut because the load went away.
//!
//! Where the runtime has one CPU, the threads that send and ask sit on the other one.
//!
//! Rejected: a fixed number of turns for the neighbours, as `stalls.rs` has. A runtime that lets the measured tasks
//! wait for long would show shorter waits, since its neighbours end sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_channel::Sender;

use super::{Row, Started, Subject, both};
use crate::cpus;
use crate::load::Load;
use crate::rt::{Flavour, Rt};

mod computing;
mod polite;
mod ready;

/// All rows, in the order of the table.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = computing::rows();
    rows.extend(ready::rows());
    rows.extend(polite::rows());
    rows
}

/// How long neighbours go on at most, whatever the measured tasks do. A longer latency is cut there.
const LIMIT: Duration = Duration::from_secs(3);

/// Tells the neighbours when to end.
#[derive(Clone)]
struct Stop {
    is_over: Arc<AtomicBool>,
    deadline: Instant,
}

impl Stop {
    fn new() -> Self {
        Self::after(LIMIT)
    }

    /// Ends by itself after `span`.
    fn after(span: Duration) -> Self {
        Self { is_over: Arc::default(), deadline: Instant::now() + span }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed) || Instant::now() > self.deadline
    }

    /// Lets the neighbours end.
    fn end(&self) {
        self.is_over.store(true, Relaxed);
    }
}

/// Computes for `turn` and yields, again and again; returns the turns, one at least.
async fn compute_and_yield<R: Rt>(turn: Duration, load: Load, stop: Stop) -> u64 {
    let mut turns = 0;
    loop {
        load.compute_for(turn);
        turns += 1;
        if stop.is_over() {
            return turns;
        }
        R::yield_now().await;
    }
}

/// The side of the thread outside: never waits for the task, so a late task is late for every wake that it missed.
fn send_stamps(sender: &Sender<Instant>, pace: Duration, span: Duration) {
    let start = Instant::now();
    while start.elapsed() < span {
        thread::sleep(pace);
        sender.try_send(Instant::now()).expect("the task listens, and there is room");
    }
}

/// Runs `body` on a thread beside the runtime: on the other CPU if the runtime has one CPU.
fn outside<T: Send + 'static>(flavour: Flavour, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let shares_cpus = flavour == Flavour::TWO;
    thread::spawn(move || {
        if !shares_cpus {
            cpus::bind_to_other();
        }
        body()
    })
}
