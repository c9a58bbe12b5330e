//! Trials of the queue, which tell a radio from others that fill the queue, and from a queue that drops.

use super::*;

type Flow = (Open, Limits);

/// A flow with a window of 40 segments that lost `lost` times, a segment each, in its first five seconds with `segments`, and then
/// sees an empty queue.
fn after_losses(lost: u64, segments: u64) -> Flow {
    let (mut open, mut limits) = steady(40);
    open.trial.count((MSS * segments).get(), (MSS * lost).get());
    open.trial.congestions = lost;
    play(&mut open, &mut limits, (5_000_000, 5_070_000), |_| RTT_MIN);
    (open, limits)
}

/// The flow after the rounds of its trial that are judged first, in which the queueing delay was `queueing`.
fn after_trial((open, limits): &Flow, queueing: u64) -> Open {
    let (mut open, mut limits) = (open.clone(), *limits);
    let mut now = 5_150_000;
    while open.trial.left > 0 && !open.trial.goes_on {
        play(&mut open, &mut limits, (now, now + 1), |_| RTT_MIN + queueing);
        now += 60_000;
    }
    open
}

#[test]
fn where_more_is_lost_than_lets_reno_have_the_window_a_trial_tells_others_from_a_radio() {
    // Reno would have sqrt(3 / 2 * 4000 / 5) = 35 segments.
    let flow = after_losses(5, 4_000);
    assert!(flow.0.trial.left > 0 && flow.0.window <= flow.0.rcv_bytes, "{:?}", flow.0.trial);
    assert_eq!(flow.0.trial.window, flow.0.window);
    let after = |queueing| outcome(&after_trial(&flow, queueing));
    assert_eq!(after(4_500), (Mode::Steady, 10, false), "the queue stays empty, and nothing is lost");
    assert_eq!(after(8_501), (Mode::Competing, 0, true), "others fill it");
}

/// A flow in a trial whose ten judged rounds begin, and which lost a tenth before it.
fn judged() -> Open {
    let (mut open, _) = steady(40);
    (open.trial.left, open.trial.loss_before, open.trial.low) = (10, (1 << 20) / 10 + 1, RTT_MIN);
    open
}

/// The flow after `count` rounds of a trial at `now`, with the queueing delay `queueing`, each of 40 segments of which `lost` are.
fn after_rounds(open: &Open, now: u64, count: u64, queueing: u64, lost: u64) -> Open {
    let (mut open, (_, mut limits)) = (open.clone(), steady(40));
    for _ in 0..count {
        open.low = RTT_MIN + queueing;
        open.trial.count((MSS * 40).get(), (MSS * lost).get());
        open.end_trial_round(&ack(1), now, queueing, &mut limits);
    }
    open
}

/// The mode, the rounds left of the trial, and whether it found others.
fn outcome(open: &Open) -> (Mode, u64, bool) {
    (open.mode, open.trial.left, open.trial.found)
}

#[test]
fn a_trial_goes_on_where_less_than_half_is_lost_without_a_backlog() {
    // A tenth was lost before. What was lost is counted from the first round that is judged on.
    for (first, second, left) in [(1, 2, 10), (1, 3, 0), (3, 0, 0), (2, 1, 0)] {
        let open = after_rounds(&judged(), 1_000_000, 10, 0, first);
        let open = if open.trial.left > 0 { after_rounds(&open, 2_000_000, 10, 0, second) } else { open };
        assert_eq!(outcome(&open), (Mode::Steady, left, false), "{first}, {second}");
    }
    // Parts of a segment count: one was lost of 3 000, and 400 should lose less than one.
    let mut open = judged();
    for (loss_before, left) in [((1 << 20) / 3_000, 10), (0, 0)] {
        open.trial.loss_before = loss_before;
        assert_eq!(
            outcome(&after_rounds(&open, 1_000_000, 10, 0, 0)),
            (Mode::Steady, left, false),
            "{loss_before}"
        );
    }
}

#[test]
fn a_queue_of_others_is_longer_than_three_segments_of_the_flow_take_up_to_six_milliseconds() {
    for (segments, longest) in [(400, 4_500), (40, 5_500), (10, 8_500)] {
        let mut open = judged();
        open.rcv_bytes = (MSS * segments).get();
        let mode = |queueing| after_rounds(&open, 1_000_000, 3, queueing, 0).mode;
        assert_eq!((mode(longest), mode(longest + 1)), (Mode::Steady, Mode::Competing), "{segments}");
    }
}

#[test]
fn a_trial_that_goes_on_ends_where_losses_are_as_before_or_others_fill_the_queue() {
    // Two rounds with a queue are too few, and those before do not count any more.
    let queued = after_rounds(&judged(), 1_000_000, 2, 9_000, 1);
    let open = after_rounds(&queued, 1_000_000, 8, 0, 1);
    assert_eq!(outcome(&open), (Mode::Steady, 10, false));
    let after = |count, queueing, lost| outcome(&after_rounds(&open, 2_000_000, count, queueing, lost));
    assert_eq!(after(10, 0, 3), (Mode::Steady, 0, false), "half of what was lost before");
    assert_eq!(after(2, 9_000, 0), (Mode::Steady, 8, false));
    assert_eq!(after(3, 9_000, 0), (Mode::Competing, 0, true));
}

#[test]
fn a_trial_goes_on_for_six_periods_at_most() {
    let open = after_rounds(&judged(), 1_000_000, 10, 0, 1);
    for (now, left) in [(29_999_999, 10), (30_000_000, 0)] {
        assert_eq!(outcome(&after_rounds(&open, now, 10, 0, 0)), (Mode::Steady, left, false), "{now}");
    }
}

#[test]
fn once_a_trial_goes_on_its_window_grows_while_the_queue_is_empty_and_falls_elsewhere() {
    let (at_most, longer) = (RTT_MIN / 32, RTT_MIN / 32 + 1);
    for queueing in [at_most, longer] {
        assert_eq!(after_rounds(&judged(), 1_000_000, 5, queueing, 0).window, (MSS * 40).get(), "{queueing}");
    }
    let open = after_rounds(&judged(), 1_000_000, 10, 0, 1);
    for (queueing, halves) in [(at_most, 82), (longer, 75)] {
        let open = after_rounds(&open, 2_000_000, 1, queueing, 0);
        assert_eq!(open.window, (MSS * halves).get() / 2, "{queueing}");
    }
    // Over a long path a queue may be short beside the path, and yet be over two milliseconds and over a segment's time.
    let mut long = open.clone();
    long.path = Path::of(200_000, 0);
    for (segments, longest) in [(400, 2_000), (50, 4_000), (20, 6_250)] {
        long.rcv_bytes = (MSS * segments).get();
        let window = |queueing| after_rounds(&long, 2_000_000, 1, queueing, 0).window;
        assert_eq!(
            (window(longest), window(longest + 1)),
            (82 * MSS.get() / 2, 75 * MSS.get() / 2),
            "{segments}"
        );
    }
    // The least round trip of the trial is that of an empty queue.
    let mut higher = open.clone();
    higher.trial.low = RTT_MIN + 3_000;
    assert_eq!(after_rounds(&higher, 2_000_000, 1, 3_000 + at_most, 0).window, (MSS * 41).get());
    assert_eq!(after_rounds(&higher, 2_000_000, 1, 3_000 + longer, 0).window, 75 * MSS.get() / 2);
    let small = Open { window: (MSS * 2).get(), ..open };
    assert_eq!(after_rounds(&small, 2_000_000, 1, longer, 0).window, (MSS * 2).get());
}

#[test]
fn a_trial_that_goes_on_ends_in_competition_once_a_quarter_of_the_window_is_left() {
    let mut open = after_rounds(&judged(), 1_000_000, 10, 0, 1);
    open.trial.window = (MSS * 40).get();
    let quarter = (MSS * 10).get();
    // A queue that is too short to tell of others takes a sixteenth.
    for (window, goes_on, expected) in [
        (quarter * 16 / 15, true, (Mode::Competing, 0, true)),
        (quarter * 16 / 15 + 1, true, (Mode::Steady, 9, false)),
        (quarter, false, (Mode::Steady, 9, false)),
    ] {
        (open.window, open.trial.goes_on) = (window, goes_on);
        let open = after_rounds(&open, 2_000_000, 1, RTT_MIN / 32 + 1, 0);
        assert_eq!(outcome(&open), expected, "{window} {goes_on}");
    }
}

#[test]
fn the_window_that_a_trial_begins_with_is_the_smaller_of_the_flows_and_of_what_is_confirmed() {
    for (window, expected) in [(50, 40), (30, 30)] {
        let (mut open, mut limits) = steady(40);
        (open.window, open.rcv_bytes) = ((MSS * window).get(), (MSS * 40).get());
        open.begin_trial(&ack(1), 1_000_000, &mut limits);
        assert_eq!((open.trial.window, open.window), ((MSS * expected).get(), (MSS * expected).get()));
    }
}

#[test]
fn fewer_losses_than_reno_has_at_the_window_or_than_five_bring_no_trial() {
    // Reno would have 60 segments, and 30.
    for (lost, segments) in [(5, 12_000), (4, 2_400)] {
        let (open, _) = after_losses(lost, segments);
        assert_eq!((open.trial.left, open.mode), (0, Mode::Steady), "{lost} of {segments}");
    }
}

#[test]
fn a_queue_that_marks_needs_no_trial_and_a_few_marks_among_losses_are_not_enough() {
    for (marks, losses, expected) in [(5, 0, Mode::Competing), (4, 4, Mode::Steady), (5, 4, Mode::Competing)]
    {
        let (mut open, mut limits) = steady(40);
        open.trial.count((MSS * 2_000).get(), 0);
        for (kind, count) in [(CongestionKind::Ecn, marks), (CongestionKind::Loss, losses)] {
            (0..count).for_each(|_| open.on_congestion(&Congestion { kind, ..loss(40) }, &mut limits));
        }
        open.window = (MSS * 40).get();
        play(&mut open, &mut limits, (5_000_000, 5_070_000), |_| RTT_MIN);
        assert_eq!(open.mode, expected, "{marks} marks, {losses} losses");
    }
}
