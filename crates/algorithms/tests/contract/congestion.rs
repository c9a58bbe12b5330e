//! Congestion controls, driven by the least of an endpoint.

use proptest::prelude::*;
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionKind, Delivery, Limits, Siblings,
};
use suimon_algorithms::registry::{AlgorithmSpec, CONGESTION, Role, WRAPPERS};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::endpoint::{Endpoint, event};
use super::{config, spec};

/// Every congestion control, and every wrapper over each of them.
fn congestion_controls() -> Vec<AlgorithmSpec> {
    let plain: Vec<_> = CONGESTION.iter().map(|(d, _)| d.name.to_owned()).collect();
    let wrapped = WRAPPERS.iter().flat_map(|(w, _)| plain.iter().map(|name| format!("{}+{name}", w.name)));
    plain.iter().cloned().chain(wrapped).map(|name| spec(Role::Congestion, &name)).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn limits_stay_sane_whatever_happens(
        segments in prop_oneof![4 => 1..100_u64, 1 => Just(1_000_000_000 / 1_448)],
        events in prop::collection::vec(event(), 1..400),
    ) {
        for spec in congestion_controls() {
            let mut endpoint = Endpoint::new(&spec, segments);
            for event in &events {
                endpoint.apply(event)?;
            }
        }
    }

    #[test]
    fn the_same_events_give_the_same_limits(
        segments in 1..100_u64,
        events in prop::collection::vec(event(), 1..200),
    ) {
        for spec in congestion_controls() {
            let history = || {
                let mut endpoint = Endpoint::new(&spec, segments);
                let limits = events.iter().map(|event| endpoint.apply(event).map(|()| endpoint.limits));
                limits.collect::<Result<Vec<_>, _>>()
            };
            prop_assert_eq!(history()?, history()?, "{}", spec);
        }
    }

    #[test]
    fn a_copy_goes_on_as_the_original(
        before in prop::collection::vec(event(), 0..100),
        after in prop::collection::vec(event(), 1..100),
    ) {
        for spec in congestion_controls() {
            let mut original = Endpoint::new(&spec, 10);
            before.iter().try_for_each(|event| original.apply(event))?;
            let mut copy = original.clone();
            after.iter().try_for_each(|event| original.apply(event))?;
            after.iter().try_for_each(|event| copy.apply(event))?;
            prop_assert_eq!(original.limits, copy.limits, "{}", spec);
        }
    }
}

/// The round trip of the path. Sprout forecasts for 100 ms, so on a path as long as that any window stays as it is.
fn base_rtt(name: &str) -> Duration {
    Duration::from_millis(if name.ends_with("sprout-ewma") { 40 } else { 100 })
}

/// Goodput over capacity on a path of `bdp` segments and [`base_rtt`] with a buffer of `buffer`, round by
/// round: a round that overflows the buffer loses what does not fit, and is a congestion event.
fn utilisation(spec: &AlgorithmSpec, bdp: u64, buffer: u64) -> f64 {
    const MSS: Bytes = Endpoint::MSS;
    let base_rtt = base_rtt(&spec.to_string());
    let mut algorithm = spec.build_congestion();
    let mut limits = Limits::initial(MSS * 2);
    algorithm.on_established(Instant::ZERO, &mut limits);
    let (mut now, mut snd_una, mut delivered) = (Instant::ZERO, 0, 0);
    let (mut in_recovery, mut rtt) = (false, base_rtt);
    let begin = Instant::ZERO + Duration::from_secs(20);
    let end = Instant::ZERO + Duration::from_secs(120);
    while now < end {
        let paced = limits.pacing.map_or(Bytes::MAX, |pacing| pacing.amount_in(rtt));
        let window = limits.cwnd.min(limits.space).min(paced).whole(MSS).max(1);
        let arriving = window.min(bdp + buffer);
        rtt = base_rtt.max(base_rtt * arriving / bdp);
        let begun = (now, snd_una);
        for segment in 1..=arriving {
            now += rtt / arriving;
            snd_una += MSS.get();
            let flight_size = MSS * (arriving - 1);
            let ack = Ack {
                now,
                newly_acked: MSS,
                delivered: MSS,
                marked: Bytes::ZERO,
                rtt: Some(rtt),
                snd_una,
                snd_nxt: snd_una + flight_size.get(),
                flight_size,
                prior_flight_size: MSS * arriving,
                snd_wnd: Bytes::new(1 << 30),
                mss: MSS,
                cwnd_limited: limits.cwnd <= limits.space,
                app_limited: false,
                in_recovery: in_recovery && segment < arriving,
                counting: AckCounting::PerAck,
                siblings: Siblings::default(),
            };
            // The delivery rate of the whole round, once it is over.
            if algorithm.models_delivery() && segment == arriving {
                algorithm.on_delivery(&Delivery {
                    total: Bytes::new(snd_una),
                    total_when_sent: Bytes::new(begun.1),
                    rate: Some(Rate::of(MSS * arriving, now.saturating_since(begun.0))),
                    app_limited: false,
                    rtt: Some(rtt),
                    ts_val: Some(now.saturating_since(Instant::ZERO).as_millis_f64() as u32),
                    next_departure: now,
                });
            }
            algorithm.on_ack(&ack, &mut limits);
            delivered += u64::from(begin <= now && now < end);
        }
        in_recovery = window > arriving;
        if in_recovery {
            let kind = CongestionKind::Loss;
            let snd_nxt = snd_una + (MSS * arriving).get();
            let used_window = MSS * window;
            let loss = Congestion { now, kind, flight_size: used_window, used_window, snd_nxt, mss: MSS };
            algorithm.on_congestion(&loss, &mut limits);
            limits.cwnd = limits.cwnd.min(limits.ssthresh);
        }
    }
    delivered as f64 * base_rtt.as_secs_f64() / (bdp as f64 * 100.0)
}

/// The least part of a path that one flow uses. CDG backs off within a few rounds of a growing queue, by three tenths: with
/// segments of a millisecond or two, at whatever length the queue has, and so before it could carry the flow over the cut.
/// TCP-LP takes its own queue for that of others, and halves its window for it.
fn least_use(name: &str) -> f64 {
    match name {
        _ if name.ends_with("cdg") => 0.75,
        _ if name.ends_with("lp") => 0.45,
        // It goes back to the window of a delay that it saw, which is a little less than the path's.
        _ if name.ends_with("verus") => 0.85,
        _ => 0.9,
    }
}

#[test]
fn one_flow_fills_nine_tenths_of_its_path() {
    for spec in congestion_controls() {
        for (bdp, buffer) in [(10, 10), (50, 50), (50, 500), (200, 200)] {
            let utilisation = utilisation(&spec, bdp, buffer);
            let least = least_use(&spec.to_string());
            assert!((least..1.01).contains(&utilisation), "{spec}, {bdp} + {buffer}: {utilisation}");
        }
    }
}
