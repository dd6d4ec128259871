//! Channels, locks and scopes, mini's beside those of tokio, async-channel, flume, kanal, async-lock and futures, all
//! on mini and on tokio.
//!
//! ```console
//! $ cargo bench -p mini-benches -- channels
//! ```
//!
//! Every combination runs once a round, so that a slow minute of the machine meets all of them. `--save` writes
//! `benches/CHANNELS.md`.
//!
//! - *Ping-pong*: two tasks and two channels; a message goes there and back. Nothing else is to do, so each message
//!   finds its receiver waiting. *No channel* is a word and a kept waker, without a locked instruction: what the two
//!   tasks take of a round, whatever they talk through.
//! - *Stream*: one task sends as fast as it can, another one receives.
//! - *Reply*: a task that makes a channel for one answer, and another task that answers.
//! - *Alone*: a task takes a lock and releases it.
//! - *Crowd*: 64 tasks take one lock in turn and hold it while they yield once. Beside it the longest wait for the
//!   lock in rounds of all 64: in time, where each pause of the machine counts, and in locks that others took
//!   meanwhile.
//! - *Scope*: 100 futures in one task, and what one of them costs; beside it `FuturesUnordered` of futures-util.

mod channel;
mod crowd;
mod mutex;

use std::fmt::Write;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use crate::cpus;
use crate::format::{number, value};
use crate::machine::Machine;
use crate::report::{opening, save_page};
use crate::rt::{Flavour, Rt};
use crate::stats::Samples;

pub(crate) const COMMAND: &str = "channels";

/// Operations of a sample: some milliseconds.
const OPERATIONS: u32 = 100_000;

const ROUNDS: usize = 11;

/// What took how long, and the longest wait if that was looked at.
#[derive(Default)]
struct Sample {
    took: Duration,
    longest: LongestWait,
}

/// The longest wait for a lock, in time and in locks that others took meanwhile.
#[derive(Clone, Copy, Default)]
struct LongestWait {
    time: Duration,
    others: u64,
}

impl LongestWait {
    fn note(&mut self, wait: Self) {
        self.time = self.time.max(wait.time);
        self.others = self.others.max(wait.others);
    }
}

/// A primitive under a load, on a runtime.
struct Cell {
    primitive: &'static str,
    run: fn(Flavour) -> io::Result<Sample>,
    nanoseconds: Samples,
    /// In rounds.
    longest: Samples,
    others: Samples,
}

/// A load with its cells: a table.
struct Table {
    name: &'static str,
    cells: Vec<Cell>,
}

fn cell(primitive: &'static str, run: fn(Flavour) -> io::Result<Sample>) -> Cell {
    Cell { primitive, run, nanoseconds: Samples::default(), longest: Samples::default(), others: Samples::default() }
}

fn measure<R: Rt, F>(flavour: Flavour, load: impl FnOnce(u32) -> F) -> io::Result<Sample>
where
    F: Future<Output = Sample> + Send + 'static,
{
    let runtime = R::start(flavour)?;
    let load = load(OPERATIONS);
    // From a task, as a program's own would be.
    Ok(runtime.block_on(async { R::spawn(load).await }))
}

pub(crate) fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let mut is_saved = false;
    for argument in args {
        match argument.as_str() {
            "--save" => is_saved = true,
            "--bench" => {}
            other => {
                eprintln!("unknown argument {other:?}; known is --save");
                return ExitCode::FAILURE;
            }
        }
    }
    match measure_all(is_saved) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("channels: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(is_saved: bool) -> io::Result<()> {
    let mut machine = Machine::examine();
    let mut text = String::new();
    let all = cpus::allowed();
    for (flavour, name, pinned) in
        [(Flavour::CurrentThread, "one thread", &all[..1]), (Flavour::TWO, "two workers", &all[..all.len().min(2)])]
    {
        cpus::bind(pinned)?;
        for mut table in tables() {
            for _ in 0..ROUNDS {
                table.cells.iter_mut().try_for_each(|cell| cell.measure(flavour))?;
            }
            print(&mut text, &table, name);
        }
    }
    machine.finish();
    print!("{text}");
    if is_saved {
        let lead = "Channels, locks and scopes, all on mini and on tokio, interleaved, written";
        let command = ("cargo bench -p mini-benches -- channels --save", false);
        save_page("CHANNELS.md", &opening("Channels, locks and scopes", lead, command, &machine), &text)?;
    }
    Ok(())
}

impl Cell {
    fn measure(&mut self, flavour: Flavour) -> io::Result<()> {
        let sample = (self.run)(flavour)?;
        self.nanoseconds.0.push(sample.took.as_nanos() as f64 / f64::from(OPERATIONS));
        let round = sample.took.as_secs_f64() / f64::from(OPERATIONS) * f64::from(mutex::CROWD);
        self.longest.0.push(sample.longest.time.as_secs_f64() / round);
        self.others.0.push(sample.longest.others as f64 / f64::from(mutex::CROWD));
        Ok(())
    }
}

/// A line for each primitive: on mini, on tokio, and the ratio of mini's own to it on the same runtime.
fn print(text: &mut String, table: &Table, flavour: &str) {
    let has_longest = table.cells.iter().any(|cell| cell.longest.max() > 0.0);
    let longest = if has_longest { " longest wait, rounds | in locks of others |" } else { "" };
    let _ = writeln!(text, "\n## {}, {flavour}\n", table.name);
    let _ = writeln!(text, "| | on mini, ns | mini's / this one | on tokio, ns | mini's / this one |{longest}");
    let _ = writeln!(text, "|---|---:|---:|---:|---:|{}", if has_longest { "---:|---:|" } else { "" });
    for pair in table.cells.chunks(2) {
        let _ = write!(text, "| {} |", pair[0].primitive);
        for (cell, own) in pair.iter().zip(&table.cells) {
            let ratio = own.nanoseconds.ratio_to(&cell.nanoseconds);
            let _ = write!(text, " {} | {} |", value(&cell.nanoseconds), number(ratio.median()));
        }
        if has_longest {
            let [time, others] = [&pair[0].longest, &pair[0].others].map(|rounds| number(rounds.median()));
            let _ = write!(text, " {time} | {others} |");
        }
        let _ = writeln!(text);
    }
}

fn tables() -> Vec<Table> {
    vec![
        Table { name: "Ping-pong, bounded", cells: channel::ping_pong_bounded() },
        Table { name: "Ping-pong, unbounded", cells: channel::ping_pong_unbounded() },
        Table { name: "Stream, bounded", cells: channel::stream_bounded() },
        Table { name: "Stream, unbounded", cells: channel::stream_unbounded() },
        Table { name: "Reply", cells: channel::reply() },
        Table { name: "Lock, alone", cells: mutex::alone() },
        Table { name: "Lock, crowd", cells: mutex::crowd() },
        Table { name: "Scope of 100 children that are ready at once, a child", cells: crowd::waiting::<0>() },
        Table { name: "Scope of 100 children that wait once, a child", cells: crowd::waiting::<1>() },
        Table { name: "Scope of 100 children that wait four times, a child", cells: crowd::waiting::<4>() },
    ]
}
