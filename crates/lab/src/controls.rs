//! Congestion control in the kernel for as long as it is needed.

#[cfg(feature = "bpf")]
use suimon_linux::congestion::{Algorithm, Held, hold, loaded};
use suimon_live::KernelNames;
#[cfg(feature = "bpf")]
use suimon_live::senders;
use suimon_scenario::Run;
#[cfg(feature = "bpf")]
use suimon_scenario::Traffic;

use crate::error::LabError;

/// Congestion controls that are in the kernel as long as this is held.
pub struct HeldControls {
    /// What the kernel calls each.
    pub names: KernelNames,
    #[cfg(feature = "bpf")]
    _held: Vec<Held>,
}

/// Loads those of `runs` that this crate carries and nobody has loaded. A congestion control of the kernel's own that has
/// the name of one of them is another: Linux's Vegas is not the paper's.
///
/// # Errors
/// When the kernel does not take one.
#[cfg(feature = "bpf")]
pub fn hold_missing<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Result<HeldControls, LabError> {
    let loaded = loaded()?;
    let (mut names, mut held) = (KernelNames::new(), Vec::new());
    for flow in runs.into_iter().flat_map(|run| run.scenario.flows.iter()) {
        let Traffic::Tcp(tcp) = &flow.traffic else { continue };
        for label in senders(tcp) {
            let Ok(algorithm) = Algorithm::named(label) else { continue };
            if names.contains_key(label) {
                continue;
            }
            let name = match loaded.iter().find(|one| one.algorithm.name == algorithm.name) {
                Some(one) => one.kernel_name.clone(),
                None => {
                    let name = format!("s{}_{}", std::process::id(), held.len());
                    held.push(hold(algorithm, &name)?);
                    name
                }
            };
            names.insert(label.to_owned(), name);
        }
    }
    Ok(HeldControls { names, _held: held })
}

/// Built without programs for the kernel, this crate has only what the kernel has.
///
/// # Errors
/// None.
#[cfg(not(feature = "bpf"))]
pub fn hold_missing<'a>(_runs: impl IntoIterator<Item = &'a Run>) -> Result<HeldControls, LabError> {
    Ok(HeldControls { names: KernelNames::new() })
}
