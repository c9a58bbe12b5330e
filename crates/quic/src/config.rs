//! A sender chosen by name, for every connection of an endpoint.

use std::str::FromStr;
use std::time::Instant;

use suimon_algorithms::congestion::MarkResponse;
use suimon_algorithms::registry::{AlgorithmSpec, Role, SpecError};

use crate::sender::Sender;
use crate::watch::Watch;

/// The congestion control of an endpoint's connections: the stack's transport configuration takes it as its factory of
/// controllers.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    spec: AlgorithmSpec,
    watch: Option<Watch>,
}

/// Why a sender cannot drive QUIC.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SenderError {
    /// The text names no sender.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The algorithm is none of a sender.
    #[error("\"{name}\" is a {role}; accepted: a {}", Role::Congestion)]
    OtherRole {
        /// The algorithm.
        name: String,
        /// Its role.
        role: Role,
    },
    /// The sender counts the packets that bear a congestion mark.
    #[error(
        "\"{0}\" answers the share of packets that bear a congestion mark, which QUIC stacks do not tell; \
         accepted: a sender that answers the first mark of a round trip, such as cubic or fs-at"
    )]
    CountsMarks(String),
}

impl SenderConfig {
    /// The sender that `spec` says; a [`Registry`](suimon_algorithms::registry::Registry) gives specs of a program's own
    /// algorithms too.
    ///
    /// # Errors
    /// Where the algorithm is no congestion control, or counts congestion marks.
    pub fn new(spec: AlgorithmSpec) -> Result<Self, SenderError> {
        if spec.role() != Role::Congestion {
            return Err(SenderError::OtherRole { name: spec.label().to_owned(), role: spec.role() });
        }
        if matches!(spec.build_congestion().mark_response(), MarkResponse::ByShare(_)) {
            return Err(SenderError::CountsMarks(spec.label().to_owned()));
        }
        Ok(Self { spec, watch: None })
    }

    /// The same for one connection, whose sender the [`Watch`] shows.
    #[must_use]
    pub fn watched(&self) -> (Self, Watch) {
        let watch = Watch::default();
        (Self { watch: Some(watch.clone()), ..self.clone() }, watch)
    }

    /// The sender of a connection that begins at `now` with UDP payloads of `mtu` bytes at most.
    #[must_use]
    pub fn begin(&self, now: Instant, mtu: u16) -> Sender {
        Sender::new(self.spec.build_congestion(), now, mtu, self.watch.clone())
    }
}

/// Reads a built-in sender's `name[+name][:parameter=value]...`, such as `fs-at+cubic`.
impl FromStr for SenderConfig {
    type Err = SenderError;

    fn from_str(text: &str) -> Result<Self, SenderError> {
        Self::new(AlgorithmSpec::parse(Role::Congestion, text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_drive_quic_is_refused_with_what_can() {
        let refusal = |text: &str| text.parse::<SenderConfig>().unwrap_err().to_string();
        assert!(refusal("cubik").starts_with("unknown congestion control \"cubik\"; accepted: reno"));
        for name in ["dctcp", "prague"] {
            let text = refusal(name);
            assert!(text.contains(name) && text.contains("such as cubic or fs-at"), "{text}");
        }
        let queue = AlgorithmSpec::parse(Role::Queue, "codel").unwrap();
        let refused = SenderConfig::new(queue).unwrap_err().to_string();
        assert_eq!(refused, "\"codel\" is a queue discipline; accepted: a congestion control");
    }
}
