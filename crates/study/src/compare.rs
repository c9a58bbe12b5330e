//! Algorithms side by side over a link, as users write them.

use std::path::Path;

use suimon_algorithms::registry::{Registry, Role};
use suimon_report::ReportHeader;
use suimon_scenario::trace::read_capacity;
use suimon_scenario::{Comparison, FlowCounts, LinkSpec, Scheme, StackProfile};
use suimon_units::{Bytes, Duration};

use crate::VERSION;
use crate::error::{Input, StudyError};

/// A comparison as users ask for it.
#[derive(Debug, Clone)]
pub struct Question {
    /// The link.
    pub link: LinkSpec,
    /// The link as the title shows it.
    pub link_name: String,
    /// What names of algorithms stand for.
    pub registry: Registry,
    /// Algorithms of the ends as [`Scheme::parse`] reads them; where none is named, those that are worth
    /// comparing.
    pub schemes: Vec<String>,
    /// Queue disciplines.
    pub queues: Vec<String>,
    /// Flows of each scheme as [`FlowCounts::parse`] reads them.
    pub flows: String,
    /// All schemes share the link.
    pub mixed: bool,
    /// When a run ends at the latest; else a minute, or as long as `flows` says.
    pub duration: Option<Duration>,
    /// Left out of totals and percentiles.
    pub warmup: Duration,
    /// How much each flow sends; else as much as it can.
    pub size: Option<Bytes>,
    /// Receive buffer; else that of today's Linux.
    pub window: Option<Bytes>,
    /// Name of the stacks' profile.
    pub profile: String,
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u64,
}

/// What is compared where nobody says what.
const SCHEMES: [&str; 5] = ["reno", "cubic", "vegas", "drs", "fs-at"];

impl Question {
    /// What is worth comparing over `link`, which the title calls `link_name`.
    #[must_use]
    pub fn new(link: LinkSpec, link_name: impl Into<String>) -> Self {
        Self {
            link,
            link_name: link_name.into(),
            registry: Registry::standard(),
            schemes: Vec::new(),
            queues: vec!["droptail".to_owned()],
            flows: "1".to_owned(),
            mixed: false,
            duration: None,
            warmup: Duration::ZERO,
            size: None,
            window: None,
            profile: "linux-6".to_owned(),
            seed: 1,
            seeds: 1,
        }
    }

    /// The same over the link that `text` describes, as in `2Mbit 180ms 96kB`.
    ///
    /// # Errors
    /// When it does not read.
    pub fn over(text: &str) -> Result<Self, StudyError> {
        LinkSpec::parse(text).map(|link| Self::new(link, text)).map_err(StudyError::of_link)
    }

    /// The same over a recorded link.
    ///
    /// # Errors
    /// When the file or the buffer does not read.
    pub fn over_trace(path: &Path, rtt: Duration, buffer: Option<&str>) -> Result<Self, StudyError> {
        let mut link = LinkSpec::new(read_capacity(path)?, rtt);
        if let Some(buffer) = buffer {
            link.set_buffer(buffer)
                .map_err(|error| StudyError::input(Input::Buffer, error.problem().to_string()))?;
        }
        Ok(Self::new(link, Self::title_of_trace(path, rtt)))
    }

    /// What titles call the link of the trace at `path`.
    #[must_use]
    pub fn title_of_trace(path: &Path, rtt: Duration) -> String {
        format!("{} {rtt}", path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// The comparison, every name read.
    ///
    /// # Errors
    /// What is not known, with what is.
    pub fn comparison(&self) -> Result<Comparison, StudyError> {
        let schemes = schemes(&self.registry, &self.scheme_names())?;
        let queue = |name: &String| {
            self.registry
                .parse(Role::Queue, name)
                .map_err(|error| StudyError::input(Input::Queues, error.to_string()))
        };
        let queues = self.queues.iter().map(queue).collect::<Result<_, _>>()?;
        let flows = FlowCounts::parse(&self.flows)
            .map_err(|error| StudyError::input(Input::Flows, error.problem().to_string()))?;
        let default = Comparison::new(self.link.clone(), schemes);
        Ok(Comparison {
            queues,
            profile: profile(&self.profile)?,
            duration: self.duration.or(flows.duration()).unwrap_or(default.duration),
            flows,
            mixed: self.mixed,
            warmup: self.warmup,
            size: self.size,
            window: self.window.unwrap_or(default.window),
            seed: self.seed,
            seeds: self.seeds,
            ..default
        })
    }

    /// What the schemes say, or else what is worth comparing.
    fn scheme_names(&self) -> Vec<String> {
        let default: &[&str] = if self.queues.len() > 1 { &["reno"] } else { &SCHEMES };
        if self.schemes.is_empty() {
            default.iter().map(|name| (*name).to_owned()).collect()
        } else {
            self.schemes.clone()
        }
    }

    /// The header of its results, which `command` made.
    #[must_use]
    pub fn header(&self, command: String) -> ReportHeader {
        let (schemes, link) = (self.scheme_names().join(", "), &self.link_name);
        let title = match self.queues.as_slice() {
            [_] => format!("{schemes} over {link}"),
            queues => format!("{} under {schemes} over {link}", queues.join(", ")),
        };
        ReportHeader { title, command, version: VERSION.to_owned(), ..ReportHeader::default() }
    }
}

/// The algorithms of the ends with these `names`.
pub(crate) fn schemes(registry: &Registry, names: &[String]) -> Result<Vec<Scheme>, StudyError> {
    let scheme = |name: &String| {
        Scheme::parse_with(registry, name)
            .map_err(|error| StudyError::input(Input::Schemes, error.problem().to_string()))
    };
    names.iter().map(scheme).collect()
}

/// The profile with this `name`.
pub(crate) fn profile(name: &str) -> Result<StackProfile, StudyError> {
    StackProfile::named(name).ok_or_else(|| {
        let accepted = StackProfile::NAMES.join(", ");
        StudyError::input(Input::Profile, format!("unknown profile \"{name}\"; accepted: {accepted}"))
    })
}
