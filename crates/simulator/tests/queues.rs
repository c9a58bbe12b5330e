//! Queue disciplines under real senders: the promises of their specifications, in the simulator.

use crate::common::{link, scenario, tcp};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_results::{FlowResult, QueueResult, RunResult, jain_index};
use suimon_scenario::{Buffer, Capacity, Flow, Link, Scenario, TcpFlow, Traffic, UdpFlow};
use suimon_units::{Bytes, Duration, Rate};

const TEN_MBIT: Rate = Rate::from_bps(10_000_000);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A bottleneck of 10 Mbit/s called `r-b` under `queue`, 20 ms each way with `before` to get there.
fn behind(queue: &str, hosts: &[(&str, Duration)], flows: Vec<Flow>) -> Scenario {
    let bottleneck = Link {
        queue: AlgorithmSpec::parse(Role::Queue, queue).expect("a registered discipline"),
        ..link("r", "b", TEN_MBIT, ms(20), Buffer::Packets(500))
    };
    let mut links = vec![bottleneck, link("b", "r", Rate::MAX, ms(20), Buffer::Unbounded)];
    for &(host, delay) in hosts {
        links.push(link(host, "r", Rate::MAX, delay, Buffer::Unbounded));
        links.push(link("r", host, Rate::MAX, delay, Buffer::Unbounded));
    }
    let mut scenario = scenario(Duration::from_secs(70), links, flows);
    scenario.record.warmup = Duration::from_secs(10);
    scenario
}

/// `count` endless flows of `cc`, with or without ECN, a round-trip time of 40 ms.
fn alike(queue: &str, cc: &str, count: usize, ecn: bool) -> (Vec<FlowResult>, QueueResult) {
    let flow = |n| tcp(&format!("{cc} {n}"), ("a", "b"), cc, |tcp| tcp.profile.ecn = ecn);
    run(&behind(queue, &[("a", Duration::ZERO)], (0..count).map(flow).collect()))
}

fn run(scenario: &Scenario) -> (Vec<FlowResult>, QueueResult) {
    let RunResult { flows, mut queues, .. } = suimon_simulator::run(scenario, &[]);
    let queue = queues.remove(0);
    let goodputs: Vec<_> = flows.iter().map(|flow| flow.goodput.as_bps_f64() / 1e6).collect();
    println!(
        "{}: used {:.3}, delay mean {} p50 {} p95 {}, early {} overflow {} marked {}, goodputs {goodputs:.2?}",
        queue.discipline,
        queue.utilisation.unwrap_or_default(),
        queue.delay_mean,
        queue.delay_p50,
        queue.delay_p95,
        queue.dropped_early,
        queue.dropped_overflow,
        queue.marked,
    );
    (flows, queue)
}

fn sparse(tcp: &mut TcpFlow) {
    tcp.application_rate = Some(Rate::from_bps(50_000));
    tcp.profile.delayed_ack = false;
}

/// Datagrams that heed nothing.
fn flood(name: &str, from: &str, rate: Rate) -> Flow {
    let traffic = UdpFlow { rate, packet: Bytes::new(1_500), size: None, echo: false, on_off: None };
    Flow { traffic: Traffic::Udp(traffic), ..tcp(name, (from, "b"), "reno", |_| {}) }
}

#[test]
fn codel_holds_the_delay_of_one_flow_near_its_target_and_the_link_busy() {
    for cc in ["reno", "cubic"] {
        for ecn in [false, true] {
            let (_, queue) = alike("codel", cc, 1, ecn);
            assert!(queue.delay_p50 < ms(5) && queue.delay_p95 < ms(12), "{cc} {queue:?}");
            assert!(queue.utilisation > Some(0.85), "{cc} {queue:?}");
            assert_eq!((queue.dropped_early == 0, queue.marked > 0), (ecn, ecn), "{cc} {queue:?}");
        }
    }
}

#[test]
fn pie_comes_to_its_target_with_few_flows_and_many() {
    for (cc, count) in [("reno", 1), ("reno", 10), ("cubic", 10), ("reno", 30)] {
        for ecn in [false, true] {
            let (_, queue) = alike("pie", cc, count, ecn);
            assert!((ms(10)..ms(20)).contains(&queue.delay_mean), "{cc} {count} {queue:?}");
            assert!(queue.utilisation > Some(0.9), "{cc} {count} {queue:?}");
        }
    }
}

#[test]
fn dualpi2_comes_to_its_target_with_classic_flows_alone() {
    for (cc, count) in [("reno", 1), ("reno", 10), ("cubic", 10), ("reno", 30)] {
        for ecn in [false, true] {
            let (_, queue) = alike("dualpi2", cc, count, ecn);
            assert!((ms(10)..ms(20)).contains(&queue.delay_mean), "{cc} {count} {queue:?}");
            assert!(queue.utilisation > Some(0.9), "{cc} {count} {queue:?}");
        }
    }
}

#[test]
fn flow_queues_share_equally_whatever_the_sender_and_its_round_trip_time() {
    for queue in ["fq-codel", "cake"] {
        let mut flows = Vec::new();
        for cc in ["cubic", "compound"] {
            for host in ["near", "far"] {
                flows.push(tcp(&format!("{cc} {host}"), (host, "b"), cc, |_| {}));
            }
        }
        let hosts = [("near", Duration::ZERO), ("far", ms(20))];
        let goodputs = |queue| -> Vec<f64> {
            let (flows, _) = run(&behind(queue, &hosts, flows.clone()));
            flows.iter().map(|flow| flow.goodput.as_bps_f64()).collect()
        };
        let fair = jain_index(&goodputs(queue));
        let one_queue = jain_index(&goodputs("codel"));
        assert!(fair > 0.99 && one_queue < 0.97, "{queue}: {fair}, codel: {one_queue}");
    }
}

#[test]
fn a_sparse_flow_does_not_wait_for_bulky_ones_with_flow_queues() {
    let extra = |queue| {
        let mut flows: Vec<_> =
            (0..4).map(|n| tcp(&format!("bulk {n}"), ("a", "b"), "cubic", |_| {})).collect();
        flows.push(tcp("sparse", ("a", "b"), "reno", sparse));
        let (flows, _) = run(&behind(queue, &[("a", Duration::ZERO)], flows));
        let rtt = flows[4].rtt_mean.expect("it sends");
        let extra = rtt.as_millis_f64() - 40.0;
        println!("{queue}: {extra:.3} ms more than 40 ms");
        extra
    };
    // One packet of 1500 B takes 1.2 ms, and so does the one of a bulky flow that it may find being sent.
    for queue in ["fq-codel", "cake"] {
        assert!(extra(queue) < 1.2 + 2.0, "{queue}");
    }
    assert!(extra("codel") > 4.0);
}

#[test]
fn a_flow_that_heeds_nothing_leaves_the_others_their_share_with_flow_queues() {
    for queue in ["fq-codel", "cake"] {
        let flood = flood("flood", "a", Rate::from_bps(20_000_000));
        let (flows, _) = run(&behind(
            queue,
            &[("a", Duration::ZERO)],
            vec![flood, tcp("cubic", ("a", "b"), "cubic", |_| {})],
        ));
        assert!(flows[1].goodput > Rate::from_bps(4_000_000), "{queue}: {}", flows[1].goodput);
    }
}

/// `l4s` flows of Prague and `classic` ones of `cc` behind `queue` at `rate`: the ratio of a classic flow's
/// rate to an L4S flow's, and by how much longer than the path's 40 ms and the time of a packet round trips
/// of L4S flows are on average, in milliseconds.
fn together(queue: &str, rate: Rate, l4s: usize, classic: usize, cc: &str, ecn: bool) -> (f64, f64) {
    let each_ack = |tcp: &mut TcpFlow| (tcp.profile.ecn, tcp.profile.delayed_ack) = (ecn, false);
    let prague = (0..l4s).map(|n| tcp(&format!("prague {n}"), ("a", "b"), "prague", each_ack));
    let others = (0..classic).map(|n| tcp(&format!("{cc} {n}"), ("a", "b"), cc, each_ack));
    let mut scenario = behind(queue, &[("a", Duration::ZERO)], prague.chain(others).collect());
    scenario.links[0].capacity = Capacity::Rate(rate);
    let (flows, _) = run(&scenario);
    let (prague, others) = flows.split_at(l4s);
    let mean = |flows: &[FlowResult]| {
        flows.iter().map(|flow| flow.goodput.as_bps_f64()).sum::<f64>() / flows.len() as f64
    };
    let base = 40.0 + rate.transmission_time(Bytes::new(1_500)).as_millis_f64();
    let extra = prague.iter().filter_map(|flow| flow.rtt_mean).map(|rtt| rtt.as_millis_f64() - base);
    let result = (mean(others) / mean(prague), extra.sum::<f64>() / l4s as f64);
    println!(
        "{queue} {rate}: {l4s} prague, {classic} {cc}: rates 1:{:.2}, {:.2} ms more",
        result.0, result.1
    );
    result
}

#[test]
fn dualpi2_gives_l4s_and_classic_flows_like_rates_and_the_former_next_to_no_delay() {
    let [slow, fast] = [10, 40].map(|mbit| Rate::from_bps(mbit * 1_000_000));
    for (rate, l4s, classic) in
        [(slow, 1, 1), (slow, 5, 5), (slow, 1, 9), (fast, 1, 1), (fast, 5, 5), (fast, 9, 1)]
    {
        for (cc, ecn) in [("reno", false), ("cubic", true)] {
            let (ratio, extra) = together("dualpi2", rate, l4s, classic, cc, ecn);
            let (in_one_queue, _) = together("codel", rate, l4s, classic, cc, ecn);
            let case = format!("{rate}, {l4s} prague, {classic} {cc}");
            assert!((0.4..2.5).contains(&ratio), "{case}: {ratio}");
            assert!(in_one_queue < 0.4, "{case}: {in_one_queue}");
            assert!(extra < 1.5, "{case}: {extra}");
        }
    }
}

#[test]
fn cake_shares_between_hosts_first_where_asked_to() {
    let rate = Rate::from_bps(6_000_000);
    let many = (0..9).map(|n| flood(&format!("many {n}"), "many", rate));
    let flows: Vec<_> = many.chain([flood("one", "one", rate)]).collect();
    let share_of_the_one = |queue| {
        let (flows, _) = run(&behind(queue, &[("many", ms(1)), ("one", ms(1))], flows.clone()));
        let total: f64 = flows.iter().map(|flow| flow.goodput.as_bps_f64()).sum();
        flows[9].goodput.as_bps_f64() / total
    };
    // All lead to one host, so that with both only its ten flows count.
    for (queue, share) in [("cake:isolation=dual-src", 0.5), ("cake", 0.1), ("cake:isolation=flows", 0.1)] {
        let measured = share_of_the_one(queue);
        assert!((measured - share).abs() < 0.02, "{queue}: {measured}");
    }
}
