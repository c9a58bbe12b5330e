//! What can be said of a key: what it takes and where that goes, what it defaults to, what it means.

use std::sync::Arc;

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_model::{Buffer, Capacity, Cell, Link, Loss, Medium, Outage, StackProfile, Start};
use suimon_radio::hsdpa;
use suimon_units::{Bytes, Decibels, Duration, Probability, Rate};

use super::fields::Fields;
use super::files::Format;
use super::shared::Shared;
use crate::error::{Problem, ScenarioError};
use crate::scheme::Scheme;

/// What a matrix may set, in words.
pub(crate) const PATHS: &str =
    "a key path or a list of them, such as \"link.bottleneck.rate\", \"flow.*.cc\", \"duration\"";

/// A table of keys that together describe a `T`.
pub(crate) struct Keys<T: 'static>(pub(crate) &'static [Key<T>]);

/// One key, and how its value enters a `T`.
pub(crate) struct Key<T: 'static> {
    pub(crate) about: About,
    pub(crate) kind: Kind<T>,
}

/// What can be said of a key, whatever it takes.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) preset: Preset,
    /// Meaning, in one line.
    pub(crate) help: &'static str,
    /// Keys of the same table that cannot stand beside this one, which may be listed with them.
    excludes: &'static [&'static str],
    /// How a link in one line says it.
    pub(crate) word: Option<Word>,
}

/// How a link in one line says a key.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    /// By its value alone, such as these.
    Bare(&'static str),
    /// As `NAME=VALUE`. The keys of a table are said one after the other, between slashes.
    Named {
        name: &'static str,
        /// What stands for what.
        form: &'static str,
        /// A value.
        example: &'static str,
    },
    /// In place of the rate: this name, the values of the leading keys of its table, and `KEY=VALUE` anywhere.
    Radio {
        name: &'static str,
        leading: &'static [&'static str],
        keys: &'static dyn Section,
        put: PutTable<Link>,
    },
}

/// Where the values of a table go.
type PutTable<T> = fn(&mut T, &Fields<'_>, &Shared<'_>) -> Result<(), ScenarioError>;

/// Where a value goes that reads as a `V`.
type Put<T, V> = fn(&mut T, V);

/// A word, and what it does.
type Meaning<T> = (&'static str, fn(&mut T));

/// What a key takes, and where that goes.
pub(crate) enum Kind<T: 'static> {
    Text(fn(&mut T, &str) -> Result<(), Problem>),
    Name(Put<T, String>),
    TwoNames(Put<T, (String, String)>),
    /// One name or several.
    Names(Put<T, Vec<String>>),
    Count {
        least: u64,
        most: u64,
        put: Put<T, u64>,
    },
    Flag(Put<T, bool>),
    Time(Put<T, Duration>),
    /// A time, or the word `off`.
    TimeOrOff(Put<T, Option<Duration>>),
    /// A time, or two between which it is drawn.
    Start(Put<T, Start>),
    /// Periods of time, or one.
    Periods(Put<T, Vec<Outage>>),
    Rate(Put<T, Rate>),
    /// A rate, or the word `unlimited`.
    LinkRate(Put<T, Rate>),
    Bytes(Put<T, Bytes>),
    Buffer(Put<T, Buffer>),
    Probability(Put<T, Probability>),
    Decibels(Put<T, Decibels>),
    /// Multipath and speed of a radio terminal.
    Fading(Put<T, hsdpa::Profile>),
    File(Format, Put<T, Capacity>),
    Profile(Put<T, StackProfile>),
    Algorithm(Role, Put<T, AlgorithmSpec>),
    /// A congestion control, or one with a receive window.
    Scheme(Put<T, Scheme>),
    /// The name of a `[[cell]]`.
    Cell(Put<T, Arc<Cell>>),
    /// The name of a `[[medium]]`.
    Medium(Put<T, Arc<Medium>>),
    /// One of these, and what each does.
    Word(&'static [Meaning<T>]),
    /// Key paths that a matrix sets, which reads them by itself.
    Paths,
    /// Values, which a matrix reads by itself.
    List,
    /// A table.
    Section(&'static dyn Section, PutTable<T>),
    /// A table that whoever has this one reads by itself.
    Apart(&'static dyn Section),
    /// A probability, or a table.
    Loss(&'static Keys<Loss>, Put<T, Loss>),
    /// Any number of tables, each with a name, which the document reads by itself.
    Sections(&'static dyn Section),
}

/// What holds where a key is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Preset {
    /// It may not be left out; an example as TOML.
    Required(&'static str),
    /// Nothing; what that means, and an example as TOML.
    Unset {
        means: &'static str,
        example: &'static str,
    },
    Text(&'static str),
    Flag(bool),
    Count(u64),
}

/// What follows below a key.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Nothing.
    Value,
    /// Nothing; a whole number within these limits.
    Count { least: u64, most: u64 },
    /// Nothing, or the settings of an algorithm.
    Algorithm(Role),
    /// The keys of a table.
    Table(&'static dyn Section),
    /// The same, or nothing.
    ValueOrTable(&'static dyn Section),
    /// Tables by name.
    Tables(&'static dyn Section),
}

/// A table of keys, whatever it describes.
pub(crate) trait Section: Sync {
    /// The key of this position; none after the last.
    fn at(&self, position: usize) -> Option<&'static dyn AnyKey>;
}

/// A key, whatever it describes.
pub(crate) trait AnyKey: Sync {
    fn about(&self) -> &About;
    fn form(&self) -> Form;
    /// What is accepted, in words.
    fn accepted(&self) -> String;
    /// What a link in one line accepts, in words.
    fn accepted_in_line(&self) -> String;
}

impl<T: 'static> Section for Keys<T> {
    fn at(&self, position: usize) -> Option<&'static dyn AnyKey> {
        self.0.get(position).map(|key| -> &dyn AnyKey { key })
    }
}

impl dyn Section + '_ {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static dyn AnyKey> {
        (0..).map_while(|position| self.at(position))
    }

    pub(crate) fn key(&self, name: &str) -> Option<&'static dyn AnyKey> {
        self.keys().find(|key| key.about().name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys().map(|key| key.about().name)
    }
}

impl dyn AnyKey + '_ {
    /// The other keys of the same table that cannot stand beside this one.
    pub(crate) fn excludes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let About { name, excludes, .. } = *self.about();
        excludes.iter().copied().filter(move |other| *other != name)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.about().name
    }

    /// The table inside, where there can be one.
    pub(crate) fn inner(&self) -> Option<&'static dyn Section> {
        match self.form() {
            Form::Table(section) | Form::ValueOrTable(section) | Form::Tables(section) => Some(section),
            Form::Value | Form::Count { .. } | Form::Algorithm(_) => None,
        }
    }
}

impl<T> Key<T> {
    pub(super) const fn new(name: &'static str, kind: Kind<T>, preset: Preset, help: &'static str) -> Self {
        Self { about: About { name, preset, help, excludes: &[], word: None }, kind }
    }

    pub(super) const fn excluding(mut self, keys: &'static [&'static str]) -> Self {
        self.about.excludes = keys;
        self
    }

    pub(super) const fn in_line(mut self, word: Word) -> Self {
        self.about.word = Some(word);
        self
    }
}

impl<T> AnyKey for Key<T> {
    fn about(&self) -> &About {
        &self.about
    }

    fn form(&self) -> Form {
        match self.kind {
            Kind::Count { least, most, .. } => Form::Count { least, most },
            Kind::Algorithm(role, _) => Form::Algorithm(role),
            Kind::Scheme(_) => Form::Algorithm(Role::Congestion),
            Kind::Section(section, _) | Kind::Apart(section) => Form::Table(section),
            Kind::Loss(section, _) => Form::ValueOrTable(section),
            Kind::Sections(section) => Form::Tables(section),
            _ => Form::Value,
        }
    }

    fn accepted(&self) -> String {
        self.kind.accepted()
    }

    fn accepted_in_line(&self) -> String {
        match (&self.kind, self.about.word) {
            (Kind::Probability(_) | Kind::Loss(..), _) => "a probability, such as 1%".to_owned(),
            (Kind::Time(_), _) => "a time, such as 10ms".to_owned(),
            (Kind::Periods(_), _) => "periods, such as 10s..15s,40s..".to_owned(),
            (_, Some(Word::Named { name, form, example })) => {
                format!("{name}={form}, such as {name}={example}")
            }
            _ => self.accepted(),
        }
    }
}

impl<T> Kind<T> {
    /// What is accepted, in words.
    fn accepted(&self) -> String {
        match self {
            Self::Text(_) => "text in quotes".to_owned(),
            Self::Name(_) | Self::Cell(_) | Self::Medium(_) => {
                "a name of letters, digits, \"-\" and \"_\"".to_owned()
            }
            Self::TwoNames(_) => "two node names, such as [\"r1\", \"r2\"]".to_owned(),
            Self::Names(_) => "names in order, such as [\"access\", \"bottleneck\"], or one".to_owned(),
            Self::Count { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Flag(_) => "true, false".to_owned(),
            Self::Time(_) => "a time with a unit (ns, us, ms, s, min, h), such as \"90ms\"".to_owned(),
            Self::TimeOrOff(_) => "a time with a unit, such as \"100ms\", or \"off\"".to_owned(),
            Self::Start(_) => {
                "a time with a unit, such as \"5s\", or two, such as [\"0s\", \"5s\"]".to_owned()
            }
            Self::Periods(_) => crate::text::OUTAGES.to_owned(),
            Self::Rate(_) => "a rate with a unit (bit, kbit, Mbit, Gbit), such as \"2Mbit\"".to_owned(),
            Self::LinkRate(_) => {
                "a rate with a unit (bit, kbit, Mbit, Gbit), such as \"2Mbit\", or \"unlimited\"".to_owned()
            }
            Self::Bytes(_) => "bytes with a unit (B, kB, MB, GB, KiB, MiB, GiB), such as \"96kB\"".to_owned(),
            Self::Buffer(_) => crate::text::BUFFER.to_owned(),
            Self::Probability(_) => "a probability, such as 0.001 or \"0.1%\"".to_owned(),
            Self::Decibels(_) => "decibels with their unit, such as \"10dB\" or \"-5dB\"".to_owned(),
            Self::Fading(_) => hsdpa::ACCEPTED_PROFILES.to_owned(),
            Self::File(..) => "the path of a file, in quotes".to_owned(),
            Self::Profile(_) => StackProfile::NAMES.join(", "),
            Self::Algorithm(role, _) => accepted_algorithm(*role),
            Self::Scheme(_) => accepted_algorithm(Role::Congestion),
            Self::Word(words) => words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "),
            Self::Paths => PATHS.to_owned(),
            Self::List => "a list of values".to_owned(),
            Self::Section(section, _) | Self::Apart(section) => format!("a table of {}", join(*section)),
            Self::Loss(section, _) => {
                format!("a probability, such as 0.001 or \"0.1%\", or a table of {}", join(*section))
            }
            Self::Sections(section) => format!("tables of {}", join(*section)),
        }
    }
}

fn join(section: &dyn Section) -> String {
    section.names().collect::<Vec<_>>().join(", ")
}

fn accepted_algorithm(role: Role) -> String {
    format!(
        "a {role}, such as \"{0}\", with settings as in \"name:parameter=value\" or {{ name = \"{0}\" }}",
        match role {
            Role::Congestion => "reno",
            Role::Receiver => "fixed",
            Role::Queue => "droptail",
            Role::Estimator => "bursts",
            Role::Path => "least-buffered",
            Role::Shaper => "autorate",
        }
    )
}
