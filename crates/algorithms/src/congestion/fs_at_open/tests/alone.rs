//! A flow that has a link of its own, and one that shares it.

use super::varying::variation;
use super::*;
use crate::congestion::fs_at_open::alone::Gaps;

const MS: u64 = 1_000;

/// Segments of a flow that leave at uneven times, as a link whose rate varies makes them, and wait for 40 ms each.
struct Segments {
    gaps: Gaps,
    sent: u64,
    acked: u64,
}

impl Segments {
    fn new() -> Self {
        Self { gaps: Gaps::default(), sent: 0, acked: 80 * MS }
    }

    /// `rounds` of sixteen, where others have `others` percent of a link on which a segment takes `takes` microseconds.
    fn pass(&mut self, rounds: u64, others: u64, takes: impl Fn(u64) -> u64) -> &mut Self {
        for round in 0..rounds {
            for nth in 0..16 {
                // On a slower link segments leave at longer distances too.
                let gap = [200, 2_600, 400, 7_000, 300, 1_500, 5_200, 800][nth % 8] * takes(round) / MS;
                self.sent += gap;
                self.acked += takes(round) + gap * others / 100;
                self.gaps.count(self.sent, self.acked, RTT_MIN);
            }
            self.gaps.end_round();
        }
        self
    }
}

/// What a flow knows after 64 rounds beside others with so many percent of the link.
fn beside(others: u64) -> Gaps {
    Segments::new().pass(64, others, |_| MS).gaps.clone()
}

#[test]
fn the_part_that_others_have_is_that_by_which_acknowledgements_follow_departures() {
    for (others, parts, is_less) in
        [(0, 100, true), (12, 8, true), (13, 8, false), (24, 4, true), (26, 4, false), (90, 2, false)]
    {
        assert_eq!(beside(others).others_have_less(parts), is_less, "{others} %, 1/{parts}");
    }
}

#[test]
fn thirty_two_rounds_of_four_pairs_tell_enough() {
    let mut segments = Segments::new();
    assert!(!segments.pass(31, 0, |_| MS).gaps.others_have_less(8));
    assert!(segments.pass(1, 0, |_| MS).gaps.others_have_less(8));
    // Three pairs a round never do.
    let mut gaps = Gaps::default();
    for nth in 0..400 {
        gaps.count(nth * nth * 20, 80 * MS + nth * MS, RTT_MIN);
        if nth % 3 == 2 {
            gaps.end_round();
        }
    }
    assert!(!gaps.others_have_less(8));
}

#[test]
fn a_rate_that_changes_from_round_to_round_is_not_taken_for_others() {
    let now_slow_now_fast = |round: u64| if round.is_multiple_of(2) { MS } else { 4 * MS };
    for (others, is_less) in [(0, true), (20, false)] {
        let mut segments = Segments::new();
        assert_eq!(
            segments.pass(64, others, now_slow_now_fast).gaps.others_have_less(8),
            is_less,
            "{others} %"
        );
    }
}

#[test]
fn who_shared_the_link_once_is_forgotten() {
    let mut segments = Segments::new();
    assert!(!segments.pass(64, 50, |_| MS).gaps.others_have_less(8));
    assert!(!segments.pass(60, 0, |_| MS).gaps.others_have_less(8));
    assert!(segments.pass(16, 0, |_| MS).gaps.others_have_less(8));
}

#[test]
fn a_segment_that_finds_the_queue_empty_tells_nothing() {
    // All leave later than those before them have left the queue, so others are not seen, nor their absence.
    let mut gaps = Gaps::default();
    for nth in 0..1_000 {
        gaps.count(nth * 10 * MS + nth % 7 * MS, 80 * MS + nth * 10 * MS, 3 * MS);
        if nth % 10 == 9 {
            gaps.end_round();
        }
    }
    assert!(!gaps.others_have_less(1));
}

#[test]
fn a_round_of_many_long_times_is_within_64_bits_and_longer_times_do_not_count() {
    let mut gaps = Gaps::default();
    for nth in 0..200_000 {
        gaps.count(nth * 1_000_000, nth * 1_000_000, 16_000_000);
    }
    gaps.end_round();
    // Departures of a flow that is alone, at distances that reach a second after 250 of them: sixteen rounds tell.
    let mut gaps = Gaps::default();
    for nth in 0..2_000 {
        gaps.count(nth * nth * 2_000, nth * MS, 16_000_000);
        if nth % 16 == 15 {
            gaps.end_round();
        }
    }
    assert!(!gaps.others_have_less(8), "times over a second tell nothing");
}

/// A flow with a window of `segments` over a link whose queue moves from `short` to `long` and back, beside others with so many
/// percent of it.
fn over(segments: u64, (short, long): (u64, u64), others: u64) -> (Open, Limits) {
    let (mut open, limits) = steady(segments);
    open.variation = variation(400, short, long);
    open.alone.gaps = beside(others);
    (open, limits)
}

#[test]
fn a_flow_is_alone_where_the_link_varies_and_others_have_less_than_an_eighth_and_stays_so_up_to_a_quarter() {
    let varying = (10 * MS, 50 * MS);
    // The queue moves by three tenths of its length, and by a tenth.
    let (calmer, steady) = ((30 * MS, 40 * MS), (30 * MS, 33 * MS));
    for (moves, others, begins, stays) in [
        (varying, 11, true, true),
        (varying, 14, false, true),
        (varying, 26, false, false),
        (calmer, 0, false, true),
        (steady, 0, false, false),
    ] {
        for (was_known, is_known) in [(false, begins), (true, stays)] {
            let (mut open, _) = over(40, moves, others);
            open.alone.is_known = was_known;
            open.judge_alone();
            assert_eq!(open.alone.is_known, is_known, "{moves:?}, {others} %, after {was_known}");
        }
    }
}

#[test]
fn the_link_of_a_flow_that_was_alone_varies_for_128_rounds_more() {
    let (mut open, _) = over(40, (10 * MS, 50 * MS), 0);
    open.judge_alone();
    assert!(open.alone.is_known);
    (open.variation, open.alone.gaps) = (variation(400, 30 * MS, 33 * MS), beside(50));
    let varied = (0..200).filter(|_| {
        open.judge_alone();
        open.varies()
    });
    assert_eq!(varied.count(), 127);
    assert!(!open.alone.is_known);
}

/// Acknowledges `count` segments a millisecond apart, with `queue` milliseconds of queue and the window in flight.
fn carry(open: &mut Open, limits: &mut Limits, from: u64, count: u64, queue: u64) {
    for nth in from..from + count {
        let flight = limits.cwnd.min(limits.space);
        let ack = Ack {
            now: at((1_000 + nth) * MS),
            rtt: Some(Duration::from_micros(RTT_MIN + queue * MS)),
            snd_una: nth * MSS.get(),
            snd_nxt: nth * MSS.get() + flight.get(),
            flight_size: flight,
            prior_flight_size: flight + MSS,
            ..ack(1)
        };
        open.on_ack(&ack, limits);
    }
}

#[test]
fn alone_the_window_is_fs_ats_limit_up_to_twice_what_arrives_in_the_smallest_round_trip() {
    // A segment per millisecond: 41 in 40 ms with the one that ends the interval. (8) has twice as many, and (7) comes down to
    // half way within each interval.
    for segments in [20, 300] {
        let (mut open, mut limits) = over(segments, (10 * MS, 50 * MS), 0);
        (open.alone.is_known, open.round.end) = (true, u64::MAX);
        carry(&mut open, &mut limits, 0, 800, 100);
        let window = open.window / MSS.get();
        assert!((60..=82).contains(&window), "{segments}: {window}");
        assert_eq!(limits.cwnd.get(), open.window);
    }
}

#[test]
fn alone_a_flow_drains_after_three_periods_without_a_round_trip_within_a_quarter_of_the_smallest() {
    for (is_known, queue, drains) in
        [(true, 10, false), (true, 11, true), (false, 10, true), (false, 1, false)]
    {
        let (mut open, mut limits) = over(60, (10 * MS, 50 * MS), 0);
        open.alone.is_known = is_known;
        open.drains.grown = u64::MAX / 2;
        carry(&mut open, &mut limits, 5_000, 1, queue);
        assert_eq!(open.is_drain_due(15_100 * MS), drains, "{is_known}, {queue} ms");
        // The last drain counts as such a round trip.
        open.drains.last = 2_000 * MS;
        assert_eq!(open.is_drain_due(16_100 * MS), drains && !is_known);
        assert_eq!(open.is_drain_due(17_100 * MS), drains);
    }
}

#[test]
fn alone_a_flow_remembers_the_path_while_round_trips_are_within_a_quarter_of_it() {
    for (is_known, queue, remembers) in [(true, 10, true), (true, 11, false), (false, 10, false)] {
        let (mut open, mut limits) = over(60, (10 * MS, 50 * MS), 0);
        open.alone.is_known = is_known;
        for seconds in 0..40 {
            // Drains that left a queue tell of no others here.
            (open.alone.is_known, open.drains.dirty) = (is_known, u64::from(is_known));
            carry(&mut open, &mut limits, seconds * 1_000, 1, queue);
            open.mode = Mode::Steady;
        }
        assert_eq!(open.path.rtt_min() == RTT_MIN, remembers, "{is_known}, {queue} ms");
    }
}

#[test]
fn alone_a_queue_that_comes_back_tells_of_nobody() {
    for is_known in [false, true] {
        let (mut open, _) = over(60, (30 * MS, 33 * MS), 0);
        (open.alone.is_known, open.longest) = (is_known, [100 * MS, 0]);
        let (full, rise) = ([90; 10], [50, 65, 70, 75, 80, 90]);
        let rounds = full.iter().chain(&rise).chain(&rise);
        let fills: Vec<_> = rounds.map(|q| open.others_fill(1, q * MS)).collect();
        assert_eq!(fills.contains(&true), !is_known);
    }
}
