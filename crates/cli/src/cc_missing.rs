//! `suimon cc` of a command that was built without programs for the kernel: it says so.

use clap::Args;

use crate::error::CliError;

/// Load congestion control into the kernel, and watch it there: not in this build
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Whatever would have been done
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<String>,
}

pub(crate) fn execute(_arguments: &Arguments) -> Result<(), CliError> {
    Err(CliError::WithoutBpf)
}
