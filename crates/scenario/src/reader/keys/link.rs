//! Keys of links.

use suimon_algorithms::registry::Role;

use super::super::schema::{Key, Kind, Preset, Section};
use super::HSDPA;

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
