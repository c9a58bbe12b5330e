//! Devices, addresses and routes of a namespace.

use std::fmt;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use suimon_units::Bytes;

use crate::error::{Doing, LinuxError};
use crate::namespace::Namespace;
use crate::netlink;

/// A route of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Address and prefix length; `None` for all that no other route takes.
    pub destination: Option<(IpAddr, u8)>,
    /// The next hop; `None` where the destination is at the other end of the device.
    pub via: Option<IpAddr>,
    /// The device's name.
    pub device: String,
    /// The table, 254 for the main one.
    pub table: u32,
    /// Packets that match are taken for the host's own.
    pub local: bool,
}

impl Route {
    /// The main table's number.
    pub const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

    /// The default route, to `via` over `device`.
    #[must_use]
    pub fn default_via(via: IpAddr, device: &str) -> Self {
        Self { destination: None, via: Some(via), device: device.to_owned(), table: Self::MAIN, local: false }
    }

    /// The route without its device, as the kernel has it.
    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let of_destination = self.destination.map(|(address, _)| address);
        let address = of_destination.or(self.via).unwrap_or(IpAddr::from([0, 0, 0, 0]));
        message.header.address_family = family(address);
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = if self.local { RouteType::Local } else { RouteType::Unicast };
        message.header.scope = match self {
            Self { local: true, .. } => RouteScope::Host,
            Self { via: None, .. } => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        message.attributes.push(RouteAttribute::Table(self.table));
        if let Some((address, prefix)) = self.destination {
            message.header.destination_prefix_length = prefix;
            message.attributes.push(RouteAttribute::Destination(route_address(address)));
        }
        if let Some(via) = self.via {
            message.attributes.push(RouteAttribute::Gateway(route_address(via)));
        }
        message
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.destination {
            Some((to, prefix)) => write!(f, "the route {to}/{prefix} over {}", self.device),
            None => write!(f, "the route default over {}", self.device),
        }
    }
}

/// Settings of TCP for all connections to one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RouteMetrics {
    /// Ask for ECN, where the namespace would not.
    pub ecn: bool,
    /// Acknowledge every segment at once.
    pub quick_ack: bool,
    /// Initial window in segments; the kernel's own where not given.
    pub initial_window: Option<u32>,
    /// Minimum retransmission timeout in milliseconds; the kernel's own where not given.
    pub rto_min_millis: Option<u32>,
}

/// `RTAX_FEATURE_ECN` of `linux/rtnetlink.h`.
const FEATURE_ECN: u32 = 1;

impl RouteMetrics {
    fn metrics(self) -> Vec<RouteMetric> {
        let mut metrics = Vec::new();
        if self.ecn {
            metrics.push(RouteMetric::Features(FEATURE_ECN));
        }
        if self.quick_ack {
            metrics.push(RouteMetric::QuickAck(1));
        }
        metrics.extend(self.initial_window.map(RouteMetric::InitCwnd));
        metrics.extend(self.rto_min_millis.map(RouteMetric::RtoMin));
        metrics
    }
}

/// A locally administered Ethernet address (IEEE 802, 02 in the first octet).
const PAIR_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Counters of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// Packets that the device took from its host.
    pub sent_packets: u64,
    /// Packets of the host for which the device had no room.
    pub sent_dropped: u64,
    /// Packets that the device gave to its host.
    pub received_packets: u64,
    /// Packets for the host that it did not take.
    pub received_dropped: u64,
    /// Bytes that the device gave to its host.
    pub received_bytes: Bytes,
}

impl Namespace {
    /// Takes `device` up.
    ///
    /// # Errors
    /// Where there is none, or without the right to.
    pub fn set_up(&self, device: &str) -> Result<(), LinuxError> {
        self.change_device(device, "taking up", |message| {
            message.header.flags = LinkFlags::Up;
            message.header.change_mask = LinkFlags::Up;
        })
    }

    /// Sets the largest packet that `device` takes and how many wait in it.
    ///
    /// # Errors
    /// The errors are those of [`Namespace::set_up`].
    pub fn set_device_limits(&self, device: &str, mtu: u32, queue_length: u32) -> Result<(), LinuxError> {
        self.change_device(device, "setting the limits of", |message| {
            message.attributes.push(LinkAttribute::Mtu(mtu));
            message.attributes.push(LinkAttribute::TxQueueLen(queue_length));
        })
    }

    /// Lets the kernel hand `device` at most so many segments in one packet; 1 for wire packets only.
    ///
    /// # Errors
    /// The errors are those of [`Namespace::set_up`].
    pub fn set_most_segments(&self, device: &str, segments: u32) -> Result<(), LinuxError> {
        self.change_device(device, "setting the segments of", |message| {
            message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
        })
    }

    /// Removes `device`, and where it is one of a pair the other too.
    ///
    /// # Errors
    /// The errors are those of [`Namespace::set_up`].
    pub fn delete_device(&self, device: &str) -> Result<(), LinuxError> {
        let asked = |message| netlink::request(Message::DelLink(message), 0);
        self.with_device(device, asked, format_args!("removing the device {device}"))
    }

    /// Makes a pair of devices, `device` here and `peer` in `other`: packets into one come out of the other.
    ///
    /// # Errors
    /// Where a name is taken, or without the right to.
    pub fn add_veth(&self, device: &str, other: &Self, peer: &str) -> Result<(), LinuxError> {
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        far.attributes.push(LinkAttribute::NetNsFd(other.descriptor().as_raw_fd()));
        let mut near = LinkMessage::default();
        near.attributes.push(LinkAttribute::IfName(device.to_owned()));
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        let made = self.run(|| netlink::request(Message::NewLink(near), NLM_F_CREATE | NLM_F_EXCL))?;
        made.doing(format_args!("making the devices {device} and {peer}"))
    }

    /// Lets `device` take whatever comes from the other end of its pair, without asking for addresses of neighbours. Both
    /// ends must be set so.
    ///
    /// # Errors
    /// The errors are those of [`Namespace::set_up`].
    pub fn set_point_to_point(&self, device: &str) -> Result<(), LinuxError> {
        self.change_device(device, "setting the address of", |message| {
            // A device without ARP sends to its own address, which is the other end's too.
            message.attributes.push(LinkAttribute::Address(PAIR_ADDRESS.to_vec()));
            message.header.flags = LinkFlags::Noarp;
            message.header.change_mask = LinkFlags::Noarp;
        })
    }

    /// The names of its devices.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn devices(&self) -> Result<Vec<String>, LinuxError> {
        let found = self.run(|| netlink::list(Message::GetLink(LinkMessage::default())))?;
        Ok(links(found.doing("listing devices")?).filter_map(|link| name_of(&link)).collect())
    }

    /// The number of `device`, as the kernel tells it with packets.
    ///
    /// # Errors
    /// The namespace has no such device.
    pub fn device_index(&self, device: &str) -> Result<u32, LinuxError> {
        let found = self.run(|| nix::net::if_::if_nametoindex(device))?;
        found.doing(format_args!("looking for the device {device}"))
    }

    /// Reads the counters of `device`.
    ///
    /// # Errors
    /// The namespace has no such device.
    pub fn device_counters(&self, device: &str) -> Result<DeviceCounters, LinuxError> {
        let doing = || format!("reading the counters of {device}");
        let found = self.run(|| netlink::list(Message::GetLink(LinkMessage::default())))?;
        let link = links(found.doing(doing())?).find(|link| name_of(link).as_deref() == Some(device));
        let missing = || std::io::Error::from_raw_os_error(libc::ENODEV);
        let link = link.ok_or_else(missing).doing(doing())?;
        let stats = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        });
        Ok(stats.map_or_else(DeviceCounters::default, |stats| DeviceCounters {
            sent_packets: stats.tx_packets,
            sent_dropped: stats.tx_dropped,
            received_packets: stats.rx_packets,
            received_dropped: stats.rx_dropped,
            received_bytes: Bytes::new(stats.rx_bytes),
        }))
    }

    /// Gives `device` an `address` in a network of this `prefix` length. An IPv6 address serves at once.
    ///
    /// # Errors
    /// Where the device has it, or is not there.
    pub fn add_address(&self, device: &str, address: IpAddr, prefix: u8) -> Result<(), LinuxError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        if address.is_ipv6() {
            // Nobody else is on the link, so nobody need be asked whether the address is free.
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        let add = |index| {
            message.header.index = index;
            netlink::request(Message::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
        };
        let doing = format!("adding the address {address}/{prefix} to {device}");
        self.with_index(device, add, &doing)
    }

    /// All its addresses with the lengths of their prefixes.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn addresses(&self) -> Result<Vec<(IpAddr, u8)>, LinuxError> {
        let found = self.run(|| netlink::list(Message::GetAddress(AddressMessage::default())))?;
        let address = |message: Message| match message {
            Message::NewAddress(message) => message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Local(address) | AddressAttribute::Address(address) => {
                    Some((*address, message.header.prefix_len))
                }
                _ => None,
            }),
            _ => None,
        };
        Ok(found.doing("listing addresses")?.into_iter().filter_map(address).collect())
    }

    /// Adds `route`.
    ///
    /// # Errors
    /// Where there is one like it, or its next hop cannot be reached.
    pub fn add_route(&self, route: &Route) -> Result<(), LinuxError> {
        self.add_route_with(route, RouteMetrics::default())
    }

    /// Adds `route`, with these metrics.
    ///
    /// # Errors
    /// The errors are those of [`Namespace::add_route`].
    pub fn add_route_with(&self, route: &Route, options: RouteMetrics) -> Result<(), LinuxError> {
        let mut message = route.message();
        let metrics = options.metrics();
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let add = |index| {
            message.attributes.push(RouteAttribute::Oif(index));
            netlink::request(Message::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
        };
        self.with_index(&route.device, add, &format!("adding {route}"))
    }

    /// Removes `route`.
    ///
    /// # Errors
    /// Where there is none like it.
    pub fn remove_route(&self, route: &Route) -> Result<(), LinuxError> {
        let mut message = route.message();
        let remove = |index| {
            message.attributes.push(RouteAttribute::Oif(index));
            netlink::request(Message::DelRoute(message), 0)
        };
        self.with_index(&route.device, remove, &format!("removing {route}"))
    }

    /// Packets that come from `source` look their route up in `table` first.
    ///
    /// # Errors
    /// Where there is such a rule.
    pub fn add_rule_from(&self, source: IpAddr, table: u32) -> Result<(), LinuxError> {
        let mut message = RuleMessage::default();
        message.header.family = family(source);
        message.header.src_len = if source.is_ipv4() { 32 } else { 128 };
        message.header.action = RuleAction::ToTable;
        message.attributes.push(RuleAttribute::Source(source));
        message.attributes.push(RuleAttribute::Table(table));
        self.run(|| netlink::request(Message::NewRule(message), NLM_F_CREATE | NLM_F_EXCL))
            .map_err(std::io::Error::other)
            .and_then(std::convert::identity)
            .doing(format_args!("adding the rule from {source}"))
    }

    /// Packets of either family that carry `mark` look their route up in `table` first; no more of that where not `there`.
    ///
    /// # Errors
    /// Where it is so already, or without the right to.
    pub fn set_rule_of_mark(
        &self,
        is_ipv4: bool,
        mark: u32,
        table: u32,
        there: bool,
    ) -> Result<(), LinuxError> {
        let mut message = RuleMessage::default();
        message.header.family = if is_ipv4 { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.header.action = RuleAction::ToTable;
        message.attributes.push(RuleAttribute::FwMark(mark));
        message.attributes.push(RuleAttribute::FwMask(u32::MAX));
        message.attributes.push(RuleAttribute::Table(table));
        let (request, flags) = if there {
            (Message::NewRule(message), NLM_F_CREATE | NLM_F_EXCL)
        } else {
            (Message::DelRule(message), 0)
        };
        self.run(|| netlink::request(request, flags))?.doing(format_args!("the rule for the mark {mark:#x}"))
    }

    fn change_device(
        &self,
        device: &str,
        doing: &str,
        change: impl FnOnce(&mut LinkMessage) + Send,
    ) -> Result<(), LinuxError> {
        let asked = |mut message| {
            change(&mut message);
            netlink::request(Message::SetLink(message), 0)
        };
        self.with_device(device, asked, format_args!("{doing} the device {device}"))
    }

    fn with_device(
        &self,
        device: &str,
        ask: impl FnOnce(LinkMessage) -> std::io::Result<()> + Send,
        doing: fmt::Arguments<'_>,
    ) -> Result<(), LinuxError> {
        let ask = |index| {
            let mut message = LinkMessage::default();
            message.header.index = index;
            ask(message)
        };
        self.with_index(device, ask, &doing.to_string())
    }

    /// Does something in there with the index of `device`.
    fn with_index(
        &self,
        device: &str,
        ask: impl FnOnce(u32) -> std::io::Result<()> + Send,
        doing: &str,
    ) -> Result<(), LinuxError> {
        self.run(|| ask(nix::net::if_::if_nametoindex(device)?))?.doing(doing)
    }
}

fn links(found: Vec<Message>) -> impl Iterator<Item = LinkMessage> {
    found.into_iter().filter_map(|message| match message {
        Message::NewLink(link) => Some(link),
        _ => None,
    })
}

fn name_of(link: &LinkMessage) -> Option<String> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}
