//! Everything in one JSON document.

use std::path::Path;

use serde::Serialize;
use suimon_results::RunResult;

use crate::document::JsonDocument;
use crate::error::ReportError;
use crate::grade::{GRADE_THRESHOLDS, Grade};
use crate::header::ReportHeader;
use crate::observations::observations;
use crate::summary::summarise;
use crate::tables::Tables;
use crate::verdict::VerdictTable;

/// Version of the document's layout; it rises when a key changes its meaning or goes away.
pub const JSON_SCHEMA_VERSION: u32 = 1;

/// Whether the document holds samples over time, which are most of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonSeries {
    /// Totals and events only.
    Without,
    /// Every sample.
    With,
}

#[derive(Serialize)]
struct Grading {
    measure: &'static str,
    below_ms: Vec<GradeStep>,
    beyond: Grade,
}

#[derive(Serialize)]
struct GradeStep {
    grade: Grade,
    delay_ms: f64,
}

/// The results as one JSON document: the same bytes for the same results.
#[must_use]
pub fn json(
    header: &ReportHeader,
    runs: &[RunResult],
    verdicts: &[VerdictTable],
    series: JsonSeries,
) -> String {
    let tables = Tables::new(runs);
    let step = |(grade, below): (Grade, suimon_units::Duration)| GradeStep {
        grade,
        delay_ms: below.as_millis_f64(),
    };
    let grading = Grading {
        measure: "delay_p95_ms of the slowest reported link",
        below_ms: GRADE_THRESHOLDS.into_iter().map(step).collect(),
        beyond: Grade::F,
    };
    let mut document = JsonDocument::new();
    document.value("schema_version", &JSON_SCHEMA_VERSION);
    document.value("header", header);
    document.value("grading", &grading);
    document.value("notes", &observations(&summarise(runs)));
    if !verdicts.is_empty() {
        document.value("verdicts", &verdicts);
    }
    document.rows("runs", &tables.runs);
    document.rows("flows", &tables.flows);
    document.rows("aggregates", &tables.aggregates);
    document.rows("queues", &tables.queues);
    for (name, table) in [("windows", &tables.windows), ("emulated", &tables.emulated)] {
        if table.rows() > 0 {
            document.rows(name, table);
        }
    }
    document.rows("events", &tables.events);
    if series == JsonSeries::With {
        document.rows("flow_series", &tables.flow_series);
        document.rows("aggregate_series", &tables.aggregate_series);
        document.rows("queue_series", &tables.queue_series);
    }
    document.finish()
}

/// Writes [`json`] to `path`.
///
/// # Errors
/// When the file cannot be written.
pub fn write_json(
    path: &Path,
    header: &ReportHeader,
    runs: &[RunResult],
    verdicts: &[VerdictTable],
    series: JsonSeries,
) -> Result<(), ReportError> {
    std::fs::write(path, json(header, runs, verdicts, series)).map_err(ReportError::file(path))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::samples::comparison;

    fn document(series: JsonSeries) -> Value {
        serde_json::from_str(&json(&ReportHeader::default(), &comparison(), &[], series)).unwrap()
    }

    #[test]
    fn keys_carry_units_and_runs_carry_grades() {
        let document = document(JsonSeries::Without);
        assert_eq!(document["schema_version"], 1);
        let runs = document["runs"].as_array().unwrap();
        assert_eq!(runs[0]["cc"], "fs-at");
        assert_eq!(runs[0]["grade"], "A");
        assert_eq!(runs[0]["goodput_bps"], 3_400_000);
        assert_eq!(runs[0]["delay_p95_ms"], 12);
        assert_eq!(runs[1]["grade"], "F");
        assert_eq!(runs[1]["jain_index"], Value::Null);
        assert_eq!(document["queues"][1]["link"], "downlink");
        assert_eq!(document["grading"]["below_ms"][0]["delay_ms"], 5.0);
    }

    #[test]
    fn samples_are_there_only_when_asked_for() {
        assert_eq!(document(JsonSeries::Without).get("flow_series"), None);
        let document = document(JsonSeries::With);
        assert_eq!(document["flow_series"][1]["cwnd_bytes"], 28_960);
        assert_eq!(document["flow_series"][0]["srtt_ms"], Value::Null);
        assert_eq!(document["queue_series"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn the_same_results_give_the_same_text() {
        let once = json(&ReportHeader::default(), &comparison(), &[], JsonSeries::With);
        assert_eq!(once, json(&ReportHeader::default(), &comparison(), &[], JsonSeries::With));
    }
}
