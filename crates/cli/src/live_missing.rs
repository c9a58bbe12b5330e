//! Live runs of a command that was built without them: each is refused.

use std::path::PathBuf;

use clap::Args;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Pair;

use crate::error::CliError;
use crate::part::Part;
use crate::view::ViewOptions;

/// Options of commands that run on a kernel; not in this build.
#[derive(Debug, Args, Default)]
pub(crate) struct LiveOptions {
    #[arg(long, hide = true)]
    live: bool,
    #[arg(long, hide = true)]
    lab: bool,
}

impl LiveOptions {
    pub(crate) fn is_wanted(&self) -> bool {
        self.live || self.lab
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.lab
    }

    pub(crate) fn run(&self, _: &[Run], _: &[PathBuf], _: &ViewOptions) -> Result<Vec<RunResult>, CliError> {
        Part::LIVE.refuse()
    }

    pub(crate) fn beside_simulation(
        &self,
        _: &[Run],
        _: &[PathBuf],
        _: &ViewOptions,
    ) -> Result<Vec<Pair>, CliError> {
        Part::LIVE.refuse()
    }
}
