//! Whether the links lead where the flows go.

use std::collections::{BTreeMap, HashMap, VecDeque};

use suimon_algorithms::queue::Buffer;
use suimon_units::{Bytes, Duration, Rate};

use crate::capacity::Capacity;
use crate::check::{Checked, refuse};
use crate::error::Problem;
use crate::flow::{Flow, Traffic, UdpFlow};
use crate::link::Link;
use crate::scenario::Scenario;

/// Whether the clock moves on while a packet travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    TakesTime,
    Timeless,
}

/// Which links lead where, and which pairs of nodes were found connected.
pub(crate) struct Topology<'a> {
    links: &'a [Link],
    leaving: BTreeMap<&'a str, Vec<usize>>,
    /// Largest packet known to fit the buffers from one node to another, and how it passes.
    known: HashMap<(&'a str, &'a str), (Bytes, Passage)>,
}

impl<'a> Topology<'a> {
    /// The topology that `links` make.
    pub(crate) fn new(links: &'a [Link]) -> Self {
        let mut leaving: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (position, link) in links.iter().enumerate() {
            leaving.entry(&link.from).or_default().push(position);
            leaving.entry(&link.to).or_default();
        }
        Self { links, leaving, known: HashMap::new() }
    }

    /// Checks that the packets of `flow` and the answers to them arrive.
    pub(crate) fn check(&mut self, flow: &'a Flow) -> Checked {
        for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
            if !self.leaving.contains_key(node.as_str()) {
                let known = self.leaving.keys().map(|known| (*known).to_owned()).collect();
                let problem = Problem::UnknownName { what: "node", name: node.clone(), known };
                return Err((key.to_owned(), problem));
            }
        }
        if flow.from == flow.to {
            return refuse("to", &&flow.to, "is where the flow comes from", "another node");
        }
        let (data, answer) = match &flow.traffic {
            Traffic::Tcp(tcp) => (tcp.profile.packet_size(), Some(tcp.profile.header)),
            Traffic::Udp(udp) => (udp.packet, udp.echo.then_some(udp.packet)),
        };
        let (there, back) = match &flow.via {
            _ if let Traffic::Tcp(tcp) = &flow.traffic
                && let Some(gateway) = &tcp.gateway =>
            {
                return self.check_halves(flow, &gateway.node, (data, tcp.profile.header));
            }
            Some(via) => {
                let forward = self.named(via, &flow.from, &flow.to)?;
                let there = passage(&forward, data)?;
                let Some(answer) = answer else { return Ok(()) };
                let names: Vec<_> = via.iter().rev().map(|name| Link::other_direction(name)).collect();
                let back = self.named(&names, &flow.to, &flow.from)?;
                (there, passage(&back, answer)?)
            }
            None => {
                let there = self.carries(&flow.from, &flow.to, data)?;
                let Some(answer) = answer else { return Ok(()) };
                (there, self.carries(&flow.to, &flow.from, answer)?)
            }
        };
        if there == Passage::Timeless && back == Passage::Timeless {
            // A window would follow the other without the clock moving on, and the run would never end.
            let accepted = "a rate or a delay on some link of the way";
            return refuse("to", &flow.to, "is no time away, there and back", accepted);
        }
        Ok(())
    }

    /// Checks both halves of a flow that is split at `node`: each is a connection of its own, with a way and a way back.
    fn check_halves(&mut self, flow: &'a Flow, node: &str, (data, answer): (Bytes, Bytes)) -> Checked {
        let known = self.leaving.get_key_value(node).map(|(node, _)| *node);
        let halves = known.filter(|node| *node != flow.from && *node != flow.to).and_then(|known| {
            let via = match &flow.via {
                Some(via) => Some(split_via(self.links, via, known)?),
                None => None,
            };
            Some((known, via))
        });
        let Some((node, via)) = halves else {
            let accepted = "a node between the ends of the flow";
            return refuse("gateway.node", &node, "is none on the way", accepted);
        };
        let ends = [(flow.from.as_str(), node), (node, flow.to.as_str())];
        for (half, (from, to)) in ends.into_iter().enumerate() {
            let (there, back) = match &via {
                Some(halves) => {
                    let names = if half == 0 { &halves.0 } else { &halves.1 };
                    let back: Vec<_> = names.iter().rev().map(|name| Link::other_direction(name)).collect();
                    let (there, back) = (self.named(names, from, to)?, self.named(&back, to, from)?);
                    (passage(&there, data)?, passage(&back, answer)?)
                }
                None => (self.carries(from, to, data)?, self.carries(to, from, answer)?),
            };
            if there == Passage::Timeless && back == Passage::Timeless {
                let accepted = "a rate or a delay on some link of each half";
                return refuse("gateway.node", &node, "is no time away from an end", accepted);
            }
        }
        Ok(())
    }

    /// Checks that packets of `size` get from one node to the other over a shortest path.
    fn carries(&mut self, from: &'a str, to: &'a str, size: Bytes) -> Result<Passage, (String, Problem)> {
        if let Some((known, passage)) = self.known.get(&(from, to))
            && *known >= size
        {
            return Ok(*passage);
        }
        let Some(path) = self.path(from, to) else {
            return Err(("to".to_owned(), Problem::NoRoute { from: from.to_owned(), to: to.to_owned() }));
        };
        let passage = passage(&path, size)?;
        self.known.insert((from, to), (size, passage));
        Ok(passage)
    }

    /// The links called `names`, which must lead from one node to the other.
    fn named(&self, names: &[String], from: &str, to: &str) -> Result<Vec<&'a Link>, (String, Problem)> {
        let refuse = |problem| Err(("via".to_owned(), problem));
        let (mut path, mut node) = (Vec::new(), from);
        for name in names {
            let Some(link) = self.links.iter().find(|link| link.name == *name) else {
                let known = self.links.iter().map(|link| link.name.clone()).collect();
                return refuse(Problem::UnknownName { what: "link", name: name.clone(), known });
            };
            if link.from != node {
                return refuse(Problem::NoRoute { from: node.to_owned(), to: link.from.clone() });
            }
            node = &link.to;
            path.push(link);
        }
        if node == to {
            Ok(path)
        } else {
            refuse(Problem::NoRoute { from: node.to_owned(), to: to.to_owned() })
        }
    }

    fn path<'b>(&'b self, from: &'b str, to: &str) -> Option<Vec<&'a Link>>
    where
        'a: 'b,
    {
        let links = self.links;
        let mut came_by: HashMap<&str, &Link> = HashMap::new();
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            if node == to {
                let back = |node: &&'a Link| came_by.get(node.from.as_str()).copied();
                let last = came_by.get(to).copied();
                let mut way: Vec<_> = std::iter::successors(last, back).collect();
                way.reverse();
                return Some(way);
            }
            for link in self.leaving[node].iter().map(|position| &links[*position]) {
                if link.to != from && !came_by.contains_key(link.to.as_str()) {
                    came_by.insert(&link.to, link);
                    next.push_back(&link.to);
                }
            }
        }
        None
    }
}

/// The links of `via` as far as `node`, and those behind it; none where it does not lie between two of them.
fn split_via(links: &[Link], via: &[String], node: &str) -> Option<(Vec<String>, Vec<String>)> {
    let leads_there = |name: &String| links.iter().any(|link| link.name == *name && link.to == node);
    let (before, behind) = via.split_at(via.iter().position(leads_there)? + 1);
    (!behind.is_empty()).then(|| (before.to_vec(), behind.to_vec()))
}

impl Scenario {
    /// The links that a flow `via` these passes before a gateway at `node`, and behind it.
    ///
    /// # Panics
    /// When the gateway is not on the way; that of a validated scenario is.
    #[must_use]
    pub fn halves_of(&self, via: &[String], node: &str) -> (Vec<String>, Vec<String>) {
        split_via(&self.links, via, node).expect("the gateway of a validated scenario is on the way")
    }

    /// The links that the packets of `flow` take, first to last, and those that answers to them take; none where nothing
    /// answers.
    ///
    /// # Panics
    /// When there is no way; a validated scenario has one for each of its flows.
    #[must_use]
    pub fn ways(&self, flow: &Flow) -> [Vec<&Link>; 2] {
        const VALIDATED: &str = "a validated scenario has a way for each of its flows";
        let topology = Topology::new(&self.links);
        let way = |from: &str, to: &str, names: Option<Vec<String>>| match names {
            Some(names) => topology.named(&names, from, to).unwrap_or_else(|_| unreachable!("{VALIDATED}")),
            None => topology.path(from, to).expect(VALIDATED),
        };
        let back =
            flow.via.as_ref().map(|via| via.iter().rev().map(|name| Link::other_direction(name)).collect());
        let back = match flow.traffic {
            Traffic::Udp(UdpFlow { echo: false, .. }) => Vec::new(),
            Traffic::Tcp(_) | Traffic::Udp(_) => way(&flow.to, &flow.from, back),
        };
        [way(&flow.from, &flow.to, flow.via.clone()), back]
    }
}

/// Checks that a packet of `size` fits every buffer on its way, and tells how it passes.
fn passage(path: &[&Link], size: Bytes) -> Result<Passage, (String, Problem)> {
    for link in path {
        if matches!(link.buffer, Buffer::Bytes(room) if room < size) {
            let accepted = format!("at least {size}, the largest packet of a flow over it");
            let key = format!("/link.{}.buffer", link.name);
            return refuse(&key, &link.buffer_text(), "holds no packet", accepted);
        }
    }
    let timeless = |link: &&Link| link.delay == Duration::ZERO && link.capacity == Capacity::Rate(Rate::MAX);
    Ok(if path.iter().all(timeless) { Passage::Timeless } else { Passage::TakesTime })
}

impl Link {
    /// What may wait, as users write it.
    #[must_use]
    pub fn buffer_text(&self) -> String {
        match self.buffer {
            Buffer::Packets(count) => format!("{count} packets"),
            Buffer::Bytes(size) => size.to_string(),
            Buffer::Unbounded => "unbounded".to_owned(),
        }
    }
}
