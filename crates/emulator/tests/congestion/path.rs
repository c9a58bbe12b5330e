//! Changes of the path while data flow: spurious timeouts, and another path.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use std::io::{Read, Write};

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts, Way};
use suimon_linux::congestion::{Event, Record};
use suimon_linux::{Namespace, Route};
use suimon_scenario::LinkSpec;
use suimon_testing::{assert_in_time, in_time, untimely};

use super::replay::replay;
use super::{Own, can_load, connect, hosts, traced, transfer};

/// Sends for `length` under FS-AT, traced, while `meanwhile` does something to the path.
fn sends_while(hosts: &TwoHosts, length: Duration, meanwhile: impl FnOnce() + Send) -> Vec<Record> {
    let own = Own::load("fs-at");
    let records = traced(&own, || {
        thread::scope(|scope| {
            scope.spawn(meanwhile);
            transfer(hosts, &own, length, None);
        });
    });
    replay(&records);
    records
}

/// Payload acknowledged within `within` after `from`, both from the first record on.
fn acknowledged(records: &[Record], from: Duration, within: Duration) -> u64 {
    let start = records[0].now_us + from.as_micros() as u64;
    let in_time = |record: &&Record| {
        record.event() == Event::Ack && (start..start + within.as_micros() as u64).contains(&record.now_us)
    };
    records.iter().filter(in_time).map(|record| u64::from(record.newly_acked)).sum()
}

/// A counter of the kernel's, as `nstat` calls it.
fn counter(namespace: &Namespace, name: &str) -> u64 {
    let text = namespace.run(|| fs::read_to_string("/proc/thread-self/net/netstat")).unwrap().unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split_whitespace().position(|one| one == name).unwrap();
    values.split_whitespace().nth(place).unwrap().parse().unwrap()
}

/// The link stands still for a second, which is no loss: all that was sent arrives, late.
fn a_mistaken_timeout_is_undone(timestamps: &str, counted: &str) {
    if !can_load() {
        return;
    }
    in_time(|| {
        let hosts = hosts("4Mbit 60ms 200packets", "droptail");
        hosts.near.set_sysctl("ipv4/tcp_timestamps", timestamps).unwrap();
        let still = Duration::from_millis(1_200);
        let records = sends_while(&hosts, Duration::from_millis(4_200), || {
            thread::sleep(still);
            hosts.emulation.hold(0, Way::There);
            thread::sleep(Duration::from_millis(1_000));
            hosts.emulation.restore(0, Way::There);
        });
        let place = |event| records.iter().position(|record| record.event() == event);
        let (Some(timeout), Some(undo)) = (place(Event::Timeout), place(Event::Undo)) else {
            // The kernel tells of no timeout in a recovery, so what came before it says why.
            let others = records.iter().filter(|record| record.event() != Event::Ack);
            let told: Vec<_> =
                others.map(|record| (record.event(), record.now_us - records[0].now_us)).collect();
            untimely(format!(
                "of a timeout and its undo one is missing: events and their microseconds {told:?}"
            ));
        };
        assert_in_time!(timeout < undo, "{timeout} {undo}");
        let (before, after) = (&records[timeout - 1], &records[undo + 1]);
        assert_in_time!(
            after.values.cwnd_segments >= before.values.cwnd_segments && after.ssthresh >= before.ssthresh,
            "the window is back: {before:?} {after:?}"
        );
        assert_in_time!(counter(&hosts.near, counted) >= 1, "{counted}");
        // As soon as the link moves again it is full, and nothing is taken for lost that was not.
        let got = acknowledged(&records, still + Duration::from_millis(1_300), Duration::from_millis(1_500));
        let full = 4e6 / 8.0 * 1.5 * 1_448.0 / 1_500.0;
        assert_in_time!(got as f64 > 0.95 * full, "{got} of {full}");
        let again = counter(&hosts.near, "TCPSlowStartRetrans") + counter(&hosts.near, "TCPFastRetrans");
        assert_in_time!(again <= 2, "{again} sent again");
    });
}

#[test]
fn a_timeout_that_timestamps_tell_to_be_a_mistake_is_undone() {
    a_mistaken_timeout_is_undone("1", "TCPLossUndo");
}

#[test]
fn a_timeout_that_f_rto_tells_to_be_a_mistake_is_undone() {
    a_mistaken_timeout_is_undone("0", "TCPSpuriousRTOs");
}

#[test]
fn after_a_true_outage_data_flow_at_the_links_rate() {
    if !can_load() {
        return;
    }
    in_time(|| {
        let hosts = hosts("4Mbit 60ms 200packets", "droptail");
        let records = sends_while(&hosts, Duration::from_millis(5_500), || {
            thread::sleep(Duration::from_millis(1_000));
            // Where ACKs were lost too, some of the retransmitted segments would have been there already.
            hosts.emulation.cut(0, Way::There);
            thread::sleep(Duration::from_millis(700));
            hosts.emulation.restore(0, Way::There);
        });
        let any = |event| records.iter().any(|record| record.event() == event);
        assert_in_time!(any(Event::Timeout) && !any(Event::Undo), "all was lost indeed");
        // Two timeouts, the second twice the first, are over by then.
        let got = acknowledged(&records, Duration::from_millis(3_900), Duration::from_millis(1_500));
        let full = 4e6 / 8.0 * 1.5 * 1_448.0 / 1_500.0;
        assert_in_time!(got as f64 > 0.9 * full, "{got} of {full}");
    });
}

#[test]
fn a_route_over_another_device_is_measured_anew_within_two_round_trips() {
    if !can_load() {
        return;
    }
    in_time(|| {
        let droptail = AlgorithmSpec::parse(Role::Queue, "droptail").unwrap();
        let paths = ["4Mbit 40ms 100packets", "4Mbit 240ms 100packets"]
            .map(|link| LinkSpec::parse(link).unwrap().links(&droptail));
        let hosts = TwoHosts::new(&Setup::default(), &paths).unwrap();
        for host in [&hosts.near, &hosts.far] {
            host.set_sysctl("ipv4/conf/all/rp_filter", "0").unwrap();
        }
        let [first, second] = [&hosts.paths[0], &hosts.paths[1]];
        let route = Route {
            destination: Some((IpAddr::from(first.far), 32)),
            via: Some(second.far.into()),
            device: second.device.clone(),
            // The table of packets from the first path's address.
            table: 7_000,
            local: false,
        };
        let changed = Duration::from_millis(2_000);
        let records = sends_while(&hosts, Duration::from_secs(5), || {
            thread::sleep(changed);
            hosts.near.add_route(&route).unwrap();
        });
        let paths = records.iter().filter(|record| record.event() == Event::Path).count();
        assert_eq!(paths, 1);
        let path = records.iter().position(|record| record.event() == Event::Path).unwrap();
        let before = records[path - 1].values.rtt_min_us;
        assert_in_time!((40_000..50_000).contains(&before), "{before}");
        // 120 ms there by the other device, 20 ms back by the first.
        let anew = records[path..].iter().find(|record| record.values.rtt_min_us > 0).unwrap();
        let took = anew.now_us - records[path].now_us;
        assert_in_time!(took < 2 * 140_000 + 100_000, "{took} us");
        let last = records.iter().rfind(|record| record.event() == Event::Ack).unwrap();
        assert_in_time!((140_000..200_000).contains(&last.values.rtt_min_us), "{last:?}");
        let got = acknowledged(&records, Duration::from_millis(3_300), Duration::from_millis(1_500));
        let full = 4e6 / 8.0 * 1.5 * 1_448.0 / 1_500.0;
        assert_in_time!(got as f64 > 0.9 * full, "{got} of {full}");
    });
}

#[test]
fn after_ten_seconds_of_silence_the_path_is_measured_anew() {
    if !can_load() {
        return;
    }
    in_time(|| {
        let own = Own::load("fs-at");
        let hosts = hosts("4Mbit 40ms 100packets", "droptail");
        let address = SocketAddr::from((hosts.paths[0].far, 5_001));
        let listener = hosts.far.run(|| TcpListener::bind(address)).unwrap().unwrap();
        let records = traced(&own, || {
            thread::scope(|scope| {
                scope.spawn(move || {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(1..) = stream.read(&mut buffer) {}
                });
                let mut stream = hosts.near.run(|| connect(address, &own.0.kernel_name)).unwrap();
                stream.write_all(&[0; 100_000]).unwrap();
                thread::sleep(Duration::from_millis(10_700));
                hosts.emulation.set_delay(0, Way::Both, suimon_units::Duration::from_millis(80));
                thread::sleep(Duration::from_millis(100));
                let began = Instant::now();
                stream.write_all(&[0; 400_000]).unwrap();
                thread::sleep(Duration::from_millis(1_500).saturating_sub(began.elapsed()));
            });
        });
        replay(&records);
        let path = records.iter().position(|record| record.event() == Event::Path).expect("it was forgotten");
        assert_in_time!(
            (40_000..50_000).contains(&records[path - 1].values.rtt_min_us),
            "{:?}",
            records[path - 1]
        );
        let last = records.iter().rfind(|record| record.event() == Event::Ack).unwrap();
        assert_in_time!((160_000..200_000).contains(&last.values.rtt_min_us), "{last:?}");
    });
}
