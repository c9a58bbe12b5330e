//! A capture in one JSON document.

use serde::Serialize;
use suimon_results::CaptureResult;

use super::capture_notes;
use super::tables::CaptureTables;
use crate::header::ReportHeader;
use crate::json::{JSON_SCHEMA_VERSION, JsonSeries};
use crate::table::JsonRows;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    header: &'a ReportHeader,
    capture: Capture<'a>,
    notes: Vec<String>,
    estimators: JsonRows<'a>,
    flows: JsonRows<'a>,
    flow_estimates: JsonRows<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<JsonRows<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_series: Option<JsonRows<'a>>,
}

#[derive(Serialize)]
struct Capture<'a> {
    name: &'a str,
    duration_s: f64,
    packets: u64,
    data_packets: u64,
    skipped: Vec<Skipped<'a>>,
    out_of_order: u64,
    cut_off_at_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Skipped<'a> {
    reason: &'a str,
    packets: u64,
}

/// The result as one JSON document: the same bytes for the same result.
#[must_use]
pub fn capture_json(header: &ReportHeader, result: &CaptureResult, series: JsonSeries) -> String {
    let tables = CaptureTables::new(result);
    let with_series = |rows| (series == JsonSeries::With).then_some(JsonRows(rows));
    let skipped = result.skipped.iter().map(|(reason, packets)| Skipped { reason, packets: *packets });
    let document = Document {
        schema_version: JSON_SCHEMA_VERSION,
        header,
        capture: Capture {
            name: &result.name,
            duration_s: result.duration.as_secs_f64(),
            packets: result.packets,
            data_packets: result.data_packets,
            skipped: skipped.collect(),
            out_of_order: result.out_of_order,
            cut_off_at_bytes: result.cut_off.map(|(_, offset)| offset),
        },
        notes: capture_notes(result),
        estimators: JsonRows(&tables.estimators),
        flows: JsonRows(&tables.flows),
        flow_estimates: JsonRows(&tables.flow_estimates),
        series: with_series(&tables.series),
        flow_series: with_series(&tables.flow_series),
    };
    let mut text =
        serde_json::to_string_pretty(&document).expect("a report has text keys, so it always serialises");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::capture::samples::two_flows;

    fn document(series: JsonSeries) -> Value {
        serde_json::from_str(&capture_json(&ReportHeader::default(), &two_flows(), series)).unwrap()
    }

    #[test]
    fn it_says_what_was_read_and_what_was_not() {
        let document = document(JsonSeries::Without);
        assert_eq!(document["capture"]["packets"], 1_000);
        assert_eq!(document["capture"]["skipped"][0]["reason"], "not IP");
        assert_eq!(document["capture"]["cut_off_at_bytes"], 88_024);
        assert_eq!(document["estimators"][0]["representative_error"], 0.12);
        assert!(document.get("series").is_none());
    }

    #[test]
    fn samples_are_there_only_when_asked_for() {
        assert_eq!(document(JsonSeries::With)["series"].as_array().unwrap().len(), 2);
        assert_eq!(document(JsonSeries::With)["flow_series"].as_array().unwrap().len(), 2);
    }
}
