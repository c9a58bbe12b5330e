//! Links whose rate varies.

use super::*;

const MS: u64 = 1_000;

/// `rounds` whose queueing delay is in turn `short` and `long`.
pub(super) fn variation(rounds: usize, short: u64, long: u64) -> Variation {
    let mut variation = Variation::default();
    for nth in 0..rounds {
        let (q, last) = (if nth % 2 == 0 { short } else { long }, variation.take_last());
        variation.count(last, RTT_MIN + q, q);
    }
    variation
}

/// A flow with a window of `segments` over a link whose queue moves from 10 ms to 50 and back for long.
fn over_varying(segments: u64) -> (Open, Limits) {
    let (mut open, limits) = steady(segments);
    open.variation = variation(400, 10 * MS, 50 * MS);
    assert!(open.varies());
    (open, limits)
}

#[test]
fn a_link_varies_where_the_queue_moves_by_three_eighths_of_its_length_and_by_eight_paths_in_all() {
    let varies = |rounds, short, long| {
        let (mut open, _) = steady(40);
        open.variation = variation(rounds, short, long);
        open.varies()
    };
    assert_eq!((varies(400, 30 * MS, 43 * MS), varies(400, 30 * MS, 45 * MS)), (false, true));
    // Eight changes by a path each are less than eight paths, as some is forgotten, and nine are more.
    assert_eq!((varies(9, 10 * MS, 50 * MS), varies(10, 10 * MS, 50 * MS)), (false, true));
    // On a quick link a queue of a few packets moves by much of its length, but by little of the path.
    assert!(!varies(400, MS, 4 * MS));
}

#[test]
fn a_queue_that_the_flow_itself_left_has_not_moved() {
    let mut variation = Variation::default();
    for nth in 0..400 {
        let q = if nth % 2 == 0 { 10 * MS } else { 50 * MS };
        // A round of a drain, and one that counts.
        variation.take_last();
        let last = variation.take_last();
        variation.count(last, RTT_MIN + q, q);
    }
    let (mut open, _) = steady(40);
    open.variation = variation;
    assert!(!open.varies());
}

#[test]
fn the_window_moves_half_of_the_way_to_the_rate_with_room_for_a_rise() {
    let delivered = (MSS * 40).get();
    // Round trips of 70 ms change by 40, so that the room is the most, one path: a segment per millisecond fits 80 into two.
    let fit = (MSS * 80).get() + MSS.get() * 1_200 / (120 * 120);
    let half_way = |window: u64| window.midpoint(fit);
    for (window, expected) in
        [(100, half_way((MSS * 100).get())), (70, half_way((MSS * 70).get())), (40, (MSS * 50).get())]
    {
        let (mut open, _) = over_varying(window);
        open.round.delivered = delivered;
        open.follow_link(MSS.get(), 120 * MS, 40 * MS);
        assert!(open.window.abs_diff(expected) <= 1, "{window}: {} {expected}", open.window);
    }
    let (mut open, _) = over_varying(40);
    // Round trips of 102 ms change by 4: the room is 3 * 4 / 102 of the path.
    open.variation = variation(400, 60 * MS, 64 * MS);
    open.round.delivered = delivered;
    open.follow_link(MSS.get(), 120 * MS, 40 * MS);
    let room = 3 * 4 * RTT_MIN / 102;
    let expected = (MSS.get() * (RTT_MIN + room) / MS + MSS.get() * 40) / 2;
    assert!(open.window.abs_diff(expected) < MSS.get() / 10, "{} {expected}", open.window);
}

#[test]
fn the_window_grows_with_each_ack_that_met_no_queue_on_a_link_that_varies_and_on_no_other() {
    let near = Ack { rtt: Some(Duration::from_micros(RTT_MIN + RTT_MIN / 32)), ..ack(2) };
    let far = Ack { rtt: Some(Duration::from_micros(RTT_MIN + RTT_MIN / 31)), ..near };
    let limited = Ack { app_limited: true, ..near };
    let (varying, steady) = (over_varying(40), steady(40));
    for ((open, limits), ack, segments) in
        [(&varying, near, 42), (&varying, far, 40), (&varying, limited, 40), (&steady, near, 40)]
    {
        let (mut open, mut limits) = (open.clone(), *limits);
        open.on_ack(&ack, &mut limits);
        assert_eq!(open.window, (MSS * segments).get(), "{ack:?}");
        assert_eq!(limits.cwnd, MSS * segments);
    }
}

#[test]
fn a_link_that_varies_lets_three_periods_pass_between_drains() {
    for (now, due) in [(5_100_000, (true, false)), (15_000_000, (true, false)), (15_100_000, (true, true))] {
        let ((mut open, _), (mut varying, _)) = (steady(40), over_varying(40));
        (open.path.renewed, varying.path.renewed) = (0, 0);
        assert_eq!((open.is_drain_due(now), varying.is_drain_due(now)), due, "{now}");
    }
}

#[test]
fn drains_that_leave_the_queue_of_a_link_that_varies_long_tell_of_nobody_else() {
    let (mut open, mut varying) = (steady(40).0, over_varying(40).0);
    let tells = |open: &mut FsAtOpen<_>| {
        open.mean_queueing = 90 * MS;
        [(); 3].map(|()| open.is_beside_others())
    };
    assert_eq!((tells(&mut open), tells(&mut varying)), ([false, false, true], [false; 3]));
}

/// Ends rounds by what the link gives: its rate moves at random from a half to twice as much, and the queue holds the rest. The
/// flow uses more of it than one that takes the link for steady.
#[test]
fn over_a_link_that_varies_more_gets_through_than_without_the_room() {
    let carried = |follows: bool| {
        let (mut open, _) = over_varying(20);
        let (mut sum, mut state) = (0.0, 1_u64);
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Segments per millisecond.
            let rate = [0.5, 1.0, 2.0][(state >> 33) as usize % 3];
            let window = open.window as f64 / MSS.as_f64();
            let rtt_ms = (window / rate).max(40.0);
            sum += window / rtt_ms / rate;
            let (low, elapsed) = ((rtt_ms * 1_000.0) as u64, (rtt_ms * 1_000.0) as u64);
            let q = low.saturating_sub(RTT_MIN);
            open.round.delivered = open.window;
            if follows {
                open.follow_link(MSS.get(), q, elapsed);
            } else {
                open.move_window(MSS.get(), low, q);
            }
        }
        sum / 2_000.0
    };
    let (with, without) = (carried(true), carried(false));
    assert!(with > without + 0.03, "{with} {without}");
}
