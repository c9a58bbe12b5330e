//! Loading and unloading.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use libbpf_rs::{AsRawLibbpf, Link, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel, set_print};

use super::error::CongestionError;
use super::{Algorithm, Loaded, host, loaded, support};
use crate::Namespace;

/// Pins in the folder of a loaded algorithm. The pin of the link decides whether the algorithm is loaded.
pub(super) const LINK: &str = "link";
pub(super) const CONNECTIONS: &str = "connections";
pub(super) const EVENTS: &str = "events";
pub(super) const TRACER: &str = "tracer";
pub(super) const TOTALS: &str = "totals";

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Loads `algorithm` under `kernel_name`, so that connections can choose it from now on.
///
/// # Errors
/// Where the machine lacks something, the name is in use, or the kernel refuses it. Nothing is left then.
pub fn load(algorithm: &'static Algorithm, kernel_name: &str) -> Result<Loaded, CongestionError> {
    check_name(kernel_name)?;
    support::require()?;
    let _lock = host::lock()?;
    clear_leftovers();
    if loaded()?.iter().any(|one| one.kernel_name == kernel_name) {
        return Err(CongestionError::AlreadyLoaded(kernel_name.to_owned()));
    }
    // One whose last holder has just ended takes the kernel a moment to let go.
    if !gone(kernel_name)? {
        return Err(CongestionError::NameTaken(kernel_name.to_owned()));
    }
    host::prepare()?;
    let folder = Path::new(host::ROOT).join(algorithm.name).join(kernel_name);
    let pinned = pin(algorithm, kernel_name, &folder);
    if pinned.is_err() {
        clear(&folder);
        host::tidy();
    }
    pinned.map(|()| Loaded { algorithm, kernel_name: kernel_name.to_owned(), folder })
}

/// Takes it away: no new connection can choose it. Gives how many connections still use it, which they do
/// until they end.
///
/// # Errors
/// Where it is the default of a network namespace, unless `force`; or where its pins cannot be removed.
pub fn unload(one: &Loaded, force: bool) -> Result<usize, CongestionError> {
    let _lock = host::lock()?;
    clear_leftovers();
    if let Some(place) = default_of(&one.kernel_name)
        && !force
    {
        return Err(CongestionError::IsDefault { name: one.kernel_name.clone(), place });
    }
    let users = one.connections().map(|connections| connections.len()).unwrap_or_default();
    let link = one.folder.join(LINK);
    fs::remove_file(&link).map_err(|error| CongestionError::file(&link, error))?;
    clear(&one.folder);
    host::tidy();
    gone(&one.kernel_name)?;
    Ok(users)
}

fn check_name(kernel_name: &str) -> Result<(), CongestionError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if kernel_name.is_empty() || kernel_name.len() > 15 || !kernel_name.chars().all(is_fine) {
        return Err(CongestionError::BadName(kernel_name.to_owned()));
    }
    Ok(())
}

/// Whether the kernel has nothing of that name, or lets go of it within a second.
fn gone(kernel_name: &str) -> Result<bool, CongestionError> {
    for _ in 0..50 {
        let available = fs::read_to_string(AVAILABLE)
            .map_err(|error| CongestionError::file(Path::new(AVAILABLE), error))?;
        if !available.split_whitespace().any(|name| name == kernel_name) {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(false)
}

/// A network namespace where new connections get `kernel_name` without asking for it: ours, or one with a name.
fn default_of(kernel_name: &str) -> Option<String> {
    let is_default = |namespace: &Namespace| {
        namespace.sysctl("ipv4/tcp_congestion_control").is_ok_and(|default| default == kernel_name)
    };
    let first = Namespace::open(Path::new("/proc/1/ns/net")).ok();
    if Namespace::current().ok().into_iter().chain(first).any(|own| is_default(&own)) {
        return Some("this machine".to_owned());
    }
    let named = fs::read_dir("/run/netns").ok()?.flatten();
    let found =
        named.map(|entry| entry.path()).find(|path| Namespace::open(path).is_ok_and(|one| is_default(&one)));
    found.map(|path| format!("the network namespace {}", path.display()))
}

/// Removes what loaders have left that were killed before their algorithms were loaded, where this process may.
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
    for algorithm in super::ALGORITHMS {
        let Ok(entries) = fs::read_dir(Path::new(host::ROOT).join(algorithm.name)) else { continue };
        let folders = entries.flatten().map(|entry| entry.path());
        folders.filter(|folder| !folder.join(LINK).exists()).for_each(|folder| clear(&folder));
    }
}

/// Removes the leftovers of a loader that did not come to its end, or an algorithm that is to go.
fn clear(folder: &Path) {
    for pin in [LINK, CONNECTIONS, EVENTS, TRACER, TOTALS] {
        let _ = fs::remove_file(folder.join(pin));
    }
    let _ = fs::remove_dir(folder);
}

/// Messages of libbpf and the kernel's verifier while a program is loaded; libbpf has one place for them.
static LOG: Mutex<String> = Mutex::new(String::new());

fn log() -> MutexGuard<'static, String> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pin(algorithm: &Algorithm, kernel_name: &str, folder: &Path) -> Result<(), CongestionError> {
    clear(folder);
    fs::create_dir_all(folder).map_err(|error| CongestionError::file(folder, error))?;
    explained(algorithm, || pin_object(algorithm, kernel_name, folder))
}

/// Runs `work`; where the kernel refuses it, the error has the kernel's messages.
fn explained<T>(
    algorithm: &Algorithm,
    work: impl FnOnce() -> libbpf_rs::Result<T>,
) -> Result<T, CongestionError> {
    log().clear();
    set_print(Some((PrintLevel::Warn, |_, text| log().push_str(&text))));
    let done = work();
    set_print(None);
    done.map_err(|error| {
        let text = log().clone();
        let last: Vec<_> = text.lines().rev().take(30).collect();
        CongestionError::Refused {
            name: algorithm.name.to_owned(),
            problem: format!("{error:#}"),
            log: last.into_iter().rev().collect::<Vec<_>>().join("\n"),
        }
    })
}

fn pin_object(algorithm: &Algorithm, kernel_name: &str, folder: &Path) -> libbpf_rs::Result<()> {
    let mut object = load_object(algorithm, kernel_name)?;
    let pins = [(".data.tracer", TRACER), (".bss", TOTALS), ("events", EVENTS)];
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if let Some((_, file)) = pins.iter().find(|(suffix, _)| name.ends_with(suffix)) {
            map.pin(folder.join(file))?;
        }
    }
    list_connections(&object)?.pin(folder.join(CONNECTIONS))?;
    attach(&mut object)?.pin(folder.join(LINK))
}

fn load_object(algorithm: &Algorithm, kernel_name: &str) -> libbpf_rs::Result<Object> {
    let mut open = ObjectBuilder::default().name(algorithm.kernel_name)?.open_memory(algorithm.object)?;
    configure(&mut open, algorithm, kernel_name)?;
    open.load()
}

/// From here on the kernel knows it, as long as the link is held or pinned.
fn attach(object: &mut Object) -> libbpf_rs::Result<Link> {
    let mut operations = object.maps_mut().find(|map| map.name() == "ops").ok_or_else(missing)?;
    operations.attach_struct_ops()
}

/// A congestion control that ends with this, or with the process: for experiments.
#[derive(Debug)]
pub struct Held {
    _link: Link,
}

/// Loads `algorithm` under `kernel_name` for as long as the returned value is held.
///
/// # Errors
/// The errors are those of [`load`].
pub fn hold(algorithm: &Algorithm, kernel_name: &str) -> Result<Held, CongestionError> {
    check_name(kernel_name)?;
    support::require()?;
    let mut object = explained(algorithm, || load_object(algorithm, kernel_name))?;
    Ok(Held { _link: explained(algorithm, || attach(&mut object))? })
}

/// A map or a program that the object lacks.
fn missing() -> libbpf_rs::Error {
    libbpf_rs::Error::from_raw_os_error(libc::ENOENT)
}

/// The kernel's list of the sockets that hold our state, to be read as a file.
fn list_connections(object: &Object) -> libbpf_rs::Result<Link> {
    let sockets = object.maps().find(|map| map.name() == "connections").ok_or_else(missing)?;
    let program =
        object.progs_mut().find(|program| program.name() == "list_connections").ok_or_else(missing)?;
    program.attach_iter(std::os::fd::AsFd::as_fd(&sockets))
}

/// The address of the program in this section, as libbpf keeps it.
fn program_of(open: &OpenObject, section: &str) -> Option<[u8; size_of::<usize>()]> {
    let program = open.progs().find(|program| program.section() == section)?;
    Some((program.as_libbpf_object().as_ptr() as usize).to_ne_bytes())
}

/// Sets the values only known here: the name, the arguments that the kernel gives `cong_control`, and null in place of a
/// program for an operation that the kernel lacks, which libbpf then leaves out.
fn configure(open: &mut OpenObject, algorithm: &Algorithm, kernel_name: &str) -> libbpf_rs::Result<()> {
    let has_tx_start = support::has_tx_start();
    let this_kernel = [support::cong_control_arguments(), u32::from(has_tx_start)];
    let lacking = if has_tx_start { None } else { program_of(open, "struct_ops/cwnd_event_tx_start") };
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let Some(value) = map.initial_value_mut() else { continue };
        if name == "ops" {
            let mut padded = [0; 16];
            padded[..algorithm.kernel_name.len()].copy_from_slice(algorithm.kernel_name.as_bytes());
            if let Some(at) = value.windows(16).position(|window| window == padded) {
                padded = [0; 16];
                padded[..kernel_name.len()].copy_from_slice(kernel_name.as_bytes());
                value[at..at + 16].copy_from_slice(&padded);
            }
            // Until it is loaded, an operation is the address of its program.
            let mut operations = value.chunks_exact_mut(size_of::<usize>());
            if let Some(operation) =
                operations.find(|operation| lacking.is_some_and(|one| **operation == one))
            {
                operation.fill(0);
            }
        } else if name.ends_with(".rodata.kernel") {
            let words = this_kernel.map(u32::to_ne_bytes);
            value.iter_mut().zip(words.as_flattened()).for_each(|(byte, set)| *byte = *set);
        }
    }
    Ok(())
}
