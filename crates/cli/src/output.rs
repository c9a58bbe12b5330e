//! Where results go: the terminal, or JSON; and files.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use suimon_report::{
    JsonDetail, TerminalOptions, latex, terminal, terminal_advice, terminal_heat_maps, terminal_misses,
    terminal_summary, terminal_verdicts, write_json,
};
use suimon_study::{Findings, quoted};

use crate::error::CliError;

/// Options that all commands with results share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Folder for the page and the tables [default: suimon-out/NAME, or NAME-2 and so on where it is taken]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into --out even where the folder holds other files
    #[arg(long, requires = "out")]
    force: bool,
    /// Write no files
    #[arg(long, conflicts_with = "out")]
    no_files: bool,
    /// Print JSON instead of a table; files only with --out
    #[arg(long)]
    json: bool,
    /// How the table is printed; files only with --out unless it is text
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text", conflicts_with = "json")]
    format: Format,
    /// Every sample too: in the JSON of runs, and in the files of a paper, with every event
    #[arg(long)]
    series: bool,
}

/// More verdicts than this do not fit a screen, and get a line an experiment.
const SCREEN: usize = 30;

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal.
    Text,
    /// For LaTeX, with the rules of the package booktabs.
    Latex,
}

/// The file that says which command wrote a folder.
const COMMAND: &str = "command.txt";

/// Whether `folder` may be written: it is not there, or empty, or the same command wrote it.
fn is_ours(folder: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(folder) else { return true };
    let same =
        || std::fs::read_to_string(folder.join(COMMAND)).is_ok_and(|text| text.trim_end() == command_line());
    entries.next().is_none() || same()
}

/// Says something beside the results. Where nobody reads it any more, that is no reason to fail.
pub(crate) fn tell(message: impl Display) {
    let _ = writeln!(io::stderr(), "suimon: {}", visible(&message.to_string()));
}

/// `text` with its control characters written out, as names in files and arguments may hold some that a terminal obeys.
fn visible(text: &str) -> String {
    let written = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(written).collect()
}

/// Refuses a `file` whose folder is not there, before long work is done for it.
pub(crate) fn check_folder(option: &'static str, file: &Path) -> Result<(), CliError> {
    // A name alone is one of the current folder.
    if file.parent().is_some_and(|folder| Path::new(".").join(folder).is_dir()) && !file.is_dir() {
        return Ok(());
    }
    let problem = format!("{}: accepted: a file in a folder that is there", file.display());
    Err(CliError::Option { option, problem })
}

/// Names the option and its `file` in what the system says of writing.
pub(crate) fn naming(option: &'static str, file: &Path) -> impl FnOnce(CliError) -> CliError {
    move |error| match error {
        CliError::Output(error) => {
            io::Error::new(error.kind(), format!("{option}: {}: {error}", file.display())).into()
        }
        other => other,
    }
}

/// The command line as it was given, for the report.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("suimon".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

impl OutputOptions {
    /// Whether JSON was asked for.
    #[cfg(feature = "capture")]
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether every sample was asked for.
    pub(crate) fn with_series(&self) -> bool {
        self.series
    }

    /// How the terminal shows tables.
    #[cfg(feature = "capture")]
    pub(crate) fn terminal(&self) -> TerminalOptions {
        terminal_options()
    }

    /// Where files go; `name` names the folder where the user does not. `None`: nowhere.
    pub(crate) fn folder(&self, name: &str) -> Option<PathBuf> {
        match &self.out {
            Some(folder) => Some(folder.clone()),
            None if self.no_files || self.json || self.format == Format::Latex => None,
            None => {
                let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
                let names = std::iter::once(name.to_owned()).chain(numbered);
                names.map(|name| Path::new("suimon-out").join(name)).find(|folder| is_ours(folder))
            }
        }
    }

    /// Refuses a folder that holds something else than what the same command wrote. To be asked before anything is run.
    ///
    /// # Errors
    /// When it does, and `--force` was not given.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        match &self.out {
            Some(folder) if !self.force && !is_ours(folder) => {
                let problem = format!(
                    "{} holds other files; accepted: a new or empty folder, or with --force",
                    folder.display()
                );
                Err(CliError::Option { option: "--out", problem })
            }
            _ => Ok(()),
        }
    }

    /// Notes in `folder` which command wrote it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn sign(folder: &Path) -> Result<(), CliError> {
        Ok(std::fs::write(folder.join(COMMAND), command_line() + "\n")?)
    }

    /// Prints the findings and writes their files.
    pub(crate) fn deliver(&self, findings: &Findings) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        if self.json {
            let detail = match (findings.verdicts.is_empty(), self.series) {
                (false, _) => JsonDetail::Runs,
                (true, false) => JsonDetail::Totals,
                (true, true) => JsonDetail::Series,
            };
            let verdicts: Vec<_> = findings.worlds.iter().chain(&findings.verdicts).cloned().collect();
            let advice = findings.advice.as_deref();
            write_json(&mut stdout, &findings.header, &findings.runs, &verdicts, advice, detail)?;
        } else if self.format == Format::Latex {
            write!(stdout, "{}", latex(&findings.header, &findings.runs))?;
        } else {
            let options = terminal_options();
            if let Some(worlds) = &findings.worlds {
                writeln!(stdout, "{}", terminal_verdicts(std::slice::from_ref(worlds), options))?;
            }
            if findings.verdicts.is_empty() {
                write!(stdout, "{}", terminal(&findings.header, &findings.runs, options))?;
                if let Some(advice) = &findings.advice {
                    write!(stdout, "\n{}", terminal_advice(advice))?;
                }
                for note in &findings.notes {
                    writeln!(stdout, "\nNote: {note}")?;
                }
            } else {
                let rows: usize = findings.verdicts.iter().map(|table| table.rows.len()).sum();
                if rows <= SCREEN {
                    writeln!(stdout, "{}", terminal_verdicts(&findings.verdicts, options))?;
                    if !findings.heat_maps.is_empty() {
                        writeln!(stdout, "{}", terminal_heat_maps(&findings.heat_maps, options.width))?;
                    }
                } else {
                    writeln!(stdout, "{}", terminal_summary(&findings.verdicts, options))?;
                    writeln!(stdout, "{}\n", terminal_misses(&findings.verdicts, options))?;
                    writeln!(stdout, "Each number stands on the page and in --json.")?;
                }
                for note in &findings.notes {
                    writeln!(stdout, "{note}")?;
                }
            }
        }
        let Some(folder) = self.folder(&findings.name) else { return Ok(()) };
        let report = findings.write(&folder)?;
        Self::sign(&folder)?;
        if !self.json {
            writeln!(stdout, "\nReport: {}", report.display())?;
        }
        Ok(())
    }
}

/// How wide the terminal is, and whether it shows colours.
fn terminal_options() -> TerminalOptions {
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = columns.unwrap_or(TerminalOptions::default().width).max(60);
    TerminalOptions { colour, width }
}
