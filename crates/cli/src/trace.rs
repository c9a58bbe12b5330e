//! `suimon trace`: traces of links, made and described.

mod describe;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use suimon_algorithms::RandomStream;
use suimon_scenario::ScenarioError;
use suimon_scenario::trace::CellularModel;
use suimon_study::numbers::whole;
use suimon_units::{Duration, Rate};

use crate::error::CliError;

const EXAMPLE: &str = "\
Examples:
  suimon trace generate --mean 3Mbit --length 60s > cell.down
  suimon trace generate --like lte-driving --seed 7 > lte.down
  suimon trace describe cell.down
  suimon trace describe cell.down --svg cell.svg";

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
    /// Draw a trace in Mahimahi's format, and print its length and its rates
    Describe(Describe),
}

#[derive(Debug, Args)]
struct Generate {
    #[arg(long, value_name = "NAME", default_value = "3g-driving", help = format!("What it is like: {}", cells()))]
    like: String,
    /// Mean rate outside outages [default: of --like]
    #[arg(long, value_name = "RATE")]
    mean: Option<Rate>,
    /// Standard deviation of the natural logarithm of the rate, from 0 to 2 [default: of --like]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    deviation: Option<f64>,
    /// How long the rate remembers itself [default: of --like]
    #[arg(long, value_name = "TIME")]
    correlation: Option<Duration>,
    /// Mean time between outages, or handovers [default: of --like]
    #[arg(long, value_name = "TIME")]
    outage_every: Option<Duration>,
    /// Mean length of an outage [default: of --like]
    #[arg(long, value_name = "TIME")]
    outage_length: Option<Duration>,
    /// Length of the trace, after which it starts again
    #[arg(long, value_name = "TIME", default_value = "120s")]
    length: Duration,
    /// Seed of the randomness
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
}

#[derive(Debug, Args)]
struct Describe {
    /// The trace
    file: PathBuf,
    /// Draw it into this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match &arguments.action {
        Action::Generate(options) => {
            let known = CellularModel::named(&options.like).ok_or_else(|| {
                let problem = format!("unknown cell \"{}\"; accepted: {}", options.like, cells());
                CliError::Option { option: "--like", problem }
            })?;
            let model = CellularModel {
                mean_rate: options.mean.unwrap_or(known.mean_rate),
                deviation: options.deviation.unwrap_or(known.deviation),
                correlation_time: options.correlation.unwrap_or(known.correlation_time),
                time_between_outages: options.outage_every.unwrap_or(known.time_between_outages),
                outage_length: options.outage_length.unwrap_or(known.outage_length),
            };
            let trace = model
                .generate(options.length, &mut RandomStream::new(options.seed, "cellular"))
                .map_err(by_option)?;
            out.write_all(trace.to_text().as_bytes())?;
        }
        Action::Describe(options) => describe::execute(options, &mut out)?,
    }
    Ok(())
}

fn cells() -> String {
    CellularModel::NAMED.map(|(name, _)| name).join(", ")
}

/// What is wrong with the model, by the option that says it.
fn by_option(error: ScenarioError) -> CliError {
    let option = match error.key() {
        Some("mean_rate") => "--mean",
        Some("deviation") => "--deviation",
        Some("correlation_time") => "--correlation",
        Some("time_between_outages") => "--outage-every",
        Some("outage_length") => "--outage-length",
        Some("length") => "--length",
        _ => return error.into(),
    };
    CliError::Option { option, problem: error.problem().to_string() }
}
