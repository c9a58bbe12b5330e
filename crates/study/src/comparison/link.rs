//! Runs of senders over one link: each sender in runs of its own, or all in the same ones.

use suimon_algorithms::Value;
use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_report::{CHANGE_AXIS, UNCHANGED};
use suimon_scenario::{
    Flow, Gateway, Link, LinkSpec, Record, Run, Runs, Scenario, Scheme, StackProfile, Start, TcpFlow, Traffic,
};
use suimon_units::Duration;

use super::advice::{self, Setting};
use super::{Comparison, FlowCounts, RECORD_INTERVAL, RUN_LENGTH, call, duplicate, listed};
use crate::error::StudyError;
use crate::findings::Findings;

/// Most flows of one run.
const MAX_FLOWS: u64 = 1_000_000;

/// The queue discipline where none is said.
const DEFAULT_QUEUE: &str = "droptail";

/// What it compares, and over what.
pub(super) fn title(comparison: &Comparison) -> String {
    let over = comparison.link_title();
    match comparison.spec() {
        Ok(link) if comparison.advises(&link) => format!("{over}, and what to change"),
        _ => format!("{} over {over}", compared(comparison)),
    }
}

fn compared(comparison: &Comparison) -> String {
    let senders = listed(&comparison.senders());
    match comparison.queues.as_slice() {
        [queue] if queue.as_str() == "droptail" => senders,
        queues => format!("{} under {senders}", listed(queues)),
    }
}

/// The runs: one for each sender and seed, labelled `cc`; or one for each seed, where mixed.
pub(super) fn runs(
    comparison: &Comparison,
    registry: &Registry,
    link: &LinkSpec,
) -> Result<Vec<Run>, StudyError> {
    let senders = comparison.senders();
    let senders: Vec<Scheme> = senders.iter().map(|name| name.read(registry)).collect::<Result<_, _>>()?;
    let queues = queues(comparison, registry, link)?;
    if queues.is_empty() {
        return Err(StudyError::input("queues", "missing; accepted: at least one queue discipline"));
    }
    let counts = &comparison.flows.counts;
    let shared = if comparison.mixed { senders.len() as u64 } else { 1 };
    let max = counts.iter().copied().max().unwrap_or_default();
    if max.saturating_mul(shared).saturating_mul(counts.len() as u64) > MAX_FLOWS {
        return Err(StudyError::input("flows", format!("makes more flows; accepted: at most {MAX_FLOWS}")));
    }
    let mut runs = Runs::default();
    if comparison.advises(link) {
        let today = today(comparison, registry, link)?;
        let labels = |name: &str| [(CHANGE_AXIS.to_owned(), name.to_owned())];
        if is_only(&senders, &queues) {
            comparison.add_setting(&mut runs, &labels(UNCHANGED), &today)?;
        }
        for change in advice::changes(&today, registry)? {
            comparison.add_setting(&mut runs, &labels(&change.name), &change.setting)?;
        }
        if is_only(&senders, &queues) {
            return Ok(runs.finish());
        }
    }
    for (position, queue) in queues.iter().enumerate() {
        if queues[..position].contains(queue) {
            return Err(duplicate("queues", "queue discipline", queue.label()));
        }
        let mut labels = Vec::new();
        if queues.len() > 1 {
            labels.push(("queue".to_owned(), queue.label().to_owned()));
        }
        if comparison.mixed {
            comparison.add_gateways(
                &mut runs,
                &labels,
                registry,
                &Setup { link, queue, senders: &senders },
            )?;
            continue;
        }
        for (position, sender) in senders.iter().enumerate() {
            let name = sender.label();
            if senders[..position].contains(sender) {
                return Err(duplicate("senders", "algorithm", &name));
            }
            let mut labels = labels.clone();
            // What does not vary goes without saying, once the queue does.
            if senders.len() > 1 || (labels.is_empty() && comparison.gateways.is_empty()) {
                labels.push(("cc".to_owned(), name));
            }
            let setup = Setup { link, queue, senders: std::slice::from_ref(sender) };
            comparison.add_gateways(&mut runs, &labels, registry, &setup)?;
        }
    }
    Ok(runs.finish())
}

/// The queue disciplines to compare: those that were asked for, or else a measured line's own.
fn queues(
    comparison: &Comparison,
    registry: &Registry,
    link: &LinkSpec,
) -> Result<Vec<AlgorithmSpec>, StudyError> {
    let is_default = matches!(comparison.queues.as_slice(), [only] if only.as_str() == DEFAULT_QUEUE);
    if comparison.line.is_some() && is_default {
        return Ok(vec![link.link.queue.clone()]);
    }
    comparison.queues.iter().map(|name| name.read(registry)).collect()
}

/// Whether one line is asked about, and none compared with others.
fn is_only(senders: &[Scheme], queues: &[AlgorithmSpec]) -> bool {
    senders.len() == 1 && queues.len() == 1
}

/// The line as it is, whose changes are tried.
fn today(comparison: &Comparison, registry: &Registry, link: &LinkSpec) -> Result<Setting, StudyError> {
    let missing = |field| StudyError::input(field, "missing; accepted: at least one");
    let senders = comparison.senders();
    Ok(Setting {
        link: link.clone(),
        queue: queues(comparison, registry, link)?.first().ok_or_else(|| missing("queues"))?.clone(),
        sender: senders.first().ok_or_else(|| missing("senders"))?.read(registry)?,
    })
}

/// `findings` with what applications beside the load had, and what to change.
pub(super) fn judged(
    comparison: &Comparison,
    registry: &Registry,
    mut findings: Findings,
) -> Result<Findings, StudyError> {
    let link = comparison.spec()?;
    if comparison.has_call(&link) {
        let runs = comparison.runs(registry)?;
        // What is run in several worlds yields several results a run, next to each other.
        let worlds = findings.runs.len() / runs.len().max(1);
        for (run, results) in runs.iter().zip(findings.runs.chunks_mut(worlds.max(1))) {
            results.iter_mut().for_each(|result| call::gather(&run.scenario, result));
        }
    }
    if comparison.advises(&link) {
        let today = today(comparison, registry, &link)?;
        let changes = advice::changes(&today, registry)?;
        findings.advice = Some(advice::ranked(&changes, &findings.runs));
    }
    Ok(findings)
}

/// The line of a run, and who sends over it.
struct Setup<'a> {
    link: &'a LinkSpec,
    queue: &'a AlgorithmSpec,
    senders: &'a [Scheme],
}

/// The node at the far end of the line where it splits connections, and the way between it and the servers.
const GATEWAY: &str = "gateway";
const SERVERS: &str = "servers";
/// Its round-trip time where none is said.
const SERVER_RTT: Duration = Duration::from_millis(100);

impl Comparison {
    fn add_setting(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        setting: &Setting,
    ) -> Result<(), StudyError> {
        let senders = std::slice::from_ref(&setting.sender);
        self.add(runs, labels, &Setup { link: &setting.link, queue: &setting.queue, senders }, None)
    }

    /// One run without a gateway and one with each, where there are any; or one.
    fn add_gateways(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        registry: &Registry,
        setup: &Setup<'_>,
    ) -> Result<(), StudyError> {
        if self.gateways.is_empty() {
            return self.add(runs, labels, setup, None);
        }
        let labelled = |name: &str| {
            let own = [("gateway".to_owned(), name.to_owned())];
            labels.iter().cloned().chain(own).collect::<Vec<_>>()
        };
        self.add(runs, &labelled("none"), setup, None)?;
        for (position, name) in self.gateways.iter().enumerate() {
            let cc = name.read(registry).map_err(|error| match error {
                StudyError::Input { problem, .. } => StudyError::Input { input: "gateways".into(), problem },
                other => other,
            })?;
            if self.gateways[..position].iter().any(|other| other.as_str() == name.as_str()) {
                return Err(duplicate("gateways", "sender", &cc.label()));
            }
            self.add(runs, &labelled(&cc.label()), setup, Some(&cc))?;
        }
        Ok(())
    }

    fn add(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        Setup { link, queue, senders }: &Setup<'_>,
        gateway: Option<&Scheme>,
    ) -> Result<(), StudyError> {
        let duration = self.duration.as_deref().copied().or(self.flows.duration()).unwrap_or(RUN_LENGTH);
        let ecn = marks(queue);
        let mut flows = self.flows_of(senders, gateway, ecn, link.back.is_some());
        let has_call = self.has_call(link);
        if has_call && let Some(sender) = senders.first() {
            flows.extend(call::flows(link, duration, &self.tcp(sender, gateway, ecn)));
        }
        let scenario = Scenario {
            name: self.name().to_owned(),
            description: String::new(),
            seed: self.seed,
            duration,
            // Pages end before the load does, which may have no end.
            stop_when_complete: !has_call || self.size.is_some(),
            links: self.links(link, queue),
            flows,
            aggregates: Vec::new(),
            record: Record { interval: Some(RECORD_INTERVAL), warmup: *self.warmup, ..Record::default() },
        };
        self.add_seeds(runs, labels, &scenario)
    }

    /// The load: flows of `senders`, and as many back where `both_ways`.
    fn flows_of(
        &self,
        senders: &[Scheme],
        gateway: Option<&Scheme>,
        ecn: bool,
        both_ways: bool,
    ) -> Vec<Flow> {
        let mut flows = Vec::new();
        let lives = self.flow_counts().lives();
        let each = lives.len() as u64;
        for sender in senders {
            // The same sender may be given twice where all are mixed; its flows are numbered through.
            let alike = senders.iter().filter(|other| *other == sender).count() as u64 * each;
            let before = flows.iter().filter(|(other, _)| *other == sender).count() as u64;
            for (nth, (start, stop)) in (before + 1..).zip(&lives) {
                let name = if alike == 1 { sender.label() } else { format!("{sender}-{nth}") };
                let traffic = Traffic::Tcp(Box::new(self.tcp(sender, gateway, ecn)));
                let flow = call::flow(&name, call::FAR, call::NEAR, traffic);
                flows.push((sender, Flow { start: Start::At(*start), stop: *stop, ..flow }));
            }
        }
        let mut flows: Vec<Flow> = flows.into_iter().map(|(_, flow)| flow).collect();
        if both_ways {
            let back = |flow: &Flow| {
                let mut back = Flow {
                    name: format!("{}-up", flow.name),
                    from: flow.to.clone(),
                    to: flow.from.clone(),
                    ..flow.clone()
                };
                // The user's own sender serves the link; the gateway goes on to the server as the server does.
                if let Traffic::Tcp(tcp) = &mut back.traffic
                    && let Some(gateway) = &mut tcp.gateway
                {
                    gateway.cc = tcp.cc.clone();
                    gateway.shared = false;
                }
                back
            };
            let ups: Vec<_> = flows.iter().map(back).collect();
            flows.extend(ups);
        }
        flows
    }

    /// How many flows there are: as given, or as the preset says.
    fn flow_counts(&self) -> FlowCounts {
        match &self.preset {
            Some(preset) if *self.flows == *Self::default().flows => {
                FlowCounts { counts: vec![preset.flows], period: Duration::ZERO }
            }
            _ => (*self.flows).clone(),
        }
    }

    /// The link, and where there is a gateway at its far end that between the gateway and the servers.
    fn links(&self, link: &LinkSpec, queue: &AlgorithmSpec) -> Vec<Link> {
        let mut links: Vec<_> = link.links(queue).into();
        if !self.gateways.is_empty() {
            for link in &mut links {
                for end in [&mut link.from, &mut link.to] {
                    if end == call::FAR {
                        GATEWAY.clone_into(end);
                    }
                }
            }
            let rtt = self.server_rtt.as_deref().copied().unwrap_or(SERVER_RTT);
            let there = rtt / 2;
            let back = Link::other_direction(SERVERS);
            links.push(Link::delaying(SERVERS.to_owned(), call::FAR, GATEWAY, there));
            links.push(Link::delaying(back, GATEWAY, call::FAR, rtt - there));
        }
        links
    }

    fn gateway_of(&self, gateway: Option<&Scheme>) -> Option<Gateway> {
        let parse = |name| AlgorithmSpec::parse(Role::Receiver, name).expect("DRS is registered");
        gateway.map(|cc| Gateway {
            node: GATEWAY.to_owned(),
            cc: cc.cc.clone(),
            receiver: parse("drs:rtt=timestamps"),
            buffer: *self.window,
            shared: true,
        })
    }

    fn tcp(&self, sender: &Scheme, gateway: Option<&Scheme>, ecn: bool) -> TcpFlow {
        TcpFlow {
            cc: sender.cc.clone(),
            receiver: sender.receiver.clone(),
            profile: StackProfile { ecn: ecn || self.profile.ecn, ..(*self.profile).clone() },
            window: *self.window,
            size: self.size.as_deref().copied(),
            application_rate: None,
            on_off: None,
            gateway: self.gateway_of(gateway),
        }
    }
}

/// The discipline marks packets of flows that understand it.
fn marks(queue: &AlgorithmSpec) -> bool {
    queue.arguments().any(|(name, value)| name == "ecn" && value == Value::Flag(true))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use suimon_scenario::{Capacity, Loss};
    use suimon_units::Rate;

    use super::super::tests::{comparison, refusal};
    use super::*;

    /// Runs of `senders` over a link, with further fields.
    fn fields(senders: &[&str], further: &Value) -> Value {
        let mut fields = json!({ "link": "2Mbit 181ms 96kB loss=1%", "senders": senders });
        for (field, value) in further.as_object().into_iter().flatten() {
            fields[field] = value.clone();
        }
        fields
    }

    fn runs(senders: &[&str], further: &Value) -> Vec<Run> {
        comparison(fields(senders, further)).runs(&Registry::standard()).unwrap()
    }

    #[test]
    fn each_queue_is_a_run_and_marks_flows_that_then_understand_marks() {
        let runs = runs(&["reno"], &json!({ "queues": ["droptail", "red", "red:ecn=false"], "flows": "2" }));
        let names: Vec<_> = runs.iter().map(|run| run.labels.clone()).collect();
        assert_eq!(names[1], [("queue".to_owned(), "red".to_owned())]);
        let ecn = |run: &Run| match &run.scenario.flows[0].traffic {
            Traffic::Tcp(tcp) => tcp.profile.ecn,
            Traffic::Udp(_) => panic!("a TCP flow"),
        };
        assert_eq!(runs.iter().map(ecn).collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn each_sender_and_seed_is_a_run() {
        let runs = runs(&["reno"], &json!({ "seeds": 3, "flows": "2" }));
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
        let runs = runs(&["reno"], &json!({}));
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
    fn mixed_senders_share_one_run_even_when_alike() {
        let runs = runs(&["reno", "reno"], &json!({ "mixed": true }));
        assert_eq!((runs.len(), runs[0].labels.len()), (1, 0));
        let names: Vec<_> = runs[0].scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["reno-1", "reno-2"]);
    }

    #[test]
    fn without_a_sender_those_are_compared_that_are_worth_it() {
        let labels = |runs: &[Run]| runs.iter().map(|run| run.labels[0].1.clone()).collect::<Vec<_>>();
        assert_eq!(labels(&runs(&[], &json!({}))), ["reno", "cubic", "vegas", "drs", "fs-at"]);
        let queues = json!({ "queues": ["droptail", "red"] });
        assert_eq!(labels(&runs(&[], &queues)), ["droptail", "red"]);
        assert_eq!(
            title(&comparison(fields(&[], &queues))),
            "droptail, red under reno over 2Mbit 181ms 96kB loss=1%"
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (senders, further, field, problem) in [
            (&["reno", "reno"][..], json!({}), "senders", "a second algorithm"),
            (&["reno"], json!({ "queues": [] }), "queues", "at least one queue discipline"),
            (&["reno"], json!({ "queues": ["red", "red"] }), "queues", "a second queue discipline"),
            (&["reno"], json!({ "flows": "0" }), "flows", "at least one"),
            (&["reno"], json!({ "flows": u64::MAX.to_string() }), "flows", "at most"),
            (&["reno"], json!({ "seeds": u64::MAX }), "seeds", "at most"),
        ] {
            let (found, message) = refusal(fields(senders, &further));
            assert!(found == field && message.contains(problem), "{further}: {found}: {message}");
        }
    }
}
