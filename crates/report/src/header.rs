use serde::Serialize;

/// What made the results: every view starts with it, so that no result travels without its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReportHeader {
    /// Heading of the report.
    pub title: String,
    /// What was studied, in a sentence or two; may be empty.
    pub description: String,
    /// The command line that made it.
    pub command: String,
    /// Version of the program that made it.
    pub version: String,
    /// The scenario as text, so that the report alone is enough to run it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_text: Option<String>,
}
