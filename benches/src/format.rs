//! Numbers as text, for the table, the report and the chart. Pure.

use crate::measured::{Measured, Verdict};
use crate::peer::Peer;
use crate::stats::Samples;

/// Three digits or so: 0.0012, 0.012, 0.12, 1.23, 12.3, 123, 12,345.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        tiny if tiny < 0.00095 => 5,
        tiny if tiny < 0.0095 => 4,
        small if small < 0.0995 => 3,
        small if small < 9.995 => 2,
        medium if medium < 99.95 => 1,
        _ => 0,
    };
    group_thousands(&format!("{value:.digits$}"))
}

fn group_thousands(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let whole = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut text = sign.to_owned();
    for (index, digit) in digits[..whole].char_indices() {
        if index > 0 && (whole - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + &digits[whole..]
}

/// The median, and how far the rounds lie apart: half of the range between the extremes, by the median.
pub(crate) fn value(samples: &Samples) -> String {
    let median = samples.median();
    let spread = (samples.max() - samples.min()) / 2.0 / median.abs().max(f64::MIN_POSITIVE);
    format!("{} ±{:.0}%", number(median), 100.0 * spread)
}

/// The median of the ratio to `peer` with its extremes; `tie` if the rounds do not agree who is better.
pub(crate) fn ratio(measured: &Measured, peer: Peer) -> Option<String> {
    let ratio = measured.ratio_to(peer)?;
    let tie = if measured.verdict(&ratio) == Verdict::Tie { " tie" } else { "" };
    Some(format!("{} ({}..{}){tie}", number(ratio.median()), number(ratio.min()), number(ratio.max())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Better, Group, Unit};

    #[test]
    fn numbers_have_about_three_digits() {
        let texts = [0.000_438, 0.001_26, 0.0123, 0.0, 1.234, 9.996, 12.34, 99.96].map(number);
        assert_eq!(texts, ["0.00044", "0.0013", "0.012", "0", "1.23", "10.0", "12.3", "100"]);
        let texts = [1234.5, 1_234_567.8, -4321.0, f64::INFINITY].map(number);
        assert_eq!(texts, ["1,234", "1,234,568", "-4,321", "inf"]);
    }

    #[test]
    fn a_ratio_around_one_is_a_tie() {
        let samples = vec![
            (Peer::Mini, Samples(vec![2.0, 4.0])),
            (Peer::Tokio, Samples(vec![3.0, 3.0])),
            (Peer::Smol, Samples(vec![8.0, 8.0])),
        ];
        let measured =
            Measured { group: Group::Tasks, row: String::new(), unit: Unit::Bytes, better: Better::Lower, samples };
        assert_eq!(value(&measured.samples[0].1), "3.00 ±33%");
        assert_eq!(ratio(&measured, Peer::Tokio).unwrap(), "1.00 (0.67..1.33) tie");
        assert_eq!(ratio(&measured, Peer::Smol).unwrap(), "0.38 (0.25..0.50)");
        assert_eq!(ratio(&measured, Peer::Monoio), None);
    }
}
