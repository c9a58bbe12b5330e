//! TOML as a tree that knows its lines and may be edited, which a matrix does.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Problem, ScenarioError};

/// A value and the line where it stands; values from the command line stand in none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: Option<usize>,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: Option<usize>,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.entries.retain(|entry| entry.key != key);
    }

    /// Puts `node` at `key`, in place of what may be there.
    pub(crate) fn insert(&mut self, key: &str, node: Node) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.node = node,
            None => self.entries.push(Entry { key: key.to_owned(), line: node.line, node }),
        }
    }

    /// The table at `key`, made where nothing is there; `None` where something else is.
    pub(crate) fn table_at(&mut self, key: &str) -> Option<&mut Self> {
        if self.get(key).is_none() {
            self.insert(key, Node { line: None, value: Value::Table(Self::default()) });
        }
        self.entries.iter_mut().find(|entry| entry.key == key).and_then(|entry| entry.node.table_mut())
    }
}

impl Node {
    pub(crate) fn table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.value { Some(table) } else { None }
    }

    /// Text that stands in no file.
    pub(crate) fn text(text: &str) -> Self {
        Self { line: None, value: Value::Text(text.to_owned()) }
    }

    /// A table that stands in no file.
    pub(crate) fn of_table(table: Table) -> Self {
        Self { line: None, value: Value::Table(table) }
    }

    /// The value in TOML, on one line.
    pub(crate) fn to_toml(&self) -> String {
        let joined = |items: Vec<String>| items.join(", ");
        match &self.value {
            Value::Text(text) => toml::Value::from(text.as_str()).to_string(),
            Value::List(items) => format!("[{}]", joined(items.iter().map(Self::to_toml).collect())),
            Value::Table(table) => {
                let pair = |entry: &Entry| format!("{} = {}", entry.key, entry.node.to_toml());
                format!("{{ {} }}", joined(table.entries.iter().map(pair).collect()))
            }
            Value::Integer(_) | Value::Float(_) | Value::Flag(_) | Value::Date(_) => self.plain(),
        }
    }

    /// The kind in words, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Text(_) => "text",
            Value::Integer(_) | Value::Float(_) => "a bare number",
            Value::Flag(_) => "true or false",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value as a setting of an algorithm or as a label: without quotes.
    pub(crate) fn plain(&self) -> String {
        match &self.value {
            Value::Text(text) | Value::Date(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(items) => items.iter().map(Self::plain).collect::<Vec<_>>().join(" to "),
            Value::Table(table) => {
                let pair = |entry: &Entry| match entry.key.as_str() {
                    // An algorithm reads as it does in its one-line form.
                    "name" => entry.node.plain(),
                    key => format!("{key}={}", entry.node.plain()),
                };
                table.entries.iter().map(pair).collect::<Vec<_>>().join(":")
            }
        }
    }

    /// Reads a whole document.
    pub(crate) fn document(text: &str, source_name: &str) -> Result<Table, ScenarioError> {
        let lines = Lines::new(text);
        let root = DeTable::parse(text).map_err(|error| syntax(&error, &lines, source_name))?;
        lines.table(root.get_ref(), source_name)
    }

    /// Reads a value given beside a document: a TOML value where it is one, and else plain text.
    pub(crate) fn argument(text: &str) -> Self {
        let lines = Lines::new(text);
        let value = DeValue::parse(text).ok().and_then(|value| lines.node(&value, "").ok());
        let value = value.map_or_else(|| Value::Text(text.to_owned()), |node| node.value);
        Self { line: None, value }
    }
}

fn syntax(error: &toml::de::Error, lines: &Lines, source_name: &str) -> ScenarioError {
    let line = error.span().map(|span| lines.number(span.start));
    let message = error.message().trim();
    let message = if message.is_empty() { "not TOML" } else { message };
    ScenarioError::new(source_name, Problem::Syntax { message: message.to_owned() }).at_line(line)
}

struct Lines {
    /// Where each line but the first starts.
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        Self { starts: text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1).collect() }
    }

    fn number(&self, offset: usize) -> usize {
        1 + self.starts.partition_point(|start| *start <= offset)
    }

    fn table(&self, table: &DeTable<'_>, source_name: &str) -> Result<Table, ScenarioError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, _)| -> Result<_, ScenarioError> {
            Ok(Entry {
                key: AsRef::<str>::as_ref(key.get_ref()).to_owned(),
                line: Some(self.number(key.span().start)),
                node: self.node(value, source_name)?,
            })
        };
        Ok(Table { entries: entries.into_iter().map(entry).collect::<Result<_, _>>()? })
    }

    fn node(&self, value: &Spanned<DeValue<'_>>, source_name: &str) -> Result<Node, ScenarioError> {
        let line = Some(self.number(value.span().start));
        let refuse = |text: String| {
            let accepted = "numbers of at most 18 digits".to_owned();
            ScenarioError::new(source_name, Problem::Value { text, reason: "is too large", accepted })
                .at_line(line)
        };
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(Value::Integer)
                .map_err(|_| refuse(number.to_string()))?,
            DeValue::Float(number) => {
                number.as_str().parse().map(Value::Float).map_err(|_| refuse(number.to_string()))?
            }
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => {
                Value::List(items.iter().map(|item| self.node(item, source_name)).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(self.table(table, source_name)?),
        };
        Ok(Node { line, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_their_lines() {
        let table = Node::document("b = 1\n\na = \"x\"\n[t]\nc = true\n", "x").unwrap();
        let keys: Vec<_> = table.entries.iter().map(|e| (e.key.as_str(), e.line)).collect();
        assert_eq!(keys, [("b", Some(1)), ("a", Some(3)), ("t", Some(4))]);
        assert_eq!(table.get("t").unwrap().table().unwrap().get("c").unwrap().line, Some(5));
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let error = Node::document("a = 1\nb = = 2\n", "x.toml").unwrap_err();
        assert_eq!((error.source_name(), error.line()), ("x.toml", Some(2)));
        assert!(Node::document("a = 1\na = 2\n", "x").unwrap_err().to_string().contains("duplicate"));
        assert!(
            Node::document("a = 99999999999999999999\n", "x").unwrap_err().to_string().contains("too large")
        );
    }

    #[test]
    fn an_argument_that_is_no_toml_is_text() {
        assert_eq!(Node::argument("2Mbit").value, Value::Text("2Mbit".to_owned()));
        assert_eq!(Node::argument("true").value, Value::Flag(true));
        assert_eq!(Node::argument("7").value, Value::Integer(7));
        assert_eq!(Node::argument("fs-at+cubic").plain(), "fs-at+cubic");
        assert_eq!(Node::argument("{ name = \"vegas\", alpha = 3 }").plain(), "vegas:alpha=3");
    }
}
