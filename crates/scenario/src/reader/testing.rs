//! Small documents for the readers' tests.

use super::Document;
use crate::error::ScenarioError;
use suimon_model::Run;
use suimon_model::Scenario;

/// Five lines, so that what follows starts at line six.
pub(super) const LINK: &str = r#"[[link]]
name = "bottleneck"
between = ["sender", "receiver"]
rate = "1Mbit"
delay = "90ms""#;

pub(super) const FLOW: &str = r#"[[flow]]
name = "main"
from = "sender"
to = "receiver"
cc = "reno""#;

/// The runs of a document of these parts.
pub(super) fn runs(parts: &[&str]) -> Result<Vec<Run>, ScenarioError> {
    Document::parse(&parts.join("\n"), "test.toml")?.runs()
}

/// The only scenario of a document of these parts.
pub(super) fn one(parts: &[&str]) -> Scenario {
    let runs = runs(parts).unwrap();
    assert_eq!(runs.len(), 1);
    runs.into_iter().next().unwrap().scenario
}

/// Why a document of these parts is refused.
pub(super) fn message(parts: &[&str]) -> String {
    runs(parts).unwrap_err().to_string()
}
