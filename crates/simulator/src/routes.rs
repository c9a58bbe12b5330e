//! Shortest paths over the scenario's links.

use std::collections::{HashMap, VecDeque};

use suimon_scenario::Scenario;

/// Ends a route in [`Routes::hops`].
pub(crate) const DELIVER: u32 = u32::MAX;

/// Every route in use, one after the other, each ended by [`DELIVER`]; a packet holds its place in it.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) hops: Vec<u32>,
    known: HashMap<(usize, usize), u32>,
    nodes: HashMap<String, usize>,
    /// Links that leave each node, with the node that they lead to.
    leaving: Vec<Vec<(u32, usize)>>,
}

impl Routes {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut routes =
            Self { hops: Vec::new(), known: HashMap::new(), nodes: HashMap::new(), leaving: Vec::new() };
        for (index, link) in scenario.links.iter().enumerate() {
            let (from, to) = (routes.node(&link.from), routes.node(&link.to));
            routes.leaving[from].push((index as u32, to));
        }
        routes
    }

    fn node(&mut self, name: &str) -> usize {
        if let Some(&node) = self.nodes.get(name) {
            return node;
        }
        let node = self.leaving.len();
        self.nodes.insert(name.to_owned(), node);
        self.leaving.push(Vec::new());
        node
    }

    /// Where the route from one node to the other begins in `hops`: fewest links, and of equally
    /// short ones that over the links that come first in the scenario.
    ///
    /// # Panics
    /// When there is none; a validated scenario has one for each of its flows.
    pub(crate) fn between(&mut self, from: &str, to: &str) -> u32 {
        let (from, to) = (self.node(from), self.node(to));
        if let Some(&start) = self.known.get(&(from, to)) {
            return start;
        }
        let mut reached_by = vec![None; self.leaving.len()];
        let mut frontier = VecDeque::from([from]);
        while let Some(node) = frontier.pop_front() {
            for &(link, next) in &self.leaving[node] {
                if next != from && reached_by[next].is_none() {
                    reached_by[next] = Some((link, node));
                    frontier.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let (link, previous) =
                reached_by[node].expect("a validated scenario connects the ends of its flows");
            path.push(link);
            node = previous;
        }
        let start = self.hops.len() as u32;
        self.hops.extend(path.into_iter().rev());
        self.hops.push(DELIVER);
        self.known.insert((from, to), start);
        start
    }
}
