//! The table of results that terminal and page share: columns, units and formatted cells.

use suimon_results::{ApplicationKind, ApplicationResult, DatagramDelay, QueueResult};
use suimon_units::Duration;

use crate::grade::Grade;
use crate::numbers::{MISSING, significant};
use crate::summary::{FlowTotals, RunSummary};

/// A column of the table of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    /// The quantity: `Backlog`.
    pub(crate) title: &'static str,
    /// The statistic of the quantity: `mean`; may be empty.
    pub(crate) detail: &'static str,
    /// Unit; may be empty.
    pub(crate) unit: &'static str,
    /// The question that the column answers.
    pub(crate) section: Section,
    /// Whether it stays when there are too many runs to show everything.
    pub(crate) essential: bool,
}

/// The questions that the columns answer; a narrow terminal gets a table for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// The throughput, and the time that packets waited.
    Latency,
    /// The cost: losses, retransmissions, fairness.
    Cost,
    /// The performance of a stream over several flows, where there is one.
    Streams,
    /// What a call, a ping and pages beside the load have, where there are some.
    Applications,
}

/// A row: a run, or the flows of one algorithm in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultRow {
    pub(crate) name: String,
    pub(crate) colour: String,
    /// Position of the run; rows of one run follow each other.
    pub(crate) run: usize,
    /// Whether the row is a part of the run above it.
    pub(crate) part: bool,
    pub(crate) grade: Option<Grade>,
    /// One cell a column.
    pub(crate) cells: Vec<String>,
}

/// The table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultTable {
    pub(crate) columns: Vec<ResultColumn>,
    pub(crate) rows: Vec<ResultRow>,
}

/// Name and size of the unit in which a rate of `bps` reads best.
pub(crate) fn rate_unit(bps: f64) -> (&'static str, f64) {
    match bps {
        bps if bps >= 1e9 => ("Gbit/s", 1e9),
        bps if bps >= 1e6 => ("Mbit/s", 1e6),
        bps if bps >= 1e3 => ("kbit/s", 1e3),
        _ => ("bit/s", 1.0),
    }
}

impl ResultTable {
    pub(crate) fn new(summaries: &[RunSummary<'_>]) -> Self {
        let fastest = summaries.iter().map(|s| s.total.goodput.as_bps_f64()).fold(0.0, f64::max);
        // One unit for the whole column, so that rows compare at a glance.
        let (unit, factor) = rate_unit(fastest);
        let streams = summaries.iter().any(|summary| !summary.run.aggregates.is_empty());
        let applications = summaries.iter().any(|summary| !summary.run.applications.is_empty());
        let cells = |run: Option<&RunSummary<'_>>, flows: &FlowTotals| {
            let mut cells = cells(run, flows, factor);
            if applications {
                cells.extend(run.map_or_else(Default::default, application_cells));
            }
            if streams {
                cells.extend(stream_cells(flows));
            }
            cells
        };
        let mut rows = Vec::new();
        for (run, summary) in summaries.iter().enumerate() {
            rows.push(ResultRow {
                name: summary.name.clone(),
                colour: summary.colour.clone(),
                run,
                part: false,
                grade: summary.grade,
                cells: cells(Some(summary), &summary.total),
            });
            rows.extend(summary.parts.iter().map(|part| ResultRow {
                name: part.name.clone(),
                colour: part.colour.clone(),
                run,
                part: true,
                grade: None,
                cells: cells(None, part),
            }));
        }
        let mut columns = columns(unit);
        if applications {
            columns.extend(application_columns());
        }
        if streams {
            columns.extend(stream_columns());
        }
        Self { columns, rows }
    }
}

fn application_columns() -> [ResultColumn; 11] {
    let column = |title, detail, unit| ResultColumn {
        title,
        detail,
        unit,
        section: Section::Applications,
        essential: true,
    };
    [
        column("Call", "p50", "ms"),
        column("Call", "p95", "ms"),
        column("Call", "p99", "ms"),
        column("Call", "jitter", "ms"),
        column("Call", "lost", "%"),
        column("Ping", "p50", "ms"),
        column("Ping", "p95", "ms"),
        column("Page", "median", "s"),
        column("Page", "max", "s"),
        column("Busy", "down", "%"),
        column("Busy", "up", "%"),
    ]
}

/// The cells in the order of [`application_columns`]: of the call, its worse direction.
fn application_cells(run: &RunSummary<'_>) -> [String; 11] {
    let ms = |time: Option<Duration>| {
        time.map_or_else(|| MISSING.to_owned(), |time| significant(time.as_millis_f64()))
    };
    let seconds = |time: Option<Duration>| {
        time.map_or_else(|| MISSING.to_owned(), |time| significant(time.as_secs_f64()))
    };
    let waits = |of: fn(&DatagramDelay) -> Duration| {
        ms(run.call.and_then(|call| Some(of(&call.delay?).saturating_sub(call.unloaded))))
    };
    let ping = |of: fn(&DatagramDelay) -> Duration| {
        ms(run.application(ApplicationKind::Ping).and_then(|ping| Some(of(&ping.delay?))))
    };
    let page = run.application(ApplicationKind::Page);
    let busy = |nth: usize| {
        let share = run.run.queues.get(nth).and_then(|queue| queue.utilisation);
        share.map_or_else(|| MISSING.to_owned(), |share| significant(share * 100.0))
    };
    [
        waits(|delay| delay.p50),
        waits(|delay| delay.p95),
        waits(|delay| delay.p99),
        ms(run.call.and_then(|call| Some(call.delay?.jitter))),
        run.call.map_or_else(|| MISSING.to_owned(), |call| significant(call.loss() * 100.0)),
        ping(|delay| delay.p50),
        ping(|delay| delay.p95),
        seconds(page.and_then(ApplicationResult::completion_median)),
        seconds(page.and_then(ApplicationResult::completion_max)),
        busy(0),
        busy(1),
    ]
}

fn stream_columns() -> [ResultColumn; 8] {
    let column = |title, detail, unit, essential| ResultColumn {
        title,
        detail,
        unit,
        section: Section::Streams,
        essential,
    };
    [
        column("Of paths'", "sum", "%", true),
        column("Of best", "path", "%", true),
        column("Carried", "", "%", false),
        column("Reorder", "mean", "kB", true),
        column("Reorder", "max", "kB", false),
        column("Copies", "", "kB", false),
        column("Longest", "stall", "ms", false),
        column("Recon-", "nections", "", false),
    ]
}

/// The cells in the order of [`stream_columns`]; empty where there is no stream.
fn stream_cells(flows: &FlowTotals) -> [String; 8] {
    let percent = |share: Option<f64>| share.map_or_else(String::new, |share| significant(share * 100.0));
    let Some(stream) = &flows.stream else {
        let mut cells: [String; 8] = Default::default();
        cells[2] = percent(flows.carried_share);
        return cells;
    };
    [
        percent(stream.share_of_paths),
        percent(stream.share_of_best),
        String::new(),
        significant(stream.reorder_mean_bytes / 1e3),
        significant(stream.reorder_max.as_f64() / 1e3),
        significant(stream.duplicates.as_f64() / 1e3),
        significant(stream.longest_stall.as_millis_f64()),
        stream.reconnections.to_string(),
    ]
}

fn columns(rate_unit: &'static str) -> Vec<ResultColumn> {
    use Section::{Cost, Latency};
    let column =
        |title, detail, unit, section, essential| ResultColumn { title, detail, unit, section, essential };
    vec![
        column("Goodput", "", rate_unit, Latency, true),
        column("Link", "use", "%", Latency, true),
        column("Backlog", "mean", "packets", Latency, true),
        column("Backlog", "mean", "kB", Latency, false),
        column("Backlog", "max", "packets", Latency, false),
        column("Backlog", "max", "kB", Latency, false),
        column("Delay", "p50", "ms", Latency, false),
        column("Delay", "p95", "ms", Latency, true),
        column("Delay", "p99", "ms", Latency, false),
        column("RTT", "mean", "ms", Cost, false),
        column("RTT", "max", "ms", Cost, false),
        column("Lost", "", "packets", Cost, true),
        column("Marked", "", "packets", Cost, false),
        column("Retrans-", "mitted", "packets", Cost, false),
        column("Time-", "outs", "", Cost, false),
        column("Spurious", "", "", Cost, false),
        column("Window", "cuts", "", Cost, false),
        column("Jain", "fairness", "", Cost, false),
    ]
}

/// The cells of a row, in the order of [`columns`]; facts about the link stand in the run's row only.
fn cells(run: Option<&RunSummary<'_>>, flows: &FlowTotals, rate_factor: f64) -> Vec<String> {
    let queue = run.and_then(|run| run.slowest);
    let of_queue_text = |value: &dyn Fn(&QueueResult) -> String| match (run, queue) {
        (None, _) => String::new(),
        (Some(_), None) => MISSING.to_owned(),
        (Some(_), Some(queue)) => value(queue),
    };
    let of_queue = |value: fn(&QueueResult) -> f64| of_queue_text(&|queue| significant(value(queue)));
    let ms = |time: Option<Duration>| {
        time.map_or_else(|| MISSING.to_owned(), |time| significant(time.as_millis_f64()))
    };
    vec![
        significant(flows.goodput.as_bps_f64() / rate_factor),
        of_queue(|queue| queue.utilisation.unwrap_or(f64::NAN) * 100.0),
        of_queue(|queue| queue.backlog_mean_packets),
        of_queue(|queue| queue.backlog_mean_bytes / 1e3),
        of_queue_text(&|queue| queue.backlog_max_packets.to_string()),
        of_queue(|queue| queue.backlog_max_bytes.as_f64() / 1e3),
        of_queue(|queue| queue.delay_p50.as_millis_f64()),
        of_queue(|queue| queue.delay_p95.as_millis_f64()),
        of_queue(|queue| queue.delay_p99.as_millis_f64()),
        ms(flows.rtt_mean),
        ms(flows.rtt_max),
        flows.packets_lost.to_string(),
        flows.packets_marked.to_string(),
        flows.retransmissions.to_string(),
        flows.timeouts.to_string(),
        flows.spurious.to_string(),
        flows.window_cuts.to_string(),
        flows.jain_index.map_or_else(|| MISSING.to_owned(), |index| format!("{index:.3}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{comparison, flow, queue, run};
    use crate::summary::summarise;

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let table = ResultTable::new(&summarise(&comparison()));
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
        assert_eq!(
            table.rows[1].cells,
            [
                "3.50", "98.5", "12.3", "18.4", "65", "97.5", "240", "480", "600", "121", "300", "3", "2",
                "4", "0", "0", "1", "–"
            ]
        );
    }

    #[test]
    fn the_unit_of_goodput_is_that_of_the_fastest_run() {
        let runs: Vec<_> = [64_000, 2_000_000]
            .map(|bps| run(&[("rate", &bps.to_string())], vec![flow("a", "reno", bps)], vec![]))
            .into();
        let table = ResultTable::new(&summarise(&runs));
        assert_eq!(table.columns[0].unit, "Mbit/s");
        assert_eq!([&table.rows[0].cells[0], &table.rows[1].cells[0]], ["0.064", "2.00"]);
    }

    #[test]
    fn parts_of_a_mixed_run_leave_the_links_cells_empty() {
        let flows = vec![flow("a", "cubic", 3_000_000), flow("b", "fs-at", 1_000_000)];
        let table = ResultTable::new(&summarise(&[run(&[], flows, vec![queue("l", 3.0)])]));
        let names: Vec<_> = table.rows.iter().map(|row| (row.name.as_str(), row.part)).collect();
        assert_eq!(names, [("cubic + fs-at", false), ("a (cubic)", true), ("b (fs-at)", true)]);
        assert_eq!(table.rows[1].cells[7], "");
        assert_eq!(table.rows[0].cells[7], "3.00");
        assert_eq!(table.rows[0].cells[17], "0.800");
    }
}
