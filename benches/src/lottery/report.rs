//! The results of a lottery as text: one seed in all its figures, the table of all seeds, and `LOTTERY.md`. Pure.

use std::fmt::Write;
use std::time::Duration;

use super::draw::{Draw, Kind};
use super::outcome::FIGURES;
use super::round::{FLAVOURS, RUNNERS, Round};
use super::spread::{Spread, at};
use crate::format::number;
use crate::machine::Machine;
use crate::report::opening;

/// The chart's file, beside the report.
pub(super) const CHART: &str = "lottery.svg";

const LEGEND: &str = "\
A seed draws kinds of tasks, their numbers, their runs (100 ns to 20 ms), when each shall run and the load; the same
program runs on each runtime, in a process of its own. Events come at their times whatever the runtime does, latencies
count from those times, and an event that is not reached counts as late as it is at the end. Ratios are mini's figure by
that of the best of tokio and smol in this seed, all medians of the rounds; `again` is mini by itself, in other runs of
the same seed. `p90`: 90 % of the seeds are no worse.

- wakes: latency of whatever was woken by a socket, a timer, a channel, a thread, a job, or was spawned. All events but
  those of `request` and `thread` begin with a timer of the runtime, whose lateness is part of the latency.
- completion of jobs: mean time from the arrival of a computing job, which yields between its runs, to its end.
- work done: by the end, in all and by computing jobs. More is better: the worst seed has the lowest ratio.
- CPU time per work: of the process, in the program and in the kernel. The best is mostly tokio, whose timers come
  together, once a millisecond: fewer waits, and later ones.

`ct`: one thread on one CPU. `mt`: two workers on two CPUs.
";

const HEAD: [&str; 9] =
    ["", "seeds", "median", "p90", "worst", "its seed", "not behind in", "again, median", "again, worst"];

/// A seed: what was drawn, and what each runtime made of it.
pub(super) fn seed(rounds: &[Round], span: Duration) -> String {
    let mut text = String::new();
    for round in rounds {
        let found = FLAVOURS.iter().find(|(_, name, _)| *name == round.flavour);
        let cpus = found.map_or(1, |(_, _, cpus)| *cpus);
        let _ = writeln!(text, "{}: {}", round.flavour, Draw::new(round.seed, cpus, span));
        let _ = write!(text, "{:<28}", "");
        for runner in RUNNERS {
            let _ = write!(text, "{:>12}", runner.name());
        }
        text.push_str("    mini/best  mini/again\n");
        for (index, figure) in FIGURES.iter().enumerate() {
            let values = round.outcomes.each_ref().map(|outcome| outcome.figures[index]);
            let _ = write!(text, "{}", values_line(&format!("{}, {}", figure.suffix, figure.unit.label()), &values));
            for ratio in [round.ratio(index), round.noise(index)] {
                let _ = write!(text, "{:>12}", ratio.map_or_else(|| "-".to_owned(), number));
            }
            text.push('\n');
        }
        for (index, kind) in Kind::ALL.iter().enumerate() {
            for (column, name) in [(1, "p50"), (2, "p99")] {
                let values = round.outcomes.each_ref().map(|outcome| outcome.kinds[index][column]);
                if !values[0].is_nan() {
                    let _ = writeln!(text, "{}", values_line(&format!("  {} {name}, us", kind.name()), &values));
                }
            }
        }
        text.push('\n');
    }
    text
}

fn values_line(name: &str, values: &[f64]) -> String {
    let mut text = format!("{name:<28}");
    for value in values {
        let value = if value.is_nan() { "-".to_owned() } else { number(*value) };
        let _ = write!(text, "{value:>12}");
    }
    text
}

/// The tables of all seeds, in Markdown.
pub(super) fn tables(spreads: &[Spread]) -> String {
    let mut text = String::new();
    for (is_overload, title) in [(false, "Load up to 90 %"), (true, "Overload: more than 90 %")] {
        let mine: Vec<_> = spreads.iter().filter(|spread| spread.is_overload == is_overload).collect();
        if mine.is_empty() {
            continue;
        }
        let _ = writeln!(text, "## {title}\n\n| {} |\n|---|{}", HEAD.join(" | "), "---:|".repeat(HEAD.len() - 1));
        for spread in mine {
            let _ = writeln!(text, "| {} |", cells(spread).join(" | "));
        }
        text.push('\n');
    }
    text
}

fn cells(spread: &Spread) -> [String; HEAD.len()] {
    let ratio = |percent| number(at(&spread.ratios, percent).0);
    let again = |percent| if spread.noise.is_empty() { "-".to_owned() } else { number(at(&spread.noise, percent).0) };
    [
        format!("{}, {}", FIGURES[spread.figure].suffix, spread.flavour),
        spread.ratios.len().to_string(),
        ratio(50.0),
        ratio(90.0),
        ratio(100.0),
        at(&spread.ratios, 100.0).1.to_string(),
        format!("{:.0} %", 100.0 * spread.share()),
        again(50.0),
        again(100.0),
    ]
}

/// `LOTTERY.md`.
pub(super) fn markdown(
    spreads: &[Spread],
    machine: &Machine,
    (command, is_quick): (&str, bool),
    left_out: &[String],
) -> String {
    let lead = "Workloads that nobody chose, on mini and its peers, drawn and written";
    let command = format!("cargo bench -p mini-benches -- {command}");
    let mut text = opening("The lottery", lead, (&command, is_quick), machine);
    let _ = writeln!(text, "\n![ratios of all seeds, sorted, figure by figure]({CHART})\n\n{LEGEND}");
    text.push_str("`lottery --seed N` shows a seed: what was drawn, and all figures.\n");
    text.push_str("The rows that were chosen are in [RESULTS.md](RESULTS.md).\n\n");
    text.push_str(&tables(spreads));
    if !left_out.is_empty() {
        text.push_str("## Left out\n\n");
        for reason in left_out {
            let _ = writeln!(text, "- {reason}");
        }
    }
    text
}
