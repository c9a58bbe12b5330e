//! Records of the kernel programs, as `bpf/connection.h` lays them out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;
use strum::VariantArray;
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// An event of a connection, in the order of the programs' numbers for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, VariantArray)]
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
#[derive(Debug, Clone, Copy, Serialize, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Values {
    /// Confirmed in the last complete interval.
    pub rcv_bytes: u64,
    /// FS-AT's target in bytes; 0 while control is off.
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
}

/// Counts since a connection began.
#[derive(Debug, Clone, Copy, Serialize, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counts {
    /// Losses judged to be the radio's.
    pub radio: u32,
    /// Losses judged to be congestion.
    pub congestion: u32,
    /// Congestion marks answered.
    pub marks: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Reductions taken back.
    pub undone: u32,
    /// Times that the path was taken for another one.
    pub paths: u32,
}

/// One event of one connection.
#[derive(Debug, Clone, Copy, Serialize, FromBytes, Immutable, KnownLayout)]
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

    /// The event.
    #[must_use]
    pub fn event(&self) -> Event {
        Event::VARIANTS[usize::from(self.event)]
    }
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RawStatus {
    connection: u64,
    values: Values,
    counts: Counts,
    flight_size: u32,
    mss: u32,
    snd_cwnd: u32,
    ssthresh: u32,
    srtt_us: u32,
    local: [u8; 16],
    remote: [u8; 16],
    local_port: u16,
    remote_port: u16,
    family: u8,
    tcp_state: u8,
    ca_state: u8,
    unused: [u8; 5],
}

/// The state of one connection.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Numbered from 1 as they start.
    pub connection: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The algorithm's values.
    #[serde(flatten)]
    pub values: Values,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Bytes in flight, in full segments.
    pub flight_size: u32,
    /// Segment size in bytes.
    pub mss: u32,
    /// The window that the kernel obeys, in segments.
    pub snd_cwnd: u32,
    /// The slow-start threshold in segments; 2147483647 before the first congestion.
    pub ssthresh: u32,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// The kernel's state of the connection: 1 established.
    pub tcp_state: u8,
    /// The kernel's state of congestion: 0 open, 1 disorder, 2 answering a mark, 3 recovery, 4 after a timeout.
    pub ca_state: u8,
}

/// The connections in the kernel's list.
pub(super) fn statuses(bytes: &[u8]) -> Vec<Status> {
    bytes
        .chunks_exact(size_of::<RawStatus>())
        .filter_map(|one| RawStatus::read_from_bytes(one).ok())
        .map(|raw| status(&raw))
        .collect()
}

fn status(raw: &RawStatus) -> Status {
    const AF_INET: u8 = 2;
    let address = |bytes: [u8; 16]| -> IpAddr {
        if raw.family == AF_INET {
            let [a, b, c, d, ..] = bytes;
            Ipv4Addr::new(a, b, c, d).into()
        } else {
            Ipv6Addr::from(bytes).to_canonical()
        }
    };
    Status {
        connection: raw.connection,
        local: SocketAddr::new(address(raw.local), raw.local_port),
        remote: SocketAddr::new(address(raw.remote), raw.remote_port),
        values: raw.values,
        counts: raw.counts,
        flight_size: raw.flight_size,
        mss: raw.mss,
        snd_cwnd: raw.snd_cwnd,
        ssthresh: raw.ssthresh,
        srtt_us: raw.srtt_us,
        tcp_state: raw.tcp_state,
        ca_state: raw.ca_state,
    }
}
