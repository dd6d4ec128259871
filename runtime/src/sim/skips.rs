//! `Skips`: the numbers of the faults that a run leaves out, and how they are written.

use std::fmt;
use std::ops::RangeInclusive;

/// Ranges of numbers, in order and apart from each other. As text: `1-6,8,20-`, where the last one has no end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Skips(Vec<RangeInclusive<u64>>);

impl Skips {
    /// All but `kept`, which are in order; those too that would only be met without the others.
    pub(super) fn all_but(kept: &[u64]) -> Self {
        let begins = std::iter::once(1).chain(kept.iter().map(|number| number + 1));
        let ends = kept.iter().map(|number| number - 1).chain([u64::MAX]);
        Self(begins.zip(ends).filter(|(begin, end)| begin <= end).map(|(begin, end)| begin..=end).collect())
    }

    /// Reads such a text.
    ///
    /// # Errors
    ///
    /// The part that is none.
    pub(super) fn parse(text: &str) -> Result<Self, &str> {
        let parts = text.split(',').map(str::trim);
        let ranges = parts.filter(|_| !text.trim().is_empty()).map(|part| range(part).ok_or(part));
        ranges.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn ranges(&self) -> Vec<RangeInclusive<u64>> {
        self.0.clone()
    }
}

/// `8`, `1-6` or `20-`.
fn range(part: &str) -> Option<RangeInclusive<u64>> {
    let number = |text: &str| text.parse().ok().filter(|&number| number > 0);
    let (begin, end) = match part.split_once('-') {
        Some((begin, "")) => (number(begin)?, u64::MAX),
        Some((begin, end)) => (number(begin)?, number(end)?),
        None => (number(part)?, number(part)?),
    };
    (begin <= end).then_some(begin..=end)
}

impl fmt::Display for Skips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, range) in self.0.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            match (*range.start(), *range.end()) {
                (begin, u64::MAX) => write!(f, "{comma}{begin}-")?,
                (begin, end) if begin == end => write!(f, "{comma}{begin}")?,
                (begin, end) => write!(f, "{comma}{begin}-{end}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_written_and_read_again() {
        for (kept, text) in
            [(&[7, 19][..], "1-6,8-18,20-"), (&[1, 2, 4], "3,5-"), (&[], "1-"), (&[2], "1,3-"), (&[1], "2-")]
        {
            let skips = Skips::all_but(kept);
            assert_eq!(skips.to_string(), text);
            assert_eq!(Skips::parse(text), Ok(skips));
        }
        assert_eq!(Skips::parse(" 3 , 5-6"), Ok(Skips(vec![3..=3, 5..=6])));
        assert_eq!(Skips::parse(""), Ok(Skips::default()));
    }

    #[test]
    fn what_is_no_range_is_told() {
        for (text, part) in [("1,x", "x"), ("6-1", "6-1"), ("0", "0"), ("1,,2", ""), ("-3", "-3"), ("1-2-3", "1-2-3")] {
            assert_eq!(Skips::parse(text), Err(part), "{text}");
        }
    }
}
