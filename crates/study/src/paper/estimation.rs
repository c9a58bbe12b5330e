//! How far a link's estimator was from the truth in a window, out of the link's series.

use std::collections::BTreeMap;

use suimon_results::{RunResult, Series, WindowResult};
use suimon_units::Instant;

use super::claims::Measure;
use super::measure::Refusal;

/// What is told of an estimator beside the columns of tables.
const QUANTITIES: &str = "estimated_rtt_ms, true_rtt_ms, rtt_error_percent, rtt_settling_s";

/// Error below which an estimate counts as settled (Hoshihara, Koga, Watanabe §4.1).
const SETTLED_PERCENT: f64 = 10.0;

/// What `measure` is of, over the window of this name and its link.
pub(super) fn quantity(run: &RunResult, measure: &Measure, window: Option<&str>) -> Result<f64, Refusal> {
    let of: fn(&[Sample]) -> f64 = match measure.of.as_str() {
        "estimated_rtt_ms" => |samples| mean(samples.iter().map(|sample| sample.estimated)),
        "true_rtt_ms" => |samples| mean(samples.iter().map(|sample| sample.truth)),
        "rtt_error_percent" => |samples| mean(samples.iter().map(Sample::error_percent)),
        "rtt_settling_s" => settling,
        of => return Err(format!("unknown quantity \"{of}\"; accepted: TABLE.COLUMN, {QUANTITIES}")),
    };
    let link = measure.link.as_deref();
    let is_meant =
        |row: &&WindowResult| Some(row.window.as_str()) == window && Some(row.link.as_str()) == link;
    let Some(row) = run.windows.iter().find(is_meant) else {
        let known: Vec<_> = run.windows.iter().map(|row| format!("{} {}", row.window, row.link)).collect();
        return Err(format!("\"{}\" needs a window and a link; accepted: {}", measure.of, known.join(", ")));
    };
    let series = run.queue_series.iter().find(|series| series.subject == row.link);
    let own = measure.group.as_deref().map(|group| mean_srtt(run, group)).transpose()?;
    let samples = series.and_then(|series| samples(series, row, own.as_ref()));
    samples.map(|samples| of(&samples)).ok_or_else(|| {
        let accepted = "a link with \"estimator\" and a record_interval";
        format!("\"{}\" has no estimator; accepted: {accepted}", row.link)
    })
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Since the window opened, in seconds.
    since: f64,
    estimated: f64,
    truth: f64,
}

impl Sample {
    /// Eq. 16.
    fn error_percent(&self) -> f64 {
        100.0 * (self.truth - self.estimated).abs() / self.truth
    }
}

/// The samples within the window of which both the estimate and the truth are known: `own` where it is given, or else
/// the senders' round-trip times weighted by packets (eq. 2).
fn samples(series: &Series, row: &WindowResult, own: Option<&BTreeMap<Instant, f64>>) -> Option<Vec<Sample>> {
    let column = |name: &str| Some(&series.columns.iter().find(|column| column.name == name)?.values);
    let (estimates, weighted) = (column("estimated_rtt_ms")?, column("true_rtt_ms")?);
    let values = series.times.iter().zip(estimates).zip(weighted);
    let within = values.filter(|((time, _), _)| (row.from..row.to).contains(time));
    let samples = within.map(|((time, estimated), weighted)| Sample {
        since: time.saturating_since(row.from).as_secs_f64(),
        estimated: *estimated,
        truth: own.map_or(*weighted, |own| own.get(time).copied().unwrap_or(f64::NAN)),
    });
    Some(samples.filter(|sample| sample.estimated.is_finite() && sample.truth.is_finite()).collect())
}

/// The mean SRTT, in milliseconds, of those flows of `group` that have data under way (eq. 16), by time.
fn mean_srtt(run: &RunResult, group: &str) -> Result<BTreeMap<Instant, f64>, Refusal> {
    let mut sums: BTreeMap<Instant, (f64, f64)> = BTreeMap::new();
    for series in run.flow_series.iter().filter(|series| is_of_group(&series.subject, group)) {
        let column = |name: &str| {
            let column = series.columns.iter().find(|column| column.name == name);
            column.ok_or_else(|| format!("\"{}\" has no {name}; accepted: flows of TCP", series.subject))
        };
        let values = column("srtt_ms")?.values.iter().zip(&column("flight_bytes")?.values);
        for (time, (srtt, flight)) in series.times.iter().zip(values) {
            if srtt.is_finite() && *flight > 0.0 {
                let (sum, count) = sums.entry(*time).or_default();
                *sum += srtt;
                *count += 1.0;
            }
        }
    }
    Ok(sums.into_iter().map(|(time, (sum, count))| (time, sum / count)).collect())
}

/// Whether the flow of this name is one of those that the scenario has under the name `group`.
pub(super) fn is_of_group(flow: &str, group: &str) -> bool {
    let rest = flow.strip_prefix(group);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|nth| nth.parse::<u32>().is_ok())
    })
}

/// When the error, once it was larger, first falls below [`SETTLED_PERCENT`]; zero where it never was, and
/// undefined where it stays.
fn settling(samples: &[Sample]) -> f64 {
    let settled = |sample: &&Sample| sample.error_percent() < SETTLED_PERCENT;
    let Some(upset) = samples.iter().position(|sample| !settled(&sample)) else { return 0.0 };
    samples[upset..].iter().find(settled).map_or(f64::NAN, |sample| sample.since)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(since: f64, estimated: f64, truth: f64) -> Sample {
        Sample { since, estimated, truth }
    }

    #[test]
    fn the_error_is_a_share_of_the_truth() {
        assert_eq!(sample(0.0, 90.0, 100.0).error_percent(), 10.0);
        assert_eq!(sample(0.0, 110.0, 100.0).error_percent(), 10.0);
    }

    #[test]
    fn it_has_settled_when_the_error_falls_below_a_tenth_after_it_was_larger() {
        let after = [
            (0.1, 50.0, 50.0),
            (0.5, 50.0, 100.0),
            (6.0, 90.0, 100.0),
            (6.5, 91.0, 100.0),
            (7.0, 80.0, 100.0),
        ]
        .map(|(since, estimated, truth)| sample(since, estimated, truth));
        assert_eq!(settling(&after), 6.5);
        assert_eq!(settling(&after[..1]), 0.0);
        assert!(settling(&after[..3]).is_nan());
    }

    #[test]
    fn a_group_is_the_flows_of_one_name_in_the_scenario() {
        assert!(["A", "A-1", "A-25"].into_iter().all(|flow| is_of_group(flow, "A")));
        assert!(["A-again", "A-again-1", "B-1", "A1"].into_iter().all(|flow| !is_of_group(flow, "A")));
    }
}
