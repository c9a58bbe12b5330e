//! Packets of simulated hosts, as programs for captures read them.

use std::process::Command;

use crate::{json, refuses, succeeds, text};
use tempfile::TempDir;

/// The lines that tshark prints of `capture.pcapng` in `folder` under `arguments`; none where there is no tshark.
fn tshark(folder: &TempDir, arguments: &[&str]) -> Option<Vec<String>> {
    let path = folder.path().join("capture.pcapng");
    let mut command = Command::new("tshark");
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r"]).arg(path);
    let output = command.args(arguments).output().ok()?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn wireshark_reads_every_packet_and_finds_the_round_trip_times_of_the_simulator() {
    let folder = TempDir::new().unwrap();
    let link =
        ["--link", "10Mbit 40ms 100packets", "--cc", "cubic", "--duration", "85s", "--json", "--series"];
    let whole =
        json(folder.path(), &[&["compare", "--no-files", "--pcapng", "capture.pcapng"], &link[..]].concat());
    let mean_ms = whole["flows"][0]["rtt_mean_ms"].as_f64().unwrap();
    let sampled = whole["flow_series"].as_array().unwrap().iter().filter_map(|row| row["rtt_ms"].as_f64());
    let median_ms = median(sampled.collect());
    let ours = json(folder.path(), &["estimate", "capture.pcapng", "--json"]);
    let read_ms = ours["flows"][0]["rtt_mean_ms"].as_f64().unwrap();
    assert!((read_ms / mean_ms - 1.0).abs() < 0.01, "estimate: {read_ms} ms, simulator: {mean_ms} ms");
    let read_ms = ours["flows"][0]["rtt_p50_ms"].as_f64().unwrap();
    assert!((read_ms / median_ms - 1.0).abs() < 0.01, "estimate: {read_ms} ms, simulator: {median_ms} ms");
    let resent = &whole["flows"][0]["retransmissions"];
    assert_eq!((&ours["flows"][0]["retransmissions"], &ours["flows"][0]["reordered"]), (resent, &0.into()));
    assert_eq!(ours["capture"]["skipped"].as_array().unwrap().len(), 0);
    let wrong = "_ws.malformed || tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || \
                 tcp.checksum.status==0 || ip.checksum.status==0";
    let Some(wrong) = tshark(&folder, &["-Y", wrong]) else {
        eprintln!("skipped: there is no tshark");
        return;
    };
    assert_eq!(wrong, [""; 0]);
    let packets = tshark(&folder, &["-T", "fields", "-e", "frame.number"]).unwrap().len();
    assert!(packets >= 100_000, "{packets}");
    let rtts = tshark(&folder, &["-Y", "tcp.analysis.ack_rtt", "-T", "fields", "-e", "tcp.analysis.ack_rtt"]);
    let rtts: Vec<f64> = rtts.unwrap().iter().map(|rtt| rtt.parse().unwrap()).collect();
    let theirs_ms = 1e3 * median(rtts.clone());
    assert!((theirs_ms / median_ms - 1.0).abs() < 0.01, "tshark: {theirs_ms} ms, simulator: {median_ms} ms");
    let repeats = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    assert_eq!(tshark(&folder, &["-Y", repeats]).unwrap().len() as u64, resent.as_u64().unwrap());
    let theirs_ms = 1e3 * rtts.iter().sum::<f64>() / rtts.len() as f64;
    assert!((theirs_ms / mean_ms - 1.0).abs() < 0.01, "tshark: {theirs_ms} ms, simulator: {mean_ms} ms");
}

#[test]
fn selective_acknowledgements_marks_and_datagrams_are_packets_too() {
    let folder = TempDir::new().unwrap();
    let link = ["--link", "20/5Mbit 40ms loss=1%", "--cc", "reno", "--queue", "fq_codel", "--duration", "6s"];
    let output = ["compare", "--no-files", "--pcapng", "capture.pcapng"];
    succeeds(folder.path(), &[&output[..], &link].concat());
    let message = refuses(folder.path(), &[&output[..], &link].concat());
    assert!(message.contains("--pcapng: capture.pcapng is there already; accepted: a new file"), "{message}");
    let Some(wrong) = tshark(&folder, &["-Y", "_ws.malformed || tcp.analysis.lost_segment"]) else {
        eprintln!("skipped: there is no tshark");
        return;
    };
    assert_eq!(wrong, [""; 0]);
    for (filter, what) in [
        ("tcp.options.sack_le", "selective acknowledgements"),
        ("ip.dsfield.ecn == 2", "packets of ECN-capable flows"),
        ("udp", "datagrams"),
        ("tcp.flags.syn == 1 && tcp.options.wscale.shift == 10", "handshakes"),
    ] {
        assert!(!tshark(&folder, &["-Y", filter]).unwrap().is_empty(), "{what}");
    }
}
