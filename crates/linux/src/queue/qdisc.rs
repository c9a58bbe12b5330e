//! The queue of a device: what it has, and a token bucket of our own.

use std::io;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{LinkAttribute, LinkLayerType, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use suimon_units::{Bytes, Rate};
use zerocopy::{Immutable, IntoBytes};

use crate::netlink;

/// A device of the calling thread's namespace.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) index: u32,
    mtu: u32,
    /// Bytes of the link's header before each packet.
    header: u32,
}

impl Device {
    pub(super) fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether its packets have a header of Ethernet.
    pub(super) fn is_ethernet(&self) -> bool {
        self.header == ETHERNET_HEADER
    }
}

/// All devices.
pub(super) fn devices() -> io::Result<Vec<Device>> {
    let found = netlink::list(Message::GetLink(LinkMessage::default()))?;
    let device = |message: Message| {
        let Message::NewLink(link) = message else { return None };
        let attributes = || link.attributes.iter();
        Some(Device {
            name: attributes().find_map(|one| match one {
                LinkAttribute::IfName(name) => Some(name.clone()),
                _ => None,
            })?,
            index: link.header.index,
            mtu: attributes()
                .find_map(|one| if let LinkAttribute::Mtu(mtu) = one { Some(*mtu) } else { None })
                .unwrap_or(1_500),
            header: if link.header.link_layer_type == LinkLayerType::Ether { ETHERNET_HEADER } else { 0 },
        })
    };
    Ok(found.into_iter().filter_map(device).collect())
}

/// A device's root qdisc.
pub(super) struct Root {
    pub(super) kind: String,
    handle: u16,
}

impl Root {
    /// Somebody made it, rather than the kernel by itself.
    pub(super) fn is_made(&self) -> bool {
        self.handle != 0
    }

    /// It is that of [`add_class`].
    pub(super) fn is_our_class(&self) -> bool {
        self.handle == OUR_HANDLE && self.kind == HTB
    }
}

/// The root qdisc of `device`.
pub(super) fn root_of(device: &Device) -> io::Result<Option<Root>> {
    let found = netlink::list(Message::GetQueueDiscipline(TcMessage::default()))?;
    let root = found.into_iter().find_map(|message| match message {
        Message::NewQueueDiscipline(qdisc)
            if qdisc.header.index == device.index as i32 && qdisc.header.parent == TcHandle::ROOT =>
        {
            Some(qdisc)
        }
        _ => None,
    });
    Ok(root.map(|qdisc| {
        let kind = qdisc.attributes.iter().find_map(|one| match one {
            TcAttribute::Kind(kind) => Some(kind.clone()),
            _ => None,
        });
        Root { kind: kind.unwrap_or_default(), handle: qdisc.header.handle.major }
    }))
}

/// Gives `device` a token bucket of `rate` in IP bytes with room for `limit`, under our handle.
pub(super) fn add_token_bucket(device: &Device, rate: Rate, limit: Bytes) -> io::Result<()> {
    netlink::request(token_bucket(device, rate, limit), NLM_F_CREATE | NLM_F_EXCL)
}

/// Gives our token bucket at `device` another rate and room; what waits in it stays.
pub(super) fn change_token_bucket(device: &Device, rate: Rate, limit: Bytes) -> io::Result<()> {
    netlink::request(token_bucket(device, rate, limit), 0)
}

fn token_bucket(device: &Device, rate: Rate, limit: Bytes) -> Message {
    let bytes_per_second = rate.as_bps() / 8;
    let burst = burst(device, bytes_per_second);
    let parameters = TbfParameters {
        rate: RateSpec {
            linklayer: LINKLAYER_ETHERNET,
            rate: u32::try_from(bytes_per_second).unwrap_or(u32::MAX),
            ..RateSpec::default()
        },
        limit: u32::try_from(limit.get()).unwrap_or(u32::MAX),
        ..TbfParameters::default()
    };
    let mut options = attribute(TCA_TBF_PARMS, parameters.as_bytes());
    options.extend(attribute(TCA_TBF_BURST, (burst as u32).as_bytes()));
    if bytes_per_second > u32::MAX.into() {
        options.extend(attribute(TCA_TBF_RATE64, bytes_per_second.as_bytes()));
    }
    let mut message = ours(device);
    message.attributes.push(TcAttribute::Kind("tbf".to_owned()));
    message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)));
    message.attributes.push(without_header(device));
    Message::NewQueueDiscipline(message)
}

/// Gives `device` a queue of one class with `rate` in IP bytes and room for `limit`, under our handle. A token bucket would
/// let a burst go whenever its rate changes; a class does not.
pub(super) fn add_class(device: &Device, rate: Rate, limit: Bytes) -> io::Result<()> {
    let global =
        HtbGlobal { version: HTB_VERSION, rate_to_quantum: 10, default_class: 1, ..HtbGlobal::default() };
    let mut root = ours(device);
    root.attributes.push(TcAttribute::Kind(HTB.to_owned()));
    let options = attribute(TCA_HTB_INIT, global.as_bytes());
    root.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)));
    root.attributes.push(without_header(device));
    netlink::request(Message::NewQueueDiscipline(root), NLM_F_CREATE | NLM_F_EXCL)?;
    let done = netlink::request(class(device, rate), NLM_F_CREATE | NLM_F_EXCL).and_then(|()| {
        let mut leaf = ours(device);
        leaf.header.parent = OUR_CLASS;
        leaf.header.handle = TcHandle { major: OUR_HANDLE + 1, minor: 0 };
        leaf.attributes.push(TcAttribute::Kind("bfifo".to_owned()));
        let limit = u32::try_from(limit.get()).unwrap_or(u32::MAX).to_ne_bytes().to_vec();
        leaf.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, limit)));
        netlink::request(Message::NewQueueDiscipline(leaf), NLM_F_CREATE | NLM_F_EXCL)
    });
    if done.is_err() {
        let _ = remove_ours(device.index);
    }
    done
}

/// Gives the class of [`add_class`] another rate; what waits in it stays.
pub(super) fn change_class(device: &Device, rate: Rate) -> io::Result<()> {
    netlink::request(class(device, rate), 0)
}

fn class(device: &Device, rate: Rate) -> Message {
    let bytes_per_second = (rate.as_bps() / 8).clamp(1, u32::MAX.into());
    // The time of a burst, in ticks of 64 ns.
    let ticks = burst(device, bytes_per_second) * 1_000_000_000 / bytes_per_second / 64;
    let spec =
        || RateSpec { linklayer: LINKLAYER_ETHERNET, rate: bytes_per_second as u32, ..RateSpec::default() };
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
    let parameters = HtbParameters {
        rate: spec(),
        ceil: spec(),
        buffer: ticks,
        cbuffer: ticks,
        quantum: device.mtu + device.header,
        ..HtbParameters::default()
    };
    let mut message = ours(device);
    message.header.parent = TcHandle { major: OUR_HANDLE, minor: 0 };
    message.header.handle = OUR_CLASS;
    message.attributes.push(TcAttribute::Kind(HTB.to_owned()));
    let options = attribute(TCA_HTB_PARMS, parameters.as_bytes());
    message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)));
    Message::NewTrafficClass(message)
}

/// What a millisecond brings, and one packet at least.
fn burst(device: &Device, bytes_per_second: u64) -> u64 {
    (bytes_per_second / 1_000).max(u64::from(device.mtu + device.header)).min(u32::MAX.into())
}

/// Packets count without the header of the link.
fn without_header(device: &Device) -> TcAttribute {
    let sizes = SizeSpec {
        overhead: -(device.header as i32),
        linklayer: LINKLAYER_ETHERNET.into(),
        ..SizeSpec::default()
    };
    TcAttribute::Stab(attribute(TCA_STAB_BASE, sizes.as_bytes()))
}

/// Takes our token bucket away, or our HTB, where the device still has it.
pub(super) fn remove_ours(index: u32) -> io::Result<()> {
    let device = Device { name: String::new(), index, mtu: 0, header: 0 };
    netlink::request(Message::DelQueueDiscipline(ours(&device)), 0)
}

fn ours(device: &Device) -> TcMessage {
    let mut message = TcMessage::default();
    message.header.index = device.index as i32;
    message.header.parent = TcHandle::ROOT;
    message.header.handle = TcHandle { major: OUR_HANDLE, minor: 0 };
    message
}

/// An attribute of netlink, filled to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(((value.len() + 4) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// `tc_ratespec` of `linux/pkt_sched.h`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct RateSpec {
    cell_log: u8,
    linklayer: u8,
    overhead: u16,
    cell_align: i16,
    mpu: u16,
    rate: u32,
}

/// `tc_tbf_qopt`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct TbfParameters {
    rate: RateSpec,
    peakrate: RateSpec,
    limit: u32,
    buffer: u32,
    mtu: u32,
}

/// `tc_htb_glob`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct HtbGlobal {
    version: u32,
    rate_to_quantum: u32,
    default_class: u32,
    debug: u32,
    direct_packets: u32,
}

/// `tc_htb_opt`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct HtbParameters {
    rate: RateSpec,
    ceil: RateSpec,
    buffer: u32,
    cbuffer: u32,
    quantum: u32,
    level: u32,
    prio: u32,
}

/// `tc_sizespec`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct SizeSpec {
    cell_log: u8,
    size_log: u8,
    cell_align: i16,
    overhead: i32,
    linklayer: u32,
    mpu: u32,
    mtu: u32,
    tsize: u32,
}

/// Numbers of `linux/rtnetlink.h` and `linux/pkt_sched.h`.
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const HTB: &str = "htb";
const HTB_VERSION: u32 = 3;
const TCA_STAB_BASE: u16 = 1;
const LINKLAYER_ETHERNET: u8 = 1;
const ETHERNET_HEADER: u32 = 14;
/// By this handle a token bucket or HTB is known as ours.
const OUR_HANDLE: u16 = 0x5e17;
const OUR_CLASS: TcHandle = TcHandle { major: OUR_HANDLE, minor: 1 };
