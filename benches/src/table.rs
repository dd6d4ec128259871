//! The result as text: a line per row, medians with their spread, and what mini needs per peer. Pure.
//!
//! Rejected: the ratio of the medians. The median of the ratios round by round is steadier on a busy machine.

use std::fmt::Write;

use crate::harness::Measured;
use crate::peer::Peer;
use crate::stats::Samples;

/// Width of the columns: the row's name, a peer, a ratio.
const WIDTHS: (usize, usize, usize) = (32, 23, 20);

/// The table, with a legend and a final line that counts the rows.
pub(crate) fn render(results: &[Measured]) -> String {
    let (name, peer, ratio) = WIDTHS;
    let mut text = format!("{:name$}", "ns per operation");
    for column in Peer::ALL {
        let _ = write!(text, " | {:>peer$}", column.name());
    }
    let _ = writeln!(text, " | {:>ratio$} | {:>ratio$}", "mini/tokio", "mini/best");
    for result in results {
        let _ = writeln!(text, "{}", line(result));
    }
    text.push_str(
        "\nmedian (min..max) of the rounds; ratios are medians of the ratios round by round, below 1 mini is ",
    );
    text.push_str("faster;\nbest is the faster one of tokio and smol.\n");
    let ratios: Vec<_> = results.iter().filter_map(ratio_to_best).collect();
    if !ratios.is_empty() {
        let ahead = ratios.iter().filter(|ratio| ratio.max() < 1.0).count();
        let behind = ratios.iter().filter(|ratio| ratio.min() > 1.0).count();
        let open = ratios.len() - ahead - behind;
        let _ = writeln!(
            text,
            "mini against the best, in every round: ahead in {ahead} rows, behind in {behind}; {open} open"
        );
    }
    text
}

fn line(result: &Measured) -> String {
    let (name, peer, ratio) = WIDTHS;
    let mut text = format!("{:name$}", result.row);
    for column in Peer::ALL {
        let digits = if samples_of(result, column).is_some_and(|samples| samples.median() < 1000.0) { 1 } else { 0 };
        let _ = write!(text, " | {:>peer$}", cell(samples_of(result, column), digits));
    }
    let to_tokio = ratio_to(result, Peer::Tokio);
    let _ = write!(text, " | {:>ratio$}", cell(to_tokio.as_ref(), ratio_digits(to_tokio.as_ref())));
    let to_best = ratio_to_best(result);
    let _ = write!(text, " | {:>ratio$}", cell(to_best.as_ref(), ratio_digits(to_best.as_ref())));
    text
}

/// Two digits, three for a ratio that two would round to nearly nothing.
fn ratio_digits(ratio: Option<&Samples>) -> usize {
    if ratio.is_some_and(|ratio| ratio.median() < 0.1) { 3 } else { 2 }
}

fn cell(samples: Option<&Samples>, digits: usize) -> String {
    let Some(samples) = samples else { return "-".to_owned() };
    format!("{:.digits$} ({:.digits$}..{:.digits$})", samples.median(), samples.min(), samples.max())
}

fn samples_of(result: &Measured, peer: Peer) -> Option<&Samples> {
    result.samples.iter().find(|(who, _)| *who == peer).map(|(_, samples)| samples)
}

/// What mini needs per what `peer` needs.
fn ratio_to(result: &Measured, peer: Peer) -> Option<Samples> {
    Some(samples_of(result, Peer::Mini)?.ratio_to(samples_of(result, peer)?))
}

/// The same for the fastest peer; `None` if mini, or all of the others, did not take part.
fn ratio_to_best(result: &Measured) -> Option<Samples> {
    let others = result.samples.iter().filter(|(peer, _)| *peer != Peer::Mini);
    let (best, _) = others.min_by(|(_, a), (_, b)| a.median().total_cmp(&b.median()))?;
    ratio_to(result, *best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(samples: &[(Peer, [f64; 2])]) -> Measured {
        let samples = samples.iter().map(|(peer, values)| (*peer, Samples(values.to_vec()))).collect();
        Measured { row: "yield".to_owned(), samples }
    }

    #[test]
    fn the_best_peer_is_the_faster_one() {
        let result = measured(&[(Peer::Mini, [2.0, 4.0]), (Peer::Tokio, [8.0, 8.0]), (Peer::Smol, [4.0, 4.0])]);
        let text = render(&[result]);
        assert!(text.contains("3.0 (2.0..4.0)"), "{text}");
        assert!(text.contains("0.38 (0.25..0.50) |    0.75 (0.50..1.00)"), "{text}");
        assert!(text.contains("ahead in 0 rows, behind in 0; 1 open"), "{text}");
    }

    #[test]
    fn a_peer_that_did_not_run_leaves_its_cells_open() {
        let text = render(&[measured(&[(Peer::Tokio, [8.0, 8.0])])]);
        let row = text.lines().nth(1).unwrap();
        assert_eq!(row.matches(" - |").count() + usize::from(row.ends_with(" -")), 4, "{row}");
        assert!(!text.contains("ahead"), "{text}");
    }
}
