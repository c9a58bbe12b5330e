//! Delays that flows have beside those of the links.

use std::borrow::Cow;

use suimon_algorithms::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_scenario::{Buffer, Capacity, Link, Loss, Scenario};
use suimon_units::{Bytes, Duration, Rate};

/// The same scenario, in which every flow with an extra delay has drawn it and comes from a node of its own
/// behind a link that does nothing but delay.
pub(crate) fn drawn(scenario: &Scenario) -> Cow<'_, Scenario> {
    if scenario.flows.iter().all(|flow| flow.extra_delay.1 == Duration::ZERO) {
        return Cow::Borrowed(scenario);
    }
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        let (least, most) = flow.extra_delay;
        if most > Duration::ZERO {
            let mut random = RandomStream::new(scenario.seed, &format!("flow {} delay", flow.name));
            let delay = random.duration_between(least, most);
            // No name of a scenario has a blank in it.
            let name = format!("{} delay", flow.name);
            let node = std::mem::replace(&mut flow.from, name.clone());
            let back = Link::other_direction(&name);
            scenario.links.push(link(name.clone(), &name, &node, delay));
            scenario.links.push(link(back, &node, &name, delay));
            if let Some(via) = &mut flow.via {
                via.insert(0, name);
            }
        }
    }
    Cow::Owned(scenario)
}

fn link(name: String, from: &str, to: &str, delay: Duration) -> Link {
    Link {
        name,
        from: from.to_owned(),
        to: to.to_owned(),
        capacity: Capacity::Rate(Rate::MAX),
        delay,
        overhead: Bytes::ZERO,
        buffer: Buffer::Unbounded,
        queue: AlgorithmSpec::parse(Role::Queue, "droptail").expect("drop tail is registered"),
        loss: Loss::None,
        jitter: Duration::ZERO,
        reordering: None,
        outages: Vec::new(),
        estimator: None,
        reported: false,
    }
}
