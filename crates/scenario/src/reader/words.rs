//! Keys in words, for a link in one line.

use std::path::Path;

use suimon_algorithms::registry::Registry;
use suimon_model::{Hsdpa, Link, Medium};

use super::fields::Fields;
use super::files::Files;
use super::keys::{HSDPA, LINK, MEDIUM};
use super::node::{Node, Table, Value};
use super::radio;
use super::schema::{AnyKey, Key, Kind, Section, Word};
use super::shared::Shared;
use crate::error::{Problem, ScenarioError};
use crate::text;

/// A link in one line names no algorithm.
static STANDARD: Registry = Registry::standard();

/// The terminal that `PROFILE GEOMETRY` at the beginning of `words` and `KEY=VALUE` anywhere in them describe, with
/// its table; these are taken out.
///
/// # Errors
/// When they do not describe one.
pub(crate) fn terminal(words: &mut Vec<String>) -> Result<(Table, Hsdpa), ScenarioError> {
    let table = table(words, &["profile", "geometry"], &HSDPA);
    let mut terminal = radio::any_terminal();
    let fields = Fields::new(SOURCE, &STANDARD, &table, &HSDPA, "hsdpa".to_owned(), None)?;
    HSDPA.enter(&mut terminal, &fields, &Shared::none(&here()))?;
    Ok((table, terminal))
}

/// The medium that `STANDARD RATE` at the beginning of `words` and `KEY=VALUE` anywhere in them describe, with its
/// table; these are taken out.
///
/// # Errors
/// When they do not describe one.
pub(crate) fn medium(words: &mut Vec<String>) -> Result<(Table, Medium), ScenarioError> {
    let mut table = table(words, &["standard", "rate"], &MEDIUM);
    table.insert("name", Node::text(MEDIUM_NAME));
    let mut medium = radio::any_medium();
    let fields = Fields::new(SOURCE, &STANDARD, &table, &MEDIUM, MEDIUM_NAME.to_owned(), None)?;
    MEDIUM.enter(&mut medium, &fields, &Shared::none(&here()))?;
    Ok((table, medium))
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

/// What the medium of a link in one line is called.
pub(crate) const MEDIUM_NAME: &str = "wifi";

/// What messages call a link in one line.
const SOURCE: &str = "link";

/// Files beside nothing.
fn here() -> Files {
    Files::new(Path::new(""))
}

/// The keys of a link that one line can say, in the order of the rows.
pub(crate) fn keys() -> impl Iterator<Item = (&'static Key<Link>, Word)> {
    LINK.0.iter().filter_map(|key| Some((key, key.about.word?)))
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
