//! The kernel programs' list of connections, as `bpf/connection.h` lays it out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::congestion_trace::Values;

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
