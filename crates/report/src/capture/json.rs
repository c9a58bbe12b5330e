//! A capture in one JSON document.

use serde::Serialize;
use suimon_results::CaptureResult;

use super::tables::CaptureTables;
use super::{all_repeats, capture_notes};
use crate::document::{JsonDocument, text_of};
use crate::header::ReportHeader;
use crate::json::{JSON_SCHEMA_VERSION, JsonDetail};

#[derive(Serialize)]
struct Capture<'a> {
    name: &'a str,
    duration_s: f64,
    packets: u64,
    data_packets: u64,
    rtt_p50_ms: Option<f64>,
    rtt_p95_ms: Option<f64>,
    rtt_p99_ms: Option<f64>,
    retransmissions: u64,
    lost_before_capture: u64,
    reordered: u64,
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
pub fn capture_json(header: &ReportHeader, result: &CaptureResult, detail: JsonDetail) -> String {
    let tables = CaptureTables::new(result);
    let skipped = result.skipped.iter().map(|(reason, packets)| Skipped { reason, packets: *packets });
    let repeats = all_repeats(result);
    let rtts = result.rtt_percentiles;
    let capture = Capture {
        name: &result.name,
        duration_s: result.duration.as_secs_f64(),
        packets: result.packets,
        data_packets: result.data_packets,
        rtt_p50_ms: rtts.map(|rtts| rtts.p50.as_millis_f64()),
        rtt_p95_ms: rtts.map(|rtts| rtts.p95.as_millis_f64()),
        rtt_p99_ms: rtts.map(|rtts| rtts.p99.as_millis_f64()),
        retransmissions: repeats.retransmissions,
        lost_before_capture: repeats.lost_before,
        reordered: repeats.reordered,
        skipped: skipped.collect(),
        out_of_order: result.out_of_order,
        cut_off_at_bytes: result.cut_off.map(|(_, offset)| offset),
    };
    text_of(|into| {
        let mut document = JsonDocument::new(into)?;
        document.value("schema_version", &JSON_SCHEMA_VERSION)?;
        document.value("header", header)?;
        document.value("capture", &capture)?;
        document.value("notes", &capture_notes(result))?;
        document.rows("estimators", &tables.estimators)?;
        document.rows("flows", &tables.flows)?;
        document.rows("flow_estimates", &tables.flow_estimates)?;
        if detail == JsonDetail::Series {
            document.rows("series", &tables.series)?;
            document.rows("flow_series", &tables.flow_series)?;
        }
        document.finish()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::capture::samples::two_flows;

    fn document(detail: JsonDetail) -> Value {
        serde_json::from_str(&capture_json(&ReportHeader::default(), &two_flows(), detail)).unwrap()
    }

    #[test]
    fn it_says_what_was_read_and_what_was_not() {
        let document = document(JsonDetail::Totals);
        assert_eq!(document["capture"]["packets"], 1_000);
        assert_eq!(document["capture"]["skipped"][0]["reason"], "not IP");
        assert_eq!(document["capture"]["cut_off_at_bytes"], 88_024);
        assert_eq!(document["estimators"][0]["representative_error"], 0.12);
        assert!(document.get("series").is_none());
    }

    #[test]
    fn samples_are_there_only_when_asked_for() {
        assert_eq!(document(JsonDetail::Series)["series"].as_array().unwrap().len(), 2);
        assert_eq!(document(JsonDetail::Series)["flow_series"].as_array().unwrap().len(), 2);
    }
}
