//! Keys of radios.

use std::sync::Arc;

use suimon_model::{Capacity, Cell, Hsdpa, Link, Medium};
use suimon_radio::hsdpa::{Category, Delivery, Policy, UserParameters};
use suimon_radio::wlan::{Parameters, Preamble, Standard};
use suimon_units::{Decibels, Duration, Rate};

use super::super::fields::Fields;
use super::super::schema::{Key, Keys, Kind, Preset};
use super::super::shared::Shared;
use super::small;
use crate::error::ScenarioError;

/// The table `hsdpa`.
pub(crate) const HSDPA: Keys<Hsdpa> = Keys(&[
    Key::new(
        "profile",
        Kind::Fading(|terminal, value| terminal.user.profile = value),
        Preset::Required("\"PA3\""),
        "Multipath and speed of the terminal.",
    ),
    Key::new(
        "geometry",
        Kind::Decibels(|terminal, value| terminal.user.geometry = value),
        Preset::Required("\"10dB\""),
        "Power of this cell over that of other cells and noise, averaged over fading.",
    ),
    Key::new(
        "cell",
        Kind::Cell(|terminal, cell| terminal.cell = Some(cell)),
        Preset::Unset { means: "a cell of its own", example: "\"downtown\"" },
        "The [[cell]] that it shares.",
    ),
    Key::new(
        "power",
        Kind::Decibels(|terminal, value| terminal.user.power = value),
        Preset::Text("-0.95dB"),
        "Power of the data channel over that of the cell.",
    ),
    Key::new(
        "self_interference",
        Kind::Probability(|terminal, share| terminal.user.self_interference = Some(share)),
        Preset::Unset { means: "28% in VA, 0% elsewhere", example: "\"10%\"" },
        "Interference beyond that of the other paths, as a share of the cell's power.",
    ),
    Key::new(
        "cqi_error",
        Kind::Decibels(|terminal, value| terminal.user.cqi_error = value),
        Preset::Text("0.5dB"),
        "Standard deviation of the error of a channel quality report.",
    ),
    Key::new(
        "cqi_error_hold",
        Kind::Time(|terminal, value| terminal.user.cqi_error_hold = value),
        Preset::Text("10ms"),
        "How long such an error lasts.",
    ),
    Key::new(
        "cqi_delay",
        Kind::Time(|terminal, value| terminal.user.cqi_delay = value),
        Preset::Text("0ms"),
        "From measuring the channel to the first block that follows the report.",
    ),
    Key::new(
        "cqi_period",
        Kind::Time(|terminal, value| terminal.user.cqi_period = value),
        Preset::Text("2ms"),
        "From one report to the next.",
    ),
    Key::new(
        "category",
        Kind::Count {
            least: 1,
            most: Category::LAST as u64,
            put: |terminal, number| terminal.user.category = category(number),
        },
        Preset::Count(6),
        "The rate that the terminal can receive: 6 is 3.6 Mbit/s, 10 is 14.4.",
    ),
    Key::new(
        "harq_transmissions",
        Kind::Count {
            least: 1,
            most: 100,
            put: |terminal, count| terminal.user.harq_transmissions = small(count),
        },
        Preset::Count(4),
        "Most transmissions of a block.",
    ),
    Key::new(
        "rlc_resend",
        Kind::Time(|terminal, value| terminal.user.rlc_resend = value),
        Preset::Text("100ms"),
        "After this time the content of a block that failed for good is sent again.",
    ),
    Key::new(
        "delivery",
        Kind::Word(&[
            ("in-order", |terminal| terminal.user.delivery = Delivery::InOrder),
            ("paced", |terminal| terminal.user.delivery = Delivery::Paced),
        ]),
        Preset::Text("in-order"),
        "What waited for a missing block leaves at once with it, or at the pace of the largest blocks.",
    ),
    Key::new(
        "handover_every",
        Kind::Time(|terminal, every| terminal.user.handover_every = Some(every)),
        Preset::Unset { means: "no handover", example: "\"30s\"" },
        "Mean time between changes of the cell.",
    ),
    Key::new(
        "handover_gap",
        Kind::Time(|terminal, value| terminal.user.handover_gap = value),
        Preset::Text("200ms"),
        "How long nothing can be sent while the cell changes.",
    ),
    Key::new(
        "uplink_delay",
        Kind::Time(|terminal, value| terminal.uplink_delay = value),
        Preset::Text("35ms"),
        "The delay of the way back besides the link's own, unless [link.reverse] has a delay.",
    ),
]);

fn category(number: u64) -> Category {
    let category = u8::try_from(number).ok().and_then(Category::new);
    category.expect("the limits of the key are those of a category")
}

/// A `[[cell]]`.
pub(crate) const CELL: Keys<Cell> = Keys(&[
    Key::new("name", Kind::Name(|cell, name| cell.name = name), Preset::Required("\"downtown\""), "Unique."),
    Key::new(
        "scheduler",
        Kind::Word(&[
            ("round-robin", |cell| cell.scheduler = Policy::RoundRobin),
            ("max-ci", |cell| cell.scheduler = Policy::MaxCarrierToInterference),
            ("proportional-fair", |cell| {
                cell.scheduler = Policy::ProportionalFair { window: Duration::ZERO };
            }),
        ]),
        Preset::Text("proportional-fair"),
        "Whom it serves next: one after the other, the best signal, or the best compared with what it got.",
    ),
    Key::new(
        "window",
        Kind::Time(|cell, time| {
            if let Policy::ProportionalFair { window } = &mut cell.scheduler {
                *window = time;
            }
        }),
        Preset::Text("2s"),
        "How long proportional fairness remembers what a terminal got.",
    ),
]);

const fn of_standard(
    name: &'static str,
    kind: Kind<Medium>,
    example: &'static str,
    help: &'static str,
) -> Key<Medium> {
    Key::new(name, kind, Preset::Unset { means: "as the standard has it", example }, help)
}

/// A `[[medium]]`.
pub(crate) const MEDIUM: Keys<Medium> = Keys(&[
    Key::new("name", Kind::Name(|medium, name| medium.name = name), Preset::Required("\"wlan\""), "Unique."),
    Key::new(
        "standard",
        Kind::Word(&[
            (Standard::A.as_str(), |medium| medium.parameters.standard = Standard::A),
            (Standard::B.as_str(), |medium| medium.parameters.standard = Standard::B),
            (Standard::G.as_str(), |medium| medium.parameters.standard = Standard::G),
        ]),
        Preset::Required("\"802.11b\""),
        "Physical layer.",
    ),
    Key::new(
        "rate",
        Kind::Rate(|medium, rate| {
            // All that is not said below is as the standard has it at this rate.
            medium.parameters = Parameters::new(medium.parameters.standard, rate);
        }),
        Preset::Required("\"11Mbit\""),
        "Rate of data frames.",
    ),
    Key::new(
        "control_rate",
        Kind::Rate(|medium, value| medium.parameters.control_rate = value),
        Preset::Unset {
            means: "1 Mbit/s in 802.11b, else the fastest of 6, 12, 24 up to rate",
            example: "\"2Mbit\"",
        },
        "Rate of acknowledgements.",
    ),
    Key::new(
        "preamble",
        Kind::Word(&[
            ("long", |medium| medium.parameters.preamble = Preamble::Long),
            ("short", |medium| medium.parameters.preamble = Preamble::Short),
        ]),
        Preset::Text("long"),
        "Preamble of 802.11b: 192 or 96 us.",
    ),
    of_standard(
        "slot",
        Kind::Time(|medium, value| medium.parameters.slot = value),
        "\"20us\"",
        "Length of a backoff slot.",
    ),
    of_standard(
        "sifs",
        Kind::Time(|medium, value| medium.parameters.sifs = value),
        "\"10us\"",
        "Short interframe space.",
    ),
    Key::new(
        "turnaround",
        Kind::Time(|medium, value| medium.parameters.turnaround = value),
        Preset::Unset { means: "5 us in 802.11b, else 2 us", example: "\"0us\"" },
        "From the decision to send a data frame to its first bit.",
    ),
    Key::new(
        "propagation",
        Kind::Time(|medium, value| medium.parameters.propagation = value),
        Preset::Text("1us"),
        "From one station to another.",
    ),
    of_standard(
        "cw_min",
        Kind::Count { least: 0, most: 65_535, put: |medium, count| medium.parameters.cw_min = small(count) },
        "31",
        "Backoff is drawn from zero to this at first.",
    ),
    Key::new(
        "cw_max",
        Kind::Count { least: 0, most: 65_535, put: |medium, count| medium.parameters.cw_max = small(count) },
        Preset::Count(1_023),
        "And to this at most, after failures.",
    ),
    Key::new(
        "retry_limit",
        Kind::Count {
            least: 1,
            most: 255,
            put: |medium, count| medium.parameters.retry_limit = small(count),
        },
        Preset::Count(7),
        "Most transmissions of a frame.",
    ),
    Key::new(
        "frame_loss",
        Kind::Probability(|medium, value| medium.parameters.frame_loss = value),
        Preset::Text("0%"),
        "Share of data frames that noise destroys.",
    ),
]);

/// A terminal that stands still: all that must be said of it replaces a part.
fn any_terminal() -> Hsdpa {
    let profile = "ST".parse().expect("the profile of a terminal that stands still");
    Hsdpa::new(UserParameters::new(profile, Decibels::ZERO))
}

/// A cell without a name.
pub(crate) fn any_cell() -> Cell {
    Cell { name: String::new(), scheduler: Policy::RoundRobin }
}

/// A medium without a name.
pub(crate) fn any_medium() -> Medium {
    Medium { name: String::new(), parameters: Parameters::new(Standard::B, Rate::ZERO) }
}

/// Makes `link` the way to the terminal that `table` describes.
pub(super) fn put_terminal(
    link: &mut Link,
    table: &Fields<'_>,
    shared: &Shared<'_>,
) -> Result<(), ScenarioError> {
    let mut terminal = any_terminal();
    HSDPA.enter(&mut terminal, table, shared)?;
    link.capacity = Capacity::Hsdpa(Box::new(terminal));
    Ok(())
}

/// Puts `link` on the medium that `table` describes.
pub(super) fn put_medium(
    link: &mut Link,
    table: &Fields<'_>,
    shared: &Shared<'_>,
) -> Result<(), ScenarioError> {
    let mut medium = any_medium();
    MEDIUM.enter(&mut medium, table, shared)?;
    link.capacity = Capacity::Wifi(Arc::new(medium));
    Ok(())
}
