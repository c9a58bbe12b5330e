//! The statistics of one flow, as its sockets tell them.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use suimon_algorithms::Probe;
use suimon_emulator::LinkReport;
use suimon_link::{FlowSums, FlowTally, FlowTimes, SeriesBuilder};
use suimon_linux::tcp::{SenderState, TcpState, tcp_state};
use suimon_model::{Flow, Traffic};
use suimon_results::{EventKind, FlowResult};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::endpoints::Shared;
use crate::plan::PlannedFlow;

/// The statistics of one flow.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) planned: &'a PlannedFlow,
    shared: &'a Shared,
    last: Option<TcpState>,
    started: Option<Instant>,
    pub(crate) completed: Option<Instant>,
    tally: FlowTally,
    /// The tally when the warm-up ended.
    before: FlowTally,
    rtt_least: Option<Duration>,
    rtt_most: Option<Duration>,
    pub(crate) series: SeriesBuilder,
    /// Delivered at the sample before.
    sampled: u64,
}

impl<'a> Entry<'a> {
    /// A flow that has not started.
    pub(crate) fn new(flow: &'a Flow, planned: &'a PlannedFlow, shared: &'a Shared) -> Self {
        Self {
            flow,
            planned,
            shared,
            last: None,
            started: None,
            completed: None,
            tally: FlowTally::default(),
            before: FlowTally::default(),
            rtt_least: None,
            rtt_most: None,
            series: SeriesBuilder::new(&flow.name),
            sampled: 0,
        }
    }

    /// Looks at the flow; gives the events since the last time.
    pub(crate) fn keep(&mut self, now: Instant) -> [Option<EventKind>; 4] {
        let mut events = [None; 4];
        if self.started.is_none() && now >= self.planned.start {
            self.started = Some(self.planned.start);
            events[0] = Some(EventKind::Started);
        }
        self.tally.delivered = self.shared.delivered.load(Ordering::Relaxed);
        match &self.flow.traffic {
            Traffic::Udp(udp) => {
                self.tally.sent = self.shared.datagrams.load(Ordering::Relaxed);
                let sent = self.shared.datagram_bytes.load(Ordering::Relaxed);
                if self.completed.is_none() && udp.size.is_some_and(|size| sent >= size.get()) {
                    self.completed = Some(now);
                    events[3] = Some(EventKind::Completed);
                }
            }
            Traffic::Tcp(tcp) => {
                let Some(state) = self.shared.socket.get().and_then(|socket| tcp_state(socket).ok()) else {
                    return events;
                };
                events[1] = self.on_state(&state);
                if self.completed.is_none() && tcp.size.is_some_and(|size| state.acknowledged >= size) {
                    self.completed = Some(now);
                    events[3] = Some(EventKind::Completed);
                }
                self.last = Some(state);
            }
        }
        events
    }

    /// Takes the state of the connection into the tally; gives the event since the last time.
    fn on_state(&mut self, state: &TcpState) -> Option<EventKind> {
        let tally = &mut self.tally;
        let timeout = state.timeouts > tally.timeouts;
        (tally.sent, tally.retransmissions) = (state.segments, state.retransmissions);
        tally.timeouts = state.timeouts;
        let before = self.last.map_or(SenderState::Open, |last| last.state);
        if let Some(srtt) = state.srtt.filter(|srtt| self.last.is_none_or(|last| last.srtt != Some(*srtt))) {
            tally.rtt_samples += 1;
            tally.rtt_sum += srtt;
            self.rtt_most = Some(self.rtt_most.map_or(srtt, |most| most.max(srtt)));
        }
        self.rtt_least = state.rtt_min;
        // A cut begins a reduction, or sets the threshold anew in one that began unseen; slow start's end by itself
        // leaves the window where it was.
        let cut = is_reducing(state.state) && !is_reducing(before)
            || self.last.is_some_and(|last| {
                state.ssthresh.is_some_and(|ssthresh| Some(ssthresh) != last.ssthresh && ssthresh < last.cwnd)
            });
        tally.window_cuts += u64::from(cut);
        let entered = (state.state != before).then_some(state.state);
        match entered {
            _ if timeout => Some(EventKind::Timeout),
            Some(SenderState::Recovery) => Some(EventKind::Recovery),
            Some(SenderState::WindowReduction) => Some(EventKind::EcnCut),
            _ => None,
        }
    }

    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.shared.delays.lock().unwrap_or_else(PoisonError::into_inner).begin_measuring(now);
        self.before = self.tally;
        self.rtt_most = None;
    }

    pub(crate) fn sums(&self) -> FlowSums {
        let entered = match self.last {
            Some(state) => state.sent.saturating_sub(state.sent_again).get(),
            None => self.shared.datagram_bytes.load(Ordering::Relaxed),
        };
        FlowSums { entered, delivered: self.tally.delivered, retransmissions: self.tally.retransmissions }
    }

    pub(crate) fn sample(&mut self, now: Instant, interval: Duration) {
        if self.started.is_none() {
            return;
        }
        let delivered = self.tally.delivered;
        let goodput = Rate::of(Bytes::new(delivered - self.sampled), interval);
        self.sampled = delivered;
        self.series.begin(now);
        self.series.value("goodput_bps", goodput.as_bps_f64());
        if let Some(state) = &self.last {
            let limit = state.ssthresh.map_or(f64::NAN, Bytes::as_f64);
            let srtt = state.srtt.map_or(f64::NAN, Duration::as_millis_f64);
            self.series.value("cwnd_bytes", state.cwnd.as_f64());
            self.series.value("ssthresh_bytes", limit);
            self.series.value("flight_bytes", state.flight.as_f64());
            self.series.value("srtt_ms", srtt);
        }
    }

    pub(crate) fn result(&self, reports: &[LinkReport], measured_from: Instant, end: Instant) -> FlowResult {
        let key = self.planned.key();
        let shares = self
            .planned
            .crosses
            .iter()
            .filter_map(|(link, way)| reports[*link].flows[*way].iter().find(|share| share.key == key));
        // Links begin to count when the warm-up ends, so there is nothing from before to leave out.
        let (lost, marked) = shares.fold((0, 0), |sum, share| (sum.0 + share.dropped, sum.1 + share.marked));
        let times = FlowTimes {
            started: self.started,
            completed: self.completed,
            last_delivery: Instant::from_nanos(self.shared.last_delivery.load(Ordering::Relaxed)),
        };
        let now = FlowTally { lost, marked, ..self.tally };
        FlowResult {
            rtt_min: self.rtt_least,
            rtt_max: self.rtt_most,
            datagrams: self.shared.delays.lock().unwrap_or_else(PoisonError::into_inner).result(),
            ..now.result(&self.before, self.flow, times, (measured_from, end))
        }
    }
}

/// Whether the window is being cut, or was and has yet to be acknowledged whole.
fn is_reducing(state: SenderState) -> bool {
    matches!(state, SenderState::WindowReduction | SenderState::Recovery | SenderState::Loss)
}
