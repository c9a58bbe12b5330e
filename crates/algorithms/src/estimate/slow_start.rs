//! RTT by slow start (Jiang, Dovrolis: Passive Estimation of TCP Round-Trip Times, ACM Computer
//! Communication Review 32 (3), 2002).
//!
//! A connection sends its initial window in a burst and the next one when the first is acknowledged: the
//! starts of these two bursts are one round-trip time apart.

use alloc::boxed::Box;

use suimon_units::{Bytes, Instant};

use super::slots::Slots;
use super::{RttEstimator, RttSample, Seen};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "slow-start",
    summary: "time from a connection's first burst to its second; once for each connection",
    source: "Jiang, Dovrolis: Passive Estimation of TCP Round-Trip Times, 2002",
    colour: "#edc948",
    parameters: &[
        Parameter {
            name: "places",
            help: "connections that are remembered at once; more push out others",
            default: Value::Count(1_024),
            range: Range::Between(1.0, 1e7),
        },
        Parameter {
            name: "data",
            help: "packets smaller than this carry no data",
            default: Value::Bytes(Bytes::new(100)),
            range: Range::Any,
        },
    ],
};

/// Estimates the round-trip time of connections from their first two bursts.
#[derive(Debug, Clone)]
pub struct SlowStart {
    starting: Slots<Starting>,
    data: Bytes,
}

/// The progress of a connection that has opened.
#[derive(Debug, Clone, Copy)]
enum Starting {
    /// No data yet.
    Opened,
    /// One packet of data.
    One(Instant),
    /// The first burst, from the first packet to the last so far.
    Burst(Instant, Instant),
}

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn RttEstimator> {
    Box::new(SlowStart { starting: Slots::new(arguments.count("places")), data: arguments.bytes("data") })
}

impl RttEstimator for SlowStart {
    fn on_packet(&mut self, seen: &Seen, _random: &mut RandomStream) -> Option<RttSample> {
        let &Seen { now, flow, .. } = seen;
        if seen.opens_connection {
            self.starting.put(flow, Starting::Opened);
            return None;
        }
        if seen.size < self.data {
            return None;
        }
        let next = match self.starting.take(flow)? {
            Starting::Opened => Starting::One(now),
            // Initial windows have two packets at least, so the second one belongs to the first burst.
            Starting::One(first) => Starting::Burst(first, now),
            // A pause twice as long as all of the burst so far ends it.
            Starting::Burst(first, last) if now.saturating_since(last) > last.saturating_since(first) * 2 => {
                return Some(RttSample { flow, rtt: now.saturating_since(first), at: now });
            }
            Starting::Burst(first, _) => Starting::Burst(first, now),
        };
        self.starting.put(flow, next);
        None
    }

    fn memory(&self) -> Bytes {
        Bytes::new(size_of::<Self>() as u64) + self.starting.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{data, ms, samples};
    use super::*;
    use crate::queue::FlowId;
    use crate::registry::{AlgorithmSpec, Role};

    fn syn(flow: u32, at: f64) -> Seen {
        Seen { size: Bytes::new(40), opens_connection: true, ..data(flow, at) }
    }

    fn estimates(packets: &[Seen]) -> Vec<RttSample> {
        let spec = AlgorithmSpec::parse(Role::Estimator, "slow-start").unwrap();
        samples(&mut *spec.build_estimator(), packets)
    }

    /// A connection: SYN, the ACK of the handshake, then windows of 10, 20 and 40 packets a round trip apart.
    fn connection(flow: u32, start: f64, rtt: f64, gap: f64) -> Vec<Seen> {
        let ack = Seen { size: Bytes::new(52), ..data(flow, start + rtt) };
        let mut packets = vec![syn(flow, start), ack];
        for (round, window) in [(1, 10), (2, 20), (3, 40)] {
            for packet in 0..window {
                packets.push(data(flow, start + f64::from(round) * rtt + f64::from(packet) * gap));
            }
        }
        packets
    }

    #[test]
    fn the_second_burst_tells_the_round_trip_time_once() {
        for rtt in [5.0, 50.0, 500.0] {
            // The initial window lasts up to a third of the round trip.
            for gap in [0.001 * rtt, rtt / 28.0] {
                let expected =
                    RttSample { flow: FlowId(3), rtt: ms(rtt), at: Instant::ZERO + ms(7.0 + 2.0 * rtt) };
                assert_eq!(estimates(&connection(3, 7.0, rtt, gap)), [expected], "{rtt} {gap}");
            }
        }
    }

    #[test]
    fn a_burst_longer_than_a_third_of_the_round_trip_gives_no_estimate_that_is_too_short() {
        for sample in estimates(&connection(0, 0.0, 100.0, 5.0)) {
            assert!(sample.rtt >= ms(100.0), "{sample:?}");
        }
    }

    #[test]
    fn connections_that_open_at_once_are_told_apart() {
        let mut packets: Vec<_> =
            (0..50).flat_map(|flow| connection(flow, f64::from(flow), 20.0 + f64::from(flow), 0.5)).collect();
        packets.sort_by_key(|seen| seen.now);
        let found = estimates(&packets);
        assert_eq!(found.len(), 50);
        assert!(found.iter().all(|sample| sample.rtt == ms(20.0 + f64::from(sample.flow.0))));
    }
}
