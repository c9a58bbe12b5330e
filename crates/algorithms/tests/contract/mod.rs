//! The contract that every algorithm in the registry must keep. A new registry line is
//! covered without a change here.

mod congestion;
mod endpoint;
mod estimator;
mod queue;
mod receiver;
mod registry;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_units::Duration;

/// The same cases on every run: a failure here is to be repeatable by anyone.
fn config() -> Config {
    Config { cases: 200, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() }
}

fn spec(role: Role, name: &str) -> AlgorithmSpec {
    AlgorithmSpec::parse(role, name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        2 => Just(Duration::from_micros(1)),
        8 => (1..500_u64).prop_map(Duration::from_millis),
        1 => Just(Duration::from_secs(10 * 24 * 3_600)),
    ]
}
