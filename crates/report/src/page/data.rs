//! The data that the page's script draws, as one JSON document.

use serde::Serialize;
use suimon_results::{QueueResult, RunResult};
use suimon_units::Duration;

use super::figure::{Figure, delay_distribution, throughput_against_backlog};
use super::over_axis::over_axis;
use super::panels::{CHARTED_FLOWS, CHARTED_RUNS, Panel, panels};
use super::{Page, TextTable};
use crate::advice::{Advice, CHANGE_AXIS, UNCHANGED};
use crate::grade::{GRADE_THRESHOLDS, Grade};
use crate::header::ReportHeader;
use crate::heat_map::HeatMap;
use crate::numbers::{Compact, round_to};
use crate::observations::observations;
use crate::results_table::{ResultTable, Section};
use crate::sentence::sentence;
use crate::summary::{RunSummary, summarise};
use crate::sweep::{label, swept_axis};
use crate::topology::Topology;
use crate::verdict::VerdictTable;

/// Runs that charts over time show at first; a reader can switch on the others.
const SHOWN_RUNS: usize = 10;
/// Runs whose delays are drawn as bars.
const DELAY_BARS: usize = 60;

#[derive(Serialize)]
struct Data<'a> {
    header: &'a ReportHeader,
    facts: Vec<Fact>,
    summary: String,
    grading: String,
    advice: Vec<Change<'a>>,
    topology: Option<&'a Topology>,
    thresholds: Vec<(Grade, f64)>,
    columns: Vec<Column>,
    rows: Vec<Row<'a>>,
    runs: Vec<Run<'a>>,
    delays: Vec<Delay<'a>>,
    figures: Vec<&'a Figure>,
    panels: Vec<Panel>,
    verdicts: &'a [VerdictTable],
    heat_maps: &'a [HeatMap],
    tables: &'a [TextTable],
    notes: Vec<String>,
}

/// A change of the line, and what it does in a line of text.
#[derive(Serialize)]
struct Change<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    effect: String,
}

#[derive(Serialize)]
struct Fact {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Column {
    title: &'static str,
    detail: &'static str,
    unit: &'static str,
    section: &'static str,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    colour: &'a str,
    part: bool,
    grade: Option<Grade>,
    cells: &'a [String],
}

#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    scenario: &'a str,
    colour: &'a str,
    shown: bool,
}

#[derive(Serialize)]
struct Delay<'a> {
    name: &'a str,
    colour: &'a str,
    link: &'a str,
    grade: Grade,
    p50_ms: Compact,
    p95_ms: Compact,
    p99_ms: Compact,
    max_ms: Compact,
}

/// The data as JSON that can stand inside a script element.
pub(super) fn json(page: &Page<'_>) -> String {
    let summaries = summarise(page.runs);
    let results = ResultTable::new(&summaries);
    let scatter = throughput_against_backlog(page.runs);
    let distribution = delay_distribution(page.runs);
    let over_axis = over_axis(page.runs);
    let mut notes = observations(&summaries);
    notes.extend(left_out(&summaries));
    notes.extend(page.notes.iter().cloned());
    let data = Data {
        header: page.header,
        facts: facts(page),
        summary: if summaries.is_empty() || !page.lead.is_empty() {
            page.lead.clone()
        } else {
            sentence(&summaries)
        },
        grading: if summaries.iter().any(|summary| summary.call.is_some()) {
            Grade::legend_of_calls()
        } else {
            Grade::legend()
        },
        advice: page.advice.iter().map(|advice| Change { effect: advice.effect(), advice }).collect(),
        topology: page.topology.as_ref(),
        thresholds: GRADE_THRESHOLDS.iter().map(|(grade, below)| (*grade, below.as_millis_f64())).collect(),
        columns: results
            .columns
            .iter()
            .map(|column| Column {
                title: column.title,
                detail: column.detail,
                unit: column.unit,
                section: match column.section {
                    Section::Latency => "latency",
                    Section::Cost => "cost",
                    Section::Streams => "streams",
                    Section::Applications => "applications",
                },
            })
            .collect(),
        rows: results
            .rows
            .iter()
            .map(|row| Row {
                name: &row.name,
                colour: &row.colour,
                part: row.part,
                grade: row.grade,
                cells: &row.cells,
            })
            .collect(),
        runs: summaries
            .iter()
            .take(CHARTED_RUNS)
            .zip(shown(page))
            .map(|(summary, shown)| Run {
                name: &summary.name,
                scenario: &summary.run.scenario,
                colour: &summary.colour,
                shown,
            })
            .collect(),
        delays: summaries.iter().filter_map(delay).take(DELAY_BARS).collect(),
        figures: over_axis.iter().chain(&scatter).chain(&distribution).chain(&page.figures).collect(),
        panels: panels(&summaries),
        verdicts: &page.verdicts,
        heat_maps: &page.heat_maps,
        tables: &page.tables,
        notes,
    };
    let text = serde_json::to_string(&data).expect("a page has text keys, so it always serialises");
    // Inside a script element only "<" can end it or open a comment; JSON may write it as an escape.
    text.replace('<', "\\u003c")
}

fn delay<'a>(summary: &'a RunSummary<'a>) -> Option<Delay<'a>> {
    let ms = |delay: Duration| Compact(round_to(delay.as_millis_f64(), 4));
    if let Some((call, delay)) = summary.call.and_then(|call| Some((call, call.delay?))) {
        let waits = |delay: Duration| ms(delay.saturating_sub(call.unloaded));
        return Some(Delay {
            name: &summary.name,
            colour: &summary.colour,
            link: call.kind.as_str(),
            grade: summary.grade?,
            p50_ms: waits(delay.p50),
            p95_ms: waits(delay.p95),
            p99_ms: waits(delay.p99),
            max_ms: waits(delay.max),
        });
    }
    let queue: &QueueResult = summary.slowest?;
    Some(Delay {
        name: &summary.name,
        colour: &summary.colour,
        link: &queue.name,
        grade: summary.grade?,
        p50_ms: ms(queue.delay_p50),
        p95_ms: ms(queue.delay_p95),
        p99_ms: ms(queue.delay_p99),
        max_ms: ms(queue.delay_max),
    })
}

/// The runs that the charts over time show at first: runs that compare with each other, which are of the first scenario
/// and, of a sweep, at its first value; where these are too many, the first few. Of changes, the best one and the run
/// without any.
fn shown(page: &Page<'_>) -> Vec<bool> {
    if let Some(best) = page.advice.first() {
        let change = |run: &RunResult| label(run, CHANGE_AXIS).map(str::to_owned);
        let wanted = |change: String| change == UNCHANGED || change == best.change;
        return page.runs.iter().map(|run| change(run).is_some_and(wanted)).collect();
    }
    alike(page.runs)
}

fn alike(runs: &[RunResult]) -> Vec<bool> {
    let swept = swept_axis(runs);
    let group = |run: &RunResult| {
        let value = swept.as_deref().and_then(|axis| label(run, axis)).map(str::to_owned);
        (run.scenario.clone(), value)
    };
    let alike: Vec<bool> = runs.iter().map(|run| group(run) == group(&runs[0])).collect();
    let few = 2..=SHOWN_RUNS;
    if few.contains(&alike.iter().filter(|alike| **alike).count()) {
        alike
    } else {
        (0..runs.len()).map(|position| position < SHOWN_RUNS).collect()
    }
}

/// Scenario, seeds and times: the other facts that one needs to run it again.
fn facts(page: &Page<'_>) -> Vec<Fact> {
    let distinct = |value: &dyn Fn(&RunResult) -> String| {
        let mut values: Vec<String> = Vec::new();
        for run in page.runs {
            let value = value(run);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match values.len() {
            0..=4 => values.join(", "),
            count => format!("{}, … {} ({count})", values[0], values[count - 1]),
        }
    };
    // A run that ends with its last byte ends at no round time.
    let seconds = |time: Duration| format!("{} s", round_to(time.as_secs_f64(), 4));
    let facts = [
        ("Scenario", distinct(&|run| run.scenario.clone())),
        ("Runs", if page.runs.is_empty() { String::new() } else { page.runs.len().to_string() }),
        ("Seed", distinct(&|run| run.seed.to_string())),
        ("Duration", distinct(&|run| seconds(run.duration))),
        ("Measured", distinct(&|run| format!("last {}", seconds(run.measured)))),
        ("Version", page.header.version.clone()),
    ];
    facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Fact { name, value })
        .collect()
}

/// The notes about runs and series that the page leaves out for want of room.
fn left_out(summaries: &[RunSummary<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let charted = summaries.iter().filter(|summary| !summary.run.flow_series.is_empty()).count();
    if charted > CHARTED_RUNS {
        notes.push(format!(
            "Charts over time hold the first {CHARTED_RUNS} of {} runs; the files hold all.",
            summaries.len()
        ));
    }
    if summaries.iter().take(CHARTED_RUNS).any(|summary| summary.run.flow_series.len() > CHARTED_FLOWS) {
        notes.push(format!(
            "Charts over time hold the first {CHARTED_FLOWS} flows of each run; the files hold all."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::samples::comparison;

    fn data(runs: &[RunResult]) -> Value {
        let header = ReportHeader { version: "0.1.0".to_owned(), ..ReportHeader::default() };
        serde_json::from_str(&json(&Page::new(&header, runs))).unwrap()
    }

    #[test]
    fn the_page_states_scenario_seed_and_version() {
        let facts = &data(&comparison())["facts"];
        let texts: Vec<String> = facts
            .as_array()
            .unwrap()
            .iter()
            .map(|fact| format!("{}: {}", fact["name"], fact["value"]))
            .collect();
        assert_eq!(
            texts.join("; ").replace('"', ""),
            "Scenario: dsl; Runs: 2; Seed: 7; Duration: 10 s; Measured: last 8 s; Version: 0.1.0"
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let mut runs: Vec<_> = (0..13).flat_map(|_| comparison()).collect();
        let series = runs[0].flow_series[0].clone();
        runs[0].flow_series = vec![series; CHARTED_FLOWS + 1];
        let notes = data(&runs)["notes"].to_string();
        assert!(notes.contains("first 24 of 26 runs"), "{notes}");
        assert!(notes.contains("first 6 flows of each run"), "{notes}");
        assert_eq!(data(&comparison())["notes"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn of_a_sweep_the_runs_at_its_first_value_are_shown_at_first() {
        let mut runs = Vec::new();
        for rate in ["1Mbit", "2Mbit"] {
            for mut run in comparison() {
                run.labels.push(("rate".to_owned(), rate.to_owned()));
                runs.push(run);
            }
        }
        assert_eq!(alike(&runs), [true, true, false, false]);
        assert_eq!(alike(&comparison()), [true, true]);
        let mut scenarios = [comparison(), comparison()].concat();
        scenarios[2..].iter_mut().for_each(|run| run.scenario = "cellular".to_owned());
        assert_eq!(alike(&scenarios), [true, true, false, false]);
        let many: Vec<_> = (0..6).flat_map(|_| comparison()).collect();
        assert_eq!(alike(&many).iter().filter(|shown| **shown).count(), SHOWN_RUNS);
    }

    #[test]
    fn without_runs_there_is_still_a_page() {
        let data = data(&[]);
        assert_eq!(data["summary"], "");
        assert_eq!(data["rows"].as_array().unwrap().len(), 0);
    }
}
