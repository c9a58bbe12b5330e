//! Values of options, each with the text that gave it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_scenario::{Buffer, LinkSpec, Scheme, StackProfile, algorithm, parse_buffer};
use suimon_units::{Bytes, Duration, Rate};

use crate::error::{StudyError, problem_of_link};

/// A type whose values users write as text.
pub trait FromText: Sized {
    /// Reads `text`.
    ///
    /// # Errors
    /// What is wrong, and what is accepted.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// A value and the text that gave it, which titles and command lines repeat.
#[derive(Debug, Clone)]
pub struct Parsed<T> {
    value: T,
    text: String,
}

impl<T> Deref for Parsed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Two texts may stand for one value.
impl<T: PartialEq> PartialEq for Parsed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> fmt::Display for Parsed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: FromText> FromStr for Parsed<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        T::from_text(text).map(|value| Self { value, text: text.to_owned() })
    }
}

impl<T> Serialize for Parsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, T: FromText> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<T>(PhantomData<T>);
        impl<T: FromText> Visitor<'_> for Text<T> {
            type Value = Parsed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Parsed<T>, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text(PhantomData))
    }
}

/// What a sender runs, by name: a congestion control or a receive window, with settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SenderName(String);

/// A queue discipline by name, with its settings, as in `red:max_p=0.02`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueueName(String);

/// A path scheduler by name, with its settings, as in `ecf:beta=0.5`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SchedulerName(String);

/// Names stand for what they do in a registry, which is asked when runs are made.
macro_rules! names {
    ($($name:ident of $field:literal gives $what:ty: $read:expr;)*) => {$(
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $name {
            /// As it was written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// What it stands for in `registry`.
            ///
            /// # Errors
            /// When the name, a parameter or a value is not known; the message lists what is.
            pub fn read(&self, registry: &Registry) -> Result<$what, StudyError> {
                let read: fn(&Registry, &str) -> Result<$what, String> = $read;
                read(registry, &self.0).map_err(|problem| StudyError::input($field, problem))
            }
        }
    )*};
}

names! {
    SenderName of "senders" gives Scheme: |registry, text| {
        Scheme::parse_with(registry, text).map_err(|error| error.problem().to_string())
    };
    QueueName of "queues" gives AlgorithmSpec: |registry, text| {
        algorithm(registry, Role::Queue, text).map_err(|problem| problem.to_string())
    };
    SchedulerName of "schedulers" gives AlgorithmSpec: |registry, text| {
        algorithm(registry, Role::Path, text).map_err(|problem| problem.to_string())
    };
}

/// A path scheduler that the registry of built-in algorithms has.
#[derive(Debug, Clone, PartialEq)]
pub struct PathScheduler(pub AlgorithmSpec);

/// Links apart by semicolons, as in `10Mbit 1ms; wifi 802.11b 2Mbit`.
#[derive(Debug, Clone, PartialEq)]
pub struct Paths(pub Vec<LinkSpec>);

impl Paths {
    /// The name of the path at `position`, counted from zero.
    #[must_use]
    pub fn name(position: usize) -> String {
        format!("path-{}", position + 1)
    }
}

impl FromText for Bytes {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: <Self as FromStr>::Err| error.to_string())
    }
}

impl FromText for Duration {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: <Self as FromStr>::Err| error.to_string())
    }
}

impl FromText for Rate {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: <Self as FromStr>::Err| error.to_string())
    }
}

impl FromText for Buffer {
    fn from_text(text: &str) -> Result<Self, String> {
        parse_buffer(text).map_err(|problem| problem.to_string())
    }
}

impl FromText for StackProfile {
    fn from_text(text: &str) -> Result<Self, String> {
        let accepted = || format!("unknown profile \"{text}\"; accepted: {}", Self::NAMES.join(", "));
        Self::named(text).ok_or_else(accepted)
    }
}

impl FromText for PathScheduler {
    fn from_text(text: &str) -> Result<Self, String> {
        algorithm(&Registry::standard(), Role::Path, text).map(Self).map_err(|problem| problem.to_string())
    }
}

impl FromText for LinkSpec {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error| problem_of_link(&error))
    }
}

impl FromText for Paths {
    fn from_text(text: &str) -> Result<Self, String> {
        let path = |(position, path)| {
            LinkSpec::from_text(path).map_err(|problem| format!("{}: {problem}", Self::name(position)))
        };
        text.split(';').enumerate().map(path).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_text_and_reads_the_same_from_every_form() {
        let size: Parsed<Bytes> = "1 kB".parse().unwrap();
        assert_eq!((*size, size.to_string().as_str()), (Bytes::new(1_000), "1 kB"));
        assert_eq!(serde_json::to_string(&size).unwrap(), "\"1 kB\"");
        assert_eq!(serde_json::from_str::<Parsed<Bytes>>("\"1000B\"").unwrap(), size);
        let message = serde_json::from_str::<Parsed<Bytes>>("\"10\"").unwrap_err().to_string();
        assert!(message.starts_with("\"10\" has no unit; accepted: B"), "{message}");
    }

    #[test]
    fn a_refusal_names_the_path_and_what_is_accepted() {
        let message = |paths: &str| Paths::from_text(paths).unwrap_err();
        assert!(message("10Mbit 1ms; 3MB 20ms").starts_with("path-2: \"3MB\": has an unknown unit"));
        assert!(message("10Mbit 1ms;").starts_with("path-2: missing; accepted: a rate"));
        assert!(message("hsdpa PA3 10 1ms").starts_with("path-1: hsdpa.geometry: \"10\" has no unit"));
        assert!(message("1Mbit 1ms; trace=none 1ms").starts_with("path-2: none: cannot read it"));
        let message = PathScheduler::from_text("look-ahed").unwrap_err();
        assert!(message.contains("did you mean \"look-ahead\"?"), "{message}");
    }
}
