//! The requirements on this machine, and the remedies for missing ones.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};

use super::error::CongestionError;

/// One thing that is needed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Check {
    /// The requirement.
    pub what: &'static str,
    /// The state of it here, or the missing part and the remedy.
    pub finding: String,
    /// The requirement is met.
    pub is_fine: bool,
}

impl Check {
    /// Met where there is a finding, and not where there is a problem.
    pub(crate) fn of(what: &'static str, result: Result<String, String>) -> Self {
        let is_fine = result.is_ok();
        Self { what, finding: result.unwrap_or_else(|problem| problem), is_fine }
    }
}

/// No requirement on the machine, but on the network: the numbers are those of docs/algorithms/fs-at.md.
const ONE_FLOW: &str = "a queue of one flow each; in one queue of 10 Mbit/s and 40 ms, packets wait 26 ms with one \
    FS-AT flow, 147 ms with two and 429 ms with four; fs-at-open is for queues that flows share";

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Everything that loading needs, each looked at.
#[must_use]
pub fn checks() -> Vec<Check> {
    vec![
        Check::of("programs in this command", built()),
        Check::of("root", root()),
        Check::of("types of the kernel (BTF)", btf()),
        Check::of("struct_ops for TCP", struct_ops()),
        Check::of("interpreter or compiler for BPF", jit()),
        Check::of("links that FS-AT is for", Ok(ONE_FLOW.to_owned())),
    ]
}

/// The first thing that is missing, as an error.
pub(super) fn require() -> Result<(), CongestionError> {
    match checks().into_iter().find(|check| !check.is_fine) {
        Some(check) => Err(CongestionError::Unsupported(check.finding)),
        None => Ok(()),
    }
}

/// Whether this build carries programs for the kernel.
pub(crate) fn built() -> Result<String, String> {
    match env!("SUIMON_WITHOUT_BPF") {
        "" => Ok("there".to_owned()),
        reason => Err(format!("{reason}; install clang and build again")),
    }
}

pub(crate) fn root() -> Result<String, String> {
    if nix::unistd::geteuid().is_root() {
        Ok("yes".to_owned())
    } else {
        Err("only root may load programs into the kernel; run this by sudo".to_owned())
    }
}

pub(crate) fn btf() -> Result<String, String> {
    match fs::metadata(BTF) {
        Ok(_) => Ok(BTF.to_owned()),
        Err(_) => Err(format!(
            "{BTF} is not there: this needs a kernel built with CONFIG_DEBUG_INFO_BTF, as those of most distributions are"
        )),
    }
}

fn struct_ops() -> Result<String, String> {
    if !Path::new(BTF).exists() {
        return Err("not known without the kernel's types".to_owned());
    }
    let btf = Btf::from_vmlinux().map_err(|error| format!("the kernel's types cannot be read: {error}"))?;
    if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err("this kernel lets no BPF program be a congestion control: it needs 6.4 or newer, with CONFIG_BPF_JIT".to_owned());
    }
    if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_none() {
        return Err("this kernel has no links for struct_ops: it needs 6.4 or newer".to_owned());
    }
    Ok(format!("there; cong_control takes {} arguments", cong_control_arguments()))
}

fn jit() -> Result<String, String> {
    match fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").as_deref().map(str::trim) {
        Ok("0") => {
            Err("net.core.bpf_jit_enable is 0, and struct_ops needs compiled programs: set it to 1"
                .to_owned())
        }
        _ => Ok("compiled".to_owned()),
    }
}

/// How many arguments this kernel gives `cong_control`: four since 6.10, two before.
pub(super) fn cong_control_arguments() -> u32 {
    count_arguments().unwrap_or(4)
}

/// Whether this kernel calls `cwnd_event_tx_start`, as it does since 7.1.
pub(super) fn has_tx_start() -> bool {
    with_operation("cwnd_event_tx_start", |_| ()).is_some()
}

fn count_arguments() -> Option<u32> {
    let count = |prototype: FuncProto<'_>| prototype.iter().count() as u32;
    with_operation("cong_control", |operation| FuncProto::try_from(operation).ok().map(count))?
}

/// The result of `look` at the type of an operation, where this kernel has that operation.
fn with_operation<T>(name: &str, look: impl FnOnce(BtfType<'_>) -> T) -> Option<T> {
    let btf = Btf::from_vmlinux().ok()?;
    let operations = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name.is_some_and(|one| one == name))?;
    let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
    Some(look(pointer.referenced_type()))
}
