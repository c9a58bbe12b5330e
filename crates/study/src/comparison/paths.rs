//! Runs of one stream over several links: each path scheduler in runs of its own, beside each link alone.

use std::sync::Arc;

use suimon_algorithms::registry::{AlgorithmSpec, Registry};
use suimon_scenario::{
    Aggregate, Capacity, DEFAULT_PATIENCE, DEFAULT_STREAM_BUFFER, Flow, Link, LinkSpec, Medium, Record, Run,
    Runs, Scenario, Scheme, Start, TcpFlow, Traffic, drop_tail,
};
use suimon_units::{Bytes, Duration, Instant};

use super::{Comparison, Parsed, Paths, RECORD_INTERVAL, RUN_LENGTH, SchedulerName, duplicate, listed};
use crate::error::StudyError;

/// The stream of all runs.
const STREAM: &str = "stream";
/// What the flows run where nobody says what.
pub(super) const SENDER: &str = "cubic";
/// What is compared where nobody says what: what gives data up to no path of its own accord.
const SCHEDULERS: [&str; 6] = ["look-ahead", "blest", "ecf", "lowest-rtt", "least-buffered", "round-robin"];
/// What runs over each path alone: one path leaves a scheduler no choice, and this one also leaves TCP alone.
const SCHEDULER_ALONE: &str = "least-buffered";

/// What it compares, and over what.
pub(super) fn title(comparison: &Comparison) -> String {
    let paths = comparison.paths.as_ref().map(ToString::to_string).unwrap_or_default();
    let path = |(position, path): (usize, &str)| format!("{}: {}", Paths::name(position), path.trim());
    let paths: Vec<_> = paths.split(';').enumerate().map(path).collect();
    format!("{} over {}", listed(&comparison.schedulers()), paths.join("; "))
}

/// The runs: one for each path alone and for each scheduler, labelled `scheduler`, with each sender, labelled `cc`
/// where there are several, and each seed.
pub(super) fn runs(
    comparison: &Comparison,
    registry: &Registry,
    paths: &[LinkSpec],
) -> Result<Vec<Run>, StudyError> {
    let (senders, schedulers) = (comparison.senders(), comparison.schedulers());
    let senders: Vec<Scheme> = senders.iter().map(|name| name.read(registry)).collect::<Result<_, _>>()?;
    let schedulers: Vec<AlgorithmSpec> =
        schedulers.iter().map(|name| name.read(registry)).collect::<Result<_, _>>()?;
    let alone = SchedulerName::from(SCHEDULER_ALONE).read(registry)?;
    let paths: Vec<_> =
        paths.iter().enumerate().map(|(position, link)| (Paths::name(position), link)).collect();
    let mut runs = Runs::default();
    for (position, sender) in senders.iter().enumerate() {
        if senders[..position].contains(sender) {
            return Err(duplicate("senders", "algorithm", &sender.label()));
        }
        let stream = |scheduler: &AlgorithmSpec, label: String, paths| {
            let mut labels = Vec::new();
            if senders.len() > 1 {
                labels.push(("cc".to_owned(), sender.label()));
            }
            labels.push(("scheduler".to_owned(), label));
            Stream { labels, sender, scheduler: scheduler.clone(), paths }
        };
        if paths.len() > 1 {
            for path in &paths {
                let one = std::slice::from_ref(path);
                comparison.add_stream(&mut runs, &stream(&alone, format!("{} alone", path.0), one))?;
            }
        }
        for (position, scheduler) in schedulers.iter().enumerate() {
            let label = scheduler.label().to_owned();
            if schedulers[..position].contains(scheduler) {
                return Err(duplicate("schedulers", "path scheduler", &label));
            }
            comparison.add_stream(&mut runs, &stream(scheduler, label, &paths))?;
        }
    }
    Ok(runs.finish())
}

/// What sets a run apart from the others.
struct Stream<'a> {
    labels: Vec<(String, String)>,
    sender: &'a Scheme,
    scheduler: AlgorithmSpec,
    /// The paths that carry it, by their names.
    paths: &'a [(String, &'a LinkSpec)],
}

impl Comparison {
    fn schedulers(&self) -> Vec<SchedulerName> {
        match self.schedulers.as_slice() {
            [] => SCHEDULERS.map(SchedulerName::from).to_vec(),
            schedulers => schedulers.to_vec(),
        }
    }

    fn add_stream(&self, runs: &mut Runs, stream: &Stream<'_>) -> Result<(), StudyError> {
        let buffer = |given: &Option<Parsed<Bytes>>| {
            given
                .as_deref()
                .copied()
                .unwrap_or_else(|| DEFAULT_STREAM_BUFFER.parse().expect("the default reads, as a test shows"))
        };
        let scenario = Scenario {
            name: self.name().to_owned(),
            description: String::new(),
            seed: self.seed,
            duration: self.duration.as_deref().copied().unwrap_or(RUN_LENGTH),
            stop_when_complete: true,
            links: stream.paths.iter().flat_map(|(name, link)| links(name, link)).collect(),
            flows: stream.paths.iter().map(|(name, _)| self.flow_over(name, stream.sender)).collect(),
            aggregates: vec![Aggregate {
                name: STREAM.to_owned(),
                flows: stream.paths.iter().map(|(name, _)| name.clone()).collect(),
                scheduler: stream.scheduler.clone(),
                size: self.size.as_deref().copied(),
                application_rate: None,
                send_buffer: buffer(&self.send_buffer),
                reorder_buffer: buffer(&self.receive_buffer),
                copy_stalled: true,
                reconnect: Some(DEFAULT_PATIENCE.parse().expect("the default reads, as a test shows")),
            }],
            record: Record { interval: Some(RECORD_INTERVAL), warmup: *self.warmup, ..Record::default() },
        };
        self.add_seeds(runs, &stream.labels, &scenario)
    }

    fn flow_over(&self, path: &str, sender: &Scheme) -> Flow {
        let tcp = TcpFlow {
            cc: sender.cc.clone(),
            receiver: sender.receiver.clone(),
            profile: (*self.profile).clone(),
            window: *self.window,
            size: None,
            application_rate: None,
            on_off: None,
            gateway: None,
        };
        Flow {
            name: path.to_owned(),
            from: "sender".to_owned(),
            to: "receiver".to_owned(),
            via: Some(vec![path.to_owned()]),
            start: Start::At(Instant::ZERO),
            stop: None,
            extra_delay: (Duration::ZERO, Duration::ZERO),
            traffic: Traffic::Tcp(Box::new(tcp)),
        }
    }
}

/// Both directions of the path called `name`.
fn links(name: &str, link: &LinkSpec) -> [Link; 2] {
    let [there, back] = link.links(&drop_tail());
    // Two paths over 802.11 are two media, be they alike or not.
    let own = |capacity: Capacity| match capacity {
        Capacity::Wifi(medium) => {
            Capacity::Wifi(Arc::new(Medium { name: name.to_owned(), ..(*medium).clone() }))
        }
        other => other,
    };
    let back = Link { name: Link::other_direction(name), capacity: own(back.capacity), ..back };
    [Link { capacity: own(there.capacity), name: name.to_owned(), ..there }, back]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{comparison, refusal};
    use super::*;

    fn labels(comparison: &Comparison) -> Vec<String> {
        let runs = comparison.runs(&Registry::standard()).unwrap();
        let text =
            |run: &Run| run.labels.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ");
        runs.iter().map(text).collect()
    }

    #[test]
    fn each_path_runs_alone_and_then_each_scheduler_over_all() {
        let paths = "10Mbit 2ms; 3Mbit 40ms 50packets";
        let both = comparison(json!({ "paths": paths, "schedulers": ["look-ahead", "ecf:beta=0.5"] }));
        assert_eq!(labels(&both), ["path-1 alone", "path-2 alone", "look-ahead", "ecf:beta=0.5"]);
        let runs = both.runs(&Registry::standard()).unwrap();
        let names = |run: &Run| run.scenario.flows.iter().map(|flow| flow.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&runs[1]), ["path-2"]);
        assert_eq!(names(&runs[2]), ["path-1", "path-2"]);
        assert_eq!(runs[2].scenario.links.len(), 4);
        assert_eq!(runs[2].scenario.links[2].delay, Duration::from_millis(20));
        assert_eq!(runs[2].scenario.aggregates[0].flows, ["path-1", "path-2"]);
        assert_eq!(
            title(&both),
            "look-ahead, ecf:beta=0.5 over path-1: 10Mbit 2ms; path-2: 3Mbit 40ms 50packets"
        );
        let fields =
            json!({ "paths": "10Mbit 2ms", "schedulers": ["ecf"], "senders": ["reno", "cubic"], "seeds": 2 });
        assert_eq!(labels(&comparison(fields)), ["reno ecf 1", "reno ecf 2", "cubic ecf 1", "cubic ecf 2"]);
    }

    #[test]
    fn two_paths_over_802_11_do_not_share_a_medium() {
        let both =
            comparison(json!({ "paths": "wifi 802.11b 2Mbit; wifi 802.11b 2Mbit", "schedulers": ["ecf"] }));
        let run = both.runs(&Registry::standard()).unwrap().pop().unwrap();
        let media: Vec<_> = (run.scenario.links.iter())
            .filter_map(|link| match &link.capacity {
                Capacity::Wifi(medium) => Some(medium.name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(media, ["path-1", "path-1", "path-2", "path-2"]);
    }

    #[test]
    fn two_runs_that_would_be_the_same_are_refused() {
        let twice = refusal(json!({ "paths": "10Mbit 1ms; 3Mbit 20ms", "schedulers": ["ecf", "ecf"] }));
        assert_eq!(twice.0, "schedulers");
        assert!(twice.1.starts_with("a second path scheduler"), "{}", twice.1);
    }
}
