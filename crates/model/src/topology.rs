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
            None if let Traffic::Tcp(tcp) = &flow.traffic
                && let Some(gateway) = &tcp.gateway =>
            {
                let node = self.leaving.get_key_value(gateway.node.as_str()).map(|(node, _)| *node);
                let Some(node) = node.filter(|node| *node != flow.from && *node != flow.to) else {
                    let accepted = "a node between the ends of the flow";
                    return refuse("gateway.node", &gateway.node, "is none on the way", accepted);
                };
                // Each half is a connection of its own, with a way and a way back.
                for (from, to) in [(flow.from.as_str(), node), (node, flow.to.as_str())] {
                    let there = self.carries(from, to, data)?;
                    let back = self.carries(to, from, tcp.profile.header)?;
                    if there == Passage::Timeless && back == Passage::Timeless {
                        let accepted = "a rate or a delay on some link of each half";
                        return refuse(
                            "gateway.node",
                            &gateway.node,
                            "is no time away from an end",
                            accepted,
                        );
                    }
                }
                return Ok(());
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
                return Some(std::iter::successors(last, back).collect());
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

impl Scenario {
    /// The links that the packets of `flow` take, and those that answers to them take; none where nothing answers.
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
