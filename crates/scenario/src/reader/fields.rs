//! Typed reading of one table by its section of the schema.

use std::borrow::Cow;
use std::str::FromStr;

use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_radio::hsdpa;
use suimon_units::{Bytes, Decibels, Duration, Instant, Probability, Rate};

use super::node::{Node, Table, Value};
use super::schema::{AnyKey, Form, Preset, Section};
use crate::error::{Problem, ScenarioError, closest};
use crate::scheme::{self, Scheme};
use crate::text;
use suimon_model::{Buffer, Outage, StackProfile, Start};

/// A table whose keys are all known.
pub(crate) struct Fields<'a> {
    source_name: &'a str,
    /// What names of algorithms stand for.
    registry: &'a Registry,
    table: &'a Table,
    section: &'static dyn Section,
    /// Key path of the table, empty for the document.
    path: String,
    line: Option<usize>,
    /// The keys that those which are there exclude.
    excluded: Vec<&'static str>,
}

/// A value, the key that it belongs to, and where both are.
pub(super) struct Field<'a> {
    fields: &'a Fields<'a>,
    key: &'static dyn AnyKey,
    node: Cow<'a, Node>,
}

impl<'a> Fields<'a> {
    /// The table `table` at `path`, which stands at `line`.
    ///
    /// # Errors
    /// When a key is unknown or excludes another that is there too.
    pub(super) fn new(
        source_name: &'a str,
        registry: &'a Registry,
        table: &'a Table,
        section: &'static dyn Section,
        path: String,
        line: Option<usize>,
    ) -> Result<Self, ScenarioError> {
        let mut fields = Self { source_name, registry, table, section, path, line, excluded: Vec::new() };
        for entry in &table.entries {
            let refuse = |problem| {
                let key = fields.path_of(text::bounded(&entry.key).unwrap_or("..."));
                Err(ScenarioError::new(source_name, problem).at_line(entry.line).at_key(key))
            };
            let Some(key) = section.key(&entry.key) else {
                return refuse(unknown_key(section, &entry.key));
            };
            if let Some(other) = key.excludes().find(|other| table.get(other).is_some()) {
                return refuse(Problem::Exclusive { other: other.to_owned() });
            }
            fields.excluded.extend(key.excludes());
        }
        Ok(fields)
    }

    /// What messages call the document.
    pub(super) fn source_name(&self) -> &str {
        self.source_name
    }

    /// What names of algorithms stand for.
    pub(super) fn registry(&self) -> &'a Registry {
        self.registry
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of `key`: as written, or else its default.
    ///
    /// # Errors
    /// When it was left out but must not be.
    pub(super) fn field(&'a self, key: &str) -> Result<Field<'a>, ScenarioError> {
        let key = self.key(key);
        match (self.written(key), self.default(key)) {
            (Some(field), _) | (None, Some(field)) => Ok(field),
            (None, None) => Err(self.missing(key)),
        }
    }

    /// The value of `key` as written.
    pub(super) fn optional(&'a self, key: &str) -> Option<Field<'a>> {
        self.written(self.key(key))
    }

    /// What holds for `key`: as written, or else its default; nothing where it has none, or where another key that is
    /// there excludes it.
    ///
    /// # Errors
    /// When it was left out but must not be.
    pub(super) fn holding(&'a self, key: &'static dyn AnyKey) -> Result<Option<Field<'a>>, ScenarioError> {
        let written = self.written(key);
        if written.is_some() || self.excluded.contains(&key.name()) {
            return Ok(written);
        }
        match key.about().preset {
            Preset::Unset { .. } => Ok(None),
            Preset::Required(_) => Err(self.missing(key)),
            _ => Ok(self.default(key)),
        }
    }

    fn written(&'a self, key: &'static dyn AnyKey) -> Option<Field<'a>> {
        let node = self.table.get(key.name())?;
        Some(Field { fields: self, key, node: Cow::Borrowed(node) })
    }

    fn default(&'a self, key: &'static dyn AnyKey) -> Option<Field<'a>> {
        let value = match key.about().preset {
            Preset::Text(text) => Value::Text(text.to_owned()),
            Preset::Flag(flag) => Value::Flag(flag),
            Preset::Count(count) => Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)),
            Preset::Required(_) | Preset::Unset { .. } => return None,
        };
        Some(Field { fields: self, key, node: Cow::Owned(Node { line: self.line, value }) })
    }

    /// The refusal of a table that does not say `key`.
    pub(super) fn lacks(&self, key: &str) -> ScenarioError {
        self.missing(self.key(key))
    }

    fn missing(&self, key: &'static dyn AnyKey) -> ScenarioError {
        ScenarioError::new(self.source_name, Problem::Missing { accepted: key.accepted() })
            .at_line(self.line)
            .at_key(self.path_of(key.name()))
    }

    /// The table at `key`, or one without keys.
    ///
    /// # Errors
    /// When something else was written there, or its keys are not right.
    pub(super) fn table_or_empty(&'a self, key: &str) -> Result<Self, ScenarioError> {
        static EMPTY: Table = Table { entries: Vec::new() };
        let (path, inner) = (self.path_of(key), self.key(key).inner());
        let section = inner.expect("only keys that take a table are read as one");
        match self.table.get(key) {
            None => Fields::new(self.source_name, self.registry, &EMPTY, section, path, self.line),
            Some(node) => match node.table() {
                Some(table) => Fields::new(self.source_name, self.registry, table, section, path, node.line),
                None => Err(self.field(key)?.wrong_kind()),
            },
        }
    }

    /// The tables at `key`, each called by its name where it has one that can stand in a key path.
    ///
    /// # Errors
    /// When something else was written there, or the keys of one are not right.
    pub(super) fn list(&'a self, key: &str) -> Result<Vec<Self>, ScenarioError> {
        let Some(field) = self.optional(key) else { return Ok(Vec::new()) };
        let (Value::List(items), Some(section)) =
            (&self.table.get(key).expect("it is there").value, field.key.inner())
        else {
            return Err(field.wrong_kind());
        };
        let read = |(position, node): (usize, &'a Node)| {
            let table = node.table().ok_or_else(|| field.wrong_kind())?;
            let name = match table.get("name").map(|name| &name.value) {
                Some(Value::Text(name)) if text::is_name(name) && name.len() <= text::MAX_LENGTH => {
                    name.clone()
                }
                _ => (position + 1).to_string(),
            };
            Fields::new(self.source_name, self.registry, table, section, format!("{key}.{name}"), node.line)
        };
        items.iter().enumerate().map(read).collect()
    }

    fn key(&self, name: &str) -> &'static dyn AnyKey {
        self.section
            .key(name)
            .expect("the reader asks only for keys of the schema, as the defaults test shows")
    }
}

/// The refusal of `key` in `section`.
pub(super) fn unknown_key(section: &dyn Section, key: &str) -> Problem {
    Problem::UnknownKey {
        suggestion: closest(key, section.names()),
        accepted: section.names().collect::<Vec<_>>().join(", "),
    }
}

impl<'a> Field<'a> {
    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        ScenarioError::new(self.fields.source_name, problem)
            .at_line(self.node.line)
            .at_key(self.fields.path_of(self.key.name()))
    }

    pub(super) fn wrong_kind(&self) -> ScenarioError {
        self.error(Problem::Kind { found: self.node.kind(), accepted: self.key.accepted() })
    }

    fn refuse(&self, text: impl Into<String>, reason: &'static str) -> ScenarioError {
        self.error(Problem::Value { text: text.into(), reason, accepted: self.key.accepted() })
    }

    pub(super) fn line(&self) -> Option<usize> {
        self.node.line
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Text of any length.
    pub(super) fn text(&self) -> Result<&str, ScenarioError> {
        if let Value::Text(text) = &self.node.value { Ok(text) } else { Err(self.wrong_kind()) }
    }

    /// Text that stands for a value. A bare number is passed on as text, for the unit's own message.
    fn word(&self) -> Result<Cow<'_, str>, ScenarioError> {
        match &self.node.value {
            Value::Text(text) => {
                text::bounded(text).map(Cow::Borrowed).map_err(|problem| self.error(problem))
            }
            Value::Integer(_) | Value::Float(_) => Ok(Cow::Owned(self.node.plain())),
            _ => Err(self.wrong_kind()),
        }
    }

    fn quantity<T: FromStr<Err = suimon_units::ParseUnitError>>(&self) -> Result<T, ScenarioError> {
        self.word()?.parse().map_err(|error| self.error(Problem::Unit(error)))
    }

    pub(super) fn time(&self) -> Result<Duration, ScenarioError> {
        self.quantity()
    }

    fn instant(&self) -> Result<Instant, ScenarioError> {
        Ok(Instant::ZERO + self.time()?)
    }

    pub(super) fn bytes(&self) -> Result<Bytes, ScenarioError> {
        self.quantity()
    }

    pub(super) fn probability(&self) -> Result<Probability, ScenarioError> {
        self.quantity()
    }

    /// A probability that is no bare `1`, which may be meant as 1 % or as all.
    pub(super) fn share(&self) -> Result<Probability, ScenarioError> {
        let share = self.probability()?;
        let word = self.word()?;
        if share == Probability::ONE && !word.trim().ends_with('%') {
            return Err(self.error(Problem::Value {
                text: word.into_owned(),
                reason: "may be meant as 1 % or as all",
                accepted: "1%, 100%, or a share below 1 such as 0.01".to_owned(),
            }));
        }
        Ok(share)
    }

    pub(super) fn decibels(&self) -> Result<Decibels, ScenarioError> {
        self.quantity()
    }

    pub(super) fn fading(&self) -> Result<hsdpa::Profile, ScenarioError> {
        let word = self.word()?;
        word.parse().map_err(|_| self.refuse(word, "is not a profile"))
    }

    pub(super) fn rate(&self) -> Result<Rate, ScenarioError> {
        text::rate(&self.word()?).map_err(|problem| self.error(problem))
    }

    pub(super) fn link_rate(&self) -> Result<Rate, ScenarioError> {
        text::link_rate(&self.word()?).map_err(|problem| self.error(problem))
    }

    pub(super) fn buffer(&self) -> Result<Buffer, ScenarioError> {
        text::buffer(&self.word()?).map_err(|problem| self.error(problem))
    }

    pub(super) fn time_or_off(&self) -> Result<Option<Duration>, ScenarioError> {
        if self.word()? == "off" { Ok(None) } else { self.time().map(Some) }
    }

    pub(super) fn start(&self) -> Result<Start, ScenarioError> {
        let Value::List(items) = &self.node.value else { return Ok(Start::At(self.instant()?)) };
        let [low, high] = items.as_slice() else {
            return Err(self.refuse(self.cut(), "is not one time or two"));
        };
        let read = |node: &Node| {
            Field { fields: self.fields, key: self.key, node: Cow::Owned(node.clone()) }.instant()
        };
        Ok(Start::Between(read(low)?, read(high)?))
    }

    /// Periods such as `10s..15s` and `40s..`, whose end may be left out.
    pub(super) fn outages(&self) -> Result<Vec<Outage>, ScenarioError> {
        let Value::List(items) = &self.node.value else { return Ok(vec![self.outage()?]) };
        let read = |node: &Node| {
            Field { fields: self.fields, key: self.key, node: Cow::Owned(node.clone()) }.outage()
        };
        items.iter().map(read).collect()
    }

    fn outage(&self) -> Result<Outage, ScenarioError> {
        text::outage(&self.word()?).map_err(|problem| self.error(problem))
    }

    pub(super) fn flag(&self) -> Result<bool, ScenarioError> {
        if let Value::Flag(flag) = self.node.value { Ok(flag) } else { Err(self.wrong_kind()) }
    }

    /// A whole number within the limits of the key.
    pub(super) fn count(&self) -> Result<u64, ScenarioError> {
        let Value::Integer(number) = self.node.value else { return Err(self.wrong_kind()) };
        let Form::Count { least, most } = self.key.form() else { return Err(self.wrong_kind()) };
        u64::try_from(number)
            .ok()
            .filter(|count| (least..=most).contains(count))
            .ok_or_else(|| self.refuse(number.to_string(), "is out of range"))
    }

    pub(super) fn name(&self) -> Result<String, ScenarioError> {
        let Value::Text(name) = &self.node.value else { return Err(self.wrong_kind()) };
        let name = text::bounded(name).map_err(|problem| self.error(problem))?;
        if text::is_name(name) { Ok(name.to_owned()) } else { Err(self.refuse(name, "is not a name")) }
    }

    pub(super) fn two_names(&self) -> Result<(String, String), ScenarioError> {
        let Value::List(items) = &self.node.value else { return Err(self.wrong_kind()) };
        let [from, to] = items.as_slice() else {
            return Err(self.refuse(self.cut(), "does not name two nodes"));
        };
        let read =
            |node: &Node| Field { fields: self.fields, key: self.key, node: Cow::Owned(node.clone()) }.name();
        Ok((read(from)?, read(to)?))
    }

    pub(super) fn names(&self) -> Result<Vec<String>, ScenarioError> {
        let Value::List(items) = &self.node.value else { return Ok(vec![self.name()?]) };
        if items.is_empty() {
            return Err(self.refuse("[]", "names nothing"));
        }
        let read =
            |node: &Node| Field { fields: self.fields, key: self.key, node: Cow::Owned(node.clone()) }.name();
        items.iter().map(read).collect()
    }

    /// What the word stands for among `meanings`.
    pub(super) fn choice<T: Copy>(&self, meanings: &[(&str, T)]) -> Result<T, ScenarioError> {
        let word = self.word()?;
        let found = meanings.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning);
        found.ok_or_else(|| self.refuse(word, "is not accepted"))
    }

    pub(super) fn profile(&self) -> Result<StackProfile, ScenarioError> {
        let name = self.text()?;
        StackProfile::named(name).ok_or_else(|| {
            self.error(Problem::UnknownName {
                what: "profile",
                name: name.chars().take(text::MAX_LENGTH).collect(),
                suggestion: closest(name, StackProfile::NAMES.iter().copied()),
                accepted: self.key.accepted(),
            })
        })
    }

    /// The table that it is.
    pub(super) fn table(&self) -> Result<Fields<'_>, ScenarioError> {
        let (Some(table), Some(section)) = (self.node.table(), self.key.inner()) else {
            return Err(self.wrong_kind());
        };
        let path = self.fields.path_of(self.key.name());
        Fields::new(self.fields.source_name, self.fields.registry, table, section, path, self.node.line)
    }

    pub(super) fn is_table(&self) -> bool {
        self.node.table().is_some()
    }

    /// The one-line form of an algorithm: as written, or from a table with its name and settings.
    fn algorithm_text(&self) -> Result<String, ScenarioError> {
        match &self.node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Table(table) => {
                if table.get("name").is_none() {
                    let accepted = self.key.accepted();
                    return Err(self.error(Problem::Missing { accepted: format!("name, with {accepted}") }));
                }
                let mut ordered = table.entries.clone();
                ordered.sort_by_key(|entry| entry.key != "name");
                Ok(Node { line: None, value: Value::Table(Table { entries: ordered }) }.plain())
            }
            _ => Err(self.wrong_kind()),
        }
    }

    pub(super) fn algorithm(&self, role: Role) -> Result<AlgorithmSpec, ScenarioError> {
        scheme::algorithm(self.fields.registry, role, &self.algorithm_text()?)
            .map_err(|problem| self.error(problem))
    }

    pub(super) fn scheme(&self) -> Result<Scheme, ScenarioError> {
        Scheme::read(self.fields.registry, &self.algorithm_text()?).map_err(|problem| self.error(problem))
    }

    fn cut(&self) -> String {
        self.node.plain().chars().take(40).collect()
    }
}
