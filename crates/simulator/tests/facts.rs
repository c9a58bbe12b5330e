//! Small facts about the engine, links and applications, each checked by arithmetic.

use crate::common::{link, scenario, tcp};
use suimon_results::{EventKind, FlowResult, RunResult};
use suimon_scenario::{
    Buffer, Capacity, Flow, Loss, OnOff, Record, Reordering, Scenario, StackProfile, Start, Traffic, UdpFlow,
    Window,
};
use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

const MBIT: u64 = 1_000_000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

/// 10 Mbit/s from `a` to `b`, 10 ms each way, 30 packets of buffer.
fn over_ten_mbit(duration: Duration, flows: Vec<Flow>) -> Scenario {
    let rate = Rate::from_bps(10 * MBIT);
    let there = link("a", "b", rate, ms(10), Buffer::Packets(30));
    scenario(duration, vec![there, link("b", "a", rate, ms(10), Buffer::Unbounded)], flows)
}

fn udp(name: &str, rate: u64, packet: u64, change: impl FnOnce(&mut UdpFlow)) -> Flow {
    let mut traffic = UdpFlow {
        rate: Rate::from_bps(rate),
        packet: Bytes::new(packet),
        size: None,
        echo: false,
        on_off: None,
    };
    change(&mut traffic);
    Flow { traffic: Traffic::Udp(traffic), ..reno(name) }
}

fn reno(name: &str) -> Flow {
    tcp(name, ("a", "b"), "reno", |_| {})
}

fn sized(name: &str, size: u64) -> Flow {
    tcp(name, ("a", "b"), "reno", |tcp| tcp.size = Some(Bytes::new(size)))
}

fn run(scenario: &Scenario) -> RunResult {
    scenario.check().expect("the tests build valid scenarios");
    suimon_simulator::run(scenario, &[])
}

#[test]
fn datagrams_keep_their_rate_to_the_last_one_however_their_interval_rounds() {
    // 64 bytes at 7 Gbit/s take 73.14 ns.
    let mut scenario = over_ten_mbit(ms(10), vec![udp("u", 7_000 * MBIT, 64, |_| {})]);
    scenario.links[0].capacity = Capacity::Rate(Rate::MAX);
    let sent = run(&scenario).flows[0].packets_sent;
    assert_eq!(sent, 1 + 7_000 * MBIT / 100 / (64 * 8));
}

#[test]
fn datagrams_end_with_their_size_and_need_no_way_back() {
    let flow = udp("u", MBIT, 1_000, |udp| udp.size = Some(Bytes::new(2_500)));
    let mut scenario = over_ten_mbit(seconds(1), vec![flow]);
    scenario.links.truncate(1);
    let flow = &run(&scenario).flows[0];
    assert_eq!((flow.packets_sent, flow.delivered), (3, Bytes::new(2_500)));
    assert_eq!(flow.completed, Some(at(ms(16))), "the last one leaves after two intervals of 8 ms");
}

#[test]
fn a_link_overloaded_twofold_loses_half() {
    let result = run(&over_ten_mbit(seconds(100), vec![udp("u", 20 * MBIT, 1_250, |_| {})]));
    let (flow, queue) = (&result.flows[0], &result.queues[0]);
    assert_eq!(queue.packets + queue.dropped_overflow + 30, flow.packets_sent);
    assert!(flow.packets_sent.abs_diff(2 * flow.packets_lost) < 100);
    assert_eq!(queue.backlog_max_packets, 30);
    // Full from when it has filled up: 1 ms a packet.
    assert!((29.0..30.0).contains(&queue.backlog_mean_packets), "{}", queue.backlog_mean_packets);
    assert!((29.0..=30.0).contains(&queue.delay_p50.as_millis_f64()), "{}", queue.delay_p50);
    assert!((queue.utilisation.unwrap() - 1.0).abs() < 1e-3);
}

#[test]
fn goodput_counts_the_time_that_what_was_under_way_took_to_arrive() {
    let mut flow = udp("u", 20 * MBIT, 1_250, |_| {});
    flow.stop = Some(at(seconds(1)));
    let mut scenario = over_ten_mbit(seconds(5), vec![flow]);
    scenario.links[0].buffer = Buffer::Unbounded;
    let flow = &run(&scenario).flows[0];
    assert_eq!(flow.packets_sent, 2_000);
    assert_eq!(flow.delivered, Bytes::new(2_000 * 1_250));
    assert!((9.9e6..=10.0e6).contains(&flow.goodput.as_bps_f64()), "{}", flow.goodput);
}

#[test]
fn sending_and_silence_share_the_time_as_asked() {
    let on_off = Some(OnOff { on: ms(100), off: ms(300), reconnect: false });
    let datagrams = udp("udp", 2 * MBIT, 500, |udp| udp.on_off = on_off);
    let stream = tcp("tcp", ("a", "b"), "reno", |tcp| {
        tcp.on_off = on_off;
        tcp.application_rate = Some(Rate::from_bps(MBIT));
    });
    let mut scenario = over_ten_mbit(seconds(1_000), vec![datagrams, stream]);
    let mut shares = [0.0; 2];
    for seed in 0..10 {
        scenario.seed = seed;
        for ((flow, rate), share) in run(&scenario).flows.iter().zip([2e6, 1e6]).zip(&mut shares) {
            *share += flow.goodput.as_bps_f64() / rate / 10.0;
        }
    }
    // Of 25 000 cycles the mean is within 2 %; a datagram goes out at the very start of each period.
    assert!((shares[0] - 0.2525).abs() < 0.005 && (shares[1] - 0.25).abs() < 0.005, "{shares:?}");
}

/// First transmissions of all connections count, and what a connection had sent as it was given up stays sent.
#[test]
fn a_window_counts_the_connections_that_were_given_up() {
    let stream = tcp("tcp", ("a", "b"), "reno", |tcp| {
        tcp.on_off = Some(OnOff { on: ms(500), off: ms(500), reconnect: true });
    });
    let mut scenario = over_ten_mbit(seconds(20), vec![stream]);
    let window =
        |name: &str| Window { name: name.into(), from: at(ms(0)), to: at(seconds(20)), sample: ms(500) };
    scenario.record.windows = vec![window("all")];
    let result = run(&scenario);
    let (row, flow) = (&result.windows[0], &result.flows[0]);
    let rate = |rate: Rate| rate.as_bps_f64();
    assert!(rate(row.entered) >= rate(row.goodput) && rate(row.goodput) > 2e6, "{row:?}");
    let sent = (flow.packets_sent - flow.retransmissions) as f64 * 1_448.0 * 8.0 / 20.0;
    // A rate is whole bits per second.
    assert!(rate(row.entered) <= sent.ceil(), "{row:?}, {sent}");
}

/// 64 kbit/s carry 21.3 packets in the 4 s after the warm-up, and a 22nd is under way at the end.
#[test]
fn a_link_that_is_always_busy_is_used_once_and_no_more() {
    let mut scenario = over_ten_mbit(seconds(6), vec![udp("u", MBIT, 1_500, |_| {})]);
    scenario.links[0].capacity = Capacity::Rate(Rate::from_bps(64_000));
    scenario.record.warmup = seconds(2);
    assert_eq!(run(&scenario).queues[0].utilisation, Some(1.0));
}

#[test]
fn starts_are_uniform_over_their_interval() {
    let mut flows: Vec<_> = (0..1_000).map(|nth| udp(&format!("flow {nth}"), MBIT, 100, |_| {})).collect();
    for flow in &mut flows {
        flow.start = Start::Between(at(seconds(1)), at(seconds(3)));
    }
    let result = run(&over_ten_mbit(ms(3_100), flows));
    let starts: Vec<_> = result.flows.iter().map(|flow| flow.start.as_secs_f64()).collect();
    assert!(starts.iter().all(|start| (1.0..=3.0).contains(start)));
    let mean = starts.iter().sum::<f64>() / 1_000.0;
    let square = starts.iter().map(|start| (start - mean).powi(2)).sum::<f64>() / 1_000.0;
    assert!((mean - 2.0).abs() < 0.06 && (square - 4.0 / 12.0).abs() < 0.03, "{mean} {square}");
}

#[test]
fn a_stop_ends_sending_but_completes_nothing() {
    let mut stopped = sized("stopped", 100_000_000);
    stopped.stop = Some(at(seconds(2)));
    let mut endless = reno("endless");
    endless.stop = Some(at(seconds(1)));
    let mut scenario = over_ten_mbit(seconds(60), vec![stopped, endless, sized("sized", 5_000_000)]);
    scenario.stop_when_complete = true;
    let result = run(&scenario);
    let [stopped, endless, sized] = &result.flows[..] else { panic!("three flows") };
    assert_eq!((stopped.completed, endless.completed), (None, None));
    assert_eq!(sized.delivered, Bytes::new(5_000_000));
    assert_eq!(sized.completed, Some(at(result.duration)), "the run ends with the last that can complete");
    let completions = result.events.iter().filter(|event| event.kind == EventKind::Completed);
    assert_eq!(completions.count(), 1);
}

#[test]
fn a_stopped_application_leaves_unsent_what_it_had_made() {
    let mut flow = reno("fast");
    flow.stop = Some(at(seconds(1)));
    let Traffic::Tcp(traffic) = &mut flow.traffic else { panic!("it is TCP") };
    traffic.application_rate = Some(Rate::from_bps(100 * MBIT));
    let flow = &run(&over_ten_mbit(seconds(20), vec![flow])).flows[0];
    assert!(flow.delivered < Bytes::new(1_300_000), "{}", flow.delivered);
    assert!(flow.goodput <= Rate::from_bps(10 * MBIT));
}

#[test]
fn an_unlimited_application_rate_is_no_limit() {
    let on_off = Some(OnOff { on: ms(50), off: ms(50), reconnect: false });
    let flow = |rate| {
        let flow = tcp("flow", ("a", "b"), "reno", |tcp| (tcp.application_rate, tcp.on_off) = (rate, on_off));
        run(&over_ten_mbit(seconds(10), vec![flow])).flows.remove(0)
    };
    assert_eq!(flow(Some(Rate::MAX)), flow(None));
}

#[test]
fn what_is_measured_after_the_warm_up_is_the_whole_less_the_warm_up() {
    let totals = |duration, warmup| {
        let mut scenario = over_ten_mbit(duration, vec![reno("flow")]);
        scenario.links[0].impairments.loss = Loss::Random(Probability::clamped(0.002));
        scenario.record.warmup = warmup;
        let mut result = run(&scenario);
        (result.flows.remove(0), result.queues.remove(0))
    };
    let (whole, whole_queue) = totals(seconds(40), Duration::ZERO);
    let (early, early_queue) = totals(seconds(15), Duration::ZERO);
    let (late, late_queue) = totals(seconds(40), seconds(15));
    let counts = |flow: &FlowResult| {
        [
            flow.delivered.get(),
            flow.packets_sent,
            flow.retransmissions,
            flow.packets_lost,
            flow.window_cuts,
            flow.timeouts,
        ]
    };
    for ((late, whole), early) in counts(&late).into_iter().zip(counts(&whole)).zip(counts(&early)) {
        assert_eq!(late, whole - early);
    }
    assert_eq!(late_queue.packets, whole_queue.packets - early_queue.packets);
    assert_eq!(late_queue.lost_on_link, whole_queue.lost_on_link - early_queue.lost_on_link);
    let area = |mean: f64, seconds: f64| mean * seconds;
    let difference =
        area(whole_queue.backlog_mean_packets, 40.0) - area(early_queue.backlog_mean_packets, 15.0);
    assert!((area(late_queue.backlog_mean_packets, 25.0) - difference).abs() < 1e-6);
    assert_eq!(late.goodput, Rate::of(late.delivered, seconds(25)));
}

#[test]
fn round_trip_times_of_the_warm_up_are_left_out() {
    // Slow start overshoots; a flow that is held back by its peer's window later does not.
    let mut first = sized("first", 3_000_000);
    first.start = Start::At(Instant::ZERO);
    let slow = tcp("slow", ("a", "b"), "reno", |tcp| tcp.application_rate = Some(Rate::from_bps(MBIT)));
    let mut scenario = over_ten_mbit(seconds(20), vec![first, slow]);
    scenario.record.warmup = seconds(10);
    let result = run(&scenario);
    let slow = &result.flows[1];
    assert!(slow.rtt_max.unwrap() < ms(70), "the wait for a delayed ACK, not for the first flow's queue");
    assert_eq!((result.flows[0].rtt_max, result.flows[0].delivered), (None, Bytes::ZERO));
}

#[test]
fn a_run_that_is_complete_before_anything_is_measured_measures_nothing() {
    let mut scenario = over_ten_mbit(seconds(20), vec![sized("flow", 10_000)]);
    scenario.stop_when_complete = true;
    scenario.record.warmup = seconds(10);
    let result = run(&scenario);
    assert_eq!(result.measured, Duration::ZERO);
    assert_eq!((result.flows[0].delivered, result.queues[0].packets), (Bytes::ZERO, 0));
    assert!(result.flows[0].completed.is_some());
}

#[test]
fn series_have_a_value_for_every_sample_and_add_up() {
    let mut late = reno("late");
    late.start = Start::At(at(seconds(3)));
    let mut scenario = over_ten_mbit(seconds(10), vec![reno("early"), late]);
    scenario.record = Record { interval: Some(ms(100)), warmup: seconds(1), ..Record::default() };
    let result = run(&scenario);
    for series in result.flow_series.iter().chain(&result.queue_series) {
        assert!(series.times.is_sorted_by(|a, b| b.saturating_since(*a) == ms(100)), "{}", series.subject);
        for column in &series.columns {
            assert_eq!(column.values.len(), series.times.len(), "{} {}", series.subject, column.name);
        }
    }
    let lengths: Vec<_> = result.flow_series.iter().map(|series| series.times.len()).collect();
    assert_eq!(lengths, [100, 71]);
    let throughput = result.queue_series[0].columns.iter().find(|column| column.name == "throughput_bps");
    let after_warmup: f64 = throughput.unwrap().values[10..].iter().map(|bps| bps * 0.1 / 8.0).sum();
    let bytes = result.queues[0].bytes.as_f64();
    assert!((after_warmup - bytes).abs() <= 2.0 * 1_500.0, "{after_warmup} {bytes}");
}

/// 20 Mbit/s offered to 10: every other packet finds 30 waiting and is lost, and the queue goes from 29 to 30
/// and back.
#[test]
fn a_window_knows_the_queue_and_the_flows_of_its_time_alone() {
    let mut scenario = over_ten_mbit(seconds(4), vec![udp("u", 20 * MBIT, 1_500, |_| {})]);
    let window =
        |name: &str, from, to| Window { name: name.to_owned(), from: at(from), to: at(to), sample: ms(300) };
    scenario.record.windows = vec![window("late", seconds(1), seconds(4)), window("start", ms(0), ms(500))];
    scenario.record.warmup = seconds(2);
    let rows = run(&scenario).windows;
    let [start, _, late, back] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((back.link.as_str(), back.backlog_records, back.goodput), ("b-a", 0, Rate::ZERO));
    assert_eq!((start.window.as_str(), start.backlog_min_bytes.get()), ("start", 0));
    assert_eq!((late.window.as_str(), late.link.as_str(), late.to), ("late", "a-b", at(seconds(4))));
    assert_eq!((late.backlog_min_bytes.get(), late.backlog_max_bytes.get()), (29 * 1_500, 30 * 1_500));
    assert!((late.backlog_mean_bytes / (29.5 * 1_500.0) - 1.0).abs() < 1e-4);
    assert!((late.backlog_cov / (0.5 / 29.5) - 1.0).abs() < 1e-3);
    assert!((29.0..30.0).contains(&(late.backlog_time_mean_bytes / 1_500.0)));
    // 10 Mbit/s carry 2500 packets of 1.2 ms in 3 s; as many are lost, and as many join as leave.
    assert!(late.dropped_overflow.abs_diff(2_500) <= 1, "{}", late.dropped_overflow);
    assert!(late.backlog_records.abs_diff(5_000) <= 2, "{}", late.backlog_records);
    assert!((late.goodput.as_bps_f64() / 10e6 - 1.0).abs() < 1e-3);
    assert!((late.entered.as_bps_f64() / 20e6 - 1.0).abs() < 1e-3);
    assert!(late.goodput_cov < 2e-3 && late.entered_cov < 2e-3, "{} {}", late.goodput_cov, late.entered_cov);
}

#[test]
fn an_extra_delay_counts_both_ways_and_is_drawn_for_each_flow() {
    let rtt_min = |flow: Flow| run(&over_ten_mbit(seconds(1), vec![flow])).flows[0].rtt_min.unwrap();
    let plain = rtt_min(reno("flow"));
    assert_eq!(rtt_min(Flow { extra_delay: (ms(5), ms(5)), ..reno("flow") }), plain + ms(10));
    let drawn = |name| rtt_min(Flow { extra_delay: (ms(5), ms(50)), ..reno(name) }) - plain;
    let (a, b) = (drawn("a"), drawn("b"));
    assert!(a != b && a >= ms(10) && b >= ms(10) && a <= ms(100) && b <= ms(100), "{a} {b}");
}

#[test]
fn a_recorded_link_that_is_always_busy_is_fully_used() {
    let mut scenario = over_ten_mbit(seconds(50), vec![udp("u", 20 * MBIT, 1_500, |_| {})]);
    // 2, 3 and 4 ms apart.
    let times = [ms(2), ms(5), ms(9)];
    scenario.links[0].capacity = Capacity::Opportunities { times: times.into(), period: ms(9) };
    let result = run(&scenario);
    assert!((result.queues[0].utilisation.unwrap() - 1.0).abs() < 1e-3);
    let expected = 3.0 * 1_500.0 * 8.0 / 0.009;
    assert!((result.flows[0].goodput.as_bps_f64() / expected - 1.0).abs() < 2e-3);
}

#[test]
fn what_a_recorded_link_offers_in_silence_is_lost() {
    let mut scenario = over_ten_mbit(seconds(9), vec![udp("u", 100_000, 1_250, |_| {})]);
    scenario.links[0].capacity = Capacity::Opportunities { times: [ms(9)].into(), period: ms(9) };
    let result = run(&scenario);
    // A packet every 100 ms takes one of eleven opportunities, and waits up to 9 ms for it.
    assert_eq!(result.queues[0].packets, 91);
    assert!((result.queues[0].utilisation.unwrap() - 0.09 * 1_250.0 / 1_500.0).abs() < 0.003);
    assert!(result.queues[0].delay_max <= ms(9) && result.queues[0].delay_mean > ms(3));
}

#[test]
fn an_unlimited_link_delays_and_nothing_else() {
    let mut scenario = over_ten_mbit(seconds(2), vec![udp("u", 100 * MBIT, 1_250, |_| {})]);
    let next = link("b", "c", Rate::MAX, ms(7), Buffer::Packets(1));
    scenario.links.insert(1, next);
    scenario.flows[0].to = "c".to_owned();
    let result = run(&scenario);
    let (first, unlimited) = (&result.queues[0], &result.queues[1]);
    assert!(first.delay_max > ms(20), "the bottleneck is the first link");
    assert_eq!((unlimited.delay_max, unlimited.backlog_max_packets), (Duration::ZERO, 0));
    assert_eq!((unlimited.dropped_overflow, unlimited.utilisation), (0, None));
}

#[test]
fn a_connection_outlives_an_outage() {
    let mut scenario = over_ten_mbit(seconds(30), vec![sized("flow", 10_000_000)]);
    let (full, none) = (Rate::from_bps(10 * MBIT), Rate::ZERO);
    let steps = [(ms(0), full), (ms(2_000), none), (ms(7_000), full)];
    scenario.links[0].capacity = Capacity::Steps { steps: steps.into(), period: seconds(60) };
    let result = run(&scenario);
    let flow = &result.flows[0];
    assert!(flow.timeouts > 0 && flow.completed.is_some());
    assert_eq!(flow.delivered, Bytes::new(10_000_000));
    let completed = flow.completed.unwrap();
    assert!(completed > at(seconds(13)) && completed < at(seconds(16)), "{completed}");
}

#[test]
fn a_link_that_sends_next_to_nothing_does_not_hold_up_the_run() {
    // A bit in sixty years, spread over billions of periods.
    let mut scenario = over_ten_mbit(seconds(1_000), vec![reno("flow")]);
    let ns = Duration::from_nanos;
    let steps = [(ns(0), Rate::from_bps(1)), (ns(1), Rate::ZERO)];
    scenario.links[0].capacity = Capacity::Steps { steps: steps.into(), period: ns(2_000_000_000) };
    let result = run(&scenario);
    assert_eq!(result.flows[0].delivered, Bytes::ZERO);
}

#[test]
fn packets_held_back_are_overtaken_and_the_sender_learns_to_wait_for_them() {
    let flow = tcp("flow", ("a", "b"), "reno", |tcp| tcp.window = Bytes::new(60_000));
    let mut scenario = over_ten_mbit(seconds(60), vec![flow]);
    scenario.links[0].buffer = Buffer::Unbounded;
    let reordering = Reordering { probability: Probability::clamped(0.01), delay: ms(8) };
    scenario.links[0].impairments.reordering = Some(reordering);
    let flow = &run(&scenario).flows[0];
    assert_eq!((flow.packets_lost, flow.timeouts), (0, 0));
    // At 1.2 ms a packet some six overtake one held back: believed lost once or twice, and then no more.
    assert!((1..20).contains(&flow.retransmissions), "{}", flow.retransmissions);
    assert_eq!(flow.spurious, flow.window_cuts, "every cut was found to be a mistake");
    assert!(flow.goodput > Rate::from_bps(9 * MBIT), "{}", flow.goodput);
}

#[test]
fn events_beyond_the_limit_are_counted_only() {
    let mut scenario = over_ten_mbit(seconds(60), vec![reno("flow")]);
    for link in &mut scenario.links {
        (link.capacity, link.delay) =
            (Capacity::Rate(Rate::from_bps(1_000 * MBIT)), Duration::from_micros(200));
    }
    scenario.links[0].impairments.loss = Loss::Random(Probability::clamped(0.03));
    scenario.record.events = 1_000;
    let result = run(&scenario);
    assert_eq!(result.events.len(), 1_000);
    let flow = &result.flows[0];
    // The events are the start, and one for each cut and timeout; a timeout that cut is one.
    assert!(result.events_not_kept > 0);
    assert!(
        result.events.len() as u64 + result.events_not_kept
            <= 1 + flow.window_cuts + flow.timeouts + flow.spurious
    );
}

#[test]
fn pacing_reaches_the_same_goodput() {
    let goodput = |pacing| {
        let profile = StackProfile { pacing, ..StackProfile::linux_6() };
        let flow = tcp("flow", ("a", "b"), "cubic", |tcp| tcp.profile = profile);
        run(&over_ten_mbit(seconds(30), vec![flow])).flows[0].goodput.as_bps_f64()
    };
    let (paced, unpaced) = (goodput(true), goodput(false));
    assert!((paced / unpaced - 1.0).abs() < 0.03, "{paced} {unpaced}");
}

#[test]
fn packets_of_one_time_go_in_the_order_of_the_flows() {
    let flows = (0..3).map(|nth| udp(&format!("flow {nth}"), MBIT, 1_250, |_| {})).collect();
    let mut scenario = over_ten_mbit(seconds(10), flows);
    scenario.links[0].buffer = Buffer::Packets(1);
    let result = run(&scenario);
    let lost: Vec<_> = result.flows.iter().map(|flow| flow.packets_lost).collect();
    // The first is sent, the second waits, the third finds the buffer full, every time.
    assert_eq!(lost, [0, 0, result.flows[2].packets_sent]);
}

#[test]
fn datagrams_tell_the_time_that_they_took_and_those_that_come_back_that_of_both_ways() {
    let took = |echo: bool| {
        let ping = udp("ping", 100_000, 1_250, |udp| udp.echo = echo);
        run(&over_ten_mbit(seconds(10), vec![ping])).flows[0].datagrams.expect("datagrams arrived")
    };
    // 1 ms of transmission and 10 ms on the way, each way; the histogram is at most 0.4 % off.
    for (delay, ways) in [(took(false), 1.0), (took(true), 2.0)] {
        assert!((delay.p50.as_millis_f64() / (11.0 * ways) - 1.0).abs() < 0.005, "{delay:?}");
        assert_eq!((delay.max, delay.jitter), (ms(11) * ways as u64, Duration::ZERO));
        assert_eq!(delay.packets, 100);
    }
    let beside = udp("ping", 100_000, 1_250, |udp| udp.echo = true);
    let flood = udp("flood", 20 * MBIT, 1_250, |_| {});
    let result = run(&over_ten_mbit(seconds(10), vec![beside, flood]));
    let delay = result.flows[0].datagrams.expect("some came back");
    assert!(delay.max > ms(50) && delay.jitter > Duration::ZERO, "30 packets of 1 ms waited: {delay:?}");
    assert!(delay.packets < result.flows[0].packets_sent);
}
