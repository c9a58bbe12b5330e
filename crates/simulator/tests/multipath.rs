//! One stream over several paths: paper 4's claims about its schedulers, conservation, determinism.

use crate::common::{link, scenario, tcp};
use proptest::prelude::*;
use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
use suimon_results::RunResult;
use suimon_scenario::{Aggregate, Buffer, Flow, Link, Outage, Scenario, Start};
use suimon_units::{Bytes, Duration, Instant, Rate};

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
        reconnect: Some(Duration::from_secs(3)),
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
fn flows_of_a_stream_that_draw_their_start_start_together() {
    let mut scenario = two_paths("least-buffered", (10_000_000, 1), (2_000_000, 1), 4_000);
    for flow in &mut scenario.flows {
        flow.start = Start::Between(at(1), at(6));
    }
    let starts = |scenario: &Scenario| run(scenario).flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    let together = starts(&scenario);
    assert_eq!(together[0], together[1]);
    scenario.aggregates.clear();
    let alone = starts(&scenario);
    assert_eq!(alone[0], together[0], "the first one's draw counts");
    assert_ne!(alone[0], alone[1]);
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

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// `scenario`, whose links with this name carry nothing at these times, both ways.
fn out(mut scenario: Scenario, name: &str, outages: &[Outage]) -> Scenario {
    let links = scenario.links.iter_mut();
    for link in links.filter(|link| link.name == name || link.name == Link::other_direction(name)) {
        link.impairments.outages = outages.to_vec();
    }
    scenario
}

/// 30 MB over 10 Mbit/s, 10 ms and 5 Mbit/s, 20 ms: 17 s over both.
fn transfer(scheduler: &str) -> Scenario {
    let mut scenario = two_paths(scheduler, (10_000_000, 10), (5_000_000, 20), 4_000);
    scenario.duration = Duration::from_secs(200);
    scenario.stop_when_complete = true;
    scenario.aggregates[0].size = Some(Bytes::new(30_000_000));
    scenario
}

/// Linux's timeout is at least the round-trip time and 200 ms.
fn two_timeouts(run: &RunResult) -> Duration {
    let longest = run.flows.iter().filter_map(|flow| flow.rtt_min).max().expect("paths were measured");
    (longest + Duration::from_millis(200)) * 2
}

#[test]
fn a_path_that_dies_costs_no_byte_and_two_timeouts_at_most() {
    for name in ["quick", "slow"] {
        for description in descriptions(Role::Path) {
            let dies = [Outage { from: at(5), to: Instant::MAX }];
            let result = run(&out(transfer(description.name), name, &dies));
            let stream = &result.aggregates[0];
            assert!(stream.completed.is_some(), "{} without {name}", description.name);
            assert_eq!(stream.delivered, Bytes::new(30_000_000), "{} without {name}", description.name);
            let most = two_timeouts(&result);
            assert!(
                stream.longest_stall <= most,
                "{} without {name}: {} > {most}",
                description.name,
                stream.longest_stall
            );
        }
    }
}

/// The slow path carries 5 Mbit/s but for the outage, the time until it is noticed that it is over, and what
/// slow start takes.
#[test]
fn a_path_that_returns_is_used_again() {
    for (outage, reconnect, lost) in [
        (Outage { from: at(5), to: at(7) }, true, 4.0),
        (Outage { from: at(5), to: at(15) }, true, 13.5),
        // TCP doubles its timeout, so at worst it finds the path again after twice the outage. The ACKs of what had arrived
        // were lost, so that F-RTO takes the timeout for a mistake, and a probe half a second later for the contrary.
        (Outage { from: at(5), to: at(15) }, false, 20.5),
    ] {
        let mut scenario =
            out(two_paths("look-ahead", (10_000_000, 10), (5_000_000, 20), 4_000), "slow", &[outage]);
        scenario.aggregates[0].reconnect = reconnect.then_some(Duration::from_secs(3));
        let result = run(&scenario);
        let slow = result.flows[1].delivered.as_f64() * 8.0 / (5e6 * SHARE);
        assert!(slow > 30.0 - lost, "{outage}, {reconnect}: {slow} s of 5 Mbit/s");
        assert_eq!(result.aggregates[0].reconnections > 0, reconnect && lost > 5.0, "{outage}");
    }
}

#[test]
fn a_path_that_is_out_at_first_joins_later() {
    let outage = Outage { from: at(0), to: at(10) };
    let result = run(&out(transfer("look-ahead"), "slow", &[outage]));
    assert!(result.flows[1].delivered > Bytes::new(2_000_000), "{}", result.flows[1].delivered);
    assert_eq!(result.aggregates[0].delivered, Bytes::new(30_000_000));
}

/// Up to three outages, apart, the last over after 12 s.
fn outages() -> impl Strategy<Value = Vec<Outage>> {
    prop::collection::vec((1..2_000_u64, 1..2_000_u64), 0..4).prop_map(|pairs| {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        pairs
            .into_iter()
            .scan(0, |time, (pause, length)| {
                let from = *time + pause;
                *time = from + length;
                Some(Outage { from: ms(from), to: ms(*time) })
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    /// However paths fail and return, also all at once, every byte of a transfer arrives once and in order.
    #[test]
    fn a_transfer_completes_over_paths_that_fail_and_return(
        quick in outages(),
        slow in outages(),
        size in 1..6_000_000_u64,
        copy_stalled in any::<bool>(),
        reconnect in any::<bool>(),
    ) {
        for description in descriptions(Role::Path) {
            let scenario = two_paths(description.name, (5_000_000, 5), (2_000_000, 40), 200);
            let mut scenario = out(out(scenario, "quick", &quick), "slow", &slow);
            scenario.duration = Duration::from_secs(1_000);
            scenario.stop_when_complete = true;
            scenario.aggregates[0].size = Some(Bytes::new(size));
            scenario.aggregates[0].copy_stalled = copy_stalled;
            scenario.aggregates[0].reconnect = reconnect.then_some(Duration::from_secs(1));
            let result = run(&scenario);
            let stream = &result.aggregates[0];
            prop_assert!(stream.completed.is_some(), "{}: {:?}", description.name, stream);
            prop_assert_eq!(stream.delivered, Bytes::new(size), "{}", description.name);
            let carried: Bytes = result.flows.iter().map(|flow| flow.delivered).sum();
            prop_assert_eq!(carried, stream.delivered + stream.duplicates, "{}", description.name);
            prop_assert!(stream.reorder_max <= Bytes::new(200_000), "{}", description.name);
            prop_assert_eq!(&result, &run(&scenario), "{}", description.name);
        }
    }

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
                link.impairments.loss = suimon_scenario::Loss::Random(suimon_units::Probability::clamped(loss));
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
