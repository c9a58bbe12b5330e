//! `suimon measure`: a line as it is, between two hosts.

mod flent;
mod record;
mod run;
mod save;
mod serve;
mod show;
mod web;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use suimon_units::Duration;

use crate::error::CliError;
use crate::service::ServiceOptions;

const EXAMPLE: &str = "\
Examples:
  suimon measure --serve                          # on a host beyond the line: a VPS, or a machine in the house
  suimon measure vps.example                      # on the near end: what is this line like?
  suimon measure vps.example --save line.toml     # ... as a scenario
  suimon compare --line line.toml                 # what a queue, a buffer or a sender would change on it
  suimon measure vps.example --megabytes 20       # no more data than that
  suimon measure vps.example --rpm                # ... with its round trips a minute
  suimon measure record vps.example               # a line that varies, as traces: line.down and line.up
  suimon measure vps.example --json | jq .download.capacity_mbps

No part of it needs root. A firewall in front of the server must let TCP and UDP to port 7423 in; the client opens
all connections, so that it may be behind NAT. A browser measures by http://vps.example:7423/. Ctrl-C ends a measurement and shows what is known.";

/// Measure a line: capacity, delay idle and loaded, buffer, loss and kind of queue
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    group = ArgGroup::new("what").args(["server", "serve", "read"]).required(true)
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The server, where `suimon measure --serve` runs; port 7423 if none is given
    #[arg(value_name = "HOST[:PORT]")]
    server: Option<String>,
    /// Serve those who measure, until Ctrl-C
    #[arg(long)]
    serve: bool,
    /// Describe what an earlier measurement recorded by --record
    #[arg(long, value_name = "FILE")]
    read: Option<PathBuf>,
    #[command(flatten)]
    client: ClientOptions,
    #[command(flatten)]
    serving: serve::Options,
}

#[derive(Debug, Subcommand)]
enum Action {
    Record(record::Options),
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct ClientOptions {
    /// The most data of both directions together, in megabytes
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, conflicts_with = "serve")]
    megabytes: u64,
    /// How long each direction is loaded, from 1s to 20s
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with = "serve")]
    load: Duration,
    /// TCP connections of each load, from 1 to 32
    #[arg(long, value_name = "COUNT", default_value_t = 4, conflicts_with = "serve")]
    flows: u8,
    /// Also tell the responsiveness in round trips a minute, by requests over new connections beside the loads
    #[arg(long, conflicts_with_all = ["serve", "read"])]
    rpm: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "serve")]
    json: bool,
    /// Write the line as a scenario, for `suimon compare --line` and `suimon run`
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    save: Option<PathBuf>,
    /// Write each probe and what arrived of the load then as CSV
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    csv: Option<PathBuf>,
    /// Write a data file for flent, version 4 of its format
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    flent: Option<PathBuf>,
    /// Write metrics for Prometheus, as the textfile collector of its node exporter reads them
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    prometheus: Option<PathBuf>,
    /// Write everything that both ends saw as JSON, for --read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["serve", "read"])]
    record: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    if let Some(Action::Record(options)) = &arguments.action {
        return record::execute(options);
    }
    let options = &arguments.client;
    match (&arguments.server, &arguments.read) {
        (Some(server), _) => run::execute(server, options),
        (None, Some(file)) => run::describe(file, options),
        (None, None) => serve::execute(&arguments.serving),
    }
}

