//! Measures mini beside tokio and smol: same workloads, same compiler settings, same run.
//!
//! Called by `benches/runtimes.rs`, that is by `cargo bench -p mini-benches`. [`run`] takes the arguments:
//!
//! - nothing: every row, interleaved rounds, and at the end the table of medians and ratios.
//! - `--quick`: a smoke run of a few seconds. Its numbers say that everything runs, nothing more.
//! - `--rows <substring>`: only the rows whose name contains it (`ct` and `mt` select a flavour).
//! - `--rounds <number>`: that many rounds instead of 11.
//! - `--only <mini|tokio|smol>`: one runtime alone, for a profiler or `strace -f -c`; then also prints how many
//!   operations ran, to divide by.
//! - `--criterion <substring>`: the matching rows under criterion instead, for work on one row.
//!
//! Trust ratios of one run only; absolute times belong to the machine, and to its load at that minute. Pin the process
//! (`taskset -c 0` for the `ct` rows, `taskset -c 0,1` for the `mt` rows): where the two threads sit decides what a
//! wake costs. The head of the output says what the run had.
//!
//! Rejected: criterion for the default run. It measures one runtime to its end, then the next; on a shared machine
//! the minutes between them differ more than the runtimes do.

mod developer;
mod harness;
mod machine;
mod options;
mod peer;
mod rt;
mod stats;
mod table;
mod workload;

use std::process::ExitCode;

use options::{Mode, Options};

/// Runs what `args` ask for and prints the result; a mistake in them is said on stderr.
///
/// # Panics
///
/// If the system refuses a thread or a socket, or a workload comes to a wrong result.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    match Options::parse(args).and_then(|options| print_results(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}\n{}", options::USAGE);
            ExitCode::from(2)
        }
    }
}

fn print_results(options: &Options) -> Result<(), String> {
    let rows: Vec<_> = workload::rows().into_iter().filter(|row| options.wants_row(row.name())).collect();
    if rows.is_empty() {
        return Err(format!("no row matches `{}`", options.rows));
    }
    print!("{}", machine::describe());
    match options.mode {
        Mode::Criterion => developer::run(&rows, options),
        Mode::Table => print!("{}", table::render(&harness::measure(&rows, options))),
    }
    Ok(())
}
