//! Radio links as clocks that serve packets queued elsewhere: HSDPA cells and 802.11 media.
//!
//! A [`Radio`] serves one or several [`Ports`]. It is told when a packet has come to wait, says when it wants
//! to be called, and then takes packets from the queues of its ports and says when they arrive. It knows neither
//! what a packet is nor whose clock it runs on, so the simulator and a live driver with real packets can both
//! drive it.

#![forbid(unsafe_code)]

pub mod hsdpa;
pub mod wlan;

use std::fmt::Debug;

use suimon_units::{Bytes, Instant};

/// Which of a radio's senders: counted from zero, in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub usize);

/// Something that several senders share and that takes its time.
pub trait Radio: Debug + Send {
    /// A packet has come to wait at `port` at `now`.
    fn on_waiting(&mut self, now: Instant, port: PortId);

    /// When [`Radio::on_event`] is due; `None` while there is nothing to do. It may move after every call.
    fn next_event(&self) -> Option<Instant>;

    /// Does what is due at `now`.
    fn on_event(&mut self, now: Instant, ports: &mut dyn Ports);
}

/// The senders as a radio sees them. What it took from a port it keeps, first in, first out, until it says
/// what became of it.
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
