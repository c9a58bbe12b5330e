//! Connections of the open mode, traced and fed to the simulator's.

use std::thread;
use std::time::Duration;

use suimon_linux::congestion::{Event, Record};
use suimon_linux::congestion_trace::{Replay, Replayed};
use suimon_testing::{assert_in_time, in_time};

use super::{LENGTH, Own, can_load, hosts, send, traced, upload};

/// The numbers of modes in a record.
const STEADY: u32 = 2;
const DRAINING: u32 = 3;
const COMPETING: u32 = 4;

/// What happens on the link.
struct Case<'a> {
    link: &'a str,
    queue: &'a str,
    ecn: bool,
    length: Duration,
    burst: Option<usize>,
    /// Connections of the open mode, and of the kernel's Reno beside them.
    flows: u16,
    beside: u16,
    /// The far host's Reno sends the other way.
    uploads: bool,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            link: "10Mbit 40ms 200packets",
            queue: "droptail",
            ecn: false,
            length: LENGTH,
            burst: None,
            flows: 1,
            beside: 0,
            uploads: false,
        }
    }
}

impl Case<'_> {
    /// Runs it, traced, and holds every decision of the kernel against the Rust one's.
    fn replayed(&self) -> (Replayed, Vec<Record>) {
        let own = Own::load("fs-at-open");
        let hosts = hosts(self.link, self.queue);
        if self.ecn {
            hosts.near.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
            hosts.far.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
        }
        let records = traced(&own, || {
            thread::scope(|scope| {
                for flow in 0..self.flows + self.beside {
                    let control = if flow < self.flows { own.0.kernel_name.as_str() } else { "reno" };
                    let (hosts, burst) = (&hosts, self.burst);
                    scope.spawn(move || send(hosts, 5_001 + flow, control, self.length, burst));
                }
                if self.uploads {
                    scope.spawn(|| upload(&hosts, 6_001, "reno", self.length));
                }
            });
        });
        let mut replay = Replay::default();
        records.iter().for_each(|record| replay.event(record));
        let outcome = replay.outcome;
        eprintln!("{}, {}: {outcome:?}", self.link, self.queue);
        assert_eq!((outcome.first.clone(), outcome.left_out), (None, 0));
        assert_eq!(outcome.connections, usize::from(self.flows));
        (outcome, records)
    }
}

fn count(records: &[Record], what: impl Fn(&Record) -> bool) -> usize {
    records.iter().filter(|record| what(record)).count()
}

#[test]
fn a_bulk_transfer_leaves_slow_start_by_a_drain_and_replays() {
    if !can_load() {
        return;
    }
    in_time(|| {
        let (met, records) = Case::default().replayed();
        assert!(met.acknowledgements > 1_000, "{met:?}");
        assert!(count(&records, |one| one.values.mode == DRAINING) > 2, "{met:?}");
        let steady = records.iter().filter(|one| one.values.mode == STEADY && one.event() == Event::Ack);
        let mut queueing: Vec<_> = steady.map(|one| one.values.queueing_us).collect();
        queueing.sort_unstable();
        // (2): x q^3 = mss K at q = 11.3 ms for 10 Mbit/s.
        let median = queueing[queueing.len() / 2];
        assert_in_time!((9_000..15_000).contains(&median), "{median}");
        let last = records.iter().rfind(|one| one.event() == Event::Ack).expect("some came");
        assert_in_time!((40_000..45_000).contains(&last.values.rtt_min_us), "{last:?}");
    });
}

#[test]
fn four_transfers_in_one_queue_replay() {
    if !can_load() {
        return;
    }
    let (met, _) = Case { flows: 4, ..Case::default() }.replayed();
    assert!(met.acknowledgements > 1_000, "{met:?}");
}

#[test]
fn an_application_limited_transfer_replays() {
    if !can_load() {
        return;
    }
    let case = Case { link: "5Mbit 60ms 100packets", burst: Some(40_000), ..Case::default() };
    let (met, records) = case.replayed();
    assert!(count(&records, |one| one.app_limited == 1) > 50, "{met:?}");
}

#[test]
fn a_lossy_transfer_replays_and_takes_losses_for_the_radios() {
    if !can_load() {
        return;
    }
    let (met, records) = Case { link: "10Mbit 40ms 200packets loss=1%", ..Case::default() }.replayed();
    let losses = |radio| count(&records, |one| one.event() == Event::Loss && one.radio == radio);
    assert!(met.congestions >= 3 && losses(1) > losses(0), "{met:?}");
}

#[test]
fn a_reordered_transfer_replays() {
    if !can_load() {
        return;
    }
    let (met, records) =
        Case { link: "10Mbit 40ms 200packets reorder=2%/15ms", ..Case::default() }.replayed();
    assert!(count(&records, |one| one.newly_acked == 0 && one.delivered > 0) > 50, "{met:?}");
}

#[test]
fn a_marked_transfer_replays() {
    if !can_load() {
        return;
    }
    let (met, records) = Case { queue: "codel", ecn: true, ..Case::default() }.replayed();
    assert!(count(&records, |one| one.event() == Event::Mark && one.radio == 0) > 2, "{met:?}");
}

#[test]
fn a_transfer_beside_senders_that_fill_the_queue_competes_and_replays() {
    if !can_load() {
        return;
    }
    in_time(|| {
        // In the simulator competition begins 11 to 24 s after the start here, in twelve runs with other starts.
        let case = Case { length: Duration::from_secs(45), beside: 2, ..Case::default() };
        let (met, records) = case.replayed();
        assert_in_time!(count(&records, |one| one.values.mode == COMPETING) > 100, "{met:?}");
        assert!(met.congestions > 0, "{met:?}");
    });
}

#[test]
fn a_transfer_beside_an_upload_takes_no_wait_of_acknowledgements_for_a_queue_and_replays() {
    if !can_load() {
        return;
    }
    in_time(|| {
        let case = Case { link: "10/2Mbit 40ms 100packets", uploads: true, ..Case::default() };
        let (met, records) = case.replayed();
        let acks = || records.iter().filter(|one| one.event() == Event::Ack && one.rtt_us > 0);
        let median = |mut values: Vec<u32>| {
            values.sort_unstable();
            values[values.len() / 2]
        };
        let round_trip = median(acks().map(|one| one.rtt_us).collect());
        let queueing = median(acks().map(|one| one.values.queueing_us).collect());
        // The upload's queue is up to 600 ms long.
        assert_in_time!(round_trip > 100_000, "{round_trip} us, {met:?}");
        assert_in_time!(queueing < 40_000, "{queueing} of {round_trip} us, {met:?}");
    });
}
