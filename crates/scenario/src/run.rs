//! Runs, of which there may not be too many.

use suimon_model::{Run, Scenario};

use crate::error::Problem;

/// Collects runs and stops when they become too many.
#[derive(Debug, Default)]
pub struct Runs {
    runs: Vec<Run>,
    parts: usize,
}

impl Runs {
    /// Most runs of one document.
    pub(crate) const MAX: u64 = 100_000;
    /// Most flows and links in all runs of one document together: about 2 GB.
    const MAX_PARTS: usize = 2_000_000;

    /// Adds `scenario` once for each of `seeds` seeds from its own on.
    ///
    /// # Errors
    /// When there are too many runs, or flows and links in all of them.
    pub fn add(
        &mut self,
        labels: &[(String, String)],
        scenario: &Scenario,
        seeds: u64,
    ) -> Result<(), Problem> {
        for nth in 0..seeds {
            self.parts = self.parts.saturating_add(scenario.flows.len() + scenario.links.len());
            if self.parts > Self::MAX_PARTS {
                let limit = Self::MAX_PARTS as u64;
                return Err(Problem::TooMany {
                    what: "more flows and links in all runs together".to_owned(),
                    limit,
                });
            }
            if self.runs.len() as u64 >= Self::MAX {
                return Err(Problem::TooMany { what: "more runs".to_owned(), limit: Self::MAX });
            }
            let seed = scenario.seed.wrapping_add(nth);
            let mut labels = labels.to_vec();
            if seeds > 1 {
                labels.push(("seed".to_owned(), seed.to_string()));
            }
            self.runs.push(Run { labels, scenario: Scenario { seed, ..scenario.clone() } });
        }
        Ok(())
    }

    /// The runs, in the order in which they were added.
    #[must_use]
    pub fn finish(self) -> Vec<Run> {
        self.runs
    }
}
