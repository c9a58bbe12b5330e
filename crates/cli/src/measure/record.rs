//! `suimon measure record`: a line that varies, as traces.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use suimon_measure::{Arrivals, Direction, RecordPlan, Recorded, Watch, record};
use suimon_scenario::trace::Opportunities;

use super::run::{Bar, first_that_answers, stopped_by_ctrl_c};
use super::show::{mbps, significant};
use crate::output::{check_folder, naming};
use crate::error::CliError;

const EXAMPLE: &str = "\
Examples:
  suimon measure record vps.example                    # line.down and line.up, a minute each
  suimon measure record vps.example --out train --length 5min --only download
  suimon trace describe line.down --svg line.svg       # what it looks like
  suimon run link.toml                                 # with trace = \"line.down\" in its [link]

A recording fills the line all the time: ten seconds of 40 Mbit/s are 50 MB. Packets wait for up to a second, or four where
the line suddenly slows down.";

/// Record a line that varies as traces in Mahimahi's format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Options {
    /// The server, where `suimon measure --serve` runs; port 7423 if none is given
    #[arg(value_name = "HOST[:PORT]")]
    server: String,
    /// Files to write: NAME.down and NAME.up
    #[arg(long, value_name = "NAME", default_value = "line")]
    out: PathBuf,
    /// How long each direction is recorded, from 1s to 5min
    #[arg(long, value_name = "TIME", default_value = "60s")]
    length: suimon_units::Duration,
    /// Record one direction only
    #[arg(long, value_name = "DIRECTION")]
    only: Option<Only>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    Download,
    Upload,
}

/// The length of a recording, at least and at most.
const LENGTHS: [suimon_units::Duration; 2] =
    [suimon_units::Duration::from_secs(1), suimon_units::Duration::from_secs(300)];

pub(super) fn execute(options: &Options) -> Result<(), CliError> {
    if options.length < LENGTHS[0] || options.length > LENGTHS[1] {
        let problem = format!("{}: accepted: from 1s to 5min", options.length);
        return Err(CliError::Option { option: "--length", problem });
    }
    for direction in Direction::BOTH {
        check_folder("--out", &file(&options.out, direction))?;
    }
    let plan = RecordPlan {
        length: Duration::from_nanos(options.length.as_nanos()),
        download: options.only != Some(Only::Upload),
        upload: options.only != Some(Only::Download),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut recorded = Recorded::default();
    let ended = runtime.block_on(async {
        let (told, bar) = (stopped_by_ctrl_c(), Bar::new());
        let show = |watch: Watch| bar.show(watch.share, so_far(&watch));
        let attempt = async |address| record(address, &plan, told.clone(), show, &mut recorded).await;
        first_that_answers(&options.server, attempt).await
    });
    if recorded == Recorded::default() {
        return ended.and(Err(CliError::Input("the recording ended while the queue was filling: nothing is written".to_owned())));
    }
    let parts: Vec<_> = [(Direction::Download, &recorded.download), (Direction::Upload, &recorded.upload)]
        .into_iter()
        .filter_map(|(direction, arrivals)| Some((direction, file(&options.out, direction), arrivals.as_ref()?)))
        .collect();
    let shown = tell(&parts, options.json);
    let written = parts
        .iter()
        .map(|(_, file, arrivals)| write(arrivals, file).map_err(naming("--out", file)))
        .fold(Ok(()), Result::and);
    // What is known is worth its time, even where the rest did not come.
    ended.and(written).and(shown)
}

/// The file of a direction.
fn file(out: &Path, direction: Direction) -> PathBuf {
    let mut file = out.as_os_str().to_owned();
    file.push(match direction {
        Direction::Download => ".down",
        Direction::Upload => ".up",
    });
    file.into()
}

fn write(arrivals: &Arrivals, file: &Path) -> Result<(), CliError> {
    let times = arrivals.opportunities_ms().into_iter().map(suimon_units::Duration::from_millis);
    let period = suimon_units::Duration::from_millis(arrivals.packets.len() as u64);
    Ok(fs::write(file, Opportunities::over(times, period)?.to_text())?)
}

fn tell(parts: &[(Direction, PathBuf, &Arrivals)], is_json: bool) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let mut told = serde_json::Map::new();
    for (direction, file, arrivals) in parts {
        let file = file.to_string_lossy();
        if is_json {
            told.insert(direction.as_str().to_owned(), json(arrivals, &file));
        } else {
            writeln!(out, "{}", sentence(*direction, arrivals, &file))?;
        }
    }
    if is_json {
        writeln!(out, "{:#}", serde_json::Value::Object(told))?;
    }
    Ok(())
}

fn json(arrivals: &Arrivals, file: &str) -> serde_json::Value {
    serde_json::json!({
        "file": file,
        "length_s": arrivals.packets.len() as f64 / 1e3,
        "mean_mbps": arrivals.mean_bps() / 1e6,
        "filled_percent": 100.0 * arrivals.filled_share(),
        "longest_wait_ms": arrivals.longest_wait_ms(),
    })
}

fn sentence(direction: Direction, arrivals: &Arrivals, file: &str) -> String {
    format!(
        "{file}: {} s of the {}, {} in the mean; the queue was filled {} % of the time, and packets waited {} ms at most",
        significant(arrivals.packets.len() as f64 / 1e3),
        direction.as_str(),
        mbps(arrivals.mean_bps() / 1e6),
        significant(100.0 * arrivals.filled_share()),
        arrivals.longest_wait_ms()
    )
}

fn so_far(watch: &Watch) -> String {
    format!("{} {:.1} Mbit/s", watch.direction.as_str(), watch.bps / 1e6)
}
