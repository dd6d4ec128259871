//! The results as lines of cells: medians with their spread, and mini's ratios. Pure.
//!
//! [`Table`] is what the printed table and the Markdown tables of `report.rs` have in common; [`render`] prints.
//!
//! Rejected: the ratio of the medians. The median of the ratios round by round is steadier on a busy machine.

use std::fmt::Write;

use crate::format;
use crate::harness::Results;
use crate::measured::{Group, Measured, Verdict};
use crate::peer::Peer;

/// How to read a table.
pub(crate) const LEGEND: &str = "\
Each value is the median of the rounds, then half of the range between the extremes. Ratios are mini's figure by the
other's, as measured, taken round by round: their median (min..max). `tie`: the rounds do not agree who is better.
`best` is the runtime, other than mini, with the best median; `limit` is a bare epoll loop,
or, for the lateness of a sleep, a thread that sleeps.
`ct`: current_thread, one CPU. `mt`: multi_thread with 2 workers on 2 CPUs. monoio has one thread per runtime: no `mt`.
`mt 1`: multi_thread with one worker on one CPU. `per core`: mini's `PerCore` with one core, the others as for `ct`.
";

/// The rows of one group.
pub(crate) struct Table {
    pub(crate) group: Group,
    pub(crate) head: Vec<String>,
    pub(crate) lines: Vec<Vec<String>>,
}

/// A table for each group that has rows; a column for each peer that took part in one of them.
pub(crate) fn tables(measured: &[Measured]) -> Vec<Table> {
    let of_group = |group| measured.iter().filter(move |line| line.group == group).collect::<Vec<_>>();
    let tables = Group::ALL.into_iter().map(|group| table(group, &of_group(group)));
    tables.filter(|table| !table.lines.is_empty()).collect()
}

fn table(group: Group, measured: &[&Measured]) -> Table {
    let ran = |peer: &Peer| measured.iter().any(|line| line.samples_of(*peer).is_some());
    let peers: Vec<_> = Peer::ALL.into_iter().filter(ran).collect();
    let has_limit = peers.contains(&Peer::Limit);
    let mut head = vec![group.title().to_owned(), "unit".to_owned()];
    head.extend(peers.iter().map(|peer| peer.name().to_owned()));
    head.extend(["mini/tokio".to_owned(), "mini/best".to_owned()]);
    if has_limit {
        head.push("mini/limit".to_owned());
    }
    let cells = |line: &&Measured| {
        let mut cells = vec![line.row.clone(), line.unit.label().to_owned()];
        cells.extend(peers.iter().map(|&peer| line.samples_of(peer).map_or_else(dash, format::value)));
        cells.push(format::ratio(line, Peer::Tokio).unwrap_or_else(dash));
        cells.push(line.best().and_then(|best| format::ratio(line, best)).unwrap_or_else(dash));
        if has_limit {
            cells.push(format::ratio(line, Peer::Limit).unwrap_or_else(dash));
        }
        cells
    };
    Table { group, head, lines: measured.iter().map(cells).collect() }
}

fn dash() -> String {
    "-".to_owned()
}

/// All tables as text, with the legend, the peers that were left out, and a last line that counts.
pub(crate) fn render(results: &Results) -> String {
    let mut text = String::new();
    for table in tables(&results.measured) {
        text.push_str(&align(&table));
        text.push('\n');
    }
    text.push_str(LEGEND);
    text.push_str(&left_out(results));
    text.push_str(&count(&results.measured));
    text
}

/// Columns as wide as their widest cell; the first one to the left, the others to the right.
fn align(table: &Table) -> String {
    let rows = || std::iter::once(&table.head).chain(&table.lines);
    let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..table.head.len()).map(width).collect();
    let mut text = String::new();
    for row in rows() {
        let _ = write!(text, "{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, " | {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

/// A line for each peer that was left out somewhere and each reason, with the rows.
pub(crate) fn left_out(results: &Results) -> String {
    let mut text = String::new();
    let mut seen = Vec::new();
    for absent in &results.absent {
        let key = (absent.peer, &absent.reason);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let same = results.absent.iter().filter(|other| (other.peer, &other.reason) == key);
        let rows: Vec<_> = same.map(|absent| absent.row.as_str()).collect();
        let _ = writeln!(text, "left out: {} ({}) in: {}", absent.peer.name(), absent.reason, rows.join("; "));
    }
    text
}

/// How often mini is ahead of the best, in words.
pub(crate) fn count(measured: &[Measured]) -> String {
    let verdict = |line: &Measured| line.best().and_then(|best| line.ratio_to(best)).map(|ratio| line.verdict(&ratio));
    let verdicts: Vec<_> = measured.iter().filter_map(verdict).collect();
    if verdicts.is_empty() {
        return String::new();
    }
    let number_of = |wanted| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    let (ahead, tie, behind) = (number_of(Verdict::Ahead), number_of(Verdict::Tie), number_of(Verdict::Behind));
    format!("mini against the best of the others: ahead in {ahead} lines, tie in {tie}, behind in {behind}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Absent, Better, Unit};
    use crate::stats::Samples;

    fn line(group: Group, row: &str, samples: &[(Peer, [f64; 2])]) -> Measured {
        let samples = samples.iter().map(|(peer, values)| (*peer, Samples(values.to_vec()))).collect();
        Measured { group, row: row.to_owned(), unit: Unit::Nanoseconds, better: Better::Lower, samples }
    }

    #[test]
    fn columns_are_those_that_ran() {
        let yields = line(Group::Tasks, "yield", &[(Peer::Mini, [2.0, 4.0]), (Peer::Smol, [4.0, 4.0])]);
        let echo = line(Group::Sockets, "echo", &[(Peer::Mini, [2.0, 2.0]), (Peer::Limit, [1.0, 1.0])]);
        let tables = tables(&[echo, yields]);
        assert_eq!(tables[0].head, ["Tasks", "unit", "mini", "smol", "mini/tokio", "mini/best"]);
        assert_eq!(tables[0].lines[0][2..], ["3.00 ±33%", "4.00 ±0%", "-", "0.75 (0.50..1.00) tie"]);
        assert_eq!(tables[1].head[4..], ["mini/tokio", "mini/best", "mini/limit"]);
        assert_eq!(tables[1].lines[0][4..], ["-", "-", "2.00 (2.00..2.00)"]);
    }

    #[test]
    fn who_was_left_out_is_said_once_for_each_reason() {
        let absent = |row: &str, reason: &str| Absent {
            row: row.to_owned(),
            peer: Peer::MonoioUring,
            reason: reason.to_owned(),
        };
        let absent = vec![absent("yield", "refused"), absent("hop", "hangs"), absent("echo", "refused")];
        let text = left_out(&Results { measured: Vec::new(), absent });
        let expected = "left out: monoio-uring (refused) in: yield; echo\nleft out: monoio-uring (hangs) in: hop\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_last_line_counts_the_verdicts() {
        let won = line(Group::Tasks, "won", &[(Peer::Mini, [1.0, 1.0]), (Peer::Tokio, [2.0, 2.0])]);
        let lost = line(Group::Tasks, "lost", &[(Peer::Mini, [3.0, 3.0]), (Peer::Tokio, [2.0, 2.0])]);
        let alone = line(Group::Tasks, "alone", &[(Peer::Mini, [3.0, 3.0])]);
        assert!(count(&[won, lost, alone.clone()]).ends_with("ahead in 1 lines, tie in 0, behind in 1\n"));
        assert_eq!(count(&[alone]), "");
    }

    #[test]
    fn printed_columns_line_up() {
        let measured = vec![line(Group::Tasks, "a long name", &[(Peer::Mini, [2000.0, 4000.0])])];
        let text = render(&Results { measured, absent: Vec::new() });
        let bars = |line: &str| line.match_indices('|').map(|(at, _)| line[..at].chars().count()).collect::<Vec<_>>();
        let lines: Vec<_> = text.lines().take(2).collect();
        assert_eq!(bars(lines[0]), bars(lines[1]), "{text}");
    }
}
