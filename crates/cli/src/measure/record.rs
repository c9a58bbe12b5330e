//! `suimon measure record`: a line that varies, as traces.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use suimon_measure::client::MeasureError;
use suimon_measure::{Arrivals, Direction, RecordPlan, Watch, record};
use suimon_scenario::trace::Opportunities;

use super::run::{addresses, stopped_by_ctrl_c, unknown};
use super::show::{mbps, significant};
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
    let plan = RecordPlan {
        length: Duration::from_nanos(options.length.as_nanos()),
        download: options.only != Some(Only::Upload),
        upload: options.only != Some(Only::Download),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let recorded = runtime.block_on(async {
        let told = stopped_by_ctrl_c();
        let bar = bar();
        let mut refused = None;
        for address in addresses(&options.server).await? {
            match record(address, &plan, told.clone(), |watch| show(&bar, watch)).await {
                Ok(recorded) => return Ok(recorded),
                // The next address may be reached.
                Err(error @ MeasureError::Connect { .. }) => refused = Some(error),
                Err(error) => return Err(CliError::Measure(error)),
            }
        }
        Err(refused.map_or_else(|| unknown(&options.server, "it has no address"), CliError::Measure))
    })?;
    let mut told = serde_json::Map::new();
    let mut out = io::stdout().lock();
    for (direction, arrivals, extension) in
        [(Direction::Download, &recorded.download, "down"), (Direction::Upload, &recorded.upload, "up")]
    {
        let Some(arrivals) = arrivals else { continue };
        let mut file = options.out.clone().into_os_string();
        file.push(format!(".{extension}"));
        let times = arrivals.opportunities_ms().into_iter().map(suimon_units::Duration::from_millis);
        let period = suimon_units::Duration::from_millis(arrivals.packets.len() as u64);
        fs::write(&file, Opportunities::over(times, period)?.to_text())?;
        let file = file.to_string_lossy().into_owned();
        if options.json {
            told.insert(direction.as_str().to_owned(), json(arrivals, &file));
        } else {
            writeln!(out, "{}", sentence(direction, arrivals, &file))?;
        }
    }
    if options.json {
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

/// Steps of the bar.
const STEPS: u64 = 1_000;

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {msg}").expect("the template is constant");
    ProgressBar::new(STEPS).with_style(style)
}

fn show(bar: &ProgressBar, watch: Watch) {
    bar.set_position((watch.share * STEPS as f64) as u64);
    bar.set_message(format!("{} {:.1} Mbit/s", watch.direction.as_str(), watch.bps / 1e6));
}
