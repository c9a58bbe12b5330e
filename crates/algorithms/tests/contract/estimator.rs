//! Estimators of round-trip times.

use proptest::prelude::*;
use suimon_algorithms::estimate::{RttSample, Seen};
use suimon_algorithms::queue::FlowId;
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
use suimon_units::{Bytes, Duration, Instant};

use super::{config, spec};

/// Time since the packet before, flow, size, whether it opens a connection.
type Step = (Duration, u32, u64, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few values of the time between packets, so that patterns come again.
    let after =
        prop_oneof![Just(0), Just(1), Just(30), 0..50_u64, 0..100_000_u64].prop_map(Duration::from_millis);
    let burst = (after, 0..4_u32, 40..1_500_u64, prop::bool::weighted(0.05));
    (prop::collection::vec(burst, 1..60), 1..20_usize).prop_map(|(burst, times)| burst.repeat(times))
}

fn estimates(spec: &AlgorithmSpec, steps: &[Step]) -> Vec<RttSample> {
    let mut random = RandomStream::new(1, "estimator");
    let mut estimator = spec.build_estimator();
    let mut now = Instant::ZERO + Duration::from_secs(5);
    let mut found = Vec::new();
    for &(after, flow, size, opens_connection) in steps {
        now += after;
        let seen = Seen { now, flow: FlowId(flow), size: Bytes::new(size), opens_connection };
        if let Some(sample) = estimator.on_packet(&seen, &mut random) {
            assert_eq!((sample.flow, sample.at), (seen.flow, seen.now), "{spec}");
            found.push(sample);
        }
        assert!(estimator.memory() > Bytes::ZERO);
    }
    found
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_estimate_is_positive_and_no_longer_than_its_flow_was_seen(steps in steps()) {
        for description in descriptions(Role::Estimator) {
            let spec = spec(Role::Estimator, description.name);
            let found = estimates(&spec, &steps);
            for sample in &found {
                let mut now = Instant::ZERO + Duration::from_secs(5);
                let first = steps.iter().find_map(|&(after, flow, ..)| {
                    now += after;
                    (FlowId(flow) == sample.flow).then_some(now)
                });
                let seen_for = sample.at.saturating_since(first.expect("an estimate is of a flow that was seen"));
                prop_assert!(sample.rtt > Duration::ZERO && sample.rtt <= seen_for, "{}: {:?}", spec, sample);
            }
            prop_assert_eq!(found, estimates(&spec, &steps), "{}: same in, same out", spec);
        }
    }
}
