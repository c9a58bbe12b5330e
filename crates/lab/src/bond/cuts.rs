//! A day of random cuts, compressed.

use std::path::Path;
use std::thread;
use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_algorithms::RandomStream;
use suimon_emulator::{Emulation, Setup, TwoHosts, Way as LinkWay};
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units::Duration;

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, TARGET};
use super::reliable::{Digests, Outcome, PATIENCE, Progress, Way, transfer};
use super::{even_links, long};
use crate::error::LabError;

/// Cut every path at random while data goes each way: a day's worth in minutes; tell stalls and compare digests
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cuts {
    /// How long it takes
    #[arg(long, value_name = "TIME", default_value = "4min")]
    pub time: Parsed<Duration>,
    /// What that stands for: all times of the cuts are compressed by the ratio
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub stands_for: Parsed<Duration>,
    /// Mean time from one cut of a path to its next, of what it stands for
    #[arg(long, value_name = "TIME", default_value = "6min")]
    pub every: Parsed<Duration>,
    /// Mean length of a cut, of what it stands for
    #[arg(long, value_name = "TIME", default_value = "1min")]
    pub lasting: Parsed<Duration>,
    /// Seed of the cuts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// The links that are cut
    #[arg(long, value_name = "LINKS", default_value = "20Mbit 10ms 100packets; 10Mbit 30ms 100packets")]
    pub paths: Parsed<Paths>,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead")]
    pub scheduler: Parsed<PathScheduler>,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
}

/// As the options say.
impl Default for Cuts {
    fn default() -> Self {
        defaults()
    }
}

/// A transfer in one direction.
#[derive(Debug, Serialize)]
pub struct Row {
    /// `up` or `down`.
    pub direction: &'static str,
    /// How often a path was cut, in both transfers.
    pub cuts: u64,
    /// Payload that came.
    pub bytes: u64,
    /// That over the time of the transfer.
    pub goodput_bps: u64,
    /// Longest time in which nothing came.
    pub longest_stall_s: f64,
    /// Streams that the transfer took.
    pub streams: u64,
    /// How the digests of what was sent and of what came compare.
    pub sha256: Digests,
}

impl Cuts {
    /// Cuts the paths between two ends of the bond, which `program` runs.
    ///
    /// # Errors
    /// When the bond does not come up, or a transfer is given up.
    pub fn measure(&self, program: &Path) -> Result<Vec<Row>, LabError> {
        let hosts = TwoHosts::new(&Setup::default(), &even_links(&self.paths.0))?;
        let emulation = &hosts.emulation;
        let hosts = Hosts::emulated(&hosts);
        let _bond = Bond::start(
            &hosts,
            &Options { carrier: &self.carrier, ..Options::new(program, &self.scheduler.0) },
        )?;
        let progress = [Progress::default(), Progress::default()];
        let [up, down] = [true, false].map(|up| Way {
            near: (&hosts.near, ENTRY),
            far: (&hosts.far, TARGET),
            up,
            patience: PATIENCE,
        });
        let factor = self.time.as_secs_f64() / self.stands_for.as_secs_f64();
        let until = Instant::now() + long(*self.time);
        let (outcomes, cuts) = thread::scope(|scope| {
            // One after the other by halves of the time, as both would listen at one target.
            let moving = scope.spawn(|| {
                let up = transfer(&up, u64::MAX, &progress[0])?;
                Ok::<_, std::io::Error>([up, transfer(&down, u64::MAX, &progress[1])?])
            });
            let cutting: Vec<_> = (0..hosts.via.len())
                .map(|path| {
                    let random = RandomStream::new(self.seed, &format!("path {path} cuts"));
                    scope.spawn(move || cut_at_random(emulation, path, random, self, factor, until))
                })
                .collect();
            let half = until - long(*self.time) / 2;
            for (progress, end) in progress.iter().zip([half, until]) {
                thread::sleep(end.saturating_duration_since(Instant::now()));
                progress.finish();
            }
            let cuts: Vec<u64> = cutting.into_iter().map(|thread| thread.join().unwrap_or(0)).collect();
            let moved = moving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (moved, cuts)
        });
        let total: u64 = cuts.iter().sum();
        let outcomes = outcomes?;
        let row = |(outcome, direction): (&Outcome, _)| Row {
            direction,
            cuts: total,
            bytes: outcome.bytes,
            goodput_bps: outcome.goodput_bps(),
            longest_stall_s: outcome.longest_stall.as_secs_f64(),
            streams: outcome.streams,
            sha256: outcome.digests(),
        };
        Ok(outcomes.iter().zip(["up", "down"]).map(row).collect())
    }
}

/// Cuts `path` in one direction or both at exponential times for exponential lengths; how often.
fn cut_at_random(
    emulation: &Emulation,
    path: usize,
    mut random: RandomStream,
    bench: &Cuts,
    factor: f64,
    until: Instant,
) -> u64 {
    let mut cuts = 0;
    let mut exponential = |mean: Duration| long(random.exponential(mean)).mul_f64(factor);
    loop {
        let pause = exponential(*bench.every);
        let length = exponential(*bench.lasting);
        let way = [LinkWay::There, LinkWay::Back, LinkWay::Both][cuts as usize % 3];
        if Instant::now() + pause + length > until {
            return cuts;
        }
        thread::sleep(pause);
        emulation.cut(path, way);
        thread::sleep(length);
        emulation.restore(path, way);
        cuts += 1;
    }
}
