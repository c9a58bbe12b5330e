use serde::Serialize;

/// The origin of results: every view starts with it, so that no result travels without its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReportHeader {
    /// Heading of the report.
    pub title: String,
    /// The subject of the study, in a sentence or two; may be empty.
    pub description: String,
    /// The command line that made the results.
    pub command: String,
    /// Version of the program that made the results.
    pub version: String,
    /// The scenario as text, so that the report alone is enough to run it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_text: Option<String>,
}
