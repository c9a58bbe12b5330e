//! The tables of a report: every column of every file is defined here, once.

use std::sync::Arc;

use rayon::prelude::*;
use suimon_results::{
    AggregateResult, ApplicationResult, DatagramDelay, EmulatedLink, Event, EventKind, FlowResult,
    QueueResult, RateSpread, RunResult, Series, WindowResult,
};
use suimon_units::{Duration, Instant, Rate};

use crate::estimate::Estimate;
use crate::streams::Alone;
use crate::summary::{RunSummary, groups_of_seeds, summarise};
use crate::table::{Table, TableBuilder, Values, WordsBuilder, finite};

/// Results as tables: one row a run, flow, queue, event or sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    /// Totals, one row a run.
    pub runs: Table,
    /// One row a setting: the mean of its runs, and half the width of the 95 % interval; none without several seeds.
    pub means: Table,
    /// One row a flow.
    pub flows: Table,
    /// One row an aggregate of flows.
    pub aggregates: Table,
    /// One row an application beside the load.
    pub applications: Table,
    /// One row a reported link.
    pub queues: Table,
    /// One row a window and reported link.
    pub windows: Table,
    /// One row an emulated link.
    pub emulated: Table,
    /// One row an event.
    pub events: Table,
    /// One row a sample of a flow.
    pub flow_series: Table,
    /// One row a sample of an aggregate.
    pub aggregate_series: Table,
    /// One row a sample of a queue.
    pub queue_series: Table,
}

impl Tables {
    /// The tables of `runs`.
    #[must_use]
    pub fn new(runs: &[RunResult]) -> Self {
        Self::build(runs, &summarise(runs), 0, true)
    }

    /// The names of the tables, in the order in which they are written.
    pub const NAMES: [&'static str; 12] = [
        "runs",
        "means",
        "flows",
        "aggregates",
        "applications",
        "queues",
        "windows",
        "emulated",
        "events",
        "flow_series",
        "aggregate_series",
        "queue_series",
    ];

    /// The table of `runs` called `name`, without the others.
    ///
    /// # Panics
    /// When `name` is none of [`Tables::NAMES`].
    #[must_use]
    pub fn only(runs: &[RunResult], name: &str) -> Table {
        let keys = Keys::new(runs, 0);
        match name {
            "runs" => keys.runs(&summarise(runs)),
            "means" => keys.means(&summarise(runs)),
            "flows" => keys.flows(runs),
            "aggregates" => keys.aggregates(runs, &Alone::of(runs)),
            "applications" => keys.applications(runs),
            "queues" => keys.queues(runs),
            "windows" => keys.windows(runs),
            "emulated" => keys.emulated(runs),
            "events" => keys.events(runs),
            "flow_series" => keys.flow_series(runs),
            "aggregate_series" => keys.aggregate_series(runs),
            "queue_series" => keys.queue_series(runs),
            _ => panic!("no table is called {name}"),
        }
    }

    /// The tables of `runs` as a part of the tables of many: run numbers count on from `before`, the runs
    /// in the parts before, and nothing else depends on what the other parts hold.
    #[must_use]
    pub fn part(runs: &[RunResult], before: u64) -> Self {
        let summaries: Vec<_> = runs.iter().flat_map(|run| summarise(std::slice::from_ref(run))).collect();
        Self::build(runs, &summaries, before, false)
    }

    fn build(runs: &[RunResult], summaries: &[RunSummary<'_>], before: u64, whole: bool) -> Self {
        let keys = Keys::new(runs, before);
        // A part of many says nothing of the other parts.
        let alone = if whole { Alone::of(runs) } else { Alone::default() };
        Self {
            runs: keys.runs(summaries),
            means: if whole { keys.means(summaries) } else { Table::new("means") },
            flows: keys.flows(runs),
            aggregates: keys.aggregates(runs, &alone),
            applications: keys.applications(runs),
            queues: keys.queues(runs),
            windows: keys.windows(runs),
            emulated: keys.emulated(runs),
            events: keys.events(runs),
            flow_series: keys.flow_series(runs),
            aggregate_series: keys.aggregate_series(runs),
            queue_series: keys.queue_series(runs),
        }
    }

    /// All of them, in the order in which they are written.
    #[must_use]
    pub fn all(&self) -> [&Table; 12] {
        [
            &self.runs,
            &self.means,
            &self.flows,
            &self.aggregates,
            &self.applications,
            &self.queues,
            &self.windows,
            &self.emulated,
            &self.events,
            &self.flow_series,
            &self.aggregate_series,
            &self.queue_series,
        ]
    }
}

impl<'a> IntoIterator for &'a Tables {
    type Item = &'a Table;
    type IntoIter = std::vec::IntoIter<&'a Table>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self.all()).into_iter()
    }
}

/// The columns that tell which run a row belongs to, the same in every table.
struct Keys {
    /// The number of runs before this one.
    before: u64,
    scenarios: Vec<Arc<str>>,
    seeds: Vec<u64>,
    /// Column of each axis and its value in each run. An axis named like another column gets `axis_`
    /// before its name.
    axes: Vec<(String, Vec<Option<Arc<str>>>)>,
}

/// A row: the run's position and the subject of the row.
type Row<T> = (usize, T);

impl Keys {
    fn new(runs: &[RunResult], before: u64) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for (axis, _) in runs.iter().flat_map(|run| &run.labels) {
            if !names.contains(&axis.as_str()) {
                names.push(axis);
            }
        }
        let value = |run: &RunResult, axis: &str| {
            run.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| Arc::from(value.as_str()))
        };
        let fixed = Self::fixed_columns();
        let axes = names
            .into_iter()
            .map(|axis| {
                let column = if fixed.iter().any(|name| name == axis) {
                    format!("axis_{axis}")
                } else {
                    axis.to_owned()
                };
                (column, runs.iter().map(|run| value(run, axis)).collect())
            })
            .collect();
        Self {
            before,
            scenarios: runs.iter().map(|run| Arc::from(run.scenario.as_str())).collect(),
            seeds: runs.iter().map(|run| run.seed).collect(),
            axes,
        }
    }

    /// Names that an axis must not take, since a table has a column of that name already.
    fn fixed_columns() -> Vec<String> {
        let none = Self { before: 0, scenarios: Vec::new(), seeds: Vec::new(), axes: Vec::new() };
        let tables = [
            none.runs(&[]),
            none.flows(&[]),
            none.aggregates(&[], &Alone::default()),
            none.queues(&[]),
            none.windows(&[]),
            none.emulated(&[]),
            none.events(&[]),
            none.flow_series(&[]),
        ];
        tables.iter().flat_map(Table::columns).map(|column| column.name.clone()).collect()
    }

    /// A builder whose first columns are the keys.
    fn builder<'a, T>(&self, name: &'static str, rows: &'a [Row<T>]) -> TableBuilder<'a, Row<T>> {
        let mut table = TableBuilder::new(name, rows);
        table.count("run", |(run, _)| Some(self.before + *run as u64 + 1));
        table.text("scenario", |(run, _)| Some(self.scenarios[*run].clone()));
        for (axis, values) in &self.axes {
            table.text(axis.as_str(), |(run, _)| values[*run].clone());
        }
        table.count("seed", |(run, _)| Some(self.seeds[*run]));
        table
    }

    fn runs(&self, summaries: &[RunSummary<'_>]) -> Table {
        let rows: Vec<Row<&RunSummary<'_>>> = summaries.iter().enumerate().collect();
        let mut t = self.builder("runs", &rows);
        t.text("name", |(_, s)| text(&s.name));
        t.text("algorithm", |(_, s)| text(&s.algorithm));
        t.text("grade", |(_, s)| s.grade.and_then(|grade| text(grade.as_str())));
        t.number("duration_s", |(_, s)| Some(s.run.duration.as_secs_f64()));
        t.number("measured_s", |(_, s)| Some(s.run.measured.as_secs_f64()));
        t.count("flows", |(_, s)| Some(s.total.flows));
        t.count("goodput_bps", |(_, s)| Some(s.total.goodput.as_bps()));
        t.number("jain_index", |(_, s)| s.total.jain_index);
        t.text("slowest_link", |(_, s)| s.slowest.and_then(|queue| text(&queue.name)));
        queue_columns(&mut t, |(_, s)| s.slowest);
        t.number("rtt_mean_ms", |(_, s)| ms(s.total.rtt_mean));
        t.number("rtt_max_ms", |(_, s)| ms(s.total.rtt_max));
        t.count("packets_sent", |(_, s)| Some(s.total.packets_sent));
        t.count("packets_lost", |(_, s)| Some(s.total.packets_lost));
        t.count("packets_marked", |(_, s)| Some(s.total.packets_marked));
        t.count("retransmissions", |(_, s)| Some(s.total.retransmissions));
        t.count("timeouts", |(_, s)| Some(s.total.timeouts));
        t.count("spurious", |(_, s)| Some(s.total.spurious));
        t.count("window_cuts", |(_, s)| Some(s.total.window_cuts));
        t.count("events_not_kept", |(_, s)| Some(s.run.events_not_kept));
        t.build()
    }

    fn means(&self, summaries: &[RunSummary<'_>]) -> Table {
        let Some(groups) = groups_of_seeds(summaries) else { return Table::new("means") };
        let place = |run: &RunSummary<'_>| summaries.iter().position(|summary| std::ptr::eq(summary, run));
        let rows = groups.iter().map(|group| group.runs.iter().filter_map(|run| place(run)).collect());
        let rows: Vec<Row<Vec<usize>>> = rows.map(|runs: Vec<usize>| (runs[0], runs)).collect();
        let runs = self.runs(summaries);
        let mut t = self.builder("means", &rows);
        t.count("seeds", |(_, runs)| Some(runs.len() as u64));
        for column in runs.columns() {
            let name = column.name.as_str();
            if matches!(column.values, Values::Text(_)) || ["run", "seed", "flows"].contains(&name) {
                continue;
            }
            let estimate = |of: &[usize]| {
                let values: Option<Vec<f64>> = of.iter().map(|run| runs.number(name, *run)).collect();
                values.map(|values| Estimate::of(&values))
            };
            t.number(name, |(_, of)| estimate(of).map(|estimate| estimate.mean));
            t.number(format!("{name}_ci95"), |(_, of)| estimate(of)?.half_width);
        }
        t.build()
    }

    fn flows(&self, runs: &[RunResult]) -> Table {
        let rows: Vec<Row<&FlowResult>> = rows_of(runs, |run| &run.flows);
        let mut t = self.builder("flows", &rows);
        t.text("flow", |(_, f)| text(&f.name));
        t.text("algorithm", |(_, f)| text(&f.algorithm));
        t.text("colour", |(_, f)| text(&f.colour));
        t.number("start_s", |(_, f)| Some(f.start.as_secs_f64()));
        t.number("completed_s", |(_, f)| f.completed.map(Instant::as_secs_f64));
        t.count("delivered_bytes", |(_, f)| Some(f.delivered.get()));
        t.count("goodput_bps", |(_, f)| Some(f.goodput.as_bps()));
        t.count("packets_sent", |(_, f)| Some(f.packets_sent));
        t.count("packets_lost", |(_, f)| Some(f.packets_lost));
        t.count("packets_marked", |(_, f)| Some(f.packets_marked));
        t.count("retransmissions", |(_, f)| Some(f.retransmissions));
        t.count("timeouts", |(_, f)| Some(f.timeouts));
        t.count("spurious", |(_, f)| Some(f.spurious));
        t.count("window_cuts", |(_, f)| Some(f.window_cuts));
        t.number("rtt_min_ms", |(_, f)| ms(f.rtt_min));
        t.number("rtt_mean_ms", |(_, f)| ms(f.rtt_mean));
        t.number("rtt_max_ms", |(_, f)| ms(f.rtt_max));
        let spread = |value: fn(&RateSpread) -> Rate| {
            move |(_, f): &Row<&FlowResult>| f.rate_spread.as_ref().map(|spread| value(spread).as_bps())
        };
        t.count("rate_mean_bps", spread(|spread| spread.mean));
        t.count("rate_deviation_bps", spread(|spread| spread.deviation));
        t.count("rate_min_bps", spread(|spread| spread.min));
        t.count("rate_max_bps", spread(|spread| spread.max));
        // Of most runs nobody sends any.
        if rows.iter().any(|(_, f)| f.datagrams.is_some()) {
            let delay = |of: fn(&DatagramDelay) -> Duration| {
                move |(_, f): &Row<&FlowResult>| ms(f.datagrams.as_ref().map(of))
            };
            t.number("delay_p50_ms", delay(|delay| delay.p50));
            t.number("delay_p95_ms", delay(|delay| delay.p95));
            t.number("delay_p99_ms", delay(|delay| delay.p99));
        }
        t.build()
    }

    fn aggregates<'a>(&self, runs: &'a [RunResult], alone: &Alone<'a>) -> Table {
        let rows: Vec<Row<&AggregateResult>> = rows_of(runs, |run| &run.aggregates);
        let mut t = self.builder("aggregates", &rows);
        t.text("aggregate", |(_, a)| text(&a.name));
        t.text("scheduler", |(_, a)| text(&a.scheduler));
        t.text("flows", |(_, a)| text(&a.flows.join(" ")));
        t.number("completed_s", |(_, a)| a.completed.map(Instant::as_secs_f64));
        t.count("delivered_bytes", |(_, a)| Some(a.delivered.get()));
        t.count("goodput_bps", |(_, a)| Some(a.goodput.as_bps()));
        t.count("duplicate_bytes", |(_, a)| Some(a.duplicates.get()));
        t.number("reorder_mean_bytes", |(_, a)| Some(a.reorder_mean_bytes));
        t.count("reorder_max_bytes", |(_, a)| Some(a.reorder_max.get()));
        t.number("longest_stall_ms", |(_, a)| Some(a.longest_stall.as_millis_f64()));
        t.count("reconnections", |(_, a)| Some(a.reconnections));
        t.number("share_of_paths", |(nth, a)| alone.totals(&runs[*nth], a).share_of_paths);
        t.number("share_of_best", |(nth, a)| alone.totals(&runs[*nth], a).share_of_best);
        t.build()
    }

    fn applications(&self, runs: &[RunResult]) -> Table {
        let rows: Vec<Row<&ApplicationResult>> = rows_of(runs, |run| &run.applications);
        let mut t = self.builder("applications", &rows);
        t.text("application", |(_, a)| text(a.kind.as_str()));
        t.count("packets_sent", |(_, a)| Some(a.sent));
        t.count("packets_lost", |(_, a)| Some(a.lost));
        t.number("loss_percent", |(_, a)| Some(a.loss() * 100.0));
        let delay = |of: fn(&DatagramDelay) -> Duration| {
            move |(_, a): &Row<&ApplicationResult>| ms(a.delay.as_ref().map(of))
        };
        t.number("delay_unloaded_ms", |(_, a)| a.delay.and_then(|_| ms(Some(a.unloaded))));
        t.number("delay_p50_ms", delay(|delay| delay.p50));
        t.number("delay_p95_ms", delay(|delay| delay.p95));
        t.number("delay_p99_ms", delay(|delay| delay.p99));
        t.number("delay_max_ms", delay(|delay| delay.max));
        t.number("jitter_ms", delay(|delay| delay.jitter));
        t.number("page_median_s", |(_, a)| a.completion_median().map(Duration::as_secs_f64));
        t.number("page_max_s", |(_, a)| a.completion_max().map(Duration::as_secs_f64));
        t.build()
    }

    fn queues(&self, runs: &[RunResult]) -> Table {
        let rows: Vec<Row<&QueueResult>> = rows_of(runs, |run| &run.queues);
        let mut t = self.builder("queues", &rows);
        t.text("link", |(_, q)| text(&q.name));
        t.text("discipline", |(_, q)| text(&q.discipline));
        t.count("packets", |(_, q)| Some(q.packets));
        t.count("bytes", |(_, q)| Some(q.bytes.get()));
        queue_columns(&mut t, |(_, queue)| Some(queue));
        t.count("dropped_overflow", |(_, q)| Some(q.dropped_overflow));
        t.count("dropped_early", |(_, q)| Some(q.dropped_early));
        t.count("lost_on_link", |(_, q)| Some(q.lost_on_link));
        t.count("marked", |(_, q)| Some(q.marked));
        t.build()
    }

    fn windows(&self, runs: &[RunResult]) -> Table {
        let rows: Vec<Row<&WindowResult>> = rows_of(runs, |run| &run.windows);
        let mut t = self.builder("windows", &rows);
        t.text("window", |(_, w)| text(&w.window));
        t.text("link", |(_, w)| text(&w.link));
        t.number("from_s", |(_, w)| Some(w.from.as_secs_f64()));
        t.number("to_s", |(_, w)| Some(w.to.as_secs_f64()));
        t.count("backlog_records", |(_, w)| Some(w.backlog_records));
        t.number("backlog_mean_bytes", |(_, w)| Some(w.backlog_mean_bytes));
        t.number("backlog_cov", |(_, w)| Some(w.backlog_cov));
        t.count("backlog_min_bytes", |(_, w)| Some(w.backlog_min_bytes.get()));
        t.count("backlog_max_bytes", |(_, w)| Some(w.backlog_max_bytes.get()));
        t.number("backlog_time_mean_bytes", |(_, w)| Some(w.backlog_time_mean_bytes));
        t.count("dropped_overflow", |(_, w)| Some(w.dropped_overflow));
        t.count("dropped_early", |(_, w)| Some(w.dropped_early));
        t.count("marked", |(_, w)| Some(w.marked));
        t.count("entered_bps", |(_, w)| Some(w.entered.as_bps()));
        t.number("entered_cov", |(_, w)| Some(w.entered_cov));
        t.count("goodput_bps", |(_, w)| Some(w.goodput.as_bps()));
        t.number("goodput_cov", |(_, w)| Some(w.goodput_cov));
        t.count("retransmissions", |(_, w)| Some(w.retransmissions));
        t.build()
    }

    fn emulated(&self, runs: &[RunResult]) -> Table {
        let rows: Vec<Row<&EmulatedLink>> = rows_of(runs, |run| &run.emulated);
        let mut t = self.builder("emulated", &rows);
        t.text("link", |(_, e)| text(&e.name));
        t.text("scheduling", |(_, e)| text(&e.scheduling));
        t.count("packets", |(_, e)| Some(e.packets));
        t.number("late_p50_us", |(_, e)| Some(e.late_p50.as_millis_f64() * 1e3));
        t.number("late_p99_us", |(_, e)| Some(e.late_p99.as_millis_f64() * 1e3));
        t.number("late_max_us", |(_, e)| Some(e.late_max.as_millis_f64() * 1e3));
        t.count("unseen", |(_, e)| Some(e.unseen));
        t.text("objections", |(_, e)| (!e.objections.is_empty()).then(|| Arc::from(e.objections.join("; "))));
        t.build()
    }

    fn events(&self, runs: &[RunResult]) -> Table {
        let rows: Vec<Row<&Event>> = rows_of(runs, |run| &run.events);
        let mut t = self.builder("events", &rows);
        t.number("time_s", |(_, e)| Some(e.time.as_secs_f64()));
        let names = |run: &RunResult| match run.events.is_empty() {
            true => Vec::new(),
            false => run.flows.iter().map(|flow| text(&flow.name)).collect(),
        };
        let names: Vec<Vec<_>> = runs.iter().map(names).collect();
        let kinds: Vec<_> = EventKind::ALL.iter().map(|kind| text(kind.as_str())).collect();
        t.text("flow", |(run, e)| names[*run][e.flow as usize].clone());
        t.text("event", |(_, e)| kinds[e.kind as usize].clone());
        t.build()
    }

    fn flow_series(&self, runs: &[RunResult]) -> Table {
        self.series("flow_series", "flow", runs, |run| &run.flow_series)
    }

    fn aggregate_series(&self, runs: &[RunResult]) -> Table {
        self.series("aggregate_series", "aggregate", runs, |run| &run.aggregate_series)
    }

    fn queue_series(&self, runs: &[RunResult]) -> Table {
        self.series("queue_series", "link", runs, |run| &run.queue_series)
    }

    fn series(
        &self,
        name: &'static str,
        subject: &'static str,
        runs: &[RunResult],
        of: impl Fn(&RunResult) -> &[Series],
    ) -> Table {
        let blocks: Vec<(usize, &Series)> = runs
            .iter()
            .enumerate()
            .flat_map(|(run, result)| of(result).iter().map(move |s| (run, s)))
            .collect();
        let mut names: Vec<&str> = Vec::new();
        for column in blocks.iter().flat_map(|(_, series)| &series.columns) {
            if !names.contains(&column.name.as_str()) {
                names.push(&column.name);
            }
        }
        // Column by column and block by block, since there may be millions of rows.
        let rows = blocks.iter().map(|(_, series)| series.times.len()).sum();
        let counts = |of: &dyn Fn(usize) -> u64| {
            let mut values: Vec<u64> = Vec::with_capacity(rows);
            for (run, series) in &blocks {
                values.extend(std::iter::repeat_n(of(*run), series.times.len()));
            }
            Values::Count(values.into())
        };
        let texts = |of: &dyn Fn(usize, &Series) -> Option<Arc<str>>| {
            let mut words = WordsBuilder::default();
            for (run, series) in &blocks {
                words.push(of(*run, series), series.times.len());
            }
            Values::Text(words.finish())
        };
        let mut t = Table::new(name);
        t.push("run", counts(&|run| self.before + run as u64 + 1));
        t.push("scenario", texts(&|run, _| Some(self.scenarios[run].clone())));
        for (axis, values) in &self.axes {
            t.push(axis.as_str(), texts(&|run, _| values[run].clone()));
        }
        t.push("seed", counts(&|run| self.seeds[run]));
        t.push(subject, texts(&|_, series| Some(Arc::from(series.subject.as_str()))));
        let mut times = Vec::with_capacity(rows);
        for (_, series) in &blocks {
            times.extend(series.times.iter().map(|time| time.as_secs_f64()));
        }
        t.push("time_s", Values::Number(finite(times)));
        let column = |name: &str| {
            let mut values: Vec<f64> = Vec::with_capacity(rows);
            for (_, series) in &blocks {
                match series.columns.iter().find(|column| column.name == name) {
                    Some(column) => values.extend_from_slice(&column.values),
                    None => values.extend(std::iter::repeat_n(f64::NAN, series.times.len())),
                }
            }
            Values::Number(finite(values))
        };
        let columns: Vec<Values> = names.par_iter().map(|name| column(name)).collect();
        for (name, values) in names.into_iter().zip(columns) {
            t.push(name, values);
        }
        t
    }
}

/// The columns about backlog and delay in every row about a queue.
fn queue_columns<R>(t: &mut TableBuilder<'_, R>, queue: impl Fn(&R) -> Option<&QueueResult>) {
    let queue = &queue;
    t.number("utilisation", move |row| queue(row)?.utilisation);
    t.number("backlog_mean_packets", move |row| Some(queue(row)?.backlog_mean_packets));
    t.number("backlog_mean_bytes", move |row| Some(queue(row)?.backlog_mean_bytes));
    t.count("backlog_max_packets", move |row| Some(queue(row)?.backlog_max_packets));
    t.count("backlog_max_bytes", move |row| Some(queue(row)?.backlog_max_bytes.get()));
    t.number("delay_mean_ms", move |row| ms(Some(queue(row)?.delay_mean)));
    t.number("delay_p50_ms", move |row| ms(Some(queue(row)?.delay_p50)));
    t.number("delay_p95_ms", move |row| ms(Some(queue(row)?.delay_p95)));
    t.number("delay_p99_ms", move |row| ms(Some(queue(row)?.delay_p99)));
    t.number("delay_max_ms", move |row| ms(Some(queue(row)?.delay_max)));
}

fn rows_of<T>(runs: &[RunResult], of: impl Fn(&RunResult) -> &[T]) -> Vec<Row<&T>> {
    let mut rows = Vec::new();
    for (position, run) in runs.iter().enumerate() {
        rows.extend(of(run).iter().map(|item| (position, item)));
    }
    rows
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
    use crate::samples::comparison;

    fn column<'a>(table: &'a Table, name: &str) -> &'a Values {
        &table.columns().iter().find(|column| column.name == name).unwrap().values
    }

    #[test]
    fn each_table_is_found_by_its_name() {
        let runs = comparison();
        let all = Tables::new(&runs);
        assert_eq!(all.all().map(Table::name), Tables::NAMES);
        for table in all.all() {
            assert!(Tables::only(&runs, table.name()) == *table, "{}", table.name());
        }
    }

    #[test]
    fn parts_number_runs_on_and_name_each_as_it_would_be_alone() {
        let runs = comparison();
        let (whole, second) = (Tables::part(&runs, 0), Tables::part(&runs[1..], 1));
        let pairs = whole.all().into_iter().zip(second.all());
        for (all, part) in pairs.filter(|(all, _)| all.rows() > 0) {
            assert_eq!(column(part, "run").get(0), column(all, "run").get(all.rows() - 1), "{}", all.name());
            for (a, b) in all.columns().iter().zip(part.columns()) {
                assert_eq!(a.name, b.name);
                assert_eq!(a.values.get(all.rows() - 1), b.values.get(part.rows() - 1), "{}", a.name);
            }
        }
    }
}
