//! What there is to choose from.

use pyo3::prelude::*;
use suimon_algorithms::registry::{Role, descriptions};
use suimon_scenario::StackProfile;

/// Name, default, accepted values and help of a parameter.
type Parameter = (&'static str, String, String, &'static str);
/// Name, role, summary, source, colour and parameters of an algorithm.
type Entry = (String, String, String, String, String, Vec<Parameter>);

/// Every algorithm.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Entry> {
    let of = |role: Role| {
        descriptions(role).into_iter().map(move |d| {
            let parameters =
                d.parameters.iter().map(|p| (p.name, p.default.to_string(), p.accepted(), p.help));
            let text = str::to_owned;
            let parameters = parameters.collect();
            (text(d.name), role.to_string(), text(d.summary), text(d.source), text(d.colour), parameters)
        })
    };
    Role::ALL.iter().copied().flat_map(of).collect()
}

/// The TCP stack profiles that there are.
#[pyfunction]
pub(crate) fn profiles() -> Vec<&'static str> {
    StackProfile::NAMES.to_vec()
}
