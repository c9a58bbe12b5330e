//! Keys of flows, and of streams over several.

use suimon_algorithms::registry::{AlgorithmSpec, Role};

use suimon_algorithms::congestion::AckCounting;
use suimon_model::{
    AfterSilence, Aggregate, CwndValidation, Gateway, LossDetection, OnOff, RecoveryAlgorithm, RtoMinimum,
    RttSample, StackProfile, UdpFlow,
};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::super::flow::{Draft, range};
use super::super::schema::{Key, Keys, Kind, Preset};
use super::{MANY, small};
use crate::error::Problem;

const fn size<T>(put: fn(&mut T, Bytes)) -> Key<T> {
    let preset = Preset::Unset { means: "endless", example: "\"10MB\"" };
    Key::new("size", Kind::Bytes(put), preset, "How much is sent in all.")
}

const fn application_rate<T>(put: fn(&mut T, Rate), means: &'static str) -> Key<T> {
    let preset = Preset::Unset { means, example: "\"500kbit\"" };
    Key::new("application_rate", Kind::Rate(put), preset, "The application produces data at this rate only.")
}

/// A `[[flow]]`.
pub(crate) const FLOW: Keys<Draft> = Keys(&[
    Key::new(
        "name",
        Kind::Name(|draft, name| draft.flow.name = name),
        Preset::Required("\"main\""),
        "Unique.",
    ),
    Key::new(
        "from",
        Kind::Name(|draft, node| draft.flow.from = node),
        Preset::Required("\"sender\""),
        "The node that sends the data.",
    ),
    Key::new(
        "to",
        Kind::Name(|draft, node| draft.flow.to = node),
        Preset::Required("\"receiver\""),
        "The node that receives it.",
    ),
    Key::new(
        "count",
        Kind::Count { least: 1, most: MANY, put: |draft, count| draft.count = count },
        Preset::Count(1),
        "So many flows alike, called NAME-1, NAME-2, and so on.",
    ),
    Key::new(
        "start",
        Kind::Start(|draft, start| draft.flow.start = start),
        Preset::Text("0s"),
        "When it starts; two times draw it uniformly between them, for each flow alone, but once for the flows of an aggregate.",
    ),
    Key::new(
        "stop",
        Kind::Time(|draft, time| draft.flow.stop = Some(Instant::ZERO + time)),
        Preset::Unset { means: "at the end of the run", example: "\"50s\"" },
        "When it stops sending, whatever remains.",
    ),
    Key::new(
        "via",
        Kind::Names(|draft, links| draft.flow.via = Some(links)),
        Preset::Unset { means: "the fewest links", example: "[\"bottleneck\"]" },
        "The links on its way, in order; the way back is over their other directions.",
    ),
    Key::new(
        "extra_delay",
        Kind::Start(|draft, delay| draft.flow.extra_delay = range(delay)),
        Preset::Text("0s"),
        "Propagation delay beside that of the links, each way; two times draw it uniformly between them, for each flow alone.",
    ),
    Key::new(
        "stagger",
        Kind::Time(|draft, time| draft.stagger = time),
        Preset::Text("0s"),
        "Of several alike, each starts and stops so much later than the one before.",
    ),
    size(|draft: &mut Draft, size| draft.size = Some(size)),
    Key::new(
        "on_off",
        Kind::Section(&ON_OFF, |draft, table, shared| {
            let mut on_off = OnOff { on: Duration::ZERO, off: Duration::ZERO, reconnect: false };
            ON_OFF.enter(&mut on_off, table, shared)?;
            draft.on_off = Some(on_off);
            Ok(())
        }),
        Preset::Unset { means: "always on", example: "{ on = \"20s\", off = \"20s\" }" },
        "Periods of sending and silence, exponentially distributed.",
    ),
    Key::new(
        "cc",
        Kind::Scheme(|draft, scheme| draft.scheme = Some(scheme)),
        Preset::Text(crate::scheme::DEFAULT_CC),
        "Congestion control; a receive window other than fixed may follow after \"/\", or stand alone for reno with it.",
    ),
    Key::new(
        "receiver",
        Kind::Algorithm(Role::Receiver, |draft, receiver| draft.receiver = Some(receiver)),
        Preset::Text("fixed"),
        "Window advertisement at the receiver.",
    ),
    Key::new(
        "profile",
        Kind::Profile(|draft, profile| draft.profile = profile),
        Preset::Text("linux-6"),
        "The TCP stack as which both ends behave.",
    ),
    Key::new(
        "window",
        Kind::Bytes(|draft, size| draft.window = size),
        Preset::Text(crate::text::DEFAULT_WINDOW),
        "Receive buffer: what the receiver can advertise at most.",
    ),
    application_rate(
        |draft: &mut Draft, rate| draft.application_rate = Some(rate),
        "as fast as TCP takes it",
    ),
    Key::new(
        "stack",
        Kind::Section(&STACK, |draft, table, shared| STACK.enter(&mut draft.profile, table, shared)),
        Preset::Unset { means: "as the profile has it", example: "{ delayed_ack = false }" },
        "Options that differ from the profile.",
    ),
    Key::new(
        "gateway",
        Kind::Section(&GATEWAY, |draft: &mut Draft, table, shared| {
            let parse =
                |role, text| AlgorithmSpec::parse(role, text).expect("the default reads, as a test shows");
            let mut gateway = Gateway {
                node: String::new(),
                cc: parse(Role::Congestion, DEFAULT_GATEWAY_CC),
                receiver: parse(Role::Receiver, DEFAULT_GATEWAY_RECEIVER),
                buffer: Bytes::ZERO,
                shared: true,
            };
            GATEWAY.enter(&mut gateway, table, shared)?;
            draft.gateway = Some(gateway);
            Ok(())
        }),
        Preset::Unset {
            means: "one connection from end to end",
            example: "{ node = \"gateway\", cc = \"fs-at\" }",
        },
        "A node on the way that splits the connection, so that each half has a sender of its own.",
    ),
    Key::new(
        "udp",
        Kind::Section(&UDP, |draft: &mut Draft, table, shared| {
            let mut udp =
                UdpFlow { rate: Rate::ZERO, packet: Bytes::ZERO, size: None, echo: false, on_off: None };
            UDP.enter(&mut udp, table, shared)?;
            draft.udp = Some(udp);
            Ok(())
        }),
        Preset::Unset { means: "TCP", example: "{ rate = \"500kbit\", packet = \"512B\" }" },
        "Datagrams at a constant rate instead of TCP.",
    )
    .excluding(&["cc", "receiver", "profile", "window", "application_rate", "stack", "gateway"]),
]);

/// An `[[aggregate]]`.
pub(crate) const AGGREGATE: Keys<Aggregate> = Keys(&[
    Key::new(
        "name",
        Kind::Name(|aggregate, name| aggregate.name = name),
        Preset::Required("\"bulk\""),
        "Unique.",
    ),
    Key::new(
        "flows",
        Kind::Names(|aggregate, flows| aggregate.flows = flows),
        Preset::Required("[\"main\"]"),
        "The TCP flows that carry it, one for each path, all with the same two ends.",
    ),
    Key::new(
        "scheduler",
        Kind::Algorithm(Role::Path, |aggregate, scheduler| aggregate.scheduler = scheduler),
        Preset::Text(crate::text::DEFAULT_SCHEDULER),
        "Which flow carries what.",
    ),
    size(|aggregate: &mut Aggregate, size| aggregate.size = Some(size)),
    application_rate(
        |aggregate: &mut Aggregate, rate| aggregate.application_rate = Some(rate),
        "as fast as the flows take it",
    ),
    Key::new(
        "send_buffer",
        Kind::Bytes(|aggregate, size| aggregate.send_buffer = size),
        Preset::Text(crate::text::DEFAULT_STREAM_BUFFER),
        "The most data that each flow may hold, unsent or unacknowledged.",
    ),
    Key::new(
        "reorder_buffer",
        Kind::Bytes(|aggregate, size| aggregate.reorder_buffer = size),
        Preset::Text(crate::text::DEFAULT_STREAM_BUFFER),
        "The most data that may wait at the receiver for data of other flows.",
    ),
    Key::new(
        "copy_stalled",
        Kind::Flag(|aggregate, copy| aggregate.copy_stalled = copy),
        Preset::Flag(true),
        "Give data of a flow that makes no progress for a retransmission timeout to the others too.",
    ),
    Key::new(
        "reconnect",
        Kind::TimeOrOff(|aggregate, patience| aggregate.reconnect = patience),
        Preset::Text(crate::text::DEFAULT_PATIENCE),
        "Give a flow up and connect it again after this time of silence (and two retransmission timeouts), or without a connection within it.",
    ),
]);

/// The table `on_off`.
pub(crate) const ON_OFF: Keys<OnOff> = Keys(&[
    Key::new(
        "on",
        Kind::Time(|on_off, time| on_off.on = time),
        Preset::Required("\"20s\""),
        "Mean length of a sending period.",
    ),
    Key::new(
        "off",
        Kind::Time(|on_off, time| on_off.off = time),
        Preset::Required("\"20s\""),
        "Mean length of a silent period.",
    ),
    Key::new(
        "reconnect",
        Kind::Flag(|on_off, reconnect| on_off.reconnect = reconnect),
        Preset::Flag(false),
        "Whether TCP opens a new connection for each sending period.",
    ),
]);

/// The sender of a gateway toward the receiver, and its window toward the sender.
const DEFAULT_GATEWAY_CC: &str = "fs-at";
const DEFAULT_GATEWAY_RECEIVER: &str = "drs:rtt=timestamps";

/// The table `gateway`.
pub(crate) const GATEWAY: Keys<Gateway> = Keys(&[
    Key::new(
        "node",
        Kind::Name(|gateway, node| gateway.node = node),
        Preset::Required("\"gateway\""),
        "The node.",
    ),
    Key::new(
        "cc",
        Kind::Algorithm(Role::Congestion, |gateway, cc| gateway.cc = cc),
        Preset::Text(DEFAULT_GATEWAY_CC),
        "Congestion control from there to the receiver; that of the flow is the sender's.",
    ),
    Key::new(
        "receiver",
        Kind::Algorithm(Role::Receiver, |gateway, receiver| gateway.receiver = receiver),
        Preset::Text(DEFAULT_GATEWAY_RECEIVER),
        "Window advertisement toward the sender.",
    ),
    Key::new(
        "buffer",
        Kind::Bytes(|gateway, size| gateway.buffer = size),
        Preset::Text(crate::text::DEFAULT_WINDOW),
        "Most that it advertises to the sender, and so holds of what it has not sent.",
    ),
    Key::new(
        "shared",
        Kind::Flag(|gateway, shared| gateway.shared = shared),
        Preset::Flag(true),
        "Its connections to one receiver share one target of FS-AT, in equal parts.",
    ),
]);

/// The table `udp`.
pub(crate) const UDP: Keys<UdpFlow> = Keys(&[
    Key::new(
        "rate",
        Kind::Rate(|udp, rate| udp.rate = rate),
        Preset::Required("\"500kbit\""),
        "Sending rate, headers included.",
    ),
    Key::new(
        "packet",
        Kind::Bytes(|udp, size| udp.packet = size),
        Preset::Text("1500B"),
        "Size of a datagram, headers included.",
    ),
    Key::new(
        "echo",
        Kind::Flag(|udp, echo| udp.echo = echo),
        Preset::Flag(false),
        "The receiver sends each datagram back, as it answers a ping.",
    ),
]);

const fn habit(
    name: &'static str,
    kind: Kind<StackProfile>,
    example: &'static str,
    help: &'static str,
) -> Key<StackProfile> {
    Key::new(name, kind, Preset::Unset { means: "as the profile has it", example }, help)
}

/// A `[flow.stack]`: the fields of [`crate::StackProfile`].
pub(crate) const STACK: Keys<StackProfile> = Keys(&[
    habit(
        "mss",
        Kind::Bytes(|profile, value| profile.mss = value),
        "\"1448B\"",
        "Payload of a full segment.",
    ),
    habit(
        "header",
        Kind::Bytes(|profile, value| profile.header = value),
        "\"52B\"",
        "IP and TCP headers with options; also the size of a pure ACK.",
    ),
    habit(
        "initial_window",
        Kind::Count { least: 1, most: 1_000, put: |profile, count| profile.initial_window = small(count) },
        "10",
        "Initial window in segments.",
    ),
    habit(
        "counting",
        Kind::Text(|profile, text| counting(text).map(|counting| profile.counting = counting)),
        "\"delivered\"",
        "How ACKs grow the window: \"per-ack\"; \"bytes:L\" for the acknowledged bytes, at most L segments an ACK in slow start; or \"delivered\" for the bytes confirmed for the first time.",
    ),
    habit(
        "recovery",
        Kind::Word(&[
            ("rfc6675", |profile| profile.recovery = RecoveryAlgorithm::Rfc6675),
            ("rate-halving", |profile| {
                profile.recovery = RecoveryAlgorithm::RateHalving { floor_is_half: false }
            }),
            ("rate-halving-to-half", |profile| {
                profile.recovery = RecoveryAlgorithm::RateHalving { floor_is_half: true }
            }),
            ("prr", |profile| profile.recovery = RecoveryAlgorithm::Prr),
            ("prr-safe-ack", |profile| profile.recovery = RecoveryAlgorithm::PrrSafeAck),
        ]),
        "\"prr-safe-ack\"",
        "How cwnd moves during fast recovery.",
    ),
    habit(
        "loss_detection",
        Kind::Word(&[
            ("rfc6675", |profile| profile.loss_detection = LossDetection::Rfc6675),
            ("fack", |profile| profile.loss_detection = LossDetection::Fack),
            ("rack", |profile| profile.loss_detection = LossDetection::Rack),
            ("duplicate-acks", |profile| profile.loss_detection = LossDetection::DuplicateAcks),
        ]),
        "\"rack\"",
        "When a segment counts as lost.",
    ),
    habit(
        "detects_lost_retransmissions",
        Kind::Flag(|profile, value| profile.detects_lost_retransmissions = value),
        "true",
        "Whether lost retransmissions are noticed without a timeout.",
    ),
    habit(
        "tail_loss_probe",
        Kind::Flag(|profile, value| profile.tail_loss_probe = value),
        "true",
        "Send a segment after two silent round-trip times, so that a loss at the end is noticed (RFC 8985).",
    ),
    habit(
        "timestamps",
        Kind::Flag(|profile, value| profile.timestamps = value),
        "true",
        "Timestamps (RFC 7323), which also tell unnecessary retransmissions.",
    ),
    habit(
        "rtt_sample",
        Kind::Word(&[
            ("oldest", |profile| profile.rtt_sample = RttSample::Oldest),
            ("newest", |profile| profile.rtt_sample = RttSample::Newest),
            ("delivered", |profile| profile.rtt_sample = RttSample::Delivered),
        ]),
        "\"delivered\"",
        "Which segment's round-trip time counts of an ACK that covers several.",
    ),
    habit(
        "f_rto",
        Kind::Flag(|profile, value| profile.f_rto = value),
        "true",
        "Forward RTO-Recovery (RFC 5682).",
    ),
    habit(
        "rto_initial",
        Kind::Time(|profile, value| profile.rto_initial = value),
        "\"1s\"",
        "Initial retransmission timeout.",
    ),
    habit(
        "rto_min",
        Kind::Time(|profile, value| profile.rto_min = value),
        "\"200ms\"",
        "Minimum retransmission timeout.",
    ),
    habit(
        "rto_clock",
        Kind::Time(|profile, value| profile.rto_clock = value),
        "\"10ms\"",
        "The timeout rests on one timed segment at a time, by a clock of this step: ns-2 has 10 ms, BSD had 500 ms; 0s: on every ACK.",
    ),
    habit(
        "rto_minimum",
        Kind::Word(&[
            ("timeout", |profile| profile.rto_minimum = RtoMinimum::Timeout),
            ("variance", |profile| profile.rto_minimum = RtoMinimum::Variance),
            ("largest-variance", |profile| profile.rto_minimum = RtoMinimum::LargestVariance),
        ]),
        "\"variance\"",
        "Whether rto_min bounds the whole timeout or its variance term.",
    ),
    habit(
        "pacing",
        Kind::Flag(|profile, value| profile.pacing = value),
        "false",
        "Spread segments over the round trip.",
    ),
    habit(
        "ecn",
        Kind::Flag(|profile, value| profile.ecn = value),
        "false",
        "Negotiate ECN (RFC 3168); dctcp and prague use it in any case.",
    ),
    habit(
        "ecn_fallback",
        Kind::Flag(|profile, value| profile.ecn_fallback = value),
        "true",
        "A SYN that is sent again no longer offers ECN (RFC 3168 §6.1.1.1), as in Linux.",
    ),
    habit(
        "mark_floor",
        Kind::Count { least: 1, most: 2, put: |profile, count| profile.mark_floor = small(count) },
        "2",
        "Least window after a mark, in segments: 2 as after a loss, or 1 as in RFC 3168.",
    ),
    habit(
        "after_silence",
        Kind::Word(&[
            ("rfc-5681", |profile| profile.after_silence = AfterSilence::Rfc5681),
            ("rfc-2861", |profile| profile.after_silence = AfterSilence::Rfc2861),
        ]),
        "\"rfc-2861\"",
        "Window after a silence: the initial one, or half for each timeout, with a higher threshold, as in Linux.",
    ),
    habit(
        "cwnd_validation",
        Kind::Word(&[
            ("flight", |profile| profile.cwnd_validation = CwndValidation::Flight),
            ("window", |profile| profile.cwnd_validation = CwndValidation::Window),
        ]),
        "\"window\"",
        "The window grows where it is full and a loss halves the flight, or it grows where it was full within a window of data and a loss halves it, as in Linux.",
    ),
    habit(
        "delayed_ack",
        Kind::Flag(|profile, value| profile.delayed_ack = value),
        "true",
        "Acknowledge every second segment rather than each.",
    ),
    habit(
        "delayed_ack_timeout",
        Kind::Time(|profile, value| profile.delayed_ack_timeout = value),
        "\"40ms\"",
        "How long an ACK may be held back.",
    ),
    habit(
        "adapt_delayed_ack",
        Kind::Flag(|profile, value| profile.adapt_delayed_ack = value),
        "true",
        "This time follows the gaps between segments, and doubles where no second segment came in time, up to the round-trip time and 200 ms, as in Linux.",
    ),
    habit(
        "quick_acks",
        Kind::Count { least: 0, most: MANY, put: |profile, count| profile.quick_acks = small(count) },
        "16",
        "So many first segments are acknowledged at once.",
    ),
    habit(
        "grow_window",
        Kind::Flag(|profile, value| profile.grow_window = value),
        "true",
        "The advertised window grows with the data that comes, and each segment is acknowledged at once while it grows, as Linux does.",
    ),
    habit(
        "compress_sacks",
        Kind::Flag(|profile, value| profile.compress_sacks = value),
        "true",
        "Hold back ACKs that only add to a SACK block, for a third of the round-trip time and a millisecond at most, as Linux does since 4.18.",
    ),
    habit(
        "write",
        Kind::Bytes(|profile, value| profile.write = value),
        "\"16kB\"",
        "The size of the application's writes; the segment that ends it (PSH) is acknowledged at once, as Linux 6.6 does.",
    ),
]);

/// Reads `per-ack`, `delivered` or `bytes:L`.
fn counting(text: &str) -> Result<AckCounting, Problem> {
    match text {
        "per-ack" => return Ok(AckCounting::PerAck),
        "delivered" => return Ok(AckCounting::Delivered),
        _ => {}
    }
    text.strip_prefix("bytes:")
        .and_then(|limit| limit.parse().ok())
        .filter(|limit| (1..=1_000).contains(limit))
        .map(|limit| AckCounting::Bytes { limit })
        .ok_or_else(|| Problem::Value {
            text: text.chars().take(crate::text::MAX_LENGTH).collect(),
            reason: "is not accepted",
            accepted: "per-ack, delivered, or bytes:L with L from 1 to 1000".to_owned(),
        })
}
