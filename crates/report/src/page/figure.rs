//! Charts of anything against anything.

use serde::{Serialize, Serializer};
use suimon_results::RunResult;

use crate::numbers::Compact;
use crate::summary::{RunSummary, summarise};
use crate::sweep::{label, quantity, swept_axis};

/// A chart of points or curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<FigureSeries>,
    /// A hint for the reader, where the figure needs one.
    pub caption: Option<String>,
}

/// An axis of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// The quantity, without the unit.
    pub label: String,
    /// Unit of the values.
    pub unit: Unit,
    /// The scale of the values.
    pub scale: Scale,
}

impl Axis {
    /// An axis with even steps.
    #[must_use]
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    /// An axis on which equal ratios are equally far apart; values must be above zero.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Logarithmic }
    }
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By ratio.
    Logarithmic,
}

impl Scale {
    /// That on which `values` do not crowd at the edge.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        const EVEN_RATIO: f64 = 20.0;
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        if low > 0.0 && high / low > EVEN_RATIO { Self::Logarithmic } else { Self::Linear }
    }
}

/// Unit of values; the page writes them with the prefix that suits (kbit/s, MB).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bits per second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// A number of its own, or in a unit that needs no prefix.
    Other(String),
}

impl Unit {
    /// The unit that a column's name ends in.
    #[must_use]
    pub fn of_column(name: &str) -> Self {
        match name.rsplit_once('_').map(|(_, unit)| unit) {
            Some("bps") => Self::BitsPerSecond,
            Some("bytes") => Self::Bytes,
            Some("packets") => Self::Packets,
            Some("ms") => Self::Milliseconds,
            Some("s") => Self::Seconds,
            _ => Self::Other(String::new()),
        }
    }

    /// As column names end: `bps`, `bytes`, `packets`, `ms`, `s`, or the unit itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::BitsPerSecond => "bps",
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Other(unit) => unit,
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One curve or cloud of points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureSeries {
    /// The name in the legend.
    pub name: String,
    /// `#rrggbb`.
    pub colour: String,
    /// Whether lines, points or both are drawn.
    pub style: SeriesStyle,
    /// The points, in the order in which lines join them.
    pub points: Vec<Point>,
}

/// The style of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesStyle {
    /// A line from point to point.
    Line,
    /// A dashed line from point to point, for references such as a published curve.
    DashedLine,
    /// Points only.
    Points,
    /// A line and its points.
    LineAndPoints,
}

/// A point of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Horizontal.
    pub x: f64,
    /// Vertical.
    pub y: f64,
    /// The text shown when the reader points at it, besides the series and the values.
    pub label: Option<String>,
    /// The lowest and highest value that `y` may stand for; lines have a band of these.
    pub interval: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, label: None, interval: None }
    }
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (x, y) = (Compact(self.x), Compact(self.y));
        match (&self.label, self.interval) {
            (None, None) => (x, y).serialize(serializer),
            (Some(label), None) => (x, y, label).serialize(serializer),
            (label, Some((low, high))) => (x, y, label, Compact(low), Compact(high)).serialize(serializer),
        }
    }
}

/// Throughput against mean backlog, one point a run: down and to the right is better. Where the runs
/// sweep over a quantity such as the link's rate, a line joins the points that agree in everything else.
/// `None` where fewer than two runs report a link.
#[must_use]
pub fn throughput_against_backlog(runs: &[RunResult]) -> Option<Figure> {
    let summaries = summarise(runs);
    let swept = swept_axis(runs);
    let mut groups: Vec<(String, Vec<&RunSummary<'_>>)> = Vec::new();
    for summary in summaries.iter().filter(|summary| summary.slowest.is_some()) {
        let name = series_name(summary, swept.as_deref());
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, members)) => members.push(summary),
            None => groups.push((name, vec![summary])),
        }
    }
    if groups.iter().map(|(_, members)| members.len()).sum::<usize>() < 2 {
        return None;
    }
    let series: Vec<FigureSeries> =
        groups.into_iter().map(|(name, members)| series(name, members, swept.as_deref())).collect();
    let caption = match &swept {
        None => "One point a run. Down and to the right is better: more throughput, less waiting.".to_owned(),
        Some(axis) => format!(
            "One point a run; lines follow {axis}. Down and to the right is better: more throughput, less waiting."
        ),
    };
    Some(Figure {
        title: "Throughput against mean backlog".to_owned(),
        x: Axis {
            label: "Goodput".to_owned(),
            unit: Unit::BitsPerSecond,
            scale: Scale::of(series.iter().flat_map(|series| &series.points).map(|point| point.x)),
        },
        y: Axis::linear("Mean backlog", Unit::Packets),
        series,
        caption: Some(caption),
    })
}

/// The name of a run in the figure: its own without the swept value and the seed.
pub(super) fn series_name(summary: &RunSummary<'_>, swept: Option<&str>) -> String {
    let Some(swept) = swept else {
        return summary.name.clone();
    };
    let kept = |axis: &str| axis != swept && axis != "seed";
    let parts: Vec<&str> =
        summary.run.labels.iter().filter(|(axis, _)| kept(axis)).map(|(_, value)| value.as_str()).collect();
    if parts.is_empty() { summary.algorithm.clone() } else { parts.join(", ") }
}

fn series(name: String, mut members: Vec<&RunSummary<'_>>, swept: Option<&str>) -> FigureSeries {
    let value = |summary: &RunSummary<'_>| {
        swept.and_then(|axis| label(summary.run, axis)).and_then(quantity).unwrap_or(0.0)
    };
    members.sort_by(|a, b| value(a).total_cmp(&value(b)));
    // Several runs at one value are repetitions; a line through them would zigzag.
    let repeated = members.windows(2).any(|pair| value(pair[0]).total_cmp(&value(pair[1])).is_eq());
    let style = if swept.is_some() && !repeated { SeriesStyle::LineAndPoints } else { SeriesStyle::Points };
    let point = |summary: &&RunSummary<'_>| Point {
        x: summary.total.goodput.as_bps_f64(),
        y: summary.slowest.map_or(f64::NAN, |queue| queue.backlog_mean_packets),
        label: swept.map(|_| summary.name.clone()),
        interval: None,
    };
    let colour = members.first().map_or_else(String::new, |summary| summary.colour.clone());
    FigureSeries { name, colour, style, points: members.iter().map(point).collect() }
}

/// Points of a distribution.
const DISTRIBUTION_POINTS: usize = 200;

/// The distribution of queueing delays: the share of samples that were no longer. `None` where no run has samples of the
/// link whose packets wait longest, or where there are too many runs to tell apart.
#[must_use]
pub fn delay_distribution(runs: &[RunResult]) -> Option<Figure> {
    /// More curves cannot be told apart.
    const MAX_CURVES: usize = 12;
    let summaries = summarise(runs);
    let curve = |summary: &RunSummary<'_>| {
        let slowest = summary.slowest?;
        let series = summary.run.queue_series.iter().find(|series| series.subject == slowest.name)?;
        let column = series.columns.iter().find(|column| column.name == "delay_ms")?;
        let mut delays: Vec<f64> = column.values.iter().copied().filter(|delay| delay.is_finite()).collect();
        delays.sort_by(f64::total_cmp);
        let last = delays.len().checked_sub(1).filter(|last| *last > 0)?;
        let point = |nth: usize| {
            let share = nth as f64 / DISTRIBUTION_POINTS as f64;
            Point::from((delays[(share * last as f64).round() as usize], 100.0 * share))
        };
        let mut points: Vec<Point> = (0..=DISTRIBUTION_POINTS).map(point).collect();
        points.dedup();
        Some(FigureSeries {
            name: summary.name.clone(),
            colour: summary.colour.clone(),
            style: SeriesStyle::Line,
            points,
        })
    };
    let series: Vec<_> = summaries.iter().filter_map(curve).collect();
    (!series.is_empty() && series.len() <= MAX_CURVES).then(|| Figure {
        title: "Distribution of queueing delay".to_owned(),
        x: Axis::linear("Queueing delay", Unit::Milliseconds),
        y: Axis::linear("Samples that were no longer", Unit::Other("%".to_owned())),
        series,
        caption: Some("The further left and up, the less packets wait.".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{comparison, flow, queue, run};

    #[test]
    fn a_comparison_gives_a_point_an_algorithm_in_its_colour() {
        let figure = throughput_against_backlog(&comparison()).unwrap();
        let drawn: Vec<_> = figure
            .series
            .iter()
            .map(|s| (s.name.as_str(), s.colour.as_str(), s.style, s.points.len()))
            .collect();
        assert_eq!(
            drawn,
            [
                ("fs-at, droptail", "#0077bb", SeriesStyle::Points, 1),
                ("cubic, droptail", "#cc3311", SeriesStyle::Points, 1)
            ]
        );
        assert_eq!(figure.x.scale, Scale::Linear);
        assert_eq!(figure.series[0].points[0], Point::from((3_400_000.0, 12.25)));
    }

    #[test]
    fn a_matrix_over_rates_gives_a_line_an_algorithm_in_the_order_of_rates() {
        let mut runs = Vec::new();
        for algorithm in ["cubic", "reno"] {
            for (rate, bps) in [("10Mbit", 9_000_000), ("384kbit", 300_000), ("1Mbit", 900_000)] {
                let labels = [("cc", algorithm), ("rate", rate)];
                runs.push(run(&labels, vec![flow("a", algorithm, bps)], vec![queue("l", 1.0)]));
            }
        }
        let figure = throughput_against_backlog(&runs).unwrap();
        assert_eq!(figure.series.len(), 2);
        let line = &figure.series[0];
        assert_eq!((line.name.as_str(), line.style), ("cubic", SeriesStyle::LineAndPoints));
        assert_eq!(line.points.iter().map(|p| p.x).collect::<Vec<_>>(), [3e5, 9e5, 9e6]);
        assert_eq!(figure.x.scale, Scale::Logarithmic, "30 times apart");
    }

    #[test]
    fn repetitions_are_points_without_a_line() {
        let runs: Vec<_> = [("1", "1Mbit"), ("2", "1Mbit"), ("1", "2Mbit")]
            .map(|(seed, rate)| {
                let labels = [("seed", seed), ("rate", rate)];
                run(&labels, vec![flow("a", "reno", 1)], vec![queue("l", 1.0)])
            })
            .into();
        let figure = throughput_against_backlog(&runs).unwrap();
        assert_eq!(figure.series.len(), 1);
        assert_eq!((figure.series[0].name.as_str(), figure.series[0].style), ("reno", SeriesStyle::Points));
    }

    #[test]
    fn a_single_run_is_no_comparison() {
        assert_eq!(throughput_against_backlog(&comparison()[..1]), None);
    }

    #[test]
    fn the_unit_is_what_a_column_name_ends_in() {
        assert_eq!(Unit::of_column("cwnd_bytes"), Unit::Bytes);
        assert_eq!(Unit::of_column("goodput_bps").as_str(), "bps");
        assert_eq!(Unit::of_column("alpha"), Unit::Other(String::new()));
    }
}
