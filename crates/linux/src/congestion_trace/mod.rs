//! Events of connections as the congestion control programs of `bpf/` tell them, and [the open mode in Rust](replay()) on them.
//!
//! A trace is lines of JSON, a [`Line`] for each event.

mod replay;

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use zerocopy::{FromBytes, Immutable, KnownLayout};

pub use self::replay::{Difference, Replay, ReplayError, Replayed, replay};

/// An event of a connection, in the order of the programs' numbers for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The connection was established, or switched to this algorithm.
    Start,
    /// An acknowledgement arrived.
    Ack,
    /// Segments were lost.
    Loss,
    /// A congestion mark came back, or the host's own queue was full.
    Mark,
    /// The retransmission timer ran out.
    Timeout,
    /// The last reduction was a mistake and is taken back.
    Undo,
    /// The path may be another one: round-trip times are measured anew.
    Path,
    /// The connection closed, or switched to another algorithm.
    End,
}

/// Values of the algorithm. Zero where it has none.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Values {
    /// Confirmed in the last complete interval.
    pub rcv_bytes: u64,
    /// FS-AT's target in bytes, 0 while control is off; the open mode's window.
    pub target_bytes: u64,
    /// Bytes that may be in flight beside `cwnd` and the peer's window.
    pub space_bytes: u64,
    /// Shortest round-trip time on this path.
    pub rtt_min_us: u32,
    /// The window of the algorithm itself, in segments.
    pub cwnd_segments: u32,
    /// The algorithm's estimate of its own backlog, in half segments.
    pub queued_half_segments: u32,
    /// Compound's delay window, in segments.
    pub dwnd_segments: u32,
    /// The open mode's queueing delay of the last round.
    pub queueing_us: u32,
    /// The open mode's mode: 1 slow start, 2 steady, 3 draining, 4 competing, 5 holding; 0 of another algorithm.
    pub mode: u32,
}

/// One event of one connection.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Record {
    /// The number of the connection, from 1 in the order of their starts.
    pub connection: u64,
    /// The kernel's clock for TCP.
    pub now_us: u64,
    /// The algorithm's values after the event.
    #[serde(flatten)]
    pub values: Values,
    /// The number of this record among the connection's, from 0: a gap means that records were lost.
    pub number: u32,
    /// Bytes by which `snd_una` moved.
    pub newly_acked: u32,
    /// Segments confirmed for the first time, in bytes of full segments.
    pub delivered: u32,
    /// Bytes in flight, in full segments.
    pub flight_size: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u32,
    /// Round-trip time of this acknowledgement; 0 where it gives none.
    pub rtt_us: u32,
    /// Segment size in bytes.
    pub mss: u32,
    /// The window that the kernel obeys, in segments.
    pub snd_cwnd: u32,
    /// The slow-start threshold in segments.
    pub ssthresh: u32,
    /// Bytes in flight before the event, of the open mode as all that follow up to the ports.
    pub prior_flight_size: u32,
    /// Bytes sent and not acknowledged in order.
    pub outstanding: u32,
    /// The window that the kernel itself has set since the event before, in segments; 0: none.
    pub kernel_cwnd: u32,
    /// What the algorithm below answered: its window, or a threshold at a congestion, in segments; 0: not asked.
    pub below: u32,
    /// The window that the algorithm decided, or a threshold at a congestion, in segments: recovery may send beyond it.
    pub decided: u32,
    /// The peer's time in its timestamp (RFC 7323); 0: none.
    #[serde(default)]
    pub ts_val: u32,
    /// The port of this host.
    pub local_port: u16,
    /// The port of the other host.
    pub remote_port: u16,
    #[serde(skip)]
    event: u8,
    /// The kernel's state: 0 open, 1 disorder, 2 answering a mark, 3 recovery, 4 after a timeout.
    pub ca_state: u8,
    /// 1 where the application held the sender back.
    pub app_limited: u8,
    /// 1 where the last loss was judged to be the radio's.
    pub radio: u8,
}

impl Record {
    /// Reads one; none where `bytes` are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let record = Self::read_from_bytes(bytes).ok()?;
        (usize::from(record.event) < Event::VARIANTS.len()).then_some(record)
    }

    /// What happened.
    #[must_use]
    pub fn event(&self) -> Event {
        Event::VARIANTS[usize::from(self.event)]
    }
}

/// An event as a trace has it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Line {
    event: Event,
    #[serde(flatten)]
    record: Record,
}

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        Self { event: record.event(), record }
    }
}

impl From<Line> for Record {
    fn from(Line { event, record }: Line) -> Self {
        Self { event: event as u8, ..record }
    }
}
