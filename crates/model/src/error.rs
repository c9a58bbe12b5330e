//! Why a scenario cannot be.

/// A refusal: what of which thing, and why.
///
/// Prints as `wired: link.bottleneck.buffer: "9 B" holds no packet; accepted: ...`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{subject}: {key}: {problem}")]
pub struct Invalid {
    /// The scenario, by its name, or `link` where a capacity was checked alone.
    pub subject: String,
    /// The key path as in a scenario file, such as `link.bottleneck.rate`.
    pub key: String,
    /// What is wrong there.
    #[source]
    pub problem: Problem,
}

/// What is wrong, without where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// A name stands for nothing: a node, a link, a flow.
    #[error("no {what} is called \"{name}\"; accepted: {}", first(.known))]
    UnknownName {
        /// What the name should stand for.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// There is none of something that is needed.
    #[error("missing; accepted: {accepted}")]
    Missing {
        /// What is accepted there.
        accepted: String,
    },
    /// A value cannot be.
    #[error("\"{text}\" {reason}; accepted: {accepted}")]
    Value {
        /// The value.
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
    /// No links lead from one node to another.
    #[error(
        "no links lead from \"{from}\" to \"{to}\"; accepted: nodes that links connect in both directions"
    )]
    NoRoute {
        /// Where the data starts.
        from: String,
        /// Where it should arrive.
        to: String,
    },
    /// There would be more of something than is sensible.
    #[error("makes {what}; accepted: at most {limit}")]
    TooMany {
        /// Of what.
        what: String,
        /// The limit.
        limit: u64,
    },
}

impl Problem {
    /// So many of the names that there are does a message show; a topology may have thousands of nodes.
    pub const MAX_NAMES: usize = 20;
}

fn first(known: &[String]) -> String {
    known[..known.len().min(Problem::MAX_NAMES)].join(", ")
}
