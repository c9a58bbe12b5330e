//! The sending end of a connection.

use std::sync::Arc;

use suimon_algorithms::congestion::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use suimon_algorithms::queue::Ecn;
use suimon_results::EventKind;
use suimon_scenario::{RttSample, StackProfile};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::recovery::Reduction;
use super::rto::Rto;
use super::scoreboard::{Scoreboard, Segment, Update};
use super::source::Source;
use crate::packet::{Packet, PacketKind};

/// Congestion window after a timeout that F-RTO found to be real (RFC 5682 §2.1, step 3).
const WINDOW_AFTER_REAL_TIMEOUT: u64 = 3;
/// New segments that F-RTO sends to find out (RFC 5682 §2.1, step 2b).
const F_RTO_PROBES: u64 = 2;
/// Linux's `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

/// A sending endpoint.
#[derive(Debug)]
pub(crate) struct Sender {
    profile: Arc<StackProfile>,
    cc: Box<dyn CongestionControl>,
    limits: Limits,
    connection: Connection,
    phase: Phase,
    board: Scoreboard,
    pub(crate) source: Source,
    rto: Rto,
    /// First byte that the peer does not let us send.
    window_edge: u64,
    undo: Option<Undo>,
    retransmit_at: Option<Instant>,
    /// Pacing lets nothing out before this.
    paced_until: Instant,
    stopped_by: StoppedBy,
    last_sent: Instant,
    /// Timestamp to echo.
    ts_recent: Instant,
    /// The next new data says that the window was cut.
    announce_cut: bool,
    pub(crate) counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Closed,
    SynSent { at: Instant },
    Established,
    Complete,
}

/// Where the connection stands with congestion.
#[derive(Debug)]
enum Phase {
    /// All is well.
    Open,
    /// The window shrinks for a mark, until all that was sent before is acknowledged.
    Cut { until: u64, reduction: Reduction },
    /// Lost segments are being retransmitted, likewise.
    Recovery { until: u64, reduction: Reduction },
    /// After a timeout, finding out whether it was a mistake (RFC 5682).
    ForwardRto { until: u64, probing: bool },
    /// After a timeout, beginning anew, likewise until.
    Loss { until: u64, una_at_timeout: u64 },
}

/// How things were before the first retransmission of an episode, in case it was a mistake.
#[derive(Debug, Clone, Copy)]
struct Undo {
    limits: Limits,
    first_retransmission: Option<Instant>,
}

/// Why nothing more was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoppedBy {
    CongestionWindow,
    Space,
    PeerWindow,
    Application,
    Pacing,
}

/// What results need to know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    pub(crate) packets_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) window_cuts: u64,
    pub(crate) timeouts: u64,
    pub(crate) spurious: u64,
    pub(crate) rtt_samples: u64,
    pub(crate) rtt_sum: Duration,
    pub(crate) rtt_min: Option<Duration>,
    pub(crate) rtt_max: Option<Duration>,
    pub(crate) rtt_last: Option<Duration>,
    /// The latest event that is worth a line in the results; whoever reads it takes it.
    pub(crate) event: Option<EventKind>,
}

impl Sender {
    pub(crate) fn new(profile: Arc<StackProfile>, cc: Box<dyn CongestionControl>, source: Source) -> Self {
        Self {
            limits: Limits::initial(profile.mss * u64::from(profile.initial_window)),
            board: Scoreboard::new(profile.loss_detection, profile.detects_lost_retransmissions),
            rto: Rto::new(&profile),
            profile,
            cc,
            connection: Connection::Closed,
            phase: Phase::Open,
            source,
            window_edge: 0,
            undo: None,
            retransmit_at: None,
            paced_until: Instant::ZERO,
            stopped_by: StoppedBy::Application,
            last_sent: Instant::ZERO,
            ts_recent: Instant::ZERO,
            announce_cut: false,
            counters: Counters::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn cc(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    pub(crate) fn flight_size(&self) -> Bytes {
        self.board.flight_size()
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
    }

    /// Bytes handed over by the application so far.
    pub(crate) fn taken(&self) -> u64 {
        self.board.snd_nxt()
    }

    /// When it wants to be asked again, if nothing arrives before.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        let waits_for = match (self.connection, self.stopped_by) {
            (Connection::Established, StoppedBy::Pacing) => Some(self.paced_until),
            (Connection::Established, StoppedBy::Application) => {
                self.source.available_at(self.board.snd_nxt() + self.profile.mss.get())
            }
            _ => None,
        };
        [self.retransmit_at, waits_for].into_iter().flatten().min()
    }

    /// Opens the connection.
    pub(crate) fn open(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.connection = Connection::SynSent { at: now };
        self.retransmit_at = Some(self.rto.deadline(now));
        out.push(Packet::new(PacketKind::Syn, self.profile.header.get() as u32, now));
    }

    /// A timer may be due, or the application has new data.
    pub(crate) fn on_wakeup(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if self.retransmit_at.is_some_and(|due| due <= now) {
            self.on_timeout(now, out);
        }
        self.transmit(now, out);
    }

    /// A SYN-ACK or an ACK arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, out: &mut Vec<Packet>) {
        self.ts_recent = self.ts_recent.max(packet.ts_val);
        self.window_edge = self.window_edge.max(packet.seq + u64::from(packet.window));
        match self.connection {
            Connection::SynSent { at } if packet.kind == PacketKind::SynAck => {
                self.connection = Connection::Established;
                self.retransmit_at = None;
                self.rto.sample(now.saturating_since(at));
                self.cc.on_established(now, &mut self.limits);
            }
            Connection::Established if packet.kind == PacketKind::Ack => self.on_ack(now, packet),
            _ => return,
        }
        self.transmit(now, out);
    }

    fn on_ack(&mut self, now: Instant, packet: &Packet) {
        if packet.seq > self.board.snd_nxt() {
            return;
        }
        let prior_flight_size = self.board.flight_size();
        let update = self.board.on_ack(packet.seq, packet.sack_ranges());
        // F-RTO judges by what arrives next, so nothing may be given up before.
        if self.board.has_sacked() && !matches!(self.phase, Phase::ForwardRto { .. }) {
            self.board.detect_losses(self.profile.mss);
        }
        let rtt = self.measure(now, packet, &update);
        if update.newly_acked > 0 {
            self.retransmit_at = (!self.board.is_empty()).then(|| self.rto.deadline(now));
        }
        self.advance_phase(now, packet, &update, prior_flight_size);
        let ack = Ack {
            now,
            newly_acked: Bytes::new(update.newly_acked),
            delivered: Bytes::new(update.delivered),
            rtt,
            snd_una: self.board.snd_una(),
            snd_nxt: self.board.snd_nxt(),
            flight_size: self.board.flight_size(),
            prior_flight_size,
            snd_wnd: Bytes::new(self.window_edge - self.board.snd_una()),
            mss: self.profile.mss,
            cwnd_limited: self.stopped_by == StoppedBy::CongestionWindow,
            app_limited: self.stopped_by == StoppedBy::Application,
            in_recovery: matches!(
                self.phase,
                Phase::Cut { .. } | Phase::Recovery { .. } | Phase::ForwardRto { .. }
            ),
            counting: self.profile.counting,
        };
        self.cc.on_ack(&ack, &mut self.limits);
        if self.source.end_position() == Some(self.board.snd_una()) {
            self.connection = Connection::Complete;
            self.retransmit_at = None;
            self.counters.event = Some(EventKind::Completed);
        }
    }

    /// Takes round-trip samples; gives that for congestion control.
    fn measure(&mut self, now: Instant, packet: &Packet, update: &Update) -> Option<Duration> {
        if update.newly_acked == 0 {
            return None;
        }
        let echoed = self.profile.timestamps.then_some(packet.ts_ecr).filter(|echo| *echo > Instant::ZERO);
        if let Some(sent_at) = update.oldest_sent_at.or(echoed) {
            self.rto.sample(now.saturating_since(sent_at));
        }
        let sent_at = match self.profile.rtt_sample {
            RttSample::Oldest => update.oldest_sent_at,
            RttSample::Newest => update.newest_sent_at,
        };
        let rtt = now.saturating_since(sent_at?);
        let counters = &mut self.counters;
        counters.rtt_samples += 1;
        counters.rtt_sum += rtt;
        counters.rtt_min = Some(counters.rtt_min.map_or(rtt, |min| min.min(rtt)));
        counters.rtt_max = Some(counters.rtt_max.map_or(rtt, |max| max.max(rtt)));
        counters.rtt_last = Some(rtt);
        Some(rtt)
    }

    /// Moves from phase to phase as the acknowledgement asks for.
    fn advance_phase(&mut self, now: Instant, packet: &Packet, update: &Update, prior_flight_size: Bytes) {
        if self.was_unnecessary(packet, update) {
            self.restore(now);
        }
        let snd_una = self.board.snd_una();
        match &mut self.phase {
            Phase::Open => {
                if packet.ecn_flag && self.profile.ecn {
                    self.begin_cut(now, prior_flight_size);
                }
            }
            Phase::Cut { until, reduction } | Phase::Recovery { until, reduction } => {
                if snd_una >= *until {
                    self.limits.cwnd = reduction.exit(self.limits.cwnd);
                    self.phase = Phase::Open;
                } else {
                    let delivered = Bytes::new(update.delivered);
                    let flight_size = self.board.flight_size();
                    self.limits.cwnd =
                        reduction.on_ack(self.limits.cwnd, delivered, flight_size, self.profile.mss);
                }
            }
            Phase::ForwardRto { until, probing } => {
                let (until, probing) = (*until, *probing);
                self.advance_forward_rto(now, until, probing, update);
            }
            Phase::Loss { until, .. } => {
                if snd_una >= *until {
                    self.phase = Phase::Open;
                }
            }
        }
        let recovering = matches!(self.phase, Phase::Open | Phase::Cut { .. });
        if recovering && self.board.has_lost() {
            self.begin_recovery(now, prior_flight_size, Bytes::new(update.delivered));
        }
    }

    /// The Eifel detection algorithm (RFC 3522): what is acknowledged was sent before the retransmission.
    fn was_unnecessary(&self, packet: &Packet, update: &Update) -> bool {
        let retransmitted = self.undo.and_then(|undo| undo.first_retransmission);
        self.profile.timestamps
            && update.newly_acked > 0
            && !matches!(self.phase, Phase::Open)
            && retransmitted.is_some_and(|at| packet.ts_ecr < at)
    }

    fn restore(&mut self, now: Instant) {
        let Some(undo) = self.undo.take() else { return };
        self.limits.cwnd = self.limits.cwnd.max(undo.limits.cwnd);
        self.limits.ssthresh = undo.limits.ssthresh;
        self.board.unmark_lost();
        self.phase = Phase::Open;
        self.cc.on_spurious(now, &mut self.limits);
        self.counters.spurious += 1;
        self.counters.event = Some(EventKind::Spurious);
    }

    fn notify(&mut self, now: Instant, kind: CongestionKind, flight_size: Bytes) {
        let snd_nxt = self.board.snd_nxt();
        let event = Congestion { now, kind, flight_size, snd_nxt, mss: self.profile.mss };
        self.cc.on_congestion(&event, &mut self.limits);
        self.counters.window_cuts += 1;
        self.counters.event = Some(match kind {
            CongestionKind::Loss => EventKind::Recovery,
            CongestionKind::Ecn => EventKind::EcnCut,
            CongestionKind::Timeout => EventKind::Timeout,
        });
    }

    fn begin_cut(&mut self, now: Instant, flight_size: Bytes) {
        self.notify(now, CongestionKind::Ecn, flight_size);
        self.announce_cut = true;
        self.phase = Phase::Cut { until: self.board.snd_nxt(), reduction: self.reduction(flight_size) };
    }

    fn begin_recovery(&mut self, now: Instant, prior_flight_size: Bytes, delivered: Bytes) {
        let already_cut = matches!(self.phase, Phase::Cut { .. });
        if !already_cut {
            // While older retransmissions are out, an echo older than the next one proves nothing.
            let provable = !self.board.has_retransmissions_in_flight();
            self.undo = provable.then_some(Undo { limits: self.limits, first_retransmission: None });
            self.notify(now, CongestionKind::Loss, prior_flight_size);
        }
        let mut reduction = self.reduction(prior_flight_size);
        let flight_size = self.board.flight_size();
        self.limits.cwnd = reduction
            .on_ack(self.limits.cwnd, delivered, flight_size, self.profile.mss)
            // Fast retransmit sends the first lost segment whatever the window says.
            .max(flight_size + self.profile.mss);
        self.phase = Phase::Recovery { until: self.board.snd_nxt(), reduction };
    }

    fn reduction(&self, flight_size: Bytes) -> Reduction {
        Reduction::new(self.profile.recovery, self.limits.cwnd, self.limits.ssthresh, flight_size)
    }

    /// RFC 5682 §2.1, steps 2 and 3.
    fn advance_forward_rto(&mut self, now: Instant, until: u64, probing: bool, update: &Update) {
        let advanced = update.newly_acked > 0;
        if self.board.snd_una() >= until {
            // Everything of before is acknowledged, which says nothing about the timeout.
            self.phase = Phase::Open;
        } else if advanced && probing {
            self.restore(now);
        } else if advanced {
            self.limits.cwnd = self.board.flight_size() + self.profile.mss * F_RTO_PROBES;
            self.phase = Phase::ForwardRto { until, probing: true };
        } else {
            self.limits.cwnd = self.profile.mss * if probing { WINDOW_AFTER_REAL_TIMEOUT } else { 1 };
            self.begin_anew(until);
        }
    }

    fn begin_anew(&mut self, until: u64) {
        self.board.mark_all_lost();
        self.phase = Phase::Loss { until, una_at_timeout: self.board.snd_una() };
    }

    fn on_timeout(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.counters.timeouts += 1;
        self.rto.back_off();
        self.retransmit_at = Some(self.rto.deadline(now));
        if self.connection != Connection::Established {
            self.open_again(now, out);
            return;
        }
        let first_of_its_kind = match &self.phase {
            Phase::Open | Phase::Cut { .. } | Phase::Recovery { .. } => true,
            Phase::ForwardRto { .. } => false,
            // A retransmission was lost too: congestion anew only if something got through between.
            Phase::Loss { una_at_timeout, .. } => self.board.snd_una() > *una_at_timeout,
        };
        if first_of_its_kind {
            if !matches!(self.phase, Phase::Recovery { .. } | Phase::Loss { .. }) {
                self.undo = Some(Undo { limits: self.limits, first_retransmission: None });
            }
            self.notify(now, CongestionKind::Timeout, self.board.flight_size());
        }
        self.limits.cwnd = self.profile.mss;
        let until = self.board.snd_nxt();
        match self.board.first() {
            Some(first) if self.profile.f_rto && first_of_its_kind && matches!(self.phase, Phase::Open) => {
                self.phase = Phase::ForwardRto { until, probing: false };
                self.retransmit(now, first, out);
            }
            _ => self.begin_anew(until),
        }
    }

    /// The SYN, or the answer to it, was lost.
    fn open_again(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if let Connection::SynSent { at } = &mut self.connection {
            *at = now;
            out.push(Packet::new(PacketKind::Syn, self.profile.header.get() as u32, now));
        }
    }

    /// Sends what may be sent.
    fn transmit(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if self.connection != Connection::Established {
            return;
        }
        self.restart_after_idle(now);
        loop {
            if now < self.paced_until {
                self.stopped_by = StoppedBy::Pacing;
                return;
            }
            let flight_size = self.board.flight_size();
            let retransmits = matches!(self.phase, Phase::Recovery { .. } | Phase::Loss { .. });
            if retransmits && let Some(segment) = self.board.next_lost() {
                if flight_size + Bytes::new(u64::from(segment.len)) > self.limits.cwnd {
                    self.stopped_by = StoppedBy::CongestionWindow;
                    return;
                }
                self.retransmit(now, segment, out);
                continue;
            }
            match self.new_segment(now, flight_size) {
                Ok(len) => self.send_new(now, len, out),
                Err(reason) => {
                    self.stopped_by = reason;
                    return;
                }
            }
        }
    }

    /// Length of the new segment that may be sent, or why none may.
    fn new_segment(&self, now: Instant, flight_size: Bytes) -> Result<u32, StoppedBy> {
        let snd_nxt = self.board.snd_nxt();
        let available = self.source.available(now);
        let len = Bytes::new(available - snd_nxt).min(self.profile.mss);
        let is_last = self.source.end_position() == Some(available) || !self.source.is_active();
        if len == Bytes::ZERO || (len < self.profile.mss && !is_last) {
            return Err(StoppedBy::Application);
        }
        if flight_size + len > self.limits.cwnd {
            return Err(StoppedBy::CongestionWindow);
        }
        // F-RTO's probes go out whatever an algorithm's own limit says.
        let probing = matches!(self.phase, Phase::ForwardRto { .. });
        if flight_size + len > self.limits.space && !probing {
            return Err(StoppedBy::Space);
        }
        if snd_nxt + len.get() > self.window_edge {
            return Err(StoppedBy::PeerWindow);
        }
        Ok(len.get() as u32)
    }

    fn send_new(&mut self, now: Instant, len: u32, out: &mut Vec<Packet>) {
        let mut packet = self.data_packet(now, self.board.snd_nxt(), len);
        if self.profile.ecn {
            packet.ecn = Ecn::Capable;
            packet.ecn_flag = std::mem::take(&mut self.announce_cut);
        }
        self.board.on_sent(now, len);
        if self.retransmit_at.is_none() {
            self.retransmit_at = Some(self.rto.deadline(now));
        }
        self.account(now, &packet);
        out.push(packet);
    }

    /// Retransmissions are not ECN-capable (RFC 3168 §6.1.5).
    fn retransmit(&mut self, now: Instant, segment: Segment, out: &mut Vec<Packet>) {
        let packet = self.data_packet(now, segment.seq, segment.len);
        if segment.seq == self.board.snd_una() {
            self.retransmit_at = Some(self.rto.deadline(now));
        }
        self.board.on_retransmitted(now, segment.seq);
        self.counters.retransmissions += 1;
        if let Some(undo) = &mut self.undo {
            undo.first_retransmission.get_or_insert(now);
        }
        self.account(now, &packet);
        out.push(packet);
    }

    fn data_packet(&self, now: Instant, seq: u64, len: u32) -> Packet {
        let mut packet = Packet::new(PacketKind::Data, len + self.profile.header.get() as u32, now);
        packet.seq = seq;
        packet.payload = len;
        packet.ts_ecr = self.ts_recent;
        packet
    }

    fn account(&mut self, now: Instant, packet: &Packet) {
        self.counters.packets_sent += 1;
        self.last_sent = now;
        if let Phase::Recovery { reduction, .. } | Phase::Cut { reduction, .. } = &mut self.phase {
            reduction.on_sent(Bytes::new(u64::from(packet.payload)));
        }
        if let Some(rate) = self.pacing_rate() {
            let size = Bytes::new(u64::from(packet.size));
            self.paced_until = self.paced_until.max(now) + rate.transmission_time(size);
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if self.limits.pacing.is_some() {
            return self.limits.pacing;
        }
        let srtt = self.rto.srtt().filter(|_| self.profile.pacing)?;
        let factor = if self.limits.in_slow_start() { PACING_SLOW_START } else { PACING_AVOIDANCE };
        Some(Rate::of(self.limits.cwnd, srtt).scaled(factor))
    }

    /// After a silence longer than the timeout the old window says nothing any more (RFC 5681 §4.1).
    fn restart_after_idle(&mut self, now: Instant) {
        let idle = self.board.is_empty() && now.saturating_since(self.last_sent) > self.rto.timeout();
        if idle && self.board.snd_nxt() > 0 {
            let initial = self.profile.mss * u64::from(self.profile.initial_window);
            self.limits.cwnd = self.limits.cwnd.min(initial);
            // So that it happens once, not at every look until something is sent.
            self.last_sent = now;
        }
    }
}
