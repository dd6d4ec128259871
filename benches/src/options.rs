//! What the command line asks for. Parsed once, by [`run`](crate::run).
//!
//! Rejected: an argument parser crate; there are five options.

use std::time::Duration;

use crate::peer::Peer;

/// Printed after a mistake.
pub(crate) const USAGE: &str = "usage: cargo bench -p mini-benches -- \
    [--quick] [--rounds <number>] [--rows <substring>] [--only <mini|tokio|smol>] [--criterion <substring>]";

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
    /// How long one sample shall take at least.
    pub(crate) sample: Duration,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Self { mode: Mode::Table, rows: String::new(), only: None, rounds: 11, sample: Duration::from_millis(25) };
        if cfg!(debug_assertions) {
            options.hurry(); // a debug build says nothing about speed
        }
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--bench" => {} // cargo adds it
                "--quick" => options.hurry(),
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
        self.rounds = 3;
        self.sample = Duration::from_millis(2);
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
        let options = parse("--rows echo --bench --only smol --rounds 5").unwrap();
        assert_eq!((options.only, options.rounds, &options.mode), (Some(Peer::Smol), 5, &Mode::Table));
        assert!(options.wants_row("TCP echo, ct") && !options.wants_row("yield, ct"));
        assert!(options.wants_peer(Peer::Smol) && !options.wants_peer(Peer::Mini));
        assert_eq!(parse("--criterion yield").unwrap().mode, Mode::Criterion);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("--rows").unwrap_err(), "`--rows` needs a value");
        assert_eq!(parse("--rounds 0").unwrap_err(), "`0` is not a number of rounds");
        assert_eq!(parse("--only rayon").unwrap_err(), "no peer is called `rayon`");
        assert_eq!(parse("fast").unwrap_err(), "unknown argument `fast`");
    }
}
