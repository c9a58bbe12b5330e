//! A measurement over the loopback device.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use suimon_linux::Namespace;
use suimon_measure::client::{MeasureError, Plan, Progress, measure};
use suimon_measure::protocol::Refusal;
use suimon_measure::server::{Limits, Server};
use suimon_measure::{Direction, Line, RecordPlan, Recorded, record};
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

/// A server at `address`, and where it listens.
async fn serve(address: &str, limits: Limits) -> (Server, SocketAddr) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(limits, |_, _, _| Vec::new());
    tokio::spawn(server.clone().serve(listener));
    (server, address)
}

#[test]
fn a_line_is_measured_and_recorded_by_a_link_local_address() {
    if !suimon_testing::can_emulate() {
        return;
    }
    let host = Namespace::new().unwrap();
    host.add_address("lo", "fe80::1".parse().unwrap(), 64).unwrap();
    let scope = host.device_index("lo").unwrap();
    let measured = host.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_server, address) = serve(&format!("[fe80::1%{scope}]:0"), Limits::default()).await;
            // The kernel takes a new address of IPv6 into use some time later.
            let began = Instant::now();
            while let Err(error) = tokio::net::TcpStream::connect(address).await {
                assert!(began.elapsed() < Duration::from_secs(5), "{error}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let (_stop, told) = watch::channel(false);
            let length = Duration::from_millis(300);
            let plan = Plan { idle: length, load: length, bytes: 2_000_000, ..Plan::default() };
            let recording = measure(address, &plan, told.clone(), |_| {}).await.unwrap();
            assert!(recording.probes.iter().any(|probe| probe.answer.is_some()));
            let plan = RecordPlan { length, download: true, upload: false };
            let mut recorded = Recorded::default();
            record(address, &plan, told, |_| {}, &mut recorded).await.unwrap();
            assert!(recorded.download.is_some());
        });
    });
    measured.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_directions_are_recorded() {
    let (server, address) = serve("127.0.0.1:0", Limits::default()).await;
    let (_stop, told) = watch::channel(false);
    let plan = RecordPlan { length: Duration::from_millis(300), download: true, upload: true };
    let mut recorded = Recorded::default();
    record(address, &plan, told, |_| {}, &mut recorded).await.unwrap();
    for arrivals in [recorded.download, recorded.upload] {
        let arrivals = arrivals.unwrap();
        assert!((150..900).contains(&arrivals.packets.len()), "{} ms", arrivals.packets.len());
        assert!(arrivals.mean_bps() > 1e6, "{}", arrivals.mean_bps());
        assert!(!arrivals.opportunities_ms().is_empty());
    }
    assert_eq!(server.report().opened, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_keeps_what_it_has_where_the_rest_does_not_come() {
    let (server, address) = serve("127.0.0.1:0", Limits { a_minute: 1, ..Limits::default() }).await;
    let (_stop, told) = watch::channel(false);
    let plan = RecordPlan { length: Duration::from_millis(300), download: true, upload: true };
    let mut recorded = Recorded::default();
    let ended = record(address, &plan, told.clone(), |_| {}, &mut recorded).await;
    assert!(matches!(ended, Err(MeasureError::Refused(Refusal::TooOften))), "{ended:?}");
    let download = recorded.download.clone();
    assert!(download.is_some() && recorded.upload.is_none());
    // Another attempt leaves it alone.
    assert!(record(address, &plan, told, |_| {}, &mut recorded).await.is_err());
    assert_eq!((recorded.download, server.report().refused), (download, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_is_stopped_while_the_queue_fills_is_empty() {
    let (_server, address) = serve("127.0.0.1:0", Limits::default()).await;
    let (stop, told) = watch::channel(false);
    let plan = RecordPlan { length: Duration::from_secs(9), download: true, upload: true };
    let mut recorded = Recorded::default();
    let progress = |_| {
        stop.send_replace(true);
    };
    record(address, &plan, told, progress, &mut recorded).await.unwrap();
    assert_eq!(recorded, Recorded::default());
}
