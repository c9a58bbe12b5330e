//! Flows that start in a full queue, and flows that leave it while others do.

use super::*;

/// When slow start ended long ago.
const OLD: u64 = 20_000_000;

/// A flow with a first round trip of `first`, which takes 80 ms for the path by now; its slow start ended at zero.
fn before_a_drain_of_others(first: u64, now: u64) -> (Open, Limits) {
    let (mut open, mut limits) = steady(40);
    open.path = Path::default();
    open.path.sample(0, first, 1);
    // Three periods forget it.
    (1..4).for_each(|nth| open.path.sample(now + 2 * nth, 2 * RTT_MIN, 1));
    play(&mut open, &mut limits, (now, now + 1_000_000), |_| 2 * RTT_MIN + 2_000);
    (open, limits)
}

/// The modes of a flow that takes 80 ms for the path, once round trips `after` come.
fn late_comer(first: u64, mut now: u64, after: &[u64]) -> (Open, Vec<Mode>) {
    let (mut open, mut limits) = before_a_drain_of_others(first, now);
    now += 1_000_000;
    let modes = after.iter().map(|rtt| {
        now += 1_000;
        open.on_ack(&Ack { now: at(now), rtt: Some(Duration::from_micros(*rtt)), ..ack(1) }, &mut limits);
        open.mode
    });
    let modes = modes.collect();
    (open, modes)
}

fn target(mode: Mode) -> u64 {
    let Mode::Draining(drain) = mode else { panic!("{mode:?}") };
    drain.target
}

#[test]
fn two_round_trips_below_all_others_are_a_drain_that_a_late_comer_joins_and_one_is_jitter() {
    let (open, modes) = late_comer(82_000, OLD, &[77_000, 76_000]);
    assert_eq!(modes[0], Mode::Steady);
    // By the round trip before it, 82 ms, the flow has 40 * 76 / 82 segments, and 3 * 6 / 76 of these go.
    let confirmed = open.window * 76 / 82;
    assert!(open.rcv_bytes.abs_diff(confirmed) <= 1, "{} {confirmed}", open.rcv_bytes);
    let target = target(modes[1]);
    assert!(target.abs_diff(confirmed * 58 / 76) <= MSS.get() / 8, "{target}");
    for jitter in [[77_000, 82_000, 76_000], [78_000, 78_000, 78_000]] {
        let (_, modes) = late_comer(82_000, OLD, &jitter);
        assert!(modes.iter().all(|mode| *mode == Mode::Steady), "{jitter:?} {modes:?}");
    }
}

#[test]
fn a_drain_of_others_that_goes_on_below_makes_the_flows_own_deeper() {
    let (open, modes) = late_comer(82_000, OLD, &[77_000, 76_000, 60_000, 50_000]);
    let targets: Vec<_> = modes[1..].iter().map(|mode| target(*mode)).collect();
    assert_eq!(targets[0], targets[1], "one is jitter");
    assert_eq!(targets[2], open.rcv_bytes - open.rcv_bytes * 3 / 4);
}

#[test]
fn a_young_flow_that_began_in_a_queue_leaves_as_little_as_it_can() {
    // 78,451 less a 32nd is 76,000.
    for (first, now, leaves_all) in [(78_452, 0, true), (78_451, 0, false), (78_452, OLD, false)] {
        let (_, modes) = late_comer(first, now, &[77_000, 76_000]);
        assert_eq!(target(modes[1]) == 2 * MSS.get(), leaves_all, "{first} {now}");
    }
}

#[test]
fn the_window_of_a_flow_that_began_in_a_queue_comes_back_as_what_fits() {
    for (first, fits) in [(82_000, true), (61_000, false)] {
        let (mut open, mut limits) = before_a_drain_of_others(first, OLD);
        let (window, before) = (open.window, 2 * RTT_MIN + 2_000);
        let mut modes = Vec::new();
        while modes.len() < 3 || open.mode != Mode::Steady {
            let now = at(OLD + 1_001_000 + 1_000 * modes.len() as u64);
            open.on_ack(&Ack { now, rtt: Some(Duration::from_micros(60_000)), ..ack(1) }, &mut limits);
            modes.push(open.mode);
        }
        // (1) with 22 ms of queue: 60 of 82 parts, and 1200 / 22^2 segments.
        let fit = window * 60_000 / before + MSS.get() * 1_200 / (22 * 22);
        assert!(open.window.abs_diff(if fits { fit } else { window }) <= 2, "{fit} {window} {}", open.window);
        assert_eq!(open.drains.emptied, open.window);
    }
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
fn a_second_drain_comes_a_quarter_of_a_period_after_slow_start_though_the_queue_seems_empty() {
    let (mut open, mut limits) = steady(40);
    open.mode = Mode::Startup;
    open.on_ack(&Ack { now: at(0), ..ack(1) }, &mut limits);
    open.mode = Mode::Steady;
    let modes = play(&mut open, &mut limits, (0, 1_200_000), |_| RTT_MIN);
    assert_eq!(modes, [Mode::Steady]);
    let modes = play(&mut open, &mut limits, (1_200_000, 4_000_000), |_| RTT_MIN);
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
