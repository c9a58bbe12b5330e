//! The same runs simulated and live, side by side.

use suimon_report::{Headings, Verdict, VerdictRow, VerdictTable};
use suimon_results::{QueueResult, RunResult, WindowResult};
use suimon_units::Bytes;

/// One run in both worlds.
#[derive(Debug, Clone)]
pub struct Pair {
    /// As simulated.
    pub simulated: RunResult,
    /// On real stacks.
    pub live: RunResult,
}

/// A quantity that both worlds have, and how far apart they may be.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    percent: f64,
    of: fn(&RunResult) -> Option<f64>,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity { name: "throughput", unit: " Mbit/s", percent: 3.0, of: throughput },
    Quantity { name: "mean queue", unit: " kB", percent: 15.0, of: mean_queue },
    Quantity { name: "marks, drops", unit: " \u{2030}", percent: 20.0, of: signals },
];

/// One row a run and quantity.
#[must_use]
pub fn compare_worlds(pairs: &[Pair]) -> VerdictTable {
    let rows = pairs.iter().flat_map(|pair| QUANTITIES.iter().map(move |quantity| row(pair, quantity)));
    VerdictTable {
        title: "Simulated and live".to_owned(),
        headings: Headings::Worlds,
        note: Some(
            "Throughput is what left the reported links; marks and drops are of a thousand packets that came to \
             them. Not judged is what the emulator was too late for."
                .to_owned(),
        ),
        rows: rows.collect(),
    }
}

/// All runs of both worlds, told apart by a label, those of one setting next to each other.
#[must_use]
pub fn in_both_worlds(pairs: Vec<Pair>) -> Vec<RunResult> {
    let labelled = |mut run: RunResult, world: &str| {
        run.labels.push(("world".to_owned(), world.to_owned()));
        run
    };
    let both = |pair: Pair| [labelled(pair.simulated, "simulated"), labelled(pair.live, "live")];
    pairs.into_iter().flat_map(both).collect()
}

/// A number of a link in a window, and how far apart the simulator's and the kernel's may be.
struct InWindow {
    name: &'static str,
    unit: &'static str,
    digits: usize,
    percent: f64,
    /// Where it is no more than this in both, it is shown and not judged.
    chance: f64,
    of: fn(&WindowResult) -> f64,
}

/// Counts of up to this are chance.
const FEW: f64 = 50.0;

/// The first alone is of links without a queue too.
const IN_WINDOWS: [InWindow; 5] = [
    InWindow {
        name: "goodput",
        unit: " Mbit/s",
        digits: 2,
        percent: 3.0,
        chance: 0.0,
        of: |window| window.goodput.as_bps_f64() / 1e6,
    },
    InWindow {
        name: "mean queue",
        unit: " kB",
        digits: 1,
        percent: 10.0,
        chance: 0.0,
        of: |window| window.backlog_mean_bytes / 1e3,
    },
    InWindow {
        name: "COV of the queue",
        unit: "",
        digits: 3,
        percent: 15.0,
        chance: 0.0,
        of: |window| window.backlog_cov,
    },
    InWindow {
        name: "marks",
        unit: "",
        digits: 0,
        percent: 15.0,
        chance: FEW,
        of: |window| window.marked as f64,
    },
    InWindow {
        name: "drops",
        unit: "",
        digits: 0,
        percent: 15.0,
        chance: FEW,
        of: |window| (window.dropped_early + window.dropped_overflow) as f64,
    },
];

/// Where no more than this ever waited in both worlds, there is no queue to compare: a full packet, which the kernel counts
/// until it has left.
const NO_QUEUE: Bytes = Bytes::new(1_500);

/// One table an experiment, with a row for each setting, window and quantity: the mean over the seeds of a setting, in the
/// simulator and with the links of the kernel. A link without a queue has a row for its goodput.
#[must_use]
pub fn compare_windows(pairs: &[Pair]) -> Vec<VerdictTable> {
    let mut tables: Vec<VerdictTable> = Vec::new();
    let mut left = pairs;
    while let Some(first) = left.first() {
        let of_one = left.partition_point(|pair| pair.live.labels == first.live.labels);
        let (seeds, others) = left.split_at(of_one.max(1));
        left = others;
        let title = first.live.labels.first().map_or("", |(_, name)| name.as_str());
        let title = format!("Kernel beside simulator: {title}");
        if tables.last().is_none_or(|table| table.title != title) {
            tables.push(VerdictTable {
                title,
                headings: Headings::Worlds,
                note: Some(format!(
                    "Means over the seeds. The queue is what waits whenever a packet joins or leaves. Counts of up to \
                     {FEW:.0} are shown and not judged."
                )),
                rows: Vec::new(),
            });
        }
        if let Some(table) = tables.last_mut() {
            table.rows.extend(rows_of(seeds));
        }
    }
    tables
}

fn rows_of(seeds: &[Pair]) -> Vec<VerdictRow> {
    let Some(first) = seeds.first() else { return Vec::new() };
    let setting: Vec<_> = first.live.labels.iter().skip(1).map(|(_, value)| value.as_str()).collect();
    let mut rows = Vec::new();
    let several_links = first.live.windows.iter().any(|one| one.link != first.live.windows[0].link);
    for (place, window) in first.live.windows.iter().enumerate() {
        let worlds = seeds.iter().flat_map(|pair| [&pair.simulated, &pair.live]);
        let longest = worlds.filter_map(|run| Some(run.windows.get(place)?.backlog_max_bytes)).max();
        let has_queue = longest > Some(NO_QUEUE);
        let mut of_row = setting.clone();
        of_row.extend(several_links.then_some(window.link.as_str()));
        of_row.push(&window.window);
        let of_row = of_row.join(", ");
        for quantity in &IN_WINDOWS[..if has_queue { IN_WINDOWS.len() } else { 1 }] {
            let mean = |of: fn(&Pair) -> &RunResult| {
                let found: Vec<_> =
                    seeds.iter().filter_map(|pair| of(pair).windows.get(place).map(quantity.of)).collect();
                found.iter().sum::<f64>() / found.len() as f64
            };
            let (simulated, kernel) = (mean(|pair| &pair.simulated), mean(|pair| &pair.live));
            let change = 100.0 * (kernel / simulated - 1.0);
            let verdict = match change.abs() <= quantity.percent {
                _ if simulated.max(kernel) <= quantity.chance => Verdict::Shown,
                true => Verdict::Reproduced,
                false => Verdict::NotReproduced,
            };
            let written = |value: f64| format!("{value:.*}{}", quantity.digits, quantity.unit);
            let change = if change.is_finite() { format!(" ({change:+.1} %)") } else { String::new() };
            rows.push(VerdictRow {
                claim: format!("{of_row}: {}", quantity.name),
                paper: written(simulated),
                tolerance: format!("{} %", quantity.percent),
                measured: written(kernel) + &change,
                verdict,
                basis: None,
                cause: None,
            });
        }
    }
    rows
}

fn row(pair: &Pair, quantity: &Quantity) -> VerdictRow {
    let values: Vec<&str> = pair.live.labels.iter().map(|(_, value)| value.as_str()).collect();
    let name = if values.is_empty() { pair.live.scenario.clone() } else { values.join(", ") };
    let (simulated, live) = ((quantity.of)(&pair.simulated), (quantity.of)(&pair.live));
    let written =
        |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}{}", quantity.unit));
    let counts = pair.live.emulated.iter().all(|link| link.objections.is_empty());
    let (change, verdict) = match (simulated, live) {
        (Some(simulated), Some(live)) if simulated > 0.0 => {
            let change = 100.0 * (live / simulated - 1.0);
            let verdict = match change.abs() <= quantity.percent {
                _ if !counts => Verdict::NotTested,
                true => Verdict::Reproduced,
                false => Verdict::NotReproduced,
            };
            (format!(" ({change:+.1} %)"), verdict)
        }
        (Some(_), Some(_)) => (String::new(), Verdict::Shown),
        _ => (String::new(), Verdict::NotTested),
    };
    VerdictRow {
        claim: format!("{name}: {}", quantity.name),
        paper: written(simulated),
        tolerance: format!("{} %", quantity.percent),
        measured: written(live) + &change,
        verdict,
        basis: None,
        cause: None,
    }
}

/// What left the reported links.
fn throughput(run: &RunResult) -> Option<f64> {
    let bytes: f64 = run.queues.iter().map(|queue| queue.bytes.as_f64()).sum();
    (!run.queues.is_empty()).then(|| bytes * 8.0 / run.measured.as_secs_f64() / 1e6)
}

fn mean_queue(run: &RunResult) -> Option<f64> {
    let bytes: f64 = run.queues.iter().map(|queue| queue.backlog_mean_bytes).sum();
    (!run.queues.is_empty()).then_some(bytes / 1e3)
}

fn signals(run: &RunResult) -> Option<f64> {
    let dropped = |queue: &QueueResult| queue.dropped_early + queue.dropped_overflow;
    let signals: u64 = run.queues.iter().map(|queue| queue.marked + dropped(queue)).sum();
    let packets: u64 = run.queues.iter().map(|queue| queue.packets + dropped(queue)).sum();
    (packets > 0).then(|| 1e3 * signals as f64 / packets as f64)
}

#[cfg(test)]
mod tests {
    use suimon_scenario::Document;

    use super::*;
    use crate::{Unobserved, simulate_totals};

    const TWO_LINKS: &str = r#"
        name = "two"
        duration = "5s"
        window = [{ name = "late", from = "2s" }]
        link = [
            { name = "narrow", between = ["a", "b"], rate = "2Mbit", delay = "10ms", buffer = "30kB" },
            { name = "wide", between = ["b", "c"], rate = "20Mbit", delay = "10ms", buffer = "30kB" },
        ]
        flow = [{ name = "flow", from = "a", to = "c" }]
    "#;

    #[test]
    fn a_link_is_compared_by_its_queue_where_it_has_one_and_named_where_there_are_several() {
        let runs = Document::parse(TWO_LINKS, "two.toml").unwrap().runs().unwrap();
        let simulated = simulate_totals(&runs, &Unobserved).remove(0);
        let mut live = simulated.clone();
        live.windows[0].backlog_mean_bytes *= 1.2;
        // A packet that is being sent, as the kernel counts it.
        live.windows[1].backlog_max_bytes = NO_QUEUE;
        let tables = compare_windows(&[Pair { simulated, live }]);
        let rows: Vec<_> = tables[0].rows.iter().map(|row| (row.claim.as_str(), row.verdict)).collect();
        assert_eq!(
            rows,
            [
                ("narrow, late: goodput", Verdict::Reproduced),
                ("narrow, late: mean queue", Verdict::NotReproduced),
                ("narrow, late: COV of the queue", Verdict::Reproduced),
                ("narrow, late: marks", Verdict::Shown),
                ("narrow, late: drops", Verdict::Shown),
                ("wide, late: goodput", Verdict::Reproduced),
            ]
        );
    }
}
