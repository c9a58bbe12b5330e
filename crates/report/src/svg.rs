//! Curves over time as a picture that a browser, a mail or a page shows: SVG, on white, without scripts.

use std::fmt::Write as _;

/// A picture: panels one below the other, over the same time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// Lines of text below the title.
    pub notes: Vec<String>,
    /// Charts, from the top down.
    pub panels: Vec<Panel>,
}

/// A chart over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panel {
    /// The quantity and its unit, as in `Rate (Mbit/s)`.
    pub label: String,
    /// What it shows.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// What it is, for the legend.
    pub name: String,
    /// Its colour, as CSS has it.
    pub colour: &'static str,
    /// Seconds, and the quantity.
    pub points: Vec<(f64, f64)>,
    /// Whether points stand alone, rather than in a line.
    pub is_dots: bool,
}

/// The size of the picture and of a panel, in pixels.
const WIDTH: f64 = 900.0;
const TALL: f64 = 180.0;
/// The room for labels: at the left, above a panel, below it, and at the right.
const LEFT: f64 = 62.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 30.0;
const RIGHT: f64 = 20.0;
const LINE: f64 = 19.0;
/// Letters of a line of text.
const COLUMNS: usize = 120;
const INK: &str = "#16202c";
const SOFT: &str = "#566273";

impl Picture {
    /// The picture as text in SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let notes: Vec<String> = self.notes.iter().flat_map(|note| wrapped(note)).collect();
        let head = 40.0 + LINE * notes.len() as f64;
        let height = head + (ABOVE + TALL + BELOW) * self.panels.len() as f64 + 4.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\
             <title>{title}</title><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
             <text x=\"14\" y=\"27\" font-size=\"18\" font-weight=\"600\" fill=\"{INK}\">{title}</text>",
            title = escape(&self.title),
        );
        for (nth, note) in notes.iter().enumerate() {
            let y = 29.0 + LINE * (nth + 1) as f64;
            // Writing to a string cannot fail.
            let _ = write!(svg, "<text x=\"14\" y=\"{y}\" fill=\"{INK}\">{}</text>", escape(note));
        }
        let points = || self.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
        let from = points().map(|point| point.0).fold(f64::INFINITY, f64::min).min(0.0);
        let to = points().map(|point| point.0).fold(from + 1e-3, f64::max);
        for (nth, panel) in self.panels.iter().enumerate() {
            let top = head + (ABOVE + TALL + BELOW) * nth as f64 + ABOVE;
            panel.draw(&mut svg, top, (from, to));
        }
        svg + "</svg>\n"
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, top: f64, (from, to): (f64, f64)) {
        let most =
            self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
        let (step, most) = scale(if most > 0.0 { most * 1.04 } else { 1.0 });
        let x = |at: f64| LEFT + (WIDTH - LEFT - RIGHT) * (at - from) / (to - from);
        let y = |value: f64| top + TALL * (1.0 - value / most);
        let bottom = top + TALL;
        let mut said =
            format!("<text x=\"{LEFT}\" y=\"{:.1}\" fill=\"{SOFT}\">{}", top - 11.0, escape(&self.label));
        for curve in &self.curves {
            let _ = write!(
                said,
                " <tspan dx=\"12\" fill=\"{}\">\u{25cf}</tspan> {}",
                curve.colour,
                escape(&curve.name)
            );
        }
        let _ = write!(svg, "{said}</text>");
        for nth in 0..=(most / step).round() as usize {
            let value = step * nth as f64;
            let _ = write!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#e3e8ee\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" \
                 fill=\"{SOFT}\" font-size=\"12\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 7.0,
                y(value) + 4.0,
                short(value),
                y = y(value),
            );
        }
        let (seconds, _) = scale(to - from);
        for nth in 0..=((to - from) / seconds) as usize {
            let at = from + seconds * nth as f64;
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"{SOFT}\" font-size=\"12\">{} s</text>",
                x(at),
                bottom + 17.0,
                short(at)
            );
        }
        for curve in &self.curves {
            let mut path = String::new();
            for (nth, (at, value)) in curve.points.iter().enumerate() {
                let (x, y) = (x(*at), y(*value));
                let _ = match (curve.is_dots, nth) {
                    (true, _) => write!(path, "M{x:.1} {y:.1}h0"),
                    (false, 0) => write!(path, "M{x:.1} {y:.1}"),
                    (false, _) => write!(path, "L{x:.1} {y:.1}"),
                };
            }
            let (width, cap) = if curve.is_dots { (3.0, "round") } else { (1.6, "butt") };
            let _ = write!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linecap=\"{cap}\"/>",
                curve.colour
            );
        }
    }
}

/// A step of 1, 2 or 5 of which four to ten make up `most`, and the next whole step above it.
fn scale(most: f64) -> (f64, f64) {
    let power = 10_f64.powf((most / 4.0).log10().floor());
    let step = [5.0, 2.0, 1.0].map(|part| part * power).into_iter().find(|step| most / step >= 4.0);
    let step = step.unwrap_or(power);
    (step, (most / step).ceil() * step)
}

fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The text in lines that are not wider than the picture.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.chars().count() + word.chars().count() >= COLUMNS {
            lines.push(word.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_round_steps_and_holds_everything() {
        for (most, step, top) in
            [(1.0, 0.2, 1.0), (4.0, 1.0, 4.0), (23.0, 5.0, 25.0), (99.0, 20.0, 100.0), (0.3, 0.05, 0.3)]
        {
            let (found, held) = scale(most);
            assert!(
                (found / step - 1.0).abs() < 1e-9 && held > top - 1e-9 && held < top + step + 1e-9,
                "{most}: {found} {held}"
            );
        }
    }

    #[test]
    fn long_texts_are_wrapped_between_words() {
        let lines = wrapped(&"word ".repeat(50));
        assert!(
            lines.len() == 3 && lines.iter().all(|line| line.len() <= COLUMNS && !line.ends_with(' ')),
            "{lines:?}"
        );
    }

    #[test]
    fn a_picture_has_its_texts_escaped_and_its_points_inside() {
        let curve = Curve {
            name: "<b>".to_owned(),
            colour: "#14648f",
            points: vec![(0.0, 0.0), (10.0, 42.0)],
            is_dots: false,
        };
        let picture = Picture {
            title: "a & b".to_owned(),
            notes: vec!["\"note\"".to_owned()],
            panels: vec![
                Panel { label: "Rate (Mbit/s)".to_owned(), curves: vec![curve.clone()] },
                Panel::default(),
            ],
        };
        let svg = picture.svg();
        assert!(
            svg.contains("a &amp; b") && svg.contains("&quot;note&quot;") && svg.contains("&lt;b&gt;"),
            "{svg}"
        );
        assert!(svg.contains("M62.0 ") && svg.contains("L880.0 "), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
