//! `suimon estimate`: what passive estimators make of a packet capture, beside what it proves.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use suimon_capture::{Capture, CaptureError};
use suimon_report::{JsonDetail, capture_json, terminal_capture};
use suimon_results::CaptureResult;
use suimon_study::estimate::{self, Estimation};

use crate::error::CliError;
use crate::output::{OutputOptions, command_line};
use crate::progress::Progress;

const EXAMPLE: &str = "\
Examples:
  suimon estimate link.pcap
  suimon estimate link.pcapng --from 10.1.0.0/16 --estimators bursts,bursts:dt=10ms
  tcpdump -i eth0 -w - tcp | suimon estimate - --interval 5s

Estimators see the packets that carry data, in the order of the capture. The true round-trip time is that \
of ACKs and timestamps, where both directions of a TCP connection were captured.";

/// Estimate round-trip times and the number of flows from a packet capture
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The capture, pcap or pcapng; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "pcap")]
    file: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pcap: Option<PathBuf>,
    #[command(flatten)]
    estimation: Estimation,
    #[command(flatten)]
    output: OutputOptions,
}

impl Arguments {
    /// The capture, and its length where it has one.
    fn open(&self) -> Result<(Capture, Option<u64>), CaptureError> {
        if self.is_standard_input() {
            return Capture::new("standard input", io::stdin()).map(|capture| (capture, None));
        }
        let length = fs::metadata(self.path()).ok().filter(fs::Metadata::is_file).map(|data| data.len());
        Capture::open(self.path()).map(|capture| (capture, length))
    }

    fn path(&self) -> &Path {
        self.file.as_deref().or(self.pcap.as_deref()).unwrap_or(Path::new("-"))
    }

    fn is_standard_input(&self) -> bool {
        self.path() == Path::new("-")
    }

    fn name(&self) -> String {
        if self.is_standard_input() { "standard input".to_owned() } else { self.path().display().to_string() }
    }

    /// Of the folder for the results.
    fn folder_name(&self) -> String {
        let stem = self.path().file_stem().filter(|_| !self.is_standard_input());
        format!("estimate-{}", stem.map_or("stdin".into(), |stem| stem.to_string_lossy()))
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    arguments.output.check()?;
    // What is wrong with options is told before the capture is waited for.
    arguments.estimation.check()?;
    let (capture, length) = arguments.open()?;
    let progress = Progress::of_bytes(length);
    let result =
        arguments.estimation.run(capture, &arguments.name(), |bytes| progress.advance_by(bytes))?;
    drop(progress);
    deliver(&arguments.output, &arguments.folder_name(), &result)
}

fn deliver(output: &OutputOptions, name: &str, result: &CaptureResult) -> Result<(), CliError> {
    let header = estimate::header(result, command_line());
    let mut stdout = io::stdout().lock();
    if output.json() {
        let series = if output.with_series() { JsonDetail::Series } else { JsonDetail::Totals };
        writeln!(stdout, "{}", capture_json(&header, result, series).trim_end())?;
    } else {
        write!(stdout, "{}", terminal_capture(&header, result, output.terminal()))?;
    }
    let Some(folder) = output.folder(name) else { return Ok(()) };
    let report = estimate::write(&folder, &header, result)?;
    OutputOptions::sign(&folder)?;
    if !output.json() {
        writeln!(stdout, "\nReport: {}", report.display())?;
    }
    Ok(())
}
