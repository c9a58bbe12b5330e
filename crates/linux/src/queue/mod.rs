//! Arrival policies in the kernel: programs of `bpf/queue` in front of a device's queue, loaded, listed, watched, unloaded.
//!
//! A program stands at the device's egress and judges each packet just before it joins the root qdisc. Like a congestion
//! control it outlives the process by pins; where its link goes, packets pass as if nothing had been there.

mod about;
mod error;
mod incoming;
mod load;
mod object;
mod qdisc;
mod record;
mod shape;
mod support;
mod trace;

use std::path::PathBuf;

use libbpf_rs::{MapCore, MapFlags};

pub use self::error::QueueError;
pub use self::load::{Options, load, remove_leftovers, unload};
pub use self::record::Counts;
pub use self::shape::{ShapedDevice, end_shaping, shape};
pub use self::support::checks;
pub use self::trace::Trace;

/// A policy that can be loaded.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// The simulator's name.
    pub name: &'static str,
    object: &'static [u8],
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/queue/", $name, ".bpf.o"))
    };
}

/// The policies that can be loaded.
pub const POLICIES: &[Policy] = &[
    Policy { name: "rtt-aqm", object: object!("rtt_aqm") },
    Policy { name: "dpd-qt", object: object!("dpd_qt") },
    Policy { name: "even", object: object!("even") },
    Policy { name: "red", object: object!("red") },
    Policy { name: "ared", object: object!("ared") },
    Policy { name: "pie", object: object!("pie") },
    Policy { name: "rem", object: object!("rem") },
    Policy { name: "sred", object: object!("sred") },
    Policy { name: "shyu", object: object!("shyu") },
];

/// A policy in front of a device's queue.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The policy.
    pub policy: &'static Policy,
    /// The device's name as the policy was loaded.
    pub device: String,
    /// The device's number in its network namespace.
    pub index: u32,
    /// Whether the queue behind it is a token bucket that came with it.
    pub owns_qdisc: bool,
    folder: PathBuf,
}

/// The loaded policies, in every network namespace, by device.
#[must_use]
pub fn loaded() -> Vec<Loaded> {
    let one = |folder: PathBuf| {
        let about = about::About::read(&folder).filter(|_| folder.join(load::LINK).exists())?;
        Some(Loaded {
            policy: about.policy()?,
            device: about.device(),
            index: about.index,
            owns_qdisc: about.owns_qdisc == 1,
            folder,
        })
    };
    let mut all: Vec<_> = load::folders().into_iter().filter_map(one).collect();
    all.sort_by(|a, b| (&a.device, &a.folder).cmp(&(&b.device, &b.folder)));
    all
}

/// The one at `device` in this network namespace, or else the one for what comes in there.
///
/// # Errors
/// There is none.
pub fn find_loaded(device: &str) -> Result<Loaded, QueueError> {
    let all = loaded();
    let here: Vec<_> = all.into_iter().filter(Loaded::is_here).collect();
    let names = here.iter().map(|one| one.device.as_str()).collect::<Vec<_>>().join(", ");
    let at = here.iter().position(|one| one.device == device);
    let at = at.or_else(|| here.iter().position(|one| one.incoming().is_some_and(|from| from == device)));
    let found = at.and_then(|at| here.into_iter().nth(at));
    found.ok_or_else(|| QueueError::NotLoaded { device: device.to_owned(), loaded: names })
}

impl Loaded {
    /// Whether its device is in the calling thread's network namespace.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let name = self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        load::namespace().is_ok_and(|here| name.is_some_and(|name| name.starts_with(&format!("{here}-"))))
    }

    /// Its settings, as [`Options::settings`] had them.
    ///
    /// # Errors
    /// The pin cannot be read.
    pub fn settings(&self) -> Result<Vec<u64>, QueueError> {
        let path = self.folder.join(load::SETTINGS);
        let value = load::map(&path)?.lookup(&[0; 4], MapFlags::ANY);
        let value = value.map_err(|error| QueueError::pin(&path, error))?.unwrap_or_default();
        Ok(value.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// What it has counted.
    ///
    /// # Errors
    /// The pin cannot be read.
    pub fn counts(&self) -> Result<Counts, QueueError> {
        let path = self.folder.join(load::STATE);
        let value = load::map(&path)?.lookup(&[0; 4], MapFlags::ANY);
        let value = value.map_err(|error| QueueError::pin(&path, error))?.unwrap_or_default();
        Counts::read(&value).ok_or_else(|| QueueError::pin(&path, "this is no state of a policy"))
    }
}
