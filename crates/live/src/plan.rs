//! From a scenario to hosts, links, addresses and routes.
//!
//! Only links that decide something are emulated. The nodes at both ends of any other are one host, and what such a
//! link takes is added to the delay of the flows over it, behind the first emulated link on their way: the loop
//! from a queue over the sender and back to it takes as long as in the scenario.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};

use suimon_algorithms::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::FlowKey;
use suimon_linux::TcpHabits;
use suimon_scenario::{Buffer, Capacity, Flow, Link, Loss, Scenario, StackProfile, Start, TcpFlow, Traffic};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::LiveError;

/// What the kernel calls a congestion control that it has under another name than simulations do, or than that with
/// underscores.
pub type KernelNames = BTreeMap<String, String>;

/// What is to be set up.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: usize,
    pub(crate) links: Vec<PlannedLink>,
    /// Which host has which address.
    pub(crate) addresses: Vec<(usize, Ipv4Addr)>,
    pub(crate) routes: Vec<PlannedRoute>,
    pub(crate) flows: Vec<PlannedFlow>,
    pub(crate) timestamps: bool,
    /// The largest packet.
    pub(crate) mtu: u32,
    /// What is not as in the scenario.
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
    pub(crate) habits: TcpHabits,
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

/// What one of [`Capacity::Opportunities`] sends.
const OPPORTUNITY: Bytes = Bytes::new(1_500);
/// Addresses of hosts: of the block for measurements (RFC 2544), which no network routes.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Senders use ports from here on, receivers those a thousand times a flow above.
const FIRST_PORT: u16 = 10_000;
/// Most flows of one run: each has a thread at either end and ports of its own.
const MOST_FLOWS: usize = 1_000;

impl Plan {
    /// What `scenario` needs, where the kernel has the congestion controls `available`, some of them as `names` says.
    pub(crate) fn new(
        scenario: &Scenario,
        available: &[String],
        names: &KernelNames,
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
        if scenario.flows.len() > MOST_FLOWS {
            let problem = format!("{} flows; accepted: at most {MOST_FLOWS}", scenario.flows.len());
            return Err(refuse("flow".to_owned(), problem));
        }
        // Of those that results show.
        let slowest = slowest(scenario.links.iter().filter(|link| link.reported));
        let emulates = |link: &Link| !decides_nothing(link, slowest);
        let mut planning = Planning::new(scenario, &emulates);
        let mut habits = Habits { available, names, timestamps: None, notes: Vec::new() };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let habits = habits
                .of(flow)
                .map_err(|(key, problem)| refuse(format!("flow.{}.{key}", flow.name), problem))?;
            planning
                .add(index, flow, habits)
                .map_err(|(key, problem)| refuse(format!("flow.{}.{key}", flow.name), problem))?;
        }
        let mut notes = habits.notes;
        if scenario.links.iter().any(|link| !emulates(link) && link.jitter > Duration::ZERO) {
            notes.push(
                "Live: the jitter of links that are not emulated is left to the hosts, which have their own."
                    .to_owned(),
            );
        }
        let mtu = scenario.flows.iter().map(|flow| packet_sizes(flow).0.get()).max().unwrap_or(0).max(1_500);
        Ok(Self { timestamps: habits.timestamps.unwrap_or(true), mtu: mtu as u32, notes, ..planning.plan })
    }

    /// What the emulated links carry together, as far as they have a rate.
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
fn decides_nothing(link: &Link, slowest: Rate) -> bool {
    let fast = matches!(link.capacity, Capacity::Rate(rate) if rate >= slowest);
    let harmless = link.loss == Loss::None && link.reordering.is_none() && link.outages.is_empty();
    !link.reported && fast && harmless && link.queue.name() == "droptail" && link.overhead == Bytes::ZERO
}

/// Sizes of a full packet and of what answers it.
fn packet_sizes(flow: &Flow) -> (Bytes, Bytes) {
    match &flow.traffic {
        Traffic::Tcp(tcp) => (tcp.profile.packet_size(), tcp.profile.header),
        Traffic::Udp(udp) => (udp.packet, Bytes::ZERO),
    }
}

type Refusal = (&'static str, String);

/// What TCP is told of a flow.
struct FlowHabits {
    /// The kernel's name of its congestion control; none for datagrams.
    kernel_cc: Option<String>,
    sender: TcpHabits,
    receiver: TcpHabits,
}

/// What the kernel is told of all flows.
struct Habits<'a> {
    available: &'a [String],
    names: &'a KernelNames,
    timestamps: Option<bool>,
    notes: Vec<String>,
}

impl Habits<'_> {
    fn of(&mut self, flow: &Flow) -> Result<FlowHabits, Refusal> {
        match &flow.traffic {
            Traffic::Tcp(tcp) => self.of_tcp(tcp),
            Traffic::Udp(udp) if udp.on_off.is_some() => Err(on_off()),
            Traffic::Udp(udp) if udp.packet < LEAST_DATAGRAM => {
                Err(("packet", format!("{} is no datagram; accepted: at least {LEAST_DATAGRAM}", udp.packet)))
            }
            Traffic::Udp(_) => Ok(FlowHabits {
                kernel_cc: None,
                sender: TcpHabits::default(),
                receiver: TcpHabits::default(),
            }),
        }
    }

    fn of_tcp(&mut self, tcp: &TcpFlow) -> Result<FlowHabits, Refusal> {
        if tcp.on_off.is_some() {
            return Err(on_off());
        }
        if tcp.receiver.name() != "fixed" {
            let problem = format!("\"{}\" does not run in a kernel; accepted: fixed", tcp.receiver.label());
            return Err(("receiver", problem));
        }
        let kernel_cc = self.kernel_cc(&tcp.cc)?;
        let profile = &tcp.profile;
        let header = if profile.timestamps { 52 } else { 40 };
        if profile.header != Bytes::new(header) {
            let problem = format!(
                "{}, but the kernel's headers are 52 B with timestamps and 40 B without; accepted: {header}B",
                profile.header
            );
            return Err(("stack.header", problem));
        }
        if self.timestamps.is_some_and(|timestamps| timestamps != profile.timestamps) {
            let problem =
                "not the same for all flows; accepted: true for all or false for all, as hosts have it";
            return Err(("stack.timestamps", problem.to_owned()));
        }
        self.timestamps = Some(profile.timestamps);
        let kernel = StackProfile::linux_6();
        if profile.name != kernel.name {
            self.note(format!(
                "Live: the kernel's TCP stands in for the profile {}; of that it has the segment size, the initial window, the least \
                 retransmission timeout, ECN, timestamps, and whether every segment is acknowledged.",
                profile.name
            ));
        }
        Ok(FlowHabits {
            kernel_cc: Some(kernel_cc),
            sender: TcpHabits {
                ecn: profile.ecn,
                initial_window: (profile.initial_window != kernel.initial_window)
                    .then_some(profile.initial_window),
                rto_min_millis: (profile.rto_min != kernel.rto_min)
                    .then(|| (profile.rto_min.as_nanos() / 1_000_000) as u32),
                quick_ack: false,
            },
            receiver: TcpHabits { quick_ack: !profile.delayed_ack, ..TcpHabits::default() },
        })
    }

    /// What the kernel calls `cc`.
    fn kernel_cc(&mut self, cc: &AlgorithmSpec) -> Result<String, Refusal> {
        let called =
            |name: &str| self.names.get(name).cloned().unwrap_or_else(|| name.replace(['-', '+', '.'], "_"));
        let exactly = called(cc.label());
        let (name, stands_in) = match cc.name() {
            _ if self.available.contains(&exactly) => (exactly, false),
            // The kernel has one CUBIC, the latest.
            "cubic-2.1" => ("cubic".to_owned(), true),
            name => (called(name), true),
        };
        if !self.available.contains(&name) {
            let problem = format!(
                "this kernel has no \"{}\"; accepted: {}; others once \"suimon cc load NAME\" has loaded them",
                cc.label(),
                self.available.join(", ")
            );
            return Err(("cc", problem));
        }
        if stands_in {
            self.note(format!("Live: the kernel's {name} as it is stands in for {}.", cc.label()));
        }
        Ok(name)
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// IP and UDP headers, and a byte.
const LEAST_DATAGRAM: Bytes = Bytes::new(29);

fn on_off() -> Refusal {
    ("on_off", "random silence is for simulations; accepted: none".to_owned())
}

/// A plan under construction.
struct Planning<'a> {
    scenario: &'a Scenario,
    /// The host of each node.
    hosts: HashMap<&'a str, usize>,
    /// Where each emulated link of the scenario is in the plan.
    places: HashMap<&'a str, Place>,
    /// Over which link a host sends what goes to an address.
    routes: HashMap<(usize, Ipv4Addr), (usize, TcpHabits)>,
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
            addresses: Vec::new(),
            routes: Vec::new(),
            flows: Vec::new(),
            timestamps: true,
            mtu: 1_500,
            notes: Vec::new(),
        };
        Self { scenario, hosts: host_of, places, routes: HashMap::new(), plan }
    }

    /// Adds the flow of this index.
    fn add(&mut self, index: usize, flow: &'a Flow, habits: FlowHabits) -> Result<(), Refusal> {
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
        let (from, to) = self.route(flow, hosts, (&there, &back), &habits);
        let number = index as u16;
        let planned = PlannedFlow {
            hosts,
            from: SocketAddrV4::new(from, FIRST_PORT + number),
            to: SocketAddrV4::new(to, FIRST_PORT + MOST_FLOWS as u16 + number),
            start: start_of(flow, self.scenario.seed),
            crosses: there,
            kernel_cc: habits.kernel_cc,
        };
        let extra = extra_delay(flow, self.scenario.seed);
        let (full, answer) = packet_sizes(flow);
        self.delay(planned.key(), &ways[0], planned.crosses[0], full, extra);
        if let Some(first) = back.first() {
            self.delay(planned.key_back(), &ways[1], *first, answer, extra);
        }
        self.plan.flows.push(planned);
        Ok(())
    }

    /// What links that are not emulated take goes behind the emulated link at `place`.
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
    /// ways or have other habits.
    fn route(
        &mut self,
        flow: &Flow,
        hosts: (usize, usize),
        (there, back): (&[Place], &[Place]),
        habits: &FlowHabits,
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
            let along = |links: &[Place], to, habits: TcpHabits| -> Vec<_> {
                let hop = |(nth, (link, way)): (usize, &Place)| {
                    let habits = if nth == 0 { habits } else { TcpHabits::default() };
                    ((self.plan.links[*link].ends[*way], to), (*link, habits))
                };
                links.iter().enumerate().map(hop).collect()
            };
            let mut needed = along(there, to, habits.sender);
            needed.extend(along(back, from, habits.receiver));
            let fits = |(key, route): &((usize, Ipv4Addr), (usize, TcpHabits))| {
                self.routes.get(key).is_none_or(|known| known == route)
            };
            if !needed.iter().all(fits) {
                alias += 1;
                continue;
            }
            for ((host, to), (link, habits)) in needed {
                if self.routes.insert((host, to), (link, habits)).is_none() {
                    self.plan.routes.push(PlannedRoute { host, to, link, habits });
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

/// As the simulator draws it.
fn start_of(flow: &Flow, seed: u64) -> Instant {
    match flow.start {
        Start::At(at) => at,
        Start::Between(from, to) => {
            let mut random = RandomStream::new(seed, &format!("flow {}", flow.name));
            from + random.duration_between(Duration::ZERO, to.saturating_since(from))
        }
    }
}

/// As the simulator draws it.
fn extra_delay(flow: &Flow, seed: u64) -> Duration {
    let (least, most) = flow.extra_delay;
    if most == Duration::ZERO {
        return Duration::ZERO;
    }
    RandomStream::new(seed, &format!("flow {} delay", flow.name)).duration_between(least, most)
}

/// A link back that does nothing, for one that has none.
fn way_back(link: &Link) -> Link {
    Link {
        name: Link::other_direction(&link.name),
        from: link.to.clone(),
        to: link.from.clone(),
        capacity: Capacity::Rate(Rate::MAX),
        delay: Duration::ZERO,
        overhead: Bytes::ZERO,
        buffer: Buffer::Unbounded,
        queue: AlgorithmSpec::parse(Role::Queue, "droptail").expect("drop tail is registered"),
        loss: Loss::None,
        jitter: Duration::ZERO,
        reordering: None,
        outages: Vec::new(),
        estimator: None,
        reported: false,
    }
}
