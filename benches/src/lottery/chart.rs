//! The chart of a lottery: for each figure and flavour the ratios of all seeds, sorted, on a logarithmic scale. Pure.
//!
//! A curve that lies below the line of 1 over its whole width says that mini is ahead in every seed. The grey curve is
//! mini by itself: what lies within its range is noise. Figures of which more is better are inverted.

use std::fmt::Write;

use super::outcome::FIGURES;
use super::round::FLAVOURS;
use super::spread::{Spread, cost};
use crate::chart::{GRID, begin, label};

/// Pixels of a panel and of the room between panels.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 130.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 84.0;
const APART: f64 = 60.0;

/// The ratios at the edges are 1/16 and 16; what lies beyond is drawn there.
const POWERS: f64 = 4.0;

const ORDINARY: &str = "#2f9e58";
const OVERLOAD: &str = "#d1603d";

/// The chart; [`CHART`](super::report::CHART) is its file.
pub(super) fn svg(spreads: &[Spread]) -> String {
    let height = TOP + FIGURES.len() as f64 * (HEIGHT + APART);
    let mut text = begin(LEFT + FLAVOURS.len() as f64 * (WIDTH + APART), height);
    let title = "What mini needs, by what the best of the others needs, seed by seed, sorted: less is better";
    let _ = writeln!(text, "{}", label(8.0, 16.0, "start", true, title));
    let note =
        "Below 1 mini is better. Green: load up to 90 %. Orange: overload. Grey: mini by itself, which is noise.";
    let _ = writeln!(text, "{}", label(8.0, 34.0, "start", false, note));
    for (figure, described) in FIGURES.iter().enumerate() {
        for (column, (_, flavour, _)) in FLAVOURS.into_iter().enumerate() {
            let panel = Panel { x: LEFT + column as f64 * (WIDTH + APART), y: TOP + figure as f64 * (HEIGHT + APART) };
            panel.frame(&mut text, &format!("{}, {flavour}", described.suffix));
            let mine = spreads.iter().filter(|spread| spread.figure == figure && spread.flavour == flavour);
            let costs =
                |ratios: &[(f64, u64)]| ratios.iter().map(|(ratio, _)| cost(figure, *ratio)).collect::<Vec<_>>();
            let noise: Vec<_> = mine.clone().flat_map(|spread| costs(&spread.noise)).collect();
            panel.curve(&mut text, noise, GRID);
            for spread in mine {
                panel.curve(&mut text, costs(&spread.ratios), if spread.is_overload { OVERLOAD } else { ORDINARY });
            }
        }
    }
    text.push_str("</svg>\n");
    text
}

/// The place of one figure of one flavour.
struct Panel {
    x: f64,
    y: f64,
}

impl Panel {
    fn height_of(&self, cost: f64) -> f64 {
        let power = cost.log2().clamp(-POWERS, POWERS);
        self.y + HEIGHT * (POWERS - power) / (2.0 * POWERS)
    }

    fn frame(&self, text: &mut String, title: &str) {
        let _ = writeln!(text, "{}", label(self.x, self.y - 12.0, "start", true, title));
        for power in [-4, -2, 0, 2, 4] {
            let y = self.height_of(2f64.powi(power));
            let (width, opacity) = if power == 0 { (2, 1.0) } else { (1, 0.25) };
            let _ = writeln!(
                text,
                r#"<path d="M{:.1} {y:.1}h{WIDTH}" stroke="{GRID}" stroke-width="{width}" opacity="{opacity}"/>"#,
                self.x
            );
            let name = if power < 0 { format!("1/{}", 1 << -power) } else { (1 << power).to_string() };
            let _ = writeln!(text, "{}", label(self.x - 8.0, y, "end", false, &name));
        }
    }

    fn curve(&self, text: &mut String, mut costs: Vec<f64>, colour: &str) {
        costs.sort_by(f64::total_cmp);
        let width = WIDTH / costs.len().max(1) as f64;
        let point = |(index, cost): (usize, &f64)| {
            format!("{:.1},{:.1}", self.x + (index as f64 + 0.5) * width, self.height_of(*cost))
        };
        let points: Vec<_> = costs.iter().enumerate().map(point).collect();
        let _ = writeln!(
            text,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
            points.join(" ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_curves_and_what_is_better_lies_lower() {
        let spread = |figure, is_overload| Spread {
            figure,
            flavour: "ct",
            is_overload,
            ratios: vec![(0.5, 1), (2.0, 2)],
            noise: vec![(1.0, 1)],
        };
        let text = svg(&[spread(0, false), spread(0, true), spread(3, false)]);
        assert_eq!(text.matches("<polyline").count(), FIGURES.len() * FLAVOURS.len() + 3);
        assert_eq!((text.matches(ORDINARY).count(), text.matches(OVERLOAD).count()), (2, 1));
        let panel = Panel { x: 0.0, y: 0.0 };
        assert!(panel.height_of(0.5) > panel.height_of(2.0));
        assert_eq!((panel.height_of(f64::INFINITY), panel.height_of(0.0)), (0.0, HEIGHT));
    }
}
