//! The receiving end of a connection: reassembly, acknowledgements, the advertised window.

use std::sync::Arc;

use suimon_algorithms::congestion::MarkResponse;
use suimon_algorithms::queue::Ecn;
use suimon_algorithms::receiver::{ReceiveWindow, Received};
use suimon_model::StackProfile;
use suimon_units::{Bytes, Duration, Instant};

use super::delayed_ack::DelayedAck;
use super::ranges::RangeSet;
use super::rcv_ssthresh::RcvSsthresh;
use super::sack_compression::{self, SackCompression};
use crate::packet::{MAX_SACK_BLOCKS, Packet, PacketKind, Sack};

/// Acknowledge at the latest every second full segment (RFC 5681 §4.2).
const SEGMENTS_PER_ACK: u32 = 2;

/// As in Linux: a window that is about to be cut may be too small to wait for acknowledgements.
const QUICK_ACKS_AFTER_A_MARK: u32 = 2;

/// A receiving endpoint, whose application reads at once unless told otherwise.
#[derive(Debug)]
pub(crate) struct Receiver {
    profile: Arc<StackProfile>,
    window: Box<dyn ReceiveWindow>,
    window_is_fixed: bool,
    window_scale: u32,
    /// The buffer that `window` gave last.
    buffer: Bytes,
    rcv_nxt: u64,
    /// Bytes in order that the application has not read.
    unread: u64,
    /// Bytes that it has read, where it does not read all at once.
    read: Option<u64>,
    out_of_order: RangeSet,
    /// Where the latest out-of-order segments began, latest first, for the SACK option.
    recent: [Option<u64>; MAX_SACK_BLOCKS],
    /// Right edge of the window advertised last.
    advertised: u64,
    /// `TS.Recent` and `Last.ACK.sent` of RFC 7323 §4.3.
    ts_recent: Instant,
    last_ack_sent: u64,
    /// The round-trip time of the handshake.
    rtt: Duration,
    /// When the last segment in order came.
    last_in_order: Instant,
    unacknowledged: u32,
    delayed_until: Option<Instant>,
    delayed_ack: DelayedAck,
    quick_acks: u32,
    /// None where the whole buffer is advertised.
    rcv_ssthresh: Option<RcvSsthresh>,
    /// None where each segment behind a gap is answered at once.
    sack_compression: Option<SackCompression>,
    /// The blocks of an ACK that goes out before the segment which made it due counts.
    earlier_sack: Option<Sack>,
    /// Marks are echoed until the sender says that it has cut its window (RFC 3168 §6.1.3); or an echo tells
    /// whether the acknowledged segments were marked (`DCTCP.CE` of RFC 8257 §3.2).
    echo_congestion: bool,
    echoes_each: bool,
}

impl Receiver {
    /// A receiver that can buffer `buffer` bytes; `window` decides how many it advertises.
    pub(crate) fn new(
        profile: Arc<StackProfile>,
        window: Box<dyn ReceiveWindow>,
        buffer: Bytes,
        marks: MarkResponse,
    ) -> Self {
        // The smallest scale that lets a 16-bit field hold the buffer (RFC 7323 §2.3).
        let window_scale = (0..14).find(|scale| buffer.get() >> scale <= 0xffff).unwrap_or(14);
        Self {
            quick_acks: profile.quick_acks,
            rcv_ssthresh: (profile.grow_window && profile.timestamps && window.is_fixed())
                .then(|| RcvSsthresh::new(buffer, profile.mss)),
            sack_compression: profile.compress_sacks.then(SackCompression::default),
            earlier_sack: None,
            delayed_ack: DelayedAck::new(&profile),
            profile,
            window_is_fixed: window.is_fixed(),
            buffer: window.buffer(),
            window,
            window_scale,
            rcv_nxt: 0,
            unread: 0,
            read: None,
            out_of_order: RangeSet::default(),
            recent: [None; MAX_SACK_BLOCKS],
            advertised: 0,
            ts_recent: Instant::ZERO,
            last_ack_sent: 0,
            rtt: Duration::ZERO,
            last_in_order: Instant::ZERO,
            unacknowledged: 0,
            delayed_until: None,
            echo_congestion: false,
            echoes_each: matches!(marks, MarkResponse::ByShare(_)),
        }
    }

    /// Bytes delivered to the application, in order.
    pub(crate) fn delivered(&self) -> u64 {
        self.rcv_nxt
    }

    pub(crate) fn window(&self) -> &dyn ReceiveWindow {
        &*self.window
    }

    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        self.delayed_until
    }

    /// Takes in a packet; gives the answer, unless it is held back.
    #[inline(always)]
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet) -> Option<Packet> {
        if packet.kind == PacketKind::Syn {
            self.ts_recent = self.ts_recent.max(packet.ts_val);
            return Some(self.answer(now, PacketKind::SynAck));
        }
        let marked = packet.ecn == Ecn::CongestionExperienced;
        // The sender says that it has cut its window.
        let has_cut = packet.ecn_flag && !self.echoes_each;
        if !self.echoes_each {
            let was_echoing = self.echo_congestion && !has_cut;
            self.echo_congestion = marked || was_echoing;
            if marked && !was_echoing {
                self.quick_acks = self.quick_acks.max(QUICK_ACKS_AFTER_A_MARK);
            }
        } else if marked != self.echo_congestion {
            return self.on_change_of_marks(now, packet);
        }
        if packet.seq <= self.last_ack_sent {
            self.ts_recent = self.ts_recent.max(packet.ts_val);
        }
        let end = packet.seq + u64::from(packet.payload());
        let in_order = packet.seq <= self.rcv_nxt && end > self.rcv_nxt;
        let fills_a_gap = in_order && !self.out_of_order.is_empty();
        let mut earlier = None;
        if in_order {
            if self.rcv_nxt == 0 {
                // The only measurement of a side that sends no data.
                self.rtt = now.saturating_since(packet.ts_ecr);
            } else {
                self.delayed_ack.on_segment(now, self.last_in_order, self.rto());
                if now.saturating_since(self.last_in_order) > self.rto() {
                    // As after a restart: the sender's window may be small (`tcp_event_data_recv` of Linux).
                    self.quick_acks = self.quick_acks.max(self.profile.quick_acks);
                }
            }
            self.last_in_order = now;
            self.rcv_nxt = end;
            while let Some(end) = self.out_of_order.take_first_reaching(self.rcv_nxt) {
                self.rcv_nxt = self.rcv_nxt.max(end);
            }
            self.unacknowledged += 1;
            if let Some(rcv_ssthresh) = &mut self.rcv_ssthresh {
                let grew = rcv_ssthresh.on_segment(now, self.rcv_nxt, packet.ts_ecr, self.profile.mss);
                self.quick_acks |= u32::from(grew);
            }
        } else if packet.seq > self.rcv_nxt {
            earlier = self.flush_compressed(now, packet.seq, end);
            self.out_of_order.insert(packet.seq, end);
            self.remember(packet.seq);
            if let Some(rcv_ssthresh) = &mut self.rcv_ssthresh {
                self.quick_acks |= u32::from(rcv_ssthresh.grow(self.profile.mss));
            }
        } else {
            // The sender took it for lost: it gets an ACK for each segment, as with Linux.
            self.quick_acks = self.quick_acks.max(self.profile.quick_acks);
        }
        if !self.window_is_fixed {
            self.show_segment(now, packet, in_order);
        }
        if earlier.is_some() {
            // Linux takes it for the answer to this segment too, of which only the next ACK tells.
            return earlier;
        }
        let quickly = has_cut || self.quick_acks > 0;
        if !quickly && (!in_order || fills_a_gap) && self.hold_back(now) {
            return None;
        }
        // Duplicates and gaps are answered at once (RFC 5681 §4.2), and whoever may send a packet or two only.
        let at_once = !in_order
            || fills_a_gap
            || quickly
            || !self.profile.delayed_ack
            || self.ends_a_write(packet.seq, end)
            || self.unacknowledged >= SEGMENTS_PER_ACK;
        if at_once {
            if self.quick_acks > 0 {
                self.quick_acks -= 1;
                if self.quick_acks == 0 {
                    self.delayed_ack.on_quick_acks_over();
                }
            }
            return Some(self.answer(now, PacketKind::Ack));
        }
        self.delayed_until.get_or_insert(self.delayed_ack.due(now, self.rtt));
        None
    }

    /// Whether the ACK for a segment that leaves a gap waits for others.
    #[cold]
    fn hold_back(&mut self, now: Instant) -> bool {
        let more_than_a_segment = self.rcv_nxt - self.last_ack_sent > self.profile.mss.get();
        let Some(compression) = &mut self.sack_compression else { return false };
        if self.out_of_order.is_empty() || more_than_a_segment {
            return false;
        }
        let delay = compression.delay(self.rcv_nxt, self.rtt);
        if let Some(delay) = delay {
            self.delayed_until.get_or_insert(now + delay);
        }
        delay.is_some()
    }

    /// The ACK held back, where a segment would change more than its first two blocks.
    #[cold]
    fn flush_compressed(&mut self, now: Instant, seq: u64, end: u64) -> Option<Packet> {
        if !self.sack_compression.as_ref().is_some_and(SackCompression::is_holding) {
            return None;
        }
        let grows = self.blocks().position(|(start, stop)| seq <= stop && start <= end);
        let block = grows.unwrap_or_else(|| self.blocks().count());
        (block >= sack_compression::EXPECTED_BLOCKS).then(|| self.answer_before(now))
    }

    /// An ACK that knows nothing of the segment that is being taken in.
    fn answer_before(&mut self, now: Instant) -> Packet {
        let answer = self.answer(now, PacketKind::Ack);
        self.earlier_sack = answer.has_sack.then(|| self.sack(&answer));
        answer
    }

    /// The segment bears PSH: the application's writes end at whole numbers of them.
    fn ends_a_write(&self, seq: u64, end: u64) -> bool {
        let write = self.profile.write.get();
        write > 0 && seq / write != end / write
    }

    fn show_segment(&mut self, now: Instant, packet: &Packet, in_order: bool) {
        self.window.on_segment(&Received {
            now,
            rcv_nxt: self.rcv_nxt,
            advertised: self.advertised,
            read: self.read.unwrap_or(self.rcv_nxt),
            timestamp_rtt: (in_order && self.profile.timestamps && packet.ts_ecr > Instant::ZERO)
                .then(|| now.saturating_since(packet.ts_ecr)),
            mss: self.profile.mss,
            header: self.profile.header,
        });
        self.buffer = self.window.buffer();
    }

    /// Where each mark is echoed, a delayed ACK goes out before a packet that differs in its mark, so that an ACK
    /// speaks for segments of one kind (RFC 8257 §3.2).
    #[cold]
    fn on_change_of_marks(&mut self, now: Instant, packet: &Packet) -> Option<Packet> {
        let held_back = self.delayed_until.is_some().then(|| self.answer_before(now));
        self.echo_congestion = !self.echo_congestion;
        let own = self.on_packet(now, packet);
        if held_back.is_some() && own.is_some() {
            // One answer at a time: this one is due in no time.
            self.delayed_until = Some(now);
            return held_back;
        }
        held_back.or(own)
    }

    /// The application reads what [`Receiver::on_read`] says, and nothing before.
    pub(crate) fn leave_unread(&mut self) {
        self.read = Some(0);
    }

    /// The application leaves so many bytes unread. Gives the update of a window that has opened, by Linux's rule:
    /// where it is twice what is left of the one that was advertised (`tcp_cleanup_rbuf`).
    pub(crate) fn on_read(&mut self, now: Instant, unread: u64) -> Option<Packet> {
        self.unread = unread;
        self.read = Some(self.rcv_nxt - unread);
        let left = self.advertised.saturating_sub(self.rcv_nxt);
        let room = self.buffer.get().saturating_sub(unread);
        (room >= 2 * left && room >= self.profile.mss.get()).then(|| self.answer(now, PacketKind::Ack))
    }

    /// A held-back acknowledgement is due.
    pub(crate) fn on_timer(&mut self, now: Instant) -> Option<Packet> {
        self.delayed_until.filter(|due| *due <= now)?;
        if self.unacknowledged > 0 && !self.sack_compression.as_ref().is_some_and(SackCompression::is_holding)
        {
            self.delayed_ack.on_missed(self.rto());
        }
        Some(self.answer(now, PacketKind::Ack))
    }

    /// The timeout of a side that has measured the handshake's round-trip time alone.
    fn rto(&self) -> Duration {
        self.rtt + self.profile.rto_min
    }

    fn remember(&mut self, seq: u64) {
        let Some((start, end)) = self.out_of_order.containing(seq) else { return };
        // One entry a block, the newest (RFC 2018 §4), and none for data in order by now.
        let mut kept = [Some(seq), None, None];
        let apart = |other: &&u64| **other >= self.rcv_nxt && !(start..end).contains(*other);
        let others = self.recent.iter().flatten().filter(apart);
        for (slot, other) in kept[1..].iter_mut().zip(others) {
            *slot = Some(*other);
        }
        self.recent = kept;
    }

    fn answer(&mut self, now: Instant, kind: PacketKind) -> Packet {
        self.unacknowledged = 0;
        self.delayed_until = None;
        if let Some(compression) = &mut self.sack_compression {
            compression.on_ack_sent();
        }
        self.last_ack_sent = self.rcv_nxt;
        // The scaled field holds no larger window (RFC 7323 §2.3).
        let buffer = self.buffer.get().min(0xffff << self.window_scale);
        let buffer = self.rcv_ssthresh.as_ref().map_or(buffer, |most| buffer.min(most.get().get()));
        let buffer = buffer.saturating_sub(self.unread);
        // Never less than a segment: the sender has no window probes that would get it going again. Who leaves data
        // unread opens the window once it reads.
        let least = if self.unread == 0 { self.profile.mss.get() } else { 0 };
        let window = (buffer >> self.window_scale << self.window_scale).max(least);
        // The right edge never moves left (RFC 9293 §3.8.6).
        self.advertised = self.advertised.max(self.rcv_nxt + window);
        let mut packet = Packet::new(kind, now);
        packet.seq = self.rcv_nxt;
        packet.bytes = (self.advertised - self.rcv_nxt) as u32;
        packet.ts_ecr = self.ts_recent;
        packet.ecn_flag = self.echo_congestion;
        packet.has_sack = !self.out_of_order.is_empty();
        packet
    }

    /// The SACK blocks that go with `answer`, the latest.
    pub(crate) fn sack(&mut self, answer: &Packet) -> Sack {
        if let Some(earlier) = self.earlier_sack.take() {
            return earlier;
        }
        let mut sack = Sack::new();
        for (start, end) in self.blocks() {
            sack.push(start - answer.seq, end - start);
        }
        sack
    }

    /// First and past-the-end bytes of the blocks that came out of order, the latest first.
    fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.recent.iter().flatten().filter_map(|seq| self.out_of_order.containing(*seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_algorithms::registry::{AlgorithmSpec, Role};
    use suimon_units::Duration;

    const MSS: u64 = 1_448;

    fn receiver(change: impl FnOnce(&mut StackProfile)) -> Receiver {
        let mut profile = StackProfile {
            quick_acks: 0,
            adapt_delayed_ack: false,
            grow_window: false,
            compress_sacks: false,
            ..StackProfile::linux_6()
        };
        change(&mut profile);
        let buffer = Bytes::new(96_000);
        let window = AlgorithmSpec::parse(Role::Receiver, "fixed").unwrap().build_receiver(buffer);
        Receiver::new(Arc::new(profile), window, buffer, MarkResponse::Once)
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn data(at: u64, segment: u64) -> Packet {
        Packet { seq: segment * MSS, bytes: MSS as u32, ..Packet::new(PacketKind::Data, ms(at)) }
    }

    fn acked(answer: &Packet) -> u64 {
        answer.seq / MSS
    }

    /// The SACK blocks of an answer.
    fn blocks(receiver: &mut Receiver, answer: &Packet) -> Vec<(u64, u64)> {
        let sack = if answer.has_sack { receiver.sack(answer) } else { Sack::new() };
        sack.ranges(answer.seq).map(|(start, end)| (start / MSS, end / MSS)).collect()
    }

    /// The SACK blocks with which `packet` is answered at once.
    fn answered(receiver: &mut Receiver, packet: &Packet) -> Vec<(u64, u64)> {
        let answer = receiver.on_packet(packet.ts_val, packet).unwrap();
        blocks(receiver, &answer)
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_the_first_after_the_timeout() {
        let mut receiver = receiver(|_| {});
        assert!(receiver.on_packet(ms(0), &data(0, 0)).is_none());
        assert_eq!(acked(&receiver.on_packet(ms(5), &data(5, 1)).unwrap()), 2);
        assert!(receiver.on_packet(ms(10), &data(10, 2)).is_none());
        assert_eq!(receiver.next_wakeup(), Some(ms(50)));
        assert!(receiver.on_timer(ms(49)).is_none());
        assert_eq!(acked(&receiver.on_timer(ms(50)).unwrap()), 3);
        assert_eq!(receiver.next_wakeup(), None);
    }

    #[test]
    fn where_no_second_segment_comes_in_time_an_ack_is_held_back_for_longer() {
        let mut receiver = receiver(|profile| profile.adapt_delayed_ack = true);
        // The path takes a second, which is more than any of these times.
        assert!(receiver.on_packet(ms(1_000), &data(1_000, 0)).is_none());
        assert_eq!(receiver.next_wakeup(), Some(ms(1_044)));
        assert_eq!(acked(&receiver.on_timer(ms(1_044)).unwrap()), 1);
        assert!(receiver.on_packet(ms(1_100), &data(1_100, 1)).is_none());
        assert_eq!(receiver.next_wakeup(), Some(ms(1_184)));
        assert_eq!(acked(&receiver.on_packet(ms(1_183), &data(1_183, 2)).unwrap()), 3);
        // A cut is acknowledged at once, twice after a mark, and the time is the least again.
        let marked = Packet { ecn: Ecn::CongestionExperienced, ..data(1_184, 3) };
        assert!(receiver.on_packet(ms(1_184), &marked).is_some());
        assert!(receiver.on_packet(ms(1_185), &data(1_185, 4)).is_some());
        assert!(receiver.on_packet(ms(1_188), &data(1_188, 5)).is_none());
        assert_eq!(receiver.next_wakeup(), Some(ms(1_232)));
    }

    /// 65535 bytes at first, then two segments more for each that comes, up to what the buffer at first has room for; in steps
    /// of two bytes, which the scale takes.
    #[test]
    fn the_advertised_window_grows_with_the_segments_that_come() {
        let mut receiver = receiver(|profile| profile.grow_window = true);
        let syn = Packet::new(PacketKind::Syn, ms(0));
        let mut windows = vec![receiver.on_packet(ms(0), &syn).unwrap().bytes];
        for segment in 0..6 {
            windows.push(receiver.on_packet(ms(50), &data(50, segment)).unwrap().bytes);
        }
        let grown: Vec<u32> = (0..6).map(|segments| (65_535 + segments * 2 * MSS as u32) & !1).collect();
        assert_eq!(windows[..6], grown);
        assert_eq!(windows[6..], [81_920]);
    }

    #[test]
    fn a_held_back_ack_echoes_the_timestamp_of_the_earlier_segment() {
        let mut receiver = receiver(|_| {});
        receiver.on_packet(ms(0), &data(1, 0));
        let ack = receiver.on_packet(ms(5), &data(2, 1)).unwrap();
        assert_eq!(ack.ts_ecr, ms(1));
    }

    #[test]
    fn gaps_are_answered_at_once_with_the_latest_block_first() {
        let mut receiver = receiver(|_| {});
        assert_eq!(answered(&mut receiver, &data(0, 2)), [(2, 3)]);
        assert_eq!(answered(&mut receiver, &data(0, 5)), [(5, 6), (2, 3)]);
        assert_eq!(answered(&mut receiver, &data(0, 3)), [(2, 4), (5, 6)]);
        assert_eq!(answered(&mut receiver, &data(0, 8)), [(8, 9), (2, 4), (5, 6)]);
        assert_eq!(answered(&mut receiver, &data(0, 11)), [(11, 12), (8, 9), (2, 4)]);
        let filled = receiver.on_packet(ms(0), &data(0, 0)).unwrap();
        assert_eq!(acked(&filled), 1);
        let filled = receiver.on_packet(ms(0), &data(0, 1)).unwrap();
        assert_eq!(acked(&filled), 4);
    }

    /// A receiver after a handshake over 40 ms, which compresses; segment 0 came.
    fn compressing() -> Receiver {
        let mut receiver = receiver(|profile| profile.compress_sacks = true);
        let first = Packet { ts_ecr: ms(10), ..data(50, 0) };
        assert!(receiver.on_packet(ms(50), &first).is_none());
        receiver
    }

    fn us(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn after_three_duplicates_acks_are_held_back_for_a_millisecond() {
        let mut receiver = compressing();
        for segment in 2..5 {
            assert_eq!(answered(&mut receiver, &data(60, segment)), [(2, segment + 1)]);
        }
        assert!(receiver.on_packet(us(60_100), &data(60, 5)).is_none());
        assert!(receiver.on_packet(us(60_900), &data(60, 6)).is_none());
        assert_eq!(receiver.next_wakeup(), Some(us(61_100)));
        let answer = receiver.on_timer(us(61_100)).unwrap();
        assert_eq!((acked(&answer), blocks(&mut receiver, &answer)), (1, vec![(2, 7)]));
        assert_eq!(receiver.next_wakeup(), None);
        // More data in order: the count begins anew.
        receiver.on_packet(ms(70), &data(70, 8));
        assert_eq!(acked(&receiver.on_packet(ms(71), &data(71, 1)).unwrap()), 7);
        assert_eq!(answered(&mut receiver, &data(72, 9)), [(8, 10)]);
    }

    #[test]
    fn over_a_short_path_they_are_held_back_for_a_third_of_its_round_trip_time() {
        let mut receiver = receiver(|profile| profile.compress_sacks = true);
        receiver.on_packet(ms(52), &Packet { ts_ecr: ms(50), ..data(52, 0) });
        for segment in 2..6 {
            receiver.on_packet(ms(60), &data(60, segment));
        }
        assert_eq!(receiver.next_wakeup(), Some(us(60_660)));
    }

    #[test]
    fn the_forty_fifth_lets_them_out() {
        let mut receiver = compressing();
        let mut answers = |segment| receiver.on_packet(ms(60), &data(60, segment)).is_some();
        let answered: Vec<u64> = (2..60).filter(|segment| answers(*segment)).collect();
        assert_eq!(answered, [2, 3, 4, 49]);
    }

    #[test]
    fn a_third_block_lets_out_what_was_held_for_the_others() {
        let mut receiver = compressing();
        for segment in [2, 3, 4] {
            receiver.on_packet(ms(60), &data(60, segment));
        }
        // The second block waits, the third shows the sender the two before it.
        assert!(receiver.on_packet(ms(60), &data(60, 7)).is_none());
        assert_eq!(answered(&mut receiver, &data(60, 9)), [(7, 8), (2, 5)]);
        // The third itself is told of with the next, and nothing waits.
        assert_eq!(receiver.next_wakeup(), None);
        assert!(receiver.on_packet(ms(61), &data(61, 10)).is_none());
        assert_eq!(receiver.next_wakeup(), Some(ms(62)));
        // A segment of the oldest of three lets the held one out too, and one of the other two does not.
        assert_eq!(answered(&mut receiver, &data(61, 5)), [(9, 11), (7, 8), (2, 5)]);
        assert!(receiver.on_packet(ms(61), &data(61, 8)).is_none());
        let answer = receiver.on_timer(ms(62)).unwrap();
        assert_eq!(blocks(&mut receiver, &answer), [(7, 11), (2, 6)]);
    }

    #[test]
    fn a_duplicate_makes_the_receiver_answer_each_segment_for_a_while() {
        let mut receiver = receiver(|profile| profile.quick_acks = 3);
        let answers: Vec<bool> = [0, 1, 2, 3, 4, 1, 5, 6, 7, 8]
            .into_iter()
            .map(|segment| receiver.on_packet(ms(9), &data(9, segment)).is_some())
            .collect();
        assert_eq!(answers, [true, true, true, false, true, true, true, true, false, true]);
    }

    #[test]
    fn the_first_segments_are_acknowledged_one_by_one_where_the_stack_does_so() {
        let mut receiver = receiver(|profile| profile.quick_acks = 3);
        for segment in 0..3 {
            assert_eq!(
                acked(&receiver.on_packet(ms(segment), &data(segment, segment)).unwrap()),
                segment + 1
            );
        }
        assert!(receiver.on_packet(ms(3), &data(3, 3)).is_none());
        assert!(receiver.on_packet(ms(4), &data(4, 4)).is_some());
    }

    #[test]
    fn the_segment_that_ends_a_write_is_acknowledged_at_once() {
        let mut receiver = receiver(|profile| profile.write = Bytes::new(3 * MSS - 1));
        let acked: Vec<_> = (0..8)
            .filter_map(|nth| receiver.on_packet(ms(nth), &data(nth, nth)))
            .map(|answer| acked(&answer))
            .collect();
        // Writes end in the third segment, and in the sixth.
        assert_eq!(acked, [2, 3, 5, 6, 8]);
    }

    #[test]
    fn what_ends_a_wait_acknowledges_what_was_held_back_too() {
        let mut receiver = receiver(|_| {});
        assert!(receiver.on_packet(ms(0), &data(0, 0)).is_none());
        assert_eq!(answered(&mut receiver, &data(1, 2)), [(2, 3)]);
        assert_eq!(receiver.last_ack_sent, MSS);
        assert_eq!(receiver.next_wakeup(), None);
        // The ACK of the segment that fills the gap comes at once (RFC 5681 §4.2).
        assert_eq!(acked(&receiver.on_packet(ms(2), &data(2, 1)).unwrap()), 3);
    }

    #[test]
    fn blocks_that_are_in_order_by_now_make_room_for_others() {
        let mut receiver = receiver(|_| {});
        for segment in [10, 8, 6, 2] {
            receiver.on_packet(ms(0), &data(0, segment));
        }
        receiver.on_packet(ms(1), &data(1, 0));
        receiver.on_packet(ms(1), &data(1, 1));
        assert_eq!(answered(&mut receiver, &data(2, 12)), [(12, 13), (6, 7), (8, 9)]);
    }

    #[test]
    fn the_echo_never_goes_back() {
        let mut receiver = receiver(|profile| profile.delayed_ack = false);
        assert_eq!(receiver.on_packet(ms(9), &data(9, 0)).unwrap().ts_ecr, ms(9));
        let late = receiver.on_packet(ms(10), &data(5, 1)).unwrap();
        assert_eq!((acked(&late), late.ts_ecr), (2, ms(9)));
        let syn = Packet::new(PacketKind::Syn, ms(1));
        assert_eq!(receiver.on_packet(ms(11), &syn).unwrap().ts_ecr, ms(9));
    }

    #[test]
    fn what_arrives_behind_a_gap_does_not_change_the_echo() {
        let mut receiver = receiver(|profile| profile.delayed_ack = false);
        receiver.on_packet(ms(1), &data(1, 0));
        assert_eq!(receiver.on_packet(ms(3), &data(3, 2)).unwrap().ts_ecr, ms(1));
        assert_eq!(
            receiver.on_packet(ms(7), &data(7, 1)).unwrap().ts_ecr,
            ms(7),
            "that of the retransmission"
        );
    }

    #[test]
    fn at_least_one_segment_is_always_allowed() {
        let buffer = Bytes::new(1 << 30);
        let window = AlgorithmSpec::parse(Role::Receiver, "drs:min_buffer=500B").unwrap();
        let profile = Arc::new(StackProfile::linux_6());
        let window = window.build_receiver(buffer);
        let mut receiver = Receiver::new(profile, window, buffer, MarkResponse::Once);
        let syn = Packet::new(PacketKind::Syn, ms(1));
        assert_eq!(receiver.on_packet(ms(1), &syn).unwrap().bytes, 1_448);
    }

    #[test]
    fn duplicates_are_answered_and_delivered_once() {
        let mut receiver = receiver(|profile| profile.delayed_ack = false);
        receiver.on_packet(ms(0), &data(0, 0));
        let again = receiver.on_packet(ms(1), &data(1, 0)).unwrap();
        assert_eq!((acked(&again), receiver.delivered()), (1, MSS));
    }

    #[test]
    fn the_window_counts_from_what_was_received_in_order() {
        let mut receiver = receiver(|profile| profile.delayed_ack = false);
        assert_eq!(receiver.on_packet(ms(0), &data(0, 0)).unwrap().bytes, 96_000);
        assert_eq!(receiver.on_packet(ms(0), &data(0, 2)).unwrap().bytes, 96_000);
    }

    /// The ACKs' numbers, each with whether it echoes a mark, for segments of which these are marked.
    fn echoes(marks: &[bool]) -> Vec<(u64, bool)> {
        let mut receiver = receiver(|_| {});
        receiver.echoes_each = true;
        let mut answers = Vec::new();
        for (segment, marked) in (0..).zip(marks) {
            let ecn = if *marked { Ecn::CongestionExperienced } else { Ecn::Capable };
            answers.extend(receiver.on_packet(ms(segment), &Packet { ecn, ..data(segment, segment) }));
            if receiver.next_wakeup() == Some(ms(segment)) {
                answers.extend(receiver.on_timer(ms(segment)));
            }
        }
        answers.extend(receiver.on_timer(ms(1_000)));
        answers.iter().map(|answer| (acked(answer), answer.ecn_flag)).collect()
    }

    #[test]
    fn where_each_mark_is_echoed_an_ack_speaks_for_segments_of_one_kind() {
        let (no, yes) = (false, true);
        assert_eq!(echoes(&[no, no, no, no]), [(2, no), (4, no)]);
        assert_eq!(echoes(&[no, no, yes, yes]), [(2, no), (4, yes)]);
        // A change with a segment held back: that one is acknowledged first.
        assert_eq!(echoes(&[no, yes, yes, no]), [(1, no), (3, yes), (4, no)]);
        assert_eq!(echoes(&[yes, no, yes]), [(1, yes), (2, no), (3, yes)]);
    }

    #[test]
    fn a_gap_after_a_change_gets_an_answer_of_its_own() {
        let mut receiver = receiver(|_| {});
        receiver.echoes_each = true;
        assert!(receiver.on_packet(ms(0), &data(0, 0)).is_none());
        let marked = Packet { ecn: Ecn::CongestionExperienced, ..data(1, 2) };
        let first = receiver.on_packet(ms(1), &marked).unwrap();
        assert_eq!((acked(&first), first.ecn_flag, blocks(&mut receiver, &first)), (1, false, vec![]));
        assert_eq!(receiver.next_wakeup(), Some(ms(1)));
        let second = receiver.on_timer(ms(1)).unwrap();
        assert_eq!(
            (acked(&second), second.ecn_flag, blocks(&mut receiver, &second)),
            (1, true, vec![(2, 3)])
        );
    }

    #[test]
    fn a_mark_is_echoed_until_the_window_was_cut() {
        let mut receiver = receiver(|_| {});
        let marked = Packet { ecn: Ecn::CongestionExperienced, ..data(0, 0) };
        assert!(receiver.on_packet(ms(0), &marked).unwrap().ecn_flag);
        assert!(receiver.on_packet(ms(1), &data(1, 1)).unwrap().ecn_flag);
        let cut = Packet { ecn_flag: true, ..data(2, 2) };
        assert!(!receiver.on_packet(ms(2), &cut).unwrap().ecn_flag);
    }
    #[test]
    fn a_mark_and_the_cut_for_it_are_acknowledged_at_once() {
        let mut receiver = receiver(|_| {});
        let mut is_answered = |segment: u64, ecn, has_cut| {
            let packet = Packet { ecn, ecn_flag: has_cut, ..data(segment, segment) };
            receiver.on_packet(ms(segment), &packet).is_some()
        };
        let (plain, marked) = (Ecn::Capable, Ecn::CongestionExperienced);
        assert_eq!([is_answered(0, plain, false), is_answered(1, plain, false)], [false, true]);
        // Two for the first mark; further ones of the same window are as any segment.
        assert_eq!([is_answered(2, marked, false), is_answered(3, marked, false)], [true, true]);
        assert_eq!([is_answered(4, marked, false), is_answered(5, plain, false)], [false, true]);
        assert_eq!([is_answered(6, plain, true), is_answered(7, plain, false)], [true, false]);
    }
}
