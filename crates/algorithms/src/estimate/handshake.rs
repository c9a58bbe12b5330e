//! RTT by the handshake (Jiang, Dovrolis: Passive Estimation of TCP Round-Trip Times, ACM Computer
//! Communication Review 32 (3), 2002).
//!
//! The caller's SYN and its next packet are one round-trip time apart: the SYN-ACK lies between them.

use alloc::boxed::Box;

use suimon_units::{Bytes, Instant};

use super::slots::Slots;
use super::{RttEstimator, RttSample, Seen};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "handshake",
    summary: "time from a connection's SYN to the caller's next packet; once for each connection",
    source: "Jiang, Dovrolis: Passive Estimation of TCP Round-Trip Times, 2002",
    colour: "#76b7b2",
    parameters: &[Parameter {
        name: "places",
        help: "handshakes that are remembered at once; more push out others",
        default: Value::Count(1_024),
        range: Range::Between(1.0, 1e7),
    }],
};

/// Estimates the round-trip time of connections as they open.
#[derive(Debug, Clone)]
pub struct Handshake {
    /// When the SYN passed.
    opening: Slots<Opening>,
}

#[derive(Debug, Clone, Copy)]
enum Opening {
    Syn(Instant),
    /// More than one SYN passed: which of them was answered is unknown.
    Repeated,
}

impl Handshake {
    /// Remembers so many handshakes at once.
    #[must_use]
    pub fn new(places: u64) -> Self {
        Self { opening: Slots::new(places) }
    }
}

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn RttEstimator> {
    Box::new(Handshake::new(arguments.count("places")))
}

impl RttEstimator for Handshake {
    fn on_packet(&mut self, seen: &Seen, _random: &mut RandomStream) -> Option<RttSample> {
        let before = self.opening.take(seen.flow);
        if seen.opens_connection {
            let opening = before.map_or(Opening::Syn(seen.now), |_| Opening::Repeated);
            self.opening.put(seen.flow, opening);
            return None;
        }
        match before {
            Some(Opening::Syn(at)) if seen.now > at => {
                Some(RttSample { flow: seen.flow, rtt: seen.now.saturating_since(at), at: seen.now })
            }
            _ => None,
        }
    }

    fn memory(&self) -> Bytes {
        Bytes::new(size_of::<Self>() as u64) + self.opening.memory()
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

    fn estimates(settings: &str, packets: &[Seen]) -> Vec<RttSample> {
        let spec = AlgorithmSpec::parse(Role::Estimator, &format!("handshake{settings}")).unwrap();
        samples(&mut *spec.build_estimator(), packets)
    }

    #[test]
    fn the_next_packet_after_the_syn_tells_the_round_trip_time_once() {
        let packets =
            [syn(0, 10.0), syn(1, 20.0), data(0, 60.0), data(0, 61.0), data(1, 320.0), data(0, 400.0)];
        let expected = [(0, 50.0, 60.0), (1, 300.0, 320.0)].map(|(flow, rtt, at)| RttSample {
            flow: FlowId(flow),
            rtt: ms(rtt),
            at: Instant::ZERO + ms(at),
        });
        assert_eq!(estimates("", &packets), expected);
    }

    #[test]
    fn a_repeated_syn_leaves_open_which_was_answered() {
        assert_eq!(estimates("", &[syn(0, 0.0), syn(0, 1_000.0), data(0, 1_050.0), data(0, 1_100.0)]), []);
        assert_eq!(estimates("", &[syn(0, 0.0), syn(0, 1.0), syn(0, 2.0), data(0, 50.0)]), []);
    }

    #[test]
    fn a_connection_that_is_under_way_gives_nothing() {
        assert_eq!(estimates("", &[data(0, 0.0), data(0, 50.0), data(0, 100.0)]), []);
    }

    #[test]
    fn newcomers_push_out_others_where_places_run_out_and_never_mix_with_them() {
        let packets = [syn(0, 0.0), syn(1, 5.0), data(0, 50.0), data(1, 75.0)];
        let found = estimates(":places=1", &packets);
        assert_eq!(
            found.iter().map(|sample| (sample.flow.0, sample.rtt)).collect::<Vec<_>>(),
            [(1, ms(70.0))]
        );
    }
}
