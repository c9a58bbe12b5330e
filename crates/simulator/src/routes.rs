//! Shortest paths over the scenario's links, as tables of steps.

use std::collections::{HashMap, VecDeque};

use suimon_model::{Capacity, Link, Scenario};
use suimon_units::{Duration, Instant, Rate};

use crate::events::Event;
use crate::link::line::Line;
use crate::link::wire::Wire;
use crate::packet::Frame;

/// Where a route begins that does not exist.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The next step on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The link with this index among the scenario's links.
    Link(u32),
    /// The wire with this index in [`Routes::wires`].
    Wire(u32),
    /// Past the shaper of this index, there or back.
    Shaper { index: u32, is_back: bool },
    /// The end.
    Deliver,
}

/// Every route in use, one after the other, each ended by [`Step::Deliver`]; a packet holds its place.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) steps: Vec<Step>,
    /// Each with the line where packets are that an event follows to the far end.
    wires: Vec<(Wire, u32)>,
    /// The wire that a link is, by index of the link.
    wire_of: Vec<Option<u32>>,
    /// Packets that an event follows to the end of a wire.
    pub(crate) lines: Vec<Line>,
}

impl Routes {
    /// One route, over the first link of all.
    #[cfg(test)]
    pub(crate) fn of_one_link() -> Self {
        let steps = vec![Step::Link(0), Step::Deliver];
        Self { steps, wires: Vec::new(), wire_of: vec![None], lines: Vec::new() }
    }

    /// Takes a packet over the wires that come next for it, if any, as is known `now`: it then bears the time at
    /// which it reaches the end of the last of them. Gives the line of that one, and the step that comes next.
    #[inline(always)]
    pub(crate) fn pass_wires(&mut self, now: Instant, frame: &mut Frame) -> (Option<u32>, Step) {
        let mut line = None;
        loop {
            let step = self.steps[frame.hop as usize];
            let Step::Wire(wire) = step else { return (line, step) };
            let (wire, its_line) = &mut self.wires[wire as usize];
            frame.time = wire.pass(now, frame.time, frame.size);
            frame.hop += 1;
            line = Some(*its_line);
        }
    }

    /// The wire that the link of this index is.
    pub(crate) fn wire_mut(&mut self, link: usize) -> Option<&mut Wire> {
        self.wire_of[link].map(|wire| &mut self.wires[wire as usize].0)
    }

    /// For each of so many links: how long at least a packet that it has sent takes over the wires behind it.
    pub(crate) fn onward(&self, links: usize) -> Vec<Duration> {
        let mut onward = vec![Duration::MAX; links];
        for (place, step) in self.steps.iter().enumerate() {
            if let Step::Link(link) = *step {
                let wires = self.steps[place + 1..].iter().map_while(|step| match *step {
                    Step::Wire(wire) => Some(self.wires[wire as usize].0.delay()),
                    _ => None,
                });
                let least = &mut onward[link as usize];
                *least = wires.fold(Duration::ZERO, |sum, delay| sum + delay).min(*least);
            }
        }
        onward
    }
}

/// Finds routes before the run begins.
#[derive(Debug)]
pub(crate) struct Planner<'a> {
    scenario: &'a Scenario,
    /// Indices of links, with [`Step::Deliver`] behind each route.
    steps: Vec<Step>,
    known: HashMap<(&'a str, &'a str), u32>,
    nodes: HashMap<&'a str, usize>,
    /// Links that leave each node, with the node that they lead to.
    leaving: Vec<Vec<(u32, usize)>>,
    /// What packets pass at the end of a link, by the link's name.
    shapers: HashMap<String, Step>,
}

/// Where the packets on a link come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feeder {
    Nobody,
    /// The flows that begin where it begins, or this one link.
    One(Option<u32>),
    Several,
}

impl<'a> Planner<'a> {
    /// Packets that pass the link called `crossed` there and back are shown as those of a shaper behind the last.
    pub(crate) fn new(scenario: &'a Scenario, crossed: Option<&str>) -> Self {
        let mut planner = Self {
            scenario,
            steps: Vec::new(),
            known: HashMap::new(),
            nodes: HashMap::new(),
            leaving: Vec::new(),
            shapers: shapers(scenario, crossed),
        };
        for (index, link) in scenario.links.iter().enumerate() {
            let (from, to) = (planner.node(&link.from), planner.node(&link.to));
            planner.leaving[from].push((index as u32, to));
        }
        planner
    }

    fn node(&mut self, name: &'a str) -> usize {
        let new = self.leaving.len();
        let node = *self.nodes.entry(name).or_insert(new);
        if node == new {
            self.leaving.push(Vec::new());
        }
        node
    }

    /// The number of the node called `name`, by which disciplines tell hosts apart; beyond 65 536 of them two
    /// may have the same.
    pub(crate) fn number_of(&self, name: &str) -> u16 {
        self.nodes[name] as u16
    }

    /// Where the route from one node to the other begins: fewest links, and of equally short ones that
    /// over the links that come first in the scenario.
    ///
    /// # Panics
    /// When there is none; a validated scenario has one for each of its flows.
    pub(crate) fn between(&mut self, from: &'a str, to: &'a str) -> u32 {
        if let Some(&start) = self.known.get(&(from, to)) {
            return start;
        }
        let path = self.shortest(self.nodes[from], self.nodes[to]);
        let start = self.steps.len() as u32;
        path.into_iter().rev().for_each(|link| self.push(link));
        self.steps.push(Step::Deliver);
        self.known.insert((from, to), start);
        start
    }

    /// Where the route over the links called `names` begins.
    ///
    /// # Panics
    /// When there is no such link; a validated scenario has all that its flows name.
    pub(crate) fn over(&mut self, names: &[String]) -> u32 {
        let start = self.steps.len() as u32;
        for name in names {
            let link = self.scenario.links.iter().position(|link| link.name == *name);
            let link = link.expect("a validated scenario has the links that its flows name");
            self.push(link as u32);
        }
        self.steps.push(Step::Deliver);
        start
    }

    /// Adds a link to the route, and the shaper that its packets pass behind it.
    fn push(&mut self, link: u32) {
        self.steps.push(Step::Link(link));
        self.steps.extend(self.shapers.get(&self.scenario.links[link as usize].name).copied());
    }

    /// Whether the route that begins at `start` goes over `link`.
    pub(crate) fn crosses(&self, start: u32, link: u32) -> bool {
        let route = self.steps[start as usize..].iter().take_while(|step| **step != Step::Deliver);
        route.into_iter().any(|step| *step == Step::Link(link))
    }

    /// The links of the path, the last one first.
    fn shortest(&self, from: usize, to: usize) -> Vec<u32> {
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
        path
    }

    /// The routes as packets take them: links that decide nothing, and are fed in order, become wires, but for
    /// the one that is `watched`.
    pub(crate) fn finish(mut self, watched: Option<usize>) -> Routes {
        let (mut wires, mut lines) = (Vec::new(), Vec::new());
        let mut shared = HashMap::new();
        let links = &self.scenario.links;
        let wire_of: Vec<_> = (links.iter().zip(self.feeders()).enumerate())
            .map(|(index, (link, feeder))| {
                let Feeder::One(before) = feeder else { return None };
                let before = before.map(|before| &links[before as usize]);
                let in_order = before.is_none_or(|before| !before.impairments.may_reorder());
                if !in_order || !Wire::serves(link) || watched == Some(index) {
                    return None;
                }
                let new = lines.len() as u32;
                let line = match before {
                    Some(before) if is_as_fast(link, before) => {
                        *shared.entry((&before.name, link.delay, rate(link))).or_insert(new)
                    }
                    _ => new,
                };
                if line == new {
                    lines.push(Line::new(Event::WireArrival, line));
                }
                wires.push((Wire::new(link), line));
                Some(wires.len() as u32 - 1)
            })
            .collect();
        for step in &mut self.steps {
            if let Step::Link(link) = *step
                && let Some(wire) = wire_of[link as usize]
            {
                *step = Step::Wire(wire);
            }
        }
        Routes { steps: self.steps, wires, wire_of, lines }
    }

    fn feeders(&self) -> Vec<Feeder> {
        let mut feeders = vec![Feeder::Nobody; self.scenario.links.len()];
        let mut before = None;
        for step in &self.steps {
            let Step::Link(link) = *step else {
                before = None;
                continue;
            };
            let feeder = &mut feeders[link as usize];
            *feeder = match *feeder {
                Feeder::Nobody => Feeder::One(before),
                Feeder::One(known) if known == before => Feeder::One(known),
                _ => Feeder::Several,
            };
            before = Some(link);
        }
        feeders
    }
}

/// The shapers by the names of the links that packets take before they pass them, there and back.
fn shapers(scenario: &Scenario, crossed: Option<&str>) -> HashMap<String, Step> {
    let shaped = scenario.links.iter().filter(|link| matches!(link.capacity, Capacity::Shaped(_)));
    let names = shaped.map(|link| link.name.as_str()).chain(crossed);
    let steps = (0..).zip(names).flat_map(|(index, name)| {
        [
            (name.to_owned(), Step::Shaper { index, is_back: false }),
            (Link::other_direction(name), Step::Shaper { index, is_back: true }),
        ]
    });
    steps.collect()
}

/// Packets hardly wait for `link` after `before`. Links behind it that are alike can then share a line, since
/// packets come out of them nearly in the order in which they went in.
fn is_as_fast(link: &Link, before: &Link) -> bool {
    rate(before).is_some_and(|before| rate(link) >= Some(before))
}

fn rate(link: &Link) -> Option<Rate> {
    if let Capacity::Rate(rate) = link.capacity { Some(rate) } else { None }
}
