//! `suimon new`: a scenario to begin with.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;

use crate::error::CliError;
use crate::output::tell;

/// The scenario, with comments.
const STARTER: &str = include_str!("starter.toml");

const EXAMPLE: &str = "\
Example:
  suimon new my.toml
  suimon run my.toml";

/// Write a short scenario with comments to begin with
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The file, which must not be there yet; - prints it
    #[arg(value_name = "SCENARIO.toml", default_value = "-")]
    file: PathBuf,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let path = &arguments.file;
    if path.as_os_str() == "-" {
        return Ok(std::io::stdout().write_all(STARTER.as_bytes())?);
    }
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::Option {
            option: "SCENARIO.toml",
            problem: format!("{} is there already; accepted: a new file", path.display()),
        },
        _ => error.into(),
    })?;
    file.write_all(STARTER.as_bytes())?;
    tell(format_args!("wrote {0}; run it: suimon run {0}", path.display()));
    Ok(())
}
