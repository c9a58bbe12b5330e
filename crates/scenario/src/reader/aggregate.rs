//! An `[[aggregate]]` to several flows that carry one stream.

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_model::Aggregate;
use suimon_units::Bytes;

use super::fields::Fields;
use super::keys::AGGREGATE;
use super::shared::Shared;
use crate::error::ScenarioError;
use crate::text::DEFAULT_SCHEDULER;

pub(super) fn read(fields: &Fields<'_>, shared: &Shared<'_>) -> Result<Aggregate, ScenarioError> {
    let scheduler =
        AlgorithmSpec::parse(Role::Path, DEFAULT_SCHEDULER).expect("the default reads, as a test shows");
    let mut aggregate = Aggregate {
        name: String::new(),
        flows: Vec::new(),
        scheduler,
        size: None,
        application_rate: None,
        send_buffer: Bytes::ZERO,
        reorder_buffer: Bytes::ZERO,
        copy_stalled: true,
        reconnect: None,
    };
    AGGREGATE.enter(&mut aggregate, fields, shared)?;
    Ok(aggregate)
}
