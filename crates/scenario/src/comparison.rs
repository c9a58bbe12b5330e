//! Algorithms side by side over one link, without a scenario file.

use std::sync::Arc;

use suimon_algorithms::Value;
use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::{Problem, ScenarioError};
use crate::run::Runs;
use crate::scheme::{Scheme, algorithm};
use crate::shorthand::LinkSpec;
use crate::text;
use suimon_model::Run;
use suimon_model::StackProfile;
use suimon_model::{Capacity, Flow, Impairments, Link, Record, Scenario, Start, TcpFlow, Traffic};

/// Most flows of one run.
const MAX_FLOWS: u64 = 1_000_000;

/// Schemes over one link: each in runs of its own, or all in the same ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Short name, used in tables and file names.
    pub name: String,
    /// The link between `sender` and `receiver`.
    pub link: LinkSpec,
    /// What is compared.
    pub schemes: Vec<Scheme>,
    /// The queue disciplines in front of the link, each in runs of its own.
    pub queues: Vec<AlgorithmSpec>,
    /// How many flows each scheme has in a run.
    pub flows: FlowCounts,
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
    /// The options of both stacks.
    pub profile: StackProfile,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, at least one.
    pub seeds: u64,
    /// How often flows and the queue are sampled; `None` for never.
    pub record_interval: Option<Duration>,
}

/// How many flows there are, period by period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCounts {
    /// In each period, at least one; what holds in the last holds to the end.
    pub counts: Vec<u64>,
    /// Length of a period; no matter where there is only one.
    pub period: Duration,
}

impl FlowCounts {
    /// Always `count`.
    #[must_use]
    pub fn always(count: u64) -> Self {
        Self { counts: vec![count], period: Duration::ZERO }
    }

    /// Reads `N`, or `N,N,..@TIME` for counts that change every `TIME`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let refuse = |word: &str, reason: &str| {
            let accepted = "a count, or counts and how long each holds, such as 30,50,30@100s".to_owned();
            let word = word.chars().take(text::MAX_LENGTH).collect();
            ScenarioError::new("flows", Problem::Word { word, reason: reason.to_owned(), accepted })
        };
        let (list, period) = match text.split_once('@') {
            Some((list, period)) => {
                let period = period.trim().parse().map_err(|_| refuse(period, "is no time"))?;
                (list, Some(period))
            }
            None => (text, None),
        };
        let count = |word: &str| word.trim().parse().map_err(|_| refuse(word, "is no count"));
        let counts = list.split(',').map(count).collect::<Result<Vec<u64>, _>>()?;
        match period {
            None if counts.len() > 1 => Err(refuse(text, "does not say how long each count holds")),
            Some(Duration::ZERO) => Err(refuse(text, "has periods of no length")),
            period => Ok(Self { counts, period: period.unwrap_or_default() }),
        }
    }

    /// All periods together, where there are several.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        (self.counts.len() > 1).then(|| self.period * self.counts.len() as u64)
    }

    /// When each flow starts and stops: those that came last go first.
    fn lives(&self) -> Vec<(Instant, Option<Instant>)> {
        let mut lives: Vec<(Instant, Option<Instant>)> = Vec::new();
        let mut alive: Vec<usize> = Vec::new();
        for (nth, count) in self.counts.iter().enumerate() {
            let now = Instant::ZERO + self.period * nth as u64;
            while alive.len() as u64 > *count {
                if let Some(last) = alive.pop() {
                    lives[last].1 = Some(now);
                }
            }
            while (alive.len() as u64) < *count {
                alive.push(lives.len());
                lives.push((now, None));
            }
        }
        lives
    }
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
            queues: vec![drop_tail()],
            flows: FlowCounts::always(1),
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
        if self.queues.is_empty() {
            return refuse(
                "queue",
                Problem::Missing { accepted: "at least one queue discipline".to_owned() },
            );
        }
        let most = self.flows.counts.iter().copied().max().unwrap_or_default();
        let least = self.flows.counts.iter().copied().min().unwrap_or_default();
        for (key, count) in [("flows", least), ("seeds", self.seeds)] {
            if count == 0 {
                let accepted = "at least one".to_owned();
                return refuse(key, Problem::Value { text: "0".to_owned(), reason: "is nothing", accepted });
            }
        }
        let shared = if self.mixed { self.schemes.len() as u64 } else { 1 };
        let all = most.saturating_mul(shared).saturating_mul(self.flows.counts.len() as u64);
        if all > MAX_FLOWS {
            return refuse("flows", Problem::TooMany { what: "more flows".to_owned(), limit: MAX_FLOWS });
        }
        let mut runs = Runs::default();
        for (position, queue) in self.queues.iter().enumerate() {
            if self.queues[..position].contains(queue) {
                let name = queue.label().to_owned();
                return refuse("queue", Problem::Duplicate { what: "queue discipline", name });
            }
            let mut labels = Vec::new();
            if self.queues.len() > 1 {
                labels.push(("queue".to_owned(), queue.label().to_owned()));
            }
            if self.mixed {
                self.add(&mut runs, &labels, queue, &self.schemes)?;
                continue;
            }
            for (position, scheme) in self.schemes.iter().enumerate() {
                let name = scheme.label();
                if self.schemes[..position].contains(scheme) {
                    return refuse("cc", Problem::Duplicate { what: "algorithm", name });
                }
                let mut labels = labels.clone();
                // What does not vary goes without saying, once the queue does.
                if self.schemes.len() > 1 || labels.is_empty() {
                    labels.push(("cc".to_owned(), name));
                }
                self.add(&mut runs, &labels, queue, std::slice::from_ref(scheme))?;
            }
        }
        Ok(runs.finish())
    }

    fn add(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        queue: &AlgorithmSpec,
        schemes: &[Scheme],
    ) -> Result<(), ScenarioError> {
        let scenario = Scenario {
            name: self.name.clone(),
            description: String::new(),
            seed: self.seed,
            duration: self.duration,
            stop_when_complete: true,
            links: self.link.links(queue).into(),
            flows: self.flows_of(schemes, marks(queue)),
            aggregates: Vec::new(),
            record: Record { interval: self.record_interval, warmup: self.warmup, ..Record::default() },
        };
        scenario.check()?;
        runs.add(labels, &scenario, self.seeds).map_err(|problem| ScenarioError::new(&self.name, problem))
    }

    fn flows_of(&self, schemes: &[Scheme], ecn: bool) -> Vec<Flow> {
        let mut flows = Vec::new();
        let lives = self.flows.lives();
        let each = lives.len() as u64;
        for scheme in schemes {
            // The same scheme may be given twice where all are mixed; its flows are numbered through.
            let alike = schemes.iter().filter(|other| *other == scheme).count() as u64 * each;
            let before = flows.iter().filter(|(other, _)| *other == scheme).count() as u64;
            for (nth, (start, stop)) in (before + 1..).zip(&lives) {
                let name = if alike == 1 { scheme.label() } else { format!("{scheme}-{nth}") };
                let flow = self.flow(scheme, name, ecn);
                flows.push((scheme, Flow { start: Start::At(*start), stop: *stop, ..flow }));
            }
        }
        flows.into_iter().map(|(_, flow)| flow).collect()
    }

    fn flow(&self, scheme: &Scheme, name: String, ecn: bool) -> Flow {
        let tcp = TcpFlow {
            cc: scheme.cc.clone(),
            receiver: scheme.receiver.clone(),
            profile: StackProfile { ecn: ecn || self.profile.ecn, ..self.profile.clone() },
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

impl LinkSpec {
    /// Both directions, `queue` in front of the first, which is called `bottleneck` and leads from `sender` to
    /// `receiver`. The way back is as fast as it comes, but for a medium, where answers contend too.
    #[must_use]
    pub fn links(&self, queue: &AlgorithmSpec) -> [Link; 2] {
        let there = self.rtt / 2;
        let bottleneck = Link { delay: there, queue: queue.clone(), ..self.link.clone() };
        let back = self.rtt - there + bottleneck.capacity.uplink_delay();
        let reverse = Link {
            capacity: match &bottleneck.capacity {
                // Answers contend for the medium too.
                Capacity::Wifi(medium) => Capacity::Wifi(Arc::clone(medium)),
                _ => Capacity::Rate(Rate::MAX),
            },
            impairments: Impairments {
                outages: bottleneck.impairments.outages.clone(),
                ..Impairments::default()
            },
            ..Link::delaying(Link::other_direction(&bottleneck.name), &bottleneck.to, &bottleneck.from, back)
        };
        [bottleneck, reverse]
    }
}

pub(crate) fn drop_tail() -> AlgorithmSpec {
    algorithm(&Registry::standard(), Role::Queue, "droptail")
        .expect("drop tail is registered, as the scenario tests show")
}

/// The discipline marks packets of flows that understand it.
fn marks(queue: &AlgorithmSpec) -> bool {
    queue.arguments().any(|(name, value)| name == "ecn" && value == Value::Flag(true))
}

#[cfg(test)]
mod tests {
    use suimon_model::Loss;

    use super::*;

    #[test]
    fn counts_that_change_are_flows_that_come_and_go() {
        let counts = FlowCounts::parse("2, 4,1 ,2@10s").unwrap();
        assert_eq!(counts.duration(), Some(Duration::from_secs(40)));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let lives = counts.lives();
        assert_eq!(
            lives,
            [
                (at(0), None),
                (at(0), Some(at(20))),
                (at(10), Some(at(20))),
                (at(10), Some(at(20))),
                (at(30), None)
            ]
        );
        assert_eq!(FlowCounts::parse("3").unwrap(), FlowCounts::always(3));
        let message = |text| FlowCounts::parse(text).unwrap_err().to_string();
        assert!(message("3,4").contains("does not say how long"), "{}", message("3,4"));
        assert!(message("3,x@1s").contains("\"x\": is no count; accepted: a count, or counts"));
        assert!(message("3@1").contains("is no time"));
        assert!(message("3,4@0s").contains("no length"));
    }

    #[test]
    fn each_queue_is_a_run_and_marks_flows_that_then_understand_marks() {
        let queues = ["droptail", "red", "red:ecn=false"];
        let queues = queues.map(|name| algorithm(&Registry::standard(), Role::Queue, name).unwrap()).to_vec();
        let comparison = Comparison { queues, flows: FlowCounts::always(2), ..comparison(&["reno"]) };
        let runs = comparison.runs().unwrap();
        let names: Vec<_> = runs.iter().map(|run| run.labels.clone()).collect();
        assert_eq!(names[1], [("queue".to_owned(), "red".to_owned())]);
        let ecn = |run: &Run| match &run.scenario.flows[0].traffic {
            Traffic::Tcp(tcp) => tcp.profile.ecn,
            Traffic::Udp(_) => panic!("a TCP flow"),
        };
        assert_eq!(runs.iter().map(ecn).collect::<Vec<_>>(), [false, true, false]);
        let two = Comparison { schemes: vec![], ..comparison };
        assert!(two.runs().unwrap_err().to_string().contains("cc"));
    }

    fn comparison(schemes: &[&str]) -> Comparison {
        let link = LinkSpec::parse("2Mbit 181ms 96kB loss=1%").unwrap();
        Comparison::new(link, schemes.iter().map(|text| Scheme::parse(text).unwrap()).collect())
    }

    #[test]
    fn each_scheme_and_seed_is_a_run() {
        let runs =
            Comparison { seeds: 3, flows: FlowCounts::always(2), ..comparison(&["reno"]) }.runs().unwrap();
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
            (back.capacity.clone(), back.impairments.loss, back.reported),
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
        assert!(
            message(Comparison { flows: FlowCounts::always(0), ..comparison(&["reno"]) }).contains("flows")
        );
        assert!(
            message(Comparison { flows: FlowCounts::always(u64::MAX), ..comparison(&["reno"]) })
                .contains("at most")
        );
        assert!(message(Comparison { seeds: u64::MAX, ..comparison(&["reno"]) }).contains("at most"));
        assert!(
            message(Comparison { duration: Duration::ZERO, ..comparison(&["reno"]) }).contains("duration")
        );
        assert!(message(Comparison { window: Bytes::new(1), ..comparison(&["reno"]) }).contains("window"));
    }
}
