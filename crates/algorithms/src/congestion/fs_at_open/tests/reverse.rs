//! Acknowledgements that wait behind traffic the other way.

use super::*;

const MS: u64 = 1_000;

/// A peer's clock, which starts at `first` and ticks once in `tick` microseconds.
#[derive(Clone, Copy)]
struct Clock {
    first: u32,
    tick: u64,
}

impl Clock {
    const USUAL: Self = Self { first: 7, tick: MS };

    fn shows(self, at: u64) -> u32 {
        self.first.wrapping_add((at / self.tick) as u32)
    }
}

/// A flow with a window of 40 segments, whose handshake took [`RTT_MIN`].
fn connected(clock: Option<Clock>) -> (Open, Limits) {
    let (mut open, limits) = steady(40);
    let ts_val = clock.map(|clock| clock.shows(0));
    open.on_delivery(&Delivery { rtt: Some(Duration::from_micros(RTT_MIN)), ..delivery(at(0), ts_val, 0) });
    (open, limits)
}

fn delivery(now: Instant, ts_val: Option<u32>, total: u64) -> Delivery {
    Delivery {
        total: Bytes::new(total),
        total_when_sent: Bytes::ZERO,
        rate: None,
        app_limited: false,
        rtt: None,
        ts_val,
        next_departure: now,
    }
}

/// Segments of a flow with `flight` in flight are acknowledged each `gap` from `now` to `until`. An acknowledgement waits for
/// `wait` on its way, data for `queued`.
fn acknowledge(
    open: &mut Open,
    limits: &mut Limits,
    clock: Option<Clock>,
    (from, until, gap): (u64, u64, u64),
    (queued, wait): (u64, u64),
) {
    let flight = 40;
    for now in (from..until).step_by(gap as usize) {
        let ts_val = clock.map(|clock| clock.shows(now - wait));
        let una = now / gap * MSS.get();
        let ack = Ack {
            now: at(now),
            rtt: Some(Duration::from_micros(RTT_MIN + queued + wait)),
            snd_una: una,
            snd_nxt: una + (MSS * flight).get(),
            flight_size: MSS * (flight - 1),
            prior_flight_size: MSS * flight,
            ..ack(1)
        };
        open.on_delivery(&delivery(at(now), ts_val, una));
        open.on_ack(&ack, limits);
    }
}

#[test]
fn a_wait_on_the_way_back_is_no_queue_where_the_peer_tells_its_time() {
    let window_after = |clock: Option<Clock>| {
        let (mut open, mut limits) = connected(clock);
        acknowledge(&mut open, &mut limits, clock, (100 * MS, 1_000 * MS, MS), (0, 60 * MS));
        assert_eq!(open.path.rtt_min(), RTT_MIN);
        (open.queueing, open.window)
    };
    let (queueing, window) = window_after(Some(Clock::USUAL));
    assert!(queueing < 2 * MS && window > (MSS * 40).get(), "{queueing} us, {window} bytes");
    // The peer's clock may wrap meanwhile.
    assert_eq!(window_after(Some(Clock { first: u32::MAX - 300, tick: MS })), (queueing, window));
    let (queueing, window) = window_after(None);
    assert!(queueing == 60 * MS && window < (MSS * 40).get(), "{queueing} us, {window} bytes");
}

#[test]
fn what_the_peer_has_does_not_count_against_the_window() {
    let clock = Some(Clock::USUAL);
    let (mut open, mut limits) = connected(clock);
    acknowledge(&mut open, &mut limits, clock, (100 * MS, 101 * MS, MS), (0, 81 * MS));
    // The clock's last tick may have been just before, so a millisecond of the wait is not known.
    let waits = (MSS * 40).get() * 80 / 40;
    // Nor are the 10 us that the clocks may have drifted apart.
    assert!(limits.space.get().abs_diff((MSS * 40).get() + waits) < 20, "{:?}", limits.space);
    assert_eq!(limits.cwnd, limits.space);
    assert!(open.forward_part(limits.cwnd).abs_diff((MSS * 40).get()) < 20);
    acknowledge(&mut open, &mut limits, clock, (102 * MS, 103 * MS, MS), (0, 0));
    assert_eq!(limits.space, MSS * 40);
}

#[test]
fn a_flow_paces_for_a_second_after_a_wait_and_until_it_competes() {
    let clock = Some(Clock::USUAL);
    let (mut open, mut limits) = connected(clock);
    acknowledge(&mut open, &mut limits, clock, (100 * MS, 101 * MS, MS), (0, 4 * MS));
    assert_eq!(limits.pacing, None, "a tenth of the path is little");
    acknowledge(&mut open, &mut limits, clock, (110 * MS, 111 * MS, MS), (0, 20 * MS));
    assert_eq!(limits.pacing, Some(Rate::of(MSS * 50, Duration::from_micros(RTT_MIN))));
    let mut rivalled = (open.clone(), limits);
    acknowledge(&mut open, &mut limits, clock, (1_200 * MS, 1_201 * MS, MS), (0, 0));
    assert_eq!(limits.pacing, None);
    let (open, limits) = &mut rivalled;
    open.begin_competition(&Ack { now: at(120 * MS), ..ack(1) }, 120 * MS, limits);
    assert_eq!((open.mode, limits.pacing), (Mode::Competing, None));
    // A held window paces too, until it meets a full queue.
    open.mode = Mode::Holding;
    limits.pacing = Some(Rate::from_bps(1));
    open.low = RTT_MIN + 80 * MS;
    open.on_congestion(&loss(40), limits);
    assert_eq!((open.mode, limits.pacing), (Mode::Competing, None));
}

#[test]
fn a_clock_that_ticks_otherwise_is_not_believed() {
    for tick in [4 * MS, 10 * MS, 100 * MS] {
        let clock = Some(Clock { first: 7, tick });
        let (mut open, mut limits) = connected(clock);
        acknowledge(&mut open, &mut limits, clock, (100 * MS, 1_000 * MS, MS), (12 * MS, 0));
        // The handshake's time is void, since the clock was believed in for some time.
        assert_eq!((open.path.rtt_min(), open.queueing), (RTT_MIN + 12 * MS, 0), "{tick}");
        assert_eq!((open.received(), limits.pacing), (0, None));
    }
    // A quicker one says that the way becomes shorter and shorter, from which nothing follows.
    let clock = Some(Clock { first: 7, tick: 1 });
    let (mut open, mut limits) = connected(clock);
    acknowledge(&mut open, &mut limits, clock, (100 * MS, 1_000 * MS, MS), (12 * MS, 0));
    assert_eq!((open.path.rtt_min(), open.queueing), (RTT_MIN, 12 * MS));
}

#[test]
fn clocks_may_drift_apart_by_a_hundred_parts_in_a_million() {
    let waits_at_most = |parts: u64| {
        let mut way_back = WayBack::default();
        let mut longest = 0;
        for now in (0..3_600_000 * MS).step_by(50_000) {
            way_back.hear(now, ((now - now / 1_000_000 * parts) / MS) as u32);
            longest = longest.max(way_back.wait());
        }
        longest
    };
    assert_eq!(waits_at_most(100), 0);
    assert!(waits_at_most(300) > 500 * MS, "such a clock is found out: no round trip takes as long");
}

#[test]
fn a_burst_of_acknowledgements_that_waited_tells_no_rate() {
    let clock = Some(Clock::USUAL);
    let (mut open, mut limits) = connected(clock);
    acknowledge(&mut open, &mut limits, clock, (100 * MS, 200 * MS, MS), (0, 0));
    let rate = open.rcv_bytes;
    assert!(rate.abs_diff((MSS * 40).get()) <= MSS.get(), "a segment each millisecond: {rate}");
    // Data goes on as before, but its acknowledgements of 100 ms come together, ten each millisecond.
    let (mut una, mut first) = (200 * MSS.get(), 200 * MS);
    for now in (300 * MS..310 * MS).step_by(100) {
        let wait = now - first;
        let rtt = Some(Duration::from_micros(RTT_MIN + wait));
        let flight = MSS * (40 + wait / MS);
        let snd_nxt = una + flight.get();
        let ack = Ack { now: at(now), rtt, snd_una: una, snd_nxt, flight_size: flight, ..ack(1) };
        open.on_delivery(&delivery(at(now), Some(Clock::USUAL.shows(first)), una));
        open.on_ack(&Ack { prior_flight_size: flight + MSS, ..ack }, &mut limits);
        (una, first) = (una + MSS.get(), first + MS);
    }
    assert!(open.rcv_bytes.abs_diff(rate) <= 2 * MSS.get(), "{} {rate}", open.rcv_bytes);
}

#[test]
fn beside_traffic_the_other_way_only_a_window_that_was_used_grows() {
    let (mut open, _) = steady(100);
    let (low, elapsed, mss) = (RTT_MIN, 100 * MS, MSS.get());
    open.round.delivered = 100 * mss;
    // 40 segments in a round trip: half as many again is more than a quarter and four segments.
    open.window = 60 * mss;
    open.limit_growth(30 * mss, mss, low, elapsed);
    assert_eq!(open.window, 54 * mss);
    open.window = 60 * mss;
    open.limit_growth(58 * mss, mss, low, elapsed);
    assert_eq!(open.window, 58 * mss, "it does not shrink by this");
}
