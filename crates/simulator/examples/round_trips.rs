//! Round-trip times at a router in the middle of the path, from what passes: how far their median is off.
//! `cargo run --release -p suimon-simulator --example round_trips`
//!
//! CUBIC flows with delayed acknowledgements cross the router, a quarter of the path's delay behind their senders, and a
//! bottleneck of 20 Mbit/s behind it. Where the router sees both directions, it follows sequence numbers and timestamps, or
//! sequence numbers alone. Where it sees data alone, it has bursts and handshakes. The truth is what the flow's sender
//! measured itself at about the same time.

use std::collections::HashMap;

use suimon_algorithms::RandomStream;
use suimon_algorithms::estimate::round_trips::{Backward, Forward, RoundTrips};
use suimon_algorithms::estimate::{RttEstimator, Seen};
use suimon_algorithms::queue::FlowId;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_scenario::{Document, Scenario};
use suimon_simulator::{Crossing, run_crossed};
use suimon_units::Duration;

const RTTS_MS: [u32; 5] = [10, 30, 60, 100, 300];
const FLOWS: [u32; 5] = [1, 2, 4, 20, 100];
/// What sees data alone.
const ONE_WAY: [&str; 3] = ["bursts", "bursts:check=handshake", "handshake"];
/// An estimator that gives fewer estimates than this in 30 s is not judged; handshakes are as many as flows.
const FEWEST: usize = 1;
/// The bar.
const BAR: f64 = 0.10;

fn main() {
    println!(
        "Median of the estimates over the median of the truth, less one, and how many estimates there were in 30 s:\n"
    );
    println!("| RTT | flows | timestamps | sequence numbers | {} |", ONE_WAY.join(" | "));
    println!("| --- | --- | --- | --- |{}", " --- |".repeat(ONE_WAY.len()));
    let mut misses = [0; 2 + ONE_WAY.len()];
    for rtt_ms in RTTS_MS {
        for flows in FLOWS {
            let pairs = measure(&scenario(rtt_ms, flows));
            let mut row = format!("| {rtt_ms} ms | {flows} |");
            for (pairs, misses) in pairs.iter().zip(&mut misses) {
                let error = error(pairs);
                *misses += usize::from(error.is_some_and(|error| error.abs() > BAR));
                row += &match error {
                    Some(error) => format!(" {:+.1} % ({}) |", 100.0 * error, pairs.len()),
                    None => " none |".to_owned(),
                };
            }
            println!("{row}");
        }
    }
    let names = ["timestamps", "sequence numbers"].into_iter().chain(ONE_WAY);
    let told: Vec<_> = names.zip(misses).map(|(name, misses)| format!("{name} {misses}")).collect();
    let cases = RTTS_MS.len() * FLOWS.len();
    println!("\nOf {cases} cases, further off than {:.0} %: {}", 100.0 * BAR, told.join(", "));
}

fn scenario(rtt_ms: u32, flows: u32) -> Scenario {
    let (near, far) = (f64::from(rtt_ms) / 8.0, f64::from(rtt_ms) * 3.0 / 8.0);
    // What the path holds, in packets of 1500 bytes, and some tens for a short one.
    let buffer = (20_000 * rtt_ms / 12_000).max(40);
    let text = format!(
        "name = \"round-trips\"\nduration = \"30s\"\nrecord_interval = \"off\"\n\
         [[link]]\nname = \"near\"\nbetween = [\"s\", \"r1\"]\nrate = \"1Gbit\"\ndelay = \"{near}ms\"\n\
         [[link]]\nname = \"router\"\nbetween = [\"r1\", \"r2\"]\nrate = \"1Gbit\"\n\
         [[link]]\nname = \"bottleneck\"\nbetween = [\"r2\", \"d\"]\nrate = \"20Mbit\"\ndelay = \"{far}ms\"\n\
         buffer = \"{buffer} packets\"\n[link.reverse]\nrate = \"unlimited\"\n\
         [[flow]]\nname = \"main\"\ncount = {flows}\nfrom = \"s\"\nto = \"d\"\ncc = \"cubic-linux\"\n\
         profile = \"linux-6\"\nwindow = \"4MB\"\nstart = [\"0s\", \"2s\"]\n"
    );
    let runs = Document::parse(&text, "round-trips.toml").and_then(|document| document.runs());
    runs.unwrap_or_else(|error| panic!("{error}")).remove(0).scenario
}

/// Estimates of flows, and truths.
type Pairs = Vec<(FlowId, Duration, Option<Duration>)>;

fn measure(scenario: &Scenario) -> Vec<Pairs> {
    let mut both_ways = [RoundTrips::new(4_096), RoundTrips::new(4_096)];
    let mut one_way: Vec<Box<dyn RttEstimator>> = (ONE_WAY.iter())
        .map(|name| AlgorithmSpec::parse(Role::Estimator, name).expect("it is registered").build_estimator())
        .collect();
    let mut random = RandomStream::new(1, "round trips");
    let mut pairs = vec![Pairs::new(); 2 + ONE_WAY.len()];
    let mut first = HashMap::new();
    let _ = run_crossed(scenario, "router", &mut |crossing, truth| match *crossing {
        Crossing::Forward(packet) => {
            both_ways[0].on_forward(&packet);
            both_ways[1].on_forward(&Forward { ts_ecr: None, ..packet });
            let Forward { now, flow, size, opens_connection, .. } = packet;
            truth.map(|truth| *first.entry(flow).or_insert(truth));
            let seen = Seen { now, flow, size, opens_connection };
            for (estimator, pairs) in one_way.iter_mut().zip(&mut pairs[2..]) {
                let sample = estimator.on_packet(&seen, &mut random);
                pairs.extend(sample.map(|sample| (flow, sample.rtt, truth)));
            }
        }
        Crossing::Backward(packet) => {
            let packets = [packet, Backward { ts_val: None, ..packet }];
            for ((trips, packet), pairs) in both_ways.iter_mut().zip(packets).zip(&mut pairs) {
                let told = trips.on_backward(&packet).and_then(|_| trips.between_ends(packet.flow));
                pairs.extend(told.map(|rtt| (packet.flow, rtt, truth)));
            }
        }
    });
    // An estimate from before the sender had measured anything stands beside the first that it measured.
    for (flow, _, truth) in pairs.iter_mut().flatten() {
        *truth = truth.or_else(|| first.get(flow).copied());
    }
    pairs
}

fn error(pairs: &Pairs) -> Option<f64> {
    let median = |mut values: Vec<Duration>| {
        values.sort_unstable();
        values[values.len() / 2].as_secs_f64()
    };
    let known = pairs.iter().filter_map(|(_, estimate, truth)| Some((*estimate, (*truth)?)));
    let (estimates, truths): (Vec<_>, Vec<_>) = known.unzip();
    (truths.len() >= FEWEST).then(|| median(estimates) / median(truths) - 1.0)
}
