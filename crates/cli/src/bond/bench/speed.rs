//! How fast a bond is where nothing but the machine bounds it.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_units as units;

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::reliable::{Progress, Way, transfer};
use super::{check_whole, long, mbit, print, scheduler};
use crate::error::CliError;

/// Measure the bond over two pairs of devices that carry what the machine can, and what processors it takes
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    time: units::Duration,
    /// Paths
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    paths: u8,
    /// Schedulers of the bond
    #[arg(
        long,
        value_name = "SCHEDULER,...",
        value_delimiter = ',',
        value_parser = scheduler,
        default_value = "look-ahead"
    )]
    schedulers: Vec<AlgorithmSpec>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    scheme: String,
    goodput_bps: u64,
    client_processors: f64,
    server_processors: f64,
    sha256: &'static str,
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let (mut rows, mut whole) = (Vec::new(), true);
    for scheduler in &arguments.schedulers {
        let hosts = Hosts::plain(arguments.paths)?;
        let bond = Bond::start(&hosts, &Options::new(scheduler))?;
        let progress = Progress::default();
        let way = Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up: true };
        let (began, before) = (Instant::now(), bond.processor_time()?);
        let (moved, after, took) = thread::scope(|scope| {
            let moving = scope.spawn(|| transfer(&way, u64::MAX, &progress));
            thread::sleep(long(arguments.time));
            let after = bond.processor_time();
            let took = began.elapsed();
            progress.finish();
            (moving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), after, took)
        });
        let (moved, after) = (moved?, after?);
        let share = |end: usize| {
            let used: Duration = after[end] - before[end];
            used.as_secs_f64() / took.as_secs_f64()
        };
        whole &= moved.intact;
        rows.push(Row {
            scheme: scheduler.label().to_owned(),
            goodput_bps: moved.goodput_bps(),
            client_processors: share(0),
            server_processors: share(1),
            sha256: moved.sha256(),
        });
    }
    let header = ["scheduler", "goodput", "processors, client", "server", "SHA-256"];
    print(&rows, arguments.json, &header, 1, |row| {
        vec![
            row.scheme.clone(),
            mbit(row.goodput_bps),
            format!("{:.2}", row.client_processors),
            format!("{:.2}", row.server_processors),
            row.sha256.to_owned(),
        ]
    })?;
    check_whole(whole)
}
