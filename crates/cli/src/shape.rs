//! `suimon shape`: a shaper that finds its rate by itself, at a device or simulated over recorded links.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use suimon_study::{Shaped, Shaping, duration_of_shaping, misses, simulate_shaping};
use suimon_units::Duration;

use crate::error::CliError;
use crate::plain_table::{print_json, table};
use crate::progress::Progress;

const EXAMPLE: &str = "\
Examples:
  suimon shape --simulate lte.down lte.up
  suimon shape --simulate lte.down --controller autorate:target=50ms,autorate --flows 1";

/// Send as fast as a link takes packets whose rate nobody knows, and no faster
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Simulate controllers over these recordings in Mahimahi's format
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    simulate: Vec<PathBuf>,
    /// What chooses the rate; several for a comparison
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "autorate")]
    controller: Vec<String>,
    /// The policy of the shaper's queue
    #[arg(long, value_name = "NAME", default_value = "pie")]
    queue: String,
    /// Bulk flows
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    flows: u32,
    /// Their round-trip time without queues
    #[arg(long, value_name = "TIME", default_value = "40ms")]
    rtt: Duration,
    /// The length of each run; that of the recording where not given
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let shaping = Shaping {
        shapers: arguments.controller.clone(),
        queue: arguments.queue.clone(),
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
