//! What an operation costs with 2, 8, 32 and 64 workers, most of them parked: in instructions, since this machine may
//! have few CPUs.
//!
//! ```console
//! $ cargo bench -p mini-benches -- scale
//! ```
//!
//! A loop over all workers on a hot path shows as a figure that grows with their number, on any machine. Each figure is
//! a difference: the program runs under callgrind with some operations and with more of them, and start and end cancel
//! out. Instructions of all threads count, those of the kernel do not; what a runtime does by the clock counts more
//! than usual, since all else is slower there.
//!
//! Takes one to two minutes; needs valgrind. With `--peer tokio` the same of tokio; `--save` counts both and writes
//! `benches/SCALE.md`.
//!
//! Rejected: `perf stat`. Virtual machines often have no counters.
//! Rejected: time. With fewer CPUs than workers it is mostly that of the system's scheduler.

use std::fmt::Write;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::format::number;
use crate::load::Load;
use crate::machine::Machine;
use crate::peer::Peer;
use crate::report::{opening, save_page};
use crate::rt::mini::Mini;
use crate::rt::tokio::Tokio;
use crate::rt::{Flavour, Rt};
use crate::workload::bell::Bell;

/// The first argument of the program, to come here.
pub(crate) const COMMAND: &str = "scale";

/// The first argument of a process that is counted.
pub(crate) const CHILD: &str = "--scale";

const WORKERS: [usize; 4] = [2, 8, 32, 64];

/// A figure is flat if the last of [`WORKERS`] has less than this times the first one's, and more than the inverse.
const FLAT: f64 = 1.15;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Spawns a task and joins it.
    Spawn,
    /// A task wakes another one, which wakes it.
    Wake,
    /// A timer is armed and cancelled.
    Timer,
    /// Sleeps: a timer, a worker that parks, and the timer fires.
    Park,
    /// A thread wakes a task of a worker that is parked, which answers and parks.
    Unpark,
    /// Tasks with some work, from one worker, for the others to steal.
    Steal,
}

impl Operation {
    const ALL: [Self; 6] = [Self::Spawn, Self::Wake, Self::Timer, Self::Park, Self::Unpark, Self::Steal];

    /// How many operations are counted: fewer of those that wait.
    fn count(self) -> u64 {
        match self {
            Self::Park | Self::Unpark => 150,
            Self::Steal => 1_280,
            _ => 2_000,
        }
    }

    fn start<R: Rt>(self, count: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match self {
            Self::Spawn => Box::pin(spawn::<R>(count)),
            Self::Wake => Box::pin(wake::<R>(count)),
            Self::Timer => Box::pin(timer::<R>(count)),
            Self::Park => Box::pin(park::<R>(count)),
            Self::Unpark => Box::pin(unpark(count)),
            Self::Steal => Box::pin(steal::<R>(count)),
        }
    }
}

/// What the program does when its first argument is [`COMMAND`]; `args` are those after it.
pub(crate) fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<_> = args.collect();
    let (peers, save) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (&["mini"][..], false),
        ["--peer", "tokio"] => (&["tokio"][..], false),
        ["--save"] => (&["mini", "tokio"][..], true),
        _ => {
            eprintln!("usage: cargo bench -p mini-benches -- {COMMAND} [--peer tokio | --save]");
            return ExitCode::from(2);
        }
    };
    let mut machine = Machine::examine();
    let saved = |tables: Vec<String>| {
        machine.finish();
        let tables = tables.join("\n");
        print!("{tables}");
        if save { save_tables(&tables, &machine).map_err(|error| format!("cannot be saved: {error}")) } else { Ok(()) }
    };
    match peers.iter().map(|peer| table(peer)).collect::<Result<_, _>>().and_then(saved) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn save_tables(tables: &str, machine: &Machine) -> io::Result<()> {
    let lead = "Instructions of an operation with up to 64 workers, most of them parked, by callgrind, written";
    let command = format!("cargo bench -p mini-benches -- {COMMAND} --save");
    save_page("SCALE.md", &opening("Scale", lead, (&command, false), machine), tables)
}

fn table(peer: &str) -> Result<String, String> {
    let mut text = format!("| instructions of {peer} per |");
    WORKERS.iter().for_each(|workers| text.push_str(&format!(" {workers} workers |")));
    text.push_str(" |\n|---|---:|---:|---:|---:|---|\n");
    for operation in Operation::ALL {
        let count = operation.count();
        let _ = write!(text, "| {operation:?} |");
        let mut costs = Vec::new();
        for workers in WORKERS {
            eprint!("\r{operation:?} with {workers} workers   ");
            let (few, many) =
                (callgrind(peer, operation, workers, count)?, callgrind(peer, operation, workers, 3 * count)?);
            let cost = (many as f64 - few as f64) / (2 * count) as f64;
            let _ = write!(text, " {} |", number(cost));
            costs.push(cost);
        }
        let _ = writeln!(text, " {} |", verdict(costs[0], costs[WORKERS.len() - 1]));
    }
    eprintln!();
    Ok(text)
}

/// How the cost with most workers compares with the cost with fewest. A negative cost comes from noise.
fn verdict(fewest: f64, most: f64) -> String {
    let growth = most / fewest;
    if fewest <= 0.0 || most <= 0.0 {
        "noise".to_owned()
    } else if (1.0 / FLAT..FLAT).contains(&growth) {
        "flat".to_owned()
    } else if growth < 1.0 {
        format!("shrinks to {growth:.2} of it")
    } else {
        format!("grows {growth:.2} times")
    }
}

/// Instructions of a process that does an operation so many times.
fn callgrind(peer: &str, operation: Operation, workers: usize, count: u64) -> Result<u64, String> {
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--fair-sched=try"]).arg(exe);
    command.args([CHILD, peer, &format!("{operation:?}"), &workers.to_string(), &count.to_string()]);
    let output = command.output().map_err(|error| format!("valgrind cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    collected(&text).filter(|_| output.status.success()).ok_or_else(|| format!("valgrind failed: {text}"))
}

/// From `==123== Collected : 45678`.
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

/// What the program does when its first argument is [`CHILD`]; `args` are those after it.
pub(crate) fn child(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<_> = args.collect();
    let parsed = || {
        let [peer, operation, workers, count] = &args[..] else { return None };
        let operation = Operation::ALL.into_iter().find(|one| format!("{one:?}") == *operation)?;
        Some((Peer::parse(peer).ok()?, operation, workers.parse().ok()?, count.parse().ok()?))
    };
    match parsed() {
        Some((Peer::Mini, operation, workers, count)) => perform::<Mini>(operation, workers, count),
        Some((Peer::Tokio, operation, workers, count)) => perform::<Tokio>(operation, workers, count),
        _ => {
            eprintln!("`{CHILD}` does not know {args:?}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn perform<R: Rt>(operation: Operation, workers: usize, count: u64) {
    let rt = R::start(Flavour::MultiThread(workers)).expect("the system lets it run");
    rt.block_on(async move {
        R::spawn(async move {
            start_all::<R>(workers).await;
            R::sleep(Duration::from_millis(50)).await; // they park
            operation.start::<R>(count).await;
        })
        .await;
    });
}

/// Starts every worker: each gets a task that waits for the others and blocks its thread.
///
/// # Panics
///
/// If a worker does not start in time: the figure would be that of fewer workers.
async fn start_all<R: Rt>(workers: usize) {
    let started = Arc::new(AtomicUsize::new(0));
    let limit = Instant::now() + Duration::from_secs(60); // callgrind runs one thread at a time, and slowly
    let tasks = (0..workers).map(|_| {
        let started = started.clone();
        R::spawn(async move {
            started.fetch_add(1, Relaxed);
            while started.load(Relaxed) < workers && Instant::now() < limit {
                thread::sleep(Duration::from_millis(1));
            }
            started.load(Relaxed) == workers
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        assert!(task.await, "fewer than {workers} workers have started");
    }
}

async fn spawn<R: Rt>(count: u64) {
    for number in 0..count {
        assert_eq!(R::spawn(async move { number }).await, number);
    }
}

async fn wake<R: Rt>(count: u64) {
    let (there, back) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let other = R::spawn({
        let (there, back) = (there.clone(), back.clone());
        async move {
            for number in 1..=count {
                there.wait(number).await;
                back.ring(number);
            }
        }
    });
    for number in 1..=count {
        there.ring(number);
        back.wait(number).await;
    }
    other.await;
}

async fn timer<R: Rt>(count: u64) {
    for _ in 0..count {
        assert!(R::timeout(Duration::from_secs(30), R::yield_now()).await);
    }
}

async fn park<R: Rt>(count: u64) {
    for _ in 0..count {
        R::sleep(Duration::from_millis(2)).await;
    }
}

/// The thread waits between two wakes, so that the worker parks, and for the answer, so that it is one wake at a time.
async fn unpark(count: u64) {
    let (asked, answered) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let thread = thread::spawn({
        let (asked, answered) = (asked.clone(), answered.clone());
        move || {
            for number in 1..=count {
                thread::sleep(Duration::from_millis(2));
                asked.ring(number);
                while !answered.reached(number) {
                    thread::park();
                }
            }
        }
    });
    for number in 1..=count {
        asked.wait(number).await;
        answered.ring(number);
        thread.thread().unpark();
    }
    thread.join().expect("it only asks");
}

/// Batches of 64 tasks; the work of a task is part of the figure, and the same with any number of workers.
async fn steal<R: Rt>(count: u64) {
    let load = Load::with_steps(20_000); // not calibrated: the same work under any tool
    let sum = Arc::new(AtomicU64::new(0));
    for _ in 0..count / 64 {
        let tasks = (0..64).map(|_| {
            let sum = sum.clone();
            R::spawn(async move {
                sum.fetch_add(load.compute_1us() & 1, Relaxed);
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_runs_on_either() {
        for operation in Operation::ALL {
            perform::<Mini>(operation, 3, 64);
            perform::<Tokio>(operation, 3, 64);
        }
    }

    #[test]
    fn only_what_neither_grows_nor_shrinks_is_flat() {
        let verdicts = [(100.0, 110.0), (100.0, 90.0), (100.0, 200.0), (100.0, 50.0), (-1.0, -1.0), (0.0, 0.0)]
            .map(|(fewest, most)| verdict(fewest, most));
        assert_eq!(verdicts, ["flat", "flat", "grows 2.00 times", "shrinks to 0.50 of it", "noise", "noise"]);
    }

    #[test]
    fn the_count_is_in_the_last_lines_of_callgrind() {
        let text =
            "==7== Callgrind, a call-graph generating cache profiler\n==7== Events    : Ir\n==7== Collected : 4711\n";
        assert_eq!((collected(text), collected("valgrind: no such program")), (Some(4711), None));
    }
}
