//! Keys of links.

use suimon_algorithms::registry::Role;

use suimon_model::{Capacity, Detour, Link, Loss, Reordering};
use suimon_units::{Duration, Probability};

use super::super::files::Format;
use super::super::schema::{Key, Keys, Kind, Preset, Word};
use super::radio::{HSDPA, MEDIUM, put_medium, put_terminal};

/// The keys that say how fast a link is; it has one of them.
const CAPACITIES: &[&str] = &["rate", "trace", "schedule", "hsdpa", "medium", "shaper"];

const SCHEDULE: Key<Link> = Key::new(
    "schedule",
    Kind::File(Format::Schedule, |link: &mut Link, capacity| link.capacity = capacity),
    Preset::Unset { means: "no schedule", example: "\"rates.csv\"" },
    "Instead of a rate: a CSV file of time and rate, repeated when it ends.",
)
.excluding(CAPACITIES);

const TRACE: Key<Link> = Key::new(
    "trace",
    Kind::File(Format::Mahimahi, |link: &mut Link, capacity| link.capacity = capacity),
    Preset::Unset { means: "no trace", example: "\"cellular.down\"" },
    "Instead of a rate: a Mahimahi trace of opportunities to send 1500 bytes, repeated when it ends.",
)
.excluding(CAPACITIES);

const fn rate(preset: Preset) -> Key<Link> {
    Key::new(
        "rate",
        Kind::LinkRate(|link: &mut Link, rate| link.capacity = Capacity::Rate(rate)),
        preset,
        "How fast the link sends, per second; a link has this, a trace, a schedule or a radio.",
    )
    .excluding(CAPACITIES)
}

const HSDPA_LINK: Key<Link> = Key::new(
    "hsdpa",
    Kind::Section(&HSDPA, put_terminal),
    Preset::Unset { means: "no radio", example: "{ profile = \"PA3\", geometry = \"10dB\" }" },
    "Instead of a rate: the downlink of an HSDPA cell to one terminal.",
)
.excluding(CAPACITIES)
.in_line(Word::Radio { name: "hsdpa", leading: &["profile", "geometry"], keys: &HSDPA, put: put_terminal });

const MEDIUM_LINK: Key<Link> = Key::new(
    "medium",
    Kind::Medium(|link: &mut Link, medium| link.capacity = Capacity::Wifi(medium)),
    Preset::Unset { means: "no radio", example: "\"wlan\"" },
    "Instead of a rate: the [[medium]] that the link shares; links from the same node are one station.",
)
.excluding(CAPACITIES)
.in_line(Word::Radio { name: "wifi", leading: &["standard", "rate"], keys: &MEDIUM, put: put_medium });

const SHAPER: Key<Link> = Key::new(
    "shaper",
    Kind::Algorithm(Role::Shaper, |link: &mut Link, shaper| link.capacity = Capacity::Shaped(Box::new(shaper))),
    Preset::Unset { means: "no shaper", example: "\"autorate\"" },
    "Instead of a rate: what chooses it from the packets that pass there and back, before a bottleneck behind the link.",
)
.excluding(CAPACITIES);

const fn overhead(preset: Preset) -> Key<Link> {
    Key::new(
        "overhead",
        Kind::Bytes(|link, size| link.overhead = size),
        preset,
        "The cost of each packet on the link besides its own bytes, such as a link header.",
    )
}

const fn delay(preset: Preset) -> Key<Link> {
    Key::new("delay", Kind::Time(|link, time| link.delay = time), preset, "Propagation delay, one way.")
}

const fn buffer(preset: Preset) -> Key<Link> {
    Key::new(
        "buffer",
        Kind::Buffer(|link: &mut Link, buffer| link.buffer = buffer),
        preset,
        "The most that may wait, without the packet that is being sent.",
    )
    .in_line(Word::Bare("96kB, 50packets, unbounded"))
}

const QUEUE: Key<Link> = Key::new(
    "queue",
    Kind::Algorithm(Role::Queue, |link, queue| link.queue = queue),
    Preset::Text("droptail"),
    "The queue discipline in front of the link.",
);

const ESTIMATOR: Key<Link> = Key::new(
    "estimator",
    Kind::Algorithm(Role::Estimator, |link, estimator| link.estimator = Some(estimator)),
    Preset::Unset { means: "none", example: "\"bursts\"" },
    "The estimator of round-trip times from arriving packets, as columns of the link's series.",
);

const LINK_LOSS: Key<Link> = Key::new(
    "loss",
    Kind::Loss(&LOSS, |link: &mut Link, loss| link.impairments.loss = loss),
    Preset::Text("0%"),
    "Random loss after transmission: of each packet alone, or in bursts by a table (Gilbert-Elliott).",
)
.in_line(Word::Named { name: "loss", form: "P", example: "1%" });

const JITTER: Key<Link> = Key::new(
    "jitter",
    Kind::Time(|link: &mut Link, time| link.impairments.jitter = time),
    Preset::Text("0s"),
    "Extra delay, uniform from zero to this; packets keep their order.",
)
.in_line(Word::Named { name: "jitter", form: "TIME", example: "1ms" });

const LINK_REORDERING: Key<Link> = Key::new(
    "reordering",
    Kind::Section(&REORDERING, |link: &mut Link, table, shared| {
        let mut reordering = Reordering { probability: Probability::ZERO, delay: Duration::ZERO };
        REORDERING.enter(&mut reordering, table, shared)?;
        link.impairments.reordering = Some(reordering);
        Ok(())
    }),
    Preset::Unset { means: "no reordering", example: "{ probability = \"1%\", delay = \"10ms\" }" },
    "Packets held back so that later ones overtake them.",
)
.in_line(Word::Named { name: "reorder", form: "SHARE/DELAY", example: "1%/10ms" });

const LINK_DETOUR: Key<Link> = Key::new(
    "detour",
    Kind::Section(&DETOUR, |link: &mut Link, table, shared| {
        let mut detour = Detour { delay: Duration::ZERO, during: Vec::new() };
        DETOUR.enter(&mut detour, table, shared)?;
        link.impairments.detour = Some(detour);
        Ok(())
    }),
    Preset::Unset { means: "no detour", example: "{ delay = \"60ms\", during = \"10s..15s\" }" },
    "Times in which packets go a longer way, as while a route is another one.",
)
.in_line(Word::Named { name: "detour", form: "DELAY/FROM..TO", example: "60ms/10s..15s" });

const fn outages(means: &'static str) -> Key<Link> {
    Key::new(
        "outages",
        Kind::Periods(|link: &mut Link, outages| link.impairments.outages = outages),
        Preset::Unset { means, example: "[\"10s..15s\", \"40s..\"]" },
        "When nothing gets through: packets that leave the link meanwhile are lost.",
    )
    .in_line(Word::Named { name: "outages", form: "FROM..TO,..", example: "10s..15s" })
}

const fn reported(preset: bool) -> Key<Link> {
    Key::new(
        "reported",
        Kind::Flag(|link, reported| link.reported = reported),
        Preset::Flag(preset),
        "Whether results show this direction of the link.",
    )
}

/// A `[[link]]`.
pub(crate) const LINK: Keys<Link> = Keys(&[
    Key::new(
        "name",
        Kind::Name(|link, name| link.name = name),
        Preset::Required("\"bottleneck\""),
        "Unique; the way back is called NAME-reverse.",
    ),
    Key::new(
        "between",
        Kind::TwoNames(|link, nodes| (link.from, link.to) = nodes),
        Preset::Required("[\"sender\", \"receiver\"]"),
        "The nodes that it connects; the keys of the link itself hold from the first to the second.",
    ),
    Key::new(
        "duplex",
        // Read apart: it is not of one direction.
        Kind::Flag(|_, _| {}),
        Preset::Flag(true),
        "Whether there is a way back; the keys of [link.reverse] hold for it.",
    ),
    rate(Preset::Required("\"2Mbit\"")),
    TRACE,
    SCHEDULE,
    HSDPA_LINK,
    MEDIUM_LINK,
    SHAPER,
    delay(Preset::Text("0s")),
    overhead(Preset::Text("0B")),
    buffer(Preset::Text(crate::text::DEFAULT_BUFFER)),
    QUEUE,
    LINK_LOSS,
    JITTER,
    LINK_REORDERING,
    LINK_DETOUR,
    outages("none"),
    ESTIMATOR,
    reported(true),
    Key::new(
        "reverse",
        Kind::Apart(&REVERSE),
        Preset::Unset { means: "the defaults of its keys", example: "{ rate = \"64kbit\" }" },
        "The way back.",
    ),
]);

/// A `[link.reverse]`.
pub(crate) const REVERSE: Keys<Link> = Keys(&[
    rate(Preset::Unset {
        means: "rate, trace, schedule or medium of the link; \"unlimited\" beside hsdpa",
        example: "\"64kbit\"",
    }),
    TRACE,
    SCHEDULE,
    HSDPA_LINK,
    MEDIUM_LINK,
    delay(Preset::Unset { means: "delay of the link, for HSDPA with its uplink_delay", example: "\"90ms\"" }),
    overhead(Preset::Unset { means: "overhead of the link", example: "\"28B\"" }),
    buffer(Preset::Text("unbounded")),
    QUEUE,
    LINK_LOSS,
    JITTER,
    LINK_REORDERING,
    LINK_DETOUR,
    outages("outages of the link"),
    reported(false),
]);

/// The table form of `loss`.
pub(crate) const LOSS: Keys<Loss> = Keys(&[
    Key::new(
        "to_bad",
        Kind::Probability(|loss, share| {
            if let Loss::GilbertElliott { to_bad, .. } = loss {
                *to_bad = share;
            }
        }),
        Preset::Required("\"1%\""),
        "From the good state to the bad one, per packet.",
    ),
    Key::new(
        "to_good",
        Kind::Probability(|loss, share| {
            if let Loss::GilbertElliott { to_good, .. } = loss {
                *to_good = share;
            }
        }),
        Preset::Required("\"30%\""),
        "From the bad state to the good one, per packet.",
    ),
    Key::new(
        "loss_good",
        Kind::Probability(|loss, share| {
            if let Loss::GilbertElliott { loss_good, .. } = loss {
                *loss_good = share;
            }
        }),
        Preset::Text("0%"),
        "Loss in the good state.",
    ),
    Key::new(
        "loss_bad",
        Kind::Probability(|loss, share| {
            if let Loss::GilbertElliott { loss_bad, .. } = loss {
                *loss_bad = share;
            }
        }),
        Preset::Text("100%"),
        "Loss in the bad state.",
    ),
]);

/// The table `reordering`.
pub(crate) const REORDERING: Keys<Reordering> = Keys(&[
    Key::new(
        "probability",
        Kind::Probability(|reordering, share| reordering.probability = share),
        Preset::Required("\"1%\""),
        "Share of the packets held back.",
    ),
    Key::new(
        "delay",
        Kind::Time(|reordering, time| reordering.delay = time),
        Preset::Required("\"10ms\""),
        "For how long.",
    ),
]);

/// The table `detour`.
pub(crate) const DETOUR: Keys<Detour> = Keys(&[
    Key::new(
        "delay",
        Kind::Time(|detour, time| detour.delay = time),
        Preset::Required("\"60ms\""),
        "Delay beside that of the link.",
    ),
    Key::new(
        "during",
        Kind::Periods(|detour, during| detour.during = during),
        Preset::Required("\"10s..15s\""),
        "When packets that leave the link go the longer way.",
    ),
]);
