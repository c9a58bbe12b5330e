//! Key paths: what they lead to, setting it, and where it was written.

use suimon_algorithms::registry::{Registry, Role};

use super::fields::unknown_key;
use super::keys::{AGGREGATE, CELL, FLOW, LINK, MEDIUM, SCENARIO};
use super::node::{Node, Table, Value};
use super::schema::{Form, Keys, PATHS, Section};
use crate::error::{Problem, closest};
use crate::text;

/// The lists of named tables: a name follows in a key path.
const LISTS: [(&str, &dyn Section); 5] =
    [("link", &LINK), ("cell", &CELL), ("medium", &MEDIUM), ("flow", &FLOW), ("aggregate", &AGGREGATE)];

fn list(name: &str) -> Option<(&'static str, &'static dyn Section)> {
    LISTS.into_iter().find(|(known, _)| *known == name)
}

/// What a key path leads to: a key of the document, or of something in one of its lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The list, and the position of the one that is meant.
    item: Option<(&'static str, usize)>,
    keys: Vec<&'static str>,
}

impl Target {
    /// Whether `value` put here sets `other` or a part of it, or takes it away.
    pub(super) fn sets(&self, value: &Node, other: &Self) -> bool {
        let section = self.item.and_then(|(kind, _)| list(kind)).map(|(_, section)| section);
        self.item == other.item && replaces(section.unwrap_or(&SCENARIO), &self.keys, value, &other.keys)
    }
}

/// Whether `value`, put at `keys` of `section` as [`put`] does, changes what `others` lead to.
fn replaces(section: &dyn Section, keys: &[&str], value: &Node, others: &[&str]) -> bool {
    let Some((other, below)) = others.split_first() else { return true };
    let Some((first, rest)) = keys.split_first() else {
        // A table sets only the keys that it has.
        return value.table().is_none_or(|table| {
            table.entries.iter().any(|entry| replaces(section, &[&entry.key], &entry.node, others))
        });
    };
    let Some(key) = section.key(first) else { return false };
    if first != other {
        return key.excludes().any(|name| name == *other);
    }
    match (key.form(), key.inner()) {
        (Form::Table(inner), _) => replaces(inner, rest, value, below),
        (_, Some(inner)) if !rest.is_empty() => replaces(inner, rest, value, below),
        // A parameter of an algorithm, or all of it.
        _ => rest.iter().zip(below).all(|(one, other)| one == other),
    }
}

/// A key path and what is wrong there.
pub(super) type Wrong = (String, Problem);

/// What `path` leads to in `root`, where it is set once and for all: before the runs are counted.
pub(super) fn resolve_for_all(registry: &Registry, root: &Table, path: &str) -> Result<Vec<Target>, Wrong> {
    match path {
        "seeds" => Ok(vec![Target { item: None, keys: vec!["seeds"] }]),
        _ => resolve(registry, root, path),
    }
}

/// What `path` leads to in `root`: more than one thing where it has a `*`.
pub(super) fn resolve(registry: &Registry, root: &Table, path: &str) -> Result<Vec<Target>, Wrong> {
    let wrong = |problem| (path.chars().take(text::MAX_LENGTH).collect::<String>(), problem);
    let mut parts = path.split('.');
    let first = parts.next().unwrap_or_default();
    let (kind, section) = match (list(first), first) {
        (Some(list), _) => list,
        // The runs are counted before they are made, so these two cannot vary between them.
        (None, "matrix" | "seeds") => {
            return Err(wrong(Problem::Kind { found: "not for setting", accepted: PATHS.to_owned() }));
        }
        (None, _) => {
            let scenario: &dyn Section = &SCENARIO;
            let key = scenario.key(first).ok_or_else(|| wrong(unknown_key(scenario, first)))?;
            let keys = vec![key.name()];
            return match parts.next() {
                None => Ok(vec![Target { item: None, keys }]),
                Some(_) => Err(wrong(Problem::Kind { found: "not a table", accepted: PATHS.to_owned() })),
            };
        }
    };
    let Some(name) = parts.next() else {
        return Err(wrong(Problem::Missing { accepted: format!("the name of a {kind} after \"{kind}.\"") }));
    };
    let mut keys = Vec::new();
    let mut inside = Some(section);
    let mut algorithm = None;
    for part in parts {
        if let Some(role) = algorithm.take() {
            keys.push(parameter(registry, role, part).map_err(wrong)?);
            continue;
        }
        let Some(section) = inside else {
            return Err(wrong(Problem::Kind {
                found: "below a key that is no table",
                accepted: PATHS.to_owned(),
            }));
        };
        let key = section.key(part).ok_or_else(|| wrong(unknown_key(section, part)))?;
        keys.push(key.name());
        inside = key.inner();
        algorithm = if let Form::Algorithm(role) = key.form() { Some(role) } else { None };
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
            name: name.chars().take(text::MAX_LENGTH).collect(),
            suggestion: closest(name, names()),
            accepted: names().take(20).chain(["*"]).collect::<Vec<_>>().join(", "),
        }));
    }
    Ok(found)
}

/// The parameter called `name` of any algorithm of this role; whether it is one of the algorithm that is
/// meant, shows when that is read.
fn parameter(registry: &Registry, role: Role, name: &str) -> Result<&'static str, Problem> {
    let parameters = || registry.descriptions(role).into_iter().flat_map(|d| d.parameters);
    let names = || parameters().map(|parameter| parameter.name);
    names().find(|known| *known == name).ok_or_else(|| {
        let mut accepted: Vec<_> = names().collect();
        accepted.sort_unstable();
        accepted.dedup();
        Problem::UnknownName {
            what: "parameter",
            name: name.chars().take(text::MAX_LENGTH).collect(),
            suggestion: closest(name, names()),
            accepted: accepted.join(", "),
        }
    })
}

/// Whether `table` can take `key` beside what it has; a UDP flow takes no congestion control.
fn takes(table: &Table, section: &dyn Section, key: Option<&str>) -> bool {
    let Some(key) = key.and_then(|key| section.key(key)) else { return true };
    // Keys that exclude each other replace each other; those excluded one way only are ruled out.
    !table.entries.iter().filter_map(|entry| section.key(&entry.key)).any(|other| {
        other.excludes().any(|name| name == key.name()) && !key.excludes().any(|name| name == other.name())
    })
}

/// Names and tables of what is in the list `kind` of `root`; an empty name where one has none.
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
        let (_, section) = list(kind).expect("a target with a position is in one of the lists");
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

fn put(table: &mut Table, section: &dyn Section, keys: &[&str], value: &Node) -> Result<(), Wrong> {
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
    for other in key.excludes() {
        table.remove(other);
    }
    let wrong_kind = || Problem::Kind { found: "not a table", accepted: key.accepted() };
    if let (Form::Algorithm(_), [parameter]) = (key.form(), rest) {
        // A table of name and settings, not the one-line form.
        let settings = table.table_at(key.name()).ok_or_else(|| (key.name().to_owned(), wrong_kind()))?;
        settings.insert(parameter, value.clone());
        return Ok(());
    }
    let inner = match key.form() {
        Form::Table(inner) if value.table().is_some() => inner,
        _ if rest.is_empty() => {
            table.insert(key.name(), value.clone());
            return Ok(());
        }
        _ => match key.inner() {
            Some(inner) => inner,
            None => return Err((key.name().to_owned(), unknown_key(&Keys::<()>(&[]), first))),
        },
    };
    let child = table.table_at(key.name()).ok_or_else(|| (key.name().to_owned(), wrong_kind()))?;
    put(child, inner, rest, value).map_err(|(below, problem)| (format!("{}.{below}", key.name()), problem))
}

/// What is called `name` in the list `kind` of `root`.
fn item<'a>(root: &'a Table, kind: &str, name: &str) -> Option<&'a Node> {
    match root.get(kind).map(|node| &node.value) {
        Some(Value::List(list)) => list.iter().find(|node| {
            let known = node.table().and_then(|table| table.get("name")).map(|name| &name.value);
            matches!(known, Some(Value::Text(known)) if known == name)
        }),
        _ => None,
    }
}

/// The key path as the user knows it: `link.bottleneck-reverse` stems from `link.bottleneck.reverse`,
/// and `flow.main-17` from `flow.main`.
pub(super) fn as_written(root: &Table, path: &str) -> String {
    let mut parts = path.splitn(3, '.');
    let (Some(kind), Some(name), rest) = (parts.next(), parts.next(), parts.next()) else {
        return path.to_owned();
    };
    if list(kind).is_none() {
        return path.to_owned();
    }
    let stem = match name.rsplit_once('-') {
        Some((stem, end)) if item(root, kind, name).is_none() && item(root, kind, stem).is_some() => {
            if kind == "link" { format!("{stem}.{end}") } else { stem.to_owned() }
        }
        _ => name.to_owned(),
    };
    [kind, &stem].into_iter().chain(rest).collect::<Vec<_>>().join(".")
}

/// The line of the deepest part of `path` that was written in `root`.
pub(super) fn line_of(root: &Table, path: &str) -> Option<usize> {
    let mut parts = path.split('.');
    let first = parts.next()?;
    let name = list(first).and_then(|_| parts.next());
    let mut node = match name {
        Some(name) => item(root, first, name)?,
        None => root.get(first)?,
    };
    let mut line = node.line;
    for part in parts {
        let Some(inner) = node.table().and_then(|table| table.get(part)) else { break };
        node = inner;
        line = node.line.or(line);
    }
    line
}
