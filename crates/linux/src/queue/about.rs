//! Where a policy stands, as its program knows it.

use std::path::Path;

use libbpf_rs::{MapCore, MapFlags};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::load::{ABOUT, map};
use super::qdisc::Device;
use super::{POLICIES, Policy};

/// `struct about` of `bpf/queue/device.h`.
#[derive(Debug, Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct About {
    policy: [u8; 16],
    device: [u8; 16],
    pub(super) owns_qdisc: u32,
    pub(super) index: u32,
}

impl About {
    pub(super) fn new(policy: &Policy, device: &Device, in_front_of: bool) -> Self {
        let padded = |text: &str| {
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(text.bytes().take(15)).for_each(|(to, from)| *to = from);
            bytes
        };
        Self {
            policy: padded(policy.name),
            device: padded(&device.name),
            owns_qdisc: (!in_front_of).into(),
            index: device.index,
        }
    }

    pub(super) fn read(folder: &Path) -> Option<Self> {
        let value = map(&folder.join(ABOUT)).ok()?.lookup(&[0; 4], MapFlags::ANY).ok()??;
        Self::read_from_bytes(value.get(..size_of::<Self>())?).ok()
    }

    pub(super) fn policy(&self) -> Option<&'static Policy> {
        POLICIES.iter().find(|policy| policy.name == text(&self.policy))
    }

    pub(super) fn device(&self) -> String {
        text(&self.device)
    }
}

fn text(bytes: &[u8; 16]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
