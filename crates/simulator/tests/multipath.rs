//! One stream over several paths: what paper 4 claims of its schedulers, conservation, determinism.

mod common;

use common::{link, scenario, tcp};
use proptest::prelude::*;
use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
use suimon_results::RunResult;
use suimon_scenario::{Aggregate, Buffer, Flow, Link, Scenario};
use suimon_units::{Bytes, Duration, Rate};

/// Both directions between `a` and `b`.
fn path(name: &str, rate: u64, delay_ms: u64) -> [Link; 2] {
    let delay = Duration::from_millis(delay_ms);
    let there = link("a", "b", Rate::from_bps(rate), delay, Buffer::Packets(100));
    let there = Link { name: name.to_owned(), ..there };
    let back =
        Link { name: Link::other_direction(name), from: "b".to_owned(), to: "a".to_owned(), ..there.clone() };
    [there, back]
}

/// A quick and a slow path with 64 kB of send buffer each, and `reorder` kB at the receiver.
fn two_paths(scheduler: &str, quick: (u64, u64), slow: (u64, u64), reorder: u64) -> Scenario {
    let flow =
        |name: &str| Flow { via: Some(vec![name.to_owned()]), ..tcp(name, ("a", "b"), "reno", |_| {}) };
    let links = [path("quick", quick.0, quick.1), path("slow", slow.0, slow.1)].concat();
    let aggregate = Aggregate {
        name: "bulk".to_owned(),
        flows: vec!["quick".to_owned(), "slow".to_owned()],
        scheduler: AlgorithmSpec::parse(Role::Path, scheduler).expect("the tests name registered schedulers"),
        size: None,
        application_rate: None,
        send_buffer: Bytes::new(64_000),
        reorder_buffer: Bytes::new(reorder * 1_000),
        copy_stalled: true,
    };
    let flows = vec![flow("quick"), flow("slow")];
    Scenario { aggregates: vec![aggregate], ..scenario(Duration::from_secs(30), links, flows) }
}

fn run(scenario: &Scenario) -> RunResult {
    scenario.check().expect("the tests' scenarios hold together");
    suimon_simulator::run(scenario, &[])
}

fn goodput_mbps(scheduler: &str, quick: (u64, u64), slow: (u64, u64), reorder: u64) -> f64 {
    run(&two_paths(scheduler, quick, slow, reorder)).aggregates[0].goodput.as_bps_f64() / 1e6
}

/// Payload of full packets: 1448 of 1500 bytes.
const SHARE: f64 = 1_448.0 / 1_500.0;

#[test]
fn least_buffered_reaches_the_sum_and_round_robin_twice_the_slower_path() {
    let (quick, slow) = ((10_000_000, 1), (2_000_000, 1));
    let sum = goodput_mbps("least-buffered", quick, slow, 4_000);
    assert!((11.6 * SHARE..=12.0 * SHARE).contains(&sum), "{sum}");
    let twice = goodput_mbps("round-robin", quick, slow, 4_000);
    assert!((3.8 * SHARE..=4.1 * SHARE).contains(&twice), "{twice}");
}

#[test]
fn on_unequal_paths_with_little_room_look_ahead_beats_least_buffered() {
    let (quick, slow) = ((10_000_000, 1), (2_000_000, 50));
    let least = goodput_mbps("least-buffered", quick, slow, 64);
    let ahead = goodput_mbps("look-ahead", quick, slow, 64);
    assert!(ahead > 1.15 * least, "{ahead} against {least}");
    assert!(ahead > 9.9 * SHARE, "{ahead} is below the quick path alone");
}

#[test]
fn what_waits_at_the_receiver_never_exceeds_its_buffer() {
    for description in descriptions(Role::Path) {
        let result = run(&two_paths(description.name, (10_000_000, 1), (2_000_000, 50), 48));
        let aggregate = &result.aggregates[0];
        assert!(
            aggregate.reorder_max <= Bytes::new(48_000),
            "{}: {}",
            description.name,
            aggregate.reorder_max
        );
        assert!(aggregate.delivered > Bytes::ZERO, "{}", description.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    /// Over paths that lose, every byte of a transfer arrives once, whoever schedules; and two runs agree.
    #[test]
    fn a_transfer_completes_over_lossy_paths(
        seed in 0..1_000_u64,
        loss in prop_oneof![Just(0.0), Just(0.01), Just(0.05)],
        size in 1..400_000_u64,
        delays in (1..80_u64, 1..80_u64),
    ) {
        for description in descriptions(Role::Path) {
            let mut scenario = two_paths(description.name, (5_000_000, delays.0), (1_000_000, delays.1), 100);
            scenario.seed = seed;
            scenario.duration = Duration::from_secs(600);
            scenario.stop_when_complete = true;
            scenario.aggregates[0].size = Some(Bytes::new(size));
            for link in &mut scenario.links {
                link.loss = suimon_scenario::Loss::Random(suimon_units::Probability::clamped(loss));
            }
            let result = run(&scenario);
            let aggregate = &result.aggregates[0];
            prop_assert!(aggregate.completed.is_some(), "{}: {:?}", description.name, aggregate);
            prop_assert_eq!(aggregate.delivered, Bytes::new(size), "{}", description.name);
            let carried: Bytes = result.flows.iter().map(|flow| flow.delivered).sum();
            prop_assert_eq!(carried, aggregate.delivered + aggregate.duplicates, "{}", description.name);
            prop_assert_eq!(&result, &run(&scenario), "{}", description.name);
        }
    }
}
