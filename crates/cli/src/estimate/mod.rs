//! `suimon estimate`: what passive estimators make of a packet capture, beside what it proves.

mod flow;
mod running;
mod select;
mod study;

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
use suimon_capture::{Capture, CaptureError};
use suimon_report::{
    CaptureTables, JsonSeries, Page, ReportHeader, capture_figures, capture_json, capture_notes,
    terminal_capture,
};
use suimon_results::CaptureResult;
use suimon_study::numbers::{count, whole};
use suimon_study::{VERSION, write_tables};
use suimon_units::Duration;

use self::select::{Network, Selection};
use self::study::Study;
use crate::error::CliError;
use crate::output::{OutputOptions, command_line};
use crate::progress::Progress;

const EXAMPLE: &str = "\
Examples:
  suimon estimate --pcap link.pcap
  suimon estimate --pcap link.pcapng --from 10.1.0.0/16 --estimators bursts,bursts:dt=10ms
  tcpdump -i eth0 -w - tcp | suimon estimate --pcap - --interval 5s

Estimators see the packets that carry data, in the order of the capture. The true round-trip time is that \
of ACKs and timestamps, where both directions of a TCP connection were captured.";

/// Estimate round-trip times and the number of flows from a packet capture
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The capture, pcap or pcapng; - reads standard input
    #[arg(long, value_name = "FILE")]
    pcap: PathBuf,
    /// Estimators, with settings as in bursts:dt=10ms [default: all; see suimon list]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    estimators: Vec<String>,
    /// Only connections that have this port at either end
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    port: Vec<u16>,
    /// Only connections that have this address, or one of this network, at either end
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_delimiter = ',')]
    host: Vec<Network>,
    /// Show the estimators only packets from here, as a queue in this direction sees them
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_delimiter = ',')]
    from: Vec<Network>,
    /// Show the estimators only packets to here
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_delimiter = ',')]
    to: Vec<Network>,
    /// Show the estimators packets without data too
    #[arg(long)]
    acks: bool,
    /// Time between samples of the series
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// Flows that are kept apart; bounds the memory
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = count, allow_negative_numbers = true)]
    max_flows: NonZeroUsize,
    /// Seed of the estimators' choices
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

impl Arguments {
    fn estimators(&self) -> Result<Vec<AlgorithmSpec>, CliError> {
        let all = || descriptions(Role::Estimator).into_iter().map(|d| d.name.to_owned()).collect();
        let names: Vec<String> = if self.estimators.is_empty() { all() } else { self.estimators.clone() };
        let mut specs: Vec<AlgorithmSpec> = Vec::new();
        for name in &names {
            let refuse = |problem| CliError::Option { option: "--estimators", problem };
            let spec =
                AlgorithmSpec::parse(Role::Estimator, name).map_err(|error| refuse(error.to_string()))?;
            if specs.contains(&spec) {
                return Err(refuse(format!("{} stands there twice; accepted: each once", spec.label())));
            }
            specs.push(spec);
        }
        Ok(specs)
    }

    fn selection(&self) -> Selection {
        Selection {
            ports: self.port.clone(),
            hosts: self.host.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
        }
    }

    /// The capture, and its length where it has one.
    fn open(&self) -> Result<(Capture, Option<u64>), CaptureError> {
        if self.is_standard_input() {
            return Capture::new("standard input", io::stdin()).map(|capture| (capture, None));
        }
        let length = fs::metadata(&self.pcap).ok().filter(fs::Metadata::is_file).map(|data| data.len());
        Capture::open(&self.pcap).map(|capture| (capture, length))
    }

    fn is_standard_input(&self) -> bool {
        self.pcap == Path::new("-")
    }

    fn name(&self) -> String {
        if self.is_standard_input() { "standard input".to_owned() } else { self.pcap.display().to_string() }
    }

    /// Of the folder for the results.
    fn folder_name(&self) -> String {
        let stem = self.pcap.file_stem().filter(|_| !self.is_standard_input());
        format!("estimate-{}", stem.map_or("stdin".into(), |stem| stem.to_string_lossy()))
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    if arguments.interval == Duration::ZERO {
        let problem = "0 s is no time between samples; accepted: a time such as 500ms".to_owned();
        return Err(CliError::Option { option: "--interval", problem });
    }
    let estimators = arguments.estimators()?;
    let (capture, length) = arguments.open()?;
    let study = Study::new(&estimators, arguments);
    let result = read(capture, length, study)?;
    deliver(&arguments.output, &arguments.folder_name(), &result)
}

/// Packets between two looks at the clock.
const PROGRESS_EVERY: u64 = 4_096;

fn read(mut capture: Capture, length: Option<u64>, mut study: Study) -> Result<CaptureResult, CliError> {
    let progress = Progress::of_bytes(length);
    let mut shown = 0;
    while let Some(packet) = capture.next_packet()? {
        study.on_packet(&packet);
        if packet.number % PROGRESS_EVERY == 0 {
            progress.advance_by(capture.position() - shown);
            shown = capture.position();
        }
    }
    progress.finish();
    Ok(study.finish(&capture))
}

fn deliver(output: &OutputOptions, name: &str, result: &CaptureResult) -> Result<(), CliError> {
    let header = ReportHeader {
        title: format!("Round-trip times in {}", result.name),
        description: "Estimated from the packets that passed, beside what ACKs and timestamps prove."
            .to_owned(),
        command: command_line(),
        version: VERSION.to_owned(),
        scenario_text: None,
    };
    let mut stdout = io::stdout().lock();
    if output.json() {
        let series = if output.with_series() { JsonSeries::With } else { JsonSeries::Without };
        writeln!(stdout, "{}", capture_json(&header, result, series).trim_end())?;
    } else {
        write!(stdout, "{}", terminal_capture(&header, result, output.terminal()))?;
    }
    let Some(folder) = output.folder(name) else { return Ok(()) };
    write_tables(&folder, &header, &CaptureTables::new(result))?;
    let mut page = Page::new(&header, &[]);
    page.figures = capture_figures(result);
    page.notes = capture_notes(result);
    let report = folder.join("report.html");
    page.write(&report)?;
    if !output.json() {
        writeln!(stdout, "\nReport: {}", report.display())?;
    }
    Ok(())
}
