//! Loading, replacing and unloading.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{
    AsRawLibbpf, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, ProgramMut,
    libbpf_sys, set_print,
};
use suimon_units::{Bytes, Rate};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::error::QueueError;
use super::qdisc::{self, Device};
use super::{Loaded, POLICIES, Policy};
use crate::congestion::host;

/// Pins in the folder of a device. The pin of the link decides whether a policy is loaded.
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
    /// The policy's settings, as `struct settings` of `bpf/queue/law.h` has them.
    pub settings: Vec<u64>,
}

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
    fn new(policy: &Policy, device: &Device, in_front_of: bool) -> Self {
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

pub(super) fn map(path: &Path) -> Result<MapHandle, QueueError> {
    MapHandle::from_pinned_path(path).map_err(|error| QueueError::pin(path, error))
}

/// The number of the calling thread's network namespace.
pub(super) fn namespace() -> Result<u64, QueueError> {
    let path = Path::new("/proc/thread-self/ns/net");
    fs::metadata(path).map(|namespace| namespace.ino()).map_err(|error| QueueError::pin(path, error))
}

fn folder(index: u32) -> Result<PathBuf, QueueError> {
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
        let mut object = open(policy, &data)?;
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
    let done = replace(one.policy, &mut open(one.policy, &data)?, &one.folder);
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

/// The program and its maps, in the kernel and nowhere yet; `data` are variables that begin with other than zero.
fn open(policy: &Policy, data: &[(&str, &[u8])]) -> Result<Object, QueueError> {
    explained(policy, || {
        let mut open = ObjectBuilder::default().open_memory(policy.object)?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if let Some((_, bytes)) = data.iter().find(|(end, _)| name.ends_with(end))
                && let Some(value) = map.initial_value_mut()
            {
                value.iter_mut().zip(*bytes).for_each(|(to, from)| *to = *from);
            }
        }
        open.load()
    })
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
    explained(policy, || attach(object, device.index)?.pin(folder.join(LINK)))
}

/// The token bucket's room: all drops are the policy's, but for what the largest packet needs beyond.
pub(super) fn room(options: &Options) -> Bytes {
    options.buffer + Bytes::new(SPARE)
}

fn replace(policy: &Policy, object: &mut Object, folder: &Path) -> Result<(), QueueError> {
    pin_maps(policy, object, folder, COMING)?;
    explained(policy, || Link::open(folder.join(LINK))?.update_prog(&*program(object)?))?;
    for (_, file) in MAPS {
        let (from, to) = (folder.join(format!("{file}{COMING}")), folder.join(file));
        fs::rename(&from, &to).map_err(|error| QueueError::pin(&from, error))?;
    }
    Ok(())
}

fn pin_maps(policy: &Policy, object: &mut Object, folder: &Path, suffix: &str) -> Result<(), QueueError> {
    explained(policy, || {
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if let Some((_, file)) = MAPS.iter().find(|(end, _)| name.ends_with(end)) {
                map.pin(folder.join(format!("{file}{suffix}")))?;
            }
        }
        Ok(())
    })
}

fn program(object: &Object) -> libbpf_rs::Result<ProgramMut<'_>> {
    let found = object.progs_mut().find(|program| program.name() == "egress");
    found.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))
}

/// From here on the program sees the device's packets, as long as the link is held or pinned.
fn attach(object: &Object, index: u32) -> libbpf_rs::Result<Link> {
    let program = program(object)?;
    // SAFETY: the program lives as long as `object`, and no options are given.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(
            program.as_libbpf_object().as_ptr(),
            index as i32,
            std::ptr::null(),
        )
    };
    let failed = || libbpf_rs::Error::from(std::io::Error::last_os_error());
    // SAFETY: libbpf gives a link that is the caller's, or null.
    NonNull::new(link).map(|link| unsafe { Link::from_ptr(link) }).ok_or_else(failed)
}

/// Takes the policy away, and the token bucket that came with it.
///
/// # Errors
/// The pin of the link cannot be removed.
pub fn unload(one: &Loaded) -> Result<(), QueueError> {
    let _lock = host::lock()?;
    let link = one.folder.join(LINK);
    fs::remove_file(&link).map_err(|error| QueueError::pin(&link, error))?;
    clear_whole(&one.folder);
    clear_leftovers();
    host::tidy();
    Ok(())
}

/// Removes what is left of loaders that were killed, and of devices that are gone.
pub fn remove_leftovers() {
    if Path::new(host::ROOT).exists()
        && let Ok(_lock) = host::lock()
    {
        clear_leftovers();
        host::tidy();
    }
}

/// The same, under the lock.
fn clear_leftovers() {
    for folder in folders() {
        if !is_alive(&folder) {
            clear_whole(&folder);
        }
    }
    // Only where it is empty.
    let _ = fs::remove_dir(root());
}

pub(super) fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(root()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Whether a program stands at a device that is there.
fn is_alive(folder: &Path) -> bool {
    let info = Link::open(folder.join(LINK)).and_then(|link| link.info());
    info.is_ok_and(|info| matches!(info.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex != 0))
}

/// Removes the token bucket and the pins of a folder whose policy is gone.
fn clear_whole(folder: &Path) {
    let about = About::read(folder).filter(|about| about.owns_qdisc == 1);
    let here = namespace().map(|namespace| format!("{namespace}-")).unwrap_or_default();
    let is_here = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&here));
    if let Some(about) = about
        && is_here
    {
        // Gone with its device, or by somebody's hand.
        let _ = qdisc::remove_ours(about.index);
    }
    clear(folder);
}

fn clear(folder: &Path) {
    clear_coming(folder);
    for pin in [LINK].into_iter().chain(MAPS.map(|(_, file)| file)) {
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

/// Messages of libbpf and the kernel's verifier; libbpf has one place for them.
static LOG: Mutex<String> = Mutex::new(String::new());

fn log() -> MutexGuard<'static, String> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work`; where the kernel refuses it, the error has the kernel's messages.
fn explained<T>(policy: &Policy, work: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, QueueError> {
    log().clear();
    set_print(Some((PrintLevel::Warn, |_, text| log().push_str(&text))));
    let done = work();
    set_print(None);
    done.map_err(|error| {
        let text = log().clone();
        let last: Vec<_> = text.lines().rev().take(30).collect();
        let log = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        QueueError::Refused { what: policy.name.to_owned(), problem: format!("{error:#}"), log }
    })
}

/// The largest packet of IP, with its headers.
const SPARE: u64 = 66_000;
