//! `suimon trace`: traces of links, made and described.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use suimon_algorithms::RandomStream;
use suimon_scenario::trace::{CellularModel, Opportunities};
use suimon_units::{Duration, Rate};

use crate::error::CliError;

const EXAMPLE: &str = "\
Examples:
  suimon trace generate --mean 3Mbit --length 60s > cell.down
  suimon trace describe cell.down";

/// Make or describe traces of links whose rate varies
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a synthetic cellular link in Mahimahi's format
    Generate(Generate),
    /// Print length and rate of a trace in Mahimahi's format
    Describe {
        /// The trace
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Generate {
    /// Mean rate outside outages
    #[arg(long, value_name = "RATE", default_value = "2.2Mbit")]
    mean: Rate,
    /// Standard deviation of the natural logarithm of the rate, from 0 to 2
    #[arg(long, value_name = "NUMBER", default_value_t = 0.8)]
    deviation: f64,
    /// How long the rate remembers itself
    #[arg(long, value_name = "TIME", default_value = "8s")]
    correlation: Duration,
    /// Mean time between outages
    #[arg(long, value_name = "TIME", default_value = "10s")]
    outage_every: Duration,
    /// Mean length of an outage
    #[arg(long, value_name = "TIME", default_value = "900ms")]
    outage_length: Duration,
    /// Length of the trace, after which it starts again
    #[arg(long, value_name = "TIME", default_value = "120s")]
    length: Duration,
    /// Seed of the randomness
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match &arguments.action {
        Action::Generate(options) => {
            let model = CellularModel {
                mean_rate: options.mean,
                deviation: options.deviation,
                correlation_time: options.correlation,
                time_between_outages: options.outage_every,
                outage_length: options.outage_length,
            };
            let trace = model.generate(options.length, &mut RandomStream::new(options.seed, "cellular"))?;
            out.write_all(trace.to_text().as_bytes())?;
        }
        Action::Describe { file } => {
            let trace = Opportunities::read(file)?;
            writeln!(out, "{}", file.display())?;
            writeln!(out, "length     {:.1}", trace.period())?;
            writeln!(out, "mean rate  {:.3}", trace.mean_rate())?;
            writeln!(out, "packets    {}", trace.times().len())?;
        }
    }
    Ok(())
}
