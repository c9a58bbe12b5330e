//! The table of results that terminal and page share: columns, units and formatted cells.

use suimon_results::{ApplicationKind, ApplicationResult, DatagramDelay, QueueResult};
use suimon_units::Duration;

use crate::estimate::Estimate;
use crate::grade::Grade;
use crate::numbers::{MISSING, significant};
use crate::summary::{FlowTotals, RunSummary, groups_of_seeds};

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
        let data = |run: Option<&RunSummary<'_>>, flows: &FlowTotals| {
            let mut data = data(run, flows, factor);
            if applications {
                data.extend(run.map_or([Datum::Blank; 11], application_data));
            }
            if streams {
                data.extend(stream_data(flows));
            }
            data
        };
        let texts = |data: Vec<Datum>| data.into_iter().map(Datum::text).collect();
        let mut rows = Vec::new();
        let groups = groups_of_seeds(summaries);
        for group in groups.iter().flatten() {
            let data: Vec<Vec<Datum>> =
                group.runs.iter().map(|summary| data(Some(summary), &summary.total)).collect();
            let column = |nth: usize| {
                let column: Vec<Datum> = data.iter().map(|run| run[nth]).collect();
                Datum::over_seeds(&column)
            };
            rows.push(ResultRow {
                name: group.name.clone(),
                colour: group.runs[0].colour.clone(),
                part: false,
                grade: group.runs.iter().filter_map(|summary| summary.grade).max(),
                cells: (0..data[0].len()).map(column).collect(),
            });
        }
        for summary in summaries.iter().filter(|_| groups.is_none()) {
            rows.push(ResultRow {
                name: summary.name.clone(),
                colour: summary.colour.clone(),
                part: false,
                grade: summary.grade,
                cells: texts(data(Some(summary), &summary.total)),
            });
            rows.extend(summary.parts.iter().map(|part| ResultRow {
                name: part.name.clone(),
                colour: part.colour.clone(),
                part: true,
                grade: None,
                cells: texts(data(None, part)),
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

/// The data in the order of [`application_columns`]: of the call, its worse direction.
fn application_data(run: &RunSummary<'_>) -> [Datum; 11] {
    let seconds = |time: Option<Duration>| Datum::of(time.map(Duration::as_secs_f64));
    let waits = |of: fn(&DatagramDelay) -> Duration| {
        ms(run.call.and_then(|call| Some(of(&call.delay?).saturating_sub(call.unloaded))))
    };
    let ping = |of: fn(&DatagramDelay) -> Duration| {
        ms(run.application(ApplicationKind::Ping).and_then(|ping| Some(of(&ping.delay?))))
    };
    let page = run.application(ApplicationKind::Page);
    let busy = |nth: usize| percent(run.run.queues.get(nth).and_then(|queue| queue.utilisation));
    [
        waits(|delay| delay.p50),
        waits(|delay| delay.p95),
        waits(|delay| delay.p99),
        ms(run.call.and_then(|call| Some(call.delay?.jitter))),
        percent(run.call.map(ApplicationResult::loss)),
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

/// The data in the order of [`stream_columns`]; blank where there is no stream.
fn stream_data(flows: &FlowTotals) -> [Datum; 8] {
    let share = |share: Option<f64>| share.map_or(Datum::Blank, |share| percent(Some(share)));
    let Some(stream) = &flows.stream else {
        let mut data = [Datum::Blank; 8];
        data[2] = share(flows.carried_share);
        return data;
    };
    [
        share(stream.share_of_paths),
        share(stream.share_of_best),
        Datum::Blank,
        Datum::Measured(stream.reorder_mean_bytes / 1e3),
        Datum::Measured(stream.reorder_max.as_f64() / 1e3),
        Datum::Measured(stream.duplicates.as_f64() / 1e3),
        Datum::Measured(stream.longest_stall.as_millis_f64()),
        Datum::Count(stream.reconnections),
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

/// The data of a row, in the order of [`columns`]; facts about the link stand in the run's row only.
fn data(run: Option<&RunSummary<'_>>, flows: &FlowTotals, rate_factor: f64) -> Vec<Datum> {
    let queue = run.and_then(|run| run.slowest);
    let of_queue = |value: fn(&QueueResult) -> Datum| match (run, queue) {
        (None, _) => Datum::Blank,
        (Some(_), None) => Datum::Missing,
        (Some(_), Some(queue)) => value(queue),
    };
    let count = Datum::Count;
    vec![
        Datum::Measured(flows.goodput.as_bps_f64() / rate_factor),
        of_queue(|queue| percent(queue.utilisation)),
        of_queue(|queue| Datum::Measured(queue.backlog_mean_packets)),
        of_queue(|queue| Datum::Measured(queue.backlog_mean_bytes / 1e3)),
        of_queue(|queue| Datum::Count(queue.backlog_max_packets)),
        of_queue(|queue| Datum::Measured(queue.backlog_max_bytes.as_f64() / 1e3)),
        of_queue(|queue| ms(Some(queue.delay_p50))),
        of_queue(|queue| ms(Some(queue.delay_p95))),
        of_queue(|queue| ms(Some(queue.delay_p99))),
        ms(flows.rtt_mean),
        ms(flows.rtt_max),
        count(flows.packets_lost),
        count(flows.packets_marked),
        count(flows.retransmissions),
        count(flows.timeouts),
        count(flows.spurious),
        count(flows.window_cuts),
        flows.jain_index.map_or(Datum::Missing, Datum::Index),
    ]
}

fn ms(time: Option<Duration>) -> Datum {
    Datum::of(time.map(Duration::as_millis_f64))
}

fn percent(share: Option<f64>) -> Datum {
    Datum::of(share.map(|share| share * 100.0))
}

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Datum {
    /// Nothing belongs here.
    Blank,
    /// What is not known.
    Missing,
    /// In three significant digits.
    Measured(f64),
    Count(u64),
    /// In three decimals.
    Index(f64),
}

impl Datum {
    fn of(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Measured)
    }

    fn text(self) -> String {
        match self {
            Self::Blank => String::new(),
            Self::Missing => MISSING.to_owned(),
            Self::Measured(value) => significant(value),
            Self::Count(count) => count.to_string(),
            Self::Index(index) => format!("{index:.3}"),
        }
    }

    fn value(self) -> Option<f64> {
        match self {
            Self::Blank | Self::Missing => None,
            Self::Measured(value) | Self::Index(value) => Some(value),
            Self::Count(count) => Some(count as f64),
        }
    }

    /// The mean of `column` and half the width of its interval, where all of it is known.
    fn over_seeds(column: &[Self]) -> String {
        let values: Option<Vec<f64>> = column.iter().map(|datum| datum.value()).collect();
        let Some(values) = values else { return column[0].text() };
        Estimate::of(&values).to_string()
    }
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
