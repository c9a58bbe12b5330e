//! The `[[matrix]]`: values for keys.

use suimon_algorithms::registry::Registry;

use super::fields::{Field, Fields};
use super::node::{Node, Table, Value};
use super::paths::{Target, Wrong, resolve, set};
use crate::error::{Problem, ScenarioError};
use crate::text;

/// One `[[matrix]]`.
#[derive(Debug)]
pub(super) struct Axis {
    name: String,
    line: Option<usize>,
    targets: Targets,
    values: Vec<(String, Node)>,
}

/// Where the values of an axis go.
#[derive(Debug)]
enum Targets {
    /// The same value to all of these.
    These(Vec<Target>),
    /// Each value says: it is a table of key paths.
    Anything,
}

/// How much of what is set from outside a matrix sets too, or takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    Nothing,
    /// Nothing else, so that one value can take the place of all.
    Whole,
    Part,
}

/// The key path that stands for any.
const ANYTHING: &str = "*";

impl Axis {
    /// Reads an axis over `root`, the document that it varies.
    pub(super) fn read(fields: &Fields<'_>, root: &Table) -> Result<Self, ScenarioError> {
        let set = fields.field("set")?;
        let paths = match &set.node().value {
            Value::Text(path) => vec![path.as_str()],
            Value::List(paths) if !paths.is_empty() => paths
                .iter()
                .map(|path| {
                    if let Value::Text(path) = &path.value {
                        Ok(path.as_str())
                    } else {
                        Err(set.wrong_kind())
                    }
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(set.wrong_kind()),
        };
        let located = |(key, problem): Wrong| {
            ScenarioError::new(fields.source_name(), problem).at_line(set.line()).at_key(key)
        };
        let targets = if paths == [ANYTHING] {
            Targets::Anything
        } else {
            let resolved = paths.iter().map(|path| resolve(fields.registry(), root, path));
            let resolved: Result<Vec<_>, _> = resolved.collect();
            Targets::These(resolved.map_err(located)?.into_iter().flatten().collect())
        };
        let name = match fields.optional("name") {
            Some(field) => field.name()?,
            None if paths == [ANYTHING] => return Err(fields.lacks("name")),
            None => paths[0].rsplit('.').next().unwrap_or_default().to_owned(),
        };
        let field = fields.field("values")?;
        let values = list(&field)?;
        let labels: Vec<String> = match fields.optional("labels") {
            None => values.iter().map(|node| node.plain().chars().take(text::MAX_LENGTH).collect()).collect(),
            Some(labels) => {
                let names = list(&labels)?;
                if names.len() != values.len() {
                    let (text, accepted) = (names.len().to_string(), format!("{} labels", values.len()));
                    return Err(labels.error(Problem::Value {
                        text,
                        reason: "is not the number of values",
                        accepted,
                    }));
                }
                names.iter().map(Node::plain).collect()
            }
        };
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = labels.iter().find(|label| !seen.insert(*label)) {
            return Err(field.error(Problem::Duplicate { what: "value", name: twice.clone() }));
        }
        let values = labels.into_iter().zip(values.iter().cloned()).collect();
        Ok(Self { name, line: set.line(), targets, values })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn line(&self) -> Option<usize> {
        self.line
    }

    /// How much of `others` this axis over `root` sets too, or takes away.
    pub(super) fn overlap(&self, registry: &Registry, root: &Table, others: &[Target]) -> Overlap {
        let sets = |target: &Target, value: &Node| others.iter().any(|other| target.sets(value, other));
        let mut values = self.values.iter().map(|(_, value)| value);
        let is_part = match &self.targets {
            Targets::These(targets) if targets.iter().all(|target| others.contains(target)) => {
                return Overlap::Whole;
            }
            Targets::These(targets) => values.any(|value| targets.iter().any(|target| sets(target, value))),
            Targets::Anything => {
                let mut entries = values.filter_map(Node::table).flat_map(|table| &table.entries);
                entries.any(|entry| {
                    let targets = resolve(registry, root, &entry.key).unwrap_or_default();
                    targets.iter().any(|target| sets(target, &entry.node))
                })
            }
        };
        if is_part { Overlap::Part } else { Overlap::Nothing }
    }

    /// How many values, at least one.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn label(&self, position: usize) -> &str {
        &self.values[position].0
    }

    /// Puts the value at `position` where it belongs.
    pub(super) fn apply(&self, registry: &Registry, root: &mut Table, position: usize) -> Result<(), Wrong> {
        let value = &self.values[position].1;
        match &self.targets {
            Targets::These(targets) => set(root, targets, value),
            Targets::Anything => {
                let Some(table) = value.table() else {
                    let accepted = "a table of key paths, such as { \"link.bottleneck.rate\" = \"2Mbit\" }";
                    let problem = Problem::Kind { found: value.kind(), accepted: accepted.to_owned() };
                    return Err(("matrix".to_owned(), problem));
                };
                for entry in &table.entries {
                    let targets = resolve(registry, root, &entry.key)?;
                    set(root, &targets, &entry.node)?;
                }
                Ok(())
            }
        }
    }
}

/// Gives the axis at `position` of `root` no value but `value`.
pub(super) fn replace(root: &mut Table, position: usize, value: &Node) {
    let matrix = root.entries.iter_mut().find(|entry| entry.key == "matrix");
    if let Some(Value::List(axes)) = matrix.map(|entry| &mut entry.node.value)
        && let Some(axis) = axes.get_mut(position).and_then(Node::table_mut)
    {
        axis.insert("values", Node { line: None, value: Value::List(vec![value.clone()]) });
        axis.remove("labels");
    }
}

fn list<'a>(field: &'a Field<'_>) -> Result<&'a [Node], ScenarioError> {
    match &field.node().value {
        Value::List(items) if !items.is_empty() => Ok(items),
        Value::List(_) => Err(field.error(Problem::Missing { accepted: "at least one".to_owned() })),
        _ => Err(field.wrong_kind()),
    }
}

#[cfg(test)]
mod tests {
    use suimon_units::Rate;

    use super::super::Document;
    use super::super::testing::{FLOW, LINK, message, runs};
    use suimon_model::Run;
    use suimon_model::{Capacity, Traffic};

    const RATES: &str =
        "[[matrix]]\nname = \"rate\"\nset = \"link.bottleneck.rate\"\nvalues = [\"64kbit\", \"1Mbit\"]";

    fn labels(run: &Run) -> Vec<(&str, &str)> {
        run.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    #[test]
    fn axes_cross_and_the_last_varies_fastest() {
        let cc = "[[matrix]]\nset = \"flow.*.cc\"\nvalues = [\"reno\", { name = \"vegas\", alpha = 3 }]";
        let runs = runs(&["seeds = 2", LINK, FLOW, RATES, cc]).unwrap();
        assert_eq!(runs.len(), 8);
        assert_eq!(labels(&runs[0]), [("rate", "64kbit"), ("cc", "reno"), ("seed", "1")]);
        assert_eq!(labels(&runs[1]), [("rate", "64kbit"), ("cc", "reno"), ("seed", "2")]);
        assert_eq!(labels(&runs[2]), [("rate", "64kbit"), ("cc", "vegas:alpha=3"), ("seed", "1")]);
        assert_eq!(labels(&runs[7]), [("rate", "1Mbit"), ("cc", "vegas:alpha=3"), ("seed", "2")]);
        assert_eq!(runs[3].scenario.links[0].capacity, Capacity::Rate(Rate::from_bps(64_000)));
        let Traffic::Tcp(tcp) = &runs[7].scenario.flows[0].traffic else { panic!("a TCP flow") };
        assert_eq!(tcp.cc.label(), "vegas:alpha=3");
    }

    #[test]
    fn a_value_may_say_itself_where_its_parts_go() {
        let link =
            |rate: &str| format!("{{ \"link.bottleneck.rate\" = \"{rate}\", \"flow.*.cc\" = \"vegas\" }}");
        let axis = |values: &str| {
            format!("[[matrix]]\nname = \"setting\"\nset = \"*\"\nlabels = [\"slow\"]\nvalues = [{values}]")
        };
        let run = &runs(&[LINK, FLOW, &axis(&link("64kbit"))]).unwrap()[0];
        assert_eq!(run.scenario.links[0].capacity, Capacity::Rate(Rate::from_bps(64_000)));
        let Traffic::Tcp(tcp) = &run.scenario.flows[0].traffic else { panic!("a TCP flow") };
        assert_eq!((tcp.cc.label(), labels(run)), ("vegas", vec![("setting", "slow")]));
        let refused = |axis: &str| message(&[LINK, FLOW, axis]);
        assert!(refused(&axis("\"64kbit\"")).contains("a table of key paths"));
        let unknown = refused(&axis("{ \"link.bottelneck.rate\" = \"1Mbit\" }"));
        assert!(unknown.contains("did you mean \"bottleneck\""), "{unknown}");
        let nameless = "[[matrix]]\nset = \"*\"\nvalues = [{ duration = \"1s\" }]";
        assert!(refused(nameless).contains("name: "), "{}", refused(nameless));
    }

    #[test]
    fn a_value_may_go_to_several_keys_and_a_table_sets_several_at_once() {
        let both = "[[matrix]]\nset = [\"link.bottleneck.delay\", \"link.bottleneck.reverse.delay\"]\nvalues = [\"1ms\"]";
        let run = &runs(&[LINK, FLOW, both]).unwrap()[0];
        assert_eq!(run.scenario.links[0].delay, run.scenario.links[1].delay);
        assert_eq!(labels(run), [("delay", "1ms")]);
        let table = "[[matrix]]\nname = \"cell\"\nset = \"link.bottleneck\"\nlabels = [\"slow\", \"fast\"]\n\
                     values = [{ rate = \"1kbit\", delay = \"1s\" }, { rate = \"1Gbit\", reverse = { rate = \"1bit\" } }]";
        let runs = runs(&[LINK, FLOW, table]).unwrap();
        assert_eq!(labels(&runs[1]), [("cell", "fast")]);
        assert_eq!(runs[1].scenario.links[0].capacity, Capacity::Rate(Rate::from_bps(1_000_000_000)));
        assert_eq!(runs[1].scenario.links[1].capacity, Capacity::Rate(Rate::from_bps(1)));
        assert_eq!(runs[0].scenario.links[1].delay, suimon_units::Duration::from_secs(1));
    }

    #[test]
    fn keys_that_the_file_leaves_out_can_be_varied() {
        let axis = "[[matrix]]\nset = \"flow.main.stack.delayed_ack\"\nvalues = [true, false]";
        let runs = runs(&[LINK, FLOW, axis]).unwrap();
        let Traffic::Tcp(tcp) = &runs[1].scenario.flows[0].traffic else { panic!("a TCP flow") };
        assert!(!tcp.profile.delayed_ack);
        assert_eq!(labels(&runs[1]), [("delayed_ack", "false")]);
    }

    #[test]
    fn a_star_leaves_out_what_cannot_take_the_key() {
        let udp =
            "[[flow]]\nname = \"cross\"\nfrom = \"sender\"\nto = \"receiver\"\nudp = { rate = \"1kbit\" }";
        let axis = "[[matrix]]\nset = \"flow.*.cc\"\nvalues = [\"vegas\"]";
        let run = &runs(&[LINK, FLOW, udp, axis]).unwrap()[0];
        assert!(matches!(run.scenario.flows[1].traffic, Traffic::Udp(_)));
    }

    #[test]
    fn a_setting_from_outside_takes_the_place_of_a_matrix_over_the_same_key() {
        let cc = "[[matrix]]\nset = \"flow.*.cc\"\nvalues = [\"reno\", \"cubic\"]\nlabels = [\"a\", \"b\"]";
        let anything =
            "[[matrix]]\nname = \"any\"\nset = \"*\"\nlabels = [\"slow\"]\nvalues = [{ duration = \"9s\" }]";
        let document = [LINK, FLOW, RATES, cc, anything].join("\n");
        let mut changed = Document::parse(&document, "test.toml").unwrap();
        changed.set("flow.main.cc", "vegas").unwrap();
        let runs = changed.runs().unwrap();
        let expected = ["64kbit", "1Mbit"].map(|rate| vec![("rate", rate), ("cc", "vegas"), ("any", "slow")]);
        assert_eq!(runs.iter().map(labels).collect::<Vec<_>>(), expected);
        let Traffic::Tcp(tcp) = &runs[0].scenario.flows[0].traffic else { panic!("a TCP flow") };
        assert_eq!(tcp.cc.label(), "vegas");
        changed.set("flow.main.cc", "vegsa").unwrap();
        assert!(changed.runs().unwrap_err().to_string().contains("did you mean \"vegas\""));
    }

    #[test]
    fn a_setting_from_outside_is_refused_where_a_matrix_sets_a_part_of_it_or_rules_it_out() {
        let cc = "[[matrix]]\nset = \"flow.*.cc\"\nvalues = [\"reno\"]";
        let anything =
            "[[matrix]]\nname = \"any\"\nset = \"*\"\nlabels = [\"slow\"]\nvalues = [{ duration = \"9s\" }]";
        let cell = "[[matrix]]\nname = \"cell\"\nset = \"link.bottleneck\"\nlabels = [\"a\"]\nvalues = [{ rate = \"9kbit\" }]";
        let document = || Document::parse(&[LINK, FLOW, cell, cc, anything].join("\n"), "test.toml").unwrap();
        let refused = [
            ("flow.main.cc.alpha", "3", "cc"),
            ("duration", "1s", "any"),
            ("link.bottleneck.rate", "1kbit", "cell"),
            ("link.bottleneck.trace", "a.trace", "cell"),
        ];
        for (key, value, matrix) in refused {
            let refusal = document().set(key, value).unwrap_err().to_string();
            let expected = format!("--set: {key}: is set or ruled out by a matrix, which comes after it");
            assert!(refusal.starts_with(&expected) && refusal.contains(&format!("{matrix:?}")), "{refusal}");
        }
        document().set("link.bottleneck.delay", "1ms").unwrap();
        let age = "[[matrix]]\nset = \"flow.main.cc.age\"\nvalues = [\"1s\", \"2s\"]";
        let flow = FLOW.replace("\"reno\"", "{ name = \"fs-at-open\" }");
        let mut other_parameter = Document::parse(&[LINK, &flow, age].join("\n"), "test.toml").unwrap();
        other_parameter.set("flow.main.cc.compete", "false").unwrap();
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        let set = |path: &str| message(&[LINK, FLOW, &format!("[[matrix]]\nset = {path}\nvalues = [1]")]);
        let text = set("\"link.botleneck.rate\"");
        assert!(
            text.starts_with(
                "test.toml:12: link.botleneck.rate: no link is called \"botleneck\" (did you mean"
            ),
            "{text}"
        );
        assert!(set("\"link.bottleneck.rat\"").contains("unknown key (did you mean \"rate\"?)"));
        assert!(set("\"link.bottleneck.rate.x\"").contains("below a key that is no table"));
        assert!(set("\"link\"").contains("the name of a link"));
        assert!(set("\"duratio\"").contains("did you mean \"duration\"?"));
        assert!(set("\"seeds\"").contains("not for setting"));
        assert!(set("\"\"").contains("unknown key"));
        assert!(set("[]").contains("accepted: a key path"));
        assert!(set("[3]").contains("accepted: a key path"));
    }

    #[test]
    fn values_are_refused_where_they_stand() {
        let text = message(&[LINK, FLOW, &RATES.replace("64kbit", "64")]);
        assert_eq!(
            text,
            "test.toml:14: link.bottleneck.rate: \"64\" has no unit; accepted: bit, kbit, Mbit, Gbit (per second)"
        );
        assert!(
            message(&[LINK, FLOW, &RATES.replace("64kbit", "1Mbit")])
                .contains("a second value is called \"1Mbit\"")
        );
        assert!(
            message(&[LINK, FLOW, "[[matrix]]\nset = \"duration\"\nvalues = []"]).contains("values: missing")
        );
        assert!(message(&[LINK, FLOW, "[[matrix]]\nset = \"duration\""]).contains("values: missing"));
        assert!(message(&[LINK, FLOW, RATES, "labels = [\"a\"]"]).contains("is not the number of values"));
        assert!(message(&[LINK, FLOW, RATES, RATES]).contains("a second matrix is called \"rate\""));
        assert!(
            message(&[LINK, FLOW, "[[matrix]]\nset = \"link.bottleneck\"\nvalues = [3]"])
                .contains("accepted: a table of")
        );
        assert!(
            message(&[LINK, FLOW, "[[matrix]]\nset = \"link.bottleneck\"\nvalues = [{ x = 3 }]"])
                .contains("unknown key")
        );
        assert!(
            message(&["seeds = 2", LINK, FLOW, "[[matrix]]\nset = \"seed\"\nvalues = [3]"])
                .contains("a matrix called seed")
        );
    }

    #[test]
    fn a_matrix_of_too_many_runs_is_refused() {
        let values: Vec<_> = (0..1_000).map(|nth| nth.to_string()).collect();
        let axis = |name: &str, set: &str| {
            format!("[[matrix]]\nname = \"{name}\"\nset = \"{set}\"\nvalues = [{}]", values.join(", "))
        };
        let text = message(&[LINK, FLOW, &axis("a", "seed"), &axis("b", "seed")]);
        assert!(text.contains("matrix: makes more runs; accepted: at most 100000"), "{text}");
    }
}
