//! Packet scripts of Linux 6: loss detection by time, tail loss probes, its proportional rate reduction.

use suimon_algorithms::congestion::CongestionKind;
use suimon_algorithms::congestion::reno::Reno;
use suimon_model::{RttSample, StackProfile};
use suimon_units::{Bytes, Duration};

use super::script::{MSS, Script, Steady, linux};
use crate::tcp::Source;

/// Ten segments sent at 100 ms over a path of 100 ms, the window and all.
#[track_caller]
fn ten_in_flight() -> (Script, Steady) {
    let steady = Steady::default();
    (Script::established(linux(), steady.clone()), steady)
}

/// The same where the application has no more than these.
#[track_caller]
fn last_ten() -> (Script, Steady) {
    let steady = Steady::default();
    let mut script = Script::new(linux(), steady.clone(), Source::new(Some(Bytes::new(10 * MSS)), None));
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0 1 2 3 4 5 6 7 8 9");
    (script, steady)
}

fn cuts(steady: &Steady) -> Vec<CongestionKind> {
    steady.log.lock().unwrap().cuts.clone()
}

#[test]
fn three_segments_above_a_hole_tell_at_once_that_it_was_lost() {
    let (mut script, steady) = ten_in_flight();
    script.sack(200, 0, &[(1, 2)]).sends("10");
    script.sack(201, 0, &[(1, 3)]).sends("11");
    assert_eq!(cuts(&steady), []);
    script.sack(202, 0, &[(1, 4)]).sends("r0");
    assert_eq!(cuts(&steady), [CongestionKind::Loss]);
}

/// RFC 8985 §6.2: a quarter of the smallest round-trip time; Linux adds two ticks of 4 ms.
#[test]
fn one_segment_above_a_hole_tells_a_quarter_of_a_round_trip_later() {
    let (mut script, steady) = ten_in_flight();
    script.sack(200, 0, &[(1, 2)]).sends("10");
    script.wakes(233).sends("r0");
    assert_eq!(cuts(&steady), [CongestionKind::Loss]);
    let (mut script, steady) = ten_in_flight();
    script.sack(200, 0, &[(1, 2)]).sends("10");
    script.late_ack(224, 2, &[]).sends("11");
    assert_eq!(cuts(&steady), [], "it came within that time");
}

#[test]
fn in_recovery_one_segment_above_a_hole_is_enough() {
    let (mut script, _) = ten_in_flight();
    // Three of ten delivered let two out, as four do. Then the flight has come down to the five of `ssthresh`.
    script.sack(200, 0, &[(1, 4)]).sends("r0 10");
    script.sack(201, 0, &[(1, 4), (5, 6)]).sends_nothing();
    script.sack(202, 0, &[(1, 4), (5, 7)]).sends_nothing();
    script.sack(203, 0, &[(1, 4), (5, 8)]).sends("r4");
}

#[test]
fn a_retransmission_is_lost_once_a_segment_sent_later_arrives() {
    let (mut script, steady) = ten_in_flight();
    script.sack(200, 0, &[(1, 4)]).sends("r0 10");
    script.sack(201, 0, &[(1, 5)]).sends_nothing();
    script.sack(202, 0, &[(1, 6)]).sends("11");
    // 10 was sent after 0 was sent again, and after 6 to 9. Three of six delivered were answered so far.
    script.sack(301, 0, &[(1, 6), (10, 11)]).sends("r0 r6 r7");
    assert_eq!(cuts(&steady).len(), 1);
}

/// Segment 0 was sent again at 200 ms, and what was sent before it still arrives: 240 ms make an estimate of 117.5 ms and a
/// variance term of 252.5 ms, which count from then on.
#[test]
fn what_was_sent_before_a_retransmission_and_arrives_late_puts_the_timeout_off() {
    let (mut script, _) = ten_in_flight();
    script.sack(200, 0, &[(1, 4)]).sends("r0 10");
    script.sack(340, 0, &[(1, 5)]).sends_nothing();
    script.wakes(710).sends_something();
    assert_eq!(script.sender.counters.timeouts, 1);
    let newest = StackProfile { rtt_sample: RttSample::Newest, ..linux() };
    let mut script = Script::established(newest, Steady::default());
    script.sack(200, 0, &[(1, 4)]).sends("r0 10");
    script.sack(340, 0, &[(1, 5)]).sends_nothing();
    script.wakes(500).sends_something();
}

/// Two round-trip times and two ticks after the last segment.
#[test]
fn silence_is_probed_with_new_data() {
    let (mut script, steady) = ten_in_flight();
    script.wakes(308).sends("10");
    script.ack(408, 11).sends("11 12 13 14 15 16 17 18 19 20");
    assert_eq!((cuts(&steady), script.sender.counters.retransmissions), (vec![], 0));
}

#[test]
fn without_new_data_the_last_segment_is_the_probe_and_its_answer_shows_what_was_lost() {
    let (mut script, steady) = last_ten();
    script.ack(200, 7).sends_nothing();
    script.wakes(408).sends("r9");
    // 7 and 8 were sent long before it.
    script.sack(508, 7, &[(9, 10)]).sends("r7");
    assert_eq!((cuts(&steady), script.sender.counters.timeouts), (vec![CongestionKind::Loss], 0));
}

/// RFC 8985 §7.4.2: what the probe repaired is a loss, which costs a cut.
#[test]
fn a_probe_that_repairs_the_tail_cuts_the_window_once() {
    let (mut script, steady) = ten_in_flight();
    script.application(150, |source, taken| source.pause(super::script::ms(150), taken)).sends_nothing();
    script.ack(200, 8).sends_nothing();
    script.wakes(408).sends("r9");
    script.application(409, |source, _| source.resume(super::script::ms(409))).sends_something();
    script.ack(508, 10).sends_something();
    assert_eq!(cuts(&steady), [], "the answer to the probe alone says nothing yet");
    script.ack(509, 11).sends_something();
    assert_eq!(cuts(&steady), [CongestionKind::Loss]);
}

#[test]
fn a_probe_whose_original_came_too_costs_nothing() {
    let (mut script, steady) = ten_in_flight();
    script.application(150, |source, taken| source.pause(super::script::ms(150), taken)).sends_nothing();
    script.wakes(308).sends("r9");
    script.application(309, |source, _| source.resume(super::script::ms(309))).sends_nothing();
    script.late_ack(320, 10, &[]).sends_something();
    // The second copy's answer, and then that to later data.
    script.ack(408, 10).sends_nothing();
    script.ack(420, 11).sends_something();
    assert_eq!(cuts(&steady), []);
}

/// A single segment's answer may be held back for 200 ms, so that the timeout comes first.
#[test]
fn a_single_segment_in_flight_is_probed_no_later_than_its_timeout() {
    let (mut script, _) = last_ten();
    script.ack(200, 9).sends_nothing();
    script.wakes(500).sends("r9");
    assert_eq!(script.sender.counters.timeouts, 0);
    // The timeout begins anew with the probe.
    script.wakes(800).sends("r9");
    assert_eq!(script.sender.counters.timeouts, 1);
}

#[test]
fn after_a_probe_without_an_answer_the_timeout_follows() {
    let (mut script, steady) = ten_in_flight();
    script.wakes(308).sends("10");
    script.wakes(608).sends("r0");
    assert_eq!((cuts(&steady), script.sender.counters.timeouts), (vec![CongestionKind::Timeout], 1));
}

#[test]
fn selectively_acknowledged_segments_give_round_trip_times_and_retransmissions_those_of_timestamps() {
    let (mut script, steady) = ten_in_flight();
    script.sack(203, 0, &[(1, 4)]).sends("r0 10");
    script.ack(310, 4).sends_something();
    let rtts: Vec<_> = steady.log.lock().unwrap().acks.iter().map(|ack| ack.rtt).collect();
    assert_eq!(rtts, [103, 107].map(|millis| Some(Duration::from_millis(millis))));
}

#[test]
fn a_threshold_that_is_lowered_in_recovery_is_where_recovery_ends() {
    let (mut script, _) = ten_in_flight();
    script.sack(200, 0, &[(1, 4)]).sends("r0 10");
    script.sender.limits.ssthresh = Bytes::new(3 * MSS);
    script.sack(201, 0, &[(1, 9)]).sends_nothing();
    script.ack(300, 11).sends("11 12 13");
    assert_eq!(script.cwnd(), 3);
}

/// RFC 9937 §6: one segment more than was delivered only where an ACK advances and shows no further loss.
#[test]
fn below_ssthresh_an_ack_that_shows_another_loss_lets_out_no_more_than_it_delivered() {
    let (mut script, _) = ten_in_flight();
    // Seven are lost at once: three in flight are below ssthresh, and one is sent for each that arrives.
    script.sack(200, 0, &[(7, 10)]).sends("r0 r1 r2");
    assert_eq!(script.sender.flight_size(), Bytes::new(3 * MSS));
    // An ACK that advances lets two out.
    script.sack(300, 1, &[(7, 10)]).sends("r3 r4");
    script.sack(301, 2, &[(7, 10)]).sends("r5 r6");
    script.sack(302, 3, &[(7, 10)]).sends("10");
}

/// F-RTO looks again after each timeout of the same segment (`icsk_retransmits` in `tcp_enter_loss`).
#[test]
fn the_second_of_two_timeouts_may_turn_out_to_be_a_mistake_where_the_first_came_in_recovery() {
    let timeout_in_recovery = || {
        let (mut script, _) = ten_in_flight();
        script.sack(200, 0, &[(1, 4)]).sends("r0 10");
        script.wakes(500).sends("r0");
        script
    };
    // The fifth was sent once, and comes late.
    let mut once = timeout_in_recovery();
    once.sack(501, 0, &[(1, 5)]).sends_nothing();
    assert_eq!(once.sender.counters.spurious, 0);
    let mut twice = timeout_in_recovery();
    twice.wakes(1_100).sends("r0");
    twice.sack(1_101, 0, &[(1, 5)]).sends("11 12 13");
    assert_eq!(twice.sender.counters.spurious, 1);
}

/// A loss that is forgiven before it was repaired is one that time never finds again (`tsorted_sent_queue`), so that the
/// timeout has to.
#[test]
fn what_was_lost_and_forgiven_waits_for_a_timeout() {
    let (mut script, _) = ten_in_flight();
    // Seven are lost at once, of which three are sent again.
    script.sack(200, 0, &[(7, 10)]).sends("r0 r1 r2");
    script.wakes(500).sends("r0");
    script.wakes(1_100).sends("r0");
    // The fifth was only late: the timeout counts as a mistake.
    script.sack(1_101, 0, &[(4, 5), (7, 10)]).sends("10 11 12 13");
    // New data arrives. Time tells of the retransmissions, and no more of those that were lost and never repaired.
    script.sack(1_201, 0, &[(4, 5), (7, 14)]).sends("r1");
    script.wakes(1_258).sends("r0");
    script.sack(1_301, 0, &[(1, 2), (4, 5), (7, 14)]).sends("r2");
    script.sack(1_401, 3, &[(4, 5), (7, 14)]).sends("14 15");
    script.sack(1_501, 3, &[(4, 5), (7, 16)]).sends("16 17");
}

/// Half of 11 segments: in whole ones (`tcp_reno_ssthresh`), where RFC 5681 counts bytes.
#[test]
fn a_loss_leaves_whole_segments() {
    let ssthresh = |profile| {
        let profile = StackProfile { mss: Bytes::new(MSS), initial_window: 11, ..profile };
        let mut script = Script::established(profile, Reno::default());
        script.sack(200, 0, &[(1, 4)]);
        script.sender.limits().ssthresh
    };
    assert_eq!(ssthresh(StackProfile::linux_6()), Bytes::new(5 * MSS));
    assert_eq!(ssthresh(StackProfile::rfc_6675()), Bytes::new(11 * MSS / 2));
}
