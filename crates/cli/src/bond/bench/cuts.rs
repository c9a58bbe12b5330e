//! A day of random cuts, compressed.

use std::thread;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use suimon_algorithms::RandomStream;
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_emulator::{Emulation, Setup, TwoHosts, Way as LinkWay};
use suimon_units as units;
use suimon_units::Bytes;

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::reliable::{Progress, Way, transfer};
use super::{check_whole, links, long, mbit, print, scheduler};
use crate::error::CliError;

/// Cut every path at random while data goes each way: a day's worth in minutes; tell stalls and compare digests
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How long it takes
    #[arg(long, value_name = "TIME", default_value = "4min")]
    time: units::Duration,
    /// What that stands for: all times of the cuts are compressed by the ratio
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = hours)]
    stands_for: units::Duration,
    /// Mean time from one cut of a path to its next, of what it stands for
    #[arg(long, value_name = "TIME", default_value = "6min")]
    every: units::Duration,
    /// Mean length of a cut, of what it stands for
    #[arg(long, value_name = "TIME", default_value = "1min")]
    lasting: units::Duration,
    /// Seed of the cuts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The links that are cut
    #[arg(long, value_name = "LINKS", default_value = "20Mbit 10ms 100packets; 10Mbit 30ms 100packets")]
    paths: String,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead", value_parser = scheduler)]
    scheduler: AlgorithmSpec,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn hours(text: &str) -> Result<units::Duration, String> {
    let of_hours = text.strip_suffix('h').and_then(|number| number.trim().parse::<u64>().ok());
    match of_hours {
        Some(hours) => Ok(units::Duration::from_secs(3_600) * hours),
        None => text.parse().map_err(|error| format!("{error}, or hours such as 24h")),
    }
}

#[derive(Debug, Serialize)]
struct Row {
    direction: &'static str,
    cuts: u64,
    bytes: u64,
    goodput_bps: u64,
    longest_stall_s: f64,
    streams: u64,
    sha256: &'static str,
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let mut links = links(&arguments.paths)?;
    for [there, back] in &mut links {
        (back.capacity, back.buffer) = (there.capacity.clone(), there.buffer);
    }
    let hosts = TwoHosts::new(&Setup::default(), &links)?;
    let emulation = &hosts.emulation;
    let hosts = Hosts::emulated(&hosts);
    let _bond = Bond::start(&hosts, &Options::new(&arguments.scheduler))?;
    let progress = [Progress::default(), Progress::default()];
    let [up, down] =
        [true, false].map(|up| Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up });
    let factor = arguments.time.as_secs_f64() / arguments.stands_for.as_secs_f64();
    let until = Instant::now() + long(arguments.time);
    let (outcomes, cuts) = thread::scope(|scope| {
        // One after the other by halves of the time, as both would listen at one target.
        let moving = scope.spawn(|| {
            let up = transfer(&up, u64::MAX, &progress[0])?;
            Ok::<_, std::io::Error>([up, transfer(&down, u64::MAX, &progress[1])?])
        });
        let cutting: Vec<_> = (0..hosts.via.len())
            .map(|path| {
                let random = RandomStream::new(arguments.seed, &format!("path {path} cuts"));
                scope.spawn(move || cut_at_random(emulation, path, random, arguments, factor, until))
            })
            .collect();
        let half = until - long(arguments.time) / 2;
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
    let rows: Vec<_> = (outcomes.iter().zip(["up", "down"]))
        .map(|(outcome, direction)| Row {
            direction,
            cuts: total,
            bytes: outcome.bytes,
            goodput_bps: outcome.goodput_bps(),
            longest_stall_s: outcome.longest_stall.as_secs_f64(),
            streams: outcome.streams,
            sha256: outcome.sha256(),
        })
        .collect();
    let header = ["direction", "cuts in all", "bytes", "goodput", "longest stall", "streams", "SHA-256"];
    print(&rows, arguments.json, &header, 1, |row| {
        vec![
            row.direction.to_owned(),
            row.cuts.to_string(),
            Bytes::new(row.bytes).to_string(),
            mbit(row.goodput_bps),
            format!("{:.2} s", row.longest_stall_s),
            row.streams.to_string(),
            row.sha256.to_owned(),
        ]
    })?;
    check_whole(outcomes.iter().all(|outcome| outcome.intact))
}

/// Cuts `path` in one direction or both at exponential times for exponential lengths; how often.
fn cut_at_random(
    emulation: &Emulation,
    path: usize,
    mut random: RandomStream,
    arguments: &Arguments,
    factor: f64,
    until: Instant,
) -> u64 {
    let mut cuts = 0;
    let mut exponential = |mean: units::Duration| long(random.exponential(mean)).mul_f64(factor);
    loop {
        let pause = exponential(arguments.every);
        let length = exponential(arguments.lasting);
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
