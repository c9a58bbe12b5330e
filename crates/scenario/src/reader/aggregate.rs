//! An `[[aggregate]]` to several flows that carry one stream.

use suimon_algorithms::registry::Role;

use super::fields::Fields;
use crate::error::ScenarioError;
use suimon_model::Aggregate;

pub(super) fn read(fields: &Fields<'_>) -> Result<Aggregate, ScenarioError> {
    Ok(Aggregate {
        name: fields.field("name")?.name()?,
        flows: fields.field("flows")?.names()?,
        scheduler: fields.field("scheduler")?.algorithm(Role::Path)?,
        size: fields.optional("size").map(|field| field.bytes()).transpose()?,
        application_rate: fields.optional("application_rate").map(|field| field.rate()).transpose()?,
        send_buffer: fields.field("send_buffer")?.bytes()?,
        reorder_buffer: fields.field("reorder_buffer")?.bytes()?,
        copy_stalled: fields.field("copy_stalled")?.flag()?,
        reconnect: fields.field("reconnect")?.time_or_off()?,
    })
}
