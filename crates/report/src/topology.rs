//! The network of a study, as a page draws it.

use serde::Serialize;

/// Nodes, the links between them, and who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Names of hosts and routers, or of several that are alike.
    pub nodes: Vec<String>,
    /// Links, both directions as one.
    pub links: Vec<TopologyLink>,
    /// Flows by where they begin and end.
    pub flows: Vec<TopologyFlows>,
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct TopologyLink {
    /// Position of one node.
    pub from: usize,
    /// Position of the other.
    pub to: usize,
    /// What the link is: a line for both directions, or one for each.
    pub text: Vec<String>,
}

/// Flows with the same ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopologyFlows {
    /// Position of the node where they begin.
    pub from: usize,
    /// Position of the node where they end.
    pub to: usize,
    /// Their names, or how many there are.
    pub names: String,
}
