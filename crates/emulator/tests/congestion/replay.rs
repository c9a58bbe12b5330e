//! Connections traced and fed to the simulator's FS-AT.

use std::time::Duration;

use suimon_algorithms::congestion::fs_at::{FsAt, Mode};
use suimon_algorithms::congestion::reno::Reno;
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Limits,
};
use suimon_algorithms::probe::Probe;
use suimon_linux::congestion::{Event, Record};
use suimon_units::{Bytes, Instant as Simulated};

use super::{LENGTH, Own, can_load, hosts, traced, transfer};

/// The inner values of the Rust FS-AT.
#[derive(Default)]
struct Inner {
    space: u64,
    target: u64,
    rtt_min_us: u32,
}

impl Probe for Inner {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "space_bytes" => self.space = value as u64,
            "target_bytes" => self.target = value as u64,
            "rtt_min_ms" => self.rtt_min_us = (value * 1e3).round() as u32,
            _ => {}
        }
    }
}

/// The counts of cases that a replay covered.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    acks: usize,
    controlled: usize,
    app_limited: usize,
    selective: usize,
    losses: usize,
    radio: usize,
    marks: usize,
    undone: usize,
}

/// Feeds the kernel's events to the Rust FS-AT and holds every ACK's target, space and shortest round-trip time, and
/// every loss's judgement, against the kernel's: equal to the byte.
pub(super) fn replay(records: &[Record]) -> Replayed {
    let mut met = Replayed::default();
    let mut fs_at: Option<FsAt<Reno>> = None;
    let mut limits = Limits::initial(Bytes::ZERO);
    let mut radio = 0;
    for (number, record) in records.iter().enumerate() {
        assert_eq!(record.number as usize, number, "no record is missing");
        let now = Simulated::from_nanos(record.now_us * 1_000);
        let mss = Bytes::new(u64::from(record.mss));
        if record.event() == Event::Start {
            assert!(number == 0);
            limits = Limits::initial(mss * u64::from(record.values.cwnd_segments));
            let mut new = FsAt::new(Reno::default(), Mode::Printed, false, Bytes::new(8_000));
            new.on_established(now, &mut limits);
            fs_at = Some(new);
        }
        let fs_at = fs_at.as_mut().expect("a connection starts first");
        let flight_size = Bytes::new(u64::from(record.flight_size));
        limits.cwnd = mss * u64::from(record.values.cwnd_segments);
        let congestion =
            |kind| Congestion { now, kind, flight_size, used_window: flight_size, snd_nxt: 0, mss };
        match record.event() {
            Event::Ack => {
                let ack = Ack {
                    newly_acked: Bytes::new(u64::from(record.newly_acked)),
                    rtt: (record.rtt_us > 0)
                        .then(|| suimon_units::Duration::from_micros(u64::from(record.rtt_us))),
                    flight_size,
                    prior_flight_size: flight_size,
                    snd_wnd: Bytes::new(u64::from(record.snd_wnd)),
                    app_limited: record.app_limited == 1,
                    in_recovery: true,
                    counting: AckCounting::PerAck,
                    ..Ack::new(now, Bytes::new(u64::from(record.delivered)), mss)
                };
                fs_at.on_ack(&ack, &mut limits);
                met.acks += 1;
                met.controlled += usize::from(record.values.target_bytes > 0);
                met.app_limited += usize::from(record.app_limited == 1);
                met.selective += usize::from(record.newly_acked == 0 && record.delivered > 0);
            }
            Event::Loss | Event::Mark => {
                let kind =
                    if record.event() == Event::Loss { CongestionKind::Loss } else { CongestionKind::Ecn };
                let mut after = Limits { ssthresh: Bytes::new(1), ..limits };
                let cwnd = after.cwnd;
                fs_at.on_congestion(&congestion(kind), &mut after);
                // (10) keeps at least cwnd, which over Reno (11) never does at half the flight or less.
                if record.event() == Event::Loss {
                    assert_eq!(
                        record.radio == 1,
                        !fs_at.passed_on(),
                        "judged otherwise at record {number}, cwnd {cwnd}"
                    );
                    met.losses += 1;
                    radio += usize::from(record.radio == 1);
                } else {
                    met.marks += 1;
                }
            }
            Event::Undo => met.undone += 1,
            Event::Path => fs_at.forget_path(),
            Event::Start | Event::Timeout | Event::End => {}
        }
        let mut inner = Inner::default();
        fs_at.probe(&mut inner);
        let kernel = (record.values.target_bytes, record.values.space_bytes, record.values.rtt_min_us);
        assert_eq!((inner.target, inner.space, inner.rtt_min_us), kernel, "record {number}: {record:?}");
    }
    met.radio = radio;
    met
}

/// One connection over `link`, traced and replayed.
fn replayed(
    algorithm: &str,
    link: &str,
    queue: &str,
    ecn: bool,
    length: Duration,
    burst: Option<usize>,
) -> Replayed {
    let own = Own::load(algorithm);
    let hosts = hosts(link, queue);
    if ecn {
        hosts.near.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
        hosts.far.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
    }
    let records = traced(&own, || {
        transfer(&hosts, &own, length, burst);
    });
    drop(hosts);
    let met = replay(&records);
    eprintln!("{algorithm} over {link}, {queue}: {met:?}");
    met
}

#[test]
fn a_bulk_transfer_replays_ack_for_ack() {
    if !can_load() {
        return;
    }
    for algorithm in ["fs-at", "fs-at+cubic"] {
        let met = replayed(algorithm, "10Mbit 40ms 200packets", "droptail", false, LENGTH, None);
        assert!(met.acks > 1_000 && met.controlled > met.acks / 2, "{met:?}");
    }
}

#[test]
fn an_application_limited_transfer_replays_ack_for_ack() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "5Mbit 60ms 100packets", "droptail", false, LENGTH, Some(40_000));
    assert!(met.app_limited > 50, "{met:?}");
}

#[test]
fn a_lossy_transfer_replays_ack_for_ack_and_loss_for_loss() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "10Mbit 40ms 200packets loss=1%", "droptail", false, LENGTH, None);
    assert!(met.losses >= 3 && met.selective > 10, "{met:?}");
}

#[test]
fn a_reordered_transfer_replays_ack_for_ack() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "10Mbit 40ms 200packets reorder=2%/15ms", "droptail", false, LENGTH, None);
    assert!(met.selective > 50, "{met:?}");
}

#[test]
fn a_marked_transfer_replays_ack_for_ack_and_takes_no_mark_for_the_radios() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "10Mbit 40ms 200packets", "codel", true, LENGTH, None);
    assert!(met.marks > 2 && met.radio == 0, "{met:?}");
}
