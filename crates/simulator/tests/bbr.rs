//! BBR over whole paths: the rate, queue and sharing that its draft and the theory behind it give.

use crate::common::{link, scenario, tcp};
use suimon_results::{RunResult, Series};
use suimon_scenario::{Buffer, Loss, Record, Scenario};
use suimon_units::{Bytes, Duration, Probability, Rate};

const RATE: Rate = Rate::from_bps(10_000_000);
const SECOND: Duration = Duration::from_secs(1);
/// Packets of 1500 bytes that 10 Mbit/s carry in 40 ms.
const BDP: f64 = 10e6 * 0.04 / 8.0 / 1_500.0;
/// The payload's share of a packet.
const PAYLOAD: f64 = 1_448.0 / 1_500.0;

/// `flows` of `cc` over 10 Mbit/s, 40 ms and a buffer of 15 bandwidth-delay products.
fn deep(cc: &str, flows: u64) -> Scenario {
    let ms = Duration::from_millis;
    let links = vec![
        link("a", "b", RATE, ms(20), Buffer::Packets(500)),
        link("b", "a", RATE, ms(20), Buffer::Unbounded),
    ];
    let named = |nth| tcp(&format!("{cc}-{nth}"), ("a", "b"), cc, |_| {});
    let mut scenario = scenario(SECOND * 60, links, (0..flows).map(named).collect());
    scenario.record = Record { interval: Some(ms(10)), warmup: SECOND * 5, ..Record::default() };
    scenario
}

fn run(scenario: &Scenario) -> RunResult {
    suimon_simulator::run(scenario, &[])
}

/// Goodput of each flow as a share of the link's capacity.
fn shares(result: &RunResult) -> Vec<f64> {
    let capacity = RATE.as_bps_f64() * PAYLOAD;
    result.flows.iter().map(|flow| flow.goodput.as_bps_f64() / capacity).collect()
}

/// A column of `series` with the time of each value in seconds.
fn column(series: &Series, name: &str) -> Vec<(f64, f64)> {
    let column = series.columns.iter().find(|column| column.name == name).expect("it is sampled");
    series.times.iter().map(|time| time.as_secs_f64()).zip(column.values.iter().copied()).collect()
}

#[test]
fn one_flow_fills_a_deep_buffers_link_and_leaves_the_queue_short() {
    let result = run(&deep("bbr", 1));
    let share = shares(&result)[0];
    assert!((0.95..1.0).contains(&share), "{share}");
    let queue = result.queues[0].backlog_mean_packets / BDP;
    assert!(queue < 0.3, "{queue} bandwidth-delay products wait");
    assert_eq!(result.flows[0].retransmissions, 0);
}

#[test]
fn every_ten_seconds_four_segments_are_in_flight_for_a_fifth_of_a_second() {
    let result = run(&deep("bbr", 1));
    let flight = column(&result.flow_series[0], "flight_bytes");
    let small = |bytes: f64| (1.0..=4.0 * 1_448.0).contains(&bytes);
    // From the first sample with so little in flight to the last before the flight grows again.
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (time, _) in flight.into_iter().filter(|(time, bytes)| *time > 1.0 && small(*bytes)) {
        match spans.last_mut() {
            Some(span) if time - span.1 < 0.1 => span.1 = time,
            _ => spans.push((time, time)),
        }
    }
    assert_eq!(spans.len(), 5, "{spans:?}");
    for (begin, end) in &spans {
        assert!((0.19..0.30).contains(&(end - begin)), "{begin} {end}");
    }
    for pair in spans.windows(2) {
        let apart = pair[1].0 - pair[0].0;
        assert!((10.0..10.6).contains(&apart), "{spans:?}");
    }
}

#[test]
fn the_gain_cycle_shows_in_the_probes() {
    let result = run(&deep("bbr", 1));
    let gains = column(&result.flow_series[0], "pacing_gain");
    let between = |from: f64, to: f64| gains.iter().filter(move |(time, _)| (from..to).contains(time));
    let share = |gain: f64| {
        between(12.0, 20.0).filter(|(_, value)| (value - gain).abs() < 1e-9).count() as f64
            / between(12.0, 20.0).count() as f64
    };
    // Of eight phases one is 5/4 and one 3/4, which ends early where the queue is empty before.
    assert!((0.10..0.18).contains(&share(1.25)), "{}", share(1.25));
    assert!((0.03..0.13).contains(&share(0.75)), "{}", share(0.75));
    assert!((0.70..0.87).contains(&share(1.0)), "{}", share(1.0));
    let bandwidth = column(&result.flow_series[0], "bandwidth_bps");
    let payload = RATE.as_bps_f64() * PAYLOAD;
    for (time, bps) in bandwidth.iter().filter(|(time, _)| *time > 2.0) {
        assert!((0.97..1.06).contains(&(bps / payload)), "{bps} at {time} s");
    }
}

#[test]
fn two_flows_share_within_a_fifth() {
    let mut scenario = deep("bbr", 2);
    scenario.duration = SECOND * 120;
    scenario.record.warmup = SECOND * 20;
    let shares = shares(&run(&scenario));
    assert!((shares[0] / shares[1] - 1.0).abs() < 0.2, "{shares:?}");
    assert!(shares[0] + shares[1] > 0.95, "{shares:?}");
}

#[test]
fn one_percent_of_random_loss_costs_bbr_little_and_cubic_most() {
    let with_loss = |cc| {
        let mut scenario = deep(cc, 1);
        scenario.links[0].impairments.loss = Loss::Random(Probability::clamped(0.01));
        shares(&run(&scenario))[0]
    };
    let (bbr, cubic) = (with_loss("bbr"), with_loss("cubic"));
    assert!(bbr > 0.9, "{bbr}");
    assert!(cubic < 0.5, "{cubic}");
}

#[test]
fn an_application_that_sends_less_than_the_link_carries_does_not_lower_the_estimate() {
    let mut scenario = deep("bbr", 1);
    scenario.flows[0] = tcp("bbr", ("a", "b"), "bbr", |tcp| {
        tcp.application_rate = Some(Rate::from_bps(2_000_000));
        tcp.window = Bytes::new(1_000_000);
    });
    let result = run(&scenario);
    assert!((result.flows[0].goodput.as_bps_f64() / 2e6 - 1.0).abs() < 0.01);
    assert!(result.queues[0].backlog_mean_packets < 1.0, "{}", result.queues[0].backlog_mean_packets);
}
