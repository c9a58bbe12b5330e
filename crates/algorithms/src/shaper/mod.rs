//! Rate controllers of a shaper: how fast a router may send toward a bottleneck whose rate nobody knows.
//!
//! A shaper holds packets back in a queue of its own, so that they do not wait in the modem behind it, whose queue
//! nobody manages. A [`RateController`] chooses its rate from what the router sees: the packets of TCP that leave its
//! queue, and their answers ([`crate::estimate::round_trips`]).

pub mod autorate;
pub mod cake_autorate;

use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::probe::Probe;

/// Chooses the rate of a shaper, interval by interval.
pub trait RateController: Debug + Send + DynClone {
    /// The rate to begin with.
    fn initial(&self) -> Rate;

    /// The length of an interval.
    fn interval(&self) -> Duration;

    /// The rate from now on.
    fn on_interval(&mut self, seen: &Observed) -> Rate;

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

clone_trait_object!(RateController);

/// What the router has seen since the interval before. Bytes are those of whole packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The end of the interval.
    pub now: Instant,
    /// Its length.
    pub elapsed: Duration,
    /// Bytes that the shaper sent.
    pub sent: Bytes,
    /// Bytes that receivers acknowledged, with those of packets that nobody acknowledges visibly.
    pub delivered: Bytes,
    /// Bytes that the shaper sent and no receiver has acknowledged.
    pub in_flight: Bytes,
    /// Bytes that receivers with delayed acknowledgements may hold back (RFC 9293 §3.8.6.3).
    pub unacknowledged: Bytes,
    /// The shortest round-trip times of the flows, weighted by their bytes; `None` before the first.
    pub base_rtt: Option<Duration>,
    /// The latest round-trip times of the flows that were at work, weighted in the same way; of data without an answer
    /// its age.
    pub rtt: Option<Duration>,
    /// The latest round-trip time of a probe, where it was measured in this interval. Only controllers that send
    /// probes have any.
    pub probe_rtt: Option<Duration>,
}
