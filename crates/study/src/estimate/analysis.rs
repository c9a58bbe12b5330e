//! Shows a capture to the estimators, and beside them to the truth.

use std::collections::HashMap;

use suimon_algorithms::RandomStream;
use suimon_algorithms::estimate::Seen;
use suimon_algorithms::estimate::zombies::Zombies;
use suimon_algorithms::queue::FlowId;
use suimon_capture::{Capture, Endpoints, Packet, TrueRtt, Truth};
use suimon_results::{CaptureResult, Column, DelayHistogram, RttPercentiles, Series};
use suimon_units::{Bytes, Duration, Instant, Probability};

use super::Estimation;
use super::flow::Flow;
use super::running::Running;
use super::trace::Trace;

/// SRED's list (Ott, Lakshman, Wong 1999, §2): `M = 1000` zombies, overwritten with `p = 0.25`.
const ZOMBIES: u64 = 1_000;
const OVERWRITE: f64 = 0.25;
/// Flows that are kept over time at once, at 72 kB each.
const MAX_TRACED: usize = 64;
/// Share of an interval's packets whose true RTT must be known for their mean to be called true.
const KNOWN_SHARE: f64 = 0.5;

/// What has been seen of a capture so far.
pub(super) struct Analysis {
    name: String,
    request: Estimation,
    truth: Truth,
    zombies: Zombies,
    zombies_random: RandomStream,
    estimators: Vec<Running>,
    flows: Vec<Flow>,
    by_endpoints: HashMap<Endpoints, usize>,
    by_id: HashMap<FlowId, usize>,
    packets_of_other_flows: u64,
    data_packets: u64,
    /// True round-trip times of all flows.
    rtts: DelayHistogram,
    /// Flows that are kept over time.
    traced: Vec<usize>,
    last: Instant,
    /// Number of the interval that is under way, and the flows that were active in it.
    nth: u64,
    active: Vec<usize>,
    series: Series,
    flow_samples: usize,
    flow_samples_not_kept: u64,
}

/// Columns of the series that come before those of the estimators.
const LINK_COLUMNS: [&str; 5] =
    ["data_packets", "flows_active", "flows_effective", "flows_estimated", "rtt_true_ms"];
pub(super) const FLOW_COLUMNS: [&str; 2] = ["data_packets", "rtt_true_ms"];

impl Analysis {
    pub(super) fn new(request: &Estimation, name: &str) -> Self {
        let seed = request.seed;
        let estimators: Vec<_> =
            request.estimators().iter().map(|estimator| Running::new(&estimator.0, seed)).collect();
        let names = LINK_COLUMNS.map(str::to_owned).into_iter().chain(estimators.iter().map(Running::column));
        let columns = names.map(|name| Column { name, values: Vec::new() }).collect();
        Self {
            name: name.to_owned(),
            request: request.clone(),
            // A connection is two flows, and those that carry no data count too.
            truth: Truth::new(request.max_flows.get()),
            zombies: Zombies::new(ZOMBIES, Probability::clamped(OVERWRITE)),
            zombies_random: RandomStream::new(seed, "zombies"),
            estimators,
            flows: Vec::new(),
            by_endpoints: HashMap::new(),
            by_id: HashMap::new(),
            packets_of_other_flows: 0,
            data_packets: 0,
            rtts: DelayHistogram::default(),
            traced: Vec::new(),
            last: Instant::ZERO,
            nth: 0,
            active: Vec::new(),
            series: Series { subject: "capture".to_owned(), times: Vec::new(), columns },
            flow_samples: 0,
            flow_samples_not_kept: 0,
        }
    }

    /// Takes the next packet of the capture.
    pub(super) fn on_packet(&mut self, packet: &Packet) {
        self.last = packet.time;
        let nth = packet.time.as_nanos() / self.request.interval.as_nanos();
        if nth != self.nth {
            self.finish_interval();
            self.nth = nth;
        }
        if !self.request.has_connection(packet.endpoints) {
            return;
        }
        // First what the packet proves: an estimate that it completes is judged by what is true now.
        if let Some(shown) = self.truth.on_packet(packet) {
            self.on_truth(&shown);
        }
        let opens = packet.tcp.is_some_and(|tcp| tcp.syn);
        if let Some(answered) = self.by_endpoints.get(&packet.endpoints.reversed()) {
            self.flows[*answered].on_answer(packet);
        }
        let has_data = packet.payload > Bytes::ZERO;
        if !self.request.has_direction(packet.endpoints) || !(has_data || opens || self.request.acks) {
            return;
        }
        let index = self.flow(packet);
        if has_data {
            self.on_data(index, packet);
        }
        if let Some(index) = index {
            self.flows[index].on_sent(packet);
        }
        let flow = packet.endpoints.flow_id();
        self.zombies.on_packet(flow, &mut self.zombies_random);
        let seen = Seen {
            now: packet.time,
            flow,
            size: packet.size,
            opens_connection: packet.tcp.is_some_and(|tcp| tcp.syn && tcp.acknowledgement.is_none()),
        };
        for (nth, running) in self.estimators.iter_mut().enumerate() {
            let Some(sample) = running.on_packet(&seen) else { continue };
            let Some(index) = self.by_id.get(&sample.flow) else { continue };
            let flow = &mut self.flows[*index];
            flow.estimates[nth].add(sample.rtt);
            flow.now_estimates[nth].add(sample.rtt);
            if let Some(truth) = flow.latest {
                running.judge(sample.rtt, truth);
            }
        }
    }

    /// What the capture said in all.
    pub(super) fn finish(mut self, capture: &Capture) -> CaptureResult {
        self.finish_interval();
        let flow_columns = self.flow_columns();
        let mut flows = Vec::new();
        let mut flow_series = Vec::new();
        for mut flow in self.flows.into_iter().filter(|flow| flow.packets > 0) {
            let columns = flow_columns.iter().cloned().zip(std::mem::take(&mut flow.columns));
            flow_series.push(Series {
                subject: flow.endpoints.to_string(),
                times: std::mem::take(&mut flow.times),
                columns: columns.map(|(name, values)| Column { name, values }).collect(),
            });
            flows.push(flow.finish());
        }
        let skipped = capture.skipped().reasons();
        CaptureResult {
            name: self.name,
            packets: capture.frames(),
            duration: self.last.saturating_since(Instant::ZERO),
            skipped: skipped.map(|(reason, count)| (reason.as_str().to_owned(), count)).collect(),
            out_of_order: capture.out_of_order(),
            cut_off: capture.cut_off().map(|cut_off| (cut_off.packets, cut_off.offset)),
            data_packets: self.data_packets,
            flows,
            packets_of_other_flows: self.packets_of_other_flows,
            rtt_percentiles: RttPercentiles::of(&self.rtts),
            estimators: self.estimators.into_iter().map(Running::finish).collect(),
            series: self.series,
            flow_series,
            flow_samples_not_kept: self.flow_samples_not_kept,
        }
    }

    fn flow_columns(&self) -> Vec<String> {
        FLOW_COLUMNS
            .map(str::to_owned)
            .into_iter()
            .chain(self.estimators.iter().map(Running::column))
            .collect()
    }

    /// The packet's flow, if it is kept.
    fn flow(&mut self, packet: &Packet) -> Option<usize> {
        if let Some(index) = self.by_endpoints.get(&packet.endpoints) {
            return Some(*index);
        }
        let index = self.flows.len();
        if index == self.request.max_flows.get() {
            return None;
        }
        self.by_endpoints.insert(packet.endpoints, index);
        // Of two flows with one identity the first gets the estimates of both.
        self.by_id.entry(packet.endpoints.flow_id()).or_insert(index);
        self.flows.push(Flow::new(packet, self.estimators.len()));
        Some(index)
    }

    fn on_data(&mut self, index: Option<usize>, packet: &Packet) {
        self.data_packets += 1;
        let Some(index) = index else {
            self.packets_of_other_flows += 1;
            return;
        };
        let flow = &mut self.flows[index];
        flow.end = packet.time;
        flow.packets += 1;
        flow.now_packets += 1;
        flow.bytes = flow.bytes.saturating_add(packet.size);
        flow.payload = flow.payload.saturating_add(packet.payload);
        if !flow.is_active {
            flow.is_active = true;
            self.active.push(index);
        }
        if flow.trace.is_none() && flow.packets.is_power_of_two() {
            self.trace(index);
        }
    }

    /// Keeps a flow over time, in place of one with far fewer packets where too many are kept.
    fn trace(&mut self, index: usize) {
        if self.traced.len() == MAX_TRACED {
            let least = (0..MAX_TRACED).min_by_key(|nth| self.flows[self.traced[*nth]].packets);
            let Some(nth) = least else { return };
            if 2 * self.flows[self.traced[nth]].packets > self.flows[index].packets {
                return;
            }
            let dropped = self.traced.swap_remove(nth);
            self.flows[dropped].trace = None;
        }
        self.traced.push(index);
        self.flows[index].trace = Some(Trace::default());
    }

    fn on_truth(&mut self, shown: &TrueRtt) {
        let Some(rtt) = shown.rtt() else { return };
        let Some(index) = self.by_endpoints.get(&shown.flow) else { return };
        let flow = &mut self.flows[*index];
        flow.latest = Some(rtt);
        flow.rtt.add(rtt);
        flow.rtts.record(rtt);
        self.rtts.record(rtt);
        flow.now_rtt.add(rtt);
        flow.receiver_side.add(shown.receiver_side);
        if let Some(side) = shown.sender_side {
            flow.sender_side.add(side);
        }
    }

    /// Closes the interval under way. Intervals in which nothing was sent leave no row.
    fn finish_interval(&mut self) {
        if self.active.is_empty() {
            return;
        }
        let start = self.request.interval.as_nanos().saturating_mul(self.nth);
        let end = (Instant::from_nanos(start) + *self.request.interval).min(self.last);
        let shares: Vec<f64> =
            self.active.iter().map(|index| self.flows[*index].now_packets as f64).collect();
        let packets: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        let truth = self.true_mean(packets);
        let mut row = vec![
            packets,
            self.active.len() as f64,
            packets * packets / squares,
            self.zombies.flows(),
            millis(truth),
        ];
        for running in &mut self.estimators {
            row.push(millis(running.representative.get()));
            running.finish_interval(truth);
        }
        self.series.times.push(end);
        for (column, value) in self.series.columns.iter_mut().zip(row) {
            column.values.push(value);
        }
        for index in std::mem::take(&mut self.active) {
            if self.flow_samples < CaptureResult::MAX_FLOW_SAMPLES {
                self.flow_samples += 1;
                self.flows[index].sample(end);
            } else {
                self.flow_samples_not_kept += 1;
            }
            self.flows[index].begin_interval();
        }
    }

    /// Mean of the active flows' true round-trip times, weighted by packets: what a representative RTT
    /// stands for (Hoshihara, Koga, Watanabe, eq. 2).
    fn true_mean(&self, packets: f64) -> Option<Duration> {
        let (mut known, mut sum) = (0.0, 0.0);
        for flow in self.active.iter().map(|index| &self.flows[*index]) {
            if let Some(rtt) = flow.now_rtt.mean().or(flow.latest) {
                known += flow.now_packets as f64;
                sum += flow.now_packets as f64 * rtt.as_secs_f64();
            }
        }
        (known >= KNOWN_SHARE * packets).then(|| Duration::from_secs_f64(sum / known))
    }
}

pub(super) fn millis(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, Duration::as_millis_f64)
}
