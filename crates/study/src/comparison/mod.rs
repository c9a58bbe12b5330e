//! Senders over a link, or path schedulers over several links: one request, whoever asks.
//!
//! A [`Comparison`] is at once the options of `suimon compare` (by clap), the keywords of Python's `compare` and
//! `compare_paths` (by serde), and the command line that a report shows. A new option is a field here, with its
//! help, its default and how its text is read, and what `link` or `paths` build of it.

mod advice;
mod call;
mod flow_counts;
mod link;
mod over;
mod parsed;
mod paths;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Command};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use suimon_algorithms::registry::Registry;
use suimon_report::ReportHeader;
use suimon_results::RunResult;
use suimon_scenario::{Buffer, DEFAULT_WINDOW, LinkSpec, Run, Runs, Scenario, ScenarioError, StackProfile};
use suimon_units::{Bytes, Duration, Rate};

pub use self::flow_counts::FlowCounts;
pub use self::over::{Line, Preset};
pub use self::parsed::{FromText, Parsed, PathScheduler, Paths, QueueName, SchedulerName, SenderName};
use crate::error::StudyError;
use crate::findings::Findings;
use crate::numbers::{count, whole};
use crate::topology::topology;
use crate::{VERSION, defaults, quoted};

/// A comparison as users ask for it: each field is an option.
///
/// The name of a field is that of Python's keyword; where it differs, `long` is that of the command's option.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Comparison {
    /// The link, as in "2Mbit 180ms 96kB", or "20/5Mbit 60ms" with a rate for each direction
    #[arg(long, value_name = "LINK")]
    pub link: Option<Parsed<Line>>,
    /// A line that `suimon measure --save` wrote, or another scenario's first link
    #[arg(long, value_name = "FILE", conflicts_with = "paths")]
    pub line: Option<PathBuf>,
    /// A network that many have: home, phone, starlink, rrul
    #[arg(long, value_name = "NAME")]
    pub preset: Option<Parsed<Preset>>,
    /// In place of --link: the rate toward the user
    #[arg(long, value_name = "RATE")]
    pub down: Option<Parsed<Rate>>,
    /// The rate of the way back
    #[arg(long, value_name = "RATE", conflicts_with = "paths")]
    pub up: Option<Parsed<Rate>>,
    /// A measured link in place of a rate: a Mahimahi trace, or CSV with time and rate
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Round-trip time without queueing, where the link does not say it [default: 40ms with --trace]
    #[arg(long, value_name = "TIME", conflicts_with = "paths")]
    pub rtt: Option<Parsed<Duration>>,
    /// The most that may wait in front of the link, as in 96kB, 100packets, unbounded [default: 1000packets]
    #[arg(long, value_name = "BUFFER", conflicts_with = "paths")]
    pub buffer: Option<Parsed<Buffer>>,
    /// Random loss on the link, as in 1%
    #[arg(long, value_name = "SHARE", conflicts_with = "paths")]
    pub loss: Option<String>,
    /// One stream over several links, apart by ";": compares path schedulers
    #[arg(long, value_name = "LINKS", conflicts_with_all = Self::LINK_ONLY)]
    pub paths: Option<Parsed<Paths>>,
    /// With --paths: path schedulers (see suimon list) [default:
    /// look-ahead,blest,ecf,lowest-rtt,least-buffered,round-robin]
    #[arg(long = "scheduler", value_name = "NAMES", value_delimiter = ',')]
    pub schedulers: Vec<SchedulerName>,
    /// With --paths: what each flow may hold, unsent or unacknowledged [default: 4MiB]
    #[arg(long, value_name = "BYTES")]
    pub send_buffer: Option<Parsed<Bytes>>,
    /// With --paths: what may wait at the receiver for data of other flows [default: 4MiB]
    #[arg(long, value_name = "BYTES")]
    pub receive_buffer: Option<Parsed<Bytes>>,
    /// Algorithms; a receive window such as drs means Reno under it (see suimon list) [default:
    /// reno,cubic,vegas,drs,fs-at; reno where queues are compared; cubic with --paths]
    #[arg(long = "cc", value_name = "NAMES", value_delimiter = ',')]
    pub senders: Vec<SenderName>,
    /// Queue disciplines in front of the link; flows use ECN where one marks
    #[arg(long = "queue", value_name = "NAMES", value_delimiter = ',', default_value = "droptail")]
    pub queues: Vec<QueueName>,
    /// A node at the near end of the servers' network that splits each connection: its senders toward the user, compared
    /// with none
    #[arg(long = "gateway", value_name = "NAMES", value_delimiter = ',')]
    pub gateways: Vec<SenderName>,
    /// With --gateway: round-trip time between it and the servers [default: 100ms]
    #[arg(long, value_name = "TIME")]
    pub server_rtt: Option<Parsed<Duration>>,
    /// Flows of each algorithm; 30,50,30@100s: so many, changing every 100 s
    #[arg(long, value_name = "COUNTS", default_value = "1", allow_negative_numbers = true)]
    pub flows: Parsed<FlowCounts>,
    /// All algorithms share the link, instead of having it for themselves one after the other
    #[arg(long)]
    pub mixed: bool,
    /// Run a video call, a ping and small web pages during the load, and grade the call; the default if both directions
    /// have a rate
    #[arg(long)]
    pub call: bool,
    /// Try changes of queue, buffer and sender, and rank them by their effect on the call; the default if both
    /// directions have a rate and neither --cc nor --queue is given
    #[arg(long)]
    pub advise: bool,
    /// When a run ends at the latest [default: 60s, or as long as --flows says]
    #[arg(id = "seconds", long = "duration", value_name = "TIME")]
    #[serde(rename = "seconds")]
    pub duration: Option<Parsed<Duration>>,
    /// Leave the beginning out of totals and percentiles
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub warmup: Parsed<Duration>,
    /// How much each flow sends [default: as much as it can]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<Parsed<Bytes>>,
    /// Receive buffer, the most that a receiver advertises
    #[arg(long, value_name = "BYTES", default_value = DEFAULT_WINDOW)]
    pub window: Parsed<Bytes>,
    #[doc = "Profile of the TCP stacks at both ends"]
    #[arg(long, value_name = "NAME", default_value = "linux-6", help = profiles())]
    pub profile: Parsed<StackProfile>,
    /// The first seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    pub seed: u64,
    /// How many seeds
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    pub seeds: NonZeroUsize,
}

fn profiles() -> String {
    format!("Profile of the TCP stacks: {}", StackProfile::NAMES.join(", "))
}

/// When a run ends at the latest.
const RUN_LENGTH: Duration = Duration::from_secs(60);
/// How often flows and queues are sampled.
const RECORD_INTERVAL: Duration = Duration::from_millis(100);
/// What is compared over a link where nobody says what.
const SENDERS: [&str; 5] = ["reno", "cubic", "vegas", "drs", "fs-at"];
/// The sender of a line as it is: what most servers and hosts send by.
const SENDER_TODAY: &str = "cubic";
/// The sender where queues are compared.
const SENDER_OF_QUEUES: &str = "reno";

/// What holds where nothing is given, as the options say.
impl Default for Comparison {
    fn default() -> Self {
        defaults()
    }
}

impl Comparison {
    /// The fields that say over what: one of `link`, `trace` and `paths`, with what goes with it.
    pub const OVER: [&'static str; 10] =
        ["link", "line", "preset", "down", "up", "trace", "rtt", "buffer", "loss", "paths"];
    /// The fields that have no meaning over several paths.
    pub const LINK_ONLY: [&'static str; 7] =
        ["queues", "gateways", "server_rtt", "flows", "mixed", "call", "advise"];
    /// The fields that have a meaning only there.
    pub const PATHS_ONLY: [&'static str; 3] = ["schedulers", "send_buffer", "receive_buffer"];

    /// What is worth comparing over the link that `text` describes, as in `2Mbit 180ms 96kB`.
    ///
    /// # Errors
    /// When it does not read.
    pub fn over(text: &str) -> Result<Self, StudyError> {
        let link = text.parse().map_err(|problem: String| StudyError::input("link", problem))?;
        Ok(Self { link: Some(link), ..Self::default() })
    }

    /// The comparison that `fields` ask for.
    ///
    /// # Errors
    /// What does not read, by the field's name, with what is accepted.
    pub fn from_fields(fields: Map<String, Value>) -> Result<Self, StudyError> {
        serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
            let path = error.path().to_string();
            // An item of a list goes by the list's name.
            let field = path.split(['.', '[']).next().unwrap_or_default();
            StudyError::input(field.to_owned(), error.into_inner().to_string())
        })
    }

    fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            other => unreachable!("each field is text, a number, a flag or a list of text: {other:?}"),
        }
    }

    /// The command that asks for the same, without what is default.
    #[must_use]
    pub fn command(&self) -> String {
        let (given, default) = (self.fields(), Self::default().fields());
        let mut words = vec!["suimon compare".to_owned()];
        for option in Self::augment_args(Command::new("compare")).get_arguments() {
            let field = option.get_id().as_str();
            let Some(value) = given.get(field).filter(|value| default.get(field) != Some(value)) else {
                continue;
            };
            words.push(format!("--{}", option.get_long().unwrap_or(field)));
            match value {
                Value::Bool(_) => {}
                Value::String(text) => words.push(quoted(text)),
                Value::Array(items) => {
                    let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
                    words.push(quoted(&items.join(",")));
                }
                other => words.push(other.to_string()),
            }
        }
        words.join(" ")
    }

    /// Short name, for tables and folders.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.paths.is_some() { "paths" } else { "comparison" }
    }

    /// The runs: for each sender and queue, or for each path alone and each scheduler over all; and for each seed. Names
    /// stand for what they do in `registry`.
    ///
    /// # Errors
    /// When a name is not known, two runs would be the same, fields do not go together, or a quantity is out of range.
    pub fn runs(&self, registry: &Registry) -> Result<Vec<Run>, StudyError> {
        self.check_fields()?;
        match &self.paths {
            Some(paths) if self.link.is_none() && self.line.is_none() && self.trace.is_none() => {
                paths::runs(self, registry, &paths.0)
            }
            _ => link::runs(self, registry, &self.spec()?),
        }
    }

    /// What the `results` of its runs come to; `command` asked for them.
    ///
    /// # Errors
    /// As [`Comparison::runs`].
    pub fn findings(
        &self,
        registry: &Registry,
        command: String,
        results: Vec<RunResult>,
    ) -> Result<Findings, StudyError> {
        let mut findings = Findings::new(self.header(command), self.name(), results);
        findings.topology = topology(&self.runs(registry)?);
        if self.seeds.get() == 1 && findings.runs.len() > 1 {
            let note = format!("Each row is one run, of seed {}: --seeds 5 tells what is chance.", self.seed);
            findings.notes.push(note);
        }
        if self.paths.is_some() { Ok(findings) } else { link::judged(self, registry, findings) }
    }

    /// Whether a call runs beside the load.
    fn has_call(&self, link: &LinkSpec) -> bool {
        self.call || self.advise || link.back.is_some()
    }

    /// Whether changes are tried.
    fn advises(&self, link: &LinkSpec) -> bool {
        let asks_else =
            !self.gateways.is_empty() || !self.senders.is_empty() || self.queues.len() != 1 || self.mixed;
        self.advise || (link.back.is_some() && !asks_else && self.queues[0].as_str() == "droptail")
    }

    /// Refuses fields that have no meaning over a link, or over several paths.
    fn check_fields(&self) -> Result<(), StudyError> {
        let (given, default) = (self.fields(), Self::default().fields());
        let over_paths = self.paths.is_some();
        let others: &[&str] = if over_paths { &Self::LINK_ONLY } else { &Self::PATHS_ONLY };
        match others.iter().find(|field| given.get(**field) != default.get(**field)) {
            Some(field) if over_paths => Err(StudyError::Excludes { input: field, other: "paths" }),
            Some(field) => Err(StudyError::Requires { input: field, other: "paths", example: PATHS }),
            None if self.gateways.is_empty() && self.server_rtt.is_some() => {
                Err(StudyError::Requires { input: "server_rtt", other: "gateways", example: "fs-at" })
            }
            None if !self.gateways.is_empty() && self.advise => {
                Err(StudyError::Excludes { input: "advise", other: "gateways" })
            }
            None => Ok(()),
        }
    }

    /// What is compared at the ends: what `senders` say, or else what is worth comparing.
    fn senders(&self) -> Vec<SenderName> {
        let names: &[&str] = match (self.senders.as_slice(), self.queues.as_slice()) {
            ([], _) if self.paths.is_some() => &[paths::SENDER],
            ([], [_]) if self.spec().is_ok_and(|link| self.advises(&link)) => &[SENDER_TODAY],
            ([], [_]) if !self.gateways.is_empty() => &[SENDER_TODAY],
            ([], [_]) => &SENDERS,
            ([], _) => &[SENDER_OF_QUEUES],
            (senders, _) => return senders.to_vec(),
        };
        names.iter().map(|name| (*name).into()).collect()
    }

    /// Adds `scenario` for each seed.
    fn add_seeds(
        &self,
        runs: &mut Runs,
        labels: &[(String, String)],
        scenario: &Scenario,
    ) -> Result<(), StudyError> {
        scenario.check().map_err(|invalid| self.refusal(invalid.into()))?;
        let seeds = self.seeds.get() as u64;
        runs.add(labels, scenario, seeds).map_err(|problem| StudyError::input("seeds", problem.to_string()))
    }

    /// The header of its results, which `command` made.
    #[must_use]
    pub fn header(&self, command: String) -> ReportHeader {
        let title = if self.paths.is_some() { paths::title(self) } else { link::title(self) };
        ReportHeader { title, command, version: VERSION.to_owned(), ..ReportHeader::default() }
    }

    /// A refusal of what this is built into, by the field that is at fault; a link's own keys are in its text.
    fn refusal(&self, error: ScenarioError) -> StudyError {
        let key = error.key().unwrap_or_default();
        let field = match key.rsplit('.').next() {
            _ if key.starts_with("link.") => "",
            Some("duration") => "seconds",
            Some("reorder_buffer") => "receive_buffer",
            key => key.unwrap_or_default(),
        };
        if self.fields().contains_key(field) {
            return StudyError::input(field.to_owned(), error.problem().to_string());
        }
        error.into()
    }
}

/// What several paths look like.
const PATHS: &str = "10Mbit 1ms; 3Mbit 20ms";

/// A refusal of two things with one name, which `field` lists.
fn duplicate(field: &'static str, what: &str, name: &str) -> StudyError {
    StudyError::input(field, format!("a second {what} is called \"{name}\"; accepted: names that differ"))
}

/// A list of `names`, as they were written.
fn listed(names: &[impl ToString]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use serde_json::json;

    use super::*;

    /// The comparison with these fields.
    pub(super) fn comparison(fields: Value) -> Comparison {
        let Value::Object(fields) = fields else { panic!("fields: {fields}") };
        Comparison::from_fields(fields).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Why the comparison with these fields is refused.
    pub(super) fn refusal(fields: Value) -> (String, String) {
        let Value::Object(fields) = fields else { panic!("fields: {fields}") };
        let error = Comparison::from_fields(fields)
            .and_then(|comparison| comparison.runs(&Registry::standard()))
            .unwrap_err();
        match error {
            StudyError::Input { input, problem } => (input.into_owned(), problem),
            StudyError::Requires { input, other, .. } | StudyError::Excludes { input, other } => {
                (input.to_owned(), other.to_owned())
            }
            other => (String::new(), other.to_string()),
        }
    }

    #[test]
    fn each_option_is_a_field() {
        let options = Comparison::augment_args(Command::new("compare"));
        let mut options: Vec<_> =
            options.get_arguments().map(|option| option.get_id().as_str().to_owned()).collect();
        let mut fields: Vec<_> = Comparison::default().fields().keys().cloned().collect();
        options.sort();
        fields.sort();
        assert_eq!(options, fields);
        for field in [&Comparison::OVER[..], &Comparison::LINK_ONLY, &Comparison::PATHS_ONLY].concat() {
            assert!(fields.iter().any(|known| known == field), "{field}");
        }
    }

    #[test]
    fn the_command_says_what_is_not_default_and_reads_back() {
        let fields = json!({
            "link": "2Mbit 180ms", "senders": ["reno", "fs-at+cubic:mode=fit"], "flows": "3", "mixed": true,
            "seconds": "10s", "warmup": "0s", "seed": 7,
        });
        let given = comparison(fields);
        let command = given.command();
        let expected = "suimon compare --link '2Mbit 180ms' --cc reno,fs-at+cubic:mode=fit --flows 3 --mixed \
                        --duration 10s --seed 7";
        assert_eq!(command, expected);
        let words = command.replace("'2Mbit 180ms'", "2Mbit_180ms");
        let words = words.split(' ').skip(1).map(|word| word.replace('_', " "));
        let matches = Comparison::augment_args(Command::new("compare")).get_matches_from(words);
        let read = Comparison::from_arg_matches(&matches).unwrap();
        assert_eq!(read.fields(), given.fields());
        assert_eq!(given.runs(&Registry::standard()).unwrap().len(), 1);
    }

    #[test]
    fn a_refusal_names_the_field_and_what_is_accepted() {
        for (fields, field, problem) in [
            (json!({ "link": "1Mbit" }), "link", "missing; accepted: the round-trip time"),
            (json!({ "link": "1Mbit 1ms", "senders": ["reno", "rno"] }), "senders", "did you mean \"reno\"?"),
            (json!({ "link": "1Mbit 1ms", "queues": ["codle"] }), "queues", "did you mean \"codel\"?"),
            (json!({ "link": "1Mbit 1ms", "size": "10" }), "size", "\"10\" has no unit; accepted: B, kB"),
            (json!({ "link": "1Mbit 1ms", "profile": "bsd" }), "profile", "accepted: linux-6"),
            (json!({ "link": "1Mbit 1ms", "seconds": "0s" }), "seconds", "accepted: more than zero"),
            (json!({ "link": "1Mbit 1ms", "warmup": "60s" }), "warmup", "accepted: less than the duration"),
            (json!({ "link": "1Mbit 1ms", "window": "1B" }), "window", "out of range"),
            (json!({ "link": "1Mbit 1ms", "send_buffer": "1MB" }), "send_buffer", "paths"),
            (json!({ "paths": "1Mbit 1ms", "mixed": true }), "mixed", "paths"),
            (json!({ "paths": "1Mbit 1ms", "send_buffer": "1B" }), "send_buffer", "out of range"),
            (json!({ "link": "1Mbit 1ms", "colour": "red" }), "colour", "unknown field `colour`, expected"),
            (json!({}), "link", "one of link, line, trace, paths, preset and down"),
        ] {
            let (found, message) = refusal(fields.clone());
            assert!(found == field && message.contains(problem), "{fields}: {found}: {message}");
        }
    }
}
