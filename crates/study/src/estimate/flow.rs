//! One direction of a connection in a capture: what it carried, its true round-trip times, and what was estimated.

use suimon_capture::{Endpoints, Packet, SegmentOrder, Sequence, Transport};
use suimon_results::{CapturedFlow, DelayHistogram, Repeats, RttPercentiles, RttSummary};
use suimon_units::{Bytes, Duration, Instant};

use super::analysis::{FLOW_COLUMNS, millis};
use super::trace::Trace;

/// One direction of one connection.
pub(super) struct Flow {
    pub(super) endpoints: Endpoints,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) packets: u64,
    pub(super) bytes: Bytes,
    pub(super) payload: Bytes,
    pub(super) rtt: RttSummary,
    pub(super) rtts: DelayHistogram,
    sequence: Sequence,
    repeats: Repeats,
    /// Where it is one of the flows that are kept over time.
    pub(super) trace: Option<Trace>,
    pub(super) receiver_side: RttSummary,
    pub(super) sender_side: RttSummary,
    /// The newest one.
    pub(super) latest: Option<Duration>,
    pub(super) estimates: Vec<RttSummary>,
    /// Of the interval under way.
    pub(super) now_packets: u64,
    pub(super) now_rtt: RttSummary,
    pub(super) now_estimates: Vec<RttSummary>,
    pub(super) is_active: bool,
    pub(super) times: Vec<Instant>,
    /// As many as [`super::analysis::Analysis::flow_columns`] names.
    pub(super) columns: Vec<Vec<f64>>,
}

impl Flow {
    pub(super) fn new(first: &Packet, estimators: usize) -> Self {
        Self {
            endpoints: first.endpoints,
            start: first.time,
            end: first.time,
            packets: 0,
            bytes: Bytes::ZERO,
            payload: Bytes::ZERO,
            rtt: RttSummary::default(),
            rtts: DelayHistogram::default(),
            sequence: Sequence::default(),
            repeats: Repeats::default(),
            trace: None,
            receiver_side: RttSummary::default(),
            sender_side: RttSummary::default(),
            latest: None,
            estimates: vec![RttSummary::default(); estimators],
            now_packets: 0,
            now_rtt: RttSummary::default(),
            now_estimates: vec![RttSummary::default(); estimators],
            is_active: false,
            times: Vec::new(),
            columns: vec![Vec::new(); FLOW_COLUMNS.len() + estimators],
        }
    }

    /// Takes a packet of this direction.
    pub(super) fn on_sent(&mut self, packet: &Packet) {
        /// Where no round-trip time is known, later data was reordered within this time, as Wireshark has it.
        const REORDERING: Duration = Duration::from_millis(3);
        let Some(tcp) = &packet.tcp else { return };
        let Some(segment) = self.sequence.on_packet(packet, tcp) else { return };
        let round_trip = if self.rtt.samples > 0 { self.rtt.min } else { REORDERING };
        match segment.order {
            SegmentOrder::New => {}
            SegmentOrder::Again => self.repeats.retransmissions += 1,
            SegmentOrder::Late(after) if after >= round_trip => self.repeats.lost_before += 1,
            SegmentOrder::Late(_) => self.repeats.reordered += 1,
        }
        if let Some(trace) = &mut self.trace {
            let curve = if segment.order == SegmentOrder::New { &mut trace.data } else { &mut trace.repeats };
            curve.push(packet.time, segment.position);
        }
    }

    /// Takes a packet of the other direction.
    pub(super) fn on_answer(&mut self, packet: &Packet) {
        let Some(trace) = &mut self.trace else { return };
        let acknowledged = packet.tcp.and_then(|tcp| tcp.acknowledgement);
        let position = acknowledged.and_then(|number| self.sequence.position(number));
        if let Some(position) = position.filter(|position| *position > trace.acknowledged.last()) {
            trace.acknowledged.push(packet.time, position);
        }
    }

    pub(super) fn finish(self) -> CapturedFlow {
        CapturedFlow {
            name: self.endpoints.to_string(),
            transport: self.endpoints.transport.as_str(),
            start: self.start,
            end: self.end,
            packets: self.packets,
            bytes: self.bytes,
            payload: self.payload,
            rtt: self.rtt,
            rtt_percentiles: RttPercentiles::of(&self.rtts),
            repeats: (self.endpoints.transport == Transport::Tcp).then_some(self.repeats),
            time_sequence: self.trace.map(Trace::finish),
            receiver_side_mean: self.receiver_side.mean(),
            sender_side_mean: self.sender_side.mean(),
            estimates: self.estimates,
        }
    }

    pub(super) fn sample(&mut self, at: Instant) {
        self.times.push(at);
        let means = [&self.now_rtt].into_iter().chain(&self.now_estimates);
        let row = [self.now_packets as f64].into_iter().chain(means.map(|summary| millis(summary.mean())));
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    pub(super) fn begin_interval(&mut self) {
        self.now_packets = 0;
        self.now_rtt = RttSummary::default();
        self.now_estimates.fill(RttSummary::default());
        self.is_active = false;
    }
}
