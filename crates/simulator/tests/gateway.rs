//! Connections that a node on their way splits.

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_results::RunResult;
use suimon_scenario::{Aggregate, Buffer, Flow, Gateway, Link, Loss, Outage, Scenario, Start, Traffic};
use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use crate::common::{link, scenario, tcp};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A server 100 ms behind the gateway, and a radio of 80 ms; `flows` go from the server to the phone.
fn world(rate: Rate, seconds: u64, flows: Vec<Flow>) -> Scenario {
    let fast = Rate::from_bps(1_000_000_000);
    let links = vec![
        link("server", "gateway", fast, MS(50), Buffer::Unbounded),
        link("gateway", "server", fast, MS(50), Buffer::Unbounded),
        // A second of the radio waits in front of it, as in the networks of paper 1.
        link("gateway", "phone", rate, MS(40), Buffer::Bytes(rate.amount_in(MS(1_000)))),
        link("phone", "gateway", fast, MS(40), Buffer::Unbounded),
    ];
    scenario(Duration::from_secs(seconds), links, flows)
}

/// A download, split where `gateway` names the sender toward the phone.
fn download(name: &str, gateway: Option<&str>, shared: bool, size: Option<Bytes>) -> Flow {
    let parse = |role, text| AlgorithmSpec::parse(role, text).unwrap();
    tcp(name, ("server", "phone"), "cubic", |tcp| {
        tcp.size = size;
        tcp.gateway = gateway.map(|cc| Gateway {
            node: "gateway".to_owned(),
            cc: parse(Role::Congestion, cc),
            receiver: parse(Role::Receiver, "drs:rtt=timestamps"),
            buffer: Bytes::new(1_000_000),
            shared,
        });
    })
}

fn run(scenario: &Scenario) -> RunResult {
    suimon_simulator::run(scenario, &[])
}

/// The 95th percentile of the delay in the radio's queue, in milliseconds, and the goodput of all flows in bit/s.
fn queue(result: &RunResult) -> (f64, f64) {
    let radio = result.queues.iter().find(|queue| queue.name == "gateway-phone").unwrap();
    (radio.delay_p95.as_millis_f64(), result.flows.iter().map(|flow| flow.goodput.as_bps_f64()).sum())
}

const RADIO: Rate = Rate::from_bps(2_000_000);

#[test]
fn fs_at_at_the_gateway_keeps_the_radio_s_queue_short_and_the_radio_busy() {
    for rate in [384_000, 2_000_000, 20_000_000].map(Rate::from_bps) {
        let of = |gateway| queue(&run(&world(rate, 60, vec![download("main", gateway, true, None)])));
        let (whole, split) = (of(None), of(Some("fs-at")));
        assert!(split.0 <= whole.0 / 4.0, "{rate}: {split:?} ms and bit/s, without a gateway {whole:?}");
        assert!(split.1 >= 0.98 * whole.1, "{rate}: {split:?} ms and bit/s, without a gateway {whole:?}");
    }
}

#[test]
fn a_split_loop_makes_up_for_the_radio_s_losses() {
    let of = |rate, loss, gateway| {
        let mut scenario = world(rate, 60, vec![download("main", gateway, true, None)]);
        scenario.links[2].impairments.loss = Loss::Random(Probability::new(loss).unwrap());
        queue(&run(&scenario)).1
    };
    let fast = Rate::from_bps(20_000_000);
    let (whole, split) = (of(fast, 0.01, None), of(fast, 0.01, Some("fs-at")));
    assert!(split > 3.0 * whole, "{split} bit/s, without a gateway {whole}");
    // CUBIC alone has more than a third of a slower radio, which a gateway fills.
    let (whole, split) = (of(RADIO, 0.01, None), of(RADIO, 0.01, Some("fs-at")));
    let full = of(RADIO, 0.0, Some("fs-at"));
    assert!(
        split > 2.0 * whole && split > 0.97 * full,
        "{split} bit/s, without a gateway {whole}, without loss {full}"
    );
}

#[test]
fn every_byte_passes_and_a_transfer_completes_once() {
    let size = Bytes::new(1_000_000);
    let of = |gateway| {
        let mut scenario = world(RADIO, 60, vec![download("main", gateway, true, Some(size))]);
        scenario.stop_when_complete = true;
        run(&scenario)
    };
    let (whole, split) = (of(None), of(Some("fs-at")));
    assert_eq!((split.flows.len(), split.flow_series.len()), (1, 0));
    assert_eq!(split.flows[0].delivered, size);
    let time = |result: &RunResult| result.flows[0].completed.unwrap();
    assert!(time(&split) <= time(&whole), "{:?} and {:?}", time(&split), time(&whole));
    assert_eq!(split.events.iter().filter(|event| event.flow == 0).count(), split.events.len());
}

#[test]
fn a_gateway_holds_what_its_window_lets_in() {
    // The phone is gone after a second; the server goes on as long as the gateway takes anything.
    let mut scenario = world(RADIO, 20, vec![download("main", Some("fs-at"), true, None)]);
    let out = Outage { from: Instant::ZERO + MS(1_000), to: Instant::ZERO + MS(19_000) };
    scenario.links[2].impairments.outages = vec![out];
    let result = run(&scenario);
    let servers = result.queues.iter().find(|queue| queue.name == "server-gateway").unwrap();
    let taken = servers.bytes.get();
    // A second's worth of the radio, and twice what was read in a round trip, which slow start may have made more.
    assert!(taken < 1_000_000, "{taken} bytes left the server");
}

#[test]
fn connections_to_one_phone_share_its_target() {
    let of = |count: usize, shared| {
        let flows =
            (0..count).map(|nth| download(&format!("main-{nth}"), Some("fs-at"), shared, None)).collect();
        queue(&run(&world(RADIO, 60, flows)))
    };
    let (one, eight, apart) = (of(1, true), of(8, true), of(8, false));
    assert!(eight.0 <= 1.5 * one.0, "{eight:?} ms and bit/s; one has {one:?}");
    assert!(eight.1 >= 0.98 * one.1, "{eight:?} ms and bit/s; one has {one:?}");
    assert!(apart.0 > eight.0, "{apart:?} without sharing, {eight:?} with it");
}

#[test]
fn a_page_hardly_waits_for_a_download_to_the_same_phone() {
    let time = |shared, beside: bool| {
        let page = download("page", Some("fs-at"), shared, Some(Bytes::new(1_000_000)));
        let download = download("download", Some("fs-at"), shared, None);
        let flows = if beside { vec![page, download] } else { vec![page] };
        let mut world = world(RADIO, 60, flows);
        let begins = Instant::ZERO + MS(20_000);
        world.flows[0].start = Start::At(begins);
        let result = run(&world);
        let taken = result.flows[0].completed.unwrap().saturating_since(begins);
        (taken.as_secs_f64(), result.flows.last().unwrap().goodput)
    };
    let ((alone, _), (shared, download), (apart, _)) =
        (time(true, false), time(true, true), time(false, true));
    // The download keeps a ninth.
    assert!(shared <= 1.25 * alone, "{shared} s beside a download, {alone} s alone");
    assert!(apart >= 1.5 * alone, "{apart} s where each has a target of its own");
    assert!(download.as_bps_f64() >= 0.85 * RADIO.as_bps_f64(), "{download}");
}

#[test]
fn a_server_in_slow_start_leaves_no_burst_at_the_radio() {
    // The server's bursts fill the radio for a part of each round trip only: FS-AT has to bound what comes once they do so all the time.
    let mut scenario =
        world(Rate::from_bps(20_000_000), 4, vec![download("main", Some("fs-at"), true, None)]);
    scenario.links[2].buffer = Buffer::Unbounded;
    let result = run(&scenario);
    let radio = result.queues.iter().find(|queue| queue.name == "gateway-phone").unwrap();
    // FS-AT measures a product of bandwidth and delay of 80 ms when slow start may have doubled twice what it aims at.
    assert!(radio.delay_max <= MS(260), "{} waited", radio.delay_max);
}

/// A download over two radios, each behind a gateway of its own where `split`.
fn over_two(split: bool, outage: bool) -> RunResult {
    let fast = Rate::from_bps(1_000_000_000);
    let mut links = Vec::new();
    for (gateway, delay) in [("near", MS(10)), ("far", MS(40))] {
        links.push(link("server", gateway, fast, MS(20), Buffer::Unbounded));
        links.push(link(gateway, "server", fast, MS(20), Buffer::Unbounded));
        links.push(link(gateway, "phone", RADIO, delay, Buffer::Bytes(Bytes::new(100_000))));
        links.push(link("phone", gateway, fast, delay, Buffer::Unbounded));
        for there in [links.len() - 4, links.len() - 2] {
            links[there + 1].name = Link::other_direction(&links[there].name);
        }
    }
    if outage {
        let out = Outage { from: Instant::ZERO + MS(2_000), to: Instant::ZERO + MS(4_000) };
        links[2].impairments.outages = vec![out];
    }
    let flows = ["near", "far"].map(|gateway| {
        let mut flow = download(gateway, split.then_some("fs-at"), true, None);
        flow.via = Some(vec![format!("server-{gateway}"), format!("{gateway}-phone")]);
        if let Traffic::Tcp(tcp) = &mut flow.traffic
            && let Some(own) = &mut tcp.gateway
        {
            own.node = gateway.to_owned();
        }
        flow
    });
    let mut scenario = scenario(Duration::from_secs(60), links, flows.into());
    scenario.aggregates = vec![Aggregate {
        name: "stream".to_owned(),
        flows: vec!["near".to_owned(), "far".to_owned()],
        scheduler: AlgorithmSpec::parse(Role::Path, "least-buffered").unwrap(),
        size: Some(Bytes::new(4_000_000)),
        application_rate: None,
        send_buffer: Bytes::new(1_000_000),
        reorder_buffer: Bytes::new(4_000_000),
        copy_stalled: true,
        reconnect: None,
    }];
    scenario.stop_when_complete = true;
    scenario.check().unwrap();
    run(&scenario)
}

#[test]
fn a_stream_over_two_radios_arrives_once_through_the_gateways_of_both() {
    for outage in [false, true] {
        let (whole, split) = (over_two(false, outage), over_two(true, outage));
        for result in [&whole, &split] {
            assert_eq!(result.aggregates[0].delivered, Bytes::new(4_000_000));
            assert!(result.aggregates[0].completed.is_some(), "{outage}");
            assert_eq!(result.flows.len(), 2);
            assert!(
                result.flows.iter().all(|flow| flow.delivered > Bytes::new(1_000_000)),
                "{:?}",
                result.flows
            );
        }
        if !outage {
            let goodput = |result: &RunResult| result.aggregates[0].goodput.as_bps_f64();
            assert!(goodput(&split) > 0.85 * 2.0 * RADIO.as_bps_f64(), "{}", goodput(&split));
            let longest =
                |result: &RunResult| result.queues.iter().map(|queue| queue.delay_p95).max().unwrap();
            assert!(longest(&split) < longest(&whole), "{} and {}", longest(&split), longest(&whole));
        }
    }
}

#[test]
fn a_stream_whose_paths_are_connected_anew_takes_no_gateway() {
    let mut scenario = world(RADIO, 1, vec![download("main", Some("fs-at"), true, None)]);
    let aggregate = |reconnect| Aggregate {
        name: "stream".to_owned(),
        flows: vec!["main".to_owned()],
        scheduler: AlgorithmSpec::parse(Role::Path, "least-buffered").unwrap(),
        size: None,
        application_rate: None,
        send_buffer: Bytes::new(1_000_000),
        reorder_buffer: Bytes::new(1_000_000),
        copy_stalled: true,
        reconnect,
    };
    for (reconnect, fine) in [(None, true), (Some(Duration::from_secs(3)), false)] {
        scenario.aggregates = vec![aggregate(reconnect)];
        assert_eq!(scenario.check().is_ok(), fine, "{reconnect:?}");
    }
}

#[test]
fn a_gateway_is_between_the_ends() {
    let mut scenario = world(RADIO, 1, vec![download("main", Some("fs-at"), true, None)]);
    for (node, fine) in [("gateway", true), ("server", false), ("phone", false), ("nowhere", false)] {
        let Traffic::Tcp(tcp) = &mut scenario.flows[0].traffic else { unreachable!() };
        tcp.gateway.as_mut().unwrap().node = node.to_owned();
        assert_eq!(scenario.check().is_ok(), fine, "{node}");
    }
}
