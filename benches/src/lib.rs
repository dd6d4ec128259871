//! Measures mini beside tokio, smol and monoio: same workloads, same compiler settings, same run.
//!
//! One command measures everything, pins what it measures, prints the tables and writes `benches/RESULTS.md` with its
//! chart (less than half an hour on two CPUs; leave the machine alone meanwhile):
//!
//! ```console
//! $ cargo bench -p mini-benches -- --save
//! ```
//!
//! Called by `benches/runtimes.rs`, that is by `cargo bench -p mini-benches`. [`run`] takes the arguments:
//!
//! - nothing: every row, interleaved rounds, and at the end the tables of medians and ratios.
//! - `--save`: writes them to `benches/RESULTS.md` with its charts too.
//! - `--quick`: a smoke run of less than a minute. Its numbers say that everything runs, nothing more.
//! - `--rows <substring>`: only the rows whose name contains it (`", ct"` and `", mt"` select a flavour).
//! - `--rounds <number>`: that many rounds instead of 11 (long rows have 7 at most).
//! - `--only <peer>`: one runtime alone, its workloads in this very process, for a profiler or `strace -f -c`; then
//!   also prints how many operations ran, to divide by.
//! - `--criterion <substring>`: the matching rows under criterion instead, for work on one row.
//! - `lottery`: workloads that are drawn at random instead; see `lottery.rs`.
//! - `downloads`: the example `http` and nginx, small files beside large ones; see `downloads.rs`.
//! - `channels`: channels, locks and scopes; see `channels.rs`.
//! - `scale`: instructions per operation with up to 64 workers; see `scale.rs`.
//!
//! Trust ratios of one run only; absolute times belong to the machine, and to its load at that minute. Linux only.
//!
//! # From a row to a line
//!
//! `workload.rs` lists the rows, `rt.rs` is what a runtime must offer them. `lane.rs` runs a peer's share of a row in a
//! process of its own, `gauge.rs` there takes the samples, `harness.rs` asks for them in turn. `process.rs` has the
//! rows that need more than one process per sample. `measured.rs` is the data; `table.rs`, `report.rs` and `chart.rs`
//! show it.
//!
//! Rejected: criterion for the default run. It measures one runtime to its end, then the next; on a shared machine
//! the minutes between them differ more than the runtimes do.

mod channels;
mod chart;
mod clock;
mod cpus;
mod developer;
mod downloads;
mod format;
mod gauge;
mod harness;
mod lane;
mod load;
mod lottery;
mod machine;
mod measured;
mod options;
mod peer;
mod picture;
mod process;
pub mod random;
mod report;
mod rt;
mod scale;
mod stats;
mod table;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use harness::Results;
use load::Load;
use machine::Machine;
use options::{Mode, Options};
use peer::Peer;

/// Runs what `args` ask for and prints the result; a mistake in them is said on stderr.
///
/// Fails also if mini itself could not run a row; a peer that cannot run here is only reported.
///
/// # Panics
///
/// If the system refuses a thread or a socket, or a workload comes to a wrong result.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let mut args = args.filter(|arg| arg != "--bench"); // cargo adds it
    let first = args.next();
    match first.as_deref() {
        Some("--child") => return process::child(args),
        Some(lane::ARGUMENT) => return lane::serve(args),
        Some(lottery::CHILD) => return lottery::child(args),
        Some(lottery::COMMAND) => return lottery::run(args),
        Some(downloads::COMMAND) => return downloads::run(args),
        Some(scale::CHILD) => return scale::child(args),
        Some(channels::COMMAND) => return channels::run(args),
        Some(scale::COMMAND) => return scale::run(args),
        _ => {}
    }
    match Options::parse(first.into_iter().chain(args)).and_then(|options| run_rows(&options)) {
        Ok(results) if results.absent.iter().any(|absent| absent.peer == Peer::Mini) => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}\n{}", options::USAGE);
            ExitCode::from(2)
        }
    }
}

fn run_rows(options: &Options) -> Result<Results, String> {
    let rows: Vec<_> = workload::rows().into_iter().filter(|row| options.wants_row(row.name())).collect();
    let mut process_rows = process::rows(options);
    process_rows.retain(|row| options.wants_row(&row.name));
    if rows.is_empty() && process_rows.is_empty() {
        return Err(format!("no row matches `{}`", options.rows));
    }
    let mut machine = Machine::examine();
    let load = Load::calibrate(options.quick);
    println!("{}", machine.describe());
    if options.mode == Mode::Criterion {
        developer::run(&rows, load, options)?;
        return Ok(Results::default());
    }
    let results = harness::measure(&rows, &process_rows, load, options);
    machine.finish();
    print!("{}", table::render(&results));
    if options.save {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let saved = report::save(directory, &results, &machine, options);
        saved.map_err(|error| format!("cannot write to {}: {error}", directory.display()))?;
    }
    Ok(results)
}
