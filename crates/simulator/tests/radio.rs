//! Radio links as the simulator drives them.

mod common;

use common::{link, scenario, tcp};
use suimon_scenario::radio::hsdpa;
use suimon_scenario::{Buffer, Capacity, Cell, Hsdpa, Link, Scenario};
use suimon_simulator::run;
use suimon_units::{Bytes, Decibels, Duration, Rate};

fn cell_link(to: &str, profile: &str, geometry: f64, cell: Option<&str>) -> [Link; 2] {
    let user = hsdpa::UserParameters::new(profile.parse().unwrap(), Decibels::new(geometry));
    let terminal = Hsdpa { cell: cell.map(str::to_owned), ..Hsdpa::new(user) };
    let down = link("base", to, Rate::MAX, Duration::from_millis(90), Buffer::Unbounded);
    let up = link(to, "base", Rate::MAX, Duration::from_millis(125), Buffer::Unbounded);
    [Link { capacity: Capacity::Hsdpa(Box::new(terminal)), ..down }, Link { reported: false, ..up }]
}

fn download(to: &str) -> suimon_scenario::Flow {
    tcp(&format!("to-{to}"), ("base", to), "reno", |flow| {
        flow.size = Some(Bytes::new(1_000_000));
        flow.window = Bytes::new(96_000);
    })
}

fn shared(scheduler: hsdpa::Policy, seed: u64) -> Scenario {
    let links =
        [cell_link("near", "PA3", 10.0, Some("c")), cell_link("far", "VA30", -5.0, Some("c"))].concat();
    let flows = vec![download("near"), download("far")];
    let cells = vec![Cell { name: "c".to_owned(), scheduler }];
    let scenario = Scenario {
        seed,
        cells,
        ..scenario(Duration::from_secs(300), cell_link("x", "ST", 0.0, None).to_vec(), vec![download("x")])
    };
    let scenario = Scenario { links, flows, ..scenario };
    scenario.check().unwrap();
    scenario
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
fn the_shortest_round_trip_is_propagation_and_a_few_blocks() {
    let scenario =
        scenario(Duration::from_secs(60), cell_link("x", "ST", 15.0, None).to_vec(), vec![download("x")]);
    let rtt = run(&scenario, &[]).flows[0].rtt_min.unwrap();
    let base = Duration::from_millis(215);
    assert!(rtt >= base + Duration::from_millis(2) && rtt <= base + Duration::from_millis(6), "{rtt}");
}
