//! Keys in words, for a link in one line.

use std::path::Path;

use suimon_algorithms::registry::Registry;
use suimon_model::{Capacity, Link};
use suimon_units::Duration;

use super::fields::Fields;
use super::files::Files;
use super::keys::LINK;
use super::node::{Node, Table, Value};
use super::schema::{AnyKey, Key, Kind, Section, Word};
use super::shared::Shared;
use crate::error::{Problem, ScenarioError};
use crate::text;

/// A link in one line names no algorithm.
static STANDARD: Registry = Registry::standard();

/// Takes the radio that `words` begin with, where they do, and `KEY=VALUE` of it anywhere in them: how fast it is, the
/// key of a link that has it, and its table.
///
/// # Errors
/// When they do not describe one.
pub(crate) fn radio(
    words: &mut Vec<String>,
) -> Result<Option<(Capacity, &'static str, Table)>, ScenarioError> {
    for key in LINK.0 {
        let Some(Word::Radio { name, leading, keys, put }) = key.about.word else { continue };
        if words.first().is_none_or(|word| word != name) {
            continue;
        }
        words.remove(0);
        let mut table = table(words, leading, keys);
        if keys.key("name").is_some() {
            table.insert("name", Node::text(name));
        }
        let mut link = Link::delaying(String::new(), "", "", Duration::ZERO);
        let fields = Fields::new(SOURCE, &STANDARD, &table, keys, name.to_owned(), None)?;
        put(&mut link, &fields, &Shared::none(&here()))?;
        return Ok(Some((link.capacity, key.about.name, table)));
    }
    Ok(None)
}

/// What a line may begin with to be a radio, in words.
pub(crate) fn accepted_radios() -> String {
    let radio = |key: &Key<Link>| match key.about.word {
        Some(Word::Radio { name, leading, .. }) => {
            Some(format!("{name} {}", leading.join(" ").to_uppercase()))
        }
        _ => None,
    };
    LINK.0.iter().filter_map(radio).collect::<Vec<_>>().join(", ")
}

/// The table with these `leading` values, and with all of `words` that set a key of `section`.
fn table(words: &mut Vec<String>, leading: &[&'static str], section: &dyn Section) -> Table {
    let mut table = Table::default();
    for key in leading {
        if !words.is_empty() {
            table.insert(key, Node::text(&words.remove(0)));
        }
    }
    words.retain(|word| {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| section.key(key).is_some()) else {
            return true;
        };
        table.insert(key, Node::argument(text::bounded(value).unwrap_or("...")));
        false
    });
    table
}

/// What messages call a link in one line.
const SOURCE: &str = "link";

/// Files beside nothing.
fn here() -> Files {
    Files::new(Path::new(""))
}

/// The keys of a link that words behind the round-trip time say, in the order of the rows.
pub(crate) fn keys() -> impl Iterator<Item = (&'static Key<Link>, Word)> {
    let said = LINK.0.iter().filter_map(|key| Some((key, key.about.word?)));
    said.filter(|(_, word)| !matches!(word, Word::Radio { .. }))
}

/// Enters `value` into `link` as what `key` says, and into `table` as a scenario has it.
///
/// # Errors
/// When the key does not take it; the error names the key.
pub(crate) fn enter(
    key: &'static Key<Link>,
    value: &str,
    link: &mut Link,
    table: &mut Table,
) -> Result<(), ScenarioError> {
    let node = key.node(value)?;
    let mut alone = Table::default();
    alone.insert(key.about.name, node.clone());
    let fields = Fields::new(SOURCE, &STANDARD, &alone, &LINK, String::new(), None)?;
    key.enter(link, &fields, &Shared::none(&here()))?;
    table.insert(key.about.name, node);
    Ok(())
}

impl Key<Link> {
    /// `value` as a scenario has it: periods are said with commas between them, the keys of a table with slashes.
    fn node(&self, value: &str) -> Result<Node, ScenarioError> {
        let refuse = |problem| ScenarioError::new(SOURCE, problem).at_key(self.about.name);
        let value = text::bounded(value).map_err(refuse)?;
        let value = match self.kind {
            Kind::Periods(_) => Value::List(value.split(',').map(Node::text).collect()),
            Kind::Section(section, _) => {
                let count = section.names().count();
                let values: Vec<_> = value.splitn(count, '/').collect();
                if values.len() < count {
                    let (text, accepted) = (value.to_owned(), self.accepted_in_line());
                    return Err(refuse(Problem::Value { text, reason: "no \"/\"", accepted }));
                }
                let mut table = Table::default();
                for (name, value) in section.names().zip(values) {
                    table.insert(name, Node::text(value));
                }
                Value::Table(table)
            }
            _ => Value::Text(value.to_owned()),
        };
        Ok(Node { line: None, value })
    }
}
