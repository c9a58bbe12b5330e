//! Connections that a node on their way splits.

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_results::RunResult;
use suimon_scenario::{Buffer, Flow, Gateway, Loss, Scenario, Traffic};
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
        assert!(split.1 >= 0.97 * whole.1, "{rate}: {split:?} ms and bit/s, without a gateway {whole:?}");
    }
}

#[test]
fn a_split_loop_makes_up_for_the_radio_s_losses() {
    let of = |gateway| {
        let mut scenario = world(RADIO, 60, vec![download("main", gateway, true, None)]);
        scenario.links[2].impairments.loss = Loss::Random(Probability::new(0.01).unwrap());
        queue(&run(&scenario)).1
    };
    let (whole, split) = (of(None), of(Some("fs-at")));
    assert!(split > 2.0 * whole, "{split} bit/s, without a gateway {whole}");
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
    let out = suimon_scenario::Outage { from: Instant::ZERO + MS(1_000), to: Instant::ZERO + MS(19_000) };
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
    assert!(eight.1 >= 0.97 * one.1, "{eight:?} ms and bit/s; one has {one:?}");
    assert!(apart.0 > eight.0, "{apart:?} without sharing, {eight:?} with it");
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
