//! Every key there is, once: what it takes, where that goes, what it defaults to, what it means.
//!
//! Readers walk these rows. Scenario files, links in one line, the printed defaults, the reference and the keywords of
//! the Python package all follow from them.

pub(super) mod flow;
pub(super) mod link;
pub(super) mod radio;

pub(crate) use self::flow::{AGGREGATE, FLOW, STACK};
pub(crate) use self::link::{LINK, REVERSE};
pub(crate) use self::radio::{CELL, MEDIUM, any_cell, any_medium};
use super::schema::{Key, Keys, Kind, Preset};
use suimon_model::{Record, Scenario, Window};
use suimon_units::Instant;

const MANY: u64 = 1_000_000;

/// A count whose key bounds it far below what 32 bits hold.
fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What stands outside all tables.
pub(crate) const SCENARIO: Keys<Scenario> = Keys(&[
    Key::new(
        "name",
        Kind::Name(|scenario, name| scenario.name = name),
        Preset::Unset { means: "the name of the file", example: "\"wired\"" },
        "Short name, used in tables and file names.",
    ),
    Key::new(
        "description",
        Kind::Text(|scenario, text| {
            text.clone_into(&mut scenario.description);
            Ok(())
        }),
        Preset::Text(""),
        "The subject of the experiment, for the report.",
    ),
    Key::new(
        "seed",
        Kind::Count { least: 0, most: i64::MAX as u64, put: |scenario, seed| scenario.seed = seed },
        Preset::Count(1),
        "All randomness derives from it; the same seed gives the same run.",
    ),
    Key::new(
        "seeds",
        // Read apart: it says how many scenarios there are.
        Kind::Count { least: 1, most: 100_000, put: |_, _| {} },
        Preset::Count(1),
        "How many runs with seed, seed + 1, and so on.",
    ),
    Key::new(
        "duration",
        Kind::Time(|scenario, time| scenario.duration = time),
        Preset::Text("60s"),
        "When a run ends at the latest.",
    ),
    Key::new(
        "stop_when_complete",
        Kind::Flag(|scenario, stop| scenario.stop_when_complete = stop),
        Preset::Flag(true),
        "End early, once every flow that has a size is complete.",
    ),
    Key::new(
        "warmup",
        Kind::Time(|scenario, time| scenario.record.warmup = time),
        Preset::Text("0s"),
        "Totals and percentiles count from here on.",
    ),
    Key::new(
        "record_interval",
        Kind::TimeOrOff(|scenario, interval| scenario.record.interval = interval),
        Preset::Text("100ms"),
        "How often flows and queues are sampled for charts.",
    ),
    Key::new(
        "record_events",
        Kind::Count {
            least: 0,
            most: MANY,
            put: |scenario, count| scenario.record.events = usize::try_from(count).unwrap_or(usize::MAX),
        },
        Preset::Count(Record::EVENTS as u64),
        "How many losses, marks, cuts and timeouts are kept with their times; the others are only counted.",
    ),
    Key::new(
        "window",
        Kind::Sections(&WINDOW),
        Preset::Unset { means: "none", example: "" },
        "A window of time: statistics of every queue and the flows across it.",
    ),
    Key::new(
        "rate_spread",
        Kind::Count {
            least: 1,
            most: MANY,
            put: |scenario, packets| scenario.record.rate_spread = Some(packets),
        },
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
]);

/// A `[[window]]`.
pub(crate) const WINDOW: Keys<Window> = Keys(&[
    Key::new(
        "name",
        Kind::Name(|window, name| window.name = name),
        Preset::Required("\"steady\""),
        "Unique.",
    ),
    Key::new(
        "from",
        Kind::Time(|window, time| window.from = Instant::ZERO + time),
        Preset::Text("0s"),
        "When it opens.",
    ),
    Key::new(
        "to",
        Kind::Time(|window, time| window.to = Instant::ZERO + time),
        Preset::Unset { means: "at the end of the run", example: "\"50s\"" },
        "When it closes.",
    ),
    Key::new(
        "sample",
        Kind::Time(|window, time| window.sample = time),
        Preset::Text("500ms"),
        "How often goodput is sampled in it.",
    ),
]);

/// A `[[matrix]]`, which is read apart: it says what scenarios there are.
pub(crate) const MATRIX: Keys<()> = Keys(&[
    Key::new(
        "name",
        Kind::Name(|(), _| {}),
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
        "The names of the values in the results.",
    ),
]);
