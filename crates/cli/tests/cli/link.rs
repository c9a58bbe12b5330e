//! Links: described, exported, and compared as what they are.

use crate::{fails, json, project, succeeds};

#[test]
fn a_link_is_described_in_numbers() {
    let described = json(&project(), &["link", "describe", "hsdpa VA30 0dB", "--length", "20s", "--json"]);
    let rate = described["rate_mean_bps"].as_f64().unwrap();
    assert!((700e3..1_000e3).contains(&rate), "{rate}");
    let hsdpa = &described["hsdpa"];
    let shares: f64 =
        hsdpa["cqi_shares"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    assert!((0.03..0.2).contains(&hsdpa["first_block_error_rate"].as_f64().unwrap()), "{hsdpa}");
    assert!((2.5..3.5).contains(&hsdpa["coherence_time_ms"].as_f64().unwrap()), "{hsdpa}");
    let wired = json(&project(), &["link", "describe", "2Mbit", "--json"]);
    assert_eq!((wired["rate_mean_bps"].as_u64(), wired["hsdpa"].is_null()), (Some(2_000_000), true));
}

#[test]
fn a_link_is_drawn() {
    let drawn = succeeds(&project(), &["link", "describe", "hsdpa PA3 10dB", "--length", "10s"]);
    for part in ["Mbit/s", "█", "coherence time", "block errors", "CQI 22", "10 s with seed 1"] {
        assert!(drawn.contains(part), "{part} is not in\n{drawn}");
    }
}

#[test]
fn an_exported_link_is_a_trace_with_the_same_rate() {
    let folder = tempfile::TempDir::new().unwrap();
    let trace = succeeds(folder.path(), &["link", "export", "wifi 802.11b 11Mbit", "--length", "10s"]);
    std::fs::write(folder.path().join("wlan.trace"), trace).unwrap();
    let there =
        json(folder.path(), &["link", "describe", "wifi 802.11b 11Mbit", "--length", "10s", "--json"]);
    let here = json(folder.path(), &["link", "describe", "trace=wlan.trace", "--length", "10s", "--json"]);
    let rate = |described: &serde_json::Value| described["rate_mean_bps"].as_f64().unwrap();
    assert!((rate(&here) / rate(&there) - 1.0).abs() < 0.002, "{here} {there}");
}

#[test]
fn a_synthetic_cell_is_generated_by_its_name() {
    let like = |name| succeeds(&project(), &["trace", "generate", "--like", name, "--length", "10s"]);
    // Twenty megabits in ten seconds are 16667 packets; it wanders.
    let packets = like("lte-walking").lines().count();
    assert!((5_000..50_000).contains(&packets), "{packets}");
    assert_ne!(like("lte-walking"), like("lte-driving"));
    let message = fails(&project(), &["trace", "generate", "--like", "6g"], 2);
    assert!(message.contains("accepted: 3g-driving, lte-walking"), "{message}");
}

#[test]
fn radios_are_compared_like_any_link() {
    for link in ["hsdpa PA3 10dB 180ms", "wifi 802.11b 2Mbit"] {
        let arguments = ["compare", "--link", link, "--cc", "reno,fs-at", "--duration", "10s", "--json"];
        let compared = json(&project(), &arguments);
        for run in compared["runs"].as_array().unwrap() {
            assert!(run["goodput_bps"].as_f64().unwrap() > 500e3, "{link}: {run}");
        }
    }
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let folder = project();
    for (arguments, part) in [
        (vec!["link", "describe", "hsdpa PA3"], "LINK: hsdpa.geometry: missing; accepted: decibels"),
        (vec!["link", "describe", "wifi 802.11b 3Mbit"], "is no rate of the standard"),
        (vec!["link", "describe", "2Mbit", "--length", "2h"], "--length"),
        (vec!["link", "describe", "unlimited"], "too fast"),
        (vec!["link", "describe", "100Gbit"], "too fast"),
        (vec!["link", "export", "1bit"], "missing"),
    ] {
        let message = fails(&folder, &arguments, 2);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}
