//! Live runs of a command that was built without them: each is refused.

#[cfg(feature = "parquet")]
use std::path::Path;
use std::path::PathBuf;

use clap::Args;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Pair;
#[cfg(feature = "parquet")]
use suimon_study::sweep::{Folder, Sweep, make};

use crate::error::CliError;
use crate::part::Part;
#[cfg(feature = "parquet")]
use crate::progress::Progress;
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

    /// What no guest bears is refused by `run` as all else is.
    pub(crate) fn left_out(&self, _: &Run) -> Option<String> {
        None
    }

    pub(crate) fn run(&self, _: &[Run], _: &[PathBuf], _: &ViewOptions) -> Result<Vec<RunResult>, CliError> {
        Part::LIVE.refuse()
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn place<'a>(&self, sweep: Sweep<'a>, _: &Path) -> Result<(Sweep<'a>, Place), CliError> {
        if self.is_wanted() { Part::LIVE.refuse() } else { Ok((sweep, Place::Simulator)) }
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

/// Where the runs of a sweep are made.
#[cfg(feature = "parquet")]
pub(crate) enum Place {
    Simulator,
}

#[cfg(feature = "parquet")]
impl Place {
    pub(crate) fn make(
        &self,
        sweep: &Sweep<'_>,
        folder: &Folder,
        missing: &[u64],
        jobs: usize,
        progress: &Progress,
    ) -> Result<(), CliError> {
        Ok(make(sweep, folder, missing, jobs, progress)?)
    }
}
