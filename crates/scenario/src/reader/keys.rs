//! Every key there is, once.
//!
//! The reader refuses keys that are not here, takes defaults from here, and the printed defaults are
//! this file in TOML.

use suimon_algorithms::registry::Role;

use super::schema::{Key, Kind, Preset, Section};

const MANY: u64 = 1_000_000;

/// What stands outside all tables.
pub(crate) const SCENARIO: Section = Section {
    keys: &[
        Key::new(
            "name",
            Kind::Name,
            Preset::Unset { means: "the name of the file", example: "\"wired\"" },
            "Short name, used in tables and file names.",
        ),
        Key::new(
            "description",
            Kind::Text,
            Preset::Text(""),
            "What the experiment is about, for the report.",
        ),
        Key::new(
            "seed",
            Kind::Count { least: 0, most: i64::MAX as u64 },
            Preset::Count(1),
            "All randomness derives from it; the same seed gives the same run.",
        ),
        Key::new(
            "seeds",
            Kind::Count { least: 1, most: 100_000 },
            Preset::Count(1),
            "How many runs with seed, seed + 1, and so on.",
        ),
        Key::new("duration", Kind::Time, Preset::Text("60s"), "When a run ends at the latest."),
        Key::new(
            "stop_when_complete",
            Kind::Flag,
            Preset::Flag(true),
            "End early, once every flow that has a size is complete.",
        ),
        Key::new("warmup", Kind::Time, Preset::Text("0s"), "Totals and percentiles count from here on."),
        Key::new(
            "record_interval",
            Kind::TimeOrOff,
            Preset::Text("100ms"),
            "How often flows and queues are sampled for charts.",
        ),
        Key::new(
            "window",
            Kind::Sections(&WINDOW),
            Preset::Unset { means: "none", example: "" },
            "A window of time: statistics of every queue and the flows across it.",
        ),
        Key::new(
            "rate_spread",
            Kind::Count { least: 1, most: MANY },
            Preset::Unset { means: "not told", example: "10" },
            "Tells how the rate of each flow varies, over samples of so many packets received, headers included.",
        ),
        Key::new("link", Kind::Sections(&LINK), Preset::Required(""), "A link between two nodes."),
        Key::new(
            "cell",
            Kind::Sections(&CELL),
            Preset::Unset { means: "every HSDPA link has a cell of its own", example: "" },
            "An HSDPA cell that several links share.",
        ),
        Key::new(
            "medium",
            Kind::Sections(&MEDIUM),
            Preset::Unset { means: "no 802.11", example: "" },
            "An 802.11 medium that several links share.",
        ),
        Key::new("flow", Kind::Sections(&FLOW), Preset::Required(""), "A flow, or several alike."),
        Key::new(
            "aggregate",
            Kind::Sections(&AGGREGATE),
            Preset::Unset { means: "every flow stands alone", example: "" },
            "Several TCP flows that carry one stream.",
        ),
        Key::new(
            "matrix",
            Kind::Sections(&MATRIX),
            Preset::Unset { means: "one run for each seed", example: "" },
            "Runs for every value of a key; several of them give every combination, the last varying fastest.",
        ),
    ],
};

/// A `[[window]]`.
pub(crate) const WINDOW: Section = Section {
    keys: &[
        Key::new("name", Kind::Name, Preset::Required("\"steady\""), "Unique."),
        Key::new("from", Kind::Time, Preset::Text("0s"), "When it opens."),
        Key::new(
            "to",
            Kind::Time,
            Preset::Unset { means: "at the end of the run", example: "\"50s\"" },
            "When it closes.",
        ),
        Key::new("sample", Kind::Time, Preset::Text("500ms"), "How often goodput is sampled in it."),
    ],
};

const SCHEDULE: Key = Key::new(
    "schedule",
    Kind::File,
    Preset::Unset { means: "no schedule", example: "\"rates.csv\"" },
    "Instead of a rate: a CSV file of time and rate, repeated when it ends.",
)
.excluding(&["rate", "trace", "hsdpa", "medium"]);

const TRACE: Key = Key::new(
    "trace",
    Kind::File,
    Preset::Unset { means: "no trace", example: "\"cellular.down\"" },
    "Instead of a rate: a Mahimahi trace of opportunities to send 1500 bytes, repeated when it ends.",
)
.excluding(&["rate", "schedule", "hsdpa", "medium"]);

const fn rate(preset: Preset) -> Key {
    Key::new(
        "rate",
        Kind::LinkRate,
        preset,
        "How fast the link sends, per second; a link has this, a trace, a schedule or a radio.",
    )
    .excluding(&["trace", "schedule", "hsdpa", "medium"])
}

const HSDPA_LINK: Key = Key::new(
    "hsdpa",
    Kind::Section(&HSDPA),
    Preset::Unset { means: "no radio", example: "{ profile = \"PA3\", geometry = \"10dB\" }" },
    "Instead of a rate: the downlink of an HSDPA cell to one terminal.",
)
.excluding(&["rate", "trace", "schedule", "medium"]);

const MEDIUM_LINK: Key = Key::new(
    "medium",
    Kind::Name,
    Preset::Unset { means: "no radio", example: "\"wlan\"" },
    "Instead of a rate: the [[medium]] that the link shares; links from the same node are one station.",
)
.excluding(&["rate", "trace", "schedule", "hsdpa"]);

const fn overhead(preset: Preset) -> Key {
    Key::new(
        "overhead",
        Kind::Bytes,
        preset,
        "What each packet costs on the link beside its own bytes, such as a link header.",
    )
}

const fn delay(preset: Preset) -> Key {
    Key::new("delay", Kind::Time, preset, "Propagation delay, one way.")
}

const fn buffer(preset: Preset) -> Key {
    Key::new("buffer", Kind::Buffer, preset, "What may wait, without the packet that is being sent.")
}

const QUEUE: Key = Key::new(
    "queue",
    Kind::Algorithm(Role::Queue),
    Preset::Text("droptail"),
    "The queue discipline in front of the link.",
);

const ESTIMATOR: Key = Key::new(
    "estimator",
    Kind::Algorithm(Role::Estimator),
    Preset::Unset { means: "none", example: "\"bursts\"" },
    "What estimates round-trip times from the packets that come, as columns of the link's series.",
);

const LINK_LOSS: Key = Key::new(
    "loss",
    Kind::Loss(&LOSS),
    Preset::Text("0%"),
    "Random loss after transmission: of each packet alone, or in bursts by a table (Gilbert-Elliott).",
);

const JITTER: Key = Key::new(
    "jitter",
    Kind::Time,
    Preset::Text("0s"),
    "Extra delay, uniform from zero to this; packets keep their order.",
);

const LINK_REORDERING: Key = Key::new(
    "reordering",
    Kind::Section(&REORDERING),
    Preset::Unset { means: "no reordering", example: "{ probability = \"1%\", delay = \"10ms\" }" },
    "Packets held back so that later ones overtake them.",
);

const fn outages(means: &'static str) -> Key {
    Key::new(
        "outages",
        Kind::Periods,
        Preset::Unset { means, example: "[\"10s..15s\", \"40s..\"]" },
        "When nothing gets through: packets that leave the link meanwhile are lost.",
    )
}

const fn reported(preset: bool) -> Key {
    Key::new("reported", Kind::Flag, Preset::Flag(preset), "Whether results show this direction of the link.")
}

/// A `[[link]]`.
pub(crate) const LINK: Section = Section {
    keys: &[
        Key::new(
            "name",
            Kind::Name,
            Preset::Required("\"bottleneck\""),
            "Unique; the way back is called NAME-reverse.",
        ),
        Key::new(
            "between",
            Kind::TwoNames,
            Preset::Required("[\"sender\", \"receiver\"]"),
            "The nodes that it connects; the keys of the link itself hold from the first to the second.",
        ),
        Key::new(
            "duplex",
            Kind::Flag,
            Preset::Flag(true),
            "Whether there is a way back; the keys of [link.reverse] hold for it.",
        ),
        rate(Preset::Required("\"2Mbit\"")),
        TRACE,
        SCHEDULE,
        HSDPA_LINK,
        MEDIUM_LINK,
        delay(Preset::Text("0s")),
        overhead(Preset::Text("0B")),
        buffer(Preset::Text(crate::text::DEFAULT_BUFFER)),
        QUEUE,
        LINK_LOSS,
        JITTER,
        LINK_REORDERING,
        outages("none"),
        ESTIMATOR,
        reported(true),
        Key::new(
            "reverse",
            Kind::Section(&REVERSE),
            Preset::Unset { means: "the defaults of its keys", example: "{ rate = \"64kbit\" }" },
            "The way back.",
        ),
    ],
};

/// A `[link.reverse]`.
pub(crate) const REVERSE: Section = Section {
    keys: &[
        rate(Preset::Unset {
            means: "rate, trace, schedule or medium of the link; \"unlimited\" beside hsdpa",
            example: "\"64kbit\"",
        }),
        TRACE,
        SCHEDULE,
        HSDPA_LINK,
        MEDIUM_LINK,
        delay(Preset::Unset {
            means: "delay of the link, for HSDPA with its uplink_delay",
            example: "\"90ms\"",
        }),
        overhead(Preset::Unset { means: "overhead of the link", example: "\"28B\"" }),
        buffer(Preset::Text("unbounded")),
        QUEUE,
        LINK_LOSS,
        JITTER,
        LINK_REORDERING,
        outages("outages of the link"),
        reported(false),
    ],
};

/// The table `hsdpa`.
pub(crate) const HSDPA: Section = Section {
    keys: &[
        Key::new(
            "profile",
            Kind::Fading,
            Preset::Required("\"PA3\""),
            "Multipath and speed of the terminal.",
        ),
        Key::new(
            "geometry",
            Kind::Decibels,
            Preset::Required("\"10dB\""),
            "Power of this cell over that of other cells and noise, averaged over fading.",
        ),
        Key::new(
            "cell",
            Kind::Name,
            Preset::Unset { means: "a cell of its own", example: "\"downtown\"" },
            "The [[cell]] that it shares.",
        ),
        Key::new(
            "power",
            Kind::Decibels,
            Preset::Text("-0.95dB"),
            "Power of the data channel over that of the cell.",
        ),
        Key::new(
            "self_interference",
            Kind::Probability,
            Preset::Unset { means: "28% in VA, 0% elsewhere", example: "\"10%\"" },
            "Interference beyond that of the other paths, as a share of the cell's power.",
        ),
        Key::new(
            "cqi_error",
            Kind::Decibels,
            Preset::Text("0.5dB"),
            "Standard deviation of the error of a channel quality report.",
        ),
        Key::new("cqi_error_hold", Kind::Time, Preset::Text("10ms"), "How long such an error lasts."),
        Key::new(
            "cqi_delay",
            Kind::Time,
            Preset::Text("0ms"),
            "From measuring the channel to the first block that follows the report.",
        ),
        Key::new("cqi_period", Kind::Time, Preset::Text("2ms"), "From one report to the next."),
        Key::new(
            "category",
            Kind::Count { least: 1, most: suimon_radio::hsdpa::Category::LAST as u64 },
            Preset::Count(6),
            "What the terminal can receive: 6 is 3.6 Mbit/s, 10 is 14.4.",
        ),
        Key::new(
            "harq_transmissions",
            Kind::Count { least: 1, most: 100 },
            Preset::Count(4),
            "Most transmissions of a block.",
        ),
        Key::new(
            "rlc_resend",
            Kind::Time,
            Preset::Text("100ms"),
            "After this time the content of a block that failed for good is sent anew.",
        ),
        Key::new(
            "delivery",
            Kind::Word(&["in-order", "credit"]),
            Preset::Text("in-order"),
            "Whether what follows a missing block waits for it, or each block lets so many bytes through.",
        ),
        Key::new(
            "handover_every",
            Kind::Time,
            Preset::Unset { means: "no handover", example: "\"30s\"" },
            "Mean time between changes of the cell.",
        ),
        Key::new(
            "handover_gap",
            Kind::Time,
            Preset::Text("200ms"),
            "How long nothing can be sent while the cell changes.",
        ),
        Key::new(
            "uplink_delay",
            Kind::Time,
            Preset::Text("35ms"),
            "What the way back takes beside the delay, unless [link.reverse] has a delay.",
        ),
    ],
};

/// A `[[cell]]`.
pub(crate) const CELL: Section = Section {
    keys: &[
        Key::new("name", Kind::Name, Preset::Required("\"downtown\""), "Unique."),
        Key::new(
            "scheduler",
            Kind::Word(&["round-robin", "max-ci", "proportional-fair"]),
            Preset::Text("proportional-fair"),
            "Whom it serves next: one after the other, the best signal, or the best compared with what it got.",
        ),
        Key::new(
            "window",
            Kind::Time,
            Preset::Text("2s"),
            "How long proportional fairness remembers what a terminal got.",
        ),
    ],
};

const fn of_standard(name: &'static str, kind: Kind, example: &'static str, help: &'static str) -> Key {
    Key::new(name, kind, Preset::Unset { means: "as the standard has it", example }, help)
}

/// A `[[medium]]`.
pub(crate) const MEDIUM: Section = Section {
    keys: &[
        Key::new("name", Kind::Name, Preset::Required("\"wlan\""), "Unique."),
        Key::new(
            "standard",
            Kind::Word(&["802.11a", "802.11b", "802.11g"]),
            Preset::Required("\"802.11b\""),
            "Physical layer.",
        ),
        Key::new("rate", Kind::Rate, Preset::Required("\"11Mbit\""), "Rate of data frames."),
        Key::new(
            "control_rate",
            Kind::Rate,
            Preset::Unset {
                means: "1 Mbit/s in 802.11b, else the fastest of 6, 12, 24 up to rate",
                example: "\"2Mbit\"",
            },
            "Rate of acknowledgements.",
        ),
        Key::new(
            "preamble",
            Kind::Word(&["long", "short"]),
            Preset::Text("long"),
            "Preamble of 802.11b: 192 or 96 us.",
        ),
        of_standard("slot", Kind::Time, "\"20us\"", "Length of a backoff slot."),
        of_standard("sifs", Kind::Time, "\"10us\"", "Short interframe space."),
        Key::new(
            "turnaround",
            Kind::Time,
            Preset::Unset { means: "5 us in 802.11b, else 2 us", example: "\"0us\"" },
            "From the decision to send a data frame to its first bit.",
        ),
        Key::new("propagation", Kind::Time, Preset::Text("1us"), "From one station to another."),
        of_standard(
            "cw_min",
            Kind::Count { least: 0, most: 65_535 },
            "31",
            "Backoff is drawn from zero to this at first.",
        ),
        Key::new(
            "cw_max",
            Kind::Count { least: 0, most: 65_535 },
            Preset::Count(1_023),
            "And to this at most, after failures.",
        ),
        Key::new(
            "retry_limit",
            Kind::Count { least: 1, most: 255 },
            Preset::Count(7),
            "Most transmissions of a frame.",
        ),
        Key::new(
            "frame_loss",
            Kind::Probability,
            Preset::Text("0%"),
            "Share of data frames that noise destroys.",
        ),
    ],
};

/// The table form of `loss`.
pub(crate) const LOSS: Section = Section {
    keys: &[
        Key::new(
            "to_bad",
            Kind::Probability,
            Preset::Required("\"1%\""),
            "From the good state to the bad one, per packet.",
        ),
        Key::new(
            "to_good",
            Kind::Probability,
            Preset::Required("\"30%\""),
            "From the bad state to the good one, per packet.",
        ),
        Key::new("loss_good", Kind::Probability, Preset::Text("0%"), "Loss in the good state."),
        Key::new("loss_bad", Kind::Probability, Preset::Text("100%"), "Loss in the bad state."),
    ],
};

/// The table `reordering`.
pub(crate) const REORDERING: Section = Section {
    keys: &[
        Key::new(
            "probability",
            Kind::Probability,
            Preset::Required("\"1%\""),
            "Share of the packets held back.",
        ),
        Key::new("delay", Kind::Time, Preset::Required("\"10ms\""), "For how long."),
    ],
};

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
        Key::new(
            "size",
            Kind::Bytes,
            Preset::Unset { means: "endless", example: "\"10MB\"" },
            "How much is sent in all.",
        ),
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
            "Which TCP stack's habits both ends have.",
        ),
        Key::new(
            "window",
            Kind::Bytes,
            Preset::Text(crate::text::DEFAULT_WINDOW),
            "Receive buffer: what the receiver can advertise at most.",
        ),
        Key::new(
            "application_rate",
            Kind::Rate,
            Preset::Unset { means: "as fast as TCP takes it", example: "\"500kbit\"" },
            "The application produces data at this rate only.",
        ),
        Key::new(
            "stack",
            Kind::Section(&STACK),
            Preset::Unset { means: "as the profile has it", example: "{ delayed_ack = false }" },
            "Habits that differ from the profile.",
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
        Key::new(
            "size",
            Kind::Bytes,
            Preset::Unset { means: "endless", example: "\"10MB\"" },
            "How much is sent in all.",
        ),
        Key::new(
            "application_rate",
            Kind::Rate,
            Preset::Unset { means: "as fast as the flows take it", example: "\"500kbit\"" },
            "The application produces data at this rate only.",
        ),
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

/// A `[[matrix]]`.
pub(crate) const MATRIX: Section = Section {
    keys: &[
        Key::new(
            "name",
            Kind::Name,
            Preset::Unset { means: "the last part of the path", example: "\"rate\"" },
            "Column of the results.",
        ),
        Key::new(
            "set",
            Kind::Paths,
            Preset::Required("\"link.bottleneck.rate\""),
            "The key that takes the values; a list of keys gives all of them the same value, and \"*\" lets each value name its own.",
        ),
        Key::new(
            "values",
            Kind::List,
            Preset::Required("[\"64kbit\", \"384kbit\"]"),
            "The values; a table sets several keys of a link or flow at once.",
        ),
        Key::new(
            "labels",
            Kind::List,
            Preset::Unset { means: "the values as written", example: "[\"slow\", \"fast\"]" },
            "What the results call the values.",
        ),
    ],
};
