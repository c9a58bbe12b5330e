//! Keys of radios.

use super::super::schema::{Key, Kind, Preset, Section};

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
