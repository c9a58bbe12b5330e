//! What there is to choose from.

use std::sync::RwLock;

use pyo3::prelude::*;
use suimon_algorithms::registry::{Description, Registry, Role};
use suimon_algorithms::user_defined::{AddError, Build};
use suimon_scenario::StackProfile;

/// Name, default, accepted values and help of a parameter.
type Parameter = (&'static str, String, String, &'static str);
/// Name, role, summary, source, colour and parameters of an algorithm.
type Entry = (String, String, String, String, String, Vec<Parameter>);

/// The built-in algorithms, and the classes that Python added: an interpreter has one set of them.
static REGISTRY: RwLock<Registry> = RwLock::new(Registry::standard());

/// What names stand for now.
pub(crate) fn registry() -> Registry {
    REGISTRY.read().expect("nothing panics while it is held").clone()
}

/// Adds an algorithm for all that is read from now on.
pub(crate) fn add(description: Description, build: Build) -> Result<(), AddError> {
    REGISTRY.write().expect("nothing panics while it is held").add(description, build)
}

/// Every algorithm.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Entry> {
    let registry = registry();
    let of = |role: Role| {
        registry.descriptions(role).into_iter().map(move |d| {
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
