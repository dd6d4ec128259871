//! Workloads that nobody chose: drawn from a seed, run on mini, tokio and smol, and compared over many seeds.
//!
//! ```console
//! $ cargo bench -p mini-benches -- lottery --seeds 100 --save
//! $ cargo bench -p mini-benches -- lottery --seed 17
//! ```
//!
//! The rows of `workload.rs` were chosen by somebody, and a scheduler can be tuned to them; new seeds can be drawn at
//! any time. A hundred take about twenty minutes.
//!
//! - `--seeds <number>`: how many seeds; 20 if not told otherwise.
//! - `--from <number>`: the first seed; 1 if not told otherwise.
//! - `--rounds <number>`: how often each runtime runs a seed; the figures are medians. 3 if not told otherwise.
//! - `--seed <number>`: this one alone, with what was drawn and all figures.
//! - `--save`: writes `benches/LOTTERY.md` and `benches/lottery.svg` too.
//! - `--quick`: a tenth of the time for each run. The numbers then say that everything runs.
//!
//! # From a seed to a line
//!
//! `random.rs` has the numbers, `draw.rs` makes a workload of them. `round.rs` runs it on each runtime in a process of
//! its own, where `tasks.rs` and `outside.rs` do what was drawn, on the clock of `stage.rs`. `outcome.rs` is what came
//! of it, `spread.rs` the ratios of all seeds; `report.rs` and `chart.rs` show them.
//!
//! Runs compute a number of steps that takes the drawn time on this machine when nobody interferes (`load.rs`). Steps
//! are the same work for all, also where threads share a CPU; a run that ended by the clock would get less done the
//! more often it is preempted, and a runtime with too many threads would look quick.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::load::Load;
use crate::machine::Machine;

mod chart;
mod draw;
mod outcome;
mod outside;
mod report;
mod round;
mod spread;
mod stage;
mod tasks;

use round::{FLAVOURS, Round};
use spread::Spread;

/// The first argument of the program, to come here.
pub(crate) const COMMAND: &str = "lottery";

/// The first argument of a process that runs a seed on one runtime.
pub(crate) const CHILD: &str = "--lottery";

const USAGE: &str = "usage: cargo bench -p mini-benches -- lottery \
    [--seeds <number>] [--from <number>] [--rounds <number>] [--seed <number>] [--save] [--quick]";

/// How long a runtime works on a seed.
const SPAN: Duration = Duration::from_millis(400);

#[derive(Debug, PartialEq)]
struct Options {
    first: u64,
    count: u64,
    rounds: u64,
    /// One seed, in detail.
    is_detailed: bool,
    save: bool,
    quick: bool,
    command: String,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let args: Vec<_> = args.collect();
        let command = std::iter::once(COMMAND).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        let quick = cfg!(debug_assertions); // a debug build says nothing about speed
        let mut options = Self { first: 1, count: 20, rounds: 3, is_detailed: false, save: false, quick, command };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                let value = args.next().ok_or_else(|| format!("`{arg}` needs a value"))?;
                value.parse().map_err(|_| format!("`{value}` is not a number"))
            };
            match arg.as_str() {
                "--seeds" => options.count = number()?,
                "--rounds" => options.rounds = number()?,
                "--from" => options.first = number()?,
                "--seed" => (options.first, options.count, options.is_detailed) = (number()?, 1, true),
                "--save" => options.save = true,
                "--quick" => options.quick = true,
                _ => return Err(format!("unknown argument `{arg}`")),
            }
        }
        match options {
            Options { count: 0, .. } => Err("no seed, no lottery".to_owned()),
            Options { rounds: 0, .. } => Err("no round, no figure".to_owned()),
            options => Ok(options),
        }
    }

    fn span(&self) -> Duration {
        if self.quick { SPAN / 10 } else { SPAN }
    }
}

/// What the program does when its first argument is [`COMMAND`]; `args` are those after it.
pub(crate) fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut machine = Machine::examine();
    println!("{}", machine.describe());
    let (rounds, left_out) = play(&options);
    machine.finish();
    if options.is_detailed {
        print!("{}", report::seed(&rounds, options.span()));
    } else {
        print!("{}", report::tables(&Spread::all(&rounds)));
    }
    left_out.iter().for_each(|reason| println!("left out: {reason}"));
    if options.save
        && let Err(error) = save(&rounds, &machine, &options, &left_out)
    {
        eprintln!("cannot be saved: {error}");
        return ExitCode::FAILURE;
    }
    if left_out.iter().any(|reason| reason.starts_with("mini")) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The rounds of all seeds, and why some are missing.
fn play(options: &Options) -> (Vec<Round>, Vec<String>) {
    let load = Load::calibrate(options.quick);
    let (mut rounds, mut left_out) = (Vec::new(), Vec::new());
    for seed in options.first..options.first.saturating_add(options.count) {
        eprint!("\rseed {seed}");
        for flavour in 0..FLAVOURS.len() {
            match Round::play(seed, flavour, options.rounds, options.span(), load) {
                Ok(round) => rounds.push(round),
                Err(reason) => left_out.push(reason),
            }
        }
    }
    eprintln!();
    (rounds, left_out)
}

fn save(rounds: &[Round], machine: &Machine, options: &Options, left_out: &[String]) -> std::io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let spreads = Spread::all(rounds);
    fs::write(directory.join(report::CHART), chart::svg(&spreads))?;
    fs::write(
        directory.join("LOTTERY.md"),
        report::markdown(&spreads, machine, (&options.command, options.quick), left_out),
    )
}

/// What the program does when its first argument is [`CHILD`]; `args` are those after it.
pub(crate) fn child(args: impl Iterator<Item = String>) -> ExitCode {
    match round::child(&args.collect::<Vec<_>>()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let options = parse("--save --seeds 7 --rounds 5 --from 3").unwrap();
        assert_eq!((options.first, options.count, options.rounds), (3, 7, 5));
        assert_eq!((options.save, options.is_detailed), (true, false));
        assert_eq!(options.command, "lottery --save --seeds 7 --rounds 5 --from 3");
        let options = parse("--seed 17").unwrap();
        assert_eq!((options.first, options.count, options.is_detailed), (17, 1, true));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("--seeds").unwrap_err(), "`--seeds` needs a value");
        assert_eq!(parse("--seed x").unwrap_err(), "`x` is not a number");
        assert_eq!(parse("--rounds 0").unwrap_err(), "no round, no figure");
        assert_eq!(parse("--seeds 0").unwrap_err(), "no seed, no lottery");
        assert_eq!(parse("twice").unwrap_err(), "unknown argument `twice`");
    }
}
