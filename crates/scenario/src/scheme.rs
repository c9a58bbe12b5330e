//! What a flow runs at both ends, chosen by one text.

use std::fmt;

use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role, SpecError};
use suimon_model::{DEFAULT_RECEIVER, RECEIVERS_SENDER, scheme_label};

use crate::error::{Problem, ScenarioError, closest};
use crate::text;

/// The congestion control where none is given.
pub(crate) const DEFAULT_CC: &str = "cubic";

/// Congestion control at the sender and window advertisement at the receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheme {
    /// Congestion control at the sender.
    pub cc: AlgorithmSpec,
    /// Window advertisement at the receiver.
    pub receiver: AlgorithmSpec,
}

impl Scheme {
    /// Reads what the key `cc` of a flow takes: a congestion control with its settings
    /// (`fs-at+cubic:mode=fit`); a receive window after it (`cubic/drs`); or a receive window other than
    /// `fixed` alone, which then works under Reno (`drs`). Names stand for built-in algorithms.
    ///
    /// # Errors
    /// When an algorithm, a parameter or a value is not known; the message lists what is.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(&Registry::standard(), text)
    }

    /// The same, where names stand for what they do in `registry`.
    ///
    /// # Errors
    /// As [`Scheme::parse`].
    pub fn parse_with(registry: &Registry, text: &str) -> Result<Self, ScenarioError> {
        Self::read(registry, text).map_err(|problem| ScenarioError::new("scheme", problem))
    }

    pub(crate) fn read(registry: &Registry, text: &str) -> Result<Self, Problem> {
        let text = text::bounded(text)?.trim();
        let name = registry.registered(Role::Receiver, text.split(':').next().unwrap_or_default().trim());
        let receives =
            name != DEFAULT_RECEIVER && registry.descriptions(Role::Receiver).iter().any(|d| d.name == name);
        let (cc, receiver) = match text.split_once('/') {
            Some(both) => both,
            None if receives => (RECEIVERS_SENDER, text),
            None => (text, DEFAULT_RECEIVER),
        };
        let cc = algorithm(registry, Role::Congestion, cc)
            .map_err(|problem| also_receivers(registry, problem, text))?;
        Ok(Self { cc, receiver: algorithm(registry, Role::Receiver, receiver)? })
    }

    /// The text that parses back to this, without what is default.
    #[must_use]
    pub fn label(&self) -> String {
        scheme_label(&self.cc, &self.receiver)
    }

    /// Whether the receive window was chosen too, and not left to its default.
    pub(crate) fn chooses_receiver(&self) -> bool {
        self.receiver.name() != DEFAULT_RECEIVER
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

/// Where a whole scheme is an unknown name, a receive window would have been accepted too.
fn also_receivers(registry: &Registry, problem: Problem, text: &str) -> Problem {
    let Problem::Algorithm { error, suggestion } = problem else { return problem };
    match *error {
        SpecError::UnknownName { role, name, accepted } if !text.contains(['/', '+']) => {
            let receivers =
                registry.descriptions(Role::Receiver).into_iter().filter(|d| d.name != DEFAULT_RECEIVER);
            let receivers: Vec<_> = receivers.map(|d| d.name).collect();
            let suggestion = suggestion.or_else(|| closest(&name, receivers.iter().copied()));
            let accepted = format!("{accepted}, {}", receivers.join(", "));
            let error = Box::new(SpecError::UnknownName { role, name, accepted });
            Problem::Algorithm { error, suggestion }
        }
        other => Problem::Algorithm { error: Box::new(other), suggestion },
    }
}

/// Reads an algorithm; an unknown name gets the closest known one as a hint.
///
/// # Errors
/// When the name, a parameter or a value is not known; the message lists what is.
pub fn algorithm(registry: &Registry, role: Role, text: &str) -> Result<AlgorithmSpec, Problem> {
    registry.parse(role, text::bounded(text)?).map_err(|error| {
        let suggestion = match &error {
            SpecError::UnknownName { name, .. } => {
                closest(name, registry.descriptions(role).iter().map(|d| d.name))
            }
            _ => None,
        };
        Problem::Algorithm { error: Box::new(error), suggestion }
    })
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::registry::descriptions;

    use super::*;

    #[test]
    fn a_congestion_control_advertises_a_fixed_window() {
        let scheme = Scheme::parse("reno").unwrap();
        assert_eq!(
            (scheme.cc.label(), scheme.receiver.label(), scheme.label().as_str()),
            ("reno", "fixed", "reno")
        );
    }

    #[test]
    fn an_unknown_scheme_is_told_of_receive_windows_too() {
        let message = Scheme::parse("dsr").unwrap_err().to_string();
        assert!(message.contains("abe, drs"), "{message}");
        assert!(message.contains("did you mean \"drs\""), "{message}");
        let message = Scheme::parse("dsr/drs").unwrap_err().to_string();
        assert!(!message.contains("abe, drs"), "{message}");
    }

    #[test]
    fn a_receive_window_works_under_reno() {
        for description in descriptions(Role::Receiver).iter().filter(|d| d.name != "fixed") {
            let scheme = Scheme::parse(description.name).unwrap();
            assert_eq!((scheme.cc.label(), scheme.label().as_str()), ("reno", description.name));
            assert_eq!(scheme.receiver.name(), description.name);
        }
        assert!(Scheme::parse("fixed").is_err());
    }

    #[test]
    fn a_receive_window_may_follow_the_congestion_control() {
        assert_eq!(Scheme::parse("cubic/fixed"), Scheme::parse("cubic"));
        assert!(Scheme::parse("cubic/cubic").unwrap_err().to_string().contains("unknown receive window"));
        for description in descriptions(Role::Receiver).iter().filter(|d| d.name != "fixed") {
            let text = format!("cubic/{}", description.name);
            assert_eq!(Scheme::parse(&text).unwrap().label(), text);
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_a_hint() {
        let message = Scheme::parse("renno").unwrap_err().to_string();
        assert!(
            message.contains("accepted: reno") && message.contains("did you mean \"reno\"?"),
            "{message}"
        );
        assert!(Scheme::parse(&"reno+".repeat(100_000)).is_err());
        assert!(Scheme::parse("").is_err());
    }

    #[test]
    fn the_default_is_registered() {
        assert!(Scheme::parse(DEFAULT_CC).is_ok());
    }
}
