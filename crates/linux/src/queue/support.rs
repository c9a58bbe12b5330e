//! The requirements on this machine.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Func};

use super::error::QueueError;
use crate::congestion::{Check, support};

/// Everything that loading needs, each looked at.
#[must_use]
pub fn checks() -> Vec<Check> {
    vec![
        Check::of("programs in this command", support::built()),
        Check::of("root", support::root()),
        Check::of("types of the kernel (BTF)", support::btf()),
        Check::of("programs at a device's egress (tcx)", egress()),
    ]
}

/// The first thing that is missing, as an error.
pub(super) fn require() -> Result<(), QueueError> {
    match checks().into_iter().find(|check| !check.is_fine) {
        Some(check) => Err(QueueError::Unsupported(check.finding)),
        None => Ok(()),
    }
}

fn egress() -> Result<String, String> {
    support::btf()?;
    let btf = Btf::from_vmlinux().map_err(|error| format!("the kernel's types cannot be read: {error}"))?;
    let attach = btf.type_by_name::<Enum<'_>>("bpf_attach_type");
    let has = |name: &str| {
        attach.as_ref().is_some_and(|types| types.iter().any(|one| one.name.is_some_and(|it| it == name)))
    };
    if !has("BPF_TCX_EGRESS") {
        return Err(
            "this kernel has no links for programs at a device's egress: it needs 6.6 or newer".to_owned()
        );
    }
    if btf.type_by_name::<Func<'_>>("bpf_cast_to_kern_ctx").is_none() {
        return Err("this kernel lets no program look at a device's queue: it needs 6.2 or newer".to_owned());
    }
    Ok("there".to_owned())
}
