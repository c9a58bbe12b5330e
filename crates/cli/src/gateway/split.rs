//! `--lan` and `--radio`: connections that are routed through this host.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use suimon_gateway::{Devices, Gateway, Listeners, Transparent};
use suimon_linux::Namespace;

use super::Options;
use crate::error::CliError;

/// The devices between which connections are split, where they are there.
pub(super) fn devices(options: &Options) -> Result<Option<Devices>, CliError> {
    let (Some(lan), Some(radio)) = (&options.lan, &options.radio) else { return Ok(None) };
    for (option, device) in [("--lan", lan), ("--radio", radio)] {
        number(option, device)?;
    }
    if lan == radio {
        let problem = format!("{radio} is the device of --lan too; accepted: another one");
        return Err(CliError::Option { option: "--radio", problem });
    }
    Ok(Some(Devices { radio: radio.clone(), lan: lan.clone(), except: options.except.clone() }))
}

/// The number of a device of this host.
fn number(option: &'static str, device: &str) -> Result<u32, CliError> {
    let host = Namespace::current()?;
    host.device_index(device).or_else(|_| {
        let problem = format!("{device:?} is no device of this host; accepted: {}", host.devices()?.join(", "));
        Err(CliError::Option { option, problem })
    })
}

/// Prints what would be set.
pub(super) fn describe(gateway: &Gateway, devices: &Devices) -> Result<(), CliError> {
    let listeners = Listeners::bind(gateway, false)?;
    Ok(write!(io::stdout(), "{}", suimon_gateway::describe(devices, &listeners)?)?)
}

/// Connections are split while this is there.
pub(super) struct Split {
    transparent: Transparent,
    _routes: Routes,
}

impl Split {
    pub(super) fn new(gateway: &Gateway, devices: &Devices) -> Result<Self, CliError> {
        warn_of_host();
        let listeners = Listeners::bind(gateway, true)?;
        let routes = Routes::keep()?;
        let radio = number("--radio", &devices.radio)?;
        let transparent = Transparent::new(gateway, devices, listeners, radio)?;
        tracing::info!("TCP between {} and {} is split", devices.lan, devices.radio);
        Ok(Self { transparent, _routes: routes })
    }

    /// New connections pass unsplit from now on.
    pub(super) fn stop(&self) -> Result<(), CliError> {
        Ok(self.transparent.stop()?)
    }
}

/// Says why nothing may come.
fn warn_of_host() {
    let forwards = ["ipv4/ip_forward", "ipv6/conf/all/forwarding"];
    let is_on = |key: &&str| fs::read_to_string(format!("/proc/sys/net/{key}")).is_ok_and(|text| text.trim() != "0");
    if !forwards.iter().any(is_on) {
        tracing::warn!("this host routes nothing (net.ipv4.ip_forward is 0), so there is nothing to split");
    }
}

/// The helper that keeps routes; it removes them once this process is gone, however that goes.
struct Routes(Child);

impl Routes {
    fn keep() -> Result<Self, CliError> {
        let mut helper = Command::new("/proc/self/exe");
        helper.args(["gateway", "keep-routes"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut helper = Self(helper.spawn()?);
        let mut said = String::new();
        if let Some(output) = helper.0.stdout.take() {
            BufReader::new(output).read_line(&mut said)?;
        }
        match said.trim() {
            "ready" => Ok(helper),
            problem => Err(CliError::Option { option: "--lan", problem: problem.to_owned() }),
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
