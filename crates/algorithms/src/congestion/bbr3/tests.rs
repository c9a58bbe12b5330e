//! The state machine on a path of one segment per millisecond; numbers are the draft's, or follow from its pseudocode.

use super::*;
use crate::congestion::testing::{self, MSS, at, loss};

type Path = testing::Path<Bbr3>;

const RATE: Rate = Path::RATE;
const BDP: u64 = Path::BDP;

impl Path {
    fn in_startup(flight: u64) -> Self {
        Self::new(Bbr3::new(Duration::from_secs(5), Duration::from_millis(200), 0.02), flight)
    }

    fn in_cruise() -> Self {
        let mut path = Self::in_startup(BDP);
        path.until(State::Cruise);
        path
    }

    /// Goes on until the flow is in `state`; gives the milliseconds that it took.
    fn until(&mut self, state: State) -> u64 {
        let begun = self.millis;
        while self.cc.state != state {
            self.ack(0);
            assert!(self.millis < begun + 10_000, "still {:?}, not {state:?}", self.cc.state);
        }
        self.millis - begun
    }
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more_and_drains_to_one_product() {
    let mut path = Path::in_startup(140);
    assert!((path.cc.state.pacing_gain() - 4.0 * core::f64::consts::LN_2).abs() < 1e-12);
    path.until(State::Drain);
    // The first round sets the rate, three more do not raise it.
    assert_eq!(path.cc.rounds.count, 4);
    path.flight = 52;
    path.ack(0);
    assert_eq!((path.cc.state, path.cc.state.pacing_gain()), (State::Drain, 0.5));
    path.flight = 51;
    path.ack(0);
    // Down ends with the same ACK: the flight is that of one product.
    assert_eq!((path.cc.state, State::Down.pacing_gain()), (State::Cruise, 0.9));
}

#[test]
fn drain_gives_up_after_three_rounds() {
    let mut path = Path::in_startup(140);
    path.until(State::Drain);
    let begun = path.cc.rounds.count;
    path.until(State::Down);
    assert_eq!(path.cc.rounds.count, begun + 4);
}

#[test]
fn the_cycle_probes_after_as_many_rounds_as_reno_would_take_for_three_rounds() {
    let mut path = Path::in_cruise();
    path.cc.probe_rtt_interval = Duration::from_secs(3_600);
    path.until(State::Refill);
    assert_eq!(path.limits.cwnd.whole(MSS), 2 * BDP + 1, "twice the product, and the segment of an ACK");
    let refilled = path.until(State::Up);
    assert!((BDP..=BDP + 1).contains(&refilled), "{refilled}");
    assert_eq!(path.cc.state.pacing_gain(), 1.25);
    for _ in 0..20 {
        path.ack(0);
    }
    // 2.25 products, a segment of aggregation, and two for the probe.
    assert_eq!(path.limits.cwnd.whole(MSS), BDP * 9 / 4 + 3);
    let up = 20 + path.until(State::Down);
    assert!((3 * BDP..=3 * BDP + 3).contains(&up), "three rounds without growth: {up}");
    let begun = path.millis;
    path.until(State::Refill);
    // 49 or 50 rounds, or two to three seconds.
    assert!((2_000..=2_550).contains(&(path.millis - begun)), "{}", path.millis - begun);
}

#[test]
fn after_five_seconds_half_a_product_is_in_flight_for_200_ms() {
    let mut path = Path::in_cruise();
    path.until(State::ProbeRtt);
    // The first sample came after a millisecond.
    assert_eq!(path.millis, 5_002);
    assert_eq!(path.limits.cwnd, MSS * BDP / 2);
    path.flight = BDP / 2 + 1;
    let held = path.until(State::Cruise);
    assert_eq!(held, 202);
    assert!(path.limits.cwnd >= MSS * (BDP - 1), "{:?}", path.limits.cwnd);
    path.flight = BDP;
    assert!(path.until(State::ProbeRtt) > 4_700, "five seconds behind the last");
}

#[test]
fn losses_while_cruising_bound_rate_and_flight_by_what_is_delivered_or_seven_tenths() {
    // (rate while losses come, bound on the rate): what is delivered, and no less than 0.7 of the maximum.
    for (rate, bound) in [(0.9, 0.9), (0.5, 0.7)] {
        let mut path = Path::in_cruise();
        (0..2 * BDP).for_each(|_| path.ack(0));
        let cwnd = path.limits.cwnd;
        path.rate = RATE.scaled(rate);
        // The maximum of the round that was under way counts until it is over.
        path.cc.bounds.reset_signals();
        path.ack(2);
        (0..=BDP).for_each(|_| path.ack(0));
        assert_eq!(path.cc.bounds.bw_shortterm, RATE.scaled(bound), "{rate}");
        assert_eq!(path.cc.bounds.inflight_shortterm, Bytes::from_f64(cwnd.as_f64() * 0.7));
        path.until(State::Refill);
        assert_eq!(path.cc.bounds.bw_shortterm, Rate::MAX, "a new probe forgets them");
    }
}

#[test]
fn a_probe_that_loses_more_than_a_fiftieth_sets_the_long_term_bound_and_the_next_one_is_careful() {
    let mut path = Path::in_cruise();
    path.until(State::Up);
    (0..10).for_each(|_| path.ack(0));
    // One of fifty is two hundredths, and no more than that.
    path.ack(1);
    assert_eq!(path.cc.state, State::Up);
    path.ack(1);
    assert_eq!(path.cc.state, State::Down);
    assert!(path.cc.cycle.prev_probe_too_high);
    // 49 in flight before the second, one lost among them: (0.02 * 49 - 1) / 0.98 more.
    let expected = (49.0 + (0.02 * 49.0 - 1.0) / 0.98) * MSS.as_f64();
    assert_eq!(path.cc.bounds.inflight_longterm, Bytes::from_f64(expected));
    path.until(State::Up);
    path.flight = BDP + 1;
    path.ack(0);
    assert_eq!(path.cc.state, State::Down, "the flight is back at the bound");
    // Nothing was lost, so it refills after a round and goes on.
    let waited = path.until(State::Refill);
    assert!(waited <= BDP + 2, "{waited}");
}

#[test]
fn six_losses_in_a_round_of_recovery_end_startup() {
    for (losses, ends) in [(5, false), (6, true)] {
        let mut path = Path::in_startup(BDP);
        (0..60).for_each(|_| path.ack(0));
        let event = Congestion { snd_nxt: u64::MAX, ..loss(BDP) };
        path.cc.on_congestion(&event, &mut path.limits);
        path.cc.bounds.reset_signals();
        (0..losses).for_each(|_| path.ack(1));
        (losses..BDP + 2).for_each(|_| path.ack(0));
        assert_eq!(path.cc.full_pipe.reached, ends, "{losses}");
        if ends {
            assert_eq!(path.cc.bounds.inflight_longterm, MSS * BDP);
        }
    }
}

#[test]
fn a_spurious_loss_restores_bounds_and_state() {
    let mut path = Path::in_cruise();
    path.until(State::Up);
    (0..10).for_each(|_| path.ack(0));
    path.ack(3);
    assert_eq!(path.cc.state, State::Down);
    path.cc.on_spurious(at(path.millis), &mut path.limits);
    assert_eq!((path.cc.state, path.cc.bounds.inflight_longterm), (State::Refill, Bytes::MAX));
}
