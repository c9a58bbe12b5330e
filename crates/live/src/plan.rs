//! The way from a scenario to hosts, links, addresses and routes.
//!
//! Only links that decide something are emulated. The nodes at both ends of any other are one host, and the delay of
//! such a link is added to the delay of the flows over it, behind the first emulated link on their way: the loop from a
//! queue over the sender and back to it takes as long as in the scenario.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use suimon_algorithms::RandomStream;
use suimon_emulator::FlowKey;
use suimon_linux::RouteMetrics;
use suimon_model::{Capacity, Flow, Impairments, Link, Scenario, Traffic};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::LiveError;
use crate::stack_options::{FlowOptions, KernelNames, Refusal, StackOptions};

/// The hosts, links, addresses and flows to be set up.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: usize,
    pub(crate) links: Vec<PlannedLink>,
    pub(crate) links_by: Links,
    /// Each host with each of its addresses.
    pub(crate) addresses: Vec<(usize, Ipv4Addr)>,
    pub(crate) routes: Vec<PlannedRoute>,
    pub(crate) flows: Vec<PlannedFlow>,
    /// The time after which hosts let their answers go, where links are the kernel's: all delay of the flows that end there.
    pub(crate) answers_after: Vec<(usize, Duration)>,
    pub(crate) timestamps: bool,
    /// The largest packet.
    pub(crate) mtu: u32,
    /// Differences from the scenario.
    pub(crate) notes: Vec<String>,
}

/// An emulated link.
#[derive(Debug)]
pub(crate) struct PlannedLink {
    pub(crate) directions: [Link; 2],
    /// The hosts at its ends.
    pub(crate) ends: [usize; 2],
    pub(crate) flow_delays: [Vec<(FlowKey, Duration)>; 2],
}

#[derive(Debug)]
pub(crate) struct PlannedRoute {
    pub(crate) host: usize,
    pub(crate) to: Ipv4Addr,
    /// Over which link.
    pub(crate) link: usize,
    pub(crate) options: RouteMetrics,
}

/// A direction of an emulated link: the link's place in the plan, and 0 there or 1 back.
type Place = (usize, usize);

#[derive(Debug)]
pub(crate) struct PlannedFlow {
    /// The hosts that it leads from and to.
    pub(crate) hosts: (usize, usize),
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) start: Instant,
    /// When its application falls silent, speaks again, and so on.
    pub(crate) toggles: Vec<Instant>,
    /// The emulated links that its packets cross.
    pub(crate) crosses: Vec<Place>,
    /// Congestion control as the kernel calls it.
    pub(crate) kernel_cc: Option<String>,
}

impl PlannedFlow {
    pub(crate) fn key(&self) -> FlowKey {
        let protocol = if self.kernel_cc.is_some() { 6 } else { 17 };
        FlowKey { from: self.from.into(), to: self.to.into(), protocol }
    }

    fn key_back(&self) -> FlowKey {
        let key = self.key();
        FlowKey { from: key.to, to: key.from, ..key }
    }
}

/// The bytes that one of [`Capacity::Opportunities`] sends.
const OPPORTUNITY: Bytes = Bytes::new(1_500);
/// Addresses of hosts: of the block for measurements (RFC 2544), which no network routes.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Senders use ports from here on, receivers those a thousand times a flow above.
const FIRST_PORT: u16 = 10_000;
/// Most flows of one run: each has a thread at either end and ports of its own.
const MAX_FLOWS: usize = 1_000;

impl Plan {
    /// The plan of `scenario` for a kernel with the congestion controls `available`, some of them named as in `names`.
    pub(crate) fn new(
        scenario: &Scenario,
        available: &[String],
        names: &KernelNames,
        links: Links,
    ) -> Result<Self, LiveError> {
        let refuse = |key: String, problem: String| LiveError::Scenario {
            scenario: scenario.name.clone(),
            key,
            problem,
        };
        if let Some(aggregate) = scenario.aggregates.first() {
            let key = format!("aggregate.{}", aggregate.name);
            return Err(refuse(key, "the kernel has no such streams; accepted: flows alone".to_owned()));
        }
        if scenario.flows.len() > MAX_FLOWS {
            let problem = format!("{} flows; accepted: at most {MAX_FLOWS}", scenario.flows.len());
            return Err(refuse("flow".to_owned(), problem));
        }
        let is_shaped = |link: &&Link| matches!(link.capacity, Capacity::Shaped(_));
        if let Some(link) = scenario.links.iter().find(is_shaped) {
            let problem =
                "no emulated link has a shaper; accepted: `suimon shape` at a device before the link";
            return Err(refuse(format!("link.{}.shaper", link.name), problem.to_owned()));
        }
        let is_split = |flow: &&Flow| matches!(&flow.traffic, Traffic::Tcp(tcp) if tcp.gateway.is_some());
        if let Some(flow) = scenario.flows.iter().find(is_split) {
            let problem = "a node between the ends is emulated, and splits nothing; accepted: the simulator for \
                           this scenario, and `suimon gateway` in front of a real or an emulated link";
            return Err(refuse(format!("flow.{}.gateway", flow.name), problem.to_owned()));
        }
        // Only links that results show count.
        let slowest = slowest(scenario.links.iter().filter(|link| link.reported));
        let emulates = |link: &Link| links == Links::Kernel || !is_left_to_hosts(link, slowest);
        if links == Links::Kernel {
            for link in &scenario.links {
                check_device(link).map_err(|problem| refuse(format!("link.{}", link.name), problem))?;
            }
        }
        let mut planning = Planning::new(scenario, &emulates);
        let mut options = StackOptions::new(available, names);
        for (index, flow) in scenario.flows.iter().enumerate() {
            let options = options
                .of(flow)
                .map_err(|(key, problem)| refuse(format!("flow.{}.{key}", flow.name), problem))?;
            let added = planning.add(index, flow, options);
            let added = added.and_then(|()| match links {
                Links::Kernel => planning.answer(index, flow),
                Links::Emulated => Ok(()),
            });
            added.map_err(|(key, problem)| refuse(format!("flow.{}.{key}", flow.name), problem))?;
        }
        let mut notes = options.notes;
        let is_left = |link: &Link| links == Links::Kernel || !emulates(link);
        if scenario.links.iter().any(|link| is_left(link) && link.impairments.jitter > Duration::ZERO) {
            notes.push(
                "Live: the jitter of links that are not emulated is left to the hosts, which have their own."
                    .to_owned(),
            );
        }
        let mtu = scenario.flows.iter().map(|flow| packet_sizes(flow).0.get()).max().unwrap_or(0).max(1_500);
        Ok(Self {
            timestamps: options.timestamps.unwrap_or(true),
            mtu: mtu as u32,
            notes,
            links_by: links,
            ..planning.plan
        })
    }

    /// The sum of the emulated links' rates, as far as they have one.
    pub(crate) fn load(&self) -> Rate {
        let rate = |link: &Link| match &link.capacity {
            Capacity::Rate(rate) if *rate == Rate::MAX => 0,
            Capacity::Rate(rate) => rate.as_bps(),
            Capacity::Opportunities { times, period } => {
                Rate::of(OPPORTUNITY * times.len() as u64, *period).as_bps()
            }
            // A radio.
            _ => 50_000_000,
        };
        let rates = self.links.iter().flat_map(|link| &link.directions).map(rate);
        Rate::from_bps(rates.fold(0, u64::saturating_add))
    }
}

/// Who delays and queues packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The emulator of this project, with the queues of the simulator.
    Emulated,
    /// Devices, queue disciplines and loaded programs of the kernel.
    Kernel,
}

/// The rate at which a device of the kernel sends for `link`, where anything waits there: one that results show.
pub(crate) fn rate_of(link: &Link) -> Option<Rate> {
    match link.capacity {
        Capacity::Rate(rate) if link.reported && rate < Rate::MAX => Some(rate),
        _ => None,
    }
}

/// Whether devices of the kernel can be `link`.
fn check_device(link: &Link) -> Result<(), String> {
    let rate = matches!(link.capacity, Capacity::Rate(_));
    let harmless = Impairments { jitter: Duration::ZERO, ..link.impairments.clone() }.are_none();
    if rate && harmless && link.overhead == Bytes::ZERO {
        return Ok(());
    }
    Err("a device of the kernel only has a rate and a queue; accepted: rate, delay, buffer, queue, jitter"
        .to_owned())
}

/// The slowest rate of `links`.
pub(crate) fn slowest<'a>(links: impl Iterator<Item = &'a Link>) -> Rate {
    let rates = links.filter_map(|link| match link.capacity {
        Capacity::Rate(rate) => Some(rate),
        _ => None,
    });
    rates.min().unwrap_or(Rate::ZERO)
}

/// True where packets only take time on `link`: nobody looks at it, and it is no slower than the `slowest` that
/// somebody looks at, so that what waits waits there.
fn is_left_to_hosts(link: &Link, slowest: Rate) -> bool {
    let fast = matches!(link.capacity, Capacity::Rate(rate) if rate >= slowest);
    // Jitter is left to the hosts.
    let harmless = Impairments { jitter: Duration::ZERO, ..link.impairments.clone() }.are_none();
    !link.reported
        && fast
        && harmless
        && link.queue.queue_capabilities().tail_drop
        && link.overhead == Bytes::ZERO
}

/// Sizes of a full packet and of its answer.
fn packet_sizes(flow: &Flow) -> (Bytes, Bytes) {
    match &flow.traffic {
        Traffic::Tcp(tcp) => (tcp.profile.packet_size(), tcp.profile.header),
        Traffic::Udp(udp) => (udp.packet, Bytes::ZERO),
    }
}

/// A plan under construction.
struct Planning<'a> {
    scenario: &'a Scenario,
    /// The host of each node.
    hosts: HashMap<&'a str, usize>,
    /// Where each emulated link of the scenario is in the plan.
    places: HashMap<&'a str, Place>,
    /// The link over which a host sends packets to an address.
    routes: HashMap<(usize, Ipv4Addr), (usize, RouteMetrics)>,
    plan: Plan,
}

impl<'a> Planning<'a> {
    fn new(scenario: &'a Scenario, emulates: &dyn Fn(&Link) -> bool) -> Self {
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
            answers_after: Vec::new(),
            timestamps: true,
            mtu: 1_500,
            notes: Vec::new(),
        };
        Self { scenario, hosts: host_of, places, routes: HashMap::new(), plan }
    }

    /// Adds the flow of this index.
    fn add(&mut self, index: usize, flow: &'a Flow, options: FlowOptions) -> Result<(), Refusal> {
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
        let mut random = flow.random(self.scenario.seed);
        let start = flow.start.drawn(&mut random);
        let planned = PlannedFlow {
            hosts,
            from: SocketAddrV4::new(from, FIRST_PORT + number),
            to: SocketAddrV4::new(to, FIRST_PORT + MAX_FLOWS as u16 + number),
            start,
            toggles: toggles(flow, start, Instant::ZERO + self.scenario.duration, &mut random),
            crosses: there,
            kernel_cc: options.kernel_cc,
        };
        let extra = flow.drawn_extra_delay(self.scenario.seed);
        let (full, answer) = packet_sizes(flow);
        self.delay(planned.key(), &ways[0], planned.crosses[0], full, extra);
        if let Some(first) = back.first() {
            self.delay(planned.key_back(), &ways[1], *first, answer, extra);
        }
        self.plan.flows.push(planned);
        Ok(())
    }

    /// Lets the host that `flow` leads to delay its answers by all delay of the flow. Delay on the way of data would change
    /// how much the kernel's senders have on the way at once.
    fn answer(&mut self, index: usize, flow: &Flow) -> Result<(), Refusal> {
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
