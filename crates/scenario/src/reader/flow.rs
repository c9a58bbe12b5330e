//! A `[[flow]]` to flows.

use suimon_algorithms::congestion::AckCounting;
use suimon_algorithms::registry::Role;
use suimon_units::{Duration, Instant};

use super::fields::{Field, Fields};
use crate::error::{Problem, ScenarioError, closest};
use crate::scheme::Scheme;
use suimon_model::{Flow, OnOff, Start, TcpFlow, Traffic, UdpFlow};
use suimon_model::{LossDetection, RecoveryAlgorithm, RtoMinimum, RttSample, StackProfile};

/// The flow, and how many alike there are.
pub(super) fn read(fields: &Fields<'_>) -> Result<(Flow, u64), ScenarioError> {
    let on_off = match fields.inner("on_off")? {
        Some(table) => Some(OnOff { on: table.field("on")?.time()?, off: table.field("off")?.time()? }),
        None => None,
    };
    let size = fields.optional("size").map(|field| field.bytes()).transpose()?;
    let traffic = match fields.inner("udp")? {
        Some(udp) => Traffic::Udp(UdpFlow {
            rate: udp.field("rate")?.rate()?,
            packet: udp.field("packet")?.bytes()?,
            size,
            on_off,
        }),
        None => {
            let scheme = scheme(fields)?;
            Traffic::Tcp(Box::new(TcpFlow {
                cc: scheme.cc,
                receiver: scheme.receiver,
                profile: profile(fields)?,
                window: fields.field("window")?.bytes()?,
                size,
                application_rate: fields
                    .optional("application_rate")
                    .map(|field| field.rate())
                    .transpose()?,
                on_off,
            }))
        }
    };
    let flow = Flow {
        name: fields.field("name")?.name()?,
        from: fields.field("from")?.name()?,
        to: fields.field("to")?.name()?,
        via: fields.optional("via").map(|field| field.names()).transpose()?,
        start: fields.field("start")?.start()?,
        stop: fields.optional("stop").map(|field| field.instant()).transpose()?,
        extra_delay: match fields.field("extra_delay")?.start()? {
            Start::At(at) => (since_zero(at), since_zero(at)),
            Start::Between(least, most) => (since_zero(least), since_zero(most)),
        },
        traffic,
    };
    Ok((flow, fields.field("count")?.count()?))
}

/// The same flow, `later`, under another name.
pub(super) fn later(flow: Flow, later: Duration, name: String) -> Flow {
    let start = match flow.start {
        Start::At(at) => Start::At(at + later),
        Start::Between(low, high) => Start::Between(low + later, high + later),
    };
    Flow { name, start, stop: flow.stop.map(|stop| stop + later), ..flow }
}

fn since_zero(at: Instant) -> Duration {
    at.saturating_since(Instant::ZERO)
}

fn scheme(fields: &Fields<'_>) -> Result<Scheme, ScenarioError> {
    let cc = fields.field("cc")?;
    let mut scheme = Scheme::read(&cc.algorithm_text()?).map_err(|problem| cc.error(problem))?;
    let field = fields.field("receiver")?;
    let receiver = field.algorithm(Role::Receiver)?;
    if !scheme.chooses_receiver() {
        scheme.receiver = receiver;
    } else if receiver.name() != "fixed" && receiver != scheme.receiver {
        return Err(field.error(Problem::Exclusive { other: format!("cc = \"{scheme}\"") }));
    }
    Ok(scheme)
}

fn profile(fields: &Fields<'_>) -> Result<StackProfile, ScenarioError> {
    let field = fields.field("profile")?;
    let name = field.text()?;
    let profile = StackProfile::named(name).ok_or_else(|| {
        field.error(Problem::UnknownName {
            what: "profile",
            name: name.chars().take(crate::text::MAX_LENGTH).collect(),
            suggestion: closest(name, StackProfile::NAMES.iter().copied()),
            accepted: StackProfile::NAMES.join(", "),
        })
    })?;
    match fields.inner("stack")? {
        Some(stack) => overridden(profile, &stack),
        None => Ok(profile),
    }
}

fn overridden(mut profile: StackProfile, stack: &Fields<'_>) -> Result<StackProfile, ScenarioError> {
    fn put<'a, T>(
        stack: &'a Fields<'a>,
        key: &str,
        slot: &mut T,
        read: impl Fn(&Field<'a>) -> Result<T, ScenarioError>,
    ) -> Result<(), ScenarioError> {
        if let Some(field) = stack.optional(key) {
            *slot = read(&field)?;
        }
        Ok(())
    }
    // The schema bounds every count far below what 32 bits hold.
    let small = |field: &Field<'_>| field.count().map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    put(stack, "mss", &mut profile.mss, Field::bytes)?;
    put(stack, "header", &mut profile.header, Field::bytes)?;
    put(stack, "initial_window", &mut profile.initial_window, small)?;
    put(stack, "counting", &mut profile.counting, counting)?;
    put(stack, "recovery", &mut profile.recovery, |field| {
        field.choice(&[
            ("rfc6675", RecoveryAlgorithm::Rfc6675),
            ("rate-halving", RecoveryAlgorithm::RateHalving { floor_is_half: false }),
            ("rate-halving-to-half", RecoveryAlgorithm::RateHalving { floor_is_half: true }),
            ("prr", RecoveryAlgorithm::Prr),
        ])
    })?;
    put(stack, "loss_detection", &mut profile.loss_detection, |field| {
        field.choice(&[("rfc6675", LossDetection::Rfc6675), ("fack", LossDetection::Fack)])
    })?;
    put(stack, "detects_lost_retransmissions", &mut profile.detects_lost_retransmissions, Field::flag)?;
    put(stack, "timestamps", &mut profile.timestamps, Field::flag)?;
    put(stack, "rtt_sample", &mut profile.rtt_sample, |field| {
        field.choice(&[("oldest", RttSample::Oldest), ("newest", RttSample::Newest)])
    })?;
    put(stack, "f_rto", &mut profile.f_rto, Field::flag)?;
    put(stack, "rto_initial", &mut profile.rto_initial, Field::time)?;
    put(stack, "rto_min", &mut profile.rto_min, Field::time)?;
    put(stack, "rto_minimum", &mut profile.rto_minimum, |field| {
        field.choice(&[("timeout", RtoMinimum::Timeout), ("variance", RtoMinimum::Variance)])
    })?;
    put(stack, "pacing", &mut profile.pacing, Field::flag)?;
    put(stack, "ecn", &mut profile.ecn, Field::flag)?;
    put(stack, "mark_floor", &mut profile.mark_floor, small)?;
    put(stack, "delayed_ack", &mut profile.delayed_ack, Field::flag)?;
    put(stack, "delayed_ack_timeout", &mut profile.delayed_ack_timeout, Field::time)?;
    put(stack, "quick_acks", &mut profile.quick_acks, small)?;
    put(stack, "write", &mut profile.write, Field::bytes)?;
    Ok(profile)
}

fn counting(field: &Field<'_>) -> Result<AckCounting, ScenarioError> {
    let word = field.text()?;
    if word == "per-ack" {
        return Ok(AckCounting::PerAck);
    }
    word.strip_prefix("bytes:")
        .and_then(|limit| limit.parse().ok())
        .filter(|limit| (1..=1_000).contains(limit))
        .map(|limit| AckCounting::Bytes { limit })
        .ok_or_else(|| {
            field.error(Problem::Value {
                text: word.chars().take(crate::text::MAX_LENGTH).collect(),
                reason: "is not accepted",
                accepted: "per-ack, or bytes:L with L from 1 to 1000".to_owned(),
            })
        })
}

#[cfg(test)]
mod tests {
    use suimon_units::{Bytes, Rate};

    use super::super::keys::STACK;
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
        assert_eq!(names, STACK.names().collect::<Vec<_>>());
        let others = r#"mss = "512B"
            header = "40B"
            initial_window = 3
            counting = "per-ack"
            recovery = "rate-halving-to-half"
            loss_detection = "fack"
            detects_lost_retransmissions = false
            timestamps = false
            rtt_sample = "oldest"
            f_rto = false
            rto_initial = "3s"
            rto_min = "1s"
            rto_minimum = "timeout"
            pacing = true
            ecn = true
            mark_floor = 1
            delayed_ack = false
            delayed_ack_timeout = "100ms"
            quick_acks = 0
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
