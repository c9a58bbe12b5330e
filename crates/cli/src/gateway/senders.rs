//! The congestion control of each side: found in the kernel, or loaded for as long as the gateway runs.

use std::fs;

use suimon_gateway::{Side, Sides};
#[cfg(feature = "bpf")]
use suimon_linux::congestion::{Algorithm, Held, hold};

use super::Options;
use crate::error::CliError;

/// Congestion control that is loaded for the gateway and goes with it.
#[derive(Debug, Default)]
pub(super) struct Senders {
    pub(super) sides: Sides,
    #[cfg(feature = "bpf")]
    held: Vec<Held>,
}

/// The default of --radio-cc, which a machine may be unable to load.
pub(super) const DEFAULT: &str = "fs-at-shared";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

impl Senders {
    pub(super) fn of(options: &Options) -> Result<Self, CliError> {
        let mut senders = Self::default();
        let radio = match senders.find("--radio-cc", &options.radio_cc) {
            Ok(name) => Some(name),
            Err(problem) if options.radio_cc == DEFAULT => {
                tracing::warn!("toward clients the kernel's default sends: {problem}");
                None
            }
            Err(problem) => return Err(problem),
        };
        let lan = options.lan_cc.as_deref().map(|name| senders.find("--lan-cc", name)).transpose()?;
        let side = |congestion_control| Side { congestion_control, receive_buffer: options.receive_buffer };
        senders.sides = Sides { radio: side(radio), lan: side(lan) };
        Ok(senders)
    }

    /// The kernel's name for `name`, which is there from now on.
    fn find(&mut self, option: &'static str, name: &str) -> Result<String, CliError> {
        let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let there: Vec<_> = there.split_whitespace().collect();
        let kernel_name = kernel_name(name);
        if there.contains(&kernel_name.as_str()) {
            return Ok(kernel_name);
        }
        if self.load(name)? {
            return Ok(kernel_name);
        }
        let problem = format!(
            "{name} is neither in the kernel nor can it be loaded; accepted: {}, and what `suimon cc list` shows",
            there.join(", ")
        );
        Err(CliError::Option { option, problem })
    }

    #[cfg(feature = "bpf")]
    fn load(&mut self, name: &str) -> Result<bool, CliError> {
        let Ok(algorithm) = Algorithm::named(name) else { return Ok(false) };
        self.held.push(hold(algorithm, algorithm.kernel_name)?);
        tracing::info!("{} is loaded while this runs; the kernel calls it {}", algorithm.name, algorithm.kernel_name);
        Ok(true)
    }

    #[cfg(not(feature = "bpf"))]
    fn load(&mut self, _name: &str) -> Result<bool, CliError> {
        Ok(false)
    }
}

#[cfg(feature = "bpf")]
fn kernel_name(name: &str) -> String {
    Algorithm::named(name).map_or(name, |algorithm| algorithm.kernel_name).to_owned()
}

/// The kernel's names have no hyphens.
#[cfg(not(feature = "bpf"))]
fn kernel_name(name: &str) -> String {
    name.replace(['-', '+'], "_")
}
