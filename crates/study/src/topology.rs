//! The network of runs, for the page's drawing.

use std::collections::HashMap;

use suimon_report::{CHANGE_AXIS, Topology, TopologyFlows, TopologyLink, UNCHANGED};
use suimon_scenario::{Buffer, Capacity, Link, Run, Scenario};
use suimon_units::{Duration, Rate};

/// More nodes cannot be told apart in a drawing.
const MAX_NODES: usize = 12;
/// Names of flows with the same ends that are listed; of more, the number is.
const MAX_NAMES: usize = 4;
/// Values of one quantity that are listed where runs differ by it.
const MAX_VALUES: usize = 3;

/// The network of those of `runs` that have the most links, with what the links are in all of these; without the changes
/// that are tried. `None` where it is too large to be drawn.
#[must_use]
pub fn topology(runs: &[Run]) -> Option<Topology> {
    let is_change =
        |run: &&Run| run.labels.iter().any(|(axis, value)| axis == CHANGE_AXIS && value != UNCHANGED);
    let scenarios: Vec<_> = runs.iter().filter(|run| !is_change(run)).map(|run| &run.scenario).collect();
    // Of equally large ones the first.
    let first = *scenarios.iter().rev().max_by_key(|scenario| scenario.links.len())?;
    let alike: Vec<&Scenario> = scenarios.into_iter().filter(|other| has_links_of(other, first)).collect();
    let mut drawn = Topology { nodes: Vec::new(), links: Vec::new(), flows: Vec::new() };
    for (nth, link) in first.links.iter().enumerate() {
        let (from, to) = (drawn.node(&link.from), drawn.node(&link.to));
        let text = text(&alike.iter().map(|scenario| &scenario.links[nth]).collect::<Vec<_>>());
        match drawn
            .links
            .iter_mut()
            .find(|known| (known.from, known.to) == (to, from) && known.text.len() == 1)
        {
            Some(known) if known.text[0] != text => known.text.push(text),
            Some(known) => known.text.push(String::new()),
            None => drawn.links.push(TopologyLink { from, to, text: vec![text] }),
        }
    }
    drawn.links.iter_mut().for_each(|link| mark_directions(&mut link.text));
    let drawn = with_flows(drawn, first).grouped();
    (drawn.nodes.len() <= MAX_NODES).then_some(drawn)
}

fn has_links_of(one: &Scenario, other: &Scenario) -> bool {
    let ends = |scenario: &Scenario| -> Vec<[String; 2]> {
        scenario.links.iter().map(|link| [link.from.clone(), link.to.clone()]).collect()
    };
    one.links.len() == other.links.len() && ends(one) == ends(other)
}

/// An empty second line says that both directions are the same.
fn mark_directions(text: &mut Vec<String>) {
    match text.as_mut_slice() {
        [_, back] if back.is_empty() => text.truncate(1),
        [there, back] => {
            *there = format!("→ {there}");
            *back = format!("← {back}");
        }
        [there] => *there = format!("→ {there}"),
        _ => {}
    }
}

/// What the same link is in all runs.
fn text(links: &[&Link]) -> String {
    let parts: [fn(&Link) -> String; 5] = [rate, delay, buffer, queue, losses];
    let values = parts.map(|part| {
        let mut values: Vec<String> = Vec::new();
        for value in links.iter().map(|link| part(link)).filter(|value| !value.is_empty()) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match values.len() {
            0..=MAX_VALUES => values.join(" or "),
            count => format!("{} or {} others", values[0], count - 1),
        }
    });
    values.into_iter().filter(|value| !value.is_empty()).collect::<Vec<_>>().join(", ")
}

fn rate(link: &Link) -> String {
    match &link.capacity {
        Capacity::Rate(rate) if *rate == Rate::MAX => String::new(),
        Capacity::Rate(rate) => rate.to_string(),
        Capacity::Opportunities { .. } => "trace".to_owned(),
        Capacity::Steps { .. } => "schedule of rates".to_owned(),
        Capacity::Hsdpa(_) => "HSDPA cell".to_owned(),
        Capacity::Wifi(_) => "802.11".to_owned(),
        Capacity::Shaped(shaper) => format!("shaper {}", shaper.label()),
    }
}

fn delay(link: &Link) -> String {
    if link.delay == Duration::ZERO { String::new() } else { link.delay.to_string() }
}

fn buffer(link: &Link) -> String {
    match link.buffer {
        Buffer::Packets(packets) => format!("{packets} packets"),
        Buffer::Bytes(bytes) => bytes.to_string(),
        Buffer::Unbounded => String::new(),
    }
}

/// A queue in which nothing can wait says nothing.
fn queue(link: &Link) -> String {
    let waits = !matches!(link.capacity, Capacity::Rate(Rate::MAX));
    if waits { link.queue.label().to_owned() } else { String::new() }
}

fn losses(link: &Link) -> String {
    if link.impairments.lose_nothing() { String::new() } else { "loses packets".to_owned() }
}

fn with_flows(mut drawn: Topology, scenario: &Scenario) -> Topology {
    let mut ends: Vec<((usize, usize), Vec<&str>)> = Vec::new();
    for flow in &scenario.flows {
        let key = (drawn.node(&flow.from), drawn.node(&flow.to));
        match ends.iter_mut().find(|(known, _)| *known == key) {
            Some((_, names)) => names.push(&flow.name),
            None => ends.push((key, vec![&flow.name])),
        }
    }
    drawn.flows = ends
        .into_iter()
        .map(|((from, to), names)| TopologyFlows {
            from,
            to,
            names: match names.len().checked_sub(MAX_NAMES) {
                None | Some(0) => names.join(", "),
                Some(_) => format!("{} and {} others", names[..2].join(", "), names.len() - 2),
            },
        })
        .collect();
    drawn
}

/// What the drawing is made with.
trait Drawing {
    /// The position of the node called `name`, which is added if missing.
    fn node(&mut self, name: &str) -> usize;
    /// The same with hosts as one that have one link each, of the same kind to the same node.
    fn grouped(self) -> Self;
}

impl Drawing for Topology {
    fn node(&mut self, name: &str) -> usize {
        self.nodes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.nodes.len() - 1
        })
    }

    fn grouped(self) -> Self {
        /// Fewer are drawn one by one.
        const LEAST: usize = 3;
        let mut degree = vec![0; self.nodes.len()];
        self.links.iter().flat_map(|link| [link.from, link.to]).for_each(|node| degree[node] += 1);
        let mut groups: HashMap<(usize, bool, &[String]), Vec<usize>> = HashMap::new();
        for link in &self.links {
            for (leaf, hub, is_first) in [(link.from, link.to, true), (link.to, link.from, false)] {
                if degree[leaf] == 1 {
                    groups.entry((hub, is_first, &link.text)).or_default().push(leaf);
                }
            }
        }
        let mut stands_for: Vec<usize> = (0..self.nodes.len()).collect();
        let mut names = self.nodes.clone();
        for leaves in groups.into_values().filter(|leaves| leaves.len() >= LEAST) {
            names[leaves[0]] = format!("{} … ({})", self.nodes[leaves[0]], leaves.len());
            leaves.iter().for_each(|leaf| stands_for[*leaf] = leaves[0]);
        }
        let kept: Vec<usize> = (0..names.len()).filter(|node| stands_for[*node] == *node).collect();
        let place = |node: usize| kept.iter().position(|kept| *kept == stands_for[node]).unwrap_or_default();
        let mut links: Vec<TopologyLink> = Vec::new();
        for link in &self.links {
            let link = TopologyLink { from: place(link.from), to: place(link.to), text: link.text.clone() };
            if !links.contains(&link) {
                links.push(link);
            }
        }
        let mut flows: Vec<TopologyFlows> = Vec::new();
        for flow in &self.flows {
            let (from, to) = (place(flow.from), place(flow.to));
            match flows.iter_mut().find(|known| (known.from, known.to) == (from, to)) {
                Some(known) if !known.names.ends_with('…') => known.names += ", …",
                Some(_) => {}
                None => flows.push(TopologyFlows { from, to, names: flow.names.clone() }),
            }
        }
        Self { nodes: kept.iter().map(|node| names[*node].clone()).collect(), links, flows }
    }
}

#[cfg(test)]
mod tests {
    use suimon_scenario::Document;

    use super::*;

    fn drawn(text: &str) -> Option<Topology> {
        topology(&Document::parse(text, "test.toml").unwrap().runs().unwrap())
    }

    #[test]
    fn directions_are_one_link_and_what_runs_differ_by_is_listed() {
        let text = "duration = \"1s\"
            [[link]]
            name = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"2Mbit\"\ndelay = \"10ms\"\nbuffer = \"5packets\"\nreverse = { rate = \"1Mbit\" }
            [[flow]]
            name = \"f\"\nfrom = \"a\"\nto = \"b\"\ncc = \"reno\"
            [[matrix]]
            set = \"link.l.delay\"\nvalues = [\"10ms\", \"20ms\"]";
        let drawn = drawn(text).unwrap();
        assert_eq!(drawn.nodes, ["a", "b"]);
        assert_eq!(drawn.links.len(), 1);
        assert_eq!(drawn.links[0].text[0], "→ 2 Mbit/s, 10 ms or 20 ms, 5 packets, droptail");
        assert!(drawn.links[0].text[1].starts_with("← 1 Mbit/s"), "{:?}", drawn.links);
        assert_eq!(drawn.flows, [TopologyFlows { from: 0, to: 1, names: "f".to_owned() }]);
    }

    #[test]
    fn hosts_that_are_alike_are_one_and_large_networks_are_not_drawn() {
        let dumbbell = |rates: &dyn Fn(usize) -> usize| {
            let mut text = "duration = \"1s\"\n".to_owned();
            for n in 0..20 {
                text += &format!(
                    "[[link]]\nname = \"l{n}\"\nbetween = [\"s{n}\", \"r\"]\nrate = \"{}Mbit\"\ndelay = \"1ms\"\n\
                     [[flow]]\nname = \"f{n}\"\nfrom = \"s{n}\"\nto = \"d\"\ncc = \"reno\"\n",
                    rates(n)
                );
            }
            text + "[[link]]\nname = \"l\"\nbetween = [\"r\", \"d\"]\nrate = \"1Mbit\"\ndelay = \"9ms\"\n"
        };
        let alike = drawn(&dumbbell(&|_| 100)).unwrap();
        assert_eq!(alike.nodes, ["s0 … (20)", "r", "d"]);
        assert_eq!((alike.links.len(), alike.flows[0].names.as_str()), (2, "f0, …"));
        assert_eq!(drawn(&dumbbell(&|n| n + 1)), None);
    }
}
