//! Runs mini for long, under mixed load, and requires that nothing is lost and nothing grows.
//!
//! ```text
//! soak [mix] [--minutes N | --seconds N]   mixed work on both flavours at once, runtimes that come and go
//! soak runtimes [--count N]                N runtimes made and dropped (10,000)
//! soak tasks [--count N]                   N tasks alive at once, on each flavour (1,000,000)
//! soak shutdowns [--count N]               N shutdowns under load (1,000)
//! soak short                               a little of everything, within a minute
//! ```
//!
//! A table at the end; the exit code is 0 if all promises were kept.

use std::process::ExitCode;
use std::time::Duration;

mod actors;
mod gauge;
mod ledger;
mod mix;
mod modes;
mod world;

const MINUTE: Duration = Duration::from_secs(60);

const USAGE: &str = "usage: soak [mix|runtimes|tasks|shutdowns|short] [--minutes N | --seconds N] [--count N]";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let minutes = option(&mut words, "--minutes").map(|minutes| minutes * 60);
    let time = minutes.or(option(&mut words, "--seconds")).map(Duration::from_secs);
    let count = option(&mut words, "--count");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_well = match (&words[..], time, count) {
        ([] | ["mix"], _, None) => mix::run(time.unwrap_or(MINUTE)),
        (["runtimes"], None, _) => modes::runtimes(count.unwrap_or(10_000)),
        (["tasks"], None, _) => modes::tasks(count.unwrap_or(1_000_000)),
        (["shutdowns"], None, _) => modes::shutdowns(count.unwrap_or(1_000)),
        (["short"], None, None) => short(),
        _ => usage(),
    };
    println!("{}", if is_well { "all promises kept" } else { "NOT all promises kept" });
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A little of everything, within a minute.
fn short() -> bool {
    let all = [mix::run(MINUTE / 3), modes::runtimes(500), modes::tasks(50_000), modes::shutdowns(50)];
    all.iter().all(|&is_well| is_well)
}

/// Takes a number and its name out of the arguments.
fn option(words: &mut Vec<String>, name: &str) -> Option<u64> {
    let at = words.iter().position(|word| word == name)?;
    let number = words.get(at + 1).and_then(|word| word.parse().ok()).unwrap_or_else(|| usage());
    words.drain(at..at + 2);
    Some(number)
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2)
}
