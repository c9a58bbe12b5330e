//! Estimators: measurements of a router or a reader of captures from the packets that pass, without
//! sending any and without seeing the way back.
//!
//! An [`RttEstimator`] is shown every packet and now and then tells the round-trip time of a flow. The
//! other estimators here are plain structs, since they have nothing to stand in for each other.

pub mod arrival_rate;
pub mod autocorrelation;
pub mod bursts;
pub mod handshake;
pub mod heaviest;
pub mod representative;
pub mod round_trips;
pub mod segment_size;
pub mod shared_bottleneck;
mod slots;
pub mod slow_start;
pub mod zombies;

use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Duration, Instant};

use crate::queue::FlowId;
use crate::queue::policy::Arrival;
use crate::random::RandomStream;

/// Estimates round-trip times from the packets that pass one point, in one direction.
pub trait RttEstimator: Debug + Send + DynClone {
    /// A packet passes. Gives the round-trip time of its flow where it completes an estimate.
    fn on_packet(&mut self, seen: &Seen, random: &mut RandomStream) -> Option<RttSample>;

    /// The memory of the estimator now, with everything that it holds.
    fn memory(&self) -> Bytes;
}

clone_trait_object!(RttEstimator);

/// A packet that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The time of the packet, never earlier than the packet before.
    pub now: Instant,
    /// The flow of the packet: one direction of one connection.
    pub flow: FlowId,
    /// Its size, from the IP header on.
    pub size: Bytes,
    /// See [`crate::queue::Packet::opens_connection`].
    pub opens_connection: bool,
}

impl From<&Arrival> for Seen {
    fn from(arrival: &Arrival) -> Self {
        let &Arrival { now, flow, size, opens_connection, .. } = arrival;
        Self { now, flow, size, opens_connection }
    }
}

/// An estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttSample {
    /// The flow.
    pub flow: FlowId,
    /// Its round-trip time.
    pub rtt: Duration,
    /// When it was made: at the packet that completed it.
    pub at: Instant,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms / 1e3)
    }

    /// A data packet of `flow`, `at` milliseconds.
    pub(crate) fn data(flow: u32, at: f64) -> Seen {
        Seen {
            now: Instant::ZERO + ms(at),
            flow: FlowId(flow),
            size: Bytes::new(1_040),
            opens_connection: false,
        }
    }

    /// Packets of one flow: from `start` on, every `rtt` so many milliseconds, bursts of `window` packets
    /// `gap` apart, until 20 s have passed.
    pub(crate) fn bursts(flow: u32, start: f64, rtt: f64, window: u32, gap: f64) -> Vec<Seen> {
        let rounds = (20_000.0 / rtt) as u32;
        (0..rounds)
            .flat_map(|round| (0..window).map(move |packet| (round, packet)))
            .map(|(round, packet)| data(flow, start + f64::from(round) * rtt + f64::from(packet) * gap))
            .collect()
    }

    /// All packets of several flows in the order of time.
    pub(crate) fn multiplexed(flows: &[Vec<Seen>]) -> Vec<Seen> {
        let mut all = flows.concat();
        all.sort_by_key(|seen| (seen.now, seen.flow));
        all
    }

    /// The estimates of `estimator` from `packets`.
    pub(crate) fn samples(estimator: &mut dyn RttEstimator, packets: &[Seen]) -> Vec<RttSample> {
        let mut random = RandomStream::new(1, "estimator");
        packets.iter().filter_map(|seen| estimator.on_packet(seen, &mut random)).collect()
    }
}
