//! The way from a scenario to hosts, links, addresses and routes.
//!
//! Only links that decide something are emulated. The nodes at both ends of any other are one host, and the delay of
//! such a link is added to the delay of the flows over it, behind the first emulated link on their way: the loop from a
//! queue over the sender and back to it takes as long as in the scenario.

use std::net::{Ipv4Addr, SocketAddrV4};

use suimon_emulator::FlowKey;
use suimon_linux::RouteMetrics;
use suimon_model::{Capacity, Flow, Impairments, Link, Scenario, Traffic};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::LiveError;
use crate::planning::Planning;
use crate::stack_options::{KernelNames, StackOptions};

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
    /// The halves of split connections among these: from the gateway, and to it.
    pub(crate) halves: Vec<(usize, usize)>,
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
pub(crate) type Place = (usize, usize);

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
    /// The aggregate that it carries data for.
    pub(crate) subflow: Option<Subflow>,
    /// The propagation delay from where it ends to where it begins.
    pub(crate) way_back: Duration,
}

/// The place of a flow in an aggregate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subflow {
    pub(crate) aggregate: usize,
    pub(crate) path: usize,
}

impl PlannedFlow {
    pub(crate) fn key(&self) -> FlowKey {
        let protocol = if self.kernel_cc.is_some() { 6 } else { 17 };
        FlowKey { from: self.from.into(), to: self.to.into(), protocol }
    }

    pub(crate) fn key_back(&self) -> FlowKey {
        let key = self.key();
        FlowKey { from: key.to, to: key.from, ..key }
    }
}

/// The bytes that one of [`Capacity::Opportunities`] sends.
const OPPORTUNITY: Bytes = Bytes::new(1_500);
/// Most flows of one run: each has a thread at either end and ports of its own.
pub(crate) const MAX_FLOWS: usize = 1_000;

impl Plan {
    /// The plan of `scenario`, which was [split](Scenario::split), for a kernel with the congestion controls `available`,
    /// some of them named as in `names`.
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
        if let Some(aggregate) = scenario.aggregates.iter().find(|one| one.reconnect.is_some()) {
            let problem = "a live flow keeps its connection; accepted: off".to_owned();
            return Err(refuse(format!("aggregate.{}.reconnect", aggregate.name), problem));
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
            let is_inward = planning.plan.halves.iter().any(|(_, inward)| *inward == index);
            let options = options
                .of(flow, is_inward)
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

/// The rates of the links that results show, together.
#[must_use]
pub fn shown_rates(scenario: &Scenario) -> Rate {
    let rates = scenario.links.iter().filter_map(rate_of);
    Rate::from_bps(rates.map(Rate::as_bps).fold(0, u64::saturating_add))
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
pub(crate) fn packet_sizes(flow: &Flow) -> (Bytes, Bytes) {
    match &flow.traffic {
        Traffic::Tcp(tcp) => (tcp.profile.packet_size(), tcp.profile.header),
        Traffic::Udp(udp) => (udp.packet, Bytes::ZERO),
    }
}
