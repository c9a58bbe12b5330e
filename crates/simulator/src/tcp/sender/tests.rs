//! Packet scripts: the segments of a sender, their times, and its silences.

use suimon_algorithms::congestion::CongestionKind;
use suimon_algorithms::queue::Ecn;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_model::{AfterSilence, LossDetection, RecoveryAlgorithm, StackProfile};
use suimon_units::{Bytes, Duration, Rate};

use super::script::{MSS, Script, Steady, ms, profile};
use crate::tcp::Source;

fn reno() -> Box<dyn suimon_algorithms::congestion::CongestionControl> {
    AlgorithmSpec::parse(Role::Congestion, "reno").unwrap().build_congestion()
}

/// Ten segments in flight, window and all, under `profile` changed by `change`.
#[track_caller]
fn ten_in_flight(change: impl FnOnce(&mut StackProfile)) -> (Script, Steady) {
    let steady = Steady::default();
    let mut profile = profile();
    change(&mut profile);
    (Script::established(profile, steady.clone()), steady)
}

fn endless() -> Source {
    Source::new(None, None)
}

fn sized(bytes: u64) -> Source {
    Source::new(Some(Bytes::new(bytes)), None)
}

#[test]
fn data_follows_the_handshake_at_once() {
    let mut script = Script::new(profile(), Steady::default(), endless());
    script.opens(5).sends("syn");
    script.syn_ack(105, 5).sends("0 1 2 3 4 5 6 7 8 9");
    assert_eq!(script.sender.srtt(), Some(Duration::from_millis(100)));
}

#[test]
fn a_lost_syn_is_sent_again_after_one_second_and_then_after_two() {
    let mut script = Script::new(profile(), Steady::default(), endless());
    script.opens(0).sends("syn");
    script.wakes(1_000).sends("syn");
    script.wakes(3_000).sends("syn");
    script.wakes(7_000).sends("syn");
    assert_eq!(script.sender.counters.timeouts, 3);
    assert_eq!(script.sender.counters.window_cuts, 0);
}

#[test]
fn the_answer_to_a_syn_thought_lost_gives_the_round_trip_time_of_that_syn() {
    let mut script = Script::new(profile(), Steady::default(), endless());
    script.opens(0).sends("syn");
    script.wakes(1_000).sends("syn");
    script.syn_ack(1_500, 0).sends("0 1 2 3 4 5 6 7 8 9");
    assert_eq!(script.sender.srtt(), Some(Duration::from_millis(1_500)));
    script.syn_ack(2_500, 1_000).sends_nothing();
}

#[test]
fn without_timestamps_the_answer_to_a_syn_sent_twice_measures_nothing() {
    let profile = StackProfile { timestamps: false, ..profile() };
    let mut script = Script::new(profile, Steady::default(), endless());
    script.opens(0).sends("syn");
    script.wakes(1_000).sends("syn");
    script.syn_ack(1_100, 1_000).sends("0 1 2 3 4 5 6 7 8 9");
    assert_eq!(script.sender.srtt(), None);
    // RFC 6298 §5.7: the backed-off timeout stays in force.
    script.wakes(3_100).sends("r0");
}

#[test]
fn a_syn_that_is_sent_again_no_longer_offers_ecn_where_the_profile_falls_back() {
    for (ecn_fallback, expected) in [(true, Ecn::NotCapable), (false, Ecn::Capable)] {
        let profile = StackProfile { ecn: true, ecn_fallback, ..profile() };
        let mut script = Script::new(profile, Steady::default(), endless());
        script.opens(0).sends("syn");
        assert_eq!(script.sender.ecn, Ecn::Capable, "the first one offers it");
        script.wakes(1_000).sends("syn");
        assert_eq!(script.sender.ecn, expected);
    }
}

#[test]
fn a_syn_lost_twice_leaves_a_window_of_one_segment() {
    let mut script = Script::new(profile(), Steady::default(), endless());
    script.opens(0).sends("syn");
    script.wakes(1_000).sends("syn");
    script.wakes(3_000).sends("syn");
    script.syn_ack(3_100, 3_000).sends("0");
}

#[test]
fn slow_start_answers_each_segment_with_two_and_counts_bytes_up_to_its_limit() {
    let two = StackProfile { initial_window: 2, ..profile() };
    let mut script = Script::established(two, reno());
    script.ack(200, 1).sends("2 3");
    script.ack(201, 2).sends("4 5");
    script.ack(300, 4).sends("6 7 8 9");
}

#[test]
fn a_full_window_is_refilled_one_for_one() {
    let (mut script, _) = ten_in_flight(|_| {});
    script.ack(200, 1).sends("10");
    script.ack(202, 3).sends("11 12");
    script.ack(202, 3).sends_nothing();
}

#[test]
fn the_peers_window_is_never_overrun() {
    let mut script = Script::new(profile(), Steady::default(), endless());
    script.window = 2_500;
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0 1");
    script.ack(200, 1).sends("2");
    script.window = 3_000;
    script.ack(200, 2).sends("3 4");
    script.window = 1_000;
    script.ack(250, 3).sends_nothing();
    script.ack(251, 4).sends_nothing();
    script.ack(252, 5).sends("5");
}

#[test]
fn a_last_segment_may_be_short_and_completes_the_transfer() {
    let mut script = Script::new(profile(), Steady::default(), sized(2_300));
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0 1 2:300");
    script.ack(200, 2).sends_nothing();
    assert_eq!(script.sender.counters.event, None);
    script.ack(201, 3).sends_nothing();
    assert_eq!(script.sender.counters.event, Some(suimon_results::EventKind::Completed));
    assert_eq!((script.sender.timer(), script.sender.next_turn()), (None, None));
}

#[test]
fn a_transfer_of_one_byte_takes_one_segment() {
    let mut script = Script::new(profile(), Steady::default(), sized(1));
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0:1");
    script.ack(200, 1).sends_nothing();
    assert_eq!(script.sender.counters.event, Some(suimon_results::EventKind::Completed));
}

#[test]
fn the_third_selective_acknowledgement_triggers_a_fast_retransmit_and_the_first_two_new_data() {
    let (mut script, steady) = ten_in_flight(|_| {});
    script.sack(200, 0, &[(1, 2)]).sends("10");
    script.sack(201, 0, &[(1, 3)]).sends("11");
    assert!(steady.log.lock().unwrap().cuts.is_empty());
    script.sack(202, 0, &[(1, 4)]).sends("r0");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Loss]);
    assert_eq!(script.sender.limits().ssthresh, Bytes::new(5 * MSS));
}

#[test]
fn proportional_reduction_sends_one_segment_for_two_delivered_and_ends_at_ssthresh() {
    let (mut script, _) = ten_in_flight(|_| {});
    // Three of ten are delivered: one and a half may be sent.
    script.sack(200, 0, &[(1, 4)]).sends("r0");
    script.sack(201, 0, &[(1, 5)]).sends("10");
    script.sack(202, 0, &[(1, 6)]).sends_nothing();
    // The flight has come down to 5, and stays there.
    script.sack(203, 0, &[(1, 7)]).sends_nothing();
    script.sack(204, 0, &[(1, 8)]).sends("11");
    script.sack(205, 0, &[(1, 9)]).sends("12");
    script.sack(206, 0, &[(1, 10)]).sends("13");
    assert_eq!(script.sender.flight_size(), Bytes::new(5 * MSS));
    script.ack(300, 10).sends("14");
    assert_eq!(script.cwnd(), 5);
}

#[test]
fn rate_halving_gives_up_one_segment_for_two_acks() {
    let halving = RecoveryAlgorithm::RateHalving { floor_is_half: true };
    let (mut script, _) = ten_in_flight(|profile| profile.recovery = halving);
    script.sack(200, 0, &[(1, 2)]).sends("10");
    script.sack(201, 0, &[(1, 3)]).sends("11");
    // Two more SACKed and one lost leave 8 in flight, and the window is cut down to one more.
    script.sack(202, 0, &[(1, 4)]).sends("r0");
    script.sack(203, 0, &[(1, 5)]).sends_nothing();
    assert_eq!(script.cwnd(), 8);
    script.sack(204, 0, &[(1, 6)]).sends("12");
    script.sack(205, 0, &[(1, 7)]).sends_nothing();
    script.sack(206, 0, &[(1, 8)]).sends("13");
    assert_eq!(script.cwnd(), 7);
    script.ack(300, 12).sends("14 15 16");
    assert_eq!(script.cwnd(), 5, "at the end no more than ssthresh");
}

#[test]
fn rfc_6675_falls_silent_until_half_the_flight_has_left() {
    let (mut script, _) = ten_in_flight(|profile| profile.recovery = RecoveryAlgorithm::Rfc6675);
    script.sack(200, 0, &[(1, 2)]).sends("10");
    script.sack(201, 0, &[(1, 3)]).sends("11");
    script.sack(202, 0, &[(1, 4)]).sends("r0");
    for (at, end) in (203..).zip(5..9) {
        script.sack(at, 0, &[(1, end)]).sends_nothing();
    }
    script.sack(208, 0, &[(1, 9)]).sends("12");
    script.sack(209, 0, &[(1, 10)]).sends("13");
}

#[test]
fn a_partial_acknowledgement_keeps_recovery_going_without_a_second_cut() {
    let (mut script, steady) = ten_in_flight(|profile| profile.recovery = RecoveryAlgorithm::Rfc6675);
    // 0, 1 and 2 are lost.
    script.sack(200, 0, &[(3, 6)]).sends("r0");
    script.sack(201, 0, &[(3, 7)]).sends("r1");
    script.sack(202, 0, &[(3, 8)]).sends("r2");
    script.sack(300, 1, &[(3, 8)]).sends("10");
    script.sack(301, 2, &[(3, 8)]).sends("11");
    script.ack(302, 8).sends("12");
    assert_eq!(steady.log.lock().unwrap().cuts.len(), 1);
    script.ack(303, 10).sends("13 14");
    assert_eq!((script.cwnd(), script.sender.counters.retransmissions), (5, 3));
}

/// As ns-2's Reno: a second loss of the same window waits for the timeout, which begins anew behind the last ACK.
#[test]
fn without_sack_the_third_duplicate_ends_the_wait_for_one_loss_of_a_window_alone() {
    let (mut script, steady) = ten_in_flight(|profile| {
        profile.recovery = RecoveryAlgorithm::Rfc6675;
        profile.loss_detection = LossDetection::DuplicateAcks;
        profile.f_rto = false;
        profile.tail_loss_probe = false;
    });
    // 0 and 3 are lost. Each duplicate says that one segment more has arrived.
    script.ack(200, 0).sends("10");
    script.ack(201, 0).sends("11");
    script.ack(202, 0).sends("r0");
    for at in 203..207 {
        script.ack(at, 0).sends_nothing();
    }
    script.ack(207, 0).sends("12");
    script.ack(208, 0).sends("13");
    // The first new data ends recovery; duplicates for segment 3 are not news.
    script.ack(302, 3).sends_nothing();
    for at in 307..311 {
        script.ack(at, 3).sends_nothing();
    }
    script.wakes(602).sends("r3");
    // The receiver held the rest.
    script.ack(702, 14).sends("14");
    assert_eq!(script.sender.counters.retransmissions, 2);
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Loss, CongestionKind::Timeout]);
}

#[test]
fn a_loss_beyond_the_recovery_point_is_news() {
    let (mut script, steady) = ten_in_flight(|profile| profile.recovery = RecoveryAlgorithm::Rfc6675);
    script.sack(200, 0, &[(1, 10)]).sends("r0 10 11 12 13");
    script.ack(300, 10).sends("14");
    script.sack(310, 10, &[(11, 14)]).sends("r10");
    assert_eq!(steady.log.lock().unwrap().cuts.len(), 2);
}

#[test]
fn forward_acknowledgement_needs_distance_where_rfc_6675_needs_segments() {
    let (mut script, _) = ten_in_flight(|_| {});
    script.sack(200, 0, &[(5, 6)]).sends("10");
    let (mut script, _) = ten_in_flight(|profile| profile.loss_detection = LossDetection::Fack);
    script.sack(200, 0, &[(5, 6)]).sends("r0");
}

#[test]
fn the_short_tail_of_a_transfer_counts_as_a_segment() {
    let mut script = Script::new(profile(), Steady::default(), sized(3_100));
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0 1 2 3:100");
    script.sack(200, 0, &[(1, 2)]).sends_nothing();
    script.sack(201, 0, &[(1, 3)]).sends_nothing();
    script.sack(202, 0, &[(1, 4)]).sends("r0");
}

#[test]
fn a_lost_retransmission_is_noticed_when_later_segments_arrive() {
    let (mut script, steady) = ten_in_flight(|profile| profile.recovery = RecoveryAlgorithm::Rfc6675);
    script.sack(200, 0, &[(1, 10)]).sends("r0 10 11 12 13");
    script.sack(300, 0, &[(1, 11)]).sends("14");
    script.sack(301, 0, &[(1, 12)]).sends("15");
    script.sack(302, 0, &[(1, 13)]).sends("r0 16");
    assert_eq!(steady.log.lock().unwrap().cuts.len(), 1);
}

#[test]
fn a_stack_that_does_not_notice_waits_for_the_timeout() {
    let (mut script, _) = ten_in_flight(|profile| {
        profile.recovery = RecoveryAlgorithm::Rfc6675;
        profile.detects_lost_retransmissions = false;
    });
    script.sack(200, 0, &[(1, 10)]).sends("r0 10 11 12 13");
    for (at, end) in (300..).zip(11..15) {
        script.sack(at, 0, &[(1, end)]).sends(&(end + 3).to_string());
    }
    // The timer was started by the retransmission: 200 ms beyond the round-trip time of 100.
    script.wakes(500).sends("r0");
}

#[test]
fn silence_lasts_until_the_timeout_and_doubles_from_there() {
    let (mut script, steady) = ten_in_flight(|profile| profile.f_rto = false);
    // One sample of 100 ms: 100 + max(200, 4 * 50).
    script.wakes(400).sends("r0");
    script.wakes(1_000).sends("r0");
    script.wakes(2_200).sends("r0");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Timeout], "nothing got through between");
    assert_eq!((script.cwnd(), script.sender.counters.timeouts), (1, 3));
}

#[test]
fn after_a_timeout_everything_is_sent_again_in_slow_start() {
    let profile = StackProfile { f_rto: false, initial_window: 4, ..profile() };
    let mut script = Script::established(profile, reno());
    script.wakes(400).sends("r0");
    script.ack(500, 1).sends("r1 r2");
    script.ack(601, 2).sends("r3");
    // Beyond ssthresh: one more for the two acknowledged since.
    script.ack(602, 3).sends("4 5");
    assert_eq!(script.sender.limits().ssthresh, Bytes::new(2 * MSS));
}

#[test]
fn a_timeout_after_progress_is_news() {
    let (mut script, steady) = ten_in_flight(|profile| profile.f_rto = false);
    script.wakes(400).sends("r0");
    script.ack(500, 1).sends("r1");
    // The echo gave a sample, which ended the back-off: 100 ms and four times 38 are below the minimum.
    script.wakes(800).sends("r1");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Timeout; 2]);
}

#[test]
fn a_timeout_during_recovery_does_not_cut_the_same_flight_twice() {
    let (mut script, steady) = ten_in_flight(|profile| profile.recovery = RecoveryAlgorithm::Rfc6675);
    script.sack(200, 0, &[(1, 4)]).sends("r0");
    script.wakes(500).sends("r0");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Loss]);
    assert_eq!(script.sender.limits().ssthresh, Bytes::new(5 * MSS));
    assert_eq!(script.cwnd(), 1);
}

#[test]
fn a_lost_retransmission_is_noticed_after_a_timeout_too() {
    let (mut script, _) = ten_in_flight(|profile| profile.f_rto = false);
    script.sack(350, 0, &[(8, 9)]).sends("10");
    script.wakes(400).sends("r0");
    script.ack(500, 1).sends("r1");
    script.sender.limits.cwnd = Bytes::new(9 * MSS);
    script.sack(510, 1, &[(8, 9)]).sends("r2 r3 r4 r5 r6 r7 r9 r10");
    script.sack(600, 2, &[(8, 9)]).sends("11");
    // 2 got lost again; the segments sent behind it arrive.
    script.sack(601, 2, &[(3, 4), (8, 9)]).sends("12");
    script.sack(602, 2, &[(3, 9)]).sends("13 14 15 16");
    script.sack(700, 2, &[(3, 12)]).sends("17 18 19");
    script.sack(701, 2, &[(3, 13)]).sends("20");
    script.sack(702, 2, &[(3, 14)]).sends("r2 21");
}

#[test]
fn a_spurious_timeout_is_found_out_by_two_advances_and_the_window_restored() {
    let (mut script, steady) = ten_in_flight(|profile| profile.timestamps = false);
    script.wakes(400).sends("r0");
    assert_eq!(script.cwnd(), 1);
    script.ack(410, 1).sends("10");
    script.ack(411, 2).sends("11");
    assert_eq!(script.cwnd(), 10);
    assert_eq!(script.sender.limits().ssthresh, Bytes::MAX);
    assert_eq!(steady.log.lock().unwrap().cuts.len(), 1);
    assert_eq!((script.sender.counters.spurious, script.sender.counters.retransmissions), (1, 1));
}

#[test]
fn one_advance_tells_where_it_covers_what_was_sent_once() {
    let (mut script, _) = ten_in_flight(|profile| profile.timestamps = false);
    script.wakes(400).sends("r0");
    script.ack(410, 5).sends("10 11 12 13 14");
    assert_eq!((script.cwnd(), script.sender.counters.spurious), (10, 1));
}

#[test]
fn a_sack_of_what_was_sent_once_tells_too() {
    let (mut script, _) = ten_in_flight(|profile| profile.timestamps = false);
    script.wakes(400).sends("r0");
    script.sack(405, 0, &[(1, 2)]).sends("10");
    assert_eq!((script.cwnd(), script.sender.counters.spurious), (10, 1));
}

#[test]
fn timestamps_find_a_spurious_timeout_at_the_first_advance() {
    let (mut script, _) = ten_in_flight(|_| {});
    script.wakes(400).sends("r0");
    script.late_ack(410, 1, &[]).sends("10");
    assert_eq!((script.cwnd(), script.sender.counters.spurious), (10, 1));
}

#[test]
fn a_real_timeout_shows_when_the_probes_arrive_before_anything_else() {
    let mut script = Script::established(profile(), reno());
    script.wakes(400).sends("r0");
    script.ack(500, 1).sends("10 11");
    // The probe arrives, 1 does not.
    script.sack(600, 1, &[(10, 11)]).sends("r1");
    script.sack(601, 1, &[(10, 12)]).sends("r2");
    assert_eq!((script.cwnd(), script.sender.counters.spurious), (2, 0));
    // What was sent before the timeout tells no more.
    script.sack(602, 1, &[(5, 6), (10, 12)]).sends_nothing();
    assert_eq!((script.cwnd(), script.sender.counters.spurious), (2, 0));
}

#[test]
fn without_new_data_to_probe_with_retransmission_goes_on_at_once() {
    let mut script = Script::new(profile(), reno(), sized(4_000));
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0 1 2 3");
    script.wakes(400).sends("r0");
    script.ack(500, 1).sends("r1 r2");
    script.ack(600, 2).sends("r3");
}

#[test]
fn probes_pass_an_algorithms_own_limit() {
    let steady = Steady { space: Some(Bytes::new(4 * MSS)), ..Steady::default() };
    let mut script = Script::new(profile(), steady, endless());
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0 1 2 3");
    script.sender.limits.space = Bytes::ZERO;
    script.wakes(400).sends("r0");
    script.ack(500, 1).sends("4");
}

#[test]
fn space_holds_back_new_data_and_lets_retransmissions_pass() {
    let (mut script, steady) = ten_in_flight(|_| {});
    script.sender.limits.space = Bytes::new(4 * MSS);
    script.ack(200, 1).sends_nothing();
    script.ack(201, 2).sends_nothing();
    assert!(!steady.log.lock().unwrap().acks[1].cwnd_limited);
    script.sack(202, 2, &[(3, 6)]).sends("r2");
}

#[test]
fn reordering_is_found_out_by_the_echo_and_the_cut_undone() {
    let (mut script, _) = ten_in_flight(|_| {});
    script.sack(200, 0, &[(2, 5)]).sends("r0");
    script.sack(201, 0, &[(2, 6)]).sends_nothing();
    script.sack(202, 0, &[(2, 7)]).sends("r1");
    // The second copy is still out: the window stays as it is, and nothing more is sent again.
    script.late_ack(203, 1, &[(2, 7)]).sends("10");
    assert_eq!(script.sender.counters.spurious, 0);
    script.late_ack(204, 7, &[]).sends("11 12 13 14 15 16");
    assert_eq!((script.cwnd(), script.sender.counters.spurious), (10, 1));
    assert_eq!(script.sender.limits().ssthresh, Bytes::MAX);
    // As many segments above one that is late as last time prove nothing any more.
    script.sack(205, 7, &[(8, 13)]).sends("17 18 19 20 21");
    assert_eq!(script.sender.counters.window_cuts, 1);
}

#[test]
fn a_retransmission_that_was_needed_is_not_undone() {
    let (mut script, _) = ten_in_flight(|_| {});
    script.sack(200, 0, &[(1, 4)]).sends("r0");
    script.ack(300, 4).sends("10");
    assert_eq!(script.sender.counters.spurious, 0);
}

#[test]
fn one_mark_cuts_once_however_often_it_is_echoed() {
    let (mut script, steady) = ten_in_flight(|profile| {
        profile.ecn = true;
        profile.recovery = RecoveryAlgorithm::Rfc6675;
    });
    for up_to in 1..=5 {
        script.ecn_echo(200 + up_to, up_to).sends_nothing();
    }
    script.ecn_echo(206, 7).sends("10+ 11");
    script.ecn_echo(210, 10).sends("12 13 14");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Ecn]);
    assert_eq!(script.cwnd(), 5);
    script.ecn_echo(300, 11).sends_nothing();
    assert_eq!(steady.log.lock().unwrap().cuts.len(), 2);
}

/// Two segments in flight under Reno with ECN, whose window a mark leaves `mark_floor` segments at least.
#[track_caller]
fn two_in_flight(mark_floor: u32) -> Script {
    let recovery = RecoveryAlgorithm::Rfc6675;
    let profile = StackProfile { ecn: true, initial_window: 2, mark_floor, recovery, ..profile() };
    Script::established(profile, reno())
}

/// RFC 3168 §6.1.2: down to one segment.
#[test]
fn a_mark_halves_a_window_of_two_segments_where_the_stack_lets_it() {
    for floor in [1, 2] {
        let mut script = two_in_flight(floor);
        script.ecn_echo(200, 1);
        assert_eq!(script.cwnd(), u64::from(floor));
    }
}

#[test]
fn acks_that_echo_a_mark_do_not_grow_the_window_even_where_they_end_a_cut() {
    let mut script = two_in_flight(1);
    script.ecn_echo(200, 1).sends_nothing();
    script.ecn_echo(201, 2).sends("2+");
    assert_eq!(script.cwnd(), 1);
    // Back to ssthresh in slow start.
    script.ack(300, 3).sends("3 4");
}

#[test]
fn a_loss_is_announced_like_a_mark_so_that_the_receiver_stops_its_echo() {
    let (mut script, steady) = ten_in_flight(|profile| {
        profile.ecn = true;
        profile.recovery = RecoveryAlgorithm::Rfc6675;
    });
    script.sack(200, 0, &[(1, 10)]).sends("r0 10+ 11 12 13");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Loss]);
}

#[test]
fn a_loss_in_the_wake_of_a_mark_is_repaired_within_the_same_cut() {
    let (mut script, steady) = ten_in_flight(|profile| {
        profile.ecn = true;
        profile.recovery = RecoveryAlgorithm::Rfc6675;
    });
    script.ecn_echo(200, 1).sends_nothing();
    script.sack(201, 1, &[(2, 5)]).sends("r1");
    assert_eq!(steady.log.lock().unwrap().cuts, [CongestionKind::Ecn]);
    script.ack(300, 10).sends("10+ 11 12 13 14");
    assert_eq!(script.cwnd(), 5);
}

#[test]
fn an_application_that_has_nothing_to_send_keeps_the_window_as_it_is() {
    let profile = StackProfile { initial_window: 4, ..profile() };
    let mut script = Script::new(profile, reno(), Source::new(None, Some(Rate::from_bps(80_000))));
    script.opens(0).sends("syn");
    // 10 kB/s: a segment every 100 ms.
    script.syn_ack(100, 0).sends("0");
    script.wakes(200).sends("1");
    script.ack(200, 1).sends_nothing();
    script.wakes(300).sends("2");
    script.ack(300, 2).sends_nothing();
    assert_eq!(script.cwnd(), 4);
}

#[test]
fn what_held_the_sender_back_is_told() {
    let (mut script, steady) = ten_in_flight(|_| {});
    script.ack(200, 1).sends("10");
    script.window = 4 * MSS;
    script.application(201, |source, taken| source.pause(ms(201), taken)).sends_nothing();
    script.ack(202, 2).sends_nothing();
    let log = steady.log.lock().unwrap();
    assert!(log.acks[0].cwnd_limited && !log.acks[0].app_limited);
    assert!(!log.acks[1].cwnd_limited && log.acks[1].app_limited);
}

#[test]
fn silence_of_the_application_flushes_a_partial_segment() {
    let mut script =
        Script::new(profile(), Steady::default(), Source::new(None, Some(Rate::from_bps(80_000))));
    script.opens(0).sends("syn");
    script.syn_ack(20, 0).sends_nothing();
    script.application(50, |source, taken| source.pause(ms(50), taken)).sends("0:500");
    script.ack(80, 1).sends_nothing();
    assert_eq!(script.sender.next_turn(), None);
}

#[test]
fn after_a_pause_longer_than_the_timeout_the_initial_window_is_back() {
    let profile = StackProfile { initial_window: 2, ..profile() };
    let mut script = Script::established(profile, reno());
    script.ack(200, 2).sends("2 3 4 5");
    script.application(201, |source, taken| source.pause(ms(201), taken)).sends_nothing();
    script.ack(300, 6).sends_nothing();
    assert_eq!(script.cwnd(), 4, "the last ACK found the sender without data");
    script.application(450, |source, _| source.resume(ms(450))).sends("6 7 8 9");
    script.application(451, |source, taken| source.pause(ms(451), taken)).sends_nothing();
    script.ack(550, 10).sends_nothing();
    script.application(2_000, |source, _| source.resume(ms(2_000))).sends("10 11");
    assert_eq!(script.cwnd(), 2);
}

#[test]
fn as_in_linux_each_timeout_of_a_pause_halves_the_window_and_three_quarters_are_remembered() {
    for (resumes, left) in [(690, 16), (950, 8), (1_250, 4), (1_550, 2), (60_000, 2)] {
        let after_silence = AfterSilence::Rfc2861;
        let profile = StackProfile { initial_window: 2, after_silence, ..profile() };
        let mut script = Script::established(profile, reno());
        script.ack(200, 2).sends("2 3 4 5");
        script.ack(300, 6).sends("6 7 8 9 10 11 12 13");
        script.ack(400, 14).sends_something();
        script.application(401, |source, taken| source.pause(ms(401), taken)).sends_nothing();
        script.ack(500, 30).sends_nothing();
        script.sender.limits.ssthresh = Bytes::new(4 * MSS);
        script.application(resumes, |source, _| source.resume(ms(resumes))).sends_something();
        assert_eq!(script.cwnd(), left, "{resumes} ms");
        let (threshold, silent) = (script.sender.limits.ssthresh, left < 16);
        assert_eq!(threshold == Bytes::new(12 * MSS), silent, "{threshold:?} after {resumes} ms");
    }
}

#[test]
fn the_stack_paces_at_twice_the_window_per_round_trip_in_slow_start() {
    let profile = StackProfile { pacing: true, initial_window: 4, ..profile() };
    let mut script = Script::new(profile, reno(), endless());
    script.opens(0).sends("syn");
    // 8 kB in 80 ms: a segment of 1000 bytes every 10 ms.
    script.syn_ack(80, 0).sends("0");
    script.wakes(90).sends("1");
    script.wakes(100).sends("2");
    script.wakes(110).sends("3");
    script.wakes(120).sends_nothing();
}

#[test]
fn pacing_does_not_keep_slow_start_from_growing() {
    let growth = |pacing| {
        let profile = StackProfile { pacing, initial_window: 10, ..profile() };
        let mut script = Script::new(profile, reno(), endless());
        script.opens(0).sends("syn");
        script.syn_ack(100, 0).sends_something();
        // Acknowledgements come in pairs: the second finds the sender waiting for its turn.
        for acked in 1_u64..=20 {
            let at = 200 + acked.div_ceil(2) * 20;
            while let Some(turn) = script.sender.next_turn()
                && turn <= ms(at)
            {
                script.sender_turn(turn);
            }
            script.ack(at, acked).sends_something();
        }
        script.cwnd()
    };
    assert_eq!(growth(false), 30);
    assert_eq!(growth(true), 30);
}

#[test]
fn an_algorithms_rate_spaces_packets_whatever_the_stack_does() {
    // 1000 bytes at 800 kbit/s are 10 ms.
    let steady = Steady { pacing: Some(Rate::from_bps(800_000)), ..Steady::default() };
    let mut script = Script::new(profile(), steady, endless());
    script.opens(0).sends("syn");
    script.syn_ack(100, 0).sends("0");
    for nth in 1..10 {
        script.wakes(100 + 10 * nth).sends(&nth.to_string());
    }
    script.wakes(200).sends_nothing();
    script.ack(205, 1).sends("10");
    script.ack(206, 2).sends_nothing();
    script.wakes(215).sends("11");
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_ignored() {
    let (mut script, steady) = ten_in_flight(|_| {});
    script.sender.on_packet(
        ms(200),
        &crate::packet::Packet {
            seq: 11 * MSS,
            ..crate::packet::Packet::new(crate::packet::PacketKind::Ack, ms(200))
        },
        &crate::packet::Sack::new(),
        &mut Vec::new(),
    );
    assert!(steady.log.lock().unwrap().acks.is_empty());
    script.ack(200, 1).sends("10");
}

#[test]
fn round_trip_times_of_what_waited_behind_a_hole_are_not_taken() {
    let (mut script, steady) = ten_in_flight(|_| {});
    script.sack(200, 0, &[(1, 4)]).sends("r0");
    // The answers to 4..8 were lost; that to the retransmission covers them.
    script.ack(300, 8).sends_something();
    assert_eq!(steady.log.lock().unwrap().acks[1].rtt, None);
}
