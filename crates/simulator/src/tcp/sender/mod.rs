//! The sending end of a connection.

mod delivery;
#[cfg(test)]
mod linux_tests;
mod phase;
mod probe;
#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::Arc;

use suimon_algorithms::congestion::{Ack, CongestionControl, Delivery, Limits, MarkResponse, Siblings};
use suimon_algorithms::path::Rtt;
use suimon_algorithms::queue::Ecn;
use suimon_model::{AfterSilence, CwndValidation, RttSample, StackProfile};
use suimon_results::EventKind;
use suimon_units::{Bytes, Duration, Instant, Rate};

use self::delivery::Deliveries;
use self::phase::{F_RTO_PROBES, Phase};
use self::probe::{Probe, Purpose, Timer};
use self::usage::Usage;
use super::rto::Rto;
use super::scoreboard::{Scoreboard, Segment, Update};
use super::source::Source;
use crate::packet::{Packet, PacketKind, Sack, ticks};

/// Linux's `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

/// A sending endpoint.
#[derive(Debug)]
pub(crate) struct Sender {
    profile: Arc<StackProfile>,
    cc: Box<dyn CongestionControl>,
    /// The code point of new data.
    ecn: Ecn,
    /// The receiver tells which segments were marked.
    hears_shares: bool,
    limits: Limits,
    connection: Connection,
    phase: Phase,
    board: Scoreboard,
    /// Measures the rate of delivery, for a congestion control that asks for it.
    deliveries: Option<Box<Deliveries>>,
    pub(crate) source: Source,
    rto: Rto,
    /// First byte that the peer does not let us send.
    window_edge: u64,
    /// The window before the last cut, in case it was a mistake.
    undo: Option<Limits>,
    /// When the first retransmission was sent since all was well (`retrans_stamp` of Linux).
    first_retransmission: Option<Instant>,
    /// Nothing is retransmitted in answer to the ACK that is being taken in.
    new_data_first: bool,
    timer: Option<Timer>,
    /// The tail loss probe that is under way.
    probe: Option<Probe>,
    /// Pacing lets nothing out before this.
    paced_until: Instant,
    stopped_by: StoppedBy,
    /// `snd_nxt` when the congestion window was last full.
    full_at: u64,
    usage: Usage,
    last_sent: Instant,
    /// Acknowledged before the connection was last silent.
    before_silence: u64,
    /// Timestamp to echo.
    ts_recent: Instant,
    /// The next new data says that the window was cut.
    announce_cut: bool,
    /// What may be in flight of the connections that share a target; and the acknowledgement that tells how they do.
    share: Bytes,
    told: Option<Box<Option<Ack>>>,
    /// The other connections that carry the same stream.
    pub(crate) siblings: Siblings,
    pub(crate) counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Closed,
    SynSent { retries: u32 },
    Established,
    Complete,
}

/// The reason that nothing more was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoppedBy {
    CongestionWindow,
    Space,
    PeerWindow,
    Application,
    Pacing,
}

/// The counts and events for results.
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
            ecn: match cc.mark_response() {
                MarkResponse::Once if profile.ecn => Ecn::Capable,
                MarkResponse::Once | MarkResponse::Never => Ecn::NotCapable,
                MarkResponse::ByShare(code_point) => code_point,
            },
            hears_shares: matches!(cc.mark_response(), MarkResponse::ByShare(_)),
            deliveries: cc.models_delivery().then(Box::default),
            profile,
            cc,
            connection: Connection::Closed,
            phase: Phase::Open,
            source,
            window_edge: 0,
            undo: None,
            first_retransmission: None,
            new_data_first: false,
            timer: None,
            probe: None,
            paced_until: Instant::ZERO,
            stopped_by: StoppedBy::Application,
            full_at: 0,
            usage: Usage::default(),
            last_sent: Instant::ZERO,
            before_silence: 0,
            ts_recent: Instant::ZERO,
            announce_cut: false,
            share: Bytes::new(u64::MAX),
            told: None,
            siblings: Siblings::default(),
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

    pub(crate) fn rtt(&self) -> Option<Rtt> {
        self.rto.rtt()
    }

    pub(crate) fn profile(&self) -> Arc<StackProfile> {
        Arc::clone(&self.profile)
    }

    pub(crate) fn mss(&self) -> Bytes {
        self.profile.mss
    }

    pub(crate) fn is_established(&self) -> bool {
        self.connection == Connection::Established
    }

    /// Bytes that the peer has acknowledged.
    pub(crate) fn snd_una(&self) -> u64 {
        self.board.snd_una()
    }

    /// Bytes that the peer has acknowledged since the connection began, or was last silent.
    pub(crate) fn carried(&self) -> u64 {
        self.snd_una() - self.before_silence
    }

    /// Bytes handed over by the application so far.
    pub(crate) fn taken(&self) -> u64 {
        self.board.snd_nxt()
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_application_limited(&self) -> bool {
        self.stopped_by == StoppedBy::Application
    }

    /// Keeps each acknowledgement for [`Sender::take_told`].
    pub(crate) fn tell(&mut self) {
        self.told = Some(Box::default());
    }

    /// The acknowledgement that came last, once.
    pub(crate) fn take_told(&mut self) -> Option<Ack> {
        self.told.as_mut()?.take()
    }

    /// Lets no more than `share` be in flight from now on.
    pub(crate) fn limit_share(&mut self, share: Bytes) {
        self.share = share;
    }

    /// The time when the timer runs out.
    pub(crate) fn timer(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.at)
    }

    /// The time when there will be more to send, if nothing arrives before.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        match (self.connection, self.stopped_by) {
            (Connection::Established, StoppedBy::Pacing) => Some(self.paced_until),
            (Connection::Established, StoppedBy::Application) => {
                self.source.more_at(self.board.snd_nxt(), self.profile.mss.get())
            }
            _ => None,
        }
    }

    /// Opens the connection.
    pub(crate) fn open(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.connection = Connection::SynSent { retries: 0 };
        self.wait_for_timeout(now);
        out.push(self.syn(now));
    }

    fn syn(&self, now: Instant) -> Packet {
        let mut packet = Packet::new(PacketKind::Syn, now);
        packet.ecn = self.ecn_of_control();
        packet
    }

    /// SYNs and retransmissions are not ECN-capable (RFC 3168 §6.1.1, §6.1.5), but where marks are answered
    /// by their share: queues for such senders drop everything else (RFC 8257 §3.1, RFC 8311 §4.3).
    fn ecn_of_control(&self) -> Ecn {
        if self.hears_shares { self.ecn } else { Ecn::NotCapable }
    }

    /// A timer may be due, or the application has new data.
    pub(crate) fn on_wakeup(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if let Some(timer) = self.timer.filter(|timer| timer.at <= now) {
            match timer.purpose {
                Purpose::Retransmission => self.on_timeout(now, out),
                Purpose::LossProbe => self.send_probe(now, out),
                Purpose::Reordering => self.on_reordering_timeout(now),
            }
        }
        self.transmit(now, out);
    }

    /// A SYN-ACK or an ACK arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, sack: &Sack, out: &mut Vec<Packet>) {
        self.ts_recent = self.ts_recent.max(packet.ts_val);
        self.window_edge = self.window_edge.max(packet.seq + u64::from(packet.bytes));
        match self.connection {
            Connection::SynSent { retries } if packet.kind == PacketKind::SynAck => {
                self.connection = Connection::Established;
                self.timer = None;
                // The echo tells which SYN was answered; without it only the first leaves no doubt.
                if self.profile.timestamps || retries == 0 {
                    let rtt = now.saturating_since(packet.ts_ecr);
                    self.rto.on_established(rtt);
                    self.board.on_rtt(rtt);
                    if let Some(deliveries) = &mut self.deliveries {
                        let delivery = deliveries.on_established(now, rtt);
                        self.cc.on_delivery(&Delivery { ts_val: self.ts_val(packet), ..delivery });
                    }
                }
                // A lost SYN tells of congestion (RFC 5681 §3.1); as in Linux, one may have been a mistake.
                if retries > 1 {
                    self.limits.cwnd = self.profile.mss;
                }
                self.cc.on_established(now, &mut self.limits);
            }
            Connection::Established if packet.kind == PacketKind::Ack => self.on_ack(now, packet, sack),
            _ => return,
        }
        self.transmit(now, out);
    }

    fn on_ack(&mut self, now: Instant, packet: &Packet, sack: &Sack) {
        if packet.seq > self.board.snd_nxt() {
            return;
        }
        let prior_flight_size = self.board.flight_size();
        let (losses, lost_copies) = (self.board.losses(), self.board.lost_copies());
        let echo = self.profile.timestamps.then_some(packet.ts_ecr);
        let mut update = self.board.on_ack(now, (packet.seq, echo), sack.ranges(packet.seq));
        let was_unnecessary = self.was_unnecessary(packet, &update);
        let mut reordering = None;
        if was_unnecessary && self.waits_for_copies() {
            self.new_data_first = true;
        } else if self.board.has_clock() {
            let look = self.look(now);
            reordering = self.board.detect_once_advanced(&look);
        } else {
            self.board.detect_losses(self.profile.mss);
        }
        update.lost = self.board.losses() > losses;
        update.lost_copy = update.lost && self.board.lost_copies() > lost_copies;
        self.rto.on_acknowledged(now, self.board.snd_una());
        let rtt = self.measure(now, packet, &update);
        if self.deliveries.is_some() {
            self.tell_delivery(now, packet, sack);
        }
        if update.newly_acked > 0 {
            if self.board.is_empty() {
                self.timer = None;
            } else {
                self.wait_for_timeout(now);
            }
        } else if self.is_kept_waiting(&update) {
            self.wait_for_timeout(now);
        }
        if let Some(probe) = self.probe {
            self.judge_probe(now, probe, &update, prior_flight_size);
        }
        self.advance_phase(now, packet, &update, prior_flight_size, was_unnecessary);
        match reordering {
            Some(wait) => self.wait_for_reordered(now, wait),
            None if update.newly_acked > 0 => self.wait_for_probe(now, now),
            None => {}
        }
        let ack = Ack {
            now,
            newly_acked: Bytes::new(update.newly_acked),
            delivered: Bytes::new(update.delivered),
            marked: Bytes::new(if packet.ecn_flag && self.hears_shares { update.delivered } else { 0 }),
            rtt,
            snd_una: self.board.snd_una(),
            snd_nxt: self.board.snd_nxt(),
            flight_size: self.board.flight_size(),
            prior_flight_size,
            snd_wnd: Bytes::new(self.window_edge - self.board.snd_una()),
            mss: self.profile.mss,
            cwnd_limited: match self.stopped_by {
                // What an algorithm limits by itself does not let the window grow.
                StoppedBy::Space => false,
                _ if self.profile.cwnd_validation == CwndValidation::Window => {
                    self.usage.may_grow(self.limits.cwnd, self.limits.in_slow_start())
                }
                StoppedBy::CongestionWindow => true,
                // Pacing only spreads the window's segments; was the window full in the last round trip?
                StoppedBy::Pacing => self.board.snd_una() <= self.full_at,
                _ => false,
            },
            app_limited: self.stopped_by == StoppedBy::Application,
            in_recovery: match self.phase {
                Phase::Recovery { .. } => true,
                // An algorithm that answers the share of marks grows on meanwhile.
                _ if self.hears_shares => false,
                Phase::Cut { .. } => true,
                // An ACK that echoes a mark does not grow the window (RFC 3168 §6.1.2).
                Phase::Open | Phase::Loss { .. } => packet.ecn_flag && self.ecn != Ecn::NotCapable,
            },
            counting: self.profile.counting,
            siblings: self.siblings,
        };
        if let Some(told) = &mut self.told {
            **told = Some(ack);
        }
        self.cc.on_ack(&ack, &mut self.limits);
        if self.source.end_position() == Some(self.board.snd_una()) {
            self.connection = Connection::Complete;
            self.timer = None;
            if self.source.will_complete() {
                self.counters.event = Some(EventKind::Completed);
            }
        }
    }

    /// Gives a congestion control that models the delivery rate its sample. Not inlined: most have none, and their ACKs
    /// would take longer.
    #[inline(never)]
    fn tell_delivery(&mut self, now: Instant, packet: &Packet, sack: &Sack) {
        if let Some(deliveries) = &mut self.deliveries
            && let Some(delivery) = deliveries.on_ack(now, packet.seq, sack.ranges(packet.seq))
        {
            let (ts_val, next_departure) = (self.ts_val(packet), self.paced_until.max(now));
            self.cc.on_delivery(&Delivery { ts_val, next_departure, ..delivery });
        }
    }

    /// The peer's time, where the connection has timestamps.
    fn ts_val(&self, packet: &Packet) -> Option<u32> {
        self.profile.timestamps.then(|| ticks(packet.ts_val))
    }

    /// Whether an ACK confirms segments that were sent before the first missing one was sent last, so that this one cannot
    /// have been acknowledged yet (`tcp_clean_rtx_queue` of Linux).
    fn is_kept_waiting(&self, update: &Update) -> bool {
        let sacked = update.sacked_sent_at.filter(|_| self.profile.rtt_sample == RttSample::Delivered);
        sacked.zip(self.board.first_sent_at()).is_some_and(|((oldest, _), first)| oldest < first)
    }

    /// Takes round-trip samples; gives that for congestion control.
    fn measure(&mut self, now: Instant, packet: &Packet, update: &Update) -> Option<Duration> {
        let sacked = update.sacked_sent_at.filter(|_| self.profile.rtt_sample == RttSample::Delivered);
        if update.newly_acked == 0 && sacked.is_none() {
            return None;
        }
        let echoed = self.profile.timestamps.then_some(packet.ts_ecr).filter(|echo| *echo > Instant::ZERO);
        if let Some(sent_at) = update.oldest_sent_at.or(sacked.map(|sacked| sacked.0)).or(echoed) {
            let flight = self.board.snd_una()..self.board.snd_nxt();
            self.rto.sample(now.saturating_since(sent_at), &flight);
        }
        let sent_at = match self.profile.rtt_sample {
            RttSample::Oldest => update.oldest_sent_at,
            RttSample::Newest => update.newest_sent_at,
            RttSample::Delivered => sacked.map(|sacked| sacked.1).or(update.newest_sent_at).or(echoed),
        };
        let rtt = now.saturating_since(sent_at?);
        self.board.on_rtt(rtt);
        let counters = &mut self.counters;
        counters.rtt_samples += 1;
        counters.rtt_sum += rtt;
        counters.rtt_min = Some(counters.rtt_min.map_or(rtt, |min| min.min(rtt)));
        counters.rtt_max = Some(counters.rtt_max.map_or(rtt, |max| max.max(rtt)));
        counters.rtt_last = Some(rtt);
        Some(rtt)
    }

    /// The SYN, or the answer to it, was lost.
    fn open_again(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if let Connection::SynSent { retries } = &mut self.connection {
            *retries += 1;
            // RFC 3168 §6.1.1.1: the loss may have been due to the offer of ECN, which is not repeated.
            if self.profile.ecn_fallback && !self.hears_shares {
                self.ecn = Ecn::NotCapable;
            }
            out.push(self.syn(now));
        }
    }

    /// Sends as much as may be sent.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if self.connection != Connection::Established {
            return;
        }
        self.restart_after_idle(now);
        let snd_nxt = self.board.snd_nxt();
        let new_data_first = std::mem::take(&mut self.new_data_first);
        let retransmits =
            matches!(self.phase, Phase::Recovery { .. } | Phase::Loss { .. }) && !new_data_first;
        let reason = loop {
            if now < self.paced_until {
                break StoppedBy::Pacing;
            }
            let flight_size = self.board.flight_size();
            if retransmits && let Some(segment) = self.board.next_lost() {
                if flight_size + Bytes::new(u64::from(segment.len)) > self.limits.cwnd {
                    break StoppedBy::CongestionWindow;
                }
                self.retransmit(now, segment, out);
                continue;
            }
            match self.new_segment(now, flight_size) {
                Ok(len) => self.send_new(now, len, out),
                Err(reason) => break reason,
            }
        };
        let has_sent = self.board.snd_nxt() > snd_nxt;
        self.stop(reason, has_sent);
        if self.profile.tail_loss_probe
            && has_sent
            && let Some(first) = self.board.first_sent_at()
        {
            self.wait_for_probe(now, first);
        }
    }

    fn stop(&mut self, reason: StoppedBy, has_sent: bool) {
        self.stopped_by = reason;
        if self.profile.cwnd_validation == CwndValidation::Window {
            let is_full = self.board.flight_size() + self.profile.mss > self.limits.cwnd;
            if has_sent || is_full {
                self.usage.on_sent(is_full, self.board.snd_una(), self.board.snd_nxt());
            }
        }
        if reason == StoppedBy::CongestionWindow {
            self.full_at = self.board.snd_nxt();
        } else if let (StoppedBy::Application, Some(deliveries)) = (reason, &mut self.deliveries)
            && self.board.flight_size() < self.limits.cwnd
        {
            deliveries.on_application_limited(self.board.flight_size());
        }
    }

    /// Length of the new segment that may be sent, or why none may.
    fn new_segment(&self, now: Instant, flight_size: Bytes) -> Result<u32, StoppedBy> {
        let snd_nxt = self.board.snd_nxt();
        let available = self.source.available(now);
        let len = Bytes::new(available - snd_nxt).min(self.profile.mss);
        let is_last = || self.source.end_position() == Some(available) || !self.source.is_active();
        if len == Bytes::ZERO || (len < self.profile.mss && !is_last()) {
            return Err(StoppedBy::Application);
        }
        if flight_size + len > self.limits.cwnd {
            return Err(StoppedBy::CongestionWindow);
        }
        // F-RTO's probes go out whatever an algorithm's own limit says.
        let probes_end = |until| until + (self.profile.mss * F_RTO_PROBES).get();
        let probing =
            matches!(self.phase, Phase::Loss { f_rto: true, until, .. } if snd_nxt < probes_end(until));
        if flight_size + len > self.limits.space.min(self.share) && !probing {
            return Err(StoppedBy::Space);
        }
        if snd_nxt + len.get() > self.window_edge {
            return Err(StoppedBy::PeerWindow);
        }
        Ok(len.get() as u32)
    }

    fn send_new(&mut self, now: Instant, len: u32, out: &mut Vec<Packet>) {
        let mut packet = self.data_packet(now, self.board.snd_nxt(), len);
        if self.ecn != Ecn::NotCapable {
            packet.ecn = self.ecn;
            packet.ecn_flag = std::mem::take(&mut self.announce_cut);
        }
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_sent(now, packet.seq, len, self.board.flight_size());
        }
        self.board.on_sent(now, len);
        self.rto.on_sent(now, self.board.snd_nxt());
        if self.timer.is_none() {
            self.wait_for_timeout(now);
        }
        self.account(now, &packet);
        out.push(packet);
    }

    fn retransmit(&mut self, now: Instant, segment: Segment, out: &mut Vec<Packet>) {
        let mut packet = self.data_packet(now, segment.seq, segment.len);
        packet.ecn = self.ecn_of_control();
        if segment.seq == self.board.snd_una() && !self.waits_for_reordered() {
            self.wait_for_timeout(now);
        }
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_sent(now, segment.seq, segment.len, self.board.flight_size());
        }
        self.board.on_retransmitted(now, segment.seq);
        self.counters.retransmissions += 1;
        self.rto.on_retransmitted();
        self.first_retransmission.get_or_insert(now);
        self.account(now, &packet);
        out.push(packet);
    }

    fn data_packet(&self, now: Instant, seq: u64, len: u32) -> Packet {
        let mut packet = Packet::new(PacketKind::Data, now);
        packet.seq = seq;
        packet.bytes = len;
        packet.ts_ecr = self.ts_recent;
        packet
    }

    #[inline(always)]
    fn account(&mut self, now: Instant, packet: &Packet) {
        self.counters.packets_sent += 1;
        self.last_sent = now;
        if let Phase::Recovery { reduction, .. } | Phase::Cut { reduction, .. } = &mut self.phase {
            reduction.on_sent(Bytes::new(u64::from(packet.bytes)));
        }
        if let Some(rate) = self.pacing_rate() {
            let size = Bytes::new(u64::from(packet.bytes));
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

    /// After a silence longer than the timeout the old window says nothing any more.
    fn restart_after_idle(&mut self, now: Instant) {
        let silence = now.saturating_since(self.last_sent);
        let idle = self.board.is_empty() && silence > self.rto.timeout();
        if idle {
            self.before_silence = self.snd_una();
        }
        if idle && self.board.snd_nxt() > 0 && self.deliveries.is_none() {
            self.restart(silence);
            // The restart happens once, not at every look until something is sent.
            self.last_sent = now;
        }
    }

    fn restart(&mut self, silence: Duration) {
        let (mss, limits) = (self.profile.mss, &mut self.limits);
        let initial = limits.cwnd.min(mss * u64::from(self.profile.initial_window));
        if self.profile.after_silence == AfterSilence::Rfc5681 {
            limits.cwnd = initial; // RFC 5681 §4.1.
            return;
        }
        // RFC 2861 §3.1, in whole segments as in Linux (`tcp_cwnd_restart`).
        let segments = limits.cwnd.whole(mss);
        limits.ssthresh = limits.ssthresh.max(mss * (segments / 2 + segments / 4));
        let timeouts = silence.as_nanos().div_ceil(self.rto.timeout().as_nanos().max(1)) - 1;
        let left = segments.checked_shr(timeouts.min(63) as u32).unwrap_or_default();
        limits.cwnd = (mss * left).max(initial);
    }
}
