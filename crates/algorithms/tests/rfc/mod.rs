//! Disciplines beside the pseudocode of their specifications, written a second time and as literally as it
//! goes: driven with the same packets, both drop, mark and send the same packets at the same times.

mod codel;
mod dualpi2;
mod fq_codel;
mod pie;
mod traffic;

use std::collections::VecDeque;

use suimon_algorithms::queue::{self, Buffer, Ecn, FlowId};
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Role, build_queue};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// A packet. The fields that pseudocode sets are its own, not the discipline's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packet {
    id: u64,
    flow: u32,
    size: u64,
    ecn: Ecn,
    /// When it arrived, in nanoseconds.
    tstamp: u64,
}

impl queue::Packet for Packet {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::CongestionExperienced;
    }
}

impl Packet {
    fn ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }
}

/// Pseudocode, made to run: time in nanoseconds.
trait Pseudocode {
    fn enqueue(&mut self, now: u64, packet: Packet, dropped: &mut Vec<Packet>);
    fn dequeue(&mut self, now: u64, dropped: &mut Vec<Packet>) -> Option<Packet>;
}

/// The plain queue below the pseudocode.
#[derive(Debug, Default, Clone)]
struct PlainQueue {
    packets: VecDeque<Packet>,
}

impl PlainQueue {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| packet.size).sum()
    }
}

/// The counts of a run, so that a test can ask that they are not zero.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    marked: u64,
    dropped: u64,
}

/// Sends `traffic` over a link of `rate` with the discipline that `spec` names, and at each step the
/// pseudocode must do the same.
fn assert_agrees(
    spec: &str,
    buffer: Buffer,
    rate: Rate,
    traffic: &[Packet],
    pseudocode: &mut dyn Pseudocode,
) -> Tally {
    let algorithm = AlgorithmSpec::parse(Role::Queue, spec).expect("a registered discipline");
    let random = RandomStream::new(1, "rfc");
    let mut queue = build_queue::<Packet>(&algorithm, buffer, random).into_discipline();
    queue.on_link_rate(Instant::ZERO, rate);
    let mut tally = Tally::default();
    let mut arrivals = traffic.iter().peekable();
    let mut free_at = Instant::ZERO;
    loop {
        let waiting = queue.backlog().packets > 0;
        let arrival = arrivals.peek().map(|packet| Instant::from_nanos(packet.tstamp));
        let arrives = match arrival {
            Some(at) => !waiting || at <= free_at,
            None if !waiting => break,
            None => false,
        };
        let (mut dropped, mut expected_drops) = (Vec::new(), Vec::new());
        if arrives {
            let packet = arrivals.next().expect("just looked at");
            let now = Instant::from_nanos(packet.tstamp);
            pseudocode.enqueue(packet.tstamp, packet.clone(), &mut expected_drops);
            queue.enqueue(now, packet.clone(), &mut dropped);
            free_at = free_at.max(now);
        } else {
            let expected = pseudocode.dequeue(free_at.as_nanos(), &mut expected_drops);
            let sent = queue.dequeue(free_at, &mut dropped);
            assert_eq!(sent, expected, "{spec}: sent at {free_at}, after {tally:?}");
            if let Some(packet) = sent {
                let before = &traffic[packet.id as usize];
                tally.sent += 1;
                tally.marked += u64::from(packet.ecn != before.ecn);
                free_at += rate.transmission_time(Bytes::new(packet.size));
            }
        }
        tally.dropped += dropped.len() as u64;
        let dropped: Vec<_> = dropped.into_iter().map(|dropped| dropped.packet).collect();
        assert_eq!(dropped, expected_drops, "{spec}: dropped at {free_at}, after {tally:?}");
    }
    assert_eq!(tally.sent + tally.dropped, traffic.len() as u64);
    tally
}

/// The random numbers that a discipline built by [`assert_agrees`] is given.
fn random() -> RandomStream {
    RandomStream::new(1, "rfc")
}

const MS: Duration = Duration::from_millis(1);
