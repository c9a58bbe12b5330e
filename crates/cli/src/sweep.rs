//! `suimon sweep`: many runs, on all cores, that survive being stopped.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use suimon_scenario::Document;
use suimon_study::numbers::count;
use suimon_study::sweep::{Folder, Sweep, progress_of};

use crate::error::CliError;
use crate::live::LiveOptions;
use crate::output::tell;
use crate::progress::Progress;
use crate::run::setting;

const EXAMPLE: &str = "\
Example:
  suimon sweep my.toml --set duration=30s --out sweep
  suimon sweep my.toml --lab --out kernel
  duckdb -c \"SELECT cc, avg(goodput_bps) FROM 'sweep/part-*/runs.parquet' GROUP BY cc\"

After a stop, by Ctrl-C or otherwise, the same command continues where it was.";

/// Run a scenario file's matrix and seeds, as Parquet; continues after a stop
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "status")]
    scenario: Option<PathBuf>,
    /// Set a key of the scenario, as in duration=10s or link.bottleneck.rate=2Mbit
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder for the results [default: suimon-out/NAME-sweep]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write every event and sample too
    #[arg(long)]
    series: bool,
    /// Runs at the same time, but with --live one; results do not depend on it [default: one for each core]
    #[arg(long, value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    live: LiveOptions,
    /// Discard what a sweep has left in the folder
    #[arg(long)]
    restart: bool,
    /// Only tell how far the sweep in this folder is
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "set", "out", "series", "jobs", "restart", "live", "lab"])]
    status: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    if let Some(folder) = &arguments.status {
        let (manifest, done) = progress_of(folder)?;
        writeln!(out, "{}: {done} of {} runs", manifest.name, manifest.runs)?;
        return Ok(());
    }
    let path = arguments.scenario.as_deref().unwrap_or(Path::new(""));
    let mut document = Document::read(path)?;
    for text in &arguments.set {
        let (key, value) = setting(text)?;
        document.set(key, value)?;
    }
    let sweep = Sweep::new(&document, &arguments.set, arguments.series)?;
    let (sweep, place) = arguments.live.place(sweep, path)?;
    let manifest = &sweep.manifest;
    let path = match &arguments.out {
        Some(path) => path.clone(),
        None => Path::new("suimon-out").join(format!("{}-sweep", manifest.name)),
    };
    let folder = Folder::open(&path, manifest, arguments.restart)?;
    let missing = folder.missing(manifest);
    let to_do: u64 = missing.iter().map(|part| manifest.runs_in(*part).count() as u64).sum();
    if to_do < manifest.runs {
        tell(format_args!("{} of {} runs are there already", manifest.runs - to_do, manifest.runs));
    }
    let jobs = arguments.jobs.or_else(|| std::thread::available_parallelism().ok());
    let progress = Progress::new(sweep.duration(&missing));
    place.make(&sweep, &folder, &missing, jobs.map_or(1, NonZeroUsize::get), &progress)?;
    drop(progress);
    let parts = path.join("part-*");
    writeln!(out, "{} runs in {}", manifest.runs, path.display())?;
    writeln!(out, "Read them: polars.read_parquet(\"{}/runs.parquet\")", parts.display())?;
    writeln!(out, "       or: duckdb -c \"FROM '{}/runs.parquet'\"", parts.display())?;
    Ok(())
}
