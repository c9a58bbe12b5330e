//! Charts of a capture over time.

use suimon_results::{CaptureResult, CapturedFlow, EstimatorVerdict, Series};
use suimon_units::Instant;

use crate::page::{Axis, Figure, FigureSeries, Point, SeriesStyle, Unit};

/// Colour of the true values.
const TRUTH: &str = "#333333";
/// Colour of estimators that fail.
const FAILED: &str = "#cccccc";
/// Colours of a time-sequence graph.
const DATA: &str = "#0072b2";
const ACKNOWLEDGED: &str = "#555555";
const REPEATED: &str = "#d55e00";
/// Flows of their own chart; those with the most packets.
const CHARTED_FLOWS: usize = 6;
/// Points of a curve: about one for each pixel across.
const CURVE_POINTS: usize = 1_500;

/// Representative RTT, number of flows, and the RTT of the largest flows.
#[must_use]
pub fn capture_figures(result: &CaptureResult) -> Vec<Figure> {
    let mut figures = vec![round_trips("Representative RTT", &result.series, result)];
    let counts = [
        ("flows_active", "that sent", TRUTH),
        ("flows_effective", "of equal rate, as 1 / sum of squared shares", "#888888"),
        ("flows_estimated", "by the zombie list", "#4e79a7"),
    ];
    figures.push(Figure {
        title: "Flows".to_owned(),
        x: Axis::linear("Time", Unit::Seconds),
        y: Axis::linear("Flows", Unit::Other(String::new())),
        series: counts
            .into_iter()
            .map(|(column, name, colour)| curve(&result.series, column, name, colour, SeriesStyle::Line))
            .collect(),
        caption: None,
    });
    let mut largest: Vec<_> = result.flows.iter().collect();
    largest.sort_by_key(|flow| std::cmp::Reverse(flow.packets));
    largest.truncate(CHARTED_FLOWS);
    figures.extend(largest.iter().filter_map(|flow| time_sequence(flow)));
    figures.extend(largest.iter().filter_map(|flow| {
        let series = result.flow_series.iter().find(|series| series.subject == flow.name)?;
        Some(round_trips(&format!("RTT of {}", flow.name), series, result))
    }));
    figures.retain(|figure| figure.series.iter().any(|series| !series.points.is_empty()));
    figures
}

/// The data of `flow` over time, and what of it was sent again.
fn time_sequence(flow: &CapturedFlow) -> Option<Figure> {
    let kept = flow.time_sequence.as_ref()?;
    let series = [
        ("data", DATA, SeriesStyle::Line, &kept.data),
        ("acknowledged", ACKNOWLEDGED, SeriesStyle::DashedLine, &kept.acknowledged),
        ("sent again or late", REPEATED, SeriesStyle::Points, &kept.repeats),
    ];
    let series = series.into_iter().filter(|(.., points)| !points.is_empty());
    Some(Figure {
        title: format!("Time-sequence graph of {}", flow.name),
        x: Axis::linear("Time", Unit::Seconds),
        y: Axis::linear("Sequence number, from the first byte", Unit::Bytes),
        series: series
            .map(|(name, colour, style, points)| FigureSeries {
                name: name.to_owned(),
                colour: colour.to_owned(),
                style,
                points: points.iter().map(|(at, byte)| Point::from((at.as_secs_f64(), *byte as f64))).collect(),
            })
            .collect(),
        caption: Some(
            "The slope is the rate. Across, the two lines are a round trip to the receiver apart; upright, the data in \
             flight."
                .to_owned(),
        ),
    })
}

fn round_trips(title: &str, series: &Series, result: &CaptureResult) -> Figure {
    let mut curves = vec![curve(series, "rtt_true_ms", "true", TRUTH, SeriesStyle::Line)];
    curves.extend(result.estimators.iter().map(|estimator| {
        let column = format!("{}_ms", estimator.name);
        match estimator.verdict() {
            EstimatorVerdict::Fails => {
                let name = format!("{} (fails)", estimator.name);
                curve(series, &column, &name, FAILED, SeriesStyle::Line)
            }
            _ => curve(series, &column, &estimator.name, &estimator.colour, SeriesStyle::LineAndPoints),
        }
    }));
    curves.retain(|curve| !curve.points.is_empty());
    Figure {
        title: title.to_owned(),
        x: Axis::linear("Time", Unit::Seconds),
        y: Axis::linear("RTT", Unit::Milliseconds),
        series: curves,
        caption: None,
    }
}

/// Every `n`th sample, where there are more than can be seen.
fn curve(series: &Series, column: &str, name: &str, colour: &str, style: SeriesStyle) -> FigureSeries {
    let values = series.columns.iter().find(|known| known.name == column).map_or(&[][..], |c| &c.values);
    let step = values.len().div_ceil(CURVE_POINTS).max(1);
    let points = series
        .times
        .iter()
        .map(|time: &Instant| time.as_secs_f64())
        .zip(values.iter().copied())
        .step_by(step)
        .filter(|(_, value)| value.is_finite());
    FigureSeries {
        name: name.to_owned(),
        colour: colour.to_owned(),
        style,
        points: points.map(Point::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::samples::two_flows;

    #[test]
    fn truth_and_estimators_share_a_chart() {
        let figures = capture_figures(&two_flows());
        let titles: Vec<_> = figures.iter().map(|figure| figure.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Representative RTT",
                "Flows",
                "Time-sequence graph of 10.0.0.1:1 > 10.0.0.2:80",
                "RTT of 10.0.0.1:1 > 10.0.0.2:80"
            ]
        );
        let drawn: Vec<_> = figures[0].series.iter().map(|s| (s.name.as_str(), s.points.len())).collect();
        assert_eq!(drawn, [("true", 1), ("bursts", 2)], "what is not known is not drawn");
    }

    #[test]
    fn long_curves_are_thinned_out() {
        let mut result = two_flows();
        result.series.times = vec![Instant::ZERO; 4_000];
        result.series.columns.iter_mut().for_each(|column| column.values = vec![1.0; 4_000]);
        assert_eq!(capture_figures(&result)[0].series[0].points.len(), 1_334);
    }
}
