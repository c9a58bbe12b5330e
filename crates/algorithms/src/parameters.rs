//! Parameters of algorithms: declared once with default, unit and range; checked before use.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use suimon_units::{Bytes, Duration, Probability, Rate};

/// One settable quantity of an algorithm.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Parameter {
    /// As written in a scenario, for example `beta`.
    pub name: &'static str,
    /// A description in one line.
    pub help: &'static str,
    /// Value where none is given; its kind is the parameter's kind.
    pub default: Value,
    /// The accepted values.
    pub range: Range,
}

/// A value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A ratio or another number without a unit.
    Number(f64),
    /// A byte count.
    Bytes(Bytes),
    /// A time.
    Duration(Duration),
    /// A data rate.
    Rate(Rate),
    /// A probability.
    Probability(Probability),
    /// `true` or `false`.
    Flag(bool),
    /// One of the words listed in the parameter's [`Range::OneOf`].
    Choice(&'static str),
}

/// The accepted values of a parameter, all of the default's kind.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    /// All of that kind.
    Any,
    /// Numbers and counts from the first to the second, both included.
    Between(f64, f64),
    /// These words.
    OneOf(&'static [&'static str]),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Bytes(value) => write!(f, "{value}"),
            Self::Duration(value) => write!(f, "{value}"),
            Self::Rate(value) => write!(f, "{value}"),
            Self::Probability(value) => write!(f, "{value}"),
            Self::Flag(value) => write!(f, "{value}"),
            Self::Choice(value) => f.write_str(value),
        }
    }
}

impl Parameter {
    /// The parameter `name`, with one line of `help`.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, default: Value, range: Range) -> Self {
        Self { name, help, default, range }
    }

    /// The accepted values, in words.
    #[must_use]
    pub fn accepted(&self) -> String {
        let kind = match self.default {
            Value::Count(_) => "a whole number",
            Value::Number(_) => "a number",
            Value::Bytes(_) => "bytes with a unit, such as 8kB",
            Value::Duration(_) => "a time with a unit, such as 10ms",
            Value::Rate(_) => "a rate with a unit, such as 2Mbit",
            Value::Probability(_) => "a probability, such as 0.1 or 10%",
            Value::Flag(_) => "true or false",
            Value::Choice(_) => "a word",
        };
        match self.range {
            Range::Any => kind.to_owned(),
            Range::Between(low, high) => format!("{kind} from {low} to {high}"),
            Range::OneOf(words) => words.join(", "),
        }
    }

    /// Reads `text` as a value of this parameter.
    ///
    /// # Errors
    /// When `text` is not of the default's kind or lies outside the range.
    pub fn parse(&self, text: &str) -> Result<Value, ParameterError> {
        let text = text.trim();
        let value = match self.default {
            Value::Count(_) => text.parse().ok().map(Value::Count),
            Value::Number(_) => text.parse().ok().filter(|v: &f64| v.is_finite()).map(Value::Number),
            Value::Bytes(_) => text.parse().ok().map(Value::Bytes),
            Value::Duration(_) => text.parse().ok().map(Value::Duration),
            Value::Rate(_) => text.parse().ok().map(Value::Rate),
            Value::Probability(_) => text.parse().ok().map(Value::Probability),
            Value::Flag(_) => text.parse().ok().map(Value::Flag),
            Value::Choice(_) => match self.range {
                Range::OneOf(words) => {
                    words.iter().find(|word| **word == text).map(|word| Value::Choice(word))
                }
                Range::Any | Range::Between(..) => None,
            },
        };
        value.filter(|value| self.in_range(value)).ok_or_else(|| ParameterError::BadValue {
            parameter: self.name,
            text: text.to_owned(),
            accepted: self.accepted(),
        })
    }

    fn in_range(&self, value: &Value) -> bool {
        let Range::Between(low, high) = self.range else { return true };
        match value {
            Value::Count(count) => (low..=high).contains(&(*count as f64)),
            Value::Number(number) => (low..=high).contains(number),
            _ => true,
        }
    }
}

/// Why a setting of an algorithm was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The algorithm has no such parameter.
    #[error("{algorithm} has no parameter \"{parameter}\"; accepted: {accepted}")]
    Unknown {
        /// The algorithm's name.
        algorithm: String,
        /// As the user wrote it.
        parameter: String,
        /// The parameters there are.
        accepted: String,
    },
    /// The text is not a value that the parameter accepts.
    #[error("{parameter} = \"{text}\" is not accepted; accepted: {accepted}")]
    BadValue {
        /// The parameter's name.
        parameter: &'static str,
        /// As the user wrote it.
        text: String,
        /// The accepted values.
        accepted: String,
    },
}

/// The values of all parameters of one algorithm: defaults overlaid with the settings of the user.
#[derive(Debug, Clone)]
pub struct Arguments {
    values: Vec<(&'static str, Value)>,
}

impl Arguments {
    /// The defaults of `parameters`.
    #[must_use]
    pub fn defaults(parameters: &[Parameter]) -> Self {
        Self { values: parameters.iter().map(|p| (p.name, p.default)).collect() }
    }

    /// These names and values.
    pub fn of(values: impl Iterator<Item = (&'static str, Value)>) -> Self {
        Self { values: values.collect() }
    }

    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        if let Some(slot) = self.values.iter_mut().find(|(known, _)| *known == name) {
            slot.1 = value;
        }
    }

    /// Every name and value, in the order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.values.iter().copied()
    }

    fn get(&self, name: &str) -> Value {
        self.values
            .iter()
            .find_map(|(known, value)| (*known == name).then_some(*value))
            .expect("an algorithm reads only parameters that it declares; the contract tests build each one")
    }
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $variant:ident -> $type:ty;)*) => {
        /// Typed reading. Each panics where the algorithm did not declare such a parameter, which the
        /// contract tests rule out for everything in the registry.
        impl Arguments {
            $($(#[$doc])* #[must_use] pub fn $name(&self, name: &str) -> $type {
                match self.get(name) {
                    Value::$variant(value) => value,
                    other => panic!("parameter {name} was declared as {other:?}"),
                }
            })*
        }
    };
}

getters! {
    /// A whole number.
    count: Count -> u64;
    /// A number without a unit.
    number: Number -> f64;
    /// A byte count.
    bytes: Bytes -> Bytes;
    /// A time.
    duration: Duration -> Duration;
    /// A rate.
    rate: Rate -> Rate;
    /// A probability.
    probability: Probability -> Probability;
    /// `true` or `false`.
    flag: Flag -> bool;
    /// One of the declared words.
    choice: Choice -> &'static str;
}

#[cfg(test)]
mod tests {
    use super::*;

    const BETA: Parameter = Parameter {
        name: "beta",
        help: "window after a loss",
        default: Value::Number(0.7),
        range: Range::Between(0.1, 0.9),
    };
    const MODE: Parameter = Parameter {
        name: "mode",
        help: "which reading",
        default: Value::Choice("printed"),
        range: Range::OneOf(&["printed", "fit"]),
    };

    #[test]
    fn values_outside_the_range_are_refused_with_the_range() {
        assert_eq!(BETA.parse("0.1"), Ok(Value::Number(0.1)));
        assert_eq!(BETA.parse("0.9"), Ok(Value::Number(0.9)));
        let message = BETA.parse("0.91").unwrap_err().to_string();
        assert_eq!(message, "beta = \"0.91\" is not accepted; accepted: a number from 0.1 to 0.9");
        assert!(BETA.parse("NaN").is_err());
    }

    #[test]
    fn a_choice_takes_only_its_words() {
        assert_eq!(MODE.parse("fit"), Ok(Value::Choice("fit")));
        assert!(MODE.parse("fitted").unwrap_err().to_string().ends_with("accepted: printed, fit"));
    }

    #[test]
    fn what_is_set_replaces_the_default() {
        let mut arguments = Arguments::defaults(&[BETA, MODE]);
        arguments.set("mode", Value::Choice("fit"));
        assert_eq!(arguments.choice("mode"), "fit");
        assert_eq!(arguments.number("beta"), 0.7);
    }
}
