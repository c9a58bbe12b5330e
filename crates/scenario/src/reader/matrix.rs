//! The `[[matrix]]`: values for keys, and the key paths that both it and the command line set.

use super::fields::{Field, Fields, unknown_key};
use super::keys::{FLOW, LINK, SCENARIO};
use super::node::{Node, Table, Value};
use super::schema::{Kind, Section};
use crate::error::{Problem, ScenarioError, closest};
use crate::text;

/// What a key path leads to: a key of the document, or of one of its links or flows.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// `link` or `flow`, and the position of the one that is meant.
    item: Option<(&'static str, usize)>,
    keys: Vec<&'static str>,
}

/// A key path and what is wrong there.
type Wrong = (String, Problem);

/// One `[[matrix]]`.
#[derive(Debug)]
pub(super) struct Axis {
    name: String,
    line: Option<usize>,
    targets: Vec<Target>,
    values: Vec<(String, Node)>,
}

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
        let mut targets = Vec::new();
        for path in &paths {
            let located = |(key, problem): Wrong| {
                ScenarioError::new(fields.source_name(), problem).at_line(set.line()).at_key(key)
            };
            targets.extend(resolve(root, path).map_err(located)?);
        }
        let name = match fields.optional("name") {
            Some(field) => field.name()?,
            None => paths[0].rsplit('.').next().unwrap_or_default().to_owned(),
        };
        let field = fields.field("values")?;
        let values = list(&field)?;
        let labels: Vec<String> = match fields.optional("labels") {
            None => values.iter().map(|node| node.plain().chars().take(text::LONGEST).collect()).collect(),
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

    /// How many values, at least one.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn label(&self, position: usize) -> &str {
        &self.values[position].0
    }

    /// Puts the value at `position` where it belongs.
    pub(super) fn apply(&self, root: &mut Table, position: usize) -> Result<(), Wrong> {
        set(root, &self.targets, &self.values[position].1)
    }
}

fn list<'a>(field: &'a Field<'_>) -> Result<&'a [Node], ScenarioError> {
    match &field.node().value {
        Value::List(items) if !items.is_empty() => Ok(items),
        Value::List(_) => Err(field.error(Problem::Missing { accepted: "at least one".to_owned() })),
        _ => Err(field.wrong_kind()),
    }
}

/// What `path` leads to in `root`: more than one thing where it has a `*`.
pub(super) fn resolve(root: &Table, path: &str) -> Result<Vec<Target>, Wrong> {
    let wrong = |problem| (path.chars().take(text::LONGEST).collect::<String>(), problem);
    let mut parts = path.split('.');
    let first = parts.next().unwrap_or_default();
    let (kind, section) = match first {
        "link" => ("link", &LINK),
        "flow" => ("flow", &FLOW),
        // The runs are counted before they are made, so these two cannot vary between them.
        "matrix" | "seeds" => {
            return Err(wrong(Problem::Kind { found: "not for setting", accepted: Kind::Paths.accepted() }));
        }
        _ => {
            let keys = vec![SCENARIO.key(first).ok_or_else(|| wrong(unknown_key(&SCENARIO, first)))?.name];
            return match parts.next() {
                None => Ok(vec![Target { item: None, keys }]),
                Some(_) => {
                    Err(wrong(Problem::Kind { found: "not a table", accepted: Kind::Paths.accepted() }))
                }
            };
        }
    };
    let Some(name) = parts.next() else {
        return Err(wrong(Problem::Missing { accepted: format!("the name of a {kind} after \"{kind}.\"") }));
    };
    let mut keys = Vec::new();
    let mut inside = Some(section);
    for part in parts {
        let Some(section) = inside else {
            return Err(wrong(Problem::Kind {
                found: "below a key that is no table",
                accepted: Kind::Paths.accepted(),
            }));
        };
        let key = section.key(part).ok_or_else(|| wrong(unknown_key(section, part)))?;
        keys.push(key.name);
        inside = key.inner();
    }
    let items: Vec<_> = items(root, kind).collect();
    let matches = |(_, (known, table)): &(usize, (&str, &Table))| {
        if name == "*" { takes(table, section, keys.first().copied()) } else { *known == name }
    };
    let found: Vec<_> = items
        .iter()
        .copied()
        .enumerate()
        .filter(matches)
        .map(|(position, _)| Target { item: Some((kind, position)), keys: keys.clone() })
        .collect();
    if found.is_empty() {
        let names = || items.iter().map(|(name, _)| *name);
        return Err(wrong(Problem::UnknownName {
            what: kind,
            name: name.chars().take(text::LONGEST).collect(),
            suggestion: closest(name, names()),
            accepted: names().take(20).chain(["*"]).collect::<Vec<_>>().join(", "),
        }));
    }
    Ok(found)
}

/// Whether `table` can take `key` beside what it has; a UDP flow takes no congestion control.
fn takes(table: &Table, section: &Section, key: Option<&str>) -> bool {
    let Some(key) = key.and_then(|key| section.key(key)) else { return true };
    // Keys that exclude each other replace each other; those excluded one way only are ruled out.
    !table
        .entries
        .iter()
        .filter_map(|entry| section.key(&entry.key))
        .any(|other| other.excludes.contains(&key.name) && !key.excludes.contains(&other.name))
}

/// Names and tables of the links or flows of `root`; an empty name where one has none.
fn items<'a>(root: &'a Table, kind: &str) -> impl Iterator<Item = (&'a str, &'a Table)> {
    let list = match root.get(kind).map(|node| &node.value) {
        Some(Value::List(list)) => list.as_slice(),
        _ => &[],
    };
    static NOTHING: Table = Table { entries: Vec::new() };
    list.iter().map(|node| {
        let table = node.table().unwrap_or(&NOTHING);
        match table.get("name").map(|name| &name.value) {
            Some(Value::Text(name)) => (name.as_str(), table),
            _ => ("", table),
        }
    })
}

/// Puts `value` at every one of `targets`.
pub(super) fn set(root: &mut Table, targets: &[Target], value: &Node) -> Result<(), Wrong> {
    for target in targets {
        let Some((kind, position)) = target.item else {
            put(root, &SCENARIO, &target.keys, value)?;
            continue;
        };
        let section = if kind == "link" { &LINK } else { &FLOW };
        let item = root.entries.iter_mut().find(|entry| entry.key == kind).and_then(|entry| match &mut entry
            .node
            .value
        {
            Value::List(items) => items.get_mut(position).and_then(Node::table_mut),
            _ => None,
        });
        let wrong = |(key, problem): Wrong| (format!("{kind}.*.{key}"), problem);
        match item {
            Some(table) => put(table, section, &target.keys, value).map_err(wrong)?,
            None => {
                return Err((
                    kind.to_owned(),
                    Problem::Kind { found: "not a table", accepted: format!("[[{kind}]]") },
                ));
            }
        }
    }
    Ok(())
}

fn put(table: &mut Table, section: &Section, keys: &[&str], value: &Node) -> Result<(), Wrong> {
    let Some((first, rest)) = keys.split_first() else {
        let Some(values) = value.table() else {
            let accepted = format!("a table of {}", section.names().collect::<Vec<_>>().join(", "));
            return Err((String::new(), Problem::Kind { found: value.kind(), accepted }));
        };
        for entry in &values.entries {
            put(table, section, &[&entry.key], &entry.node)?;
        }
        return Ok(());
    };
    let Some(key) = section.key(first) else {
        return Err(((*first).to_owned(), unknown_key(section, first)));
    };
    for other in key.excludes {
        table.remove(other);
    }
    let inner = match key.kind {
        Kind::Section(inner) if value.table().is_some() => inner,
        _ if rest.is_empty() => {
            table.insert(key.name, value.clone());
            return Ok(());
        }
        _ => match key.inner() {
            Some(inner) => inner,
            None => return Err((key.name.to_owned(), unknown_key(&Section { keys: &[] }, first))),
        },
    };
    let wrong_kind = || Problem::Kind { found: "not a table", accepted: key.kind.accepted() };
    let child = table.table_at(key.name).ok_or_else(|| (key.name.to_owned(), wrong_kind()))?;
    put(child, inner, rest, value).map_err(|(below, problem)| (format!("{}.{below}", key.name), problem))
}

/// The line of the deepest part of `path` that was written in `root`.
pub(super) fn line_of(root: &Table, path: &str) -> Option<usize> {
    let mut parts = path.split('.');
    let first = parts.next()?;
    let name = if matches!(first, "link" | "flow") { parts.next() } else { None };
    let Some(name) = name else {
        return root.get(first).and_then(|node| node.line);
    };
    let item = |wanted: &str| match root.get(first).map(|node| &node.value) {
        Some(Value::List(list)) => list.iter().find(|node| {
            let name = node.table().and_then(|table| table.get("name")).map(|name| &name.value);
            matches!(name, Some(Value::Text(name)) if name == wanted)
        }),
        _ => None,
    };
    // `bottleneck-reverse` stems from `bottleneck`, `main-17` from `main`.
    let stem = name.rsplit_once('-').map(|(stem, _)| stem);
    let mut node = item(name).or_else(|| stem.and_then(item))?;
    let mut line = node.line;
    if item(name).is_none()
        && name.ends_with("-reverse")
        && let Some(reverse) = node.table().and_then(|table| table.get("reverse"))
    {
        node = reverse;
        line = node.line.or(line);
    }
    for part in parts {
        let Some(inner) = node.table().and_then(|table| table.get(part)) else { break };
        node = inner;
        line = node.line.or(line);
    }
    line
}

#[cfg(test)]
mod tests {
    use suimon_units::Rate;

    use super::super::testing::{FLOW, LINK, message, runs};
    use crate::model::{Capacity, Traffic};
    use crate::run::Run;

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
