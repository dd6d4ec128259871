//! The saved results: `benches/RESULTS.md` with the chart beside it. [`markdown`] is pure; [`save`] writes both files.
//!
//! [`save_page`] writes what commands beside the ordinary run have found out (`downloads.rs`, `scale.rs`).

use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::chart;
use crate::harness::Results;
use crate::machine::Machine;
use crate::options::Options;
use crate::table::{self, Table};

/// The charts' files, beside the report.
const CHART: &str = "results.svg";
const SUMMARY: &str = "summary.svg";

/// Writes `RESULTS.md` and the charts into `directory`.
pub(crate) fn save(directory: &Path, results: &Results, machine: &Machine, options: &Options) -> io::Result<()> {
    std::fs::write(directory.join(CHART), chart::svg(&results.measured))?;
    std::fs::write(directory.join(SUMMARY), chart::summary(&results.measured))?;
    std::fs::write(directory.join("RESULTS.md"), markdown(results, machine, options))
}

/// Writes what a command of its own has found out, as a page in `benches/` that begins with an [`opening`].
pub(crate) fn save_page(file: &str, opening: &str, tables: &str) -> io::Result<()> {
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), format!("{opening}\n{tables}"))
}

/// The head of a page: its title, the sentence `lead`, which a command completes, and the facts about the run.
///
/// The command stands beside whether it was a smoke run.
pub(crate) fn opening(title: &str, lead: &str, (command, is_quick): (&str, bool), machine: &Machine) -> String {
    let mut text = format!("# {title}\n\n{lead} by this command:\n\n```console\n$ {command}\n```\n\n");
    if is_quick {
        text.push_str("**A smoke run: the numbers say that everything runs, nothing more.**\n\n");
    }
    for (name, value) in machine.facts() {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text
}

fn markdown(results: &Results, machine: &Machine, options: &Options) -> String {
    let lead = "mini beside its peers, all measured in one interleaved run, written";
    let mut text = opening("Results", lead, (&options.command(), options.quick), machine);
    text.push_str("\nWorkloads that are drawn at random: [LOTTERY.md](LOTTERY.md). ");
    text.push_str("Instructions with many workers: [SCALE.md](SCALE.md).\n");
    text.push_str("Small files beside downloads, with nginx: [DOWNLOADS.md](DOWNLOADS.md).\n");
    let _ = writeln!(text, "\n![mini by the best of the others, row by row]({CHART})\n");
    let _ = writeln!(text, "{}\n{}", table::LEGEND, table::count(&results.measured));
    for table in table::tables(&results.measured) {
        text.push_str(&section(&table));
    }
    let left_out = table::left_out(results);
    if !left_out.is_empty() {
        text.push_str("## Left out\n\n");
        left_out.lines().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    text
}

fn section(table: &Table) -> String {
    let mut text = format!("## {}\n\n", table.group.title());
    let mut head = table.head.clone();
    head[0].clear();
    let _ = writeln!(text, "{}", line(&head));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(head.len() - 1));
    for cells in &table.lines {
        let _ = writeln!(text, "{}", line(cells));
    }
    text.push('\n');
    text
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Absent, Better, Group, Measured, Unit};
    use crate::peer::Peer;
    use crate::stats::Samples;

    #[test]
    fn the_report_has_tables_and_says_who_is_missing() {
        let samples = vec![(Peer::Mini, Samples(vec![1.0; 2])), (Peer::Tokio, Samples(vec![2.0; 2]))];
        let (group, row) = (Group::Timers, "sleep | p99".to_owned());
        let measured = vec![Measured { group, row, unit: Unit::Microseconds, better: Better::Lower, samples }];
        let absent = vec![Absent { row: "sleep".to_owned(), peer: Peer::Monoio, reason: "refused".to_owned() }];
        let options = Options::parse(["--save".to_owned(), "--quick".to_owned()].into_iter()).unwrap();
        let text = markdown(&Results { measured, absent }, &Machine::examine(), &options);
        assert!(text.contains("cargo bench -p mini-benches -- --save --quick\n"), "{text}");
        assert!(text.contains("**A smoke run"), "{text}");
        assert!(
            text.contains("## Timers\n\n|  | unit | mini | tokio | mini/tokio | mini/best |\n|---|---:|"),
            "{text}"
        );
        assert!(text.contains("| sleep \\| p99 | us | 1.00 ±0% | 2.00 ±0% | 0.50 (0.50..0.50) |"), "{text}");
        assert!(text.contains("- left out: monoio (refused) in: sleep"), "{text}");
    }
}
