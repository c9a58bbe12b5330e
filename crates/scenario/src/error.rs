//! Why a scenario, a trace or a shorthand was refused.

use std::fmt;

use suimon_algorithms::registry::SpecError;
use suimon_model::Invalid;
use suimon_units::ParseUnitError;

/// A refusal: where, and what is wrong there.
///
/// Prints as `wired.toml:12: link.bottleneck.rate: "96" has no unit; accepted: ...`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct ScenarioError {
    source_name: String,
    line: Option<usize>,
    key: Option<String>,
    // Boxed, since results that carry this error are returned all the way up.
    #[source]
    problem: Box<Problem>,
}

impl ScenarioError {
    pub(crate) fn new(source_name: &str, problem: Problem) -> Self {
        Self { source_name: source_name.to_owned(), line: None, key: None, problem: Box::new(problem) }
    }

    pub(crate) fn at_line(mut self, line: Option<usize>) -> Self {
        self.line = line;
        self
    }

    pub(crate) fn at_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The file, or whatever else the text came from.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The line, counted from one, where it is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The key path, such as `link.bottleneck.rate`, where there is one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source_name)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        match &*self.problem {
            // The file is named already.
            Problem::Unreadable { path, message } if *path == self.source_name => {
                write!(f, ": cannot read it: {message}")
            }
            problem => write!(f, ": {problem}"),
        }
    }
}

/// What is wrong, without where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The text is not TOML or not UTF-8.
    #[error("{message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// Nothing has that key.
    #[error("unknown key{}; accepted: {accepted}", did_you_mean(.suggestion))]
    UnknownKey {
        /// The closest accepted key, where one is close.
        suggestion: Option<String>,
        /// The keys there are.
        accepted: String,
    },
    /// A name stands for nothing: a profile, a node, a link, a flow.
    #[error("no {what} is called \"{name}\"{}; accepted: {accepted}", did_you_mean(.suggestion))]
    UnknownName {
        /// What the name should stand for.
        what: &'static str,
        /// As the user wrote it.
        name: String,
        /// The closest accepted name, where one is close.
        suggestion: Option<String>,
        /// The names there are.
        accepted: String,
    },
    /// Something that has no default was left out.
    #[error("missing; accepted: {accepted}")]
    Missing {
        /// What is accepted there.
        accepted: String,
    },
    /// The value is of another kind.
    #[error("is {found}; accepted: {accepted}")]
    Kind {
        /// The kind that was found.
        found: &'static str,
        /// What is accepted there.
        accepted: String,
    },
    /// A quantity does not read.
    #[error(transparent)]
    Unit(#[from] ParseUnitError),
    /// An algorithm or one of its parameters is not known.
    #[error("{error}{}", did_you_mean(.suggestion))]
    Algorithm {
        /// What the registry says; boxed, since refusals are returned all the way up.
        error: Box<SpecError>,
        /// The closest name, where one is close.
        suggestion: Option<String>,
    },
    /// A value reads, but cannot be.
    #[error("\"{text}\" {reason}; accepted: {accepted}")]
    Value {
        /// The value as the user wrote it, or as it reads.
        text: String,
        /// Why not.
        reason: &'static str,
        /// What is accepted there.
        accepted: String,
    },
    /// Two things have one name.
    #[error("a second {what} is called \"{name}\"; accepted: names that differ")]
    Duplicate {
        /// What both are.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// Two keys that exclude each other.
    #[error("excludes \"{other}\", which is there too; accepted: one of the two")]
    Exclusive {
        /// The other key.
        other: String,
    },
    /// The parts read, but make no scenario together.
    #[error(transparent)]
    Model(suimon_model::Problem),
    /// A file cannot be read.
    #[error("cannot read {path}: {message}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        message: String,
    },
    /// There would be more of something than is sensible.
    #[error("makes {what}; accepted: at most {limit}")]
    TooMany {
        /// How many of what, or just of what where the number does not matter.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// A word of a shorthand was not understood.
    #[error("\"{word}\": {reason}; accepted: {accepted}")]
    Word {
        /// The word.
        word: String,
        /// Why not.
        reason: String,
        /// What is accepted there.
        accepted: String,
    },
}

impl From<Invalid> for ScenarioError {
    fn from(error: Invalid) -> Self {
        Self::new(&error.subject, error.problem.into()).at_key(error.key)
    }
}

impl From<suimon_model::Problem> for Problem {
    fn from(problem: suimon_model::Problem) -> Self {
        use suimon_model::Problem as Invalid;
        match problem {
            Invalid::UnknownName { what, name, mut known } => {
                let suggestion = closest(&name, known.iter().map(String::as_str));
                known.truncate(Invalid::MAX_NAMES);
                Self::UnknownName { what, name, suggestion, accepted: known.join(", ") }
            }
            problem => Self::Model(problem),
        }
    }
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or_else(String::new, |name| format!(" (did you mean \"{name}\"?)"))
}

/// The one of `names` that `word` is most likely a misspelling of.
pub(crate) fn closest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // Nobody misspells a short key into a long text, and the distance costs the product of the lengths.
    if word.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let wanted = plain(word);
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, &plain(name)), name))
        .filter(|(distance, name)| *distance <= (name.len().min(word.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_what() {
        let problem =
            Problem::UnknownKey { suggestion: Some("rate".to_owned()), accepted: "rate, delay".to_owned() };
        let error = ScenarioError::new("a.toml", problem).at_line(Some(3)).at_key("link.b.rat");
        assert_eq!(
            error.to_string(),
            "a.toml:3: link.b.rat: unknown key (did you mean \"rate\"?); accepted: rate, delay"
        );
    }

    #[test]
    fn only_near_misses_are_suggested() {
        let names = ["rate", "delay", "delayed_ack", "buffer"];
        assert_eq!(closest("delayed-ack", names), Some("delayed_ack".to_owned()));
        assert_eq!(closest("bufer", names), Some("buffer".to_owned()));
        assert_eq!(closest("colour", names), None);
        assert_eq!(closest(&"rate".repeat(1_000_000), names), None);
    }
}
