//! `Picture`: a chart as it is drawn, in SVG 1.1. Pure; used by `chart.rs` and `lottery/chart.rs`.
//!
//! Classes name what a shape means, and the style gives them colours. These are from the palette of Okabe and Ito,
//! which colour-blind readers can tell apart; each has a shape or a pattern of its own too. The colours follow the
//! reader's `prefers-color-scheme`. The picture has a background, because the page around it may not follow that.

use std::fmt::Write;

/// No letter of the font is much wider on average.
const LETTER: f64 = 6.2;

const STYLE: &str = "\
.page { fill: #fff } text { fill: #24292f } .soft { fill: #57606a } .bold { font-weight: bold }
.small { font-size: 10px } path { fill: none } .grid { stroke: #d8dee4 } .one { stroke: #57606a; stroke-width: 2 }
.range { stroke: #24292f } .mark { stroke: #fff; stroke-width: .6 }
.ahead { fill: #0072b2 } .behind { fill: #d55e00 } .tie { fill: #fff; stroke: #6e7781; stroke-width: 1.5 }
.curve { stroke-width: 2 } .usual { stroke: #0072b2 } .overload { stroke: #d55e00; stroke-dasharray: 8 3 }
.noise { stroke: #6e7781; stroke-dasharray: 2 2 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } text { fill: #e6edf3 } .soft { fill: #9da7b3 }
.grid { stroke: #30363d } .one { stroke: #9da7b3 } .range { stroke: #e6edf3 } .mark { stroke: #0d1117 }
.ahead { fill: #56b4e9 } .behind { fill: #e69f00 } .tie { fill: #0d1117; stroke: #9da7b3 }
.usual { stroke: #56b4e9 } .overload { stroke: #e69f00 } .noise { stroke: #9da7b3 }
}
";

/// The shapes drawn so far.
#[derive(Default)]
pub(crate) struct Picture(String);

/// The part of a text that is at its place.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture {
    /// Draws a line of text whose middle is at `y`.
    pub(crate) fn label(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, words: &str) {
        let class = if class.is_empty() { String::new() } else { format!(r#" class="{class}""#) };
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.put(&format!(r#"<text x="{x:.1}" y="{:.1}"{anchor}{class}>{words}</text>"#, y + 4.0));
    }

    pub(crate) fn path(&mut self, class: &str, way: &str) {
        self.put(&format!(r#"<path class="{class}" d="{way}"/>"#));
    }

    /// Draws a bar from `x` to the right, with its middle at `y`.
    pub(crate) fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let y = y - height / 2.0;
        self.put(&format!(
            r#"<rect class="bar {class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#
        ));
    }

    /// Draws the mark of a verdict: a circle, a hollow square or a triangle.
    pub(crate) fn mark(&mut self, (x, y): (f64, f64), class: &str) {
        let way = match class {
            "ahead" => format!("M{:.1} {y:.1}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", x - 3.5),
            "tie" => format!("M{:.1} {:.1}h5.5v5.5h-5.5z", x - 2.7, y - 2.7),
            _ => format!("M{:.1} {:.1}l7 3.8l-7 3.8z", x - 3.5, y - 3.8),
        };
        self.path(&format!("mark {class}"), &way);
    }

    pub(crate) fn finish(self, width: f64, height: f64) -> String {
        let (width, height) = (width.ceil(), height.ceil());
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
        );
        let _ =
            write!(text, "<style>\n{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n");
        text + &self.0 + "</svg>\n"
    }

    fn put(&mut self, shape: &str) {
        let _ = writeln!(self.0, "{shape}"); // a `String` takes all
    }
}

/// The width of the longest of `words`.
pub(crate) fn width_of<'a>(words: impl Iterator<Item = &'a str>) -> f64 {
    words.map(|words| words.chars().count() as f64 * LETTER).fold(0.0, f64::max)
}

/// A number on a scale.
pub(crate) fn power_of_two(power: i32) -> String {
    if power < 0 { format!("1/{}", 1 << -power) } else { (1 << power).to_string() }
}
