//! What can be said of a key: what it takes, what it defaults to, what it means.

use suimon_algorithms::registry::Role;

use suimon_model::StackProfile;

/// A table of keys.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) keys: &'static [Key],
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) preset: Preset,
    /// Meaning, in one line.
    pub(crate) help: &'static str,
    /// Keys of the same table that cannot stand beside this one.
    pub(crate) excludes: &'static [&'static str],
}

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Name,
    TwoNames,
    /// One name or several.
    Names,
    Count {
        least: u64,
        most: u64,
    },
    Flag,
    Time,
    /// A time, or the word `off`.
    TimeOrOff,
    /// A time, or two between which it is drawn.
    Start,
    /// Periods of time, or one.
    Periods,
    Rate,
    /// A rate, or the word `unlimited`.
    LinkRate,
    Bytes,
    Buffer,
    Probability,
    Decibels,
    /// Multipath and speed of a radio terminal.
    Fading,
    File,
    Profile,
    Algorithm(Role),
    Word(&'static [&'static str]),
    /// Key paths that a matrix sets.
    Paths,
    List,
    /// A table.
    Section(&'static Section),
    /// A probability, or a table.
    Loss(&'static Section),
    /// Any number of tables, each with a name.
    Sections(&'static Section),
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

impl Section {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

impl Key {
    pub(super) const fn new(name: &'static str, kind: Kind, preset: Preset, help: &'static str) -> Self {
        Self { name, kind, preset, help, excludes: &[] }
    }

    pub(super) const fn excluding(mut self, keys: &'static [&'static str]) -> Self {
        self.excludes = keys;
        self
    }

    /// The table inside, where there can be one.
    pub(crate) fn inner(&self) -> Option<&'static Section> {
        match self.kind {
            Kind::Section(section) | Kind::Loss(section) | Kind::Sections(section) => Some(section),
            _ => None,
        }
    }
}

impl Kind {
    /// What is accepted, in words.
    pub(crate) fn accepted(self) -> String {
        match self {
            Self::Text => "text in quotes".to_owned(),
            Self::Name => "a name of letters, digits, \"-\" and \"_\"".to_owned(),
            Self::TwoNames => "two node names, such as [\"r1\", \"r2\"]".to_owned(),
            Self::Names => "names in order, such as [\"access\", \"bottleneck\"], or one".to_owned(),
            Self::Count { least, most } => format!("a whole number from {least} to {most}"),
            Self::Flag => "true, false".to_owned(),
            Self::Time => "a time with a unit (ns, us, ms, s, min, h), such as \"90ms\"".to_owned(),
            Self::TimeOrOff => "a time with a unit, such as \"100ms\", or \"off\"".to_owned(),
            Self::Start => "a time with a unit, such as \"5s\", or two, such as [\"0s\", \"5s\"]".to_owned(),
            Self::Periods => crate::text::OUTAGES.to_owned(),
            Self::Rate => "a rate with a unit (bit, kbit, Mbit, Gbit), such as \"2Mbit\"".to_owned(),
            Self::LinkRate => {
                "a rate with a unit (bit, kbit, Mbit, Gbit), such as \"2Mbit\", or \"unlimited\"".to_owned()
            }
            Self::Bytes => "bytes with a unit (B, kB, MB, GB, KiB, MiB, GiB), such as \"96kB\"".to_owned(),
            Self::Buffer => crate::text::BUFFER.to_owned(),
            Self::Probability => "a probability, such as 0.001 or \"0.1%\"".to_owned(),
            Self::Decibels => "decibels with their unit, such as \"10dB\" or \"-5dB\"".to_owned(),
            Self::Fading => suimon_radio::hsdpa::ACCEPTED_PROFILES.to_owned(),
            Self::File => "the path of a file, in quotes".to_owned(),
            Self::Profile => StackProfile::NAMES.join(", "),
            Self::Algorithm(role) => format!(
                "a {role}, such as \"{0}\", with settings as in \"name:parameter=value\" or {{ name = \"{0}\" }}",
                match role {
                    Role::Congestion => "reno",
                    Role::Receiver => "fixed",
                    Role::Queue => "droptail",
                    Role::Estimator => "bursts",
                    Role::Path => "least-buffered",
                }
            ),
            Self::Word(words) => words.join(", "),
            Self::Paths => {
                "a key path or a list of them, such as \"link.bottleneck.rate\", \"flow.*.cc\", \"duration\""
                    .to_owned()
            }
            Self::List => "a list of values".to_owned(),
            Self::Section(section) => format!("a table of {}", join(section)),
            Self::Loss(section) => {
                format!("a probability, such as 0.001 or \"0.1%\", or a table of {}", join(section))
            }
            Self::Sections(section) => format!("tables of {}", join(section)),
        }
    }
}

fn join(section: &Section) -> String {
    section.names().collect::<Vec<_>>().join(", ")
}
