//! Loading, replacing and unloading.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapHandle, Object};
use suimon_units::{Bytes, Rate};
use zerocopy::IntoBytes;

use super::about::About;
use super::error::QueueError;
use super::incoming::{self, INCOMING};
use super::object::{attach, explained, open, program};
use super::qdisc::{self, Device};
use super::{Loaded, Policy};
use crate::congestion::host;

/// Pins in the folder of a device. The pin of the link decides whether a policy is loaded.
/// The name of the program in each object.
const EGRESS: &str = "egress";
pub(super) const LINK: &str = "link";
pub(super) const STATE: &str = "state";
pub(super) const EVENTS: &str = "events";
pub(super) const TRACER: &str = "tracer";
pub(super) const ABOUT: &str = "about";
pub(super) const SETTINGS: &str = "settings";
const MAPS: [(&str, &str); 5] = [
    ("state", STATE),
    ("events", EVENTS),
    (".data.tracer", TRACER),
    (".data.settings", SETTINGS),
    (".data.about", ABOUT),
];
/// What is added to the name of a map's pin until its program has taken the place of another.
const COMING: &str = "-coming";

/// The folder in which each device with a policy has its own.
pub(super) fn root() -> PathBuf {
    Path::new(host::ROOT).join("queue")
}

/// How a policy is to be loaded.
#[derive(Debug, Clone)]
pub struct Options {
    /// The device at whose egress it stands.
    pub device: String,
    /// The rate of the link behind it.
    pub rate: Rate,
    /// Room for packets that wait.
    pub buffer: Bytes,
    /// Keep the qdisc that the device has, instead of giving it a token bucket of the rate.
    pub in_front_of: bool,
    /// Let what comes in at the device wait, rather than what leaves it.
    pub incoming: bool,
    /// The policy's settings, as `struct settings` of `bpf/queue/law.h` has them.
    pub settings: Vec<u64>,
}

pub(super) fn map(path: &Path) -> Result<MapHandle, QueueError> {
    MapHandle::from_pinned_path(path).map_err(|error| QueueError::pin(path, error))
}

/// The number of the calling thread's network namespace.
pub(super) fn namespace() -> Result<u64, QueueError> {
    let path = Path::new("/proc/thread-self/ns/net");
    fs::metadata(path).map(|namespace| namespace.ino()).map_err(|error| QueueError::pin(path, error))
}

pub(super) fn folder(index: u32) -> Result<PathBuf, QueueError> {
    Ok(root().join(format!("{}-{index}", namespace()?)))
}

/// Loads `policy` in front of a device's queue, from now on. One that is loaded there already is replaced between two
/// packets; the packets in its queue stay, and a token bucket that came with it takes the rate and the room.
///
/// # Errors
/// The machine lacks something, the device has a qdisc of its own, or the kernel refuses. What was there then stays.
pub fn load(policy: &'static Policy, options: &Options) -> Result<Loaded, QueueError> {
    super::support::require()?;
    let _lock = host::lock()?;
    clear_leftovers();
    let device = find_device(&options.device)?;
    if options.incoming { incoming::load(&device, policy, options) } else { load_at(device, policy, options) }
}

/// The same at the egress of `device`, under the lock.
pub(super) fn load_at(
    device: Device,
    policy: &'static Policy,
    options: &Options,
) -> Result<Loaded, QueueError> {
    let folder = folder(device.index)?;
    let replaces = folder.join(LINK).exists();
    // A queue that came with a policy stays with the next.
    let owned = About::read(&folder).is_some_and(|old| old.owns_qdisc == 1);
    let in_front_of = if replaces { !owned } else { options.in_front_of };
    if !replaces {
        check_qdisc(&device, in_front_of)?;
    }
    host::prepare()?;
    let about = About::new(policy, &device, in_front_of);
    let data = [(".data.settings", options.settings.as_bytes()), (".data.about", about.as_bytes())];
    let done = prepare(&folder).and_then(|()| {
        let mut object = open(policy.name, policy.object, &data)?;
        if !replaces {
            return put_in(policy, &mut object, &device, &folder, options);
        }
        if owned {
            let changed = qdisc::change_token_bucket(&device, options.rate, room(options));
            changed.map_err(|error| QueueError::refused("another rate of the token bucket", error))?;
        }
        replace(policy, &mut object, &folder)
    });
    if done.is_err() && !replaces {
        if about.owns_qdisc == 1 {
            // Not there yet, or to go with the rest.
            let _ = qdisc::remove_ours(device.index);
        }
        clear(&folder);
    }
    if done.is_err() {
        clear_coming(&folder);
        host::tidy();
    }
    done.map(|()| Loaded {
        policy,
        device: device.name,
        index: device.index,
        owns_qdisc: !in_front_of,
        folder,
    })
}

pub(super) fn find_device(name: &str) -> Result<Device, QueueError> {
    let all = qdisc::devices().map_err(|error| QueueError::refused("a list of devices", error))?;
    let accepted = all.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
    all.into_iter()
        .find(|device| device.name == name)
        .ok_or_else(|| QueueError::NoDevice { device: name.to_owned(), accepted })
}

pub(super) fn check_qdisc(device: &Device, in_front_of: bool) -> Result<(), QueueError> {
    let root = qdisc::root_of(device).map_err(|error| QueueError::refused("a list of qdiscs", error))?;
    match root.filter(qdisc::Root::is_made) {
        Some(root) if !in_front_of => {
            Err(QueueError::HasQdisc { device: device.name.clone(), qdisc: root.kind })
        }
        None if in_front_of => Err(QueueError::NoQdisc { device: device.name.clone() }),
        _ => Ok(()),
    }
}

/// Puts a program of the same settings in the place of `one`, which has seen no packet; `reader` reads its records.
pub(super) fn reload(one: &Loaded, reader: u32) -> Result<(), QueueError> {
    let _lock = host::lock()?;
    let settings = one.settings()?;
    let about = About::read(&one.folder).ok_or_else(|| QueueError::pin(&one.folder, "it is unloaded"))?;
    let data = [
        (".data.settings", settings.as_bytes()),
        (".data.about", about.as_bytes()),
        (".data.tracer", reader.as_bytes()),
    ];
    clear_coming(&one.folder);
    let done = replace(one.policy, &mut open(one.policy.name, one.policy.object, &data)?, &one.folder);
    if done.is_err() {
        clear_coming(&one.folder);
    }
    done
}

fn prepare(folder: &Path) -> Result<(), QueueError> {
    fs::create_dir_all(folder).map_err(|error| QueueError::pin(folder, error))?;
    clear_coming(folder);
    Ok(())
}

/// The link comes last: without it nothing is loaded.
fn put_in(
    policy: &Policy,
    object: &mut Object,
    device: &Device,
    folder: &Path,
    options: &Options,
) -> Result<(), QueueError> {
    pin_maps(policy, object, folder, "")?;
    if !options.in_front_of {
        qdisc::add_token_bucket(device, options.rate, room(options))
            .map_err(|error| QueueError::refused("a token bucket", error))?;
    }
    explained(policy.name, || attach(object, EGRESS, device.index)?.pin(folder.join(LINK)))
}

/// The token bucket's room: all drops are the policy's, but for what the largest packet needs beyond.
pub(super) fn room(options: &Options) -> Bytes {
    options.buffer + Bytes::new(SPARE)
}

fn replace(policy: &Policy, object: &mut Object, folder: &Path) -> Result<(), QueueError> {
    pin_maps(policy, object, folder, COMING)?;
    explained(policy.name, || Link::open(folder.join(LINK))?.update_prog(&*program(object, EGRESS)?))?;
    for (_, file) in MAPS {
        let (from, to) = (folder.join(format!("{file}{COMING}")), folder.join(file));
        fs::rename(&from, &to).map_err(|error| QueueError::pin(&from, error))?;
    }
    Ok(())
}

fn pin_maps(policy: &Policy, object: &mut Object, folder: &Path, suffix: &str) -> Result<(), QueueError> {
    explained(policy.name, || {
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if let Some((_, file)) = MAPS.iter().find(|(end, _)| name.ends_with(end)) {
                map.pin(folder.join(format!("{file}{suffix}")))?;
            }
        }
        Ok(())
    })
}

/// Takes the policy away, and the token bucket that came with it.
///
/// # Errors
/// The pin of the link cannot be removed.
pub fn unload(one: &Loaded) -> Result<(), QueueError> {
    let _lock = host::lock()?;
    incoming::end(&one.folder);
    let link = one.folder.join(LINK);
    fs::remove_file(&link).map_err(|error| QueueError::pin(&link, error))?;
    clear_whole(&one.folder);
    clear_leftovers();
    host::tidy();
    Ok(())
}

/// Removes what is left of loaders that were killed, and of devices that are gone.
pub fn remove_leftovers() {
    // An intermediate device may be left where no pin is, and the folder of the pins gone with the last.
    if let Ok(_lock) = host::lock() {
        clear_leftovers();
        host::tidy();
    }
}

/// The same, under the lock.
fn clear_leftovers() {
    for folder in folders() {
        if !is_alive(&folder.join(LINK)) {
            clear_whole(&folder);
        }
    }
    incoming::clear_leftovers();
    // Only where it is empty.
    let _ = fs::remove_dir(root());
}

pub(super) fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(root()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Whether the pinned program stands at a device that is there.
pub(super) fn is_alive(link: &Path) -> bool {
    device_of(link).is_some()
}

/// The number of the device at which the pinned program stands.
pub(super) fn device_of(link: &Path) -> Option<u32> {
    match Link::open(link).and_then(|link| link.info()).ok()?.info {
        LinkTypeInfo::Tcx(tcx) => Some(tcx.ifindex).filter(|index| *index != 0),
        _ => None,
    }
}

/// Removes the token bucket and the pins of a folder whose policy is gone, and the device that was made for it.
pub(super) fn clear_whole(folder: &Path) {
    incoming::end(folder);
    let about = About::read(folder);
    let here = namespace().map(|namespace| format!("{namespace}-")).unwrap_or_default();
    let is_here = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&here));
    if let Some(about) = about
        && is_here
    {
        if about.owns_qdisc == 1 {
            // Gone with its device, or by somebody's hand.
            let _ = qdisc::remove_ours(about.index);
        }
        incoming::remove_device(&about.device());
    }
    clear(folder);
}

fn clear(folder: &Path) {
    clear_coming(folder);
    for pin in [INCOMING, LINK].into_iter().chain(MAPS.map(|(_, file)| file)) {
        let _ = fs::remove_file(folder.join(pin));
    }
    let _ = fs::remove_dir(folder);
    let _ = fs::remove_dir(root());
}

fn clear_coming(folder: &Path) {
    for (_, file) in MAPS {
        let _ = fs::remove_file(folder.join(format!("{file}{COMING}")));
    }
}

/// The largest packet of IP, with its headers.
const SPARE: u64 = 66_000;
