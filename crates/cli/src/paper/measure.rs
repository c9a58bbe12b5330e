//! Numbers out of results: quantities of runs, averaged over seeds, related to each other.

use std::collections::BTreeMap;

use suimon_report::{Unit, summarise};
use suimon_results::{FlowResult, RateSpread, RunResult, jain_index};
use suimon_units::{Decibels, Probability, Rate};

use super::claims::{Measure, OverSeeds, Relation};

/// Selected runs of one experiment.
pub(super) type Selection<'a> = Vec<&'a RunResult>;

/// The quantities that a measure can be of.
const QUANTITIES: &str = "goodput_bps, goodput_mbps, utilisation_percent, backlog_mean_packets, backlog_max_packets, \
delay_p50_ms, delay_p95_ms, dropped_overflow, retransmissions, timeouts, window_cuts, jain_index, \
rate_mean_kbps, rate_deviation_kbps, rate_min_kbps, rate_max_kbps";

/// The quantities that a measure with a window can be of.
const WINDOW_QUANTITIES: &str = "backlog_mean_kb, backlog_cov, backlog_min_kb, backlog_max_kb, backlog_range_kb, \
backlog_time_mean_kb, dropped_overflow, dropped_early, marked, entered_mbps, entered_cov, goodput_mbps, goodput_cov, \
retransmissions";

/// Why a measure cannot be taken.
pub(super) type Refusal = String;

/// The runs of `runs` whose labels have these values.
pub(super) fn select<'a>(runs: &'a [RunResult], at: &BTreeMap<String, String>) -> Selection<'a> {
    runs.iter().filter(|run| at.iter().all(|(axis, value)| label(run, axis) == Some(value))).collect()
}

/// The value of `axis` for `run`.
pub(super) fn label<'a>(run: &'a RunResult, axis: &str) -> Option<&'a str> {
    run.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
}

/// Takes `measure` at `at`.
pub(super) fn take(
    runs: &[RunResult],
    at: &BTreeMap<String, String>,
    measure: &Measure,
) -> Result<f64, Refusal> {
    if let Some(crossing) = &measure.falls_through {
        return crossing_of(runs, at, measure, &crossing.axis, crossing.level);
    }
    let value = over_seeds(runs, at, measure, measure.window.as_deref())?;
    let is_against = measure.against.is_some() || measure.against_window.is_some();
    let relation = match (is_against, measure.relation) {
        (false, None) => return Ok(value),
        (true, Some(relation)) => relation,
        _ => return Err("\"against\" and \"relation\" go together".to_owned()),
    };
    let mut there = at.clone();
    there.extend(measure.against.iter().flatten().map(|(axis, value)| (axis.clone(), value.clone())));
    let window = measure.against_window.as_deref().or(measure.window.as_deref());
    let other = over_seeds(runs, &there, measure, window)?;
    Ok(match relation {
        Relation::Saving => 100.0 * (1.0 - value / other),
        Relation::Percent => 100.0 * value / other,
        Relation::Change => 100.0 * (value / other - 1.0),
    })
}

/// The quantity at `at`, of all seeds together.
fn over_seeds(
    runs: &[RunResult],
    at: &BTreeMap<String, String>,
    measure: &Measure,
    window: Option<&str>,
) -> Result<f64, Refusal> {
    let selected = select(runs, at);
    if selected.is_empty() {
        let place: Vec<_> = at.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        return Err(format!("no run has {}", place.join(", ")));
    }
    let values = selected.iter().map(|run| quantity(run, measure, window)).collect::<Result<Vec<_>, _>>()?;
    Ok(match measure.seeds {
        OverSeeds::Mean => values.iter().sum::<f64>() / values.len() as f64,
        OverSeeds::Most => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        OverSeeds::Least => values.into_iter().fold(f64::INFINITY, f64::min),
    })
}

fn quantity(run: &RunResult, measure: &Measure, window: Option<&str>) -> Result<f64, Refusal> {
    if let Some(window) = window {
        return in_window(run, measure, window);
    }
    if measure.link.is_some() {
        return Err("\"link\" goes with \"window\"".to_owned());
    }
    let own = quantity_of(run, &measure.of, measure.flows.as_deref())?;
    match &measure.over_flows {
        None => Ok(own),
        Some(others) => Ok(own / quantity_of(run, &measure.of, Some(others))?),
    }
}

/// The quantity over the window of this name.
fn in_window(run: &RunResult, measure: &Measure, window: &str) -> Result<f64, Refusal> {
    if measure.flows.is_some() || measure.over_flows.is_some() {
        return Err("\"flows\" and \"over_flows\" do not go with \"window\"".to_owned());
    }
    let rows: Vec<_> = run
        .windows
        .iter()
        .filter(|row| row.window == window && measure.link.as_ref().is_none_or(|link| row.link == *link))
        .collect();
    let [row] = rows.as_slice() else {
        let known: Vec<_> = run.windows.iter().map(|row| format!("{} {}", row.window, row.link)).collect();
        let problem = if rows.is_empty() { "no window and link" } else { "several links" };
        return Err(format!("{problem} \"{window}\"; accepted: {}", known.join(", ")));
    };
    let kb = |bytes: f64| bytes / 1e3;
    let (least, most) = (row.backlog_min_bytes.as_f64(), row.backlog_max_bytes.as_f64());
    Ok(match measure.of.as_str() {
        "backlog_mean_kb" => kb(row.backlog_mean_bytes),
        "backlog_cov" => row.backlog_cov,
        "backlog_min_kb" => kb(least),
        "backlog_max_kb" => kb(most),
        "backlog_range_kb" => kb(most - least),
        "backlog_time_mean_kb" => kb(row.backlog_time_mean_bytes),
        "dropped_overflow" => row.dropped_overflow as f64,
        "dropped_early" => row.dropped_early as f64,
        "marked" => row.marked as f64,
        "entered_mbps" => row.entered.as_bps_f64() / 1e6,
        "entered_cov" => row.entered_cov,
        "goodput_mbps" => row.goodput.as_bps_f64() / 1e6,
        "goodput_cov" => row.goodput_cov,
        "retransmissions" => row.retransmissions as f64,
        of => return Err(format!("unknown quantity \"{of}\" of a window; accepted: {WINDOW_QUANTITIES}")),
    })
}

fn quantity_of(run: &RunResult, of: &str, algorithm: Option<&str>) -> Result<f64, Refusal> {
    let flows: Vec<&FlowResult> = run
        .flows
        .iter()
        .filter(|flow| algorithm.is_none_or(|name| flow.algorithm.split(':').next() == Some(name)))
        .collect();
    if flows.is_empty() {
        return Err(format!("no flow has the algorithm {}", algorithm.unwrap_or_default()));
    }
    let total = |value: &dyn Fn(&FlowResult) -> u64| flows.iter().map(|flow| value(flow)).sum::<u64>() as f64;
    let slowest = summarise(std::slice::from_ref(run)).first().and_then(|summary| summary.slowest.cloned());
    let queue = slowest.ok_or_else(|| "no link is reported".to_owned());
    let spread = |value: fn(&RateSpread) -> Rate| {
        let of_flow = |flow: &&FlowResult| flow.rate_spread.map(|spread| value(&spread).as_bps_f64() / 1e3);
        let values: Option<Vec<f64>> = flows.iter().map(of_flow).collect();
        let values = values.ok_or_else(|| format!("\"{of}\" needs rate_spread in the scenario"))?;
        Ok::<f64, Refusal>(values.iter().sum::<f64>() / values.len() as f64)
    };
    Ok(match of {
        "rate_mean_kbps" => spread(|spread| spread.mean)?,
        "rate_deviation_kbps" => spread(|spread| spread.deviation)?,
        "rate_min_kbps" => spread(|spread| spread.min)?,
        "rate_max_kbps" => spread(|spread| spread.max)?,
        "goodput_bps" => goodput(&flows),
        "goodput_mbps" => goodput(&flows) / 1e6,
        "retransmissions" => total(&|flow| flow.retransmissions),
        "timeouts" => total(&|flow| flow.timeouts),
        "window_cuts" => total(&|flow| flow.window_cuts),
        "utilisation_percent" => 100.0 * queue?.utilisation.unwrap_or(f64::NAN),
        "backlog_mean_packets" => queue?.backlog_mean_packets,
        "backlog_max_packets" => queue?.backlog_max_packets as f64,
        "delay_p50_ms" => queue?.delay_p50.as_millis_f64(),
        "dropped_overflow" => queue?.dropped_overflow as f64,
        "jain_index" => jain_index(&flows.iter().map(|flow| flow.goodput.as_bps_f64()).collect::<Vec<_>>()),
        "delay_p95_ms" => queue?.delay_p95.as_millis_f64(),
        _ => return Err(format!("unknown quantity \"{of}\"; accepted: {QUANTITIES}")),
    })
}

/// Mean goodput of `flows`, in bits per second.
fn goodput(flows: &[&FlowResult]) -> f64 {
    flows.iter().map(|flow| flow.goodput.as_bps_f64()).sum::<f64>() / flows.len() as f64
}

/// Where along `axis` the measure falls through `level`, between the last place above it and the next;
/// the end of the axis where it never does.
fn crossing_of(
    runs: &[RunResult],
    at: &BTreeMap<String, String>,
    measure: &Measure,
    axis: &str,
    level: f64,
) -> Result<f64, Refusal> {
    let mut before: Option<(f64, f64)> = None;
    for value in values_of(&select(runs, at), axis) {
        let mut there = at.clone();
        there.insert(axis.to_owned(), value.clone());
        let (x, y) = (number(&value)?, over_seeds(runs, &there, measure, measure.window.as_deref())?);
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
}
