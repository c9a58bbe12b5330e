//! A `[[link]]` to links.

use suimon_model::{Capacity, Impairments, Link};
use suimon_units::{Duration, Rate};

use super::fields::Fields;
use super::keys::{LINK, REVERSE};
use super::shared::Shared;
use crate::error::{Problem, ScenarioError};

/// The link and, unless it has none, the way back.
pub(super) fn read(fields: &Fields<'_>, shared: &Shared<'_>) -> Result<Vec<Link>, ScenarioError> {
    let mut there = Link::delaying(String::new(), "", "", Duration::ZERO);
    LINK.enter(&mut there, fields, shared)?;
    if fields.field("duplex")?.flag()? {
        let mut back = way_back(&there);
        REVERSE.enter(&mut back, &fields.table_or_empty("reverse")?, shared)?;
        return Ok(vec![there, back]);
    }
    match fields.optional("reverse") {
        Some(reverse) => Err(reverse.error(Problem::Exclusive { other: "duplex = false".to_owned() })),
        None => Ok(vec![there]),
    }
}

/// What holds of the way back where nothing is said of it, and no key has a default.
fn way_back(there: &Link) -> Link {
    Link {
        capacity: match &there.capacity {
            // A cell sends one way, and so does a shaper.
            Capacity::Hsdpa(_) | Capacity::Shaped(_) => Capacity::Rate(Rate::MAX),
            same => same.clone(),
        },
        overhead: there.overhead,
        impairments: Impairments { outages: there.impairments.outages.clone(), ..Impairments::default() },
        ..Link::delaying(
            Link::other_direction(&there.name),
            &there.to,
            &there.from,
            there.delay + there.capacity.uplink_delay(),
        )
    }
}

#[cfg(test)]
mod tests {
    use suimon_radio::hsdpa;
    use suimon_units::{Instant, Probability};

    use super::super::testing::{FLOW, LINK, message, one, runs};
    use super::*;
    use suimon_model::{Buffer, Loss, Outage};

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
