//! Flows that start in a full queue, and flows that leave it while others do.

use super::*;

/// The modes of a flow that takes 80 ms for the path, once round trips `after` come.
fn late_comer(after: &[u64]) -> (Open, Vec<Mode>) {
    let (mut open, mut limits) = steady(40);
    open.path = Path::of(2 * RTT_MIN, 0);
    play(&mut open, &mut limits, (0, 1_000_000), |_| 2 * RTT_MIN + 2_000);
    let rtt = |nth: usize| Some(Duration::from_micros(after[nth]));
    let modes = (0..after.len()).map(|nth| {
        open.on_ack(&Ack { now: at(1_000_000 + nth as u64 * 1_000), rtt: rtt(nth), ..ack(1) }, &mut limits);
        open.mode
    });
    let modes = modes.collect();
    (open, modes)
}

#[test]
fn two_round_trips_below_all_others_are_a_drain_that_a_late_comer_joins_and_one_is_jitter() {
    let (open, modes) = late_comer(&[77_000, 76_000]);
    assert_eq!(modes[0], Mode::Steady);
    let Mode::Draining(drain) = modes[1] else { panic!("{modes:?}") };
    // By the round trip before it, 82 ms, the flow has 40 * 76 / 82 segments, and 3 * 6 / 76 of these go.
    let confirmed = open.window * 76 / 82;
    assert!(open.rcv_bytes.abs_diff(confirmed) <= 1, "{} {confirmed}", open.rcv_bytes);
    assert!(drain.target.abs_diff(confirmed * 58 / 76) <= MSS.get() / 8, "{}", drain.target);
    for jitter in [[77_000, 82_000, 76_000], [78_000, 78_000, 78_000]] {
        let (_, modes) = late_comer(&jitter);
        assert!(modes.iter().all(|mode| *mode == Mode::Steady), "{jitter:?} {modes:?}");
    }
}

#[test]
fn a_drain_of_others_that_goes_on_below_makes_the_flows_own_deeper() {
    let (open, modes) = late_comer(&[77_000, 76_000, 60_000, 50_000]);
    let targets: Vec<_> = modes
        .iter()
        .filter_map(|mode| if let Mode::Draining(drain) = mode { Some(drain.target) } else { None })
        .collect();
    assert_eq!(targets.len(), 3, "{modes:?}");
    assert_eq!(targets[0], targets[1], "one is jitter");
    assert_eq!(targets[2], open.rcv_bytes - open.rcv_bytes * 3 / 4);
}

#[test]
fn a_young_flow_lets_others_leave_the_queue_and_an_old_one_takes_their_place() {
    for (grown, grows) in [(10_000_000, false), (0, true)] {
        let (mut open, mut limits) = steady(40);
        (open.drains.grown, open.path.renewed) = (grown, 15_500_000);
        play(&mut open, &mut limits, (15_500_000, 16_000_000), |_| RTT_MIN + 12_000);
        let window = open.window;
        play(&mut open, &mut limits, (16_000_000, 16_090_000), |_| RTT_MIN);
        assert_eq!(open.window > window, grows, "{window} {}", open.window);
    }
}

#[test]
fn the_second_drain_comes_a_quarter_of_a_period_after_the_first_though_the_queue_seems_empty() {
    let (mut open, mut limits) = steady(40);
    open.rcv_bytes = (MSS * 40).get();
    open.round.sample(RTT_MIN);
    open.begin_drain(&ack(1), true, false);
    let modes = play(&mut open, &mut limits, (0, 1_200_000), |_| RTT_MIN);
    assert_eq!(open.mode, Mode::Steady, "{modes:?}");
    let modes = play(&mut open, &mut limits, (1_200_000, 2_000_000), |_| RTT_MIN);
    let ends = modes.windows(2).filter(|two| two[0] != Mode::Steady && two[1] == Mode::Steady).count();
    assert_eq!(ends, 1, "{modes:?}");
}

#[test]
fn a_round_trip_that_was_a_queues_is_no_other_path_until_the_queue_was_empty() {
    let asks = |trips: &[u64]| {
        let (mut step, path) = (Step::default(), Path::of(RTT_MIN, 0));
        for two in trips.windows(2) {
            assert!(!step.is_other_path(two[0], two[1], &path, 40));
        }
        let last = trips[trips.len() - 1];
        step.is_other_path(last, last, &path, 20)
    };
    assert!(asks(&[45_000, 100_000]), "the first step may be a path");
    assert!(!asks(&[45_000, 100_000, 60_000, 95_000]), "a queue was as long before");
    assert!(asks(&[45_000, 100_000, 60_000, 130_000]), "this is longer");
    assert!(asks(&[45_000, 100_000, 60_000, 41_000, 95_000]), "the queue was empty between");
}
