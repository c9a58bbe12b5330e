//! A measurement over the loopback device.

use std::time::Duration;

use suimon_measure::client::{Plan, Progress, measure};
use suimon_measure::server::{Limits, Server};
use suimon_measure::{Direction, Line, RecordPlan, record};
use tokio::net::TcpListener;
use tokio::sync::watch;

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_measured_and_told_to_stop_gives_what_is_known() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address).await else {
            eprintln!("skipped: {address} is not there");
            continue;
        };
        let address = listener.local_addr().unwrap();
        let server = Server::new(Limits::default(), |_, _, _| Vec::new());
        tokio::spawn(server.clone().serve(listener));
        let (stop, told) = watch::channel(false);
        let plan = Plan {
            idle: Duration::from_millis(300),
            load: Duration::from_millis(600),
            bytes: 200_000_000,
            ..Plan::default()
        };
        // It stops in the middle of the upload.
        let progress = |progress: Progress| {
            if progress.direction == Some(Direction::Upload) {
                stop.send_replace(true);
            }
        };
        let recording = measure(address, &plan, told, progress).await.unwrap();
        assert_eq!(recording.is_ipv6, address.is_ipv6());
        assert!(recording.probes.len() > 30, "{}", recording.probes.len());
        let line = Line::of(&recording).unwrap();
        assert!(line.idle.rtt_ms < 50.0 && line.idle.loss_percent < 50.0, "{:?}", line.idle);
        assert!(line.download.unwrap().capacity_mbps > 1.0);
        assert!(recording.upload.unwrap().receiver.iter().any(|sample| sample.received > 0));
        assert_eq!(server.report().opened, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_directions_are_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(Limits::default(), |_, _, _| Vec::new());
    tokio::spawn(server.clone().serve(listener));
    let (_stop, told) = watch::channel(false);
    let plan = RecordPlan { length: Duration::from_millis(300), download: true, upload: true };
    let recorded = record(address, &plan, told, |_| {}).await.unwrap();
    for arrivals in [recorded.download, recorded.upload] {
        let arrivals = arrivals.unwrap();
        assert!((150..900).contains(&arrivals.packets.len()), "{} ms", arrivals.packets.len());
        assert!(arrivals.mean_bps() > 1e6, "{}", arrivals.mean_bps());
        assert!(!arrivals.opportunities_ms().is_empty());
    }
    assert_eq!(server.report().opened, 2);
}
