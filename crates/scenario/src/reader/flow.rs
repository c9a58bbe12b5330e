//! A `[[flow]]` to flows.

use suimon_algorithms::registry::AlgorithmSpec;
use suimon_model::{DEFAULT_RECEIVER, Flow, Gateway, OnOff, StackProfile, Start, TcpFlow, Traffic, UdpFlow};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::fields::Fields;
use super::keys::FLOW;
use super::shared::Shared;
use crate::error::{Problem, ScenarioError};
use crate::scheme::Scheme;

/// What the keys of a flow say, before it is known whether it is TCP or datagrams.
pub(crate) struct Draft {
    /// All but its traffic.
    pub(super) flow: Flow,
    /// How many alike there are.
    pub(super) count: u64,
    /// Each of several starts and stops so much later than the one before.
    pub(super) stagger: Duration,
    pub(super) size: Option<Bytes>,
    pub(super) on_off: Option<OnOff>,
    pub(super) scheme: Option<Scheme>,
    pub(super) receiver: Option<AlgorithmSpec>,
    pub(super) profile: StackProfile,
    pub(super) window: Bytes,
    pub(super) application_rate: Option<Rate>,
    pub(super) udp: Option<UdpFlow>,
    pub(super) gateway: Option<Gateway>,
}

impl Draft {
    fn new() -> Self {
        let flow = Flow {
            name: String::new(),
            from: String::new(),
            to: String::new(),
            via: None,
            start: Start::At(Instant::ZERO),
            stop: None,
            extra_delay: (Duration::ZERO, Duration::ZERO),
            traffic: Traffic::Udp(UdpFlow {
                rate: Rate::ZERO,
                packet: Bytes::ZERO,
                size: None,
                echo: false,
                on_off: None,
            }),
        };
        Self {
            flow,
            count: 1,
            stagger: Duration::ZERO,
            size: None,
            on_off: None,
            scheme: None,
            receiver: None,
            profile: StackProfile::linux_6(),
            window: Bytes::ZERO,
            application_rate: None,
            udp: None,
            gateway: None,
        }
    }

    /// The flow itself; `fields` are for messages.
    fn flow(self, fields: &Fields<'_>) -> Result<Flow, ScenarioError> {
        let (size, on_off, gateway) = (self.size, self.on_off, self.gateway);
        let traffic = match (self.udp, self.scheme) {
            (Some(udp), _) => Traffic::Udp(UdpFlow { size, on_off, ..udp }),
            (None, None) => unreachable!("congestion control has a default, which only datagrams exclude"),
            (None, Some(scheme)) => {
                let Scheme { cc, receiver } = combined(scheme, self.receiver, fields)?;
                let (profile, window, application_rate) = (self.profile, self.window, self.application_rate);
                Traffic::Tcp(Box::new(TcpFlow {
                    cc,
                    receiver,
                    profile,
                    window,
                    size,
                    application_rate,
                    on_off,
                    gateway,
                }))
            }
        };
        Ok(Flow { traffic, ..self.flow })
    }
}

/// Reads a flow, and with the same name those that are alike.
pub(super) fn read(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    most: u64,
    flows: &mut Vec<Flow>,
) -> Result<(), ScenarioError> {
    let mut draft = Draft::new();
    FLOW.enter(&mut draft, fields, shared)?;
    let (count, stagger) = (draft.count, draft.stagger);
    let flow = draft.flow(fields)?;
    if flows.len() as u64 + count > most {
        let problem = Problem::TooMany { what: "more flows".to_owned(), limit: most };
        return Err(fields.field("count")?.error(problem));
    }
    if count == 1 {
        flows.push(flow);
    } else {
        let nth = |nth| later(flow.clone(), stagger * (nth - 1), format!("{}-{nth}", flow.name));
        flows.extend((1..=count).map(nth));
    }
    Ok(())
}

/// The same flow, `later`, under another name.
pub(super) fn later(flow: Flow, later: Duration, name: String) -> Flow {
    let start = match flow.start {
        Start::At(at) => Start::At(at + later),
        Start::Between(low, high) => Start::Between(low + later, high + later),
    };
    Flow { name, start, stop: flow.stop.map(|stop| stop + later), ..flow }
}

/// The shortest and the longest of a time, or of two.
pub(super) fn range(times: Start) -> (Duration, Duration) {
    let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
    match times {
        Start::At(at) => (since_zero(at), since_zero(at)),
        Start::Between(least, most) => (since_zero(least), since_zero(most)),
    }
}

/// `scheme` under the receive window that the key of its own names.
fn combined(
    scheme: Scheme,
    receiver: Option<AlgorithmSpec>,
    fields: &Fields<'_>,
) -> Result<Scheme, ScenarioError> {
    match receiver {
        Some(receiver) if !scheme.chooses_receiver() => Ok(Scheme { receiver, ..scheme }),
        Some(receiver) if receiver.name() != DEFAULT_RECEIVER && receiver != scheme.receiver => {
            let problem = Problem::Exclusive { other: format!("cc = \"{scheme}\"") };
            Err(fields.field("receiver")?.error(problem))
        }
        _ => Ok(scheme),
    }
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::congestion::AckCounting;

    use super::super::keys::STACK;
    use super::super::schema::Section;
    use super::super::testing::{FLOW, LINK, message, one};
    use super::*;

    fn tcp(lines: &str) -> TcpFlow {
        let scenario = one(&[LINK, FLOW, lines]);
        match &scenario.flows[0].traffic {
            Traffic::Tcp(tcp) => TcpFlow::clone(tcp),
            Traffic::Udp(_) => panic!("a TCP flow"),
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_flow_is_endless_over_a_modern_stack_by_default() {
        let tcp = tcp("");
        assert_eq!((tcp.cc.label(), tcp.receiver.label()), ("reno", "fixed"));
        assert_eq!(tcp.profile, StackProfile::linux_6());
        assert_eq!((tcp.window, tcp.size, tcp.application_rate), (Bytes::new(6 << 20), None, None));
    }

    #[test]
    fn several_alike_are_numbered() {
        let scenario = one(&[LINK, FLOW, "count = 3"]);
        let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["main-1", "main-2", "main-3"]);
    }

    #[test]
    fn a_start_is_a_time_or_lies_between_two() {
        let start = |lines: &str| one(&[LINK, FLOW, lines]).flows[0].start;
        assert_eq!(start("start = \"5s\""), Start::At(at(5)));
        assert_eq!(start("start = [\"1s\", \"5s\"]"), Start::Between(at(1), at(5)));
        assert_eq!(one(&[LINK, FLOW, "stop = \"50s\""]).flows[0].stop, Some(at(50)));
        assert!(message(&[LINK, FLOW, "start = [\"1s\"]"]).contains("is not one time or two"));
        assert!(message(&[LINK, FLOW, "start = [\"5s\", \"1s\"]"]).contains("before the first"));
        assert!(message(&[LINK, FLOW, "start = 5"]).contains("no unit"));
    }

    #[test]
    fn an_extra_delay_is_a_time_or_lies_between_two() {
        let delay = |lines: &str| one(&[LINK, FLOW, lines]).flows[0].extra_delay;
        let ms = Duration::from_millis;
        assert_eq!(delay(""), (ms(0), ms(0)));
        assert_eq!(delay("extra_delay = \"5ms\""), (ms(5), ms(5)));
        assert_eq!(delay("extra_delay = [\"0ms\", \"50ms\"]"), (ms(0), ms(50)));
        assert!(message(&[LINK, FLOW, "extra_delay = [\"5ms\", \"1ms\"]"]).contains("two times in order"));
        assert!(message(&[LINK, FLOW, "extra_delay = 5"]).contains("no unit"));
    }

    #[test]
    fn an_algorithm_reads_as_text_or_as_a_table() {
        let line = FLOW.replace("cc = \"reno\"", "cc = { alpha = 3, name = \"vegas\" }");
        let scenario = one(&[LINK, &line]);
        let Traffic::Tcp(tcp) = &scenario.flows[0].traffic else { panic!("a TCP flow") };
        assert_eq!(tcp.cc.label(), "vegas:alpha=3");
        let text = message(&[LINK, &FLOW.replace("reno", "vegas:delta=3")]);
        assert!(text.contains("flow.main.cc: vegas has no parameter \"delta\""), "{text}");
        let text = message(&[LINK, &FLOW.replace("reno", "cubik")]);
        assert!(
            text.starts_with("test.toml:10: flow.main.cc: unknown congestion control \"cubik\""),
            "{text}"
        );
        assert!(text.ends_with("(did you mean \"cubic\"?)"), "{text}");
    }

    #[test]
    fn datagrams_exclude_what_is_tcp() {
        let udp =
            FLOW.replace("cc = \"reno\"", "udp = { rate = \"500kbit\", packet = \"512B\" }\nsize = \"1MB\"");
        let scenario = one(&[LINK, &udp]);
        let Traffic::Udp(flow) = &scenario.flows[0].traffic else { panic!("a UDP flow") };
        assert_eq!((flow.rate, flow.packet), (Rate::from_bps(500_000), Bytes::new(512)));
        assert_eq!(flow.size, Some(Bytes::new(1_000_000)));
        assert!(message(&[LINK, FLOW, "udp = { rate = \"1Mbit\" }"]).contains("udp: excludes \"cc\""));
        assert!(message(&[LINK, &udp, "window = \"1MB\""]).contains("udp: excludes \"window\""));
        let fastest = udp.replace("500kbit", "1000Gbit");
        assert_eq!(one(&[LINK, &fastest]).flows.len(), 1);
        assert!(message(&[LINK, &fastest.replace("1000G", "1000.1G")]).contains("is too fast"));
    }

    #[test]
    fn every_habit_of_a_stack_has_a_key_that_changes_it() {
        // The fields as the debug output of the profile lists them, so that none is forgotten.
        let fields = |profile: &StackProfile| -> Vec<String> {
            let text = format!("{profile:#?}");
            let top =
                |line: &&str| line.starts_with("    ") && !line.starts_with("     ") && line.contains(": ");
            text.lines().filter(top).map(|line| line.trim().split(':').next().unwrap().to_owned()).collect()
        };
        let mut names = fields(&StackProfile::linux_6());
        names.retain(|name| name != "name");
        let stack: &dyn Section = &STACK;
        assert_eq!(names, stack.names().collect::<Vec<_>>());
        let others = r#"mss = "512B"
            header = "40B"
            initial_window = 3
            counting = "per-ack"
            recovery = "rate-halving-to-half"
            loss_detection = "fack"
            detects_lost_retransmissions = false
            tail_loss_probe = false
            timestamps = false
            rtt_sample = "oldest"
            f_rto = false
            rto_initial = "3s"
            rto_min = "1s"
            rto_clock = "10ms"
            rto_minimum = "timeout"
            pacing = true
            ecn = true
            ecn_fallback = false
            mark_floor = 1
            after_silence = "rfc-5681"
            cwnd_validation = "flight"
            delayed_ack = false
            delayed_ack_timeout = "100ms"
            adapt_delayed_ack = false
            quick_acks = 0
            grow_window = false
            compress_sacks = false
            write = "16kB""#;
        assert_eq!(others.lines().count(), names.len());
        for line in others.lines().map(str::trim) {
            let profile = tcp(&format!("[flow.stack]\n{line}")).profile;
            assert_ne!(profile, StackProfile::linux_6(), "{line}");
        }
        assert_eq!(
            tcp("stack = { counting = \"bytes:2\" }").profile.counting,
            AckCounting::Bytes { limit: 2 }
        );
        assert!(message(&[LINK, FLOW, "stack = { counting = \"bytes:0\" }"]).contains("from 1 to 1000"));
        assert!(
            message(&[LINK, FLOW, "stack = { recovery = \"pr\" }"])
                .contains("accepted: rfc6675, rate-halving")
        );
    }

    #[test]
    fn a_profile_is_one_of_those_there_are() {
        assert_eq!(tcp("profile = \"ns-2\"").profile, StackProfile::ns_2());
        let text = message(&[LINK, FLOW, "profile = \"linux6\""]);
        assert!(
            text.contains("no profile is called \"linux6\" (did you mean \"linux-6\"?); accepted: linux-6, "),
            "{text}"
        );
    }
}
