//! Path schedulers side by side over several links, as users write them.

use suimon_algorithms::registry::Registry;
use suimon_report::ReportHeader;
use suimon_scenario::PathComparison;
use suimon_units::{Bytes, Duration};

use crate::VERSION;
use crate::compare::{profile, schemes};
use crate::error::{Input, StudyError};

/// A comparison over several paths as users ask for it.
#[derive(Debug, Clone)]
pub struct PathQuestion {
    /// Links apart by semicolons, as in `10Mbit 1ms; wifi 802.11b 2Mbit`.
    pub paths: String,
    /// What names of algorithms stand for.
    pub registry: Registry,
    /// Path schedulers; where none is named, those that are worth comparing.
    pub schedulers: Vec<String>,
    /// Algorithms of the flows' ends; else CUBIC.
    pub schemes: Vec<String>,
    /// What each flow may hold; else 4 MiB.
    pub send_buffer: Option<Bytes>,
    /// What may wait at the receiver for data of other flows; else 4 MiB.
    pub receive_buffer: Option<Bytes>,
    /// When a run ends at the latest; else a minute.
    pub duration: Option<Duration>,
    /// Left out of totals and percentiles.
    pub warmup: Duration,
    /// How much the stream has; else as much as it can.
    pub size: Option<Bytes>,
    /// Receive buffer of each flow; else that of today's Linux.
    pub window: Option<Bytes>,
    /// Name of the stacks' profile.
    pub profile: String,
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u64,
}

/// What is compared where nobody says what: what gives data up to no path of its own accord.
const SCHEDULERS: [&str; 6] = ["look-ahead", "blest", "ecf", "lowest-rtt", "least-buffered", "round-robin"];

impl PathQuestion {
    /// What is worth comparing over `paths`.
    #[must_use]
    pub fn new(paths: impl Into<String>) -> Self {
        Self {
            paths: paths.into(),
            registry: Registry::standard(),
            schedulers: Vec::new(),
            schemes: Vec::new(),
            send_buffer: None,
            receive_buffer: None,
            duration: None,
            warmup: Duration::ZERO,
            size: None,
            window: None,
            profile: "linux-6".to_owned(),
            seed: 1,
            seeds: 1,
        }
    }

    /// The comparison, every name read.
    ///
    /// # Errors
    /// What is not known, with what is.
    pub fn comparison(&self) -> Result<PathComparison, StudyError> {
        let paths = PathComparison::parse_paths(&self.paths)
            .map_err(|error| StudyError::of_line(Input::Paths, error))?;
        let scheduler = |name: &String| {
            PathComparison::parse_scheduler_with(&self.registry, name)
                .map_err(|error| StudyError::input(Input::Schedulers, error.problem().to_string()))
        };
        let schedulers = self.scheduler_names().iter().map(scheduler).collect::<Result<_, _>>()?;
        let default = PathComparison::new(paths, schedulers);
        Ok(PathComparison {
            schemes: if self.schemes.is_empty() {
                default.schemes
            } else {
                schemes(&self.registry, &self.schemes)?
            },
            profile: profile(&self.profile)?,
            duration: self.duration.unwrap_or(default.duration),
            warmup: self.warmup,
            size: self.size,
            send_buffer: self.send_buffer.unwrap_or(default.send_buffer),
            reorder_buffer: self.receive_buffer.unwrap_or(default.reorder_buffer),
            window: self.window.unwrap_or(default.window),
            seed: self.seed,
            seeds: self.seeds,
            ..default
        })
    }

    fn scheduler_names(&self) -> Vec<String> {
        if self.schedulers.is_empty() {
            SCHEDULERS.map(str::to_owned).to_vec()
        } else {
            self.schedulers.clone()
        }
    }

    /// The header of its results, which `command` made.
    #[must_use]
    pub fn header(&self, command: String) -> ReportHeader {
        let name = |(position, path): (usize, &str)| {
            format!("{}: {}", PathComparison::path_name(position), path.trim())
        };
        let paths: Vec<_> = self.paths.split(';').enumerate().map(name).collect();
        let title = format!("{} over {}", self.scheduler_names().join(", "), paths.join("; "));
        ReportHeader { title, command, version: VERSION.to_owned(), ..ReportHeader::default() }
    }
}
