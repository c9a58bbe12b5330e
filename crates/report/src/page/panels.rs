//! Charts over time: which samples go into which chart, and as which curve.

use serde::Serialize;
use suimon_results::{Column, RunResult, Series};

use super::downsample::{Points, downsample};
use super::figure::Unit;
use crate::numbers::{Compact, round_to};
use crate::summary::RunSummary;

/// Runs whose samples a page shows; charts with more curves cannot be read.
pub(super) const CHARTED_RUNS: usize = 24;
/// Flows of one run whose samples a page shows.
pub(super) const CHARTED_FLOWS: usize = 6;
/// Most points of a curve: about one for each pixel across.
const CURVE_POINTS: usize = 1_500;
/// Least points of a curve, however many curves there are.
const MIN_CURVE_POINTS: usize = 200;
/// Points of a page, so that it opens at once and can be mailed.
const PAGE_POINTS: usize = 300_000;
/// Digits of a value; a chart shows three.
const VALUE_DIGITS: i32 = 5;
/// Digits of a time, relative to the length of the run.
const TIME_DIGITS: i32 = 6;

/// A chart over time. Its quantities can be switched; those with different units never show together.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Panel {
    title: &'static str,
    /// The capacity of the links behind the curves, where it is the same in all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<Compact>,
    quantities: Vec<Quantity>,
    curves: Vec<Curve>,
}

/// The highest capacity of a reported link, in bits per second, where those of all runs are within a tenth.
fn capacity(summaries: &[RunSummary<'_>]) -> Option<Compact> {
    let of_run = |summary: &RunSummary<'_>| {
        let rates = summary.run.queues.iter().map(|queue| {
            let used = queue.utilisation.filter(|used| *used > LEAST_USE)?;
            Some(queue.bytes.as_f64() * 8.0 / summary.run.measured.as_secs_f64() / used)
        });
        rates.flatten().reduce(f64::max)
    };
    let rates: Vec<f64> = summaries.iter().map(of_run).collect::<Option<_>>()?;
    let (low, high) =
        rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    (high > 0.0 && low > 0.9 * high && high.is_finite()).then(|| Compact(round_to(high, VALUE_DIGITS)))
}

/// Below this use a link's capacity does not follow from what it carried.
const LEAST_USE: f64 = 0.01;

#[derive(Debug, PartialEq, Serialize)]
struct Quantity {
    #[serde(skip)]
    column: String,
    title: String,
    unit: Unit,
    shown: bool,
}

#[derive(Debug, PartialEq, Serialize)]
struct Curve {
    name: String,
    run: usize,
    quantity: usize,
    colour: String,
    t: Vec<Compact>,
    v: Vec<Compact>,
}

/// Charts in the order of the page; a column belongs to the first that takes its subject and unit.
const PANELS: &[(&str, Subject, &[&str])] = &[
    ("Throughput", Subject::Flow, &["bps"]),
    ("Window and limits", Subject::Flow, &["bytes"]),
    ("Queue backlog", Subject::Queue, &["packets", "bytes"]),
    ("Queueing delay", Subject::Queue, &["ms"]),
    ("Round-trip time", Subject::Flow, &["ms"]),
    ("Link", Subject::Queue, &["bps"]),
    ("More of the flows", Subject::Flow, &["packets", "s", ""]),
    ("More of the queues", Subject::Queue, &["s", ""]),
];

/// Columns that a chart shows at first, best first; a chart with none of these shows its first column.
const SHOWN_FIRST: &[&str] =
    &["goodput_bps", "throughput_bps", "cwnd_bytes", "backlog_packets", "rtt_ms", "srtt_ms", "delay_ms"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Flow,
    Queue,
}

/// One sampled column of a subject of a run, before it is thinned out.
struct Source<'a> {
    run: usize,
    name: String,
    colour: &'a str,
    subject: Subject,
    series: &'a Series,
    column: &'a Column,
}

/// The charts over time of the first runs.
pub(super) fn panels(summaries: &[RunSummary<'_>]) -> Vec<Panel> {
    let charted = &summaries[..summaries.len().min(CHARTED_RUNS)];
    let sources = sources(charted);
    let limit = (PAGE_POINTS / sources.len().max(1)).clamp(MIN_CURVE_POINTS, CURVE_POINTS);
    let panel = |(title, subject, units): &(&'static str, Subject, &[&str])| {
        let takes = |source: &&Source<'_>| {
            source.subject == *subject && units.contains(&Unit::of_column(&source.column.name).as_str())
        };
        let members: Vec<&Source<'_>> = sources.iter().filter(takes).collect();
        (!members.is_empty()).then(|| Panel {
            capacity: if *title == "Throughput" { capacity(charted) } else { None },
            ..Panel::new(title, &members, limit)
        })
    };
    PANELS.iter().filter_map(panel).collect()
}

fn sources<'a>(summaries: &'a [RunSummary<'a>]) -> Vec<Source<'a>> {
    let mut sources = Vec::new();
    for (run, summary) in summaries.iter().enumerate() {
        // The flows are charted for the sake of their stream, so the stream comes first.
        let flows: Vec<_> = summary.run.aggregate_series.iter().chain(&summary.run.flow_series).collect();
        let queues: Vec<_> = summary.run.queue_series.iter().collect();
        for (subject, all, most) in
            [(Subject::Flow, flows, CHARTED_FLOWS), (Subject::Queue, queues, usize::MAX)]
        {
            for series in all.iter().copied().take(most) {
                let name = match (all.len(), summaries.len()) {
                    (1, _) => summary.name.clone(),
                    (_, 1) => series.subject.clone(),
                    _ => format!("{} · {}", summary.name, series.subject),
                };
                let colour = match subject {
                    Subject::Flow => colour_of(summary.run, &series.subject).unwrap_or(&summary.colour),
                    Subject::Queue => &summary.colour,
                };
                sources.extend(series.columns.iter().map(|column| Source {
                    run,
                    name: name.clone(),
                    colour,
                    subject,
                    series,
                    column,
                }));
            }
        }
    }
    sources
}

fn colour_of<'a>(run: &'a RunResult, name: &str) -> Option<&'a str> {
    let flows = run.flows.iter().map(|flow| (&flow.name, &flow.colour));
    let aggregates = run.aggregates.iter().map(|aggregate| (&aggregate.name, &aggregate.colour));
    aggregates.chain(flows).find(|(known, _)| *known == name).map(|(_, colour)| colour.as_str())
}

impl Panel {
    fn new(title: &'static str, sources: &[&Source<'_>], limit: usize) -> Self {
        let mut quantities: Vec<Quantity> = Vec::new();
        for source in sources {
            let column = &source.column.name;
            if !quantities.iter().any(|quantity| quantity.column == *column) {
                quantities.push(Quantity::new(column));
            }
        }
        let first = SHOWN_FIRST
            .iter()
            .find_map(|name| quantities.iter().position(|quantity| quantity.column == *name))
            .unwrap_or(0);
        quantities[first].shown = true;
        let curve = |source: &&Source<'_>| {
            let quantity = quantities
                .iter()
                .position(|quantity| quantity.column == source.column.name)
                .expect("every column became a quantity above");
            source.curve(quantity, limit)
        };
        let curves = sources.iter().map(curve).collect();
        Self { title, capacity: None, quantities, curves }
    }
}

impl Quantity {
    fn new(column: &str) -> Self {
        let unit = Unit::of_column(column);
        let bare = match &unit {
            Unit::Other(_) => column,
            known => column.strip_suffix(known.as_str()).unwrap_or(column).trim_end_matches('_'),
        };
        Self { title: bare.replace('_', " "), unit, column: column.to_owned(), shown: false }
    }
}

impl Source<'_> {
    fn curve(&self, quantity: usize, limit: usize) -> Curve {
        let times: Vec<f64> = self.series.times.iter().map(|time| time.as_secs_f64()).collect();
        let length = times.last().copied().unwrap_or(0.0);
        let points = downsample(&Points { times, values: self.column.values.clone() }, limit);
        // Times are rounded to a step of the whole run, not each to its own digits, so that the
        // samples of different runs fall on the same instants and the page can line them up.
        let step = 10_f64.powi(TIME_DIGITS - 1 - length.max(f64::MIN_POSITIVE).log10().floor() as i32);
        Curve {
            name: self.name.clone(),
            run: self.run,
            quantity,
            colour: self.colour.to_owned(),
            t: points.times.into_iter().map(|time| Compact((time * step).round() / step)).collect(),
            v: points.values.into_iter().map(|value| Compact(round_to(value, VALUE_DIGITS))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::comparison;
    use crate::summary::summarise;
    use suimon_units::Instant;

    #[test]
    fn each_quantity_goes_to_the_chart_of_its_unit() {
        let runs = comparison();
        let panels = panels(&summarise(&runs));
        let titles: Vec<_> = panels.iter().map(|panel| (panel.title, panel.curves.len())).collect();
        assert_eq!(
            titles,
            [("Throughput", 2), ("Window and limits", 2), ("Queue backlog", 2), ("Round-trip time", 2)]
        );
        assert_eq!(panels[1].quantities[0].title, "cwnd");
        assert!(panels[1].quantities[0].shown);
        assert_eq!(panels[0].curves[1].colour, "#cc3311");
        assert_eq!(panels[0].curves[1].name, "cubic, droptail");
    }

    #[test]
    fn long_series_are_thinned_out_and_numbers_kept_short() {
        let mut runs = comparison();
        let series = &mut runs[0].queue_series[0];
        series.times = (0..100_000_u64).map(|i| Instant::from_nanos(i * 1_234_567)).collect();
        series.columns[0].values = (0..100_000).map(|i| f64::from(i) / 3.0).collect();
        let panels = panels(&summarise(&runs));
        let curve = &panels[2].curves[0];
        assert_eq!((curve.t.len(), curve.v.len()), (1_500, 1_500));
        let text = serde_json::to_string(&curve.v[3]).unwrap();
        assert_eq!(text, "88.333");
        assert_eq!(serde_json::to_string(&curve.t[3]).unwrap(), "0.327");
    }

    #[test]
    fn runs_beyond_the_limit_are_not_charted() {
        let runs: Vec<_> = (0..20).flat_map(|_| comparison()).collect();
        let panels = panels(&summarise(&runs));
        assert_eq!(panels[0].curves.len(), CHARTED_RUNS);
    }
}
