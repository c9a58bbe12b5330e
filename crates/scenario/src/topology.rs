//! Whether the links lead where the flows go.

use std::collections::{BTreeMap, HashMap, VecDeque};

use suimon_units::Bytes;

use crate::check::{Checked, refuse};
use crate::error::{Problem, closest};
use crate::model::{Buffer, Flow, Link, Traffic};

/// Which links lead where, and which pairs of nodes were found connected.
pub(crate) struct Topology<'a> {
    links: &'a [Link],
    leaving: BTreeMap<&'a str, Vec<usize>>,
    /// Largest packet known to fit the buffers from one node to another.
    known: HashMap<(&'a str, &'a str), Bytes>,
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
                // A topology of thousands of nodes is not worth printing in full.
                let accepted: Vec<_> = self.leaving.keys().take(20).copied().collect();
                let problem = Problem::UnknownName {
                    what: "node",
                    name: node.clone(),
                    suggestion: closest(node, self.leaving.keys().copied()),
                    accepted: accepted.join(", "),
                };
                return Err((key.to_owned(), problem));
            }
        }
        if flow.from == flow.to {
            return refuse("to", &&flow.to, "is where the flow comes from", "another node");
        }
        let (data, answer) = match &flow.traffic {
            Traffic::Tcp(tcp) => (tcp.profile.packet_size(), Some(tcp.profile.header)),
            Traffic::Udp(udp) => (udp.packet, None),
        };
        self.carries(&flow.from, &flow.to, data)?;
        answer.map_or(Ok(()), |size| self.carries(&flow.to, &flow.from, size))
    }

    /// Checks that packets of `size` get from one node to the other over a shortest path.
    fn carries(&mut self, from: &'a str, to: &'a str, size: Bytes) -> Checked {
        if self.known.get(&(from, to)).is_some_and(|known| *known >= size) {
            return Ok(());
        }
        let Some(path) = self.path(from, to) else {
            return Err(("to".to_owned(), Problem::NoRoute { from: from.to_owned(), to: to.to_owned() }));
        };
        for link in path {
            if matches!(link.buffer, Buffer::Bytes(room) if room < size) {
                let accepted = format!("at least {size}, the largest packet of a flow over it");
                return refuse(
                    &format!("/link.{}.buffer", link.name),
                    &link.buffer_text(),
                    "holds no packet",
                    accepted,
                );
            }
        }
        self.known.insert((from, to), size);
        Ok(())
    }

    fn path(&self, from: &'a str, to: &'a str) -> Option<Vec<&'a Link>> {
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

impl Link {
    fn buffer_text(&self) -> String {
        match self.buffer {
            Buffer::Packets(count) => format!("{count} packets"),
            Buffer::Bytes(size) => size.to_string(),
            Buffer::Unbounded => "unbounded".to_owned(),
        }
    }
}
