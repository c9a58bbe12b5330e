//! Trials of the queue, which tell a radio from others that fill the queue, and from a queue that drops.

use super::super::trial::Trial;
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

/// The flow after its trial, in which the queueing delay was `queueing` and each judged round but the last lost so many segments.
fn after_trial((open, limits): &Flow, queueing: u64, lost: u64) -> Open {
    let (mut open, mut limits) = (open.clone(), *limits);
    let mut now = 5_150_000;
    while open.trial.left > 0 {
        let before = open.trial.left;
        play(&mut open, &mut limits, (now, now + 1), |_| RTT_MIN + queueing);
        now += 60_000;
        if open.trial.left < before && open.trial.left < 10 {
            open.trial.count(0, (MSS * lost).get());
        }
    }
    open
}

#[test]
fn where_more_is_lost_than_lets_reno_have_the_window_a_trial_tells_others_from_a_radio() {
    // Reno would have sqrt(3 / 2 * 4000 / 5) = 35 segments.
    let flow = after_losses(5, 4_000);
    assert!(flow.0.trial.left > 0 && flow.0.window <= flow.0.rcv_bytes, "{:?}", flow.0.trial);
    let after = |queueing| after_trial(&flow, queueing, 0).mode;
    assert_eq!(after(4_500), Mode::Steady, "the queue stays empty, and five losses are too few to be missed");
    assert_eq!(after(4_501), Mode::Competing, "others fill it");
}

#[test]
fn a_queue_is_told_by_losses_that_end_while_it_is_left_and_a_radio_by_losses_that_go_on() {
    let flow = after_losses(400, 4_000);
    let (managed, radio) = (after_trial(&flow, 0, 0), after_trial(&flow, 0, 4));
    assert_eq!((managed.mode, radio.mode), (Mode::Competing, Mode::Steady));
    assert!(managed.trial.found && !radio.trial.found);
}

#[test]
fn fewer_losses_are_no_chance_from_three_deviations_on() {
    // A tenth was lost before.
    for (segments, lost, less) in [(90, 0, false), (100, 0, true), (400, 19, true), (400, 20, false)] {
        let mut trial = Trial::default();
        trial.loss_before = (1 << 20) / 10 + 1;
        trial.count((MSS * segments).get(), (MSS * lost).get());
        assert_eq!(trial.loses_less(MSS.get()), less, "{lost} of {segments}");
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
