//! Scenario files: TOML to runs.

mod aggregate;
mod defaults;
mod enter;
mod fields;
mod files;
mod flow;
mod keys;
mod link;
mod matrix;
mod node;
mod paths;
mod plan;
mod schema;
mod shared;
#[cfg(test)]
mod testing;
pub(crate) mod words;

use std::path::{Path, PathBuf};

use suimon_algorithms::registry::Registry;
use suimon_units::{Duration, Instant};

pub use defaults::print_defaults;
pub(crate) use node::{Node, Table, Value};
pub use plan::Plan;
pub(crate) use schema::{AnyKey, Key, Word};

use self::fields::Fields;
use self::files::Files;
use self::keys::{SCENARIO, WINDOW};
use self::matrix::{Axis, Overlap};
use self::paths::Wrong;
use self::shared::Shared;
use crate::error::{Problem, ScenarioError};
use crate::run::Runs;
use crate::text;
use crate::trace::read_text;
use suimon_model::Run;
use suimon_model::{Record, Scenario, Window};

/// Largest scenario file.
const MAX_FILE: u64 = 16 << 20;

/// Most flows of one run.
const MAX_FLOWS: u64 = 1_000_000;

/// A scenario file that is TOML; [`Document::runs`] makes runs of it.
#[derive(Debug, Clone)]
pub struct Document {
    source_name: String,
    /// The scenario's name where the file gives none.
    name: String,
    directory: PathBuf,
    text: String,
    root: Table,
    registry: Registry,
}

impl Document {
    /// Reads the scenario file at `path`. Traces that it names are relative to its directory.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let source_name = path.display().to_string();
        let text = read_text(path, MAX_FILE).map_err(|problem| ScenarioError::new(&source_name, problem))?;
        let mut document = Self::parse(&text, &source_name)?;
        if let Some(directory) = path.parent() {
            document.directory = directory.to_owned();
        }
        Ok(document)
    }

    /// Reads a scenario from `text`; `source_name` is for messages. Traces that it names are relative
    /// to the working directory.
    ///
    /// # Errors
    /// When the text is not TOML.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, ScenarioError> {
        let stem = Path::new(source_name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name: String = stem
            .chars()
            .take(text::MAX_LENGTH / 4)
            .map(|c| if text::is_name(c.encode_utf8(&mut [0; 4])) { c } else { '-' })
            .collect();
        Ok(Self {
            source_name: source_name.to_owned(),
            name: if name.is_empty() { "scenario".to_owned() } else { name },
            directory: PathBuf::new(),
            text: text.to_owned(),
            root: Node::document(text, source_name)?,
            registry: Registry::standard(),
        })
    }

    /// The same, where traces that it names are relative to `directory`.
    #[must_use]
    pub fn in_directory(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), ..self }
    }

    /// The same, where names of algorithms stand for what they do in `registry`, and not for the built-in ones alone.
    #[must_use]
    pub fn with_registry(self, registry: Registry) -> Self {
        Self { registry, ..self }
    }

    /// The text as read, without what [`Document::set`] changed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file, or whatever else the text came from.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// Sets `key`, a path as in a matrix (`duration`, `link.bottleneck.rate`, `flow.*.cc`), to
    /// `value`: TOML where it is that, and else text that needs no quotes. It takes the place of the values of a matrix over this key.
    ///
    /// # Errors
    /// When there is no such key, or a matrix rules it out, or sets a part of it or other keys as well; whether the key takes the value,
    /// [`Document::runs`] tells.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let refuse = |(key, problem): Wrong| ScenarioError::new("--set", problem).at_key(key);
        let value = Node::argument(value);
        let targets = paths::resolve_for_all(&self.registry, &self.root, key).map_err(refuse)?;
        // What is wrong with a matrix, `runs` tells.
        for (position, axis) in self.axes().unwrap_or_default().iter().enumerate() {
            match axis.overlap(&self.registry, &self.root, &targets) {
                Overlap::Nothing => {}
                Overlap::Whole => matrix::replace(&mut self.root, position, &value),
                Overlap::Part => {
                    let accepted =
                        format!("a key that no matrix sets, or all that the matrix \"{}\" sets", axis.name());
                    let found = "set or ruled out by a matrix, which comes after it";
                    return Err(refuse((key.to_owned(), Problem::Kind { found, accepted })));
                }
            }
        }
        paths::set(&mut self.root, &targets, &value).map_err(refuse)
    }

    /// Every run that the document asks for: the matrix in order, the last axis varying fastest, and
    /// within it the seeds.
    ///
    /// # Errors
    /// The first thing that is not right, with its line and key.
    pub fn runs(&self) -> Result<Vec<Run>, ScenarioError> {
        let plan = self.plan()?;
        if plan.runs() > Runs::MAX {
            let problem = Problem::TooMany { what: "more runs".to_owned(), limit: Runs::MAX };
            return Err(ScenarioError::new(&self.source_name, problem).at_key("matrix"));
        }
        let mut runs = Runs::default();
        for nth in 0..plan.points() {
            let (labels, scenario) = plan.point(nth)?;
            runs.add(&labels, &scenario, plan.seeds())
                .map_err(|problem| ScenarioError::new(&self.source_name, problem))?;
        }
        Ok(runs.finish())
    }

    /// The same runs to be made one at a time, where all of them would take too much memory.
    ///
    /// # Errors
    /// When the matrix or what it varies is not right; [`Plan::point`] tells what is wrong with its values.
    pub fn plan(&self) -> Result<Plan<'_>, ScenarioError> {
        Plan::new(self)
    }

    fn axes(&self) -> Result<Vec<Axis>, ScenarioError> {
        let root = self.fields(&self.root)?;
        let mut axes: Vec<Axis> = Vec::new();
        for fields in root.list("matrix")? {
            let axis = Axis::read(&fields, &self.root)?;
            if axes.iter().any(|other| other.name() == axis.name()) {
                let problem = Problem::Duplicate { what: "matrix", name: axis.name().to_owned() };
                return Err(ScenarioError::new(&self.source_name, problem)
                    .at_line(axis.line())
                    .at_key("matrix"));
            }
            axes.push(axis);
        }
        Ok(axes)
    }

    fn fields<'a>(&'a self, root: &'a Table) -> Result<Fields<'a>, ScenarioError> {
        Fields::new(&self.source_name, &self.registry, root, &SCENARIO, String::new(), None)
    }

    /// The scenario that `root` describes.
    fn scenario(&self, root: &Table, files: &Files) -> Result<Scenario, ScenarioError> {
        let fields = self.fields(root)?;
        let shared = Shared::read(&fields, files)?;
        let mut scenario = Scenario {
            name: self.name.clone(),
            description: String::new(),
            seed: 1,
            duration: Duration::ZERO,
            stop_when_complete: true,
            links: Vec::new(),
            flows: Vec::new(),
            aggregates: Vec::new(),
            record: Record::default(),
        };
        SCENARIO.enter(&mut scenario, &fields, &shared)?;
        for table in fields.list("window")? {
            let to = Instant::ZERO + scenario.duration;
            let mut window = Window { name: String::new(), from: Instant::ZERO, to, sample: Duration::ZERO };
            WINDOW.enter(&mut window, &table, &shared)?;
            scenario.record.windows.push(window);
        }
        for table in fields.list("link")? {
            scenario.links.extend(link::read(&table, &shared)?);
        }
        for table in fields.list("flow")? {
            flow::read(&table, &shared, MAX_FLOWS, &mut scenario.flows)?;
        }
        for table in fields.list("aggregate")? {
            scenario.aggregates.push(aggregate::read(&table, &shared)?);
        }
        scenario.check().map_err(|error| self.error_at(root, &error.key, error.problem.into(), None))?;
        Ok(scenario)
    }

    /// An error at `key`, with the line of the deepest part of the path that was written.
    fn error_at(&self, root: &Table, key: &str, problem: Problem, otherwise: Option<usize>) -> ScenarioError {
        let key = paths::as_written(root, key);
        let line = paths::line_of(root, &key).or(otherwise);
        ScenarioError::new(&self.source_name, problem).at_line(line).at_key(key)
    }
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::congestion::reno::Reno;
    use suimon_algorithms::registry::Description;
    use suimon_algorithms::user_defined::Build;
    use suimon_model::Traffic;

    use super::testing::{FLOW, LINK, message, one, runs};
    use super::*;

    #[test]
    fn names_of_algorithms_stand_for_what_they_do_in_the_registry_of_the_document() {
        let mut registry = Registry::standard();
        let description = Description::new("mine", "", "", "#123456", &[]);
        registry.add(description, Build::Congestion(Box::new(|_| Box::<Reno>::default()))).unwrap();
        let document = || Document::parse(&format!("{LINK}\n{FLOW}"), "test.toml").unwrap();
        let set = |mut document: Document| {
            document.set("flow.main.cc", "fs-at+mine").unwrap();
            document.runs()
        };
        let refusal = set(document()).unwrap_err().to_string();
        assert!(refusal.contains("unknown congestion control \"mine\""), "{refusal}");
        let runs = set(document().with_registry(registry)).unwrap();
        let Traffic::Tcp(tcp) = &runs[0].scenario.flows[0].traffic else { panic!("a TCP flow") };
        assert_eq!((tcp.cc.label(), tcp.cc.is_user_defined()), ("fs-at+mine", true));
    }

    #[test]
    fn a_link_and_a_flow_are_enough() {
        let scenario = one(&[LINK, FLOW]);
        assert_eq!((scenario.name.as_str(), scenario.seed), ("test", 1));
        assert_eq!(scenario.duration, Duration::from_secs(60));
        assert_eq!(scenario.record.interval, Some(Duration::from_millis(100)));
        let names: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["bottleneck", "bottleneck-reverse"]);
        assert_eq!(scenario.flows.len(), 1);
    }

    #[test]
    fn seeds_make_runs_that_say_so() {
        let runs = runs(&["seed = 5\nseeds = 2", LINK, FLOW]).unwrap();
        let seeds: Vec<_> = runs.iter().map(|run| run.scenario.seed).collect();
        assert_eq!(seeds, [5, 6]);
        assert_eq!(runs[1].labels, [("seed".to_owned(), "6".to_owned())]);
        assert!(testing::runs(&[LINK, FLOW]).unwrap()[0].labels.is_empty());
    }

    #[test]
    fn flows_alike_start_and_stop_one_after_the_other() {
        let lines = "count = 3\nstart = [\"1s\", \"2s\"]\nstop = \"9s\"\nstagger = \"100ms\"";
        let scenario = one(&[LINK, FLOW, lines]);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let third = &scenario.flows[2];
        assert_eq!(third.start, crate::Start::Between(at(1_200), at(2_200)));
        assert_eq!(third.stop, Some(at(9_200)));
        assert_eq!(scenario.flows[0].stop, Some(at(9_000)));
        assert!(message(&[LINK, FLOW, "count = 700\nstagger = \"100ms\""]).contains("is not before the end"));
    }

    #[test]
    fn what_is_recorded_can_be_switched_off() {
        assert_eq!(one(&["record_interval = \"off\"", LINK, FLOW]).record.interval, None);
        assert!(message(&["record_interval = \"of\"", LINK, FLOW]).contains("record_interval"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_a_hint() {
        let text = message(&["duratoin = \"5s\"", LINK, FLOW]);
        assert!(
            text.starts_with("test.toml:1: duratoin: unknown key (did you mean \"duration\"?)"),
            "{text}"
        );
        let text = message(&[LINK, "bufer = \"5 packets\"", FLOW]);
        assert!(text.starts_with("test.toml:6: link.bottleneck.bufer: unknown key (did you mean"), "{text}");
        assert!(text.contains("accepted: name, between"), "{text}");
    }

    #[test]
    fn a_bare_number_is_refused_for_its_missing_unit() {
        let text = message(&["duration = 60", LINK, FLOW]);
        assert_eq!(text, "test.toml:1: duration: \"60\" has no unit; accepted: ns, us, ms, s, min, h");
        assert!(message(&["duration = nan", LINK, FLOW]).contains("duration"));
        assert!(
            message(&["seed = 1.5", LINK, FLOW]).contains("seed: is a bare number; accepted: a whole number")
        );
        assert!(message(&["seed = -1", LINK, FLOW]).contains("out of range"));
        assert!(message(&["description = 3", LINK, FLOW]).contains("accepted: text in quotes"));
        assert!(message(&["link = 3", FLOW]).contains("link: is a bare number; accepted: tables of"));
        assert!(message(&["link = [3]", FLOW]).contains("accepted: tables of"));
    }

    #[test]
    fn too_many_of_anything_is_refused_before_it_is_made() {
        assert!(message(&["seeds = 100001", LINK, FLOW]).contains("from 1 to 100000"));
        assert!(message(&[LINK, FLOW, "count = 1000001"]).contains("from 1 to 1000000"));
        let three = "[[flow]]\nname = \"b\"\nfrom = \"sender\"\nto = \"receiver\"\ncount = 1000000";
        assert!(message(&[LINK, FLOW, "count = 2", three]).contains("more flows; accepted: at most 1000000"));
        assert!(message(&["seeds = 100000", LINK, FLOW, "count = 1000"]).contains("at most 2000000"));
        let sampled = |interval: &str| {
            message(&[
                "duration = \"100s\"",
                &format!("record_interval = \"{interval}\""),
                LINK,
                FLOW,
                "count = 99",
            ])
        };
        let problem = "at most 10000000 samples of all 100 series together";
        assert!(sampled("999us").contains(problem), "{}", sampled("999us"));
        one(&["duration = \"100s\"", "record_interval = \"1ms\"", LINK, FLOW, "count = 99"]);
    }

    #[test]
    fn a_file_is_read_and_names_traces_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cell.down"), "1\n2\n10\n").unwrap();
        let path = directory.path().join("my scenario.toml");
        let trace = LINK.replace("rate = \"1Mbit\"", "trace = \"cell.down\"");
        std::fs::write(&path, format!("{trace}\n{FLOW}\n")).unwrap();
        let document = Document::read(&path).unwrap();
        let runs = document.runs().unwrap();
        assert_eq!(runs[0].scenario.name, "my-scenario");
        assert!(matches!(runs[0].scenario.links[0].capacity, crate::Capacity::Opportunities { .. }));
        std::fs::write(directory.path().join("cell.down"), "1\nx\n").unwrap();
        let text = document.runs().unwrap_err().to_string();
        assert!(text.contains("cell.down:2: \"x\" is not a whole number"), "{text}");
        std::fs::remove_file(directory.path().join("cell.down")).unwrap();
        let text = document.runs().unwrap_err().to_string();
        assert!(text.contains("my scenario.toml:4: link.bottleneck.trace: cannot read"), "{text}");
        assert!(Document::read(directory.path()).unwrap_err().to_string().contains("cannot read"));
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Document::read(&path).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn errors_of_what_was_expanded_name_the_key_that_was_written() {
        let text = message(&[LINK, "[link.reverse]\nbuffer = \"9B\"", FLOW]);
        assert!(
            text.starts_with("test.toml:7: link.bottleneck.reverse.buffer: \"9 B\" holds no packet"),
            "{text}"
        );
        let text = message(&[LINK, FLOW, "count = 2\nwindow = \"1B\""]);
        assert!(text.starts_with("test.toml:12: flow.main.window: \"1 B\" is out of range"), "{text}");
        let text = message(&[LINK, FLOW, "start = \"70s\""]);
        assert!(text.starts_with("test.toml:11: flow.main.start: \"70 s\" is not before the end"), "{text}");
    }

    #[test]
    fn keys_can_be_set_from_outside() {
        let mut document = Document::parse(&format!("{LINK}\n{FLOW}"), "test.toml").unwrap();
        document.set("duration", "5s").unwrap();
        document.set("link.bottleneck.trace", "/nonexistent").unwrap();
        document.set("link.bottleneck.rate", "3Mbit").unwrap();
        document.set("flow.*.stack.delayed_ack", "false").unwrap();
        document.set("seeds", "2").unwrap();
        document.set("flow.main.kc", "reno").unwrap_err();
        let runs = document.runs().unwrap();
        assert_eq!((runs.len(), runs[0].scenario.duration), (2, Duration::from_secs(5)));
        document.set("duration", "5").unwrap();
        assert!(document.runs().unwrap_err().to_string().contains("duration: \"5\" has no unit"));
    }
}
