//! Counts of the programs, as `bpf/queue/device.h` lays them out.

use serde::Serialize;
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// What a policy has counted since it was loaded, and what it sees.
#[derive(Debug, Clone, Copy, Serialize, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counts {
    /// Packets that arrived.
    pub packets: u64,
    /// Their bytes, without the link's header.
    pub bytes: u64,
    /// Packets that were marked.
    pub marks: u64,
    /// Packets that the policy dropped while there was room.
    pub drops: u64,
    /// Packets that found no room.
    pub overflows: u64,
    /// Packets of several segments, each judged as one.
    pub super_packets: u64,
    /// The queue that the last arrival found.
    pub backlog_bytes: u64,
    /// The same in packets.
    pub backlog_packets: u64,
    /// The longest that an arrival found.
    pub largest_backlog_bytes: u64,
    /// The sum over arrivals, for a mean.
    pub backlog_sum_bytes: u64,
    /// The kernel's clock at the last arrival.
    pub now_ns: u64,
    /// Records that found no room.
    pub lost_records: u64,
    /// The probability of a mark or drop, in parts of 2^32. This and the values below are as of 64 packets ago at most.
    pub probability_2_32: u64,
    /// The representative round-trip time; 0 where the policy has none.
    pub rtt_ns: u64,
    /// The number of flows, in 1/65536; 0 where the policy counts none.
    pub flows_65536: u64,
    /// RED's average queue; 0 where the policy has none.
    pub average_bytes: u64,
    /// The heaviest flow's share in parts of 2^32; 0 where the policy knows none.
    pub heaviest_share_2_32: u64,
}

impl Counts {
    /// Reads them from the state of a policy.
    pub(super) fn read(state: &[u8]) -> Option<Self> {
        // A lock and four bytes stand before them.
        Self::read_from_bytes(state.get(8..8 + size_of::<Self>())?).ok()
    }

    /// The mean queue that arrivals found.
    #[must_use]
    pub fn mean_backlog_bytes(&self) -> f64 {
        self.backlog_sum_bytes as f64 / self.packets.max(1) as f64
    }
}
