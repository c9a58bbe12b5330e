//! The tables of a capture: every column of every file is defined here, once.

use std::sync::Arc;

use suimon_results::{CaptureResult, CapturedFlow, EstimatorResult, Series};
use suimon_units::Duration;

use crate::table::{Table, TableBuilder};

/// A capture as tables: one row an estimator, flow, flow and estimator, or interval.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureTables {
    /// The accuracy of each estimator.
    pub estimators: Table,
    /// The facts of each flow.
    pub flows: Table,
    /// The estimates of each estimator for each flow.
    pub flow_estimates: Table,
    /// Representative RTT and number of flows over time.
    pub series: Table,
    /// Each flow over time.
    pub flow_series: Table,
}

impl CaptureTables {
    /// The tables of `result`.
    #[must_use]
    pub fn new(result: &CaptureResult) -> Self {
        Self {
            estimators: estimators(&result.estimators),
            flows: flows(&result.flows),
            flow_estimates: flow_estimates(result),
            series: series("series", None, std::slice::from_ref(&result.series)),
            flow_series: series("flow_series", Some("flow"), &result.flow_series),
        }
    }

    /// All of them, in the order in which they are written.
    #[must_use]
    pub fn all(&self) -> [&Table; 5] {
        [&self.estimators, &self.flows, &self.flow_estimates, &self.series, &self.flow_series]
    }
}

impl<'a> IntoIterator for &'a CaptureTables {
    type Item = &'a Table;
    type IntoIter = std::array::IntoIter<&'a Table, 5>;

    fn into_iter(self) -> Self::IntoIter {
        self.all().into_iter()
    }
}

fn estimators(rows: &[EstimatorResult]) -> Table {
    let mut t = TableBuilder::new("estimators", rows);
    t.text("estimator", |e| text(&e.name));
    t.count("estimates", |e| Some(e.estimates));
    t.count("judged", |e| Some(e.judged));
    t.text("verdict", |e| text(e.verdict().as_str()));
    t.number("bias_median", |e| e.bias_median);
    t.number("error_median", |e| e.error_median);
    t.number("representative_mean_ms", |e| ms(e.representative_mean));
    t.number("rtt_true_mean_ms", |e| ms(e.true_mean));
    t.number("representative_error", |e| e.representative_error);
    t.count("memory_bytes", |e| Some(e.memory.get()));
    t.build()
}

fn flows(rows: &[CapturedFlow]) -> Table {
    let mut t = TableBuilder::new("flows", rows);
    t.text("flow", |f| text(&f.name));
    t.text("transport", |f| text(f.transport));
    t.number("start_s", |f| Some(f.start.as_secs_f64()));
    t.number("end_s", |f| Some(f.end.as_secs_f64()));
    t.count("packets", |f| Some(f.packets));
    t.count("bytes", |f| Some(f.bytes.get()));
    t.count("payload_bytes", |f| Some(f.payload.get()));
    t.count("rtt_samples", |f| Some(f.rtt.samples));
    t.number("rtt_min_ms", |f| ms(f.rtt.mean().map(|_| f.rtt.min)));
    t.number("rtt_mean_ms", |f| ms(f.rtt.mean()));
    t.number("rtt_max_ms", |f| ms(f.rtt.mean().map(|_| f.rtt.max)));
    t.number("rtt_p50_ms", |f| ms(f.rtt_percentiles.map(|rtts| rtts.p50)));
    t.number("rtt_p95_ms", |f| ms(f.rtt_percentiles.map(|rtts| rtts.p95)));
    t.number("rtt_p99_ms", |f| ms(f.rtt_percentiles.map(|rtts| rtts.p99)));
    t.count("retransmissions", |f| Some(f.repeats?.retransmissions));
    t.count("lost_before_capture", |f| Some(f.repeats?.lost_before));
    t.count("reordered", |f| Some(f.repeats?.reordered));
    t.number("loss", CapturedFlow::loss);
    t.number("receiver_side_mean_ms", |f| ms(f.receiver_side_mean));
    t.number("sender_side_mean_ms", |f| ms(f.sender_side_mean));
    t.build()
}

fn flow_estimates(result: &CaptureResult) -> Table {
    let of_flow =
        |flow| result.estimators.iter().enumerate().map(move |(nth, estimator)| (flow, nth, estimator));
    let rows: Vec<(&CapturedFlow, usize, &EstimatorResult)> = result
        .flows
        .iter()
        .flat_map(of_flow)
        .filter(|(flow, nth, _): &(&CapturedFlow, _, _)| flow.estimates[*nth].samples > 0)
        .collect();
    let mut t = TableBuilder::new("flow_estimates", &rows);
    t.text("flow", |(f, _, _)| text(&f.name));
    t.text("estimator", |(_, _, e)| text(&e.name));
    t.count("estimates", |(f, nth, _)| Some(f.estimates[*nth].samples));
    t.number("estimate_mean_ms", |(f, nth, _)| ms(f.estimates[*nth].mean()));
    t.number("rtt_mean_ms", |(f, _, _)| ms(f.rtt.mean()));
    t.build()
}

fn series(name: &'static str, subject: Option<&'static str>, all: &[Series]) -> Table {
    struct Sample<'a> {
        series: &'a Series,
        subject: Arc<str>,
        index: usize,
    }
    let rows: Vec<Sample<'_>> = all
        .iter()
        .flat_map(|series| {
            let subject: Arc<str> = Arc::from(series.subject.as_str());
            (0..series.times.len()).map(move |index| Sample { series, subject: subject.clone(), index })
        })
        .collect();
    let mut t = TableBuilder::new(name, &rows);
    if let Some(subject) = subject {
        t.text(subject, |sample| Some(sample.subject.clone()));
    }
    t.number("time_s", |sample| Some(sample.series.times[sample.index].as_secs_f64()));
    // Every series of a capture has the same columns.
    for (nth, column) in all.first().map_or(&[][..], |first| &first.columns).iter().enumerate() {
        t.number(column.name.as_str(), |sample| {
            sample.series.columns.get(nth)?.values.get(sample.index).copied()
        });
    }
    t.build()
}

fn text(value: &str) -> Option<Arc<str>> {
    Some(Arc::from(value))
}

fn ms(duration: Option<Duration>) -> Option<f64> {
    duration.map(Duration::as_millis_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::samples::two_flows;

    fn rows(table: &Table) -> serde_json::Value {
        let mut text = Vec::new();
        table.write_json_rows(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn a_flow_without_a_true_rtt_has_none_in_the_table() {
        let tables = CaptureTables::new(&two_flows());
        let flows = rows(&tables.flows);
        assert_eq!((&flows[0]["rtt_min_ms"], &flows[0]["rtt_mean_ms"]), (&40.into(), &50.into()));
        assert_eq!((&flows[0]["rtt_p50_ms"], &flows[0]["rtt_p99_ms"]), (&48.into(), &60.into()));
        assert_eq!((&flows[0]["retransmissions"], &flows[0]["loss"]), (&6.into(), &0.03.into()));
        assert!(flows[1]["rtt_min_ms"].is_null() && flows[1]["sender_side_mean_ms"].is_null());
        assert!(flows[1]["rtt_p50_ms"].is_null() && flows[1]["retransmissions"].is_null());
    }

    #[test]
    fn only_flows_of_which_something_was_said_have_estimates() {
        let tables = CaptureTables::new(&two_flows());
        assert_eq!(tables.flow_estimates.rows(), 1);
        assert_eq!(rows(&tables.flow_estimates)[0]["estimate_mean_ms"], 44);
    }

    #[test]
    fn series_have_a_column_for_each_estimator() {
        let tables = CaptureTables::new(&two_flows());
        let series = rows(&tables.series);
        assert_eq!((&series[0]["time_s"], &series[0]["rtt_true_ms"]), (&1.into(), &50.into()));
        assert!(series[1]["rtt_true_ms"].is_null());
        assert_eq!(rows(&tables.flow_series)[0]["bursts_ms"], 44);
    }
}
