//! Senders that answer marks by their share, at a queue that marks from a threshold on.

use crate::common::{link, scenario, tcp};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_results::RunResult;
use suimon_scenario::{Buffer, Flow, Link, Record, Scenario, StackProfile};
use suimon_units::{Duration, Rate};

const SECOND: Duration = Duration::from_secs(1);
const RATE: Rate = Rate::from_bps(100_000_000);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Marks packets that find `threshold` packets of 1500 bytes waiting, and drops from twice as many on.
fn step(threshold: u64, link: Link) -> Link {
    let bytes = threshold * 1_500;
    // At a probability of one RED drops.
    let queue = format!("red:min_th={bytes}B:max_th={bytes}B:max_p=0.9999:w_q=1");
    Link { queue: AlgorithmSpec::parse(Role::Queue, &queue).expect("RED is registered"), ..link }
}

/// Flows that start at `a`, `b` and so on, these being so far from the bottleneck.
fn at_a_step(flows: Vec<Flow>, distances: &[Duration], threshold: u64) -> Scenario {
    let mut links = vec![
        step(threshold, link("r", "z", RATE, ms(5), Buffer::Packets(500))),
        link("z", "r", RATE, ms(5), Buffer::Unbounded),
    ];
    for (name, distance) in ["a", "b"].into_iter().zip(distances) {
        links.push(link(name, "r", Rate::MAX, *distance, Buffer::Unbounded));
        links.push(link("r", name, Rate::MAX, Duration::ZERO, Buffer::Unbounded));
    }
    let mut scenario = scenario(SECOND * 40, links, flows);
    scenario.record = Record { interval: Some(ms(10)), warmup: SECOND * 10, ..Record::default() };
    scenario
}

fn flow(from: &str, cc: &str, delayed_ack: bool) -> Flow {
    tcp(&format!("{cc} from {from}"), (from, "z"), cc, |tcp| {
        tcp.profile = StackProfile { delayed_ack, ..StackProfile::linux_6() };
    })
}

fn run(scenario: &Scenario) -> RunResult {
    suimon_simulator::run(scenario, &[])
}

/// Alizadeh et al. 2010 §3.3: in steady state each cut, of `alpha / 2` of the window `W` at which marks
/// begin, takes as many round trips to grow back, at `1 - alpha / 4` of the window on average, and one round
/// trip's packets are marked: `alpha^2 (1 - alpha / 4) = (2 W + 1) / (W + 1)^2`, about sqrt(2 / W).
fn alpha_in_theory(w: f64) -> f64 {
    let target = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let alpha: f64 = (low + high) / 2.0;
        if alpha * alpha * (1.0 - alpha / 4.0) < target { low = alpha } else { high = alpha }
    }
    low
}

#[test]
fn dctcp_holds_the_share_of_marks_that_theory_says_and_the_queue_at_the_threshold() {
    for (threshold, tolerance) in [(20_u64, 0.05), (60, 0.05), (150, 0.05)] {
        let result = run(&at_a_step(vec![flow("a", "dctcp:g=0.02", false)], &[Duration::ZERO], threshold));
        let bdp = RATE.as_bps_f64() * 0.01 / 8.0 / 1_500.0;
        let w = bdp + threshold as f64 + 1.0;
        let expected = alpha_in_theory(w);
        let (sent, marked) = (result.flows[0].packets_sent, result.flows[0].packets_marked);
        let share = marked as f64 / sent as f64;
        println!("{threshold}: {share:.4}, expected {expected:.4}");
        assert!((share / expected - 1.0).abs() < tolerance, "{threshold}: {share}, expected {expected}");
        let alpha = result.flow_series[0].columns.iter().find(|column| column.name == "alpha").unwrap();
        let settled = &alpha.values[1_000..];
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        assert!((mean / share - 1.0).abs() < 0.05, "alpha {mean}, share {share}");
        let queue = &result.queues[0];
        assert!(queue.backlog_max_packets <= threshold + 3, "{}", queue.backlog_max_packets);
        assert!(queue.utilisation > Some(0.999), "{:?}", queue.utilisation);
        assert_eq!(result.flows[0].retransmissions, 0);
    }
}

#[test]
fn delayed_acks_cost_neither_queue_nor_throughput() {
    let result = run(&at_a_step(vec![flow("a", "dctcp", true)], &[Duration::ZERO], 20));
    let queue = &result.queues[0];
    assert!(
        queue.utilisation > Some(0.999) && queue.backlog_max_packets <= 24,
        "{}",
        queue.backlog_max_packets
    );
}

#[test]
fn equal_flows_share_equally() {
    for cc in ["dctcp", "prague"] {
        let flows = vec![flow("a", cc, true), flow("b", cc, true)];
        let result = run(&at_a_step(flows, &[Duration::ZERO; 2], 20));
        let ratio = result.flows[0].goodput.as_bps_f64() / result.flows[1].goodput.as_bps_f64();
        assert!((ratio - 1.0).abs() < 0.1, "{cc}: {ratio}");
    }
}

/// At the same share of marks DCTCP's rate goes with the inverse of the round-trip time; Prague's is the same
/// below its virtual round trip of 25 ms. The queue marks at random, or the flows would not see the same
/// share: at a step the one with the longer round trip is marked for longer.
#[test]
fn prague_shares_alike_where_round_trips_differ_and_dctcp_goes_with_their_inverse() {
    let rates = |cc| {
        let flows = vec![flow("a", cc, true), flow("b", cc, true)];
        let mut scenario = at_a_step(flows, &[Duration::ZERO, ms(10)], 20);
        let queue = "red:min_th=5kB:max_th=300kB:max_p=0.9:w_q=0.1";
        scenario.links[0].queue = AlgorithmSpec::parse(Role::Queue, queue).expect("RED is registered");
        let flows = run(&scenario).flows;
        let rtt = |nth: usize| flows[nth].rtt_mean.unwrap().as_secs_f64();
        (flows[0].goodput.as_bps_f64() / flows[1].goodput.as_bps_f64(), rtt(1) / rtt(0))
    };
    let (dctcp, rtts) = rates("dctcp");
    assert!((dctcp / rtts - 1.0).abs() < 0.1, "{dctcp} {rtts}");
    let (prague, rtts) = rates("prague");
    assert!((0.8..1.25).contains(&prague) && rtts > 1.8, "{prague} {rtts}");
}

#[test]
fn without_marks_both_recover_from_losses_as_reno_does() {
    let cuts = |cc| {
        let mut scenario = at_a_step(vec![flow("a", cc, true)], &[ms(20)], 10_000);
        scenario.links[0].buffer = Buffer::Packets(250);
        let result = run(&scenario);
        assert_eq!(result.flows[0].packets_marked, 0, "{cc}");
        assert!(result.queues[0].utilisation > Some(0.99), "{cc}: {:?}", result.queues[0].utilisation);
        result.flows[0].window_cuts
    };
    let (reno, dctcp, prague) = (cuts("reno"), cuts("dctcp"), cuts("prague"));
    assert!(reno > 0 && dctcp.abs_diff(reno) <= 1 && prague.abs_diff(reno) <= 1, "{reno} {dctcp} {prague}");
}
