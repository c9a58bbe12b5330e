//! Radio links as the simulator drives them.

use std::sync::Arc;

use crate::common::{link, scenario, tcp};
use suimon_scenario::radio::{hsdpa, wlan};
use suimon_scenario::{
    Buffer, Capacity, Cell, Flow, Hsdpa, Link, Medium, Scenario, StackProfile, Traffic, UdpFlow,
};
use suimon_simulator::run;
use suimon_units::{Bytes, Decibels, Duration, Rate};

fn cell_link(to: &str, profile: &str, geometry: f64, cell: Option<&Arc<Cell>>) -> [Link; 2] {
    let user = hsdpa::UserParameters::new(profile.parse().unwrap(), Decibels::new(geometry));
    let terminal = Hsdpa { cell: cell.cloned(), ..Hsdpa::new(user) };
    let down = link("base", to, Rate::MAX, Duration::from_millis(90), Buffer::Unbounded);
    let up = link(to, "base", Rate::MAX, Duration::from_millis(125), Buffer::Unbounded);
    [Link { capacity: Capacity::Hsdpa(Box::new(terminal)), ..down }, Link { reported: false, ..up }]
}

fn download(to: &str) -> Flow {
    tcp(&format!("to-{to}"), ("base", to), "reno", |flow| {
        flow.size = Some(Bytes::new(1_000_000));
        flow.window = Bytes::new(96_000);
    })
}

fn shared(scheduler: hsdpa::Policy, seed: u64) -> Scenario {
    let cell = Arc::new(Cell { name: "c".to_owned(), scheduler });
    let links =
        [cell_link("near", "PA3", 10.0, Some(&cell)), cell_link("far", "VA30", -5.0, Some(&cell))].concat();
    let flows = vec![download("near"), download("far")];
    Scenario { seed, ..scenario(Duration::from_secs(300), links, flows) }
}

#[test]
fn what_goes_into_a_cell_comes_out_and_is_counted_once() {
    for scheduler in [
        hsdpa::Policy::RoundRobin,
        hsdpa::Policy::MaxCarrierToInterference,
        hsdpa::Policy::ProportionalFair { window: Duration::from_secs(2) },
    ] {
        let result = run(&shared(scheduler, 1), &[]);
        for (flow, queue) in result.flows.iter().zip(&result.queues) {
            assert_eq!(flow.delivered, Bytes::new(1_000_000), "{scheduler:?} {}", flow.name);
            assert_eq!((flow.packets_lost, queue.lost_on_link), (0, 0));
            // Every data packet and the SYN crossed the link.
            assert_eq!(queue.packets, flow.packets_sent + 1, "{}", flow.name);
            assert!(queue.backlog_max_packets > 0 && queue.delay_max > Duration::ZERO);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_cell_and_another_seed_another() {
    let result = |seed| run(&shared(hsdpa::Policy::RoundRobin, seed), &[]);
    assert_eq!(result(1), result(1));
    assert_ne!(result(1).flows[0].goodput, result(2).flows[0].goodput);
}

#[test]
fn a_radio_that_nobody_measures_serves_all_the_same() {
    let wlan = Capacity::Wifi(medium(wlan::Standard::G, 54));
    let over_wlan = shared(hsdpa::Policy::RoundRobin, 1).links.into_iter().map(|link| match link.capacity {
        Capacity::Hsdpa(_) => Link { capacity: wlan.clone(), ..link },
        _ => link,
    });
    let over_wlan = Scenario { links: over_wlan.collect(), ..shared(hsdpa::Policy::RoundRobin, 1) };
    for mut scenario in [shared(hsdpa::Policy::RoundRobin, 1), over_wlan] {
        let measured = run(&scenario, &[]);
        scenario.links.iter_mut().for_each(|link| link.reported = false);
        assert_eq!(run(&scenario, &[]).flows, measured.flows);
    }
}

#[test]
fn the_shortest_round_trip_is_propagation_and_a_few_blocks() {
    let scenario =
        scenario(Duration::from_secs(60), cell_link("x", "ST", 15.0, None).to_vec(), vec![download("x")]);
    let rtt = run(&scenario, &[]).flows[0].rtt_min.unwrap();
    let base = Duration::from_millis(215);
    assert!(rtt >= base + Duration::from_millis(2) && rtt <= base + Duration::from_millis(6), "{rtt}");
}

fn medium(standard: wlan::Standard, mbit: u64) -> Arc<Medium> {
    let parameters = wlan::Parameters::new(standard, Rate::from_bps(mbit * 1_000_000));
    Arc::new(Medium { name: "wlan".to_owned(), parameters })
}

/// Both directions between two stations, with buffers of 50 kB.
fn wifi_link(medium: &Arc<Medium>, from: &str, to: &str) -> [Link; 2] {
    [(from, to), (to, from)].map(|(from, to)| Link {
        capacity: Capacity::Wifi(Arc::clone(medium)),
        ..link(from, to, Rate::MAX, Duration::ZERO, Buffer::Bytes(Bytes::new(50_000)))
    })
}

fn qualnet(name: &str, ends: (&str, &str)) -> Flow {
    tcp(name, ends, "reno", |flow| {
        flow.profile = StackProfile::qualnet_3_9();
        flow.window = Bytes::new(16_384);
    })
}

fn udp(name: &str, ends: (&str, &str), rate: Rate, packet: u64, size: Option<u64>) -> Flow {
    let traffic =
        UdpFlow { rate, packet: Bytes::new(packet), size: size.map(Bytes::new), echo: false, on_off: None };
    Flow { traffic: Traffic::Udp(traffic), ..tcp(name, ends, "reno", |_| {}) }
}

/// Oguchi, Tanaka, Shigeno: Path Selection using Buffer Conditions for Bandwidth Aggregation, Table 2: one connection for 100 s, mean of five seeds. The parameters are in
/// `docs/links.md`.
#[test]
fn one_connection_gets_what_was_measured_in_qualnet() {
    let wired = Link {
        overhead: Bytes::new(28),
        ..link(
            "a",
            "b",
            Rate::from_bps(10_000_000),
            Duration::from_millis(1),
            Buffer::Bytes(Bytes::new(50_000)),
        )
    };
    let back = Link { name: "b-a".to_owned(), from: "b".to_owned(), to: "a".to_owned(), ..wired.clone() };
    for (name, links, expected_kbps) in [
        ("wired", [wired, back], 8_824.002),
        ("802.11a", wifi_link(&medium(wlan::Standard::A, 6), "a", "b"), 3_231.674),
        ("802.11b", wifi_link(&medium(wlan::Standard::B, 2), "a", "b"), 941.207),
    ] {
        let goodput = |seed| {
            let flows = vec![qualnet("main", ("a", "b"))];
            let scenario = Scenario { seed, ..scenario(Duration::from_secs(100), links.to_vec(), flows) };
            run(&scenario, &[]).flows[0].goodput.as_bps_f64() / 1e3
        };
        let mean = (1..=5).map(goodput).sum::<f64>() / 5.0;
        println!("{name}: {mean:.1} kbit/s, {:+.2} %", 100.0 * (mean / expected_kbps - 1.0));
        assert!((mean / expected_kbps - 1.0).abs() < 0.03, "{name}: {mean} kbit/s, expected {expected_kbps}");
    }
}

#[test]
fn datagrams_and_connections_share_a_medium_and_nothing_gets_lost_uncounted() {
    let medium = medium(wlan::Standard::B, 11);
    let links = [wifi_link(&medium, "ap", "x"), wifi_link(&medium, "ap", "y")].concat();
    let datagrams = udp("udp", ("y", "ap"), Rate::from_bps(2_000_000), 1_000, Some(2_000_000));
    let download = tcp("tcp", ("ap", "x"), "cubic", |flow| flow.size = Some(Bytes::new(3_000_000)));
    let result = run(&scenario(Duration::from_secs(60), links, vec![download, datagrams]), &[]);
    let [tcp, udp] = result.flows.as_slice() else { panic!("two flows") };
    assert_eq!(tcp.delivered, Bytes::new(3_000_000));
    assert_eq!(udp.packets_sent, 2_000);
    let lost = udp.packets_lost;
    let payload = udp.delivered.get() / (2_000 - lost);
    assert_eq!(udp.delivered.get(), (2_000 - lost) * payload);
    assert!(tcp.completed.is_some() && lost < 100, "{lost}");
}

#[test]
fn answers_contend_even_where_nobody_measures_their_link() {
    let medium = medium(wlan::Standard::B, 11);
    let measured = wifi_link(&medium, "a", "b").map(|link| Link { buffer: Buffer::Unbounded, ..link });
    let [there, back] = measured.clone();
    let unmeasured = [there, Link { reported: false, ..back }];
    let goodput = |links: &[Link]| {
        let flows = vec![qualnet("main", ("a", "b"))];
        run(&scenario(Duration::from_secs(10), links.to_vec(), flows), &[]).flows[0].goodput
    };
    assert_eq!(goodput(&measured), goodput(&unmeasured));
}

#[test]
fn what_a_packet_costs_beside_its_bytes_counts_on_every_link() {
    let goodput = |reported, overhead| {
        let rate = Rate::from_bps(1_000_000);
        let there = Link {
            overhead: Bytes::new(overhead),
            reported,
            ..link("a", "b", rate, Duration::from_millis(1), Buffer::Unbounded)
        };
        let back = link("b", "a", Rate::MAX, Duration::from_millis(1), Buffer::Unbounded);
        let flow = tcp("main", ("a", "b"), "reno", |flow| flow.window = Bytes::new(20_000));
        let result = run(&scenario(Duration::from_secs(20), vec![there, back], vec![flow]), &[]);
        result.flows[0].goodput.as_bps_f64()
    };
    for reported in [true, false] {
        let ratio = goodput(reported, 500) / goodput(reported, 0);
        assert!((ratio - 1_500.0 / 2_000.0).abs() < 0.005, "{reported}: {ratio}");
    }
}

#[test]
fn an_access_point_is_one_station_however_many_it_serves() {
    // Downloads to three stations against one upload: the access point contends once, so that the upload alone
    // gets about as much as all downloads together, as UDP both ways shows.
    let medium = medium(wlan::Standard::B, 11);
    let links: Vec<Link> = ["x", "y", "z"].iter().flat_map(|to| wifi_link(&medium, "ap", to)).collect();
    let datagrams = |name: &str, from, to| udp(name, (from, to), Rate::from_bps(10_000_000), 1_500, None);
    let flows = vec![
        datagrams("dx", "ap", "x"),
        datagrams("dy", "ap", "y"),
        datagrams("dz", "ap", "z"),
        datagrams("u", "x", "ap"),
    ];
    let result = run(&scenario(Duration::from_secs(20), links, flows), &[]);
    let goodput: Vec<f64> = result.flows.iter().map(|flow| flow.goodput.as_bps_f64()).collect();
    let down: f64 = goodput[..3].iter().sum();
    assert!((down / goodput[3] - 1.0).abs() < 0.05, "{goodput:?}");
    assert!(goodput[..3].iter().all(|one| (one * 3.0 / down - 1.0).abs() < 0.05), "{goodput:?}");
}
