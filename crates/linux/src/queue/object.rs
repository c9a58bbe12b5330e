//! Programs for the kernel: opened, put at a device, and the kernel's words where it refuses one.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{AsRawLibbpf, Link, Object, ObjectBuilder, PrintLevel, ProgramMut, libbpf_sys, set_print};

use super::error::QueueError;

/// The program and its maps, in the kernel and nowhere yet; `data` are variables that begin with other than zero.
pub(super) fn open(what: &str, bytes: &[u8], data: &[(&str, &[u8])]) -> Result<Object, QueueError> {
    explained(what, || {
        let mut open = ObjectBuilder::default().open_memory(bytes)?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if let Some((_, begins)) = data.iter().find(|(end, _)| name.ends_with(end))
                && let Some(value) = map.initial_value_mut()
            {
                value.iter_mut().zip(*begins).for_each(|(to, from)| *to = *from);
            }
        }
        open.load()
    })
}

/// The program of that name.
pub(super) fn program<'a>(object: &'a Object, name: &str) -> libbpf_rs::Result<ProgramMut<'a>> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))
}

/// From here on the program sees the device's packets, as long as the link is held or pinned.
pub(super) fn attach(object: &Object, name: &str, index: u32) -> libbpf_rs::Result<Link> {
    let program = program(object, name)?;
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

/// Messages of libbpf and the kernel's verifier; libbpf has one place for them.
static LOG: Mutex<String> = Mutex::new(String::new());

fn log() -> MutexGuard<'static, String> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work`; where the kernel refuses it, the error has the kernel's messages.
pub(super) fn explained<T>(what: &str, work: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, QueueError> {
    log().clear();
    set_print(Some((PrintLevel::Warn, |_, text| log().push_str(&text))));
    let done = work();
    set_print(None);
    done.map_err(|error| {
        let text = log().clone();
        let last: Vec<_> = text.lines().rev().take(30).collect();
        let log = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        QueueError::Refused { what: what.to_owned(), problem: format!("{error:#}"), log }
    })
}
