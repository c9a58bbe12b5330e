//! Hosts, links, addresses and routes, one flow after the other.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use suimon_algorithms::RandomStream;
use suimon_emulator::FlowKey;
use suimon_linux::RouteMetrics;
use suimon_model::{Capacity, Flow, Link, Scenario, Traffic};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::plan::{
    Links, MAX_FLOWS, Place, Plan, PlannedFlow, PlannedLink, PlannedRoute, Subflow, packet_sizes, rate_of,
};
use crate::stack_options::{FlowOptions, Refusal};

/// Addresses of hosts: of the block for measurements (RFC 2544), which no network routes.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Senders use ports from here on, receivers those a thousand times a flow above.
const FIRST_PORT: u16 = 10_000;

/// A plan under construction.
pub(crate) struct Planning<'a> {
    scenario: &'a Scenario,
    /// The host of each node.
    hosts: HashMap<&'a str, usize>,
    /// Where each emulated link of the scenario is in the plan.
    places: HashMap<&'a str, Place>,
    /// The link over which a host sends packets to an address.
    routes: HashMap<(usize, Ipv4Addr), (usize, RouteMetrics)>,
    pub(crate) plan: Plan,
}

impl<'a> Planning<'a> {
    /// The hosts of `scenario` and the links between them, of which `emulates` says which are emulated.
    pub(crate) fn new(scenario: &'a Scenario, emulates: &dyn Fn(&Link) -> bool) -> Self {
        let partner = |link: &Link| {
            let name = Link::other_direction(&link.name);
            scenario
                .links
                .iter()
                .find(|other| other.name == name && other.from == link.to && other.to == link.from)
        };
        // Nodes between which nothing is decided are one host.
        let mut nodes: Vec<&str> = Vec::new();
        for node in scenario.links.iter().flat_map(|link| [&link.from, &link.to]) {
            if !nodes.contains(&node.as_str()) {
                nodes.push(node);
            }
        }
        let mut host_of: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(index, node)| (*node, index)).collect();
        let mut links = Vec::new();
        let mut places = HashMap::new();
        for link in &scenario.links {
            if places.contains_key(link.name.as_str()) {
                continue;
            }
            let back = partner(link);
            if emulates(link) || back.is_some_and(emulates) {
                places.insert(link.name.as_str(), (links.len(), 0));
                if let Some(back) = back {
                    places.insert(back.name.as_str(), (links.len(), 1));
                }
                links.push([link.clone(), back.cloned().unwrap_or_else(|| way_back(link))]);
            } else {
                let (one, other) = (host_of[link.from.as_str()], host_of[link.to.as_str()]);
                host_of.values_mut().filter(|host| **host == other).for_each(|host| *host = one);
            }
        }
        let mut numbers: Vec<usize> = host_of.values().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        host_of.values_mut().for_each(|host| *host = numbers.partition_point(|number| number < host));
        let links = links.into_iter().map(|directions| PlannedLink {
            ends: [host_of[directions[0].from.as_str()], host_of[directions[0].to.as_str()]],
            directions,
            flow_delays: [Vec::new(), Vec::new()],
        });
        let plan = Plan {
            hosts: numbers.len(),
            links: links.collect(),
            links_by: Links::Emulated,
            addresses: Vec::new(),
            routes: Vec::new(),
            flows: Vec::new(),
            halves: scenario.halves(),
            answers_after: Vec::new(),
            timestamps: true,
            mtu: 1_500,
            notes: Vec::new(),
        };
        Self { scenario, hosts: host_of, places, routes: HashMap::new(), plan }
    }

    /// Adds the flow of this index.
    pub(crate) fn add(&mut self, index: usize, flow: &'a Flow, options: FlowOptions) -> Result<(), Refusal> {
        let ways = self.scenario.ways(flow);
        let crossed = |way: &[&Link]| -> Vec<Place> {
            way.iter().filter_map(|link| self.places.get(link.name.as_str()).copied()).collect()
        };
        let (there, back) = (crossed(&ways[0]), crossed(&ways[1]));
        if there.is_empty() {
            let problem = "no link on the way decides anything; accepted: one that is reported, with a rate";
            return Err(("to", problem.to_owned()));
        }
        let hosts = (self.hosts[flow.from.as_str()], self.hosts[flow.to.as_str()]);
        let (from, to) = self.route(flow, hosts, (&there, &back), &options);
        let number = index as u16;
        let extra = flow.drawn_extra_delay(self.scenario.seed);
        let mut random = flow.random(self.scenario.seed);
        let start = self.scenario.drawn_start(flow, &mut random);
        let planned = PlannedFlow {
            hosts,
            from: SocketAddrV4::new(from, FIRST_PORT + number),
            to: SocketAddrV4::new(to, FIRST_PORT + MAX_FLOWS as u16 + number),
            start,
            toggles: toggles(flow, start, Instant::ZERO + self.scenario.duration, &mut random),
            crosses: there,
            kernel_cc: options.kernel_cc,
            subflow: self.subflow(&flow.name),
            way_back: ways[1].iter().fold(extra, |sum, link| sum + link.delay),
        };
        let (full, answer) = packet_sizes(flow);
        self.delay(planned.key(), &ways[0], planned.crosses[0], full, extra);
        if let Some(first) = back.first() {
            self.delay(planned.key_back(), &ways[1], *first, answer, extra);
        }
        self.plan.flows.push(planned);
        Ok(())
    }

    /// The place of the flow called `name` in an aggregate.
    fn subflow(&self, name: &str) -> Option<Subflow> {
        self.scenario.aggregates.iter().enumerate().find_map(|(aggregate, spec)| {
            let path = spec.flows.iter().position(|flow| flow == name)?;
            Some(Subflow { aggregate, path })
        })
    }

    /// Lets the host that `flow` leads to delay its answers by all delay of the flow. Delay on the way of data would change
    /// how much the kernel's senders have on the way at once.
    pub(crate) fn answer(&mut self, index: usize, flow: &Flow) -> Result<(), Refusal> {
        let [there, back] = self.scenario.ways(flow);
        if there.first().is_some_and(|link| rate_of(link).is_some()) {
            let problem = "its host would hold packets back in its own sockets (TCP small queues); accepted: a \
                           further link before the first that has a queue";
            return Err(("from", problem.to_owned()));
        }
        let extra = flow.drawn_extra_delay(self.scenario.seed);
        let (full, answer) = packet_sizes(flow);
        let delay = |sum: Duration, (link, size): (&&Link, Bytes)| {
            let sending = match link.capacity {
                // A token bucket too lets a packet go before the time of its transmission.
                Capacity::Rate(rate) if rate < Rate::MAX => rate.transmission_time(size),
                _ => Duration::ZERO,
            };
            sum + link.delay + sending
        };
        let there = there.iter().map(|link| (link, full)).fold(extra, delay);
        let total = back.iter().map(|link| (link, answer)).fold(there + extra, delay);
        let host = self.plan.flows[index].hosts.1;
        match self.plan.answers_after.iter().find(|(known, _)| *known == host) {
            Some((_, known)) if *known != total => {
                let problem = format!(
                    "all delay is where flows end, and others that end there have {known} rather than {total}; \
                     accepted: a node for each round-trip time"
                );
                Err(("to", problem))
            }
            Some(_) => Ok(()),
            None => {
                self.plan.answers_after.push((host, total));
                Ok(())
            }
        }
    }

    /// Adds the delay of links that are not emulated behind the emulated link at `place`.
    fn delay(&mut self, key: FlowKey, way: &[&Link], place: Place, size: Bytes, extra: Duration) {
        let plain = way.iter().filter(|link| !self.places.contains_key(link.name.as_str()));
        let delay = plain.fold(extra, |sum, link| {
            let sending = match link.capacity {
                Capacity::Rate(rate) => rate.transmission_time(size),
                _ => Duration::ZERO,
            };
            sum + link.delay + sending
        });
        if delay > Duration::ZERO {
            self.plan.links[place.0].flow_delays[place.1].push((key, delay));
        }
    }

    /// Addresses for both ends of `flow`: those of its nodes, or further ones where other flows between them go other
    /// ways or have other options.
    fn route(
        &mut self,
        flow: &Flow,
        hosts: (usize, usize),
        (there, back): (&[Place], &[Place]),
        options: &FlowOptions,
    ) -> (Ipv4Addr, Ipv4Addr) {
        let nodes: Vec<&str> = {
            let mut nodes: Vec<&str> = self.hosts.keys().copied().collect();
            nodes.sort_unstable();
            nodes
        };
        let address = |node: &str, alias: usize| {
            let place = nodes.partition_point(|other| *other < node) + alias * nodes.len();
            Ipv4Addr::from(u32::from(FIRST_ADDRESS) + place as u32)
        };
        let mut alias = 0;
        loop {
            let (from, to) = (address(&flow.from, alias), address(&flow.to, alias));
            let along = |links: &[Place], to, options: RouteMetrics| -> Vec<_> {
                let hop = |(nth, (link, way)): (usize, &Place)| {
                    let options = if nth == 0 { options } else { RouteMetrics::default() };
                    ((self.plan.links[*link].ends[*way], to), (*link, options))
                };
                links.iter().enumerate().map(hop).collect()
            };
            let mut needed = along(there, to, options.sender);
            needed.extend(along(back, from, options.receiver));
            let fits = |(key, route): &((usize, Ipv4Addr), (usize, RouteMetrics))| {
                self.routes.get(key).is_none_or(|known| known == route)
            };
            if !needed.iter().all(fits) {
                alias += 1;
                continue;
            }
            for ((host, to), (link, options)) in needed {
                if self.routes.insert((host, to), (link, options)).is_none() {
                    self.plan.routes.push(PlannedRoute { host, to, link, options });
                }
            }
            for own in [(hosts.0, from), (hosts.1, to)] {
                if !self.plan.addresses.contains(&own) {
                    self.plan.addresses.push(own);
                }
            }
            return (from, to);
        }
    }
}

/// When the application of `flow` falls silent, speaks again, and so on until `end`: at the simulator's times.
fn toggles(flow: &Flow, start: Instant, end: Instant, random: &mut RandomStream) -> Vec<Instant> {
    let Traffic::Tcp(tcp) = &flow.traffic else { return Vec::new() };
    let Some(on_off) = tcp.on_off else { return Vec::new() };
    let periods = [on_off.on, on_off.off].into_iter().cycle();
    let times = periods.scan(start, |time, mean| {
        *time += random.exponential(mean);
        Some(*time)
    });
    times.take_while(|time| *time < end).collect()
}

/// A link back that does nothing, for one that has none.
fn way_back(link: &Link) -> Link {
    Link::delaying(Link::other_direction(&link.name), &link.to, &link.from, Duration::ZERO)
}
