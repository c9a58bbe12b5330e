//! A `[[link]]` to links.

use std::sync::Arc;

use suimon_algorithms::registry::Role;
use suimon_radio::{hsdpa, wlan};
use suimon_units::Rate;

use super::fields::{Field, Fields};
use super::files::{Files, Format};
use crate::error::{Problem, ScenarioError, closest};
use suimon_model::{Capacity, Cell, Hsdpa, Impairments, Link, Loss, Medium, Reordering};

/// What links share by name, and the files that they name.
pub(super) struct Shared<'a> {
    pub(super) files: &'a Files,
    pub(super) cells: Vec<Arc<Cell>>,
    pub(super) media: Vec<Arc<Medium>>,
}

/// The link and, unless it has none, the way back.
pub(super) fn read(fields: &Fields<'_>, shared: &Shared<'_>) -> Result<Vec<Link>, ScenarioError> {
    let name = fields.field("name")?.name()?;
    let (from, to) = fields.field("between")?.two_names()?;
    let reverse_name = Link::other_direction(&name);
    let there = direction(fields, shared, None, name, from, to)?;
    if fields.field("duplex")?.flag()? {
        let reverse = fields.inner_or_empty("reverse")?;
        let (from, to) = (there.to.clone(), there.from.clone());
        let back = direction(&reverse, shared, Some(&there), reverse_name, from, to)?;
        return Ok(vec![there, back]);
    }
    match fields.optional("reverse") {
        Some(reverse) => Err(reverse.error(Problem::Exclusive { other: "duplex = false".to_owned() })),
        None => Ok(vec![there]),
    }
}

/// One direction; what is left out of a way back is as on the way `there`.
fn direction(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    there: Option<&Link>,
    name: String,
    from: String,
    to: String,
) -> Result<Link, ScenarioError> {
    let delay = match (fields.optional("delay"), there) {
        (None, Some(there)) => there.delay + there.capacity.uplink_delay(),
        _ => fields.field("delay")?.time()?,
    };
    Ok(Link {
        name,
        from,
        to,
        capacity: capacity(fields, shared, there)?,
        delay,
        overhead: match (fields.optional("overhead"), there) {
            (None, Some(there)) => there.overhead,
            _ => fields.field("overhead")?.bytes()?,
        },
        buffer: fields.field("buffer")?.buffer()?,
        queue: fields.field("queue")?.algorithm(Role::Queue)?,
        impairments: impairments(fields, there)?,
        estimator: match there.map_or_else(|| fields.optional("estimator"), |_| None) {
            Some(field) => Some(field.algorithm(Role::Estimator)?),
            None => None,
        },
        reported: fields.field("reported")?.flag()?,
    })
}

fn impairments(fields: &Fields<'_>, there: Option<&Link>) -> Result<Impairments, ScenarioError> {
    Ok(Impairments {
        loss: loss(fields)?,
        jitter: fields.field("jitter")?.time()?,
        reordering: match fields.inner("reordering")? {
            Some(table) => Some(Reordering {
                probability: table.field("probability")?.probability()?,
                delay: table.field("delay")?.time()?,
            }),
            None => None,
        },
        outages: match (fields.optional("outages"), there) {
            (Some(field), _) => field.outages()?,
            (None, Some(there)) => there.impairments.outages.clone(),
            (None, None) => Vec::new(),
        },
    })
}

fn capacity(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    there: Option<&Link>,
) -> Result<Capacity, ScenarioError> {
    let load = |field: &Field<'_>, format| shared.files.capacity(field, format);
    if let Some(trace) = fields.optional("trace") {
        return load(&trace, Format::Mahimahi);
    }
    if let Some(schedule) = fields.optional("schedule") {
        return load(&schedule, Format::Schedule);
    }
    if let Some(table) = fields.inner("hsdpa")? {
        let mut terminal = terminal(&table)?;
        if let Some(field) = table.optional("cell") {
            terminal.cell = Some(named(&field, "cell", &shared.cells, |cell| &cell.name)?);
        }
        return Ok(Capacity::Hsdpa(Box::new(terminal)));
    }
    if let Some(field) = fields.optional("medium") {
        return named(&field, "medium", &shared.media, |medium| &medium.name).map(Capacity::Wifi);
    }
    match (fields.optional("rate"), there.map(|there| &there.capacity)) {
        // A cell sends one way.
        (None, Some(Capacity::Hsdpa(_))) => Ok(Capacity::Rate(Rate::MAX)),
        (None, Some(there)) => Ok(there.clone()),
        _ => fields.field("rate")?.link_rate().map(Capacity::Rate),
    }
}

pub(super) fn terminal(table: &Fields<'_>) -> Result<Hsdpa, ScenarioError> {
    let category = u8::try_from(table.field("category")?.count()?).ok().and_then(hsdpa::Category::new);
    let user = hsdpa::UserParameters {
        profile: table.field("profile")?.fading()?,
        geometry: table.field("geometry")?.decibels()?,
        power: table.field("power")?.decibels()?,
        self_interference: match table.optional("self_interference") {
            Some(field) => Some(field.probability()?),
            None => None,
        },
        cqi_error: table.field("cqi_error")?.decibels()?,
        cqi_error_hold: table.field("cqi_error_hold")?.time()?,
        cqi_delay: table.field("cqi_delay")?.time()?,
        cqi_period: table.field("cqi_period")?.time()?,
        category: category.expect("the schema's limits are those of a category"),
        harq_transmissions: u32::try_from(table.field("harq_transmissions")?.count()?).unwrap_or(u32::MAX),
        rlc_resend: table.field("rlc_resend")?.time()?,
        delivery: table
            .field("delivery")?
            .choice(&[("in-order", hsdpa::Delivery::InOrder), ("credit", hsdpa::Delivery::Credit)])?,
        handover_every: match table.optional("handover_every") {
            Some(field) => Some(field.time()?),
            None => None,
        },
        handover_gap: table.field("handover_gap")?.time()?,
    };
    Ok(Hsdpa { user, cell: None, uplink_delay: table.field("uplink_delay")?.time()? })
}

/// The one of `all` that `field` names.
fn named<T>(
    field: &Field<'_>,
    what: &'static str,
    all: &[Arc<T>],
    name_of: impl Fn(&T) -> &String,
) -> Result<Arc<T>, ScenarioError> {
    let name = field.name()?;
    if let Some(found) = all.iter().find(|one| *name_of(one) == name) {
        return Ok(Arc::clone(found));
    }
    let names: Vec<_> = all.iter().map(|one| name_of(one).as_str()).collect();
    Err(field.error(Problem::UnknownName {
        what,
        suggestion: closest(&name, names.iter().copied()),
        accepted: if names.is_empty() { format!("the name of a [[{what}]]") } else { names.join(", ") },
        name,
    }))
}

/// A `[[medium]]`, or what stands for one in a line of words, called `name`.
pub(super) fn medium(fields: &Fields<'_>, name: String) -> Result<Medium, ScenarioError> {
    let standards: Vec<_> = wlan::Standard::ALL.iter().map(|known| (known.as_str(), *known)).collect();
    let standard = fields.field("standard")?.choice(&standards)?;
    let known = wlan::Parameters::new(standard, fields.field("rate")?.rate()?);
    let time = |key, otherwise| fields.optional(key).map_or(Ok(otherwise), |field| field.time());
    let count = |key| fields.field(key)?.count().map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let parameters = wlan::Parameters {
        control_rate: match fields.optional("control_rate") {
            Some(field) => field.rate()?,
            None => known.control_rate,
        },
        preamble: fields
            .field("preamble")?
            .choice(&[("long", wlan::Preamble::Long), ("short", wlan::Preamble::Short)])?,
        slot: time("slot", known.slot)?,
        sifs: time("sifs", known.sifs)?,
        turnaround: time("turnaround", known.turnaround)?,
        propagation: fields.field("propagation")?.time()?,
        cw_min: if fields.optional("cw_min").is_some() { count("cw_min")? } else { known.cw_min },
        cw_max: count("cw_max")?,
        retry_limit: count("retry_limit")?,
        frame_loss: fields.field("frame_loss")?.probability()?,
        ..known
    };
    Ok(Medium { name, parameters })
}

/// All of what `fields` lists, each under a name of its own.
pub(super) fn all_named<T>(
    tables: &[Fields<'_>],
    what: &'static str,
    read: impl Fn(&Fields<'_>, String) -> Result<T, ScenarioError>,
) -> Result<Vec<Arc<T>>, ScenarioError> {
    let mut names = Vec::new();
    let mut all = Vec::new();
    for fields in tables {
        let field = fields.field("name")?;
        let name = field.name()?;
        if names.contains(&name) {
            return Err(field.error(Problem::Duplicate { what, name }));
        }
        names.push(name.clone());
        all.push(Arc::new(read(fields, name)?));
    }
    Ok(all)
}

/// A `[[cell]]`.
pub(super) fn cell(fields: &Fields<'_>, name: String) -> Result<Cell, ScenarioError> {
    let window = fields.field("window")?.time()?;
    let scheduler = fields.field("scheduler")?.choice(&[
        ("round-robin", hsdpa::Policy::RoundRobin),
        ("max-ci", hsdpa::Policy::MaxCarrierToInterference),
        ("proportional-fair", hsdpa::Policy::ProportionalFair { window }),
    ])?;
    Ok(Cell { name, scheduler })
}

fn loss(fields: &Fields<'_>) -> Result<Loss, ScenarioError> {
    let field = fields.field("loss")?;
    if field.node().table().is_none() {
        let probability = field.probability()?;
        return Ok(if probability.get() == 0.0 { Loss::None } else { Loss::Random(probability) });
    }
    let table = fields.inner_or_empty("loss")?;
    let probability = |key| table.field(key)?.probability();
    Ok(Loss::GilbertElliott {
        to_bad: probability("to_bad")?,
        to_good: probability("to_good")?,
        loss_good: probability("loss_good")?,
        loss_bad: probability("loss_bad")?,
    })
}

#[cfg(test)]
mod tests {
    use suimon_units::{Duration, Instant, Probability, Rate};

    use super::super::testing::{FLOW, LINK, message, one, runs};
    use super::*;
    use suimon_model::{Buffer, Outage};

    #[test]
    fn the_way_back_is_as_fast_and_as_long_but_not_shown() {
        let scenario = one(&[LINK, "loss = \"1%\"\nbuffer = \"50 packets\"", FLOW]);
        let [there, back] = scenario.links.as_slice() else { panic!("two links") };
        assert_eq!(there.buffer, Buffer::Packets(50));
        assert_eq!(there.impairments.loss, Loss::Random(Probability::clamped(0.01)));
        assert_eq!((&back.from, &back.to), (&there.to, &there.from));
        assert_eq!((&back.capacity, back.delay), (&there.capacity, there.delay));
        assert_eq!(
            (back.buffer, back.impairments.loss, back.reported),
            (Buffer::Unbounded, Loss::None, false)
        );
    }

    #[test]
    fn keys_of_the_way_back_hold_for_it_alone() {
        let reverse = "[link.reverse]\nrate = \"64kbit\"\ndelay = \"1ms\"\nbuffer = \"9kB\"\nreported = true";
        let scenario = one(&[LINK, reverse, FLOW]);
        assert_eq!(scenario.links[0].capacity, Capacity::Rate(Rate::from_bps(1_000_000)));
        assert_eq!(scenario.links[1].capacity, Capacity::Rate(Rate::from_bps(64_000)));
        assert_eq!(scenario.links[1].delay, Duration::from_millis(1));
        assert!(scenario.links[1].reported);
    }

    #[test]
    fn an_access_link_may_be_unlimited_but_must_say_so() {
        let access = "[[link]]\nname = \"access\"\nbetween = [\"receiver\", \"far\"]\nrate = \"unlimited\"";
        let scenario = one(&[LINK, access, &FLOW.replace("\"receiver\"", "\"far\"")]);
        assert_eq!(scenario.links[2].capacity, Capacity::Rate(Rate::MAX));
        assert!(
            message(&[
                &LINK.replace(
                    "rate = \"1Mbit\"
",
                    ""
                ),
                FLOW
            ])
            .contains("bottleneck.rate: missing")
        );
    }

    #[test]
    fn losses_come_alone_or_in_bursts() {
        let scenario = one(&[LINK, "loss = { to_bad = \"1%\", to_good = 0.3, loss_bad = \"50%\" }", FLOW]);
        let Loss::GilbertElliott { to_good, loss_good, loss_bad, .. } = scenario.links[0].impairments.loss
        else {
            panic!("bursts")
        };
        assert_eq!((to_good.get(), loss_good.get(), loss_bad.get()), (0.3, 0.0, 0.5));
        assert!(
            message(&[LINK, "loss = { to_bad = 0.1 }", FLOW])
                .contains("link.bottleneck.loss.to_good: missing")
        );
        assert!(message(&[LINK, "loss = \"101%\"", FLOW]).contains("out of range"));
        assert!(message(&[LINK, "loss = nan", FLOW]).contains("out of range"));
        assert!(message(&[LINK, "loss = [1]", FLOW]).contains("loss: is a list; accepted: a probability"));
    }

    #[test]
    fn reordering_takes_both_of_its_keys() {
        let scenario = one(&[LINK, "reordering = { probability = \"1%\", delay = \"10ms\" }", FLOW]);
        assert_eq!(scenario.links[0].impairments.reordering.unwrap().delay, Duration::from_millis(10));
        assert!(
            message(&[LINK, "reordering = { delay = \"10ms\" }", FLOW])
                .contains("reordering.probability: missing")
        );
        assert!(
            message(&[LINK, "reordering = \"1%\"", FLOW]).contains("accepted: a table of probability, delay")
        );
    }

    #[test]
    fn a_link_that_is_out_is_so_both_ways_unless_its_way_back_says_otherwise() {
        let outages = "outages = [\"10s..15s\", \"40s..\"]";
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let links = one(&[LINK, outages, FLOW]).links;
        let two = [Outage { from: at(10), to: at(15) }, Outage { from: at(40), to: Instant::MAX }];
        assert_eq!(
            (links[0].impairments.outages.as_slice(), links[1].impairments.outages.as_slice()),
            (&two[..], &two[..])
        );
        let links = one(&[LINK, outages, "[link.reverse]\noutages = []", FLOW]).links;
        assert_eq!((links[0].impairments.outages.len(), links[1].impairments.outages.len()), (2, 0));
        assert_eq!(one(&[LINK, "outages = \"1s..2s\"", FLOW]).links[0].impairments.outages.len(), 1);
        for (outages, told) in [
            ("\"10s\"", "link.bottleneck.outages: \"10s\" is not a period; accepted: periods"),
            ("\"10s..9s\"", "outages: \"10 s..9 s\" does not end after it begins"),
            ("[\"1s..3s\", \"2s..4s\"]", "outages: \"2 s..4 s\" begins before the one before has ended"),
            ("\"1s..2\"", "\"2\" has no unit"),
            ("\"..2s\"", "accepted: ns, us"),
            ("3", "\"3\" is not a period"),
            ("true", "is true or false; accepted: periods"),
        ] {
            let text = message(&[LINK, &format!("outages = {outages}"), FLOW]);
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn a_link_has_one_kind_of_capacity() {
        let text = message(&[LINK, "trace = \"x\"", FLOW]);
        assert!(text.contains("rate: excludes \"trace\""), "{text}");
        assert!(message(&[&LINK.replace("1Mbit", "0Mbit"), FLOW]).contains("rates above zero"));
        assert!(message(&[&LINK.replace("1Mbit", "-1Mbit"), FLOW]).contains("is negative"));
        assert!(message(&[&LINK.replace("1Mbit", "1MB"), FLOW]).contains("accepted: bit, kbit"));
    }

    #[test]
    fn a_cell_sends_one_way_and_the_way_back_takes_its_time() {
        let link = LINK.replace("rate = \"1Mbit\"", "hsdpa = { profile = \"PA3\", geometry = \"10dB\" }");
        let links = one(&[&link, FLOW]).links;
        assert!(matches!(&links[0].capacity, Capacity::Hsdpa(terminal) if terminal.cell.is_none()));
        assert_eq!(
            (&links[1].capacity, links[1].delay),
            (&Capacity::Rate(Rate::MAX), Duration::from_millis(125))
        );
        let links = one(&[&link, "[link.reverse]\nrate = \"64kbit\"\ndelay = \"1ms\"", FLOW]).links;
        assert_eq!(links[1].capacity, Capacity::Rate(Rate::from_bps(64_000)));
        assert_eq!(links[1].delay, Duration::from_millis(1));
    }

    #[test]
    fn links_share_a_cell_by_its_name() {
        let link = LINK
            .replace("rate = \"1Mbit\"", "hsdpa = { profile = \"PA3\", geometry = \"10dB\", cell = \"c\" }");
        let cell = "[[cell]]\nname = \"c\"\nscheduler = \"max-ci\"";
        let scenario = one(&[&link, cell, FLOW]);
        let Capacity::Hsdpa(terminal) = &scenario.links[0].capacity else { panic!("a radio") };
        let cell_of = terminal.cell.as_deref().unwrap();
        assert_eq!(cell_of.scheduler, hsdpa::Policy::MaxCarrierToInterference);
        let text = message(&[&link, &cell.replace("\"c\"", "\"cc\""), FLOW]);
        assert!(
            text.starts_with("test.toml:4: link.bottleneck.hsdpa.cell: no cell is called \"c\""),
            "{text}"
        );
        assert!(message(&[&link, cell, cell, FLOW]).contains("a second cell"));
        let fair = cell.replace("max-ci", "proportional-fair");
        assert!(
            message(&[&link, &fair, "window = \"0s\"", FLOW])
                .contains("cell.c.window: \"0 ns\" is out of range")
        );
    }

    #[test]
    fn a_simplex_link_has_no_way_back() {
        assert!(
            message(&[LINK, "duplex = false", FLOW])
                .contains("no links lead from \"receiver\" to \"sender\"")
        );
        let udp = FLOW.replace("cc = \"reno\"", "udp = { rate = \"1Mbit\" }");
        assert_eq!(one(&[LINK, "duplex = false", &udp]).links.len(), 1);
        assert!(message(&[LINK, "duplex = false\nreverse = {}", &udp]).contains("excludes"));
    }

    #[test]
    fn a_matrix_sets_one_parameter_of_an_algorithm_that_is_a_table() {
        let queue = "queue = { name = \"red\", min_th = \"9kB\" }";
        let matrix =
            |key: &str| format!("[[matrix]]\nset = \"link.bottleneck.queue.{key}\"\nvalues = [0.2, 0.3]");
        let runs = runs(&[LINK, queue, FLOW, &matrix("max_p")]).unwrap();
        assert_eq!(runs[1].scenario.links[0].queue.label(), "red:min_th=9kB:max_p=0.3");
        assert!(message(&[LINK, queue, FLOW, &matrix("max_q")]).contains("no parameter is called \"max_q\""));
        assert!(message(&[LINK, queue, FLOW, &matrix("max_p.x")]).contains("below a key that is no table"));
        let text = message(&[LINK, "queue = \"red\"", FLOW, &matrix("max_p")]);
        assert!(text.contains("queue: is not a table"), "{text}");
    }

    #[test]
    fn algorithms_are_refused_with_what_is_known() {
        assert!(message(&[LINK, "queue = \"dropptail\"", FLOW]).contains("did you mean \"droptail\"?"));
        assert!(message(&[LINK, "queue = { alpha = 2 }", FLOW]).contains("queue: missing; accepted: name"));
        assert!(
            message(&[LINK, "queue = { name = \"droptail\", x = 2 }", FLOW]).contains("no parameter \"x\"")
        );
    }
}
