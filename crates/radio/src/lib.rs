//! Radio links as clocks that serve packets queued elsewhere: HSDPA cells and 802.11 media.
//!
//! A [`Radio`] serves one or several [`Ports`]. The driver tells it when a packet has come to wait. The radio names
//! the time of its next call, and then takes packets from the queues of its ports and says when they
//! arrive. A radio knows neither the packets nor the clock, so the simulator and a live driver with real packets can
//! both drive it.

#![forbid(unsafe_code)]

pub mod hsdpa;
pub mod wlan;

use std::fmt::Debug;

use suimon_units::{Bytes, Instant};

/// The number of a radio's sender, from zero, in the order in which senders were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub usize);

/// A medium that several senders share.
pub trait Radio: Debug + Send {
    /// A packet has come to wait at `port` at `now`.
    fn on_waiting(&mut self, now: Instant, port: PortId);

    /// The time of the next [`Radio::on_event`]; `None` while nothing is due. The time may change after every call.
    fn next_event(&self) -> Option<Instant>;

    /// Does the work due at `now`.
    fn on_event(&mut self, now: Instant, ports: &mut dyn Ports);
}

/// The senders as a radio sees them. The radio keeps the packets that it took from a port, first in, first out,
/// until it delivers them or gives them up.
pub trait Ports {
    /// True where a packet waits at `port`.
    fn is_waiting(&self, port: PortId) -> bool;

    /// Takes the next packet of `port` from its queue for transmission: its size, or `None` where the queue had
    /// none to give.
    fn take(&mut self, now: Instant, port: PortId) -> Option<Bytes>;

    /// The oldest packet taken from `port` arrives at `at`, which is not before now.
    fn deliver(&mut self, at: Instant, port: PortId);

    /// The oldest packet taken from `port` was given up at `at`.
    fn give_up(&mut self, at: Instant, port: PortId);
}
