//! The flows that share a link.

use std::collections::HashMap;

use suimon_algorithms::Probe;
use suimon_algorithms::queue::{FlowId, Packet};
use suimon_link::SeriesBuilder;
use suimon_results::Series;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::packet::{FlowKey, WirePacket};

/// The share of one flow in one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowShare {
    /// The source and the destination of the flow.
    pub key: FlowKey,
    /// The time of its first packet.
    pub first: Instant,
    /// The time of its latest packet.
    pub last: Instant,
    /// Packets that left the link.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: Bytes,
    /// The part of them that TCP and UDP carried for programs.
    pub payload: Bytes,
    /// TCP segments that came with data that had come before: retransmissions.
    pub retransmissions: u64,
    /// Packets dropped by the queue or lost on the link.
    pub dropped: u64,
    /// Packets marked by the queue.
    pub marked: u64,
}

/// Counts by flow, of the latest [`FlowTable::MAX`] flows.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    flows: HashMap<FlowId, Tracked>,
    /// The series of forgotten flows.
    series: Vec<Series>,
    charted: usize,
    /// Flows that were forgotten for others.
    forgotten: u64,
}

#[derive(Debug)]
struct Tracked {
    share: FlowShare,
    /// The sequence number behind all data that came.
    next_sequence: Option<u32>,
    /// Bytes that the flow had got at the latest sample.
    sampled: Bytes,
    series: Option<SeriesBuilder>,
}

impl FlowTable {
    const MAX: usize = 4_096;
    /// Flows that have a series.
    const CHARTED: usize = 64;
    /// A flow that got less has none.
    const WORTH_A_CHART: Bytes = Bytes::new(100_000);

    pub(crate) fn on_arrival(&mut self, now: Instant, packet: &WirePacket) {
        let data = packet.data();
        if let Some(flow) = self.flows.get_mut(&packet.flow()) {
            flow.share.last = now;
            flow.follow(data.sequence, data.payload);
            return;
        }
        if self.flows.len() >= Self::MAX {
            self.forget_the_idle_half();
        }
        let share = FlowShare {
            key: packet.key(),
            first: now,
            last: now,
            packets: 0,
            bytes: Bytes::ZERO,
            payload: Bytes::ZERO,
            retransmissions: 0,
            dropped: 0,
            marked: 0,
        };
        let mut flow = Tracked { share, next_sequence: None, sampled: Bytes::ZERO, series: None };
        flow.follow(data.sequence, data.payload);
        self.flows.insert(packet.flow(), flow);
    }

    pub(crate) fn on_sent(&mut self, packet: &WirePacket, marked: bool) {
        if let Some(Tracked { share, .. }) = self.flows.get_mut(&packet.flow()) {
            share.packets += 1;
            share.bytes += packet.size();
            share.payload += Bytes::new(u64::from(packet.data().payload));
            share.marked += u64::from(marked);
        }
    }

    pub(crate) fn on_dropped(&mut self, packet: &WirePacket) {
        if let Some(Tracked { share, .. }) = self.flows.get_mut(&packet.flow()) {
            share.dropped += 1;
        }
    }

    /// The flows that got most, at most so many.
    pub(crate) fn largest(&self, most: usize) -> Vec<FlowShare> {
        let mut shares: Vec<_> = self.flows.values().map(|flow| flow.share).collect();
        shares.sort_by_key(|share| (std::cmp::Reverse(share.bytes), share.first));
        shares.truncate(most);
        shares
    }

    /// Counts anew.
    pub(crate) fn restart(&mut self) {
        for flow in self.flows.values_mut() {
            let share = &mut flow.share;
            (share.packets, share.dropped, share.marked, share.retransmissions) = (0, 0, 0, 0);
            (share.bytes, share.payload, flow.sampled) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        }
    }

    /// The number of all flows so far.
    pub(crate) fn count(&self) -> u64 {
        self.flows.len() as u64 + self.forgotten
    }

    /// Half at once, so that a flood of flows of one packet each costs little a packet.
    fn forget_the_idle_half(&mut self) {
        let mut times: Vec<_> = self.flows.values().map(|flow| flow.share.last).collect();
        let (_, median, _) = times.select_nth_unstable(Self::MAX / 2);
        let (median, before) = (*median, self.flows.len());
        let series = &mut self.series;
        self.flows.retain(|_, flow| {
            let stays = flow.share.last > median;
            if !stays {
                series.extend(flow.series.take().map(SeriesBuilder::finish));
            }
            stays
        });
        self.forgotten += (before - self.flows.len()) as u64;
    }

    /// Takes a sample of every flow that got much.
    pub(crate) fn sample(&mut self, now: Instant, interval: Duration) {
        for flow in self.flows.values_mut() {
            let got = Bytes::new(flow.share.bytes.get() - flow.sampled.get());
            if flow.series.is_none()
                && flow.share.bytes >= Self::WORTH_A_CHART
                && self.charted < Self::CHARTED
            {
                self.charted += 1;
                flow.series = Some(SeriesBuilder::new(&flow.share.key.to_string()));
            }
            if let Some(series) = &mut flow.series {
                series.begin(now);
                series.value("throughput_bps", Rate::of(got, interval).as_bps_f64());
            }
            flow.sampled = flow.share.bytes;
        }
    }

    /// The samples; none are taken after.
    pub(crate) fn take_series(&mut self) -> Vec<Series> {
        let mut series = std::mem::take(&mut self.series);
        series
            .extend(self.flows.values_mut().filter_map(|flow| flow.series.take()).map(SeriesBuilder::finish));
        series.sort_by_key(|series| series.times.first().copied());
        series
    }
}

impl Tracked {
    /// Sees data from `sequence` on, and whether all of it came before.
    fn follow(&mut self, sequence: Option<u32>, payload: u32) {
        let Some(sequence) = sequence.filter(|_| payload > 0) else { return };
        let end = sequence.wrapping_add(payload);
        // Serial number arithmetic (RFC 9293 §3.4).
        let is_new = self.next_sequence.is_none_or(|next| (end.wrapping_sub(next) as i32) > 0);
        if is_new {
            self.next_sequence = Some(end);
        } else {
            self.share.retransmissions += 1;
        }
    }
}
