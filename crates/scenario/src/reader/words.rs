//! Tables of the schema in words, for a link in one line.

use super::fields::Fields;
use super::keys::{HSDPA, MEDIUM};
use super::link::{medium, terminal};
use super::node::{Node, Table, Value};
use super::schema::Section;
use crate::error::ScenarioError;
use crate::text;
use suimon_model::{Hsdpa, Medium};

/// The terminal that `PROFILE GEOMETRY` at the beginning of `words` and `KEY=VALUE` anywhere in them describe;
/// these are taken out.
///
/// # Errors
/// When they do not describe one.
pub(crate) fn terminal_of_words(words: &mut Vec<String>) -> Result<Hsdpa, ScenarioError> {
    let table = table(words, &["profile", "geometry"], &HSDPA);
    terminal(&Fields::new("link", &table, &HSDPA, "hsdpa".to_owned(), None)?)
}

/// The medium that `STANDARD RATE` at the beginning of `words` and `KEY=VALUE` anywhere in them describe; these are
/// taken out.
///
/// # Errors
/// When they do not describe one.
pub(crate) fn medium_of_words(words: &mut Vec<String>) -> Result<Medium, ScenarioError> {
    let table = table(words, &["standard", "rate"], &MEDIUM);
    medium(&Fields::new("link", &table, &MEDIUM, "wifi".to_owned(), None)?, "wifi".to_owned())
}

/// The table with these `leading` values, and with all of `words` that set a key of `section`.
fn table(words: &mut Vec<String>, leading: &[&'static str], section: &Section) -> Table {
    let mut table = Table::default();
    for key in leading {
        if !words.is_empty() {
            table.insert(key, Node { line: None, value: Value::Text(words.remove(0)) });
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
