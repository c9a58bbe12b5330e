//! Scenarios in a few words.

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_scenario::{
    Buffer, Capacity, Flow, Impairments, Link, Record, Scenario, StackProfile, Start, TcpFlow, Traffic,
};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// A link called `from-to` with a drop-tail queue and nothing wrong with it.
pub(crate) fn link(from: &str, to: &str, rate: Rate, delay: Duration, buffer: Buffer) -> Link {
    Link {
        name: format!("{from}-{to}"),
        from: from.to_owned(),
        to: to.to_owned(),
        capacity: Capacity::Rate(rate),
        delay,
        overhead: Bytes::ZERO,
        buffer,
        queue: AlgorithmSpec::parse(Role::Queue, "droptail").expect("drop tail is registered"),
        impairments: Impairments::default(),
        estimator: None,
        reported: true,
    }
}

/// A connection that starts at once and never ends, changed by `change`.
pub(crate) fn tcp(name: &str, (from, to): (&str, &str), cc: &str, change: impl FnOnce(&mut TcpFlow)) -> Flow {
    let parse = |role, text| AlgorithmSpec::parse(role, text).expect("the tests name registered algorithms");
    let mut traffic = TcpFlow {
        cc: parse(Role::Congestion, cc),
        receiver: parse(Role::Receiver, "fixed"),
        profile: StackProfile::linux_6(),
        window: Bytes::new(10_000_000),
        size: None,
        application_rate: None,
        on_off: None,
        gateway: None,
    };
    change(&mut traffic);
    Flow {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        via: None,
        start: Start::At(Instant::ZERO),
        stop: None,
        extra_delay: (Duration::ZERO, Duration::ZERO),
        traffic: Traffic::Tcp(Box::new(traffic)),
    }
}

/// All of it for so long, without warm-up and series.
pub(crate) fn scenario(duration: Duration, links: Vec<Link>, flows: Vec<Flow>) -> Scenario {
    let scenario = Scenario {
        name: "test".to_owned(),
        description: String::new(),
        seed: 1,
        duration,
        stop_when_complete: false,
        links,
        flows,
        aggregates: Vec::new(),
        record: Record::default(),
    };
    scenario.check().expect("the tests build valid scenarios");
    scenario
}
