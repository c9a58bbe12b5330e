//! Delays that flows have beside those of the links.

use std::borrow::Cow;

use suimon_model::{Link, Scenario};
use suimon_units::Duration;

/// The same scenario, in which every flow with an extra delay has drawn it and comes from a node of its own
/// behind a link that does nothing but delay.
pub(crate) fn drawn(scenario: &Scenario) -> Cow<'_, Scenario> {
    if scenario.flows.iter().all(|flow| flow.extra_delay.1 == Duration::ZERO) {
        return Cow::Borrowed(scenario);
    }
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        if flow.extra_delay.1 > Duration::ZERO {
            let delay = flow.drawn_extra_delay(scenario.seed);
            // No name of a scenario has a blank in it.
            let name = format!("{} delay", flow.name);
            let node = std::mem::replace(&mut flow.from, name.clone());
            let back = Link::other_direction(&name);
            scenario.links.push(Link::delaying(name.clone(), &name, &node, delay));
            scenario.links.push(Link::delaying(back, &node, &name, delay));
            if let Some(via) = &mut flow.via {
                via.insert(0, name);
            }
        }
    }
    Cow::Owned(scenario)
}
