//! How fast a bond is where nothing but the machine bounds it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_study::comparison::{Parsed, PathScheduler};
use suimon_study::defaults;
use suimon_units as units;

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, TARGET};
use super::long;
use super::reliable::{Digests, PATIENCE, Progress, Way, transfer};
use crate::error::LabError;

/// Measure the bond over two pairs of devices that carry what the machine can, and what processors it takes
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Speed {
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Parsed<units::Duration>,
    /// Paths
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub paths: u8,
    /// Schedulers of the bond
    #[arg(long, value_name = "SCHEDULER,...", value_delimiter = ',', default_value = "look-ahead")]
    pub schedulers: Vec<Parsed<PathScheduler>>,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
}

/// As the options say.
impl Default for Speed {
    fn default() -> Self {
        defaults()
    }
}

/// A transfer under one scheduler.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The scheduler.
    pub scheme: String,
    /// Payload over time.
    pub goodput_bps: u64,
    /// Processors that the client took.
    pub client_processors: f64,
    /// Processors that the server took.
    pub server_processors: f64,
    /// How the digests of what was sent and of what came compare.
    pub sha256: Digests,
}

impl Speed {
    /// Moves data between two ends of the bond, which `program` runs, under each scheduler.
    ///
    /// # Errors
    /// When the bond does not come up, or a transfer is given up.
    pub fn measure(&self, program: &Path) -> Result<Vec<Row>, LabError> {
        self.schedulers.iter().map(|scheduler| self.row(&scheduler.0, program)).collect()
    }

    fn row(&self, scheduler: &AlgorithmSpec, program: &Path) -> Result<Row, LabError> {
        let hosts = Hosts::plain(self.paths)?;
        let bond =
            Bond::start(&hosts, &Options { carrier: &self.carrier, ..Options::new(program, scheduler) })?;
        let progress = Progress::default();
        let way = Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up: true, patience: PATIENCE };
        let (began, before) = (Instant::now(), bond.processor_time()?);
        let (moved, after, took) = thread::scope(|scope| {
            let moving = scope.spawn(|| transfer(&way, u64::MAX, &progress));
            thread::sleep(long(*self.time));
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
        Ok(Row {
            scheme: scheduler.label().to_owned(),
            goodput_bps: moved.goodput_bps(),
            client_processors: share(0),
            server_processors: share(1),
            sha256: moved.digests(),
        })
    }
}
