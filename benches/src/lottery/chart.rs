//! The chart of a lottery: for each figure and flavour the ratios of all seeds, sorted, on a logarithmic scale. Pure.
//!
//! A curve below the line of 1 over its whole width shows that mini is ahead in every seed. The third curve is mini by
//! itself: ratios within its range are noise. Figures of which more is better are inverted.

use super::outcome::FIGURES;
use super::round::FLAVOURS;
use super::spread::{Spread, cost};
use crate::picture::{Anchor, Picture, power_of_two, width_of};

/// Pixels of a panel and of the room between panels.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 130.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 100.0;
const APART: (f64, f64) = (84.0, 62.0);

/// The ratios at the edges are 1/16 and 16. Others are drawn at the edges.
const POWERS: i32 = 4;

/// Classes of the curves, with a legend.
const USUAL: (&str, &str) = ("usual", "load up to 90 %");
const OVERLOAD: (&str, &str) = ("overload", "overload");
const NOISE: (&str, &str) = ("noise", "mini by itself, which is noise");

/// The chart; [`CHART`](super::report::CHART) is its file.
pub(super) fn svg(spreads: &[Spread]) -> String {
    let mut picture = Picture::default();
    let title = "What mini needs, as a multiple of what the best other runtime needs: below 1 mini is better";
    picture.label((8.0, 16.0), Anchor::Start, "bold", title);
    let note = "The seeds of each panel are in the order of their ratios. ct: one thread. mt: two workers.";
    picture.label((8.0, 34.0), Anchor::Start, "soft", note);
    let mut x = 8.0;
    for (class, words) in [USUAL, OVERLOAD, NOISE] {
        picture.path(&format!("curve {class}"), &format!("M{x:.1} 54h28"));
        picture.label((x + 34.0, 54.0), Anchor::Start, "soft", words);
        x += width_of([words].into_iter()) + 58.0;
    }
    for (row, figure) in FIGURES.iter().enumerate() {
        for (column, (_, flavour, _)) in FLAVOURS.into_iter().enumerate() {
            let (x, y) = (LEFT + column as f64 * (WIDTH + APART.0), TOP + row as f64 * (HEIGHT + APART.1));
            let mine: Vec<_> = spreads.iter().filter(|one| one.figure == row && one.flavour == flavour).collect();
            let costs = |ratios: &[(f64, u64)]| ratios.iter().map(|(ratio, _)| cost(row, *ratio)).collect::<Vec<_>>();
            let noise = mine.iter().flat_map(|spread| costs(&spread.noise)).collect();
            let mut curves = vec![(NOISE, noise)];
            curves.extend(
                mine.iter().map(|spread| (if spread.is_overload { OVERLOAD } else { USUAL }, costs(&spread.ratios))),
            );
            Panel { x, y }.draw(&mut picture, &format!("{}, {flavour}", figure.suffix), curves);
        }
    }
    let columns = FLAVOURS.len() as f64 * (WIDTH + APART.0) - APART.0;
    picture.finish(LEFT + columns + LEFT, TOP + FIGURES.len() as f64 * (HEIGHT + APART.1) - APART.1 + 32.0)
}

/// The place of one figure of one flavour.
struct Panel {
    x: f64,
    y: f64,
}

impl Panel {
    fn height_of(&self, cost: f64) -> f64 {
        let most = f64::from(POWERS);
        self.y + HEIGHT * (most - cost.log2().clamp(-most, most)) / (2.0 * most)
    }

    fn draw(&self, picture: &mut Picture, title: &str, curves: Vec<((&str, &str), Vec<f64>)>) {
        picture.label((self.x, self.y - 16.0), Anchor::Start, "bold", title);
        for power in (-POWERS..=POWERS).step_by(2) {
            let (y, number) = (self.height_of(2f64.powi(power)), power_of_two(power));
            picture.path(if power == 0 { "one" } else { "grid" }, &format!("M{:.1} {y:.1}h{WIDTH}", self.x));
            picture.label((self.x - 8.0, y), Anchor::End, "soft", &number);
            picture.label((self.x + WIDTH + 8.0, y), Anchor::Start, "soft", &number);
        }
        for (share, anchor, words) in [
            (0.0, Anchor::Start, "best seed"),
            (0.5, Anchor::Middle, "half of the seeds"),
            (1.0, Anchor::End, "worst seed"),
        ] {
            picture.label((self.x + share * WIDTH, self.y + HEIGHT + 12.0), anchor, "soft", words);
        }
        let costs = || curves.iter().flat_map(|(_, costs)| costs);
        let over = costs().filter(|cost| cost.log2() > f64::from(POWERS)).count();
        let under = costs().filter(|cost| cost.log2() < f64::from(-POWERS)).count();
        let cut: Vec<_> = [(over, "above", POWERS), (under, "below", -POWERS)]
            .into_iter()
            .filter(|(number, ..)| *number > 0)
            .map(|(number, side, power)| format!("{number} {side} {}", power_of_two(power)))
            .collect();
        if !cut.is_empty() {
            let words = format!("cut off: {}", cut.join(", "));
            picture.label((self.x + WIDTH, self.y - 16.0), Anchor::End, "soft", &words);
        }
        for ((class, _), costs) in curves {
            self.curve(picture, class, costs);
        }
    }

    fn curve(&self, picture: &mut Picture, class: &str, mut costs: Vec<f64>) {
        costs.sort_by(f64::total_cmp);
        let width = WIDTH / costs.len().max(1) as f64;
        let point = |(index, cost): (usize, &f64)| {
            format!("{:.1} {:.1}", self.x + (index as f64 + 0.5) * width, self.height_of(*cost))
        };
        let points: Vec<_> = costs.iter().enumerate().map(point).collect();
        if !points.is_empty() {
            picture.path(&format!("curve {class}"), &format!("M{}", points.join(" ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_curves_and_what_is_better_lies_lower() {
        let spread = |figure, is_overload, best| Spread {
            figure,
            flavour: "ct",
            is_overload,
            ratios: vec![(best, 1), (2.0, 2)],
            noise: vec![(1.0, 1)],
        };
        let text = svg(&[spread(0, false, 0.5), spread(0, true, 0.5), spread(3, false, 0.01)]);
        // One of each in the legend.
        let number = |class: &str| text.matches(&format!("curve {class}")).count();
        assert_eq!((number("usual"), number("overload"), number("noise")), (3, 2, 3));
        assert_eq!(text.matches(">best seed<").count(), FIGURES.len() * FLAVOURS.len());
        assert_eq!((text.matches("cut off").count(), text.matches("cut off: 1 above 16<").count()), (1, 1));
        let panel = Panel { x: 0.0, y: 0.0 };
        assert!(panel.height_of(0.5) > panel.height_of(2.0));
        assert_eq!((panel.height_of(f64::INFINITY), panel.height_of(0.0)), (0.0, HEIGHT));
    }
}
