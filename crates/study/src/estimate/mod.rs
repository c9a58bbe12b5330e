//! Round-trip times in a packet capture: what passive estimators make of it, beside what it proves.

mod analysis;
mod flow;
mod running;
mod select;
mod trace;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role, descriptions};
use suimon_capture::Capture;
use suimon_report::{
    CaptureTables, Page, ReportError, ReportHeader, capture_figures, capture_losses, capture_notes,
    capture_page_tables, capture_verdict,
};
use suimon_results::CaptureResult;
use suimon_scenario::algorithm;
use suimon_units::Duration;

use self::analysis::Analysis;
pub use self::select::Network;
use crate::comparison::{FromText, Parsed};
use crate::error::StudyError;
use crate::numbers::{count, whole};
use crate::{VERSION, defaults, write_tables};

/// What of a capture is studied, and which estimators see it: the options of `suimon estimate`.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Estimation {
    /// Estimators, with settings as in bursts:dt=10ms [default: all; see suimon list]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub estimators: Vec<Parsed<Estimator>>,
    /// Only connections that have this port at either end
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub port: Vec<u16>,
    /// Only connections that have this address, or one of this network, at either end
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_delimiter = ',')]
    pub host: Vec<Parsed<Network>>,
    /// Show the estimators only packets from here, as a queue in this direction sees them
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_delimiter = ',')]
    pub from: Vec<Parsed<Network>>,
    /// Show the estimators only packets to here
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_delimiter = ',')]
    pub to: Vec<Parsed<Network>>,
    /// Show the estimators packets without data too
    #[arg(long)]
    pub acks: bool,
    /// Time between samples of the series
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub interval: Parsed<Duration>,
    /// Flows that are kept apart; bounds the memory
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = count, allow_negative_numbers = true)]
    pub max_flows: NonZeroUsize,
    /// Seed of the estimators' choices
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    pub seed: u64,
}

/// An estimator of round-trip times with its settings, as in `bursts:dt=10ms`.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimator(pub AlgorithmSpec);

impl FromText for Estimator {
    fn from_text(text: &str) -> Result<Self, String> {
        algorithm(&Registry::standard(), Role::Estimator, text)
            .map(Self)
            .map_err(|problem| problem.to_string())
    }
}

/// All estimators, on every packet that carries data.
impl Default for Estimation {
    fn default() -> Self {
        defaults()
    }
}

/// Packets between two calls that tell how far a study is.
const PACKETS_BETWEEN_CALLS: u64 = 4_096;

impl Estimation {
    /// Reads `capture` to its end; results call it `name`. `advance` is told of bytes of it as they are read.
    ///
    /// # Errors
    /// When a field is refused, or the capture does not read.
    pub fn run(
        &self,
        mut capture: Capture,
        name: &str,
        mut advance: impl FnMut(u64),
    ) -> Result<CaptureResult, StudyError> {
        self.check()?;
        let mut analysis = Analysis::new(self, name);
        let mut told = 0;
        while let Some(packet) = capture.next_packet()? {
            analysis.on_packet(&packet);
            if packet.number % PACKETS_BETWEEN_CALLS == 0 {
                advance(capture.position() - told);
                told = capture.position();
            }
        }
        Ok(analysis.finish(&capture))
    }

    /// Refuses what can be told from the fields alone.
    ///
    /// # Errors
    /// The first field that is not right.
    pub fn check(&self) -> Result<(), StudyError> {
        if *self.interval == Duration::ZERO {
            let problem = "0 s is no time between samples; accepted: a time such as 500ms";
            return Err(StudyError::input("interval", problem));
        }
        for (position, estimator) in self.estimators.iter().enumerate() {
            if self.estimators[..position].contains(estimator) {
                let problem = format!("{} stands there twice; accepted: each once", estimator.0.label());
                return Err(StudyError::input("estimators", problem));
            }
        }
        Ok(())
    }

    /// Those that were named, or else all.
    fn estimators(&self) -> Vec<Parsed<Estimator>> {
        if !self.estimators.is_empty() {
            return self.estimators.clone();
        }
        let all = descriptions(Role::Estimator).into_iter();
        all.map(|estimator| estimator.name.parse().expect("the registry has it")).collect()
    }
}

/// The header of `result`, which `command` made.
#[must_use]
pub fn header(result: &CaptureResult, command: String) -> ReportHeader {
    ReportHeader {
        title: format!("Round-trip times in {}", result.name),
        description: "Estimated from the packets that passed, beside what ACKs and timestamps prove."
            .to_owned(),
        command,
        version: VERSION.to_owned(),
        scenario_text: None,
    }
}

/// Writes tables and page of `result` into `folder`, which is made if missing; gives the page's path.
///
/// # Errors
/// When a file cannot be written.
pub fn write(folder: &Path, header: &ReportHeader, result: &CaptureResult) -> Result<PathBuf, ReportError> {
    write_tables(folder, header, &CaptureTables::new(result))?;
    let mut page = Page::new(header, &[]);
    page.figures = capture_figures(result);
    page.lead = format!("{} {}", capture_verdict(result), capture_losses(result)).trim().to_owned();
    page.tables = capture_page_tables(result);
    page.notes = capture_notes(result);
    let report = folder.join("report.html");
    page.write(&report)?;
    Ok(report)
}
