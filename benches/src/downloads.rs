//! Small files beside large downloads: the example `http` and nginx, one thread each on one CPU.
//!
//! ```console
//! $ cargo bench -p mini-benches -- downloads
//! ```
//!
//! A client on another CPU keeps 8 or 32 downloads of a cached file going, as fast as the server sends, and asks for a
//! file of 1 KiB now and then. How long this request waits shows how fair the server is. nginx runs with `sendfile`,
//! once with its own `sendfile_max_chunk` (2 MiB) and once with 128 KiB. Takes about a minute, with the build of the
//! example; `--quick` a few seconds.
//!
//! `downloads/server.rs` starts the servers, `downloads/client.rs` is the load. Prints a table in Markdown, with the
//! servers that cannot run here; `--save` writes `benches/DOWNLOADS.md` too. Without the example it fails.
//!
//! Rejected: a row of the ordinary bench. Its columns are runtimes, and nginx is none; the other runtimes have no such
//! server.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::time::Duration;

use crate::cpus;
use crate::format::number;
use crate::machine::Machine;
use crate::report::{opening, save_page};
use crate::stats::Samples;

mod client;
mod server;

use client::Seen;
use server::{Program, Server};

/// The first argument of the program, to come here.
pub(crate) const COMMAND: &str = "downloads";

/// Names and bytes of the files.
const SMALL: (&str, usize) = ("small", 1 << 10);
const LARGE: (&str, usize) = ("large", 64 << 20);

/// Downloads at a time.
const DOWNLOADS: [usize; 2] = [8, 32];

/// What the program does when its first argument is [`COMMAND`]; `args` are those after it.
pub(crate) fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<_> = args.collect();
    let (rounds, span, save) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (5, Duration::from_millis(1500), false),
        ["--save"] => (5, Duration::from_millis(1500), true),
        ["--quick"] => (1, Duration::from_millis(300), false),
        _ => {
            eprintln!("usage: cargo bench -p mini-benches -- {COMMAND} [--quick | --save]");
            return ExitCode::from(2);
        }
    };
    let mut machine = Machine::examine(); // measuring binds this thread
    let saved = |table: String| {
        machine.finish();
        print!("{table}");
        if save { save_table(&table, &machine).map_err(|error| format!("cannot be saved: {error}")) } else { Ok(()) }
    };
    match measure(rounds, span).and_then(saved) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn save_table(table: &str, machine: &Machine) -> io::Result<()> {
    let lead = "A file of 1 KiB beside 8 and 32 downloads over loopback, served by one thread on one CPU;\n\
        medians of the rounds, written";
    let command = format!("cargo bench -p mini-benches -- {COMMAND} --save");
    save_page("DOWNLOADS.md", &opening("Small files beside downloads", lead, (&command, false), machine), table)
}

/// Starts the servers that can run here, asks them in turn, and returns the table, with the missing servers.
fn measure(rounds: usize, span: Duration) -> Result<String, String> {
    let cpus = cpus::allowed();
    let [first, second, ..] = cpus[..] else { return Err("needs two CPUs: one for the server".to_owned()) };
    let root = Root::new().map_err(|error| format!("no files to serve: {error}"))?;
    let (mut servers, mut left_out) = (Vec::new(), Vec::new());
    for program in Program::ALL {
        match Server::start(program, &root.0, first) {
            Ok(server) => servers.push((program, server)),
            Err(reason) if program == Program::Http => return Err(format!("{}: {reason}", program.name())),
            Err(reason) => left_out.push((program, reason)),
        }
    }
    cpus::bind(&[second]).map_err(|error| format!("cannot be pinned: {error}"))?;
    let mut seen = Vec::new();
    for count in DOWNLOADS {
        let mut results = vec![Vec::new(); servers.len()];
        for _ in 0..rounds {
            for ((program, server), results) in servers.iter().zip(&mut results) {
                let found = client::ask(server.port, count, span);
                results.push(found.map_err(|error| format!("{}: {error}", program.name()))?);
            }
        }
        let programs = servers.iter().map(|(program, _)| *program);
        seen.extend(programs.zip(results).map(|(program, results)| (count, program, results)));
    }
    Ok(table(&seen, &left_out))
}

fn table(seen: &[(usize, Program, Vec<Seen>)], left_out: &[(Program, String)]) -> String {
    let mut text = "| downloads | server | small file, p50, ms | p99, ms | downloads, GB/s |\n".to_owned();
    text.push_str("|---:|---|---:|---:|---:|\n");
    for (count, program, results) in seen {
        let median = |value: fn(&Seen) -> f64| number(Samples(results.iter().map(value).collect()).median());
        let (p50, p99, rate) = (median(|seen| seen.p50), median(|seen| seen.p99), median(|seen| seen.rate));
        text.push_str(&format!("| {count} | {} | {p50} | {p99} | {rate} |\n", program.name()));
    }
    for (program, reason) in left_out {
        text.push_str(&format!("\nLeft out: {} ({reason}).\n", program.name()));
    }
    text
}

/// A directory with the files, which goes away with this.
struct Root(PathBuf);

impl Root {
    fn new() -> io::Result<Self> {
        let root = Self(std::env::temp_dir().join(format!("mini-bench-downloads-{}", process::id())));
        fs::create_dir_all(&root.0)?;
        for (name, bytes) in [SMALL, LARGE] {
            fs::write(root.0.join(name), vec![b'x'; bytes])?;
        }
        Ok(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // A directory that is left behind only takes space.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_medians_and_says_what_is_missing() {
        let seen = |p50| Seen { p50, p99: 2.0 * p50, rate: 1.0 };
        let seen = [(8, Program::Http, vec![seen(1.0), seen(5.0), seen(2.0)])];
        let line = "| 8 | `http` | 2.00 | 4.00 | 1.00 |\n";
        assert!(table(&seen, &[]).ends_with(line));
        let text = table(&seen, &[(Program::Nginx, "no such program".to_owned())]);
        assert!(text.ends_with(&format!("{line}\nLeft out: nginx (no such program).\n")), "{text}");
    }
}
