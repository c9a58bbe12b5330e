//! Kernel TCP over links of known round-trip time: the captures of `tests/data`, and a fresh one where
//! this machine lets us make it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use suimon_capture::{Capture, Packet, TrueRtt, Truth, TruthSource};

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn packets(path: &Path) -> Vec<Packet> {
    let mut capture = Capture::open(path).unwrap();
    let packets = std::iter::from_fn(|| capture.next_packet().unwrap()).collect();
    assert_eq!(capture.cut_off(), None);
    packets
}

/// Whole round-trip times of each flow that sends data, by its source.
fn shown(packets: &[Packet]) -> BTreeMap<String, Vec<TrueRtt>> {
    let mut truth = Truth::new(100);
    let mut shown = BTreeMap::<_, Vec<_>>::new();
    for packet in packets {
        if let Some(rtt) = truth.on_packet(packet)
            && rtt.flow.destination.port() == 5_001
            && rtt.sender_side.is_some()
        {
            shown.entry(rtt.flow.source.to_string()).or_default().push(rtt);
        }
    }
    shown
}

/// The true values that the maker of a capture knows.
struct Known {
    source: String,
    /// Without a queue.
    rtt_ms: f64,
    /// The part of this between the senders and the capture.
    sender_side_ms: f64,
    wait_mean_ms: f64,
    wait_max_ms: f64,
}

/// From the router to the receiver: `--delay` of the script.
const DELAY_MS: f64 = 15.0;

fn known(capture: &Path) -> Vec<Known> {
    let facts = std::fs::read_to_string(capture.with_extension("json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let flows = facts["flows"].as_array().unwrap().iter().map(|flow| {
        let number = |key: &str| flow[key].as_f64().unwrap();
        let rtt_ms = number("rtt_without_queue_ms");
        Known {
            source: flow["source"].as_str().unwrap().to_owned(),
            rtt_ms,
            sender_side_ms: rtt_ms - 2.0 * DELAY_MS,
            wait_mean_ms: number("wait_mean_ms"),
            wait_max_ms: number("wait_max_ms"),
        }
    });
    flows.collect()
}

fn millis(rtts: &[TrueRtt], of: impl Fn(&TrueRtt) -> suimon_units::Duration) -> Vec<f64> {
    let mut millis: Vec<f64> = rtts.iter().map(|rtt| of(rtt).as_millis_f64()).collect();
    millis.sort_by(f64::total_cmp);
    millis
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Checks `capture`; for want of processor time its times may lie up to `late_ms` above the known ones. A committed
/// capture has a known bound; the bound of a fresh one is that of this machine.
fn check(capture: &Path, late_ms: f64) {
    let shown = shown(&packets(capture));
    for flow in known(capture) {
        let rtts = &shown[&flow.source];
        let source = &flow.source;
        assert!(rtts.len() > 20, "{source}: {}", rtts.len());
        let sender_side = millis(rtts, |rtt| rtt.sender_side.unwrap());
        let median = sender_side[sender_side.len() / 2];
        assert!((median - flow.sender_side_ms).abs() < 1.0, "{source}: sender side {median}");
        let receiver_side = millis(rtts, |rtt| rtt.receiver_side);
        assert!(receiver_side[0] > 2.0 * DELAY_MS, "{source}: {}", receiver_side[0]);
        let rtt = millis(rtts, |rtt| rtt.rtt().unwrap());
        assert!(rtt[0] > flow.rtt_ms, "{source}: {}", rtt[0]);
        // Queueing is the time beyond the known RTT. Flows that share a queue wait alike; the mean over
        // ACKs leaves out packets around losses, which waited longest.
        let over = mean(&rtt) - flow.rtt_ms;
        let tolerance = 1.0 + 0.2 * flow.wait_mean_ms + late_ms;
        assert!(
            (over - flow.wait_mean_ms).abs() < tolerance,
            "{source}: {over} beside {}",
            flow.wait_mean_ms
        );
        let clean = rtt[rtt.len() * 9 / 10];
        assert!(clean < flow.rtt_ms + flow.wait_max_ms + 1.0 + late_ms, "{source}: {clean}");
    }
}

#[test]
fn acks_of_every_packet_show_the_known_round_trip() {
    check(&data("every-ack.pcap"), 1.0);
}

#[test]
fn handshakes_meet_an_almost_empty_queue() {
    for name in ["every-ack.pcap", "delayed-acks.pcap"] {
        let path = data(name);
        let first = &known(&path)[0];
        let packets = packets(&path);
        let syn = packets.iter().position(|packet| packet.tcp.is_some_and(|tcp| tcp.syn)).unwrap();
        let flow = packets[syn].endpoints;
        let of_flow: Vec<_> = packets
            .iter()
            .filter(|packet| packet.endpoints.connection() == flow.connection())
            .copied()
            .collect();
        let mut truth = Truth::new(1);
        let handshake = of_flow.iter().take(3).filter_map(|packet| truth.on_packet(packet)).last().unwrap();
        let rtt = handshake.rtt().unwrap().as_millis_f64();
        assert!((0.0..1.0).contains(&(rtt - first.rtt_ms)), "{name}: {rtt} beside {}", first.rtt_ms);
    }
}

/// A capture that begins in the middle has no handshakes: timestamps must tell the sender's side.
#[test]
fn without_a_handshake_timestamps_show_the_senders_side() {
    let path = data("every-ack.pcap");
    let all = packets(&path);
    let whole = shown(&all);
    let late = shown(&all[all.len() / 2..]);
    for flow in known(&path) {
        let sides: Vec<_> = late[&flow.source].iter().filter_map(|rtt| rtt.sender_side).collect();
        assert!(sides.len() > 5, "{}: {} of {}", flow.source, sides.len(), whole[&flow.source].len());
        for side in sides {
            let side = side.as_millis_f64();
            assert!((side - flow.sender_side_ms).abs() < 2.0, "{}: {side}", flow.source);
        }
    }
}

/// Two proofs of the same thing: with and without the timestamps.
#[test]
fn acknowledgements_and_timestamps_agree() {
    let path = data("delayed-acks.pcap");
    let all = packets(&path);
    let mut by_stamp = all.clone();
    // Without ACKs that can be matched to segments, only timestamps are left.
    for packet in &mut by_stamp {
        if let Some(tcp) = &mut packet.tcp
            && packet.endpoints.destination.port() == 5_001
            && !tcp.syn
        {
            tcp.sequence = tcp.sequence.wrapping_add(7);
        }
    }
    let (by_ack, by_stamp) = (shown(&all), shown(&by_stamp));
    for (source, acks) in &by_ack {
        let stamps = &by_stamp[source];
        assert!(stamps.iter().all(|rtt| rtt.source == TruthSource::Timestamp));
        let sides = |rtts: &[TrueRtt]| mean(&millis(rtts, |rtt| rtt.receiver_side));
        let (one, other) = (sides(acks), sides(stamps));
        // An echo is that of the earlier of the two segments of a delayed ACK.
        assert!((one / other - 1.0).abs() < 0.15, "{source}: {one} {other}");
    }
}

/// Needs root; where namespaces or TUN devices are not to be had, the script says so with code 77.
#[test]
fn a_fresh_capture_shows_the_round_trip_of_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("fresh.pcap");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/capture_link.py");
    let arguments = ["--flows", "4", "--rate", "4000", "--buffer", "15", "--seconds", "4", "--quickack"];
    let made = Command::new("python3")
        .arg(script)
        .arg(&capture)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("python3 is among what `make setup` installs");
    let message = String::from_utf8_lossy(&made.stderr);
    if made.status.code() == Some(77) {
        eprintln!("skipped: {message}");
        return;
    }
    assert!(made.status.success(), "{}: {message}", made.status);
    let facts = std::fs::read_to_string(capture.with_extension("json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let late = facts["longest_lateness_ms"].as_f64().unwrap();
    // On a machine that is busy with other work the link is not as it should be.
    if late > 20.0 {
        eprintln!("skipped: packets were up to {late} ms late, so this link's round trip is not known");
        return;
    }
    check(&capture, late);
}
