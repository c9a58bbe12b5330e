//! Packets of simulated runs as captures.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use suimon_scenario::Run;
use suimon_study::write_pcapng;

use crate::error::CliError;

/// Whether, and where, packets are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct CaptureOptions {
    /// Write the packets of the simulated hosts as TCP/IP that Wireshark reads; of several runs, a file each
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
}

impl CaptureOptions {
    /// Writes the packets of each of `runs`, where that was asked for.
    ///
    /// # Errors
    /// When a file is there already, or cannot be written.
    pub(crate) fn record(&self, runs: &[Run]) -> Result<(), CliError> {
        let Some(path) = &self.pcapng else { return Ok(()) };
        for (nth, run) in runs.iter().enumerate() {
            let path = if runs.len() == 1 { path.clone() } else { numbered(path, nth + 1) };
            let file = File::create_new(&path).map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => CliError::Option {
                    option: "--pcapng",
                    problem: format!("{} is there already; accepted: a new file", path.display()),
                },
                _ => error.into(),
            })?;
            write_pcapng(&run.scenario, BufWriter::new(file))?;
        }
        Ok(())
    }
}

/// `path` with a number before its ending.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{number}{ending}"))
}
