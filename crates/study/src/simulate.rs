//! Runs on all cores.

use rayon::prelude::*;
use suimon_results::RunResult;
use suimon_scenario::{Link, Run, Scenario, drop_tail};
use suimon_simulator::run_observed;
use suimon_units::Duration;

/// Follows work from several threads.
///
/// An observer that wants the work to stop may unwind (`std::panic::resume_unwind`) where the program is built
/// to unwind: what was at work is lost, nothing is left half-written, and the call that began it unwinds too.
pub trait Observer: Sync {
    /// So much more simulated time is done.
    fn advance(&self, by: Duration);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn advance(&self, _by: Duration) {}
}

/// How much simulated time an observer of `runs` will be told of.
#[must_use]
pub fn total_duration(runs: &[Run]) -> Duration {
    runs.iter().fold(Duration::ZERO, |sum, run| sum + run.scenario.duration)
}

/// Runs everything; results come in the order of `runs`, on any number of cores.
#[must_use]
pub fn simulate(runs: &[Run], observer: &dyn Observer) -> Vec<RunResult> {
    runs.par_iter().map(|run| simulate_one(run, observer)).collect()
}

/// As [`simulate`], without what grows with the length of a run and no verdict takes: events, and samples of flows and
/// aggregates. A thousand runs fit in memory so. Claims on estimators take samples of queues, and the flows' SRTT.
#[must_use]
pub fn simulate_totals(runs: &[Run], observer: &dyn Observer) -> Vec<RunResult> {
    let totals = |run: &Run| {
        let estimates = run.scenario.links.iter().any(|link| link.estimator.is_some());
        let mut result = simulate_one(run, observer);
        result.events = Vec::new();
        result.aggregate_series = Vec::new();
        result.flow_series.retain(|_| estimates);
        for series in &mut result.flow_series {
            series.columns.retain(|column| SAMPLES_OF_FLOWS.contains(&column.name.as_str()));
        }
        result
    };
    runs.par_iter().map(totals).collect()
}

/// Runs `run`.
#[must_use]
pub fn simulate_one(run: &Run, observer: &dyn Observer) -> RunResult {
    let mut told = Duration::ZERO;
    let mut result = run_observed(&run.scenario, &run.labels, &mut |passed| {
        observer.advance(passed.saturating_sub(told));
        told = passed;
    });
    observer.advance(run.scenario.duration.saturating_sub(told));
    result.notes.extend(one_sided_queues(&run.scenario));
    result
}

/// What claims on estimators take of the flows.
const SAMPLES_OF_FLOWS: [&str; 2] = ["srtt_ms", "flight_bytes"];

/// A sentence for each link whose queue discipline stands in front of one direction only, while flows send data the
/// other way too.
fn one_sided_queues(scenario: &Scenario) -> Vec<String> {
    let plain = drop_tail();
    let pairs = scenario.links.iter().filter_map(|there| {
        let name = Link::other_direction(&there.name);
        let back = scenario.links.iter().find(|back| back.name == name)?;
        (there.queue != plain && back.queue == plain).then_some((there, back))
    });
    let sends_over = |link: &Link| {
        let mut ends: Vec<_> = scenario.flows.iter().map(|flow| (&flow.from, &flow.to, &flow.via)).collect();
        ends.dedup();
        let mut flows = scenario.flows.iter();
        ends.iter().any(|end| {
            let flow = flows.find(|flow| (&flow.from, &flow.to, &flow.via) == *end);
            flow.is_some_and(|flow| scenario.ways(flow)[0].iter().any(|way| way.name == link.name))
        })
    };
    let note = |(there, back): (&Link, &Link)| {
        let reported = if back.reported { "" } else { ", and its queue is not reported" };
        format!(
            "The queue \"{}\" of link \"{}\" stands in front of one direction only. Flows send data the other way \
             too, where drop tail holds {}{reported}; [link.reverse] takes queue, buffer and reported.",
            there.queue.label(),
            there.name,
            back.buffer_text(),
        )
    };
    pairs.filter(|(_, back)| sends_over(back)).map(note).collect()
}

#[cfg(test)]
mod tests {
    use suimon_scenario::Document;

    use super::*;

    #[test]
    fn a_queue_on_one_side_is_noted_where_data_flows_on_the_other() {
        let scenario = |queue: &str, reverse: &str, from: &str, to: &str| {
            format!(
                "duration = \"1s\"\n[[link]]\nname = \"line\"\nbetween = [\"net\", \"home\"]\nrate = \"5Mbit\"\n\
                 delay = \"5ms\"\n{queue}\n[link.reverse]\nrate = \"1Mbit\"\n{reverse}\n\
                 [[flow]]\nname = \"load\"\nfrom = \"{from}\"\nto = \"{to}\"\n"
            )
        };
        let notes = |text: String| {
            let runs = Document::parse(&text, "test.toml").unwrap().runs().unwrap();
            simulate(&runs, &Unobserved)[0].notes.clone()
        };
        let cake = "queue = \"cake\"";
        let told = notes(scenario(cake, "", "home", "net"));
        assert!(told.len() == 1 && told[0].starts_with("The queue \"cake\" of link \"line\""), "{told:?}");
        assert!(told[0].contains("drop tail holds unbounded, and its queue is not reported"), "{told:?}");
        assert_eq!(notes(scenario(cake, cake, "home", "net")), [""; 0]);
        assert_eq!(notes(scenario(cake, "", "net", "home")), [""; 0]);
        assert_eq!(notes(scenario("", "", "home", "net")), [""; 0]);
    }
}
