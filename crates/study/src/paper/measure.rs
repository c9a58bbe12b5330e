//! Numbers out of results: quantities of runs, averaged over seeds, related to each other.

use std::collections::BTreeMap;

use suimon_report::{Estimate, Unit};
use suimon_results::RunResult;
use suimon_units::{Decibels, Probability, Rate};

use super::claims::{Measure, OverSeeds, Part, Relation};
use super::columns::Results;

/// Selected runs of one experiment.
pub(super) type Selection<'a> = Vec<&'a RunResult>;

/// Why a measure cannot be taken.
pub(super) type Refusal = String;

/// The runs of `runs` whose labels have these values.
pub(super) fn select<'a>(runs: &'a [RunResult], at: &BTreeMap<String, String>) -> Selection<'a> {
    runs.iter().filter(|run| is_at(run, at)).collect()
}

/// Whether the labels of `run` have these values.
fn is_at(run: &RunResult, at: &BTreeMap<String, String>) -> bool {
    at.iter().all(|(axis, value)| label(run, axis) == Some(value))
}

/// The value of `axis` for `run`.
pub(super) fn label<'a>(run: &'a RunResult, axis: &str) -> Option<&'a str> {
    run.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
}

/// Takes `measure` at `at`.
pub(super) fn take(
    results: &Results<'_>,
    at: &BTreeMap<String, String>,
    measure: &Measure,
) -> Result<Estimate, Refusal> {
    if let Some(crossing) = &measure.falls_through {
        let mean = crossing_of(results, at, measure, &crossing.axis, crossing.level)?;
        return Ok(Estimate { mean, half_width: None });
    }
    if let Some(per) = &measure.per {
        let mut there = at.clone();
        there.extend(per.iter().map(|(axis, value)| (axis.clone(), value.clone())));
        let own = related(results, at, measure)?;
        return Ok(Estimate { mean: own.mean / related(results, &there, measure)?.mean, half_width: None });
    }
    related(results, at, measure)
}

/// The quantity at `at`, set against another where the measure says so.
fn related(
    results: &Results<'_>,
    at: &BTreeMap<String, String>,
    measure: &Measure,
) -> Result<Estimate, Refusal> {
    let value = over_seeds(results, at, measure, measure.window.as_deref())?;
    let is_against = measure.against.is_some() || measure.against_window.is_some();
    let relation = match (is_against, measure.relation) {
        (false, None) => return Ok(value),
        (true, Some(relation)) => relation,
        _ => return Err("\"against\" and \"relation\" go together".to_owned()),
    };
    let mut there = at.clone();
    there.extend(measure.against.iter().flatten().map(|(axis, value)| (axis.clone(), value.clone())));
    let window = measure.against_window.as_deref().or(measure.window.as_deref());
    let other = over_seeds(results, &there, measure, window)?;
    let percent = value.percent_of(other);
    Ok(match relation {
        Relation::Saving => Estimate { mean: 100.0 - percent.mean, ..percent },
        Relation::Percent => percent,
        Relation::Change => Estimate { mean: percent.mean - 100.0, ..percent },
        Relation::Less => Estimate { mean: other.mean - value.mean, half_width: None },
    })
}

/// The quantity at `at`, of all seeds together.
fn over_seeds(
    results: &Results<'_>,
    at: &BTreeMap<String, String>,
    measure: &Measure,
    window: Option<&str>,
) -> Result<Estimate, Refusal> {
    let positions: Vec<_> =
        (0..results.runs.len()).filter(|position| is_at(&results.runs[*position], at)).collect();
    if positions.is_empty() {
        let place: Vec<_> = at.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        return Err(format!("no run has {}", place.join(", ")));
    }
    // A matrix may have the seeds as an axis.
    let setting =
        |run: &RunResult| run.labels.iter().filter(|(axis, _)| axis != "seed").cloned().collect::<Vec<_>>();
    let settings: Vec<_> = positions.iter().map(|position| setting(&results.runs[*position])).collect();
    let values = positions.iter().map(|position| quantity(results, *position, measure, window));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let extreme = |mean| Estimate { mean, half_width: None };
    Ok(match measure.seeds {
        OverSeeds::Mean => Estimate::of(&values),
        OverSeeds::Average => extreme(Estimate::of(&values).mean),
        OverSeeds::Median => extreme(median_of_means(&settings, &values)),
        OverSeeds::Most => extreme(values.into_iter().fold(f64::NEG_INFINITY, f64::max)),
        OverSeeds::Least => extreme(values.into_iter().fold(f64::INFINITY, f64::min)),
    })
}

/// The middle of the means of those `values`, of which there is at least one, whose `settings` are equal.
fn median_of_means<K: Ord>(settings: &[K], values: &[f64]) -> f64 {
    let mut alike: BTreeMap<&K, Vec<f64>> = BTreeMap::new();
    for (setting, value) in settings.iter().zip(values) {
        alike.entry(setting).or_default().push(*value);
    }
    let mut means: Vec<_> = alike.values().map(|values| Estimate::of(values).mean).collect();
    means.sort_by(f64::total_cmp);
    let middle = means.len() / 2;
    if means.len() % 2 == 1 { means[middle] } else { (means[middle - 1] + means[middle]) / 2.0 }
}

/// The quantity of the run at `position`, and of some of its flows over others where the measure says so.
fn quantity(
    results: &Results<'_>,
    position: usize,
    measure: &Measure,
    window: Option<&str>,
) -> Result<f64, Refusal> {
    if !measure.pooled.is_empty() {
        let of_part = |part: &Part| {
            let measure = Measure { group: part.group.clone(), pooled: Vec::new(), ..measure.clone() };
            quantity(results, position, &measure, Some(&part.window))
        };
        let values: Vec<_> = measure.pooled.iter().map(of_part).collect::<Result<_, _>>()?;
        return Ok(values.iter().sum::<f64>() / values.len() as f64);
    }
    let own = results.quantity(position, measure, measure.flows.as_deref(), window)?;
    match &measure.over_flows {
        None if measure.unevenness => Err("\"unevenness\" needs \"over_flows\"".to_owned()),
        None => Ok(own),
        Some(others) => {
            let ratio = own / results.quantity(position, measure, Some(others), window)?;
            Ok(if measure.unevenness { ratio.ln().abs() } else { ratio })
        }
    }
}

/// Where along `axis` the measure falls through `level`, between the last place above it and the next;
/// the end of the axis where it never does.
fn crossing_of(
    results: &Results<'_>,
    at: &BTreeMap<String, String>,
    measure: &Measure,
    axis: &str,
    level: f64,
) -> Result<f64, Refusal> {
    let mut before: Option<(f64, f64)> = None;
    for value in values_of(&select(results.runs, at), axis) {
        let mut there = at.clone();
        there.insert(axis.to_owned(), value.clone());
        let y = over_seeds(results, &there, measure, measure.window.as_deref())?.mean;
        let x = number(&value)?;
        if y < level {
            return Ok(match before {
                Some((x0, y0)) if y0 > level => x0 + (x - x0) * (y0 - level) / (y0 - y),
                _ => x,
            });
        }
        before = Some((x, y));
    }
    before.map(|(x, _)| x).ok_or_else(|| format!("no run has a value of the axis {axis}"))
}

/// The values of `axis` in the order of the runs.
pub(super) fn values_of(runs: &[&RunResult], axis: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in runs.iter().filter_map(|run| label(run, axis)) {
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    values
}

/// The number of a value such as `64kbit` or `10 packets`, in its base unit.
pub(super) fn number(text: &str) -> Result<f64, Refusal> {
    if let Ok(rate) = text.parse::<Rate>() {
        return Ok(rate.as_bps_f64());
    }
    if let Ok(decibels) = text.parse::<Decibels>() {
        return Ok(decibels.get());
    }
    if let Ok(probability) = text.parse::<Probability>() {
        return Ok(if text.contains('%') { 100.0 * probability.get() } else { probability.get() });
    }
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text[..digits].parse().map_err(|_| format!("\"{text}\" does not start with a number"))
}

/// The unit of a value such as `64kbit` or `10 packets`.
pub(super) fn unit(text: &str) -> Unit {
    if text.parse::<Decibels>().is_ok() {
        return Unit::Other("dB".to_owned());
    }
    if text.parse::<Rate>().is_ok() {
        return Unit::BitsPerSecond;
    }
    if text.ends_with('%') {
        return Unit::Other("%".to_owned());
    }
    if text.ends_with("packets") { Unit::Packets } else { Unit::Other(String::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_axes_are_read_in_their_base_unit() {
        assert_eq!(number("64kbit"), Ok(64_000.0));
        assert_eq!(number("-5dB"), Ok(-5.0));
        assert_eq!(number("10 packets"), Ok(10.0));
        assert_eq!(number("0.2%"), Ok(0.2));
        assert_eq!(number("4"), Ok(4.0));
        assert!(number("many").is_err());
    }

    #[test]
    fn the_middle_is_that_of_the_means_over_seeds() {
        assert_eq!(median_of_means(&["a", "a", "b", "b", "c"], &[1.0, 9.0, 2.0, 4.0, 100.0]), 5.0);
        assert_eq!(median_of_means(&["a", "b"], &[1.0, 4.0]), 2.5);
    }
}
