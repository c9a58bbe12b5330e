//! Path schedulers side by side over several links, without a scenario file.

use std::sync::Arc;

use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_units::{Bytes, Duration, Instant};

use crate::comparison::drop_tail;
use crate::error::{Problem, ScenarioError};
use crate::run::Runs;
use crate::scheme::{Scheme, algorithm};
use crate::shorthand::LinkSpec;
use crate::text;
use suimon_model::Run;
use suimon_model::StackProfile;
use suimon_model::{Aggregate, Capacity, Flow, Link, Medium, Record, Scenario, Start, TcpFlow, Traffic};

/// One stream over several links: each scheduler in runs of its own, beside each link alone.
#[derive(Debug, Clone, PartialEq)]
pub struct PathComparison {
    /// Short name, used in tables and file names.
    pub name: String,
    /// The links between `sender` and `receiver`, called `path-1` and so on, with one flow over each.
    pub paths: Vec<LinkSpec>,
    /// What is compared.
    pub schedulers: Vec<AlgorithmSpec>,
    /// What the flows run, each in runs of its own.
    pub schemes: Vec<Scheme>,
    /// When a run ends at the latest.
    pub duration: Duration,
    /// Totals and percentiles count from here on.
    pub warmup: Duration,
    /// How much the stream has; `None` for as much as it can. Runs end when all has arrived.
    pub size: Option<Bytes>,
    /// What each flow may hold, unsent or unacknowledged.
    pub send_buffer: Bytes,
    /// What may wait at the receiver for data of other flows.
    pub reorder_buffer: Bytes,
    /// Receive buffer of each flow.
    pub window: Bytes,
    /// The options of both stacks.
    pub profile: StackProfile,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, at least one.
    pub seeds: u64,
    /// How often flows and queues are sampled; `None` for never.
    pub record_interval: Option<Duration>,
}

/// The stream of all runs.
const STREAM: &str = "stream";

impl PathComparison {
    /// `schedulers` over `paths`, for a minute, with buffers of 4 MiB at both ends, between stacks of today's
    /// Linux.
    #[must_use]
    pub fn new(paths: Vec<LinkSpec>, schedulers: Vec<AlgorithmSpec>) -> Self {
        let cubic = Scheme::parse(crate::scheme::DEFAULT_CC).expect("the default reads, as a test shows");
        Self {
            name: "paths".to_owned(),
            paths,
            schedulers,
            schemes: vec![cubic],
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            size: None,
            send_buffer: text::DEFAULT_STREAM_BUFFER.parse().expect("the default reads, as a test shows"),
            reorder_buffer: text::DEFAULT_STREAM_BUFFER.parse().expect("the default reads, as a test shows"),
            window: text::DEFAULT_WINDOW.parse().expect("the default window reads, as a test shows"),
            profile: StackProfile::linux_6(),
            seed: 1,
            seeds: 1,
            record_interval: Some(Duration::from_millis(100)),
        }
    }

    /// What the path of this position, counted from zero, is called.
    #[must_use]
    pub fn path_name(position: usize) -> String {
        format!("path-{}", position + 1)
    }

    /// The runs: one for each path alone and for each scheduler, labelled `scheduler`, with each scheme,
    /// labelled `cc` where there are several, and each seed.
    ///
    /// # Errors
    /// When something is missing, two runs would be the same, or a quantity is out of range.
    pub fn runs(&self) -> Result<Vec<Run>, ScenarioError> {
        let refuse = |key: &str, problem| Err(ScenarioError::new(&self.name, problem).at_key(key));
        let missing = |accepted: &str| Problem::Missing { accepted: accepted.to_owned() };
        if self.paths.is_empty() {
            return refuse("paths", missing("at least one link"));
        }
        if self.schedulers.is_empty() {
            return refuse("scheduler", missing("at least one path scheduler"));
        }
        if self.schemes.is_empty() {
            return refuse("cc", missing("at least one algorithm"));
        }
        if self.seeds == 0 {
            let accepted = "at least one".to_owned();
            return refuse("seeds", Problem::Value { text: "0".to_owned(), reason: "is nothing", accepted });
        }
        let mut runs = Runs::default();
        for (position, scheme) in self.schemes.iter().enumerate() {
            if self.schemes[..position].contains(scheme) {
                return refuse("cc", Problem::Duplicate { what: "algorithm", name: scheme.label() });
            }
            let mut labels = Vec::new();
            if self.schemes.len() > 1 {
                labels.push(("cc".to_owned(), scheme.label()));
            }
            let names: Vec<_> = (0..self.paths.len()).map(Self::path_name).collect();
            if names.len() > 1 {
                // One path leaves a scheduler no choice; this one also leaves TCP alone.
                let scheduler = algorithm(&Registry::standard(), Role::Path, "least-buffered")
                    .map_err(|problem| ScenarioError::new(&self.name, problem))?;
                for name in &names {
                    let label = format!("{name} alone");
                    self.add(&mut runs, &labels, label, scheme, &scheduler, std::slice::from_ref(name))?;
                }
            }
            for (position, scheduler) in self.schedulers.iter().enumerate() {
                let label = scheduler.label().to_owned();
                if self.schedulers[..position].contains(scheduler) {
                    let problem = Problem::Duplicate { what: "path scheduler", name: label };
                    return refuse("scheduler", problem);
                }
                self.add(&mut runs, &labels, label, scheme, scheduler, &names)?;
            }
        }
        Ok(runs.finish())
    }

    /// Adds the runs in which the flows with these `names` carry the stream.
    fn add(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        label: String,
        scheme: &Scheme,
        scheduler: &AlgorithmSpec,
        names: &[String],
    ) -> Result<(), ScenarioError> {
        let mut labels = labels.to_vec();
        labels.push(("scheduler".to_owned(), label));
        let chosen = |position: &usize| names.contains(&Self::path_name(*position));
        let scenario = Scenario {
            name: self.name.clone(),
            description: String::new(),
            seed: self.seed,
            duration: self.duration,
            stop_when_complete: true,
            links: (0..self.paths.len()).filter(chosen).flat_map(|position| self.links(position)).collect(),
            flows: (0..self.paths.len()).filter(chosen).map(|position| self.flow(position, scheme)).collect(),
            aggregates: vec![Aggregate {
                name: STREAM.to_owned(),
                flows: names.to_vec(),
                scheduler: scheduler.clone(),
                size: self.size,
                application_rate: None,
                send_buffer: self.send_buffer,
                reorder_buffer: self.reorder_buffer,
                copy_stalled: true,
                reconnect: Some(text::DEFAULT_PATIENCE.parse().expect("the default reads, as a test shows")),
            }],
            record: Record { interval: self.record_interval, warmup: self.warmup, ..Record::default() },
        };
        scenario.check()?;
        runs.add(&labels, &scenario, self.seeds).map_err(|problem| ScenarioError::new(&self.name, problem))
    }

    fn links(&self, position: usize) -> [Link; 2] {
        let name = Self::path_name(position);
        let [there, back] = self.paths[position].links(&drop_tail());
        // Two paths over 802.11 are two media, be they alike or not.
        let own = |capacity: Capacity| match capacity {
            Capacity::Wifi(medium) => {
                Capacity::Wifi(Arc::new(Medium { name: name.clone(), ..(*medium).clone() }))
            }
            other => other,
        };
        let back = Link { name: Link::other_direction(&name), capacity: own(back.capacity), ..back };
        [Link { capacity: own(there.capacity), name: name.clone(), ..there }, back]
    }

    fn flow(&self, position: usize, scheme: &Scheme) -> Flow {
        let name = Self::path_name(position);
        let tcp = TcpFlow {
            cc: scheme.cc.clone(),
            receiver: scheme.receiver.clone(),
            profile: self.profile.clone(),
            window: self.window,
            size: None,
            application_rate: None,
            on_off: None,
        };
        Flow {
            via: Some(vec![name.clone()]),
            name,
            from: "sender".to_owned(),
            to: "receiver".to_owned(),
            start: Start::At(Instant::ZERO),
            stop: None,
            extra_delay: (Duration::ZERO, Duration::ZERO),
            traffic: Traffic::Tcp(Box::new(tcp)),
        }
    }

    /// Reads links apart by semicolons, as [`LinkSpec::parse`] reads each.
    ///
    /// # Errors
    /// When one does not read: the key tells which.
    pub fn parse_paths(text: &str) -> Result<Vec<LinkSpec>, ScenarioError> {
        let paths = text.split(';').enumerate();
        paths
            .map(|(position, path)| LinkSpec::parse(path).map_err(|error| at_path(error, position)))
            .collect()
    }

    /// Reads a built-in path scheduler, as the key `scheduler` of an aggregate takes it.
    ///
    /// # Errors
    /// When a name or a parameter is not known, with what is.
    pub fn parse_scheduler(name: &str) -> Result<AlgorithmSpec, ScenarioError> {
        Self::parse_scheduler_with(&Registry::standard(), name)
    }

    /// The same, where names stand for what they do in `registry`.
    ///
    /// # Errors
    /// As [`PathComparison::parse_scheduler`].
    pub fn parse_scheduler_with(registry: &Registry, name: &str) -> Result<AlgorithmSpec, ScenarioError> {
        algorithm(registry, Role::Path, name).map_err(|problem| ScenarioError::new("scheduler", problem))
    }
}

/// `error` of the path at `position`; what a file is at fault for goes by its own name.
fn at_path(error: ScenarioError, position: usize) -> ScenarioError {
    if error.source_name() != "link" {
        return error;
    }
    let name = PathComparison::path_name(position);
    let key = error.key().map_or_else(|| name.clone(), |key| format!("{name}: {key}"));
    error.at_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(paths: &str, schedulers: &[&str]) -> PathComparison {
        let schedulers = schedulers.iter().map(|name| PathComparison::parse_scheduler(name).unwrap());
        PathComparison::new(PathComparison::parse_paths(paths).unwrap(), schedulers.collect())
    }

    fn labels(comparison: &PathComparison) -> Vec<String> {
        let runs = comparison.runs().unwrap();
        let text =
            |run: &Run| run.labels.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ");
        runs.iter().map(text).collect()
    }

    #[test]
    fn each_path_runs_alone_and_then_each_scheduler_over_all() {
        let both = comparison("10Mbit 2ms; 3Mbit 40ms 50packets", &["look-ahead", "ecf:beta=0.5"]);
        assert_eq!(labels(&both), ["path-1 alone", "path-2 alone", "look-ahead", "ecf:beta=0.5"]);
        let runs = both.runs().unwrap();
        let names = |run: &Run| run.scenario.flows.iter().map(|flow| flow.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&runs[1]), ["path-2"]);
        assert_eq!(names(&runs[2]), ["path-1", "path-2"]);
        assert_eq!(runs[2].scenario.links.len(), 4);
        assert_eq!(runs[2].scenario.links[2].delay, Duration::from_millis(20));
        assert_eq!(runs[2].scenario.aggregates[0].flows, ["path-1", "path-2"]);
        let schemes = ["reno", "cubic"].map(|name| Scheme::parse(name).unwrap()).to_vec();
        let with = PathComparison { schemes, seeds: 2, ..comparison("10Mbit 2ms", &["ecf"]) };
        assert_eq!(labels(&with), ["reno ecf 1", "reno ecf 2", "cubic ecf 1", "cubic ecf 2"]);
    }

    #[test]
    fn two_paths_over_802_11_do_not_share_a_medium() {
        let both = comparison("wifi 802.11b 2Mbit; wifi 802.11b 2Mbit", &["ecf"]);
        let run = both.runs().unwrap().pop().unwrap();
        let media: Vec<_> = (run.scenario.links.iter())
            .filter_map(|link| match &link.capacity {
                Capacity::Wifi(medium) => Some(medium.name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(media, ["path-1", "path-1", "path-2", "path-2"]);
    }

    #[test]
    fn a_refusal_names_the_path_and_what_is_accepted() {
        let message = |paths: &str| PathComparison::parse_paths(paths).unwrap_err().to_string();
        assert!(message("10Mbit 1ms; 3MB 20ms").starts_with("link: path-2: \"3MB\": has an unknown unit"));
        assert!(message("10Mbit 1ms;").starts_with("link: path-2: missing; accepted: a rate"));
        assert!(message("hsdpa PA3 10 1ms").starts_with("link: path-1: hsdpa.geometry: \"10\" has no unit"));
        let message = PathComparison::parse_scheduler("look-ahed").unwrap_err().to_string();
        assert!(message.contains("did you mean \"look-ahead\"?"), "{message}");
        let twice = comparison("10Mbit 1ms; 3Mbit 20ms", &["ecf", "ecf"]).runs().unwrap_err();
        assert!(twice.to_string().starts_with("paths: scheduler: a second"), "{twice}");
        let small = PathComparison { send_buffer: Bytes::new(1), ..comparison("10Mbit 1ms", &["ecf"]) };
        assert!(small.runs().unwrap_err().to_string().contains("aggregate.stream.send_buffer: \"1 B\""));
    }
}
