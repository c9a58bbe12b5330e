//! Totals over the quantity that runs sweep over: lines through means over seeds, with their confidence intervals.

use suimon_results::RunResult;

use super::figure::{Axis, Figure, FigureSeries, Point, Scale, SeriesStyle, Unit, series_name};
use crate::estimate::Estimate;
use crate::summary::{RunSummary, summarise};
use crate::sweep::{label, quantity, swept_axis, unit};

/// More curves cannot be told apart.
const MAX_CURVES: usize = 12;

/// The values of all seeds at one value of the axis.
type Seeds = (f64, Vec<f64>);

/// A total of a run, `None` where it has none.
type Total = fn(&RunSummary<'_>) -> Option<f64>;

/// Goodput, delay and loss over the swept quantity; none where the runs sweep over no quantity, or in too many ways to
/// tell apart.
pub(super) fn over_axis(runs: &[RunResult]) -> Vec<Figure> {
    let Some(axis) = swept_axis(runs) else { return Vec::new() };
    let summaries = summarise(runs);
    let totals: [(&str, Unit, Total); 3] = [
        ("Goodput", Unit::BitsPerSecond, |run| Some(run.total.goodput.as_bps_f64())),
        ("Queueing delay, 95th percentile", Unit::Milliseconds, |run| {
            run.slowest.map(|queue| queue.delay_p95.as_millis_f64())
        }),
        ("Loss", Unit::Other("%".to_owned()), |run| {
            let sent = run.total.packets_sent;
            (sent > 0).then(|| 100.0 * run.total.packets_lost as f64 / sent as f64)
        }),
    ];
    totals.into_iter().filter_map(|total| figure(&summaries, &axis, total)).collect()
}

fn figure(
    summaries: &[RunSummary<'_>],
    axis: &str,
    (title, of, total): (&str, Unit, Total),
) -> Option<Figure> {
    let mut curves: Vec<(FigureSeries, Vec<Seeds>)> = Vec::new();
    for summary in summaries {
        let (Some(x), Some(y)) = (label(summary.run, axis).and_then(quantity), total(summary)) else {
            continue;
        };
        let name = series_name(summary, Some(axis));
        let nth = curves.iter().position(|(curve, _)| curve.name == name).unwrap_or_else(|| {
            let colour = summary.colour.clone();
            let style = SeriesStyle::LineAndPoints;
            curves.push((FigureSeries { name, colour, style, points: Vec::new() }, Vec::new()));
            curves.len() - 1
        });
        let values = &mut curves[nth].1;
        match values.iter_mut().find(|(at, _)| at.total_cmp(&x).is_eq()) {
            Some((_, seeds)) => seeds.push(y),
            None => values.push((x, vec![y])),
        }
    }
    if curves.is_empty() || curves.len() > MAX_CURVES {
        return None;
    }
    let seeds = curves.iter().flat_map(|(_, values)| values).map(|(_, seeds)| seeds.len()).max()?;
    let xs = curves.iter().flat_map(|(_, values)| values).map(|(x, _)| *x);
    let scale = Scale::of(xs);
    let series = curves.into_iter().map(|(curve, values)| FigureSeries { points: points(values), ..curve });
    let caption = (seeds > 1)
        .then(|| format!("Means over up to {seeds} seeds; the bands are their 95 % confidence intervals."));
    Some(Figure {
        title: format!("{title} over {axis}"),
        x: Axis { label: axis.to_owned(), unit: unit_of(summaries, axis), scale },
        y: Axis::linear(title, of),
        series: series.collect(),
        caption,
    })
}

fn points(mut values: Vec<Seeds>) -> Vec<Point> {
    values.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let point = |(x, seeds): &Seeds| {
        let Estimate { mean, half_width } = Estimate::of(seeds);
        // None of these quantities is below zero.
        let interval = half_width.map(|half| ((mean - half).max(0.0), mean + half));
        Point { interval, ..Point::from((*x, mean)) }
    };
    values.iter().map(point).collect()
}

fn unit_of(summaries: &[RunSummary<'_>], axis: &str) -> Unit {
    let first = summaries.iter().find_map(|summary| label(summary.run, axis));
    first.map_or_else(|| Unit::Other(String::new()), unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{comparison, flow, queue, run};

    #[test]
    fn seeds_become_a_mean_with_its_interval_at_each_value() {
        let mut runs = Vec::new();
        for (rate, seeds) in [("2Mbit", [1_800_000, 1_900_000]), ("1Mbit", [900_000, 900_000])] {
            for (seed, bps) in ["1", "2"].into_iter().zip(seeds) {
                let labels = [("cc", "reno"), ("rate", rate), ("seed", seed)];
                runs.push(run(&labels, vec![flow("a", "reno", bps)], vec![queue("l", 1.0)]));
            }
        }
        let figures = over_axis(&runs);
        let titles: Vec<_> = figures.iter().map(|figure| figure.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Goodput over rate", "Queueing delay, 95th percentile over rate", "Loss over rate"]
        );
        assert_eq!((figures[0].series.len(), figures[0].series[0].name.as_str()), (1, "reno"));
        let points = &figures[0].series[0].points;
        assert_eq!(points[0], Point { interval: Some((9e5, 9e5)), ..Point::from((1e6, 9e5)) });
        let (low, high) = points[1].interval.unwrap();
        // t of one degree of freedom, 12.706, times the standard error of 50 000.
        assert!((high - low - 2.0 * 12.706 * 50_000.0).abs() < 1.0, "{low} to {high}");
        assert!(figures[0].caption.as_ref().unwrap().contains("2 seeds"));
        assert_eq!(figures[0].x.unit, Unit::BitsPerSecond);
    }

    #[test]
    fn one_seed_is_a_line_without_a_band_and_no_sweep_is_no_figure() {
        let at = |delay| run(&[("delay", delay)], vec![flow("a", "reno", 1)], vec![queue("l", 1.0)]);
        let figures = over_axis(&[at("10ms"), at("90ms")]);
        assert!(figures[0].series[0].points.iter().all(|point| point.interval.is_none()));
        assert_eq!(figures[0].caption, None);
        assert!(over_axis(&comparison()).is_empty());
    }
}
