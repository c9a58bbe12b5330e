//! Keys of flows, and of streams over several.

use suimon_algorithms::registry::Role;

use super::super::schema::{Key, Kind, Preset, Section};
use super::MANY;

const SIZE: Key = Key::new(
    "size",
    Kind::Bytes,
    Preset::Unset { means: "endless", example: "\"10MB\"" },
    "How much is sent in all.",
);

const fn application_rate(means: &'static str) -> Key {
    let preset = Preset::Unset { means, example: "\"500kbit\"" };
    Key::new("application_rate", Kind::Rate, preset, "The application produces data at this rate only.")
}

/// A `[[flow]]`.
pub(crate) const FLOW: Section = Section {
    keys: &[
        Key::new("name", Kind::Name, Preset::Required("\"main\""), "Unique."),
        Key::new("from", Kind::Name, Preset::Required("\"sender\""), "The node that sends the data."),
        Key::new("to", Kind::Name, Preset::Required("\"receiver\""), "The node that receives it."),
        Key::new(
            "count",
            Kind::Count { least: 1, most: MANY },
            Preset::Count(1),
            "So many flows alike, called NAME-1, NAME-2, and so on.",
        ),
        Key::new(
            "start",
            Kind::Start,
            Preset::Text("0s"),
            "When it starts; two times draw it uniformly between them, for each flow alone.",
        ),
        Key::new(
            "stop",
            Kind::Time,
            Preset::Unset { means: "at the end of the run", example: "\"50s\"" },
            "When it stops sending, whatever remains.",
        ),
        Key::new(
            "via",
            Kind::Names,
            Preset::Unset { means: "the fewest links", example: "[\"bottleneck\"]" },
            "The links on its way, in order; the way back is over their other directions.",
        ),
        Key::new(
            "extra_delay",
            Kind::Start,
            Preset::Text("0s"),
            "Propagation delay beside that of the links, each way; two times draw it uniformly between them, for each flow alone.",
        ),
        Key::new(
            "stagger",
            Kind::Time,
            Preset::Text("0s"),
            "Of several alike, each starts and stops so much later than the one before.",
        ),
        SIZE,
        Key::new(
            "on_off",
            Kind::Section(&ON_OFF),
            Preset::Unset { means: "always on", example: "{ on = \"20s\", off = \"20s\" }" },
            "Periods of sending and silence, exponentially distributed.",
        ),
        Key::new(
            "cc",
            Kind::Algorithm(Role::Congestion),
            Preset::Text(crate::scheme::DEFAULT_CC),
            "Congestion control; a receive window other than fixed may follow after \"/\", or stand alone for reno with it.",
        ),
        Key::new(
            "receiver",
            Kind::Algorithm(Role::Receiver),
            Preset::Text("fixed"),
            "Window advertisement at the receiver.",
        ),
        Key::new(
            "profile",
            Kind::Profile,
            Preset::Text("linux-6"),
            "The TCP stack as which both ends behave.",
        ),
        Key::new(
            "window",
            Kind::Bytes,
            Preset::Text(crate::text::DEFAULT_WINDOW),
            "Receive buffer: what the receiver can advertise at most.",
        ),
        application_rate("as fast as TCP takes it"),
        Key::new(
            "stack",
            Kind::Section(&STACK),
            Preset::Unset { means: "as the profile has it", example: "{ delayed_ack = false }" },
            "Options that differ from the profile.",
        ),
        Key::new(
            "udp",
            Kind::Section(&UDP),
            Preset::Unset { means: "TCP", example: "{ rate = \"500kbit\", packet = \"512B\" }" },
            "Datagrams at a constant rate instead of TCP.",
        )
        .excluding(&["cc", "receiver", "profile", "window", "application_rate", "stack"]),
    ],
};

/// An `[[aggregate]]`.
pub(crate) const AGGREGATE: Section = Section {
    keys: &[
        Key::new("name", Kind::Name, Preset::Required("\"bulk\""), "Unique."),
        Key::new(
            "flows",
            Kind::Names,
            Preset::Required("[\"main\"]"),
            "The TCP flows that carry it, one for each path, all with the same two ends.",
        ),
        Key::new(
            "scheduler",
            Kind::Algorithm(Role::Path),
            Preset::Text("look-ahead"),
            "Which flow carries what.",
        ),
        SIZE,
        application_rate("as fast as the flows take it"),
        Key::new(
            "send_buffer",
            Kind::Bytes,
            Preset::Text(crate::text::DEFAULT_STREAM_BUFFER),
            "What each flow may hold, unsent or unacknowledged.",
        ),
        Key::new(
            "reorder_buffer",
            Kind::Bytes,
            Preset::Text(crate::text::DEFAULT_STREAM_BUFFER),
            "What may wait at the receiver for data of other flows.",
        ),
        Key::new(
            "copy_stalled",
            Kind::Flag,
            Preset::Flag(true),
            "Give data of a flow that makes no progress for a retransmission timeout to the others too.",
        ),
        Key::new(
            "reconnect",
            Kind::TimeOrOff,
            Preset::Text(crate::text::DEFAULT_PATIENCE),
            "Give a flow up and connect it anew when it is silent for so long and for two retransmission timeouts, or does not connect within it.",
        ),
    ],
};

/// The table `on_off`.
pub(crate) const ON_OFF: Section = Section {
    keys: &[
        Key::new("on", Kind::Time, Preset::Required("\"20s\""), "Mean length of a sending period."),
        Key::new("off", Kind::Time, Preset::Required("\"20s\""), "Mean length of a silent period."),
    ],
};

/// The table `udp`.
pub(crate) const UDP: Section = Section {
    keys: &[
        Key::new("rate", Kind::Rate, Preset::Required("\"500kbit\""), "Sending rate, headers included."),
        Key::new("packet", Kind::Bytes, Preset::Text("1500B"), "Size of a datagram, headers included."),
    ],
};

const fn habit(name: &'static str, kind: Kind, example: &'static str, help: &'static str) -> Key {
    Key::new(name, kind, Preset::Unset { means: "as the profile has it", example }, help)
}

/// A `[flow.stack]`: the fields of [`crate::StackProfile`].
pub(crate) const STACK: Section = Section {
    keys: &[
        habit("mss", Kind::Bytes, "\"1448B\"", "Payload of a full segment."),
        habit(
            "header",
            Kind::Bytes,
            "\"52B\"",
            "IP and TCP headers with options; also the size of a pure ACK.",
        ),
        habit("initial_window", Kind::Count { least: 1, most: 1_000 }, "10", "Initial window in segments."),
        habit(
            "counting",
            Kind::Text,
            "\"bytes:2\"",
            "How ACKs grow the window: \"per-ack\", or \"bytes:L\" for the acknowledged bytes, at most L segments an ACK in slow start.",
        ),
        habit(
            "recovery",
            Kind::Word(&["rfc6675", "rate-halving", "rate-halving-to-half", "prr"]),
            "\"prr\"",
            "How cwnd moves during fast recovery.",
        ),
        habit(
            "loss_detection",
            Kind::Word(&["rfc6675", "fack"]),
            "\"rfc6675\"",
            "When a segment counts as lost.",
        ),
        habit(
            "detects_lost_retransmissions",
            Kind::Flag,
            "true",
            "Whether lost retransmissions are noticed without a timeout.",
        ),
        habit(
            "timestamps",
            Kind::Flag,
            "true",
            "Timestamps (RFC 7323), which also tell unnecessary retransmissions.",
        ),
        habit(
            "rtt_sample",
            Kind::Word(&["oldest", "newest"]),
            "\"newest\"",
            "Which segment's round-trip time counts of an ACK that covers several.",
        ),
        habit("f_rto", Kind::Flag, "true", "Forward RTO-Recovery (RFC 5682)."),
        habit("rto_initial", Kind::Time, "\"1s\"", "Initial retransmission timeout."),
        habit("rto_min", Kind::Time, "\"200ms\"", "Minimum retransmission timeout."),
        habit(
            "rto_minimum",
            Kind::Word(&["timeout", "variance"]),
            "\"variance\"",
            "Whether rto_min bounds the whole timeout or its variance term.",
        ),
        habit("pacing", Kind::Flag, "false", "Spread segments over the round trip."),
        habit("ecn", Kind::Flag, "false", "Negotiate ECN (RFC 3168); dctcp and prague use it in any case."),
        habit(
            "mark_floor",
            Kind::Count { least: 1, most: 2 },
            "2",
            "Least window after a mark, in segments: 2 as after a loss, or 1 as in RFC 3168.",
        ),
        habit("delayed_ack", Kind::Flag, "true", "Acknowledge every second segment rather than each."),
        habit("delayed_ack_timeout", Kind::Time, "\"40ms\"", "How long an ACK may be held back."),
        habit(
            "quick_acks",
            Kind::Count { least: 0, most: MANY },
            "16",
            "So many first segments are acknowledged at once.",
        ),
        habit(
            "write",
            Kind::Bytes,
            "\"16kB\"",
            "What the application writes at once; the segment that ends it (PSH) is acknowledged at once, as Linux 6.6 does.",
        ),
    ],
};
