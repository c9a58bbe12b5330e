//! Drains that stay in step with those of others.

use super::*;

/// When the queue was last empty.
const EMPTY: u64 = 20_000_000;
const QUEUE: u64 = 12_000;

/// A flow in the middle of a round, after rounds with a queue of 12 ms; its slow start ended at `grown`.
fn in_a_round(grown: u64) -> (Open, Limits) {
    let (mut open, limits) = steady(40);
    (open.path, open.drains.grown) = (Path::of(RTT_MIN, EMPTY), grown);
    (open.low, open.queueing, open.mean_queueing) = (RTT_MIN + QUEUE, QUEUE, QUEUE);
    open.rcv_bytes = open.window;
    open.begin_round(&Ack { snd_nxt: u64::MAX, flight_size: MSS * 40, ..ack(1) });
    (open, limits)
}

/// An acknowledgement at `now` that shows the queueing delay `q`, with so many segments in flight.
fn hear(open: &mut Open, limits: &mut Limits, now: u64, q: u64, segments: u64) -> Mode {
    let rtt = Some(Duration::from_micros(RTT_MIN + q));
    let (flight_size, prior_flight_size) = (MSS * segments, MSS * (segments + 1));
    open.on_ack(&Ack { now: at(now), rtt, snd_una: 1, flight_size, prior_flight_size, ..ack(1) }, limits);
    open.mode
}

#[test]
fn a_drain_that_is_due_begins_within_a_round_once_the_flow_is_not_young() {
    for (grown, begins) in [(10_000_002, false), (10_000_001, true)] {
        let (mut open, mut limits) = in_a_round(grown);
        assert_eq!(hear(&mut open, &mut limits, EMPTY + 5_000_000, QUEUE, 40), Mode::Steady);
        let mode = hear(&mut open, &mut limits, EMPTY + 5_000_001, QUEUE, 40);
        assert_eq!(matches!(mode, Mode::Draining(_)), begins, "{grown} {mode:?}");
    }
    let (mut open, mut limits) = in_a_round(0);
    open.drains.resting = 1;
    assert_eq!(hear(&mut open, &mut limits, EMPTY + 6_000_000, QUEUE, 40), Mode::Steady, "it rests");
    (open.drains.resting, open.trial.left) = (0, 1);
    assert_eq!(hear(&mut open, &mut limits, EMPTY + 6_000_000, QUEUE, 40), Mode::Steady, "a trial is on");
    (open.trial.left, open.round.app_limited) = (0, true);
    assert_eq!(hear(&mut open, &mut limits, EMPTY + 6_000_000, QUEUE, 40), Mode::Steady, "nothing to send");
}

#[test]
fn where_others_leave_the_queue_shortly_before_a_drain_is_due_it_begins() {
    let begins = |after, q| {
        let (mut open, mut limits) = in_a_round(0);
        matches!(hear(&mut open, &mut limits, EMPTY + after, q, 40), Mode::Draining(_))
    };
    assert!(begins(4_850_000, 8_999));
    assert!(!begins(4_850_000, 9_000), "three quarters of the queue are there");
    assert!(!begins(4_840_000, 8_999), "a 32nd of the period before, and more");
    let (mut open, mut limits) = in_a_round(0);
    open.variation = varying::variation(400, QUEUE, 5 * QUEUE);
    assert_eq!(
        hear(&mut open, &mut limits, EMPTY + 4_850_000, 8_999, 40),
        Mode::Steady,
        "the link does that"
    );
}

#[test]
fn the_next_drain_is_timed_from_when_a_quarter_of_the_queue_was_last_seen() {
    let renewed = |change: &dyn Fn(&mut Open), q| {
        let (mut open, mut limits) = in_a_round(0);
        change(&mut open);
        hear(&mut open, &mut limits, EMPTY + 1_000, q, 40);
        open.path.renewed - EMPTY
    };
    assert_eq!(renewed(&|open| open.drains.resting = 2, QUEUE / 4), 1_000);
    assert_eq!(renewed(&|open| open.drains.resting = 2, QUEUE / 4 + 1), 0);
    assert_eq!(renewed(&|open| open.begin_drain(&ack(1), false, false), QUEUE / 4), 1_000);
    assert_eq!(renewed(&|open| open.begin_drain(&ack(1), false, true), QUEUE / 4), 0, "of competition");
    assert_eq!(renewed(&|_| (), QUEUE / 4), 0, "no drain was just before");
}

#[test]
fn the_next_drain_is_timed_from_the_end_of_one_that_saw_no_short_queue() {
    for (q, renewed) in [(QUEUE / 4, 20_000), (QUEUE, 130_000)] {
        let (mut open, mut limits) = in_a_round(0);
        open.begin_drain(&ack(1), false, false);
        for (now, q, segments) in
            [(10_000, QUEUE, 2), (20_000, q, 2), (130_000, QUEUE, 0), (140_000, QUEUE, 0)]
        {
            hear(&mut open, &mut limits, EMPTY + now, q, segments);
        }
        assert_eq!(open.mode, Mode::Steady);
        assert_eq!(open.path.renewed - EMPTY, renewed);
    }
}

/// A drain from `now` on, in which a queue of 60 ms stays; gives the drains that count after it.
fn drain(open: &mut Open, limits: &mut Limits, now: u64) -> u64 {
    open.begin_drain(&ack(1), false, false);
    for (after, segments) in [(0, 2), (10_000, 2), (120_000, 0), (130_000, 0)] {
        hear(open, limits, now + after, 60_000, segments);
    }
    assert_eq!(open.mode, Mode::Steady);
    open.drains.dirty
}

/// A flow with one drain that counts, which hears `q` after it and after `change`.
fn beside_a_queue(change: &dyn Fn(&mut Open), q: u64) -> (Open, Limits) {
    let (mut open, mut limits) = in_a_round(0);
    (open.drains.dirty, open.queueing, open.mean_queueing, open.drains.resting) = (1, 60_000, 60_000, 0);
    change(&mut open);
    hear(&mut open, &mut limits, EMPTY + 1_000, q, 40);
    open.mode = Mode::Steady;
    (open, limits)
}

#[test]
fn a_drain_does_not_count_where_others_left_the_queue_since_the_last_one() {
    let dirty = |change: &dyn Fn(&mut Open), q| {
        let (mut open, mut limits) = beside_a_queue(change, q);
        drain(&mut open, &mut limits, EMPTY + 10_000)
    };
    assert_eq!(dirty(&|_| (), 15_001), 2);
    assert_eq!(dirty(&|_| (), 15_000), 1, "a quarter of the queue");
    assert_eq!(dirty(&|open| open.drains.resting = 1, 15_000), 2, "the flow itself left it");
    assert_eq!(
        dirty(&|open| open.begin_drain(&ack(1), false, false), 15_000),
        2,
        "the flow itself leaves it"
    );
    assert_eq!(dirty(&|open| open.mode = Mode::Holding, 15_000), 2, "a rival's loss");
}

#[test]
fn the_drain_after_one_that_did_not_count_does() {
    let (mut open, mut limits) = beside_a_queue(&|_| (), 15_000);
    assert_eq!(drain(&mut open, &mut limits, EMPTY + 10_000), 1);
    assert_eq!(drain(&mut open, &mut limits, EMPTY + 200_000), 2);
}
