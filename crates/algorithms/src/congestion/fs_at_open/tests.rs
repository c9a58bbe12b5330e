//! The open mode over a queue that it shares with flows like it, segment by segment.

use suimon_units::Rate;

use super::*;
use crate::congestion::cubic;
use crate::congestion::testing::{MSS, ack, loss};

mod alone;
mod drains;
mod late_comers;
mod reverse;
mod rivals;
mod trials;
mod varying;

const RTT_MIN: u64 = 40_000;

type Open = FsAtOpen<Box<dyn CongestionControl>>;

fn open() -> Open {
    let inner = cubic::build(&Arguments::defaults(cubic::DESCRIPTION.parameters));
    FsAtOpen::new(inner, true, Duration::from_secs(5))
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// A flow in the steady mode with a window of `segments`, which knows the path.
fn steady(segments: u64) -> (Open, Limits) {
    let mut open = open();
    open.path.sample(0, RTT_MIN, 5_000_000);
    open.mode = Mode::Steady;
    open.window = (MSS * segments).get();
    let window = MSS * segments;
    (open, Limits { ssthresh: window, ..Limits::initial(window) })
}

/// Equation (2) where (1) rests: x q^3 = mss K.
fn rests_at(flows: u64, segments_per_ms: f64) -> f64 {
    libm::cbrt(flows as f64 * 1_200.0 / segments_per_ms)
}

/// Windows that share a link of `rate` segments per millisecond in rounds, as a fluid, until they rest; with the
/// queueing delay in milliseconds.
fn shared(windows: &[u64], rate: f64) -> (Vec<f64>, f64) {
    let mut flows: Vec<_> = windows.iter().map(|segments| steady(*segments).0).collect();
    let mut queueing = 0.0;
    for _ in 0..3_000 {
        let sum: u64 = flows.iter().map(|flow| flow.window).sum();
        let rtt = (sum as f64 / MSS.as_f64() / rate).max(40.0);
        queueing = rtt - 40.0;
        let low = (rtt * 1_000.0) as u64;
        flows.iter_mut().for_each(|flow| flow.move_window(MSS.get(), low, low - RTT_MIN));
    }
    (flows.iter().map(|flow| flow.window as f64 / MSS.as_f64()).collect(), queueing)
}

#[test]
fn the_queue_grows_with_the_cube_root_of_the_flows_and_all_get_the_same() {
    // 10 Mbit/s in segments of 1500 bytes.
    let rate = 10e6 / 8.0 / 1_500.0 / 1_000.0;
    for (windows, flows) in [(vec![40], 1), (vec![1, 39], 2), (vec![30, 2, 2, 2, 9, 60, 1, 1], 8)] {
        let (windows, queueing) = shared(&windows, rate);
        let expected = rests_at(flows, rate);
        assert!((queueing / expected - 1.0).abs() < 0.02, "{flows}: {queueing} ms, {expected} ms");
        let mean = windows.iter().sum::<f64>() / windows.len() as f64;
        assert!(windows.iter().all(|window| (window / mean - 1.0).abs() < 0.02), "{windows:?}");
    }
}

/// 29 segments more than fit: a quarter of them goes in one round.
#[test]
fn a_round_moves_a_quarter_of_the_way() {
    let (mut open, _) = steady(100);
    // q = 40 ms: half of the window fits, and 1200 / 1600 segments of backlog.
    open.move_window(MSS.get(), 2 * RTT_MIN, RTT_MIN);
    let expected = 100.0 - (100.0 - 50.75) / 4.0;
    assert!((open.window as f64 / MSS.as_f64() - expected).abs() < 0.01);
    // Without a queue: up by a quarter of the window.
    let (mut open, _) = steady(100);
    open.move_window(MSS.get(), RTT_MIN, 0);
    assert_eq!(open.window, (MSS * 125).get());
}

#[test]
fn a_window_that_moves_one_way_while_the_queue_stays_moves_faster_from_the_fourth_round_on() {
    let mut course = Course::default();
    let fast: Vec<_> = (0..12).map(|_| course.eighths(true, 10_000, 200_000)).collect();
    assert_eq!(fast, [2, 2, 2, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
    for (grows, q) in [(false, 10_000), (true, 10_626)] {
        assert_eq!(course.clone().eighths(true, 10_625, 200_000), 8);
        assert_eq!(course.clone().eighths(grows, q, 200_000), 2, "the way or the queue is another");
    }
    // Where the queue is a sixth and a quarter of the round trip, shares converge soon enough.
    assert_eq!((course.eighths(true, 10_000, 60_000), course.eighths(true, 10_000, 40_000)), (3, 2));
}

#[test]
fn a_loss_costs_an_eighth_where_the_queue_is_longest_and_nothing_elsewhere() {
    for (q, left) in [(9_000, 700), (8_000, 800)] {
        let (mut open, mut limits) = steady(800);
        open.longest = [12_000, 0];
        open.round.sample(RTT_MIN + q);
        open.on_congestion(&loss(800), &mut limits);
        assert_eq!(open.window, (MSS * left).get(), "{q}");
        assert_eq!(limits.ssthresh, MSS * 800, "recovery leaves the window alone");
    }
}

#[test]
fn a_mark_always_costs_an_eighth() {
    let (mut open, mut limits) = steady(80);
    open.on_congestion(&Congestion { kind: CongestionKind::Ecn, ..loss(80) }, &mut limits);
    assert_eq!(limits.ssthresh, MSS * 70);
}

/// Acknowledges rounds of `flight` segments that show `rtt`, from `now` to `until`; gives the modes seen.
fn play(
    open: &mut Open,
    limits: &mut Limits,
    (mut now, until): (u64, u64),
    rtt: impl Fn(u64) -> u64,
) -> Vec<Mode> {
    let mut modes = Vec::new();
    let mut una = now;
    while now < until {
        let flight = limits.cwnd.min(limits.space).whole(MSS).clamp(1, 40);
        let round_trip = rtt(flight);
        for _ in 0..flight {
            now += round_trip / flight;
            una += MSS.get();
            let ack = Ack {
                now: at(now),
                rtt: Some(Duration::from_micros(round_trip)),
                snd_una: una,
                snd_nxt: una + (MSS * flight).get(),
                flight_size: MSS * (flight - 1),
                prior_flight_size: MSS * flight,
                ..ack(1)
            };
            open.on_ack(&ack, limits);
            if modes.last() != Some(&open.mode) {
                modes.push(open.mode);
            }
        }
    }
    modes
}

#[test]
fn without_a_short_round_trip_a_flow_leaves_the_queue_after_five_seconds_and_comes_back() {
    let (mut open, mut limits) = steady(40);
    play(&mut open, &mut limits, (0, 5_050_000), |_| RTT_MIN + 12_000);
    assert!(matches!(open.mode, Mode::Draining(_)), "{:?}", open.mode);
    let window = open.window;
    assert!(limits.space < Bytes::new(open.rcv_bytes / 2), "{}", limits.space);
    let is_over = (0..20).any(|step| {
        let from = 5_100_000 + 10_000 * step;
        play(&mut open, &mut limits, (from, from + 10_000), |_| RTT_MIN);
        open.mode == Mode::Steady
    });
    assert!(is_over, "{:?}", open.mode);
    assert_eq!(open.window, window);
}

/// Each flow of a queue on another path: the round trip is longer by 60 ms whatever the window is.
#[test]
fn a_round_trip_that_is_longer_at_once_and_stays_while_the_window_halves_is_another_paths() {
    let (mut open, mut limits) = steady(40);
    play(&mut open, &mut limits, (0, 1_000_000), |_| RTT_MIN + 5_000);
    let window = open.window;
    play(&mut open, &mut limits, (1_000_000, 2_200_000), |_| RTT_MIN + 60_000);
    assert_eq!((open.path.rtt_min(), open.mode), (RTT_MIN + 60_000, Mode::Steady));
    assert!(open.window >= window / 2, "it is known before the window is much below half");
}

#[test]
fn a_full_queue_stays_the_same_too_but_it_loses_segments() {
    let (mut open, mut limits) = steady(40);
    play(&mut open, &mut limits, (0, 1_000_000), |_| RTT_MIN + 5_000);
    for step in 0..12 {
        let from = 1_000_000 + 100_000 * step;
        let lost =
            Ack { delivered: Bytes::ZERO, prior_flight_size: MSS * 10, flight_size: Bytes::ZERO, ..ack(1) };
        open.round.count(&lost);
        play(&mut open, &mut limits, (from, from + 100_000), |_| RTT_MIN + 60_000);
    }
    assert_eq!(open.path.rtt_min(), RTT_MIN);
}

#[test]
fn a_round_trip_that_grows_slowly_or_moves_or_is_a_little_longer_is_a_queue() {
    let slowly = |now: u64| now / 25;
    let moves = |now: u64| if now < 1_000_000 { 5_000 } else { 60_000 + now % 1_000_000 / 40 };
    let little = |now: u64| if now < 1_000_000 { 5_000 } else { 14_000 };
    for queueing in [&slowly as &dyn Fn(u64) -> u64, &moves, &little] {
        let (mut open, mut limits) = steady(40);
        for step in 0..40 {
            let from = step * 100_000;
            play(&mut open, &mut limits, (from, from + 100_000), |_| RTT_MIN + queueing(from));
        }
        assert!(open.path.rtt_min() <= RTT_MIN + 1_000, "{}", open.path.rtt_min());
    }
}

#[test]
fn a_drain_takes_four_times_the_backlog_out_and_leaves_a_quarter_at_least() {
    for (q, left) in [(1_000, 370), (5_000, 250), (9_000, 130), (10_000, 100), (30_000, 100)] {
        let (mut open, _) = steady(400);
        open.rcv_bytes = (MSS * 400).get();
        open.round.sample(RTT_MIN + q);
        open.begin_drain(&ack(1), false, false);
        let Mode::Draining(drain) = open.mode else { panic!("{:?}", open.mode) };
        assert_eq!(drain.target, (MSS * left).get(), "{q}");
    }
}

#[test]
fn slow_start_goes_on_in_a_recovery_from_the_radios_loss_and_in_no_other() {
    for (q, grown) in [(0, 1), (RTT_MIN, 0)] {
        let (mut open, mut limits) = (open(), Limits::initial(MSS * 10));
        open.path.sample(0, RTT_MIN, 5_000_000);
        open.round.sample(RTT_MIN + q);
        open.on_congestion(&loss(10), &mut limits);
        let before = limits.cwnd;
        let recovering = Ack { in_recovery: true, newly_acked: Bytes::ZERO, ..ack(1) };
        open.on_ack(&recovering, &mut limits);
        assert_eq!(limits.cwnd, before + MSS * grown, "{q}");
        open.on_ack(&Ack { newly_acked: Bytes::ZERO, ..ack(1) }, &mut limits);
        open.on_ack(&recovering, &mut limits);
        assert_eq!(limits.cwnd, before + MSS * grown, "the recovery is over");
    }
}

#[test]
fn three_drains_that_leave_the_queue_long_bring_competition_and_one_that_empties_it_ends_it() {
    let (mut open, mut limits) = steady(40);
    let modes = play(&mut open, &mut limits, (0, 13_500_000), |_| RTT_MIN + 90_000);
    assert_eq!(open.mode, Mode::Competing, "{modes:?}");
    assert_eq!(limits.space, Bytes::MAX);
    let drains = modes.windows(2).filter(|two| two[0] == Mode::Steady && two[1] != Mode::Steady).count();
    assert_eq!(drains, 3);
    // The first loss after three seconds begins a drain.
    open.on_congestion(&Congestion { now: at(17_000_000), ..loss(40) }, &mut limits);
    assert!(limits.cwnd < MSS * 40, "the algorithm below answers");
    play(&mut open, &mut limits, (17_000_000, 17_800_000), |_| RTT_MIN);
    assert_eq!(open.mode, Mode::Holding);
    let mut full = open.clone();
    play(&mut full, &mut limits.clone(), (17_800_000, 19_000_000), |_| RTT_MIN + 90_000);
    assert_eq!(full.mode, Mode::Competing, "the queue is full again although the window was held");
    play(&mut open, &mut limits, (17_800_000, 60_000_000), |_| RTT_MIN);
    assert_eq!(open.mode, Mode::Steady);
    let (mut alone, mut limits) = steady(40);
    alone.compete = false;
    play(&mut alone, &mut limits, (0, 13_500_000), |_| RTT_MIN + 90_000);
    assert_ne!(alone.mode, Mode::Competing);
}

#[test]
fn drains_that_leave_a_small_part_of_the_longest_queue_tell_of_nobody_else() {
    for (longest, competes) in [(719_000, true), (900_000, false)] {
        let (mut open, mut limits) = steady(40);
        open.longest = [longest, longest];
        let modes = play(&mut open, &mut limits, (0, 13_500_000), |_| RTT_MIN + 90_000);
        assert_eq!(modes.contains(&Mode::Competing), competes, "{longest}");
    }
}

#[test]
fn a_longer_route_is_the_path_after_three_periods() {
    let (mut open, mut limits) = steady(40);
    open.compete = false;
    play(&mut open, &mut limits, (0, 16_000_000), |_| 2 * RTT_MIN);
    assert_eq!(open.path.rtt_min(), 2 * RTT_MIN);
}

#[test]
fn another_path_is_measured_anew_and_the_window_stays() {
    let (mut open, mut limits) = steady(40);
    play(&mut open, &mut limits, (0, 13_500_000), |_| RTT_MIN + 90_000);
    assert_eq!(open.mode, Mode::Competing);
    limits.cwnd = MSS * 33;
    open.forget_path(&limits);
    assert_eq!((open.mode, open.window, open.path.rtt_min()), (Mode::Steady, (MSS * 33).get(), 0));
    play(&mut open, &mut limits, (13_500_000, 13_600_000), |_| 3 * RTT_MIN);
    assert_eq!(open.path.rtt_min(), 3 * RTT_MIN);
    assert_eq!(open.mode, Mode::Steady, "the first round trip on the new path is its smallest");
}
