//! What the command line asks for. Parsed once, by [`run`](crate::run).
//!
//! Rejected: an argument parser crate; there are six options.

use std::time::Duration;

use crate::cpus;
use crate::peer::Peer;

/// Printed after a mistake.
pub(crate) const USAGE: &str = "usage: cargo bench -p mini-benches -- \
    [--save] [--quick] [--rounds <number>] [--rows <substring>] \
    [--only <mini|tokio|smol|monoio|monoio-uring|limit>] [--criterion <substring>]";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Table,
    Criterion,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    /// Part of the names of the rows to run; empty for all.
    pub(crate) rows: String,
    pub(crate) only: Option<Peer>,
    pub(crate) rounds: usize,
    /// A smoke run: everything as small as it can be.
    pub(crate) quick: bool,
    /// Write the report beside the printed table.
    pub(crate) save: bool,
    /// How long one sample shall take at least.
    pub(crate) sample: Duration,
    /// The CPUs that the program was given.
    cpus: Vec<usize>,
    /// The arguments, one by one.
    args: Vec<String>,
}

impl Options {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let args: Vec<_> = args.collect();
        let mut options = Self {
            mode: Mode::Table,
            rows: String::new(),
            only: None,
            rounds: 11,
            quick: false,
            save: false,
            sample: Duration::from_millis(25),
            cpus: cpus::allowed(),
            args: Vec::new(),
        };
        if cfg!(debug_assertions) {
            options.hurry(); // a debug build says nothing about speed
        }
        options.args = args.clone();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--quick" => options.hurry(),
                "--save" => options.save = true,
                "--rounds" => options.rounds = parse_rounds(&value()?)?,
                "--rows" => options.rows = value()?,
                "--only" => options.only = Some(Peer::parse(&value()?)?),
                "--criterion" => {
                    options.mode = Mode::Criterion;
                    options.rows = value()?;
                }
                _ => return Err(format!("unknown argument `{arg}`")),
            }
        }
        Ok(options)
    }

    fn hurry(&mut self) {
        self.quick = true;
        self.rounds = 3;
        self.sample = Duration::from_millis(2);
    }

    /// The command that asks for the same again.
    pub(crate) fn command(&self) -> String {
        let quoted = self.args.iter().map(|arg| if arg.contains(' ') { format!("\"{arg}\"") } else { arg.clone() });
        let args: Vec<_> = quoted.collect();
        let separator = if args.is_empty() { "" } else { " -- " };
        format!("cargo bench -p mini-benches{separator}{}", args.join(" "))
    }

    pub(crate) fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    pub(crate) fn wants_row(&self, name: &str) -> bool {
        name.contains(&self.rows)
    }

    pub(crate) fn wants_peer(&self, peer: Peer) -> bool {
        self.only.is_none_or(|only| only == peer)
    }
}

fn parse_rounds(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&rounds| rounds > 0).ok_or_else(|| format!("`{text}` is not a number of rounds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let options = parse("--rows echo --only smol --rounds 5").unwrap();
        assert_eq!((options.only, options.rounds, &options.mode), (Some(Peer::Smol), 5, &Mode::Table));
        assert!(options.wants_row("TCP echo, ct") && !options.wants_row("yield, ct"));
        assert!(options.wants_peer(Peer::Smol) && !options.wants_peer(Peer::Mini));
        assert_eq!(parse("--criterion yield").unwrap().mode, Mode::Criterion);
        let options = parse("--save --quick").unwrap();
        assert!(options.save && options.quick && options.rounds < 7);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("--rows").unwrap_err(), "`--rows` needs a value");
        assert_eq!(parse("--rounds 0").unwrap_err(), "`0` is not a number of rounds");
        assert_eq!(parse("--only rayon").unwrap_err(), "no peer is called `rayon`");
        assert_eq!(parse("fast").unwrap_err(), "unknown argument `fast`");
    }
}
