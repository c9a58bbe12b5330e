//! `suimon bond bench`: the bond between network namespaces of this host, measured.

mod cuts;
mod datagrams;
mod ends;
mod faults;
mod goodput;
mod reliable;
mod speed;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::Serialize;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_scenario::{Capacity, Link, LinkSpec};
use suimon_units::{Duration, Rate};

use super::options::scheduler;
use crate::error::CliError;

const EXAMPLE: &str = "\
Example:
  suimon bond bench                                              # two pairs of links, both buffers, some 3 min
  suimon bond bench --paths '20Mbit 30ms; trace=lte.down 80ms' --receive-buffer 512kB
  suimon bond bench --schedulers look-ahead,least-buffered,lowest-rtt --json
  suimon bond bench speed                                        # over links that have no bound
  suimon bond bench faults --bytes 1GB                           # paths cut, a device unplugged, a server restarted
  suimon bond bench cuts --seed 1                                # a day of random cuts in minutes
  suimon bond bench datagrams                                    # what datagrams on one path cost

Needs root, or the right to make network namespaces; nothing of this host's network is touched.";

/// Measure the bond over emulated links, beside kernel MPTCP and each path alone
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    goodput: goodput::Arguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    Speed(speed::Arguments),
    Faults(faults::Arguments),
    Cuts(cuts::Arguments),
    Datagrams(datagrams::Arguments),
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.command {
        None => goodput::execute(&arguments.goodput),
        Some(Command::Speed(arguments)) => speed::execute(arguments),
        Some(Command::Faults(arguments)) => faults::execute(arguments),
        Some(Command::Cuts(arguments)) => cuts::execute(arguments),
        Some(Command::Datagrams(arguments)) => datagrams::execute(arguments),
    }
}

/// Both directions of each link in `text`, which are apart by semicolons.
fn links(text: &str) -> Result<Vec<[Link; 2]>, CliError> {
    text.split(';').map(link).collect()
}

fn link(text: &str) -> Result<[Link; 2], CliError> {
    let queue = AlgorithmSpec::parse(Role::Queue, "droptail").expect("the registry has it");
    let spec = LinkSpec::parse(text.trim()).map_err(|error| CliError::of_link("--paths", &error))?;
    let mut links = spec.links(&queue);
    // The way back is not what is measured: as fast, and never full. A radio serves both.
    if matches!(links[1].capacity, Capacity::Opportunities { .. } | Capacity::Steps { .. }) {
        links[1].capacity = Capacity::Rate(Rate::from_bps(10_000_000));
    }
    Ok(links)
}

/// Refuses measurements of transfers of which not all brought what was sent.
fn check_whole(all: bool) -> Result<(), CliError> {
    if all { Ok(()) } else { Err(CliError::Bench("what came is not what was sent".to_owned())) }
}

/// Prints `rows` for programs, or as a table for people, the columns from `numbers` on aligned to the right.
fn print<R: Serialize>(
    rows: &[R],
    json: bool,
    header: &[&str],
    numbers: usize,
    cells: impl Fn(&R) -> Vec<String>,
) -> Result<(), CliError> {
    let mut out = io::stdout();
    if json {
        return Ok(writeln!(out, "{}", serde_json::to_string_pretty(rows).map_err(io::Error::from)?)?);
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_header(header.iter().copied());
    for row in rows {
        table.add_row(cells(row));
    }
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(writeln!(out, "{table}")?)
}

fn long(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}

fn mbit(bps: u64) -> String {
    format!("{:.3} Mbit/s", bps as f64 / 1e6)
}
