//! Sweeps on a kernel.

use std::path::Path;

use suimon_lab::controls::hold_missing;
use suimon_live::Links;
use suimon_study::sweep::{Folder, Sweep, make, make_by};

use super::{LiveOptions, Unseen};
use crate::error::CliError;
use crate::guests::{Guests, Only};
use crate::lab::named_files;
use crate::progress::Progress;

impl LiveOptions {
    /// A sweep as it runs where this says. In a guest that has one of the runs to make, this run is made and handed over.
    pub(crate) fn place<'a>(
        &self,
        sweep: Sweep<'a>,
        scenario: &Path,
    ) -> Result<(Sweep<'a>, Place), CliError> {
        if let Some(only) = Only::here() {
            let runs = [sweep.run(only.0 as u64)?];
            only.hand_over(&suimon_live::run_all(
                &runs,
                &hold_missing(&runs)?.names,
                Links::Emulated,
                &Unseen,
            )?)?;
        }
        match self.lab.lab {
            Some(seed) => {
                let guests =
                    Guests::open(&["--live"], named_files(&[scenario.to_string_lossy().into()]), &self.lab)?;
                let kernel = format!("{}, seed {seed}", guests.kernel());
                Ok((sweep.on_kernel(kernel, &format!("--lab={seed}")), Place::Guests(guests)))
            }
            None if self.live => Ok((sweep.on_kernel("of the machine".to_owned(), "--live"), Place::Here)),
            None => Ok((sweep, Place::Simulator)),
        }
    }
}

/// Where the runs of a sweep are made.
pub(crate) enum Place {
    Simulator,
    /// On this machine's kernel, one after another.
    Here,
    Guests(Guests),
}

impl Place {
    /// Makes the parts that are missing, `jobs` runs at a time where runs do not disturb each other.
    pub(crate) fn make(
        &self,
        sweep: &Sweep<'_>,
        folder: &Folder,
        missing: &[u64],
        jobs: usize,
        progress: &Progress,
    ) -> Result<(), CliError> {
        match self {
            Self::Simulator => Ok(make(sweep, folder, missing, jobs, progress)?),
            Self::Guests(guests) => {
                make_by(sweep, folder, missing, jobs, &|nth, _| guests.run(nth as usize, progress))
            }
            Self::Here => make_by(sweep, folder, missing, 1, &|_, run| {
                let runs = std::slice::from_ref(run);
                let made = suimon_live::run_all(runs, &hold_missing(runs)?.names, Links::Emulated, &Unseen)?;
                progress.advance_by(run.scenario.duration.as_nanos());
                made.into_iter()
                    .next()
                    .ok_or_else(|| CliError::Input("--live: a run gave no result".to_owned()))
            }),
        }
    }
}
