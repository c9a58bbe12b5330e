//! Flows and estimators as tables of a page.

use suimon_results::{CaptureResult, CapturedFlow, EstimatorResult, EstimatorVerdict};

use super::terminal::{ms, percent};
use crate::numbers::MISSING;
use crate::page::{TextRow, TextTable};

/// Flows that are shown; the files hold all.
const SHOWN_FLOWS: usize = 100;

/// The largest flows, and the estimators: those that fail in grey.
#[must_use]
pub fn capture_page_tables(result: &CaptureResult) -> Vec<TextTable> {
    let mut tables = vec![flows(result)];
    if result.data_packets > 0 {
        tables.push(estimators(result));
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn flows(result: &CaptureResult) -> TextTable {
    let mut largest: Vec<&CapturedFlow> = result.flows.iter().collect();
    // Stable: of equally large ones the first comes first.
    largest.sort_by_key(|flow| std::cmp::Reverse(flow.packets));
    let row = |flow: &CapturedFlow| {
        let known = flow.rtt.mean().is_some();
        let count = |count: Option<u64>| count.map_or_else(|| MISSING.to_owned(), |n| n.to_string());
        let rtts = flow.rtt_percentiles;
        let cells = vec![
            flow.name.clone(),
            flow.packets.to_string(),
            count(flow.repeats.map(|repeats| repeats.retransmissions)),
            count(flow.repeats.map(|repeats| repeats.lost_before)),
            count(flow.repeats.map(|repeats| repeats.reordered)),
            percent(flow.loss()),
            ms(known.then_some(flow.rtt.min)),
            ms(flow.rtt.mean()),
            ms(rtts.map(|rtts| rtts.p50)),
            ms(rtts.map(|rtts| rtts.p95)),
            ms(rtts.map(|rtts| rtts.p99)),
            ms(known.then_some(flow.rtt.max)),
        ];
        TextRow { cells, muted: false }
    };
    TextTable {
        title: "Flows".to_owned(),
        columns: [
            "Flow",
            "Packets",
            "Sent again",
            "Lost before",
            "Out of order",
            "Loss (%)",
            "RTT min (ms)",
            "mean",
            "p50",
            "p95",
            "p99",
            "max",
        ]
        .map(str::to_owned)
        .into(),
        rows: largest.into_iter().take(SHOWN_FLOWS).map(row).collect(),
    }
}

fn estimators(result: &CaptureResult) -> TextTable {
    let row = |estimator: &EstimatorResult| TextRow {
        cells: vec![
            estimator.name.clone(),
            estimator.verdict().as_str().to_owned(),
            estimator.estimates.to_string(),
            percent(estimator.bias_median),
            percent(estimator.error_median),
            ms(estimator.representative_mean),
            ms(estimator.true_mean),
            percent(estimator.representative_error),
            estimator.memory.get().to_string(),
        ],
        muted: estimator.verdict() == EstimatorVerdict::Fails,
    };
    TextTable {
        title: "Estimators".to_owned(),
        columns: [
            "Estimator",
            "Verdict",
            "Estimates",
            "Bias (%)",
            "Error (%)",
            "RTT_rep (ms)",
            "true (ms)",
            "RTT_rep error (%)",
            "Memory (bytes)",
        ]
        .map(str::to_owned)
        .into(),
        rows: result.estimators.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::samples::two_flows;

    #[test]
    fn rows_have_a_cell_a_column_and_estimators_that_fail_are_muted() {
        let mut result = two_flows();
        result.estimators[0].error_median = Some(5.0);
        let tables = capture_page_tables(&result);
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()), "{}", table.title);
        }
        assert_eq!(tables[0].rows[0].cells[1..6], ["300", "6", "3", "1", "3.00"]);
        assert!(tables[1].rows[0].muted);
    }
}
