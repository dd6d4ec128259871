//! The ratios of a run as a picture: a bar per line, on a logarithmic scale around 1, and over each bar the range of its
//! rounds. Less is better, as in all charts here. Pure; SVG 1.1 written by hand.
//!
//! Its colours are in the middle between white and black, so that it can be read on both.
//!
//! Rejected: colours that follow the reader's `prefers-color-scheme`; an embedded picture does not know the page's.

use std::fmt::Write;

use crate::format::number;
use crate::measured::{Better, Group, Measured, Verdict};

/// Pixels.
const LINE: f64 = 18.0;
/// The scale; left of it stand the names, right of it the values.
const SCALE: f64 = 460.0;
const TOP: f64 = 84.0;
/// No letter of the font is much wider on average.
const LETTER: f64 = 6.2;

const TEXT: &str = "#7a828c";
pub(crate) const GRID: &str = "#8b949e";

/// The chart of all lines in which mini and another runtime took part.
pub(crate) fn svg(measured: &[Measured]) -> String {
    let bars: Vec<_> = measured.iter().filter_map(Bar::new).collect();
    let scale = Scale::around(&bars);
    let groups = Group::ALL.into_iter().filter(|&group| bars.iter().any(|bar| bar.group == group));
    let lines = bars.len() + groups.clone().count();
    let bottom = TOP + LINE * lines as f64 + 8.0;
    let notes = width_of(bars.iter().map(|bar| &bar.note));
    let mut text = head(&scale, "Lines over the bars: the best and the worst round.", notes, bottom + 24.0);
    grid(&mut text, &scale, bottom);
    let mut y = TOP;
    for group in groups {
        let _ = writeln!(text, "{}", label(8.0, y, "start", true, group.title()));
        y += LINE;
        for bar in bars.iter().filter(|bar| bar.group == group) {
            bar.draw(&mut text, &scale, y);
            y += LINE;
        }
    }
    text.push_str("</svg>\n");
    text
}

/// The same at a glance: a line per group, on it a dot per bar.
pub(crate) fn summary(measured: &[Measured]) -> String {
    const APART: f64 = 34.0;
    let bars: Vec<_> = measured.iter().filter_map(Bar::new).collect();
    let groups: Vec<_> = Group::ALL.into_iter().filter(|&group| bars.iter().any(|bar| bar.group == group)).collect();
    let lines: Vec<_> = groups.iter().map(|&group| (group.title().to_owned(), count(&bars, group))).collect();
    let mut scale = Scale::around(&bars);
    scale.left = width_of(lines.iter().map(|(title, _)| title)) + 20.0;
    let bottom = TOP + APART * lines.len() as f64;
    let counts = width_of(lines.iter().map(|(_, counts)| counts));
    let mut text = head(&scale, "A dot per row.", counts, bottom + 24.0);
    grid(&mut text, &scale, bottom);
    for (line, ((title, counts), group)) in lines.iter().zip(groups).enumerate() {
        let y = TOP + APART * (line as f64 + 0.5);
        let _ = writeln!(text, "{}", label(scale.left - 12.0, y, "end", true, title));
        let _ = writeln!(text, "{}", label(scale.left + SCALE + 12.0, y, "start", false, counts));
        for (number, bar) in bars.iter().filter(|bar| bar.group == group).enumerate() {
            let (x, y) = (scale.x(bar.cost), y + (number % 5) as f64 * 5.0 - 10.0); // or one dot hides another
            let colour = bar.colour();
            let _ = writeln!(text, r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}" fill-opacity="0.75"/>"#);
        }
    }
    text.push_str("</svg>\n");
    text
}

/// How many bars of a group are ahead, and so on.
fn count(bars: &[Bar], group: Group) -> String {
    let of = |verdict| bars.iter().filter(|bar| bar.group == group && bar.verdict == verdict).count();
    format!("{} ahead, {} ties, {} behind", of(Verdict::Ahead), of(Verdict::Tie), of(Verdict::Behind))
}

/// One line of the chart.
struct Bar {
    group: Group,
    name: String,
    /// What mini needs per what the best of the others needs: below 1 mini is ahead.
    cost: f64,
    /// That of the best and of the worst round.
    range: (f64, f64),
    verdict: Verdict,
    note: String,
}

impl Bar {
    fn new(measured: &Measured) -> Option<Self> {
        let best = measured.best()?;
        let ratio = measured.ratio_to(best)?;
        let (cost, range) = match measured.better {
            Better::Lower => (ratio.median(), (ratio.min(), ratio.max())),
            Better::Higher => (1.0 / ratio.median(), (1.0 / ratio.max(), 1.0 / ratio.min())),
        };
        let verdict = measured.verdict(&ratio);
        let tie = if verdict == Verdict::Tie { " tie" } else { "" };
        let note = format!("{}{tie} · {}", number(cost), best.name());
        Some(Self { group: measured.group, name: measured.row.clone(), cost, range, verdict, note })
    }

    fn colour(&self) -> &'static str {
        match self.verdict {
            Verdict::Ahead => "#2f9e58",
            Verdict::Tie => "#8b949e",
            Verdict::Behind => "#d1603d",
        }
    }

    fn draw(&self, text: &mut String, scale: &Scale, y: f64) {
        let (one, end) = (scale.x(1.0), scale.x(self.cost));
        let (x, width) = (one.min(end), (end - one).abs().max(1.0));
        let colour = self.colour();
        let _ = writeln!(text, "{}", label(scale.left - 12.0, y, "end", false, &self.name));
        let (top, height) = (y - LINE / 2.0 + 3.0, LINE - 6.0);
        let _ = writeln!(
            text,
            r#"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" rx="2" fill="{colour}"/>"#
        );
        let (best, worst) = (scale.x(self.range.0), scale.x(self.range.1));
        let _ = writeln!(
            text,
            r#"<path d="M{best:.1} {y:.1}H{worst:.1}M{best:.1} {0:.1}v6M{worst:.1} {0:.1}v6" stroke="{TEXT}"/>"#,
            y - 3.0
        );
        let _ = writeln!(text, "{}", label(one.max(worst) + 6.0, y, "start", false, &self.note));
    }
}

/// Ratios to places, in powers of two.
struct Scale {
    /// Where it begins in the picture.
    left: f64,
    low: i32,
    high: i32,
}

impl Scale {
    /// Wide enough for all of `bars`, but no wider than 1/1024 to 1024; what lies outside is drawn at the edge.
    fn around(bars: &[Bar]) -> Self {
        let left = width_of(bars.iter().map(|bar| &bar.name)) + 20.0;
        let mut scale = Self { left, low: -1, high: 1 };
        for power in bars.iter().map(|bar| bar.cost.log2()).filter(|power| power.is_finite()) {
            scale.low = scale.low.min(power.floor() as i32).max(-10);
            scale.high = scale.high.max(power.ceil() as i32).min(10);
        }
        scale
    }

    fn x(&self, cost: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let power = cost.log2().clamp(low, high);
        self.left + (power - low) / (high - low) * SCALE
    }
}

/// The beginning of a picture.
pub(crate) fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
    )
}

fn head(scale: &Scale, marks: &str, notes: f64, height: f64) -> String {
    let mut text = begin(scale.left + SCALE + notes + 16.0, height);
    let title = "What mini needs, by what the best of the others needs: less is better";
    let _ = writeln!(text, "{}", label(8.0, 16.0, "start", true, title));
    let note = format!("Green: mini is ahead. Grey: a tie, the rounds do not agree. Red: behind. {marks}");
    let _ = writeln!(text, "{}", label(8.0, 34.0, "start", false, &note));
    let one = scale.x(1.0);
    let _ = writeln!(text, "{}", label(one - 10.0, TOP - 24.0, "end", true, "\u{25c2} mini is better"));
    let _ = writeln!(text, "{}", label(one + 10.0, TOP - 24.0, "start", true, "the other is better \u{25b8}"));
    text
}

/// What the longest of `words` takes.
fn width_of<'a>(words: impl Iterator<Item = &'a String>) -> f64 {
    words.map(|words| words.chars().count() as f64 * LETTER).fold(0.0, f64::max)
}

fn grid(text: &mut String, scale: &Scale, bottom: f64) {
    for power in scale.low..=scale.high {
        let x = scale.x(2f64.powi(power));
        let (width, opacity) = if power == 0 { (2, 1.0) } else { (1, 0.25) };
        let top = TOP - LINE / 2.0;
        let _ = writeln!(
            text,
            r#"<path d="M{x:.1} {top:.1}V{bottom:.1}" stroke="{GRID}" stroke-width="{width}" opacity="{opacity}"/>"#
        );
        if scale.high - scale.low > 12 && power % 2 != 0 {
            continue; // or the names overlap
        }
        let name = if power < 0 { format!("1/{}", 1 << -power) } else { (1 << power).to_string() };
        let _ = writeln!(text, "{}", label(x, bottom + 12.0, "middle", false, &name));
    }
}

/// A line of text whose middle is at `y`.
pub(crate) fn label(x: f64, y: f64, anchor: &str, bold: bool, words: &str) -> String {
    let weight = if bold { r#" font-weight="bold""# } else { "" };
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let y = y + 4.0;
    format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{TEXT}"{weight}>{words}</text>"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Unit;
    use crate::peer::Peer;
    use crate::stats::Samples;

    fn measured(row: &str, better: Better, mini: f64) -> Measured {
        let samples = vec![(Peer::Mini, Samples(vec![mini; 2])), (Peer::Smol, Samples(vec![1.0; 2]))];
        Measured { group: Group::Tasks, row: row.to_owned(), unit: Unit::Times, better, samples }
    }

    #[test]
    fn twice_as_good_is_left_of_one_whatever_better_means() {
        let (lower, higher) = (measured("a", Better::Lower, 0.5), measured("b", Better::Higher, 2.0));
        for line in [lower, higher] {
            let bar = Bar::new(&line).unwrap();
            assert_eq!((bar.cost, bar.verdict, bar.note.as_str()), (0.5, Verdict::Ahead, "0.50 · smol"));
        }
    }

    #[test]
    fn the_scale_is_even_in_powers_of_two_and_ends_at_its_edges() {
        let bars = [0.2, 3.0, f64::INFINITY].map(|mini| Bar::new(&measured("a", Better::Lower, mini)).unwrap());
        let scale = Scale::around(&bars);
        assert_eq!((scale.low, scale.high), (-3, 2));
        assert_eq!(scale.x(1.0) - scale.x(0.5), scale.x(4.0) - scale.x(2.0));
        assert_eq!((scale.x(0.0), scale.x(100.0)), (scale.left, scale.left + SCALE));
    }

    #[test]
    fn the_summary_has_a_dot_per_line_and_counts_them() {
        let text = summary(&[measured("a", Better::Lower, 3.0), measured("b", Better::Lower, 0.3)]);
        assert_eq!(text.matches("<circle").count(), 2);
        assert!(text.contains(">1 ahead, 0 ties, 1 behind<"), "{text}");
    }

    #[test]
    fn every_line_is_drawn_and_names_are_escaped() {
        let text = svg(&[measured("a < b", Better::Lower, 3.0), measured("c", Better::Lower, 0.3)]);
        assert_eq!(text.matches("<rect").count(), 2);
        assert!(text.contains("a &lt; b") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    }
}
