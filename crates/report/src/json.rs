//! Everything in one JSON document.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use suimon_results::RunResult;

use crate::advice::Advice;
use crate::document::{JsonDocument, text_of};
use crate::grade::{GRADE_THRESHOLDS, Grade};
use crate::header::ReportHeader;
use crate::observations::observations;
use crate::summary::summarise;
use crate::tables::Tables;
use crate::verdict::VerdictTable;

/// Version of the document's layout; it rises when a key changes its meaning or goes away.
pub const JSON_SCHEMA_VERSION: u32 = 1;

/// How much of each run the document holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonDetail {
    /// Totals of runs, queues and windows: enough to follow verdicts on a thousand runs.
    Runs,
    /// Totals of flows too, and events.
    Totals,
    /// Every sample too.
    Series,
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
    advice: Option<&[Advice]>,
    detail: JsonDetail,
) -> String {
    text_of(|into| write_json(into, header, runs, verdicts, advice, detail))
}

/// Writes [`json`] into `into`, one table after the other, so that no more than one is held.
///
/// # Errors
/// When `into` does not take it.
pub fn write_json(
    into: &mut impl Write,
    header: &ReportHeader,
    runs: &[RunResult],
    verdicts: &[VerdictTable],
    advice: Option<&[Advice]>,
    detail: JsonDetail,
) -> io::Result<()> {
    let step = |(grade, below): (Grade, suimon_units::Duration)| GradeStep {
        grade,
        delay_ms: below.as_millis_f64(),
    };
    let summaries = summarise(runs);
    let grading = Grading {
        measure: if summaries.iter().any(|summary| summary.call.is_some()) {
            "delay_p95_ms less delay_unloaded_ms of the call in its worse direction, and its loss_percent"
        } else {
            "delay_p95_ms of the slowest reported link"
        },
        below_ms: GRADE_THRESHOLDS.into_iter().map(step).collect(),
        beyond: Grade::F,
    };
    let mut document = JsonDocument::new(BufWriter::new(into))?;
    document.value("schema_version", &JSON_SCHEMA_VERSION)?;
    document.value("header", header)?;
    document.value("grading", &grading)?;
    document.value("notes", &observations(&summaries))?;
    if !verdicts.is_empty() {
        document.value("verdicts", &verdicts)?;
    }
    if let Some(advice) = advice {
        document.value("advice", &advice)?;
    }
    for name in Tables::NAMES {
        if detail < least_detail(name) {
            continue;
        }
        let table = Tables::only(runs, name);
        if table.rows() > 0 || !OPTIONAL.contains(&name) {
            document.rows(name, &table)?;
        }
    }
    document.finish()
}

/// Tables that a document lacks where they have no rows.
const OPTIONAL: [&str; 4] = ["means", "applications", "windows", "emulated"];

/// The least detail at which a document holds the table called `name`.
fn least_detail(name: &str) -> JsonDetail {
    match name {
        "runs" | "means" | "applications" | "queues" | "windows" | "emulated" => JsonDetail::Runs,
        "flows" | "aggregates" | "events" => JsonDetail::Totals,
        _ => JsonDetail::Series,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::samples::comparison;

    fn document(detail: JsonDetail) -> Value {
        serde_json::from_str(&json(&ReportHeader::default(), &comparison(), &[], None, detail)).unwrap()
    }

    #[test]
    fn keys_carry_units_and_runs_carry_grades() {
        let document = document(JsonDetail::Totals);
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
        assert_eq!(document(JsonDetail::Totals).get("flow_series"), None);
        let document = document(JsonDetail::Series);
        assert_eq!(document["flow_series"][1]["cwnd_bytes"], 28_960);
        assert_eq!(document["flow_series"][0]["srtt_ms"], Value::Null);
        assert_eq!(document["queue_series"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn the_same_results_give_the_same_text() {
        let once = json(&ReportHeader::default(), &comparison(), &[], None, JsonDetail::Series);
        assert_eq!(once, json(&ReportHeader::default(), &comparison(), &[], None, JsonDetail::Series));
    }
}
