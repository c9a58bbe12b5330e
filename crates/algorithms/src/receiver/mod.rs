//! Receivers: which window to advertise.

pub mod drs;
pub mod fixed;

use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Duration, Instant};

use crate::probe::Probe;

/// One connection's receive window.
pub trait ReceiveWindow: Debug + Send + DynClone {
    /// A segment arrived.
    fn on_segment(&mut self, segment: &Received);

    /// True where the window never changes, so that segments need not be shown here. Asked once.
    fn is_fixed(&self) -> bool {
        false
    }

    /// The buffer to advertise: the peer may send up to this many bytes past the data received in order.
    fn buffer(&self) -> Bytes;

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

clone_trait_object!(ReceiveWindow);

/// An arriving segment, as seen by the receiver once its reassembly queue is up to date.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// When it arrived.
    pub now: Instant,
    /// Next byte expected in order, counted from the start of the connection.
    pub rcv_nxt: u64,
    /// Right edge of the window advertised last: the first byte the peer may not send.
    pub advertised: u64,
    /// Bytes that the application has read.
    pub read: u64,
    /// Time since the ACK that the segment's timestamp echoes was sent, where it advanced the data.
    pub timestamp_rtt: Option<Duration>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Header bytes that go with each segment.
    pub header: Bytes,
}
