//! `suimon shape`: a shaper that finds its rate by itself, at a device or simulated over recorded links.

#[cfg(feature = "bpf")]
mod live;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use suimon_study::{Shaped, Shaping, duration_of_shaping, misses, simulate_shaping};
use suimon_units::Duration;

use crate::error::CliError;
use crate::plain_table::{print_json, table};
use crate::progress::Progress;

const EXAMPLE: &str = "\
Examples:
  sudo suimon shape wan0
  sudo suimon shape wan0 --policy rtt-aqm --view
  sudo suimon shape wan0 --status
  suimon shape --simulate lte.down lte.up
  suimon shape --simulate lte.down --controller autorate:target=30ms,autorate --flows 1";

/// Send as fast as a link takes packets whose rate nobody knows, and no faster
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, group = ArgGroup::new("where").args(["device", "simulate"]).required(true))]
pub(crate) struct Arguments {
    /// The device whose outgoing packets are shaped, until interrupted
    device: Option<String>,
    /// Simulate controllers over these recordings in Mahimahi's format
    #[arg(long, value_name = "FILE", num_args = 1..)]
    simulate: Vec<PathBuf>,
    /// What chooses the rate; several for a simulation
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "autorate")]
    controller: Vec<String>,
    /// The policy of the shaper's queue
    #[arg(long, value_name = "NAME", default_value = "pie")]
    policy: String,
    /// Print JSON: an object a second at a device, and a list of the rows of a simulation
    #[arg(long)]
    json: bool,
    /// Show what the shaper believes on the whole terminal
    #[arg(long, requires = "device", conflicts_with = "json")]
    view: bool,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", requires = "device")]
    seconds: Option<u64>,
    /// Print what the shaper that runs at the device believes, as JSON
    #[arg(long, requires = "device")]
    status: bool,
    #[arg(long, hide = true, requires = "device")]
    guard: bool,
    /// Bulk flows of a simulation
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    flows: u32,
    /// Their round-trip time without queues
    #[arg(long, value_name = "TIME", default_value = "40ms")]
    rtt: Duration,
    /// The length of each simulated run; that of the recording where not given
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.device {
        Some(device) => at_device(device, arguments),
        None => simulate(arguments),
    }
}

#[cfg(not(feature = "bpf"))]
fn at_device(_device: &str, _arguments: &Arguments) -> Result<(), CliError> {
    crate::part::Part::BPF.refuse()
}

#[cfg(feature = "bpf")]
fn at_device(device: &str, arguments: &Arguments) -> Result<(), CliError> {
    if arguments.guard {
        return live::guard(device);
    }
    if arguments.status {
        return live::status(device);
    }
    let [controller] = &arguments.controller[..] else {
        let problem = "--controller: a device has one; accepted: one name, or several beside --simulate";
        return Err(CliError::Input(problem.to_owned()));
    };
    live::run(&live::Request {
        device,
        controller,
        policy: &arguments.policy,
        seconds: arguments.seconds,
        json: arguments.json,
        view: arguments.view,
    })
}

fn simulate(arguments: &Arguments) -> Result<(), CliError> {
    let shaping = Shaping {
        shapers: arguments.controller.clone(),
        queue: arguments.policy.clone(),
        flows: arguments.flows,
        rtt: arguments.rtt,
        duration: arguments.duration,
    };
    let progress = Progress::new(duration_of_shaping(&arguments.simulate, &shaping)?);
    let rows = simulate_shaping(&arguments.simulate, &shaping, &progress)?;
    drop(progress);
    if arguments.json { print_json(&rows) } else { print(&rows) }
}

fn print(rows: &[Shaped]) -> Result<(), CliError> {
    let mut table = table(&["trace", "shaper", "goodput", "use", "wait p50", "p95", "p99"]);
    for row in rows {
        table.add_row([
            row.trace.clone(),
            row.shaper.clone(),
            format!("{:.2} Mbit/s", row.goodput_mbps),
            format!("{:.1} %", row.utilisation * 100.0),
            format!("{:.0} ms", row.delay_p50_ms),
            format!("{:.0} ms", row.delay_p95_ms),
            format!("{:.0} ms", row.delay_p99_ms),
        ]);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}", table.trim_fmt())?;
    let misses = misses(rows);
    let bar = "half of the p95 wait at 95 % of the goodput, beside fixed and cake-autorate";
    if misses.is_empty() {
        writeln!(out, "The bar is met: {bar}.")?;
    } else {
        writeln!(out, "The bar is {bar}. Missed:")?;
        misses.iter().try_for_each(|miss| writeln!(out, "  {miss}"))?;
    }
    Ok(())
}
