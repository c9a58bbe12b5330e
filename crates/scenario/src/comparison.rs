//! Algorithms side by side over one link, without a scenario file.

use std::sync::Arc;

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::{Problem, ScenarioError};
use crate::model::{Buffer, Capacity, Flow, Link, Loss, Record, Scenario, Start, TcpFlow, Traffic};
use crate::profile::StackProfile;
use crate::run::{Run, Runs};
use crate::scheme::{Scheme, algorithm};
use crate::shorthand::LinkSpec;
use crate::text;

/// Most flows of one run.
const MOST_FLOWS: u64 = 1_000_000;

/// Schemes over one link: each in runs of its own, or all in the same ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Short name, used in tables and file names.
    pub name: String,
    /// The link between `sender` and `receiver`.
    pub link: LinkSpec,
    /// What is compared.
    pub schemes: Vec<Scheme>,
    /// The queue discipline in front of the link.
    pub queue: AlgorithmSpec,
    /// How many flows each scheme has in a run, at least one.
    pub flows: u64,
    /// All schemes share the link in one run, rather than having it for themselves.
    pub mixed: bool,
    /// When a run ends at the latest.
    pub duration: Duration,
    /// Totals and percentiles count from here on.
    pub warmup: Duration,
    /// How much each flow sends; `None` for as much as it can. Runs end when all is sent.
    pub size: Option<Bytes>,
    /// Receive buffer.
    pub window: Bytes,
    /// The habits of both stacks.
    pub profile: StackProfile,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, at least one.
    pub seeds: u64,
    /// How often flows and the queue are sampled; `None` for never.
    pub record_interval: Option<Duration>,
}

impl Comparison {
    /// `schemes` over `link`: one flow each, in runs of its own, for a minute, behind a drop-tail
    /// queue, between stacks of today's Linux.
    #[must_use]
    pub fn new(link: LinkSpec, schemes: Vec<Scheme>) -> Self {
        Self {
            name: "comparison".to_owned(),
            link,
            schemes,
            queue: algorithm(Role::Queue, "droptail")
                .expect("drop tail is registered, as the scenario tests show"),
            flows: 1,
            mixed: false,
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            size: None,
            window: text::DEFAULT_WINDOW.parse().expect("the default window reads, as a test shows"),
            profile: StackProfile::linux_6(),
            seed: 1,
            seeds: 1,
            record_interval: Some(Duration::from_millis(100)),
        }
    }

    /// The runs: one for each scheme and seed, labelled `cc`; or one for each seed, where mixed.
    ///
    /// # Errors
    /// When no scheme is given, two runs would be the same, or a quantity is out of range.
    pub fn runs(&self) -> Result<Vec<Run>, ScenarioError> {
        let refuse = |key: &str, problem| Err(ScenarioError::new(&self.name, problem).at_key(key));
        if self.schemes.is_empty() {
            return refuse("cc", Problem::Missing { accepted: "at least one algorithm".to_owned() });
        }
        for (key, count) in [("flows", self.flows), ("seeds", self.seeds)] {
            if count == 0 {
                let accepted = "at least one".to_owned();
                return refuse(key, Problem::Value { text: "0".to_owned(), reason: "is nothing", accepted });
            }
        }
        let shared = if self.mixed { self.schemes.len() as u64 } else { 1 };
        if self.flows.saturating_mul(shared) > MOST_FLOWS {
            return refuse("flows", Problem::TooMany { what: "more flows".to_owned(), limit: MOST_FLOWS });
        }
        let mut runs = Runs::default();
        if self.mixed {
            self.add(&mut runs, &[], &self.schemes)?;
            return Ok(runs.finish());
        }
        for (position, scheme) in self.schemes.iter().enumerate() {
            let name = scheme.label();
            if self.schemes[..position].contains(scheme) {
                return refuse("cc", Problem::Duplicate { what: "algorithm", name });
            }
            self.add(&mut runs, &[("cc".to_owned(), name)], std::slice::from_ref(scheme))?;
        }
        Ok(runs.finish())
    }

    fn add(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        schemes: &[Scheme],
    ) -> Result<(), ScenarioError> {
        let scenario = Scenario {
            name: self.name.clone(),
            description: String::new(),
            seed: self.seed,
            duration: self.duration,
            stop_when_complete: true,
            links: self.links(),
            flows: self.flows_of(schemes),
            aggregates: Vec::new(),
            record: Record {
                interval: self.record_interval,
                warmup: self.warmup,
                windows: Vec::new(),
                rate_spread: None,
            },
        };
        scenario.check()?;
        runs.add(labels, &scenario, self.seeds).map_err(|problem| ScenarioError::new(&self.name, problem))
    }

    fn links(&self) -> Vec<Link> {
        let there = self.link.rtt / 2;
        let bottleneck = Link {
            name: "bottleneck".to_owned(),
            from: "sender".to_owned(),
            to: "receiver".to_owned(),
            capacity: self.link.capacity.clone(),
            delay: there,
            overhead: Bytes::ZERO,
            buffer: self.link.buffer,
            queue: self.queue.clone(),
            loss: self.link.loss,
            jitter: self.link.jitter,
            reordering: self.link.reordering,
            estimator: None,
            reported: true,
        };
        let reverse = Link {
            name: "bottleneck-reverse".to_owned(),
            from: "receiver".to_owned(),
            to: "sender".to_owned(),
            capacity: match &self.link.capacity {
                // Answers contend for the medium too.
                Capacity::Wifi(medium) => Capacity::Wifi(Arc::clone(medium)),
                _ => Capacity::Rate(Rate::MAX),
            },
            delay: self.link.rtt - there + self.link.uplink_delay(),
            overhead: Bytes::ZERO,
            buffer: Buffer::Unbounded,
            queue: algorithm(Role::Queue, "droptail")
                .expect("drop tail is registered, as the scenario tests show"),
            loss: Loss::None,
            jitter: Duration::ZERO,
            reordering: None,
            estimator: None,
            reported: false,
        };
        vec![bottleneck, reverse]
    }

    fn flows_of(&self, schemes: &[Scheme]) -> Vec<Flow> {
        let mut flows = Vec::new();
        for scheme in schemes {
            // The same scheme may be given twice where all are mixed; its flows are numbered through.
            let alike = schemes.iter().filter(|other| *other == scheme).count() as u64 * self.flows;
            let before = flows.iter().filter(|(other, _)| *other == scheme).count() as u64;
            for nth in before + 1..=before + self.flows {
                let name = if alike == 1 { scheme.label() } else { format!("{scheme}-{nth}") };
                flows.push((scheme, self.flow(scheme, name)));
            }
        }
        flows.into_iter().map(|(_, flow)| flow).collect()
    }

    fn flow(&self, scheme: &Scheme, name: String) -> Flow {
        let tcp = TcpFlow {
            cc: scheme.cc.clone(),
            receiver: scheme.receiver.clone(),
            profile: self.profile.clone(),
            window: self.window,
            size: self.size,
            application_rate: None,
            on_off: None,
        };
        Flow {
            name,
            from: "sender".to_owned(),
            to: "receiver".to_owned(),
            via: None,
            start: Start::At(Instant::ZERO),
            stop: None,
            extra_delay: (Duration::ZERO, Duration::ZERO),
            traffic: Traffic::Tcp(Box::new(tcp)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(schemes: &[&str]) -> Comparison {
        let link = LinkSpec::parse("2Mbit 181ms 96kB loss=1%").unwrap();
        Comparison::new(link, schemes.iter().map(|text| Scheme::parse(text).unwrap()).collect())
    }

    #[test]
    fn each_scheme_and_seed_is_a_run() {
        let runs = Comparison { seeds: 3, flows: 2, ..comparison(&["reno"]) }.runs().unwrap();
        assert_eq!(runs.len(), 3);
        let labels = |cc: &str, seed: &str| {
            vec![("cc".to_owned(), cc.to_owned()), ("seed".to_owned(), seed.to_owned())]
        };
        assert_eq!(runs[2].labels, labels("reno", "3"));
        let names: Vec<_> = runs[0].scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["reno-1", "reno-2"]);
    }

    #[test]
    fn both_directions_together_take_the_round_trip_time() {
        let runs = comparison(&["reno"]).runs().unwrap();
        let [there, back] = runs[0].scenario.links.as_slice() else { panic!("two links") };
        assert_eq!(there.delay + back.delay, Duration::from_millis(181));
        assert_eq!((&there.from, &there.to), (&back.to, &back.from));
        assert_eq!(
            (back.capacity.clone(), back.loss, back.reported),
            (Capacity::Rate(Rate::MAX), Loss::None, false)
        );
        assert_eq!(runs[0].labels, [("cc".to_owned(), "reno".to_owned())]);
    }

    #[test]
    fn mixed_schemes_share_one_run_even_when_alike() {
        let runs = Comparison { mixed: true, ..comparison(&["reno", "reno"]) }.runs().unwrap();
        assert_eq!((runs.len(), runs[0].labels.len()), (1, 0));
        let names: Vec<_> = runs[0].scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["reno-1", "reno-2"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let message = |comparison: Comparison| comparison.runs().unwrap_err().to_string();
        assert!(message(comparison(&[])).contains("at least one algorithm"));
        assert!(message(comparison(&["reno", "reno"])).contains("a second algorithm"));
        assert!(message(Comparison { flows: 0, ..comparison(&["reno"]) }).contains("flows"));
        assert!(message(Comparison { flows: u64::MAX, ..comparison(&["reno"]) }).contains("at most"));
        assert!(message(Comparison { seeds: u64::MAX, ..comparison(&["reno"]) }).contains("at most"));
        assert!(
            message(Comparison { duration: Duration::ZERO, ..comparison(&["reno"]) }).contains("duration")
        );
        assert!(message(Comparison { window: Bytes::new(1), ..comparison(&["reno"]) }).contains("window"));
    }
}
