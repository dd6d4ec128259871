//! The ratios of a run as two charts: a bar per row, and a summary with a mark per row. Less is better.
//!
//! Both have a panel per group, on a logarithmic scale around 1 with its numbers above and below. Pure. The lottery's
//! chart is a [`Picture`] too.

use crate::format::number;
use crate::measured::{Better, Group, Measured, Verdict};
use crate::picture::{Anchor, Picture, power_of_two, width_of};

/// Pixels.
const LINE: f64 = 18.0;
/// The width of the scale. The names are left of it, the values right of it.
const SCALE: f64 = 480.0;
/// Where the first panel begins.
const TOP: f64 = 100.0;
/// The summary names the rows in which mini needs this many times as much, or more.
const FAR: f64 = 8.0;

/// Verdicts with the class of their marks and bars, and a legend.
const VERDICTS: [(Verdict, &str, &str); 3] = [
    (Verdict::Ahead, "ahead", "mini is ahead in every round"),
    (Verdict::Tie, "tie", "tie: the rounds do not agree, or there is only one"),
    (Verdict::Behind, "behind", "mini is behind in every round"),
];

/// The chart of all rows in which mini and another runtime took part.
pub(crate) fn svg(measured: &[Measured]) -> String {
    in_detail(&bars(measured))
}

/// The chart at a glance, with a mark per row.
pub(crate) fn summary(measured: &[Measured]) -> String {
    at_a_glance(&bars(measured))
}

fn bars(measured: &[Measured]) -> Vec<Bar> {
    measured.iter().filter_map(Bar::new).collect()
}

fn in_detail(bars: &[Bar]) -> String {
    let scale = Scale::around(bars, width_of(bars.iter().map(|bar| bar.name.as_str())) + 20.0);
    let note =
        "A bar is the median of the rounds, with a line from the best to the worst. An arrow leads beyond the scale.";
    let mut picture = head(&scale, note);
    let mut y = TOP;
    for (group, bars) in panels(bars) {
        picture.label((8.0, y), Anchor::Start, "bold", &format!("{}: {}", group.title(), group.about()));
        picture.label((8.0, y + LINE), Anchor::Start, "soft", &count(&bars));
        let (top, bottom) = (y + 1.5 * LINE, y + (bars.len() as f64 + 1.9) * LINE);
        scale.draw(&mut picture, top, bottom);
        for (line, bar) in bars.iter().enumerate() {
            bar.draw(&mut picture, &scale, top + (line as f64 + 0.7) * LINE);
        }
        y = bottom + 2.5 * LINE;
    }
    let notes = width_of(bars.iter().map(|bar| bar.note.as_str())) + 30.0;
    picture.finish(scale.left + SCALE + notes, y - LINE)
}

fn at_a_glance(bars: &[Bar]) -> String {
    /// The number of rows with one verdict.
    const COLUMN: f64 = 50.0;
    let panels = panels(bars);
    let scale = Scale::around(bars, width_of(panels.iter().map(|(group, _)| group.about())) + 20.0);
    let swarms: Vec<_> = panels.iter().map(|(_, bars)| Swarm::new(bars, scale)).collect();
    let mut picture = head(&scale, "A mark is the median of the rounds in one row. On the right: the number of rows.");
    let bottom = TOP + LINE / 2.0 + swarms.iter().map(Swarm::height).sum::<f64>();
    scale.draw(&mut picture, TOP + LINE / 2.0, bottom);
    let (mut y, mut far) = (TOP + LINE / 2.0, Vec::new());
    for ((group, bars), swarm) in panels.iter().zip(swarms) {
        let middle = y + swarm.height() / 2.0;
        picture.label((scale.left - 12.0, middle - 8.0), Anchor::End, "bold", group.title());
        picture.label((scale.left - 12.0, middle + 7.0), Anchor::End, "soft", group.about());
        swarm.draw(&mut picture, middle, &mut far);
        let mut x = scale.left + SCALE + 30.0;
        for (verdict, class, _) in VERDICTS {
            let number = bars.iter().filter(|bar| bar.verdict == verdict).count();
            picture.mark((x, middle), class);
            picture.label((x + 10.0, middle), Anchor::Start, "", &number.to_string());
            x += COLUMN;
        }
        y += swarm.height();
    }
    y += 2.5 * LINE;
    if !far.is_empty() {
        let title = format!("Rows in which mini needs at least {FAR} times as much, and rows beyond the scale:");
        picture.label((8.0, y), Anchor::Start, "soft", &title);
    }
    for (number, bar) in far.iter().enumerate() {
        y += LINE;
        let text = format!("{}: {}, {}: {}", number + 1, bar.group.title(), bar.name, bar.note);
        picture.label((8.0, y), Anchor::Start, "", &text);
    }
    picture.finish(scale.left + SCALE + 30.0 + 3.0 * COLUMN, y + LINE)
}

/// The bars of each group that has some.
fn panels(bars: &[Bar]) -> Vec<(Group, Vec<&Bar>)> {
    let of = |group| (group, bars.iter().filter(|bar| bar.group == group).collect());
    Group::ALL.into_iter().map(of).filter(|(_, bars): &(_, Vec<_>)| !bars.is_empty()).collect()
}

/// The title, the legend and the two directions.
fn head(scale: &Scale, note: &str) -> Picture {
    let mut picture = Picture::default();
    let title = "What mini needs, as a multiple of what the best other runtime needs: less is better";
    picture.label((8.0, 16.0), Anchor::Start, "bold", title);
    picture.label((8.0, 34.0), Anchor::Start, "soft", note);
    let mut x = 14.0;
    for (_, class, words) in VERDICTS {
        picture.mark((x, 54.0), class);
        picture.label((x + 10.0, 54.0), Anchor::Start, "soft", words);
        x += width_of([words].into_iter()) + 34.0;
    }
    let one = scale.x(1.0);
    picture.label((one - 10.0, 78.0), Anchor::End, "bold", "\u{25c2} mini is better");
    picture.label((one + 10.0, 78.0), Anchor::Start, "bold", "the other is better \u{25b8}");
    picture
}

/// The number of bars per verdict.
fn count(bars: &[&Bar]) -> String {
    let of = |verdict| bars.iter().filter(|bar| bar.verdict == verdict).count();
    format!("{} ahead, {} ties, {} behind", of(Verdict::Ahead), of(Verdict::Tie), of(Verdict::Behind))
}

/// One row of the results.
struct Bar {
    group: Group,
    name: String,
    /// The amount that mini needs, divided by that of the best other runtime: below 1 mini is ahead.
    cost: f64,
    /// The cost in the best and in the worst round.
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

    fn class(&self) -> &'static str {
        VERDICTS.iter().find(|(verdict, ..)| *verdict == self.verdict).map_or("", |(_, class, _)| class)
    }

    fn draw(&self, picture: &mut Picture, scale: &Scale, y: f64) {
        let (one, end) = (scale.x(1.0), scale.x(self.cost));
        let (best, worst) = (scale.x(self.range.0), scale.x(self.range.1));
        picture.label((scale.left - 12.0, y), Anchor::End, "", &self.name);
        picture.bar((one.min(end), y), ((end - one).abs().max(1.0), LINE - 6.0), self.class());
        picture.path("range", &format!("M{best:.1} {y:.1}H{worst:.1}"));
        for (x, cost) in [(best, self.range.0), (worst, self.range.1)] {
            let end = match scale.has(cost) {
                true => format!("M{x:.1} {:.1}v6", y - 3.0),
                false if cost < 1.0 => format!("M{x:.1} {:.1}l-6 4l6 4", y - 4.0),
                false => format!("M{x:.1} {:.1}l6 4l-6 4", y - 4.0),
            };
            picture.path("range", &end);
        }
        let x = one.max(worst) + 14.0;
        picture.mark((x, y), self.class());
        picture.label((x + 10.0, y), Anchor::Start, "", &self.note);
    }
}

/// The marks of a panel, in lanes, so that no mark hides another. Many lanes are narrow: their marks overlap.
struct Swarm<'a> {
    /// Each bar with its x and its lane, where 0 is the middle of the panel.
    marks: Vec<(&'a Bar, f64, f64)>,
    lanes: usize,
    scale: Scale,
}

impl<'a> Swarm<'a> {
    /// The distance of the marks of a lane.
    const APART: f64 = 8.0;

    fn new(bars: &[&'a Bar], scale: Scale) -> Self {
        let mut swarm = Self { marks: Vec::new(), lanes: 0, scale };
        let mut sorted = bars.to_vec();
        sorted.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let mut ends: Vec<f64> = Vec::new(); // of the lanes, from the middle outwards
        for bar in sorted {
            let x = scale.x(bar.cost);
            let lane = ends.iter().position(|end| *end <= x).unwrap_or(ends.len());
            ends.resize(ends.len().max(lane + 1), 0.0);
            ends[lane] = x + Self::APART + if swarm.is_far(bar) { 12.0 } else { 0.0 };
            let side = if lane % 2 == 0 { -1.0 } else { 1.0 };
            swarm.marks.push((bar, x, side * lane.div_ceil(2) as f64));
        }
        swarm.lanes = ends.len();
        swarm
    }

    fn is_far(&self, bar: &Bar) -> bool {
        bar.cost >= FAR || !self.scale.has(bar.cost)
    }

    /// The distance of the lanes.
    fn pitch(&self) -> f64 {
        (160.0 / self.lanes as f64).min(Self::APART)
    }

    fn height(&self) -> f64 {
        (self.lanes as f64 * self.pitch() + 12.0).max(42.0)
    }

    /// Draws the marks around `middle`. Those of rows that are far out have a number, and are added to `far`.
    fn draw(&self, picture: &mut Picture, middle: f64, far: &mut Vec<&'a Bar>) {
        for &(bar, x, lane) in &self.marks {
            let y = middle + lane * self.pitch();
            picture.mark((x, y), bar.class());
            if self.is_far(bar) {
                far.push(bar);
                picture.label((x + 6.0, y - 0.5), Anchor::Start, "small", &far.len().to_string());
            }
        }
    }
}

/// Ratios to places, in powers of two.
#[derive(Clone, Copy)]
struct Scale {
    /// Its place in the picture.
    left: f64,
    low: i32,
    high: i32,
}

impl Scale {
    /// Wide enough for all of `bars`, and from 1/1024 to 1024 at most. The places of other costs are the ends.
    fn around(bars: &[Bar], left: f64) -> Self {
        let mut scale = Self { left, low: -1, high: 1 };
        for power in bars.iter().map(|bar| bar.cost.log2()).filter(|power| power.is_finite()) {
            scale.low = scale.low.min(power.floor() as i32).max(-10);
            scale.high = scale.high.max(power.ceil() as i32).min(10);
        }
        scale
    }

    fn has(&self, cost: f64) -> bool {
        (f64::from(self.low)..=f64::from(self.high)).contains(&cost.log2())
    }

    fn x(&self, cost: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let power = cost.log2().clamp(low, high);
        self.left + (power - low) / (high - low) * SCALE
    }

    /// Draws a line for each power, and its number at both ends.
    fn draw(&self, picture: &mut Picture, top: f64, bottom: f64) {
        for power in self.low..=self.high {
            let x = self.x(2f64.powi(power));
            picture.path(if power == 0 { "one" } else { "grid" }, &format!("M{x:.1} {top:.1}V{bottom:.1}"));
            if self.high - self.low > 12 && power % 2 != 0 {
                continue; // or the numbers overlap
            }
            for y in [top - 9.0, bottom + 9.0] {
                picture.label((x, y), Anchor::Middle, "soft", &power_of_two(power));
            }
        }
    }
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
        let scale = Scale::around(&bars, 100.0);
        assert_eq!((scale.low, scale.high), (-3, 2));
        assert_eq!(scale.x(1.0) - scale.x(0.5), scale.x(4.0) - scale.x(2.0));
        assert_eq!((scale.x(0.0), scale.x(100.0)), (scale.left, scale.left + SCALE));
        assert_eq!([0.124, 0.125, 4.0, 4.1].map(|cost| scale.has(cost)), [false, true, true, false]);
    }

    #[test]
    fn the_summary_has_a_mark_per_row_and_counts_them() {
        let rows = [("a", 3.0), ("b", 0.3), ("c", 0.2)].map(|(row, mini)| measured(row, Better::Lower, mini));
        let text = summary(&rows);
        // One in the legend, one beside the number of the group.
        assert_eq!((text.matches("mark ahead").count(), text.matches("mark behind").count()), (4, 3));
        assert!(text.contains(">2</text>") && text.contains(">1</text>"), "{text}");
        assert!(!text.contains("beyond the scale"), "{text}");
    }

    #[test]
    fn rows_far_out_are_named_and_no_mark_hides_another() {
        let costs = [900.0, 870.0, 2.0, 1.99, 1.98, 0.0001];
        let bars: Vec<_> = costs.iter().map(|mini| measured(&format!("row {mini}"), Better::Lower, *mini)).collect();
        let text = summary(&bars);
        for (number, row) in [(1, "row 0.0001"), (2, "row 870"), (3, "row 900")] {
            assert!(text.contains(&format!(">{number}: Tasks, {row}: ")), "{text}");
        }
        assert!(!text.contains("row 2"), "{text}");
        let bars = self::bars(&bars);
        let swarm = Swarm::new(&bars.iter().collect::<Vec<_>>(), Scale::around(&bars, 0.0));
        for (at, (_, x, y)) in swarm.marks.iter().enumerate() {
            let is_apart = |(_, a, b): &(&Bar, f64, f64)| (x - a).abs() >= Swarm::APART || y != b;
            assert!(swarm.marks[..at].iter().all(is_apart), "{at}");
        }
    }

    #[test]
    fn every_row_is_drawn_with_an_arrow_where_its_range_is_cut_off() {
        let mut rows = [measured("a < b", Better::Lower, 3.0), measured("c", Better::Lower, 0.3)];
        let text = svg(&rows);
        assert_eq!(text.matches("<rect class=\"bar").count(), 2);
        assert!(text.contains("a &lt; b") && text.contains("1 ahead, 0 ties, 1 behind"), "{text}");
        assert!(!text.contains("l6 4l-6 4"), "{text}");
        rows[0].samples[0].1.0[1] = 1e9;
        assert!(svg(&rows).contains("l6 4l-6 4"));
    }
}
