//! A paper's charts, drawn from what was measured here.

use std::collections::BTreeMap;

use suimon_report::{Axis, Figure, FigureSeries, Point, SeriesStyle, Unit};
use suimon_results::RunResult;

use super::Outcome;
use super::claims::{FigureSpec, Measure, Paper};
use super::columns::Results;
use super::measure::{Refusal, number, select, take, unit, values_of};
use crate::error::StudyError;

/// The charts of all experiments that were run.
pub(super) fn draw(paper: &Paper, outcomes: &[Outcome<'_>]) -> Result<Vec<Figure>, StudyError> {
    let mut figures = Vec::new();
    for spec in &paper.figures {
        let outcome = outcomes.iter().find(|outcome| outcome.experiment.name == spec.experiment);
        if let Some(Ok(runs)) = outcome.map(|outcome| &outcome.results) {
            let figure = figure(spec, &Results::new(runs));
            figures.push(
                figure.map_err(|problem| paper.refuse(format!("figure \"{}\": {problem}", spec.title)))?,
            );
        }
    }
    Ok(figures)
}

fn figure(spec: &FigureSpec, results: &Results<'_>) -> Result<Figure, Refusal> {
    let runs = results.runs;
    let selected = select(runs, &spec.at);
    let places = values_of(&selected, &spec.x);
    let lines = values_of(&selected, &spec.lines);
    let mut series = Vec::new();
    for (position, line) in lines.iter().enumerate() {
        let mut at = spec.at.clone();
        at.insert(spec.lines.clone(), line.clone());
        series.push(FigureSeries {
            name: line.clone(),
            colour: colour(runs, &at, position),
            // Between quantities of places that have no order a line means nothing.
            style: if spec.x_at.is_empty() { SeriesStyle::LineAndPoints } else { SeriesStyle::Points },
            points: points(spec, results, &at, &places)?,
        });
    }
    let unit = match places.first() {
        Some(place) => unit(place),
        None => Unit::of_column(&spec.x),
    };
    let column = spec.x.rsplit('.').next().unwrap_or_default();
    let label = column.split('_').next().unwrap_or_default().to_owned();
    Ok(Figure {
        title: spec.title.clone(),
        x: if spec.logarithmic_x { Axis::logarithmic(label, unit) } else { Axis::linear(label, unit) },
        y: Axis::linear(spec.y_label.clone(), named_unit(&spec.y_unit)),
        series,
        caption: spec.caption.clone(),
    })
}

/// One point for each value of the axis `x`; where `x` is a quantity, one for each other place of the
/// matrix, in the order of the runs.
fn points(
    spec: &FigureSpec,
    results: &Results<'_>,
    at: &BTreeMap<String, String>,
    places: &[String],
) -> Result<Vec<Point>, Refusal> {
    let mut points = Vec::new();
    if places.is_empty() {
        let quantity = Measure::plain(&spec.x, spec.x_unit.as_deref());
        for run in select(results.runs, at) {
            let place: BTreeMap<_, _> =
                run.labels.iter().filter(|(axis, _)| axis != "seed").cloned().collect();
            let mut of_x = place.clone();
            of_x.extend(spec.x_at.iter().map(|(axis, value)| (axis.clone(), value.clone())));
            let (x, y) = (take(results, &of_x, &quantity)?.mean, take(results, &place, &spec.y)?.mean);
            let others = place.iter().filter(|(axis, _)| **axis != spec.lines && *axis != "experiment");
            let label = others.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
            points.push(Point { x, y, label: Some(label), interval: None });
        }
        points.dedup();
        return Ok(points);
    }
    if !spec.x_at.is_empty() || spec.x_unit.is_some() {
        return Err(format!("\"x_at\" and \"x_unit\" go with a column, and \"{}\" is an axis", spec.x));
    }
    for place in places {
        let mut there = at.clone();
        there.insert(spec.x.clone(), place.clone());
        let estimate = take(results, &there, &spec.y)?;
        let interval = estimate.half_width.map(|half| (estimate.mean - half, estimate.mean + half));
        points.push(Point { interval, ..Point::from((number(place)?, estimate.mean)) });
    }
    Ok(points)
}

/// The algorithm's colour where a line is one algorithm's; else one of a few that are told apart.
fn colour(runs: &[RunResult], at: &BTreeMap<String, String>, position: usize) -> String {
    const OTHERS: [&str; 6] = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#9c755f"];
    let mut colours: Vec<_> =
        select(runs, at).iter().flat_map(|run| &run.flows).map(|flow| flow.colour.clone()).collect();
    colours.sort();
    colours.dedup();
    match colours.as_slice() {
        [only] => only.clone(),
        _ => OTHERS[position % OTHERS.len()].to_owned(),
    }
}

/// The unit that column names end in, or one that needs no prefix.
fn named_unit(name: &str) -> Unit {
    match Unit::of_column(&format!("_{name}")) {
        Unit::Other(_) => Unit::Other(name.to_owned()),
        known => known,
    }
}
