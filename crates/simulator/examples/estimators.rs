//! Every estimator of round-trip times, or those that are named, over simulated flows: how far off, how often, at
//! which cost. `cargo run --release -p suimon-simulator --example estimators -- bursts bursts:dt=10ms`
//!
//! The flows are those of `papers/rtt-aqm/estimators.toml`. All estimators see the same packets. The truth is what
//! the flow's sender measured itself at about the same time.

use std::collections::HashMap;
use std::time::Instant as Clock;

use suimon_algorithms::RandomStream;
use suimon_algorithms::estimate::Seen;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_units::{Bytes, Duration};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/rtt-aqm/estimators.toml");
const DEFAULT: [&str; 6] =
    ["bursts", "bursts:tries=1", "bursts:dt=10ms:tries=1", "autocorrelation", "handshake", "slow-start"];
const ROUNDS: usize = 3;

/// A packet, and the true round-trip time of its flow.
type Packet = (Seen, Option<Duration>);

struct Outcome {
    /// Estimate over truth less one, ascending by size.
    errors: Vec<f64>,
    memory: Bytes,
    ns_per_packet: f64,
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let names = if named.is_empty() { DEFAULT.map(str::to_owned).to_vec() } else { named };
    let estimators: Vec<AlgorithmSpec> = names
        .iter()
        .map(|name| AlgorithmSpec::parse(Role::Estimator, name).unwrap_or_else(|error| stop(&error)))
        .collect();
    let document = suimon_scenario::Document::read(SCENARIO).unwrap_or_else(|error| stop(&error));
    println!("Median error of single estimates, and how many there were in 60 s:\n");
    println!("| RTT | true mean | {} |", names.join(" | "));
    println!("| --- | --- |{}", " --- |".repeat(names.len()));
    let mut costs = vec![(Bytes::ZERO, f64::INFINITY); names.len()];
    for run in document.runs().unwrap_or_else(|error| stop(&error)) {
        let mut packets = Vec::new();
        let mut keep = |seen: &Seen, truth: Option<Duration>| packets.push((*seen, truth));
        let _ = suimon_simulator::run_watched(&run.scenario, "bottleneck", &mut keep);
        know_from_the_start(&mut packets);
        let truths: Vec<f64> = packets.iter().filter_map(|packet| Some(packet.1?.as_millis_f64())).collect();
        let mean = truths.iter().sum::<f64>() / truths.len() as f64;
        let mut row = format!("| {} | {mean:.1} ms |", run.labels[0].1);
        for (spec, cost) in estimators.iter().zip(&mut costs) {
            let outcome = outcome(spec, &packets);
            row += &match outcome.errors.get(outcome.errors.len() / 2) {
                Some(error) => format!(" {:.1} % ({}) |", 100.0 * error, outcome.errors.len()),
                None => " none |".to_owned(),
            };
            *cost = (cost.0.max(outcome.memory), cost.1.min(outcome.ns_per_packet));
        }
        println!("{row}");
    }
    println!("\n| | memory at most | time per packet |\n| --- | --- | --- |");
    for (name, (memory, ns)) in names.iter().zip(costs) {
        println!("| {name} | {memory} | {ns:.1} ns |");
    }
}

/// A packet that passed before its sender had measured anything bears the sender's first measurement.
fn know_from_the_start(packets: &mut [Packet]) {
    let mut later = HashMap::new();
    for (seen, truth) in packets.iter_mut().rev() {
        *truth = truth.or_else(|| later.get(&seen.flow).copied());
        if let Some(truth) = truth {
            later.insert(seen.flow, *truth);
        }
    }
}

fn outcome(spec: &AlgorithmSpec, packets: &[Packet]) -> Outcome {
    let mut best = f64::INFINITY;
    let mut last = (Vec::new(), Bytes::ZERO);
    for _ in 0..ROUNDS {
        let mut estimator = spec.build_estimator();
        let mut random = RandomStream::new(1, "estimators");
        let mut found = Vec::new();
        let start = Clock::now();
        for (seen, truth) in packets {
            if let Some(sample) = estimator.on_packet(seen, &mut random) {
                found.push((sample.rtt, *truth));
            }
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / packets.len() as f64);
        last = (found, estimator.memory());
    }
    let mut errors: Vec<f64> = (last.0.iter())
        .filter_map(|(rtt, truth)| Some((rtt.as_secs_f64() / (*truth)?.as_secs_f64() - 1.0).abs()))
        .collect();
    errors.sort_by(f64::total_cmp);
    Outcome { errors, memory: last.1, ns_per_packet: best }
}

fn stop(error: &dyn std::fmt::Display) -> ! {
    eprintln!("{error}");
    std::process::exit(2);
}
