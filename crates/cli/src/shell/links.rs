//! The two ways of a link.

use suimon_algorithms::registry::AlgorithmSpec;
use suimon_scenario::{Capacity, Link, LinkSpec};
use suimon_units::Rate;

/// Both ways over a link: from the program, and to it. A cell serves the way to the program, and answers go as on a
/// wire; a way back may have a rate of its own; all else is the same
/// both ways.
pub(super) fn both(spec: &LinkSpec, queues: &[AlgorithmSpec; 2], names: [String; 2]) -> [Link; 2] {
    let [mut down, back] = spec.links(&queues[1]);
    let mut up = match (&spec.link.capacity, spec.back) {
        (Capacity::Hsdpa(_), _) => back.clone(),
        (_, Some(rate)) => Link { capacity: Capacity::Rate(rate), ..down.clone() },
        (_, None) => down.clone(),
    };
    up.queue = queues[0].clone();
    (up.delay, up.reported) = (back.delay, true);
    [up.name, down.name] = names;
    (up.from, up.to) = ("near".to_owned(), "far".to_owned());
    (down.from, down.to) = ("far".to_owned(), "near".to_owned());
    [up, down]
}

/// The other way of `link`, on which nothing waits.
pub(super) fn alone(link: &Link, name: &str, queue: &AlgorithmSpec) -> Link {
    let free = LinkSpec::new(Capacity::Rate(Rate::MAX), link.delay * 2);
    let [free, _] = free.links(queue);
    Link { name: name.to_owned(), from: link.to.clone(), to: link.from.clone(), ..free }
}
