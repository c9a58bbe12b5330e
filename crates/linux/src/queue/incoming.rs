//! What comes in at a device, led through an intermediate one (ifb), so that it waits in front of a policy there.

use std::fs;
use std::path::Path;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use zerocopy::IntoBytes;

use super::error::QueueError;
use super::load::{self, Options};
use super::object::{attach, explained, open};
use super::qdisc::{self, Device};
use super::{Loaded, Policy};
use crate::netlink;

/// The pin of the link that leads packets to the intermediate device, in that device's folder.
pub(super) const INCOMING: &str = "incoming";
/// The name of an intermediate device begins with this, and ends with the number of the device whose packets it gets.
const PREFIX: &str = "suimon-in";
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/queue/incoming.bpf.o"));
const WHAT: &str = "the way through an intermediate device";

/// Loads `policy` for what comes in at `device`. The way through the intermediate device opens last: until then packets come
/// in as before.
pub(super) fn load(
    device: &Device,
    policy: &'static Policy,
    options: &Options,
) -> Result<Loaded, QueueError> {
    if !device.is_ethernet() {
        return Err(QueueError::NotEthernet { device: device.name.clone() });
    }
    let name = format!("{PREFIX}{}", device.index);
    let made = !devices().any(|one| one.name == name);
    if made {
        add_device(&name, device)
            .map_err(|error| QueueError::refused("an intermediate device (ifb)", error))?;
    }
    let intermediate = load::find_device(&name)?;
    let folder = load::folder(intermediate.index)?;
    let done = load::load_at(intermediate, policy, options).and_then(|loaded| {
        if made {
            lead(device, &loaded)?;
        }
        Ok(loaded)
    });
    if done.is_err() && made {
        load::clear_whole(&folder);
        remove_device(&name);
    }
    done
}

fn devices() -> impl Iterator<Item = Device> {
    qdisc::devices().into_iter().flatten()
}

fn add_device(name: &str, device: &Device) -> std::io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message.attributes.push(LinkAttribute::Mtu(device.mtu()));
    message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Ifb)]));
    netlink::request(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// From here on packets that come in at `device` wait where `to` is loaded.
fn lead(device: &Device, to: &Loaded) -> Result<(), QueueError> {
    let object = open(WHAT, OBJECT, &[(".data.target", to.index.as_bytes())])?;
    explained(WHAT, || attach(&object, "incoming", device.index)?.pin(to.folder.join(INCOMING)))
}

/// Packets come in as before, from now on.
pub(super) fn end(folder: &Path) {
    // Most policies have none.
    let _ = fs::remove_file(folder.join(INCOMING));
}

/// Removes an intermediate device; any other stays.
pub(super) fn remove_device(name: &str) {
    if let Some(index) =
        devices().find(|one| one.name == name && name.starts_with(PREFIX)).map(|one| one.index)
    {
        let mut message = LinkMessage::default();
        message.header.index = index;
        // Gone by somebody's hand.
        let _ = netlink::request(Message::DelLink(message), 0);
    }
}

/// Removes intermediate devices to which nothing is led: their loader was killed, or the other device is gone.
pub(super) fn clear_leftovers() {
    for device in devices().filter(|one| one.name.starts_with(PREFIX)) {
        if let Ok(folder) = load::folder(device.index)
            && !load::is_alive(&folder.join(INCOMING))
        {
            load::clear_whole(&folder);
            remove_device(&device.name);
        }
    }
}

impl Loaded {
    /// The device whose incoming packets wait here, where this stands at an intermediate one.
    #[must_use]
    pub fn incoming(&self) -> Option<String> {
        let index = load::device_of(&self.folder.join(INCOMING))?;
        devices().find(|one| one.index == index).map(|one| one.name)
    }
}
