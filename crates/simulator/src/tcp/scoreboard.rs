//! The sender's scoreboard: the fate of each segment that is not acknowledged yet.

mod duplicates;
mod rack;

use std::collections::VecDeque;

use suimon_model::LossDetection;
use suimon_units::{Bytes, Duration, Instant};

use self::duplicates::Duplicates;
use self::rack::Rack;
use super::ranges::RangeSet;
use crate::ring::Ring;

/// RFC 6675 §2 `DupThresh`, until reordering shows that more are needed.
const DUP_THRESH: u64 = 3;
/// As much reordering as is believed, in segments (Linux's `tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

/// A segment sent and not cumulatively acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) seq: u64,
    pub(crate) len: u32,
}

/// The same as it is kept, since there is one for every packet in flight.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// Modulo 2^32, as in the header.
    seq: u32,
    len: u32,
    /// When it was sent last, in nanoseconds, above its flags: that lasts for 18 years.
    sent_and_flags: u64,
}

const _: () = assert!(size_of::<Record>() == 16, "every packet in flight takes this much");

const SACKED: u64 = 1;
const LOST: u64 = 2;
/// Retransmitted, and the retransmission is in flight.
const RETRANSMITTED: u64 = 4;
const EVER_RETRANSMITTED: u64 = 8;
/// Time showed it to be lost, and it was not sent again since: time looks at it no more, even where the loss is forgiven
/// (Linux's `tcp_rack_detect_loss` takes it out of `tsorted_sent_queue`).
const UNTIMED: u64 = 16;
const FLAG_BITS: u32 = 5;
const FLAGS: u64 = (1 << FLAG_BITS) - 1;

impl Record {
    fn new(now: Instant, seq: u64, len: u32) -> Self {
        Self { seq: seq as u32, len, sent_and_flags: now.as_nanos() << FLAG_BITS }
    }

    /// Where it begins: below `snd_nxt`, by no more than the largest window, which is less than 2^32.
    #[inline(always)]
    fn seq(&self, snd_nxt: u64) -> u64 {
        snd_nxt - u64::from((snd_nxt as u32).wrapping_sub(self.seq))
    }

    #[inline(always)]
    fn end(&self, snd_nxt: u64) -> u64 {
        self.seq(snd_nxt) + u64::from(self.len)
    }

    fn sent_at(&self) -> Instant {
        Instant::from_nanos(self.sent_and_flags >> FLAG_BITS)
    }

    fn is(&self, flag: u64) -> bool {
        self.sent_and_flags & flag != 0
    }

    fn set(&mut self, flags: u64) {
        self.sent_and_flags |= flags;
    }

    fn clear(&mut self, flags: u64) {
        self.sent_and_flags &= !flags;
    }
}

/// Segments in flight and their states.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    segments: Ring<Record>,
    sacked_ranges: RangeSet,
    /// Past the highest byte that was ever SACKed.
    highest_sacked: u64,
    sacked: u64,
    lost: u64,
    retransmitted: u64,
    /// No segment below this is lost and still to be retransmitted.
    retransmit_from: u64,
    /// Every segment below this that is not SACKed has been marked lost, since detection last began anew.
    marked_up_to: u64,
    dup_thresh: u64,
    detection: LossDetection,
    /// `None` where losses are not detected by time.
    rack: Option<Rack>,
    /// `None` where the peer tells what it holds (SACK).
    duplicates: Option<Duplicates>,
    /// How often a segment was found to be lost, and how often such a one was a retransmission.
    losses: u64,
    lost_copies: u64,
    /// Retransmissions in order: position, and `snd_nxt` when sent. `None` where the stack does not
    /// notice that one was lost.
    retransmissions: Option<VecDeque<(u64, u64)>>,
    snd_una: u64,
    snd_nxt: u64,
}

/// The sender's state where losses are detected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) now: Instant,
    pub(crate) mss: Bytes,
    /// Losses of before are being repaired.
    pub(crate) in_recovery: bool,
    pub(crate) srtt: Duration,
}

/// The changes by one acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Update {
    /// Bytes by which `snd_una` moved.
    pub(crate) newly_acked: u64,
    /// Bytes confirmed for the first time.
    pub(crate) delivered: u64,
    /// When the oldest segment that `snd_una` passed was sent, unless one was retransmitted.
    pub(crate) oldest_sent_at: Option<Instant>,
    /// When the newest segment that `snd_una` passed was sent, likewise: what waited behind a hole at
    /// the receiver says how long the hole was there.
    pub(crate) newest_sent_at: Option<Instant>,
    /// When the oldest and the newest of the segments were sent that were SACKed first now and sent once only.
    pub(crate) sacked_sent_at: Option<(Instant, Instant)>,
    /// The block of a SACK told of something new.
    pub(crate) sacked: bool,
    /// Where the first of the segments ends that were confirmed first now and sent once only.
    pub(crate) first_original: Option<u64>,
    /// A segment was found to be lost, or a retransmission was. Loss detection follows the acknowledgement, and its caller
    /// sets these.
    pub(crate) lost: bool,
    pub(crate) lost_copy: bool,
}

impl Scoreboard {
    pub(crate) fn new(detection: LossDetection, detects_lost_retransmissions: bool) -> Self {
        Self {
            segments: Ring::default(),
            sacked_ranges: RangeSet::default(),
            highest_sacked: 0,
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            retransmit_from: 0,
            marked_up_to: 0,
            dup_thresh: DUP_THRESH,
            detection,
            rack: (detection == LossDetection::Rack).then(Rack::default),
            duplicates: (detection == LossDetection::DuplicateAcks).then(Duplicates::default),
            losses: 0,
            lost_copies: 0,
            retransmissions: detects_lost_retransmissions.then(VecDeque::new),
            snd_una: 0,
            snd_nxt: 0,
        }
    }

    pub(crate) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    pub(crate) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes in flight: sent, and neither confirmed nor lost, retransmissions included (RFC 6675 §4
    /// `SetPipe`).
    pub(crate) fn flight_size(&self) -> Bytes {
        Bytes::new(self.snd_nxt - self.snd_una - self.sacked - self.lost + self.retransmitted)
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    pub(crate) fn has_copies_in_flight(&self) -> bool {
        self.retransmitted > 0
    }

    /// A retransmission may still be answered (`tcp_any_retrans_done` of Linux).
    pub(crate) fn has_retransmissions_out(&self) -> bool {
        self.retransmitted > 0 || self.segments.front().is_some_and(|first| first.is(EVER_RETRANSMITTED))
    }

    /// How often a segment was found to be lost so far.
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// How often a retransmission was found to be lost so far.
    pub(crate) fn lost_copies(&self) -> u64 {
        self.lost_copies
    }

    /// A round-trip time was measured.
    pub(crate) fn on_rtt(&mut self, rtt: Duration) {
        if let Some(rack) = &mut self.rack {
            rack.min_rtt = Some(rack.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// The receiver holds data out of order.
    pub(crate) fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// New data was sent.
    pub(crate) fn on_sent(&mut self, now: Instant, len: u32) {
        self.segments.push_back(Record::new(now, self.snd_nxt, len));
        self.snd_nxt += u64::from(len);
    }

    /// The segment to retransmit next, if one is lost and waits for it.
    pub(crate) fn next_lost(&mut self) -> Option<Segment> {
        if self.lost == self.retransmitted {
            return None;
        }
        let from = self.index_of(self.retransmit_from);
        let found = (from..self.segments.len())
            .map_while(|index| self.segments.get(index))
            .find(|segment| segment.is(LOST) && !segment.is(RETRANSMITTED))
            .map(|segment| self.shown(segment));
        if let Some(segment) = found {
            self.retransmit_from = segment.seq;
        }
        found
    }

    /// When the first unacknowledged segment was sent last.
    pub(crate) fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(Record::sent_at)
    }

    /// The segment sent last as new data, if it is not acknowledged yet.
    pub(crate) fn last(&self) -> Option<Segment> {
        self.segments.back().map(|segment| self.shown(segment))
    }

    /// The last segment was sent again as a probe, and counts as neither lost nor retransmitted.
    pub(crate) fn on_probed(&mut self, now: Instant) {
        let snd_nxt = self.snd_nxt;
        if let Some(segment) = self.segments.len().checked_sub(1).and_then(|last| self.segments.get_mut(last))
        {
            let flags = segment.sent_and_flags & FLAGS & !UNTIMED;
            *segment = Record::new(now, segment.seq(snd_nxt), segment.len);
            segment.set(flags | EVER_RETRANSMITTED);
        }
    }

    fn shown(&self, segment: &Record) -> Segment {
        Segment { seq: segment.seq(self.snd_nxt), len: segment.len }
    }

    /// The segment at `seq` was retransmitted.
    pub(crate) fn on_retransmitted(&mut self, now: Instant, seq: u64) {
        let index = self.index_of(seq);
        let Some(segment) = self.segments.get_mut(index) else { return };
        if !segment.is(LOST) {
            self.lost += u64::from(segment.len);
        }
        if !segment.is(RETRANSMITTED) {
            self.retransmitted += u64::from(segment.len);
        }
        let flags = segment.sent_and_flags & FLAGS & !UNTIMED;
        *segment = Record::new(now, seq, segment.len);
        segment.set(flags | LOST | RETRANSMITTED | EVER_RETRANSMITTED);
        self.retransmit_from = seq + u64::from(segment.len);
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.push_back((seq, self.snd_nxt));
        }
    }

    /// Takes in a cumulative acknowledgement up to `ack` that echoes the timestamp `echo`, and SACK blocks.
    #[inline(always)]
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        (ack, echo): (u64, Option<Instant>),
        blocks: impl Iterator<Item = (u64, u64)>,
    ) -> Update {
        let mut update = Update::default();
        let has_sack = self.duplicates.is_none();
        let (highest_sacked, duplicate) =
            if has_sack { (self.highest_sacked, None) } else { (0, self.duplicate(ack)) };
        self.acknowledge(now, (ack, echo), highest_sacked, &mut update);
        for (start, end) in blocks.filter(|_| has_sack).chain(duplicate) {
            if end > start.max(self.snd_una) && end <= self.snd_nxt {
                let block = (start.max(self.snd_una), end);
                self.selectively_acknowledge(now, block, highest_sacked, &mut update);
            }
        }
        update
    }

    #[inline(always)]
    fn acknowledge(
        &mut self,
        now: Instant,
        (ack, echo): (u64, Option<Instant>),
        highest_sacked: u64,
        update: &mut Update,
    ) {
        if ack <= self.snd_una {
            return;
        }
        let mut all_original = true;
        let snd_nxt = self.snd_nxt;
        while let Some(segment) = self.segments.pop_front_if(|segment| segment.end(snd_nxt) <= ack) {
            let len = u64::from(segment.len);
            if segment.is(SACKED) {
                self.sacked -= len;
            } else {
                update.delivered += len;
                if let Some(rack) = &mut self.rack {
                    rack.on_delivered(now, echo, &segment, segment.end(snd_nxt));
                }
                if !segment.is(EVER_RETRANSMITTED) && segment.seq(snd_nxt) < highest_sacked {
                    self.saw_reordering(segment.seq(snd_nxt), highest_sacked, len);
                }
            }
            if segment.is(LOST) {
                self.lost -= len;
            }
            if segment.is(RETRANSMITTED) {
                self.retransmitted -= len;
            }
            if segment.is(EVER_RETRANSMITTED) {
                all_original = false;
            } else if !segment.is(SACKED) {
                update.oldest_sent_at.get_or_insert(segment.sent_at());
                update.newest_sent_at = Some(segment.sent_at());
                update.first_original.get_or_insert(segment.end(snd_nxt));
            }
        }
        if !all_original {
            (update.oldest_sent_at, update.newest_sent_at) = (None, None);
        }
        update.newly_acked = ack - self.snd_una;
        self.snd_una = ack;
        self.sacked_ranges.remove_below(ack);
    }

    #[inline(always)]
    fn selectively_acknowledge(
        &mut self,
        now: Instant,
        (start, end): (u64, u64),
        highest_sacked: u64,
        update: &mut Update,
    ) {
        if self.sacked_ranges.containing(start).is_some_and(|known| end <= known.1) {
            return;
        }
        let snd_nxt = self.snd_nxt;
        let mut index = self.index_of(start);
        while let Some(segment) = self.segments.get_mut(index)
            && segment.end(snd_nxt) <= end
        {
            let seq = segment.seq(snd_nxt);
            if segment.is(SACKED) {
                // Blocks grow by a segment at a time, so known ranges are passed over at once.
                let known = self.sacked_ranges.containing(seq);
                index = known.map_or(index + 1, |(_, known_end)| self.index_of(known_end));
                continue;
            }
            let len = u64::from(segment.len);
            self.sacked += len;
            update.delivered += len;
            if let Some(rack) = &mut self.rack {
                rack.on_delivered(now, None, segment, segment.end(snd_nxt));
            }
            update.sacked = true;
            let original = !segment.is(EVER_RETRANSMITTED);
            if original {
                let (sent_at, end) = (segment.sent_at(), segment.end(snd_nxt));
                update.first_original = Some(update.first_original.map_or(end, |first| first.min(end)));
                let (oldest, newest) = update.sacked_sent_at.unwrap_or((sent_at, sent_at));
                update.sacked_sent_at = Some((oldest.min(sent_at), newest.max(sent_at)));
            }
            if segment.is(LOST) {
                self.lost -= len;
            }
            if segment.is(RETRANSMITTED) {
                self.retransmitted -= len;
            }
            segment.clear(FLAGS & !EVER_RETRANSMITTED);
            segment.set(SACKED);
            if original && seq < highest_sacked {
                self.saw_reordering(seq, highest_sacked, len);
            }
            index += 1;
        }
        self.sacked_ranges.insert(start, end);
        self.highest_sacked = self.highest_sacked.max(end);
    }

    /// A segment arrived that was sent before others that had arrived already: expect as much again.
    #[cold]
    fn saw_reordering(&mut self, seq: u64, highest_sacked: u64, mss: u64) {
        let distance = (highest_sacked - seq).div_ceil(mss.max(1));
        self.dup_thresh = self.dup_thresh.max(distance.min(MAX_REORDERING));
        if let Some(rack) = &mut self.rack {
            rack.reordering_seen = true;
        }
    }

    /// Losses are detected by time.
    pub(crate) fn has_clock(&self) -> bool {
        self.rack.is_some()
    }

    /// Marks the segments that the latest acknowledgement shows to be lost, where time has no part in it.
    #[inline(always)]
    pub(crate) fn detect_losses(&mut self, mss: Bytes) {
        if let Some(duplicates) = self.duplicates {
            self.detect_by_duplicates(duplicates);
        } else if self.sacked > 0 {
            self.detect_by_sequence(mss);
        }
    }

    fn detect_by_sequence(&mut self, mss: Bytes) {
        let Some(highest) = self.sacked_ranges.end() else { return };
        let edge = self.loss_edge(highest, mss);
        if edge > self.marked_up_to {
            let snd_nxt = self.snd_nxt;
            let from = self.index_of(self.marked_up_to);
            for index in from..self.segments.len() {
                let Some(segment) = self.segments.get_mut(index) else { break };
                let seq = segment.seq(snd_nxt);
                if seq >= edge {
                    break;
                }
                if !segment.is(SACKED | LOST) {
                    segment.set(LOST);
                    self.lost += u64::from(segment.len);
                    self.losses += 1;
                    self.retransmit_from = self.retransmit_from.min(seq);
                }
            }
            self.marked_up_to = edge;
        }
        self.detect_lost_retransmissions(highest, mss);
    }

    /// Segments below this and not SACKed are lost.
    fn loss_edge(&self, highest: u64, mss: Bytes) -> u64 {
        match self.detection {
            LossDetection::Fack => highest.saturating_sub(self.dup_thresh * mss.get()),
            LossDetection::Rfc6675 | LossDetection::Rack | LossDetection::DuplicateAcks => {
                // RFC 6675 §4 `IsLost`: DupThresh separate ranges above it, or more bytes than
                // DupThresh - 1 full segments have.
                let enough = (self.dup_thresh - 1) * mss.get();
                let mut above = 0;
                for (nth, (start, end)) in (1..).zip(self.sacked_ranges.iter_rev()) {
                    above += end - start;
                    if above > enough || nth >= self.dup_thresh {
                        return start;
                    }
                }
                0
            }
        }
    }

    /// A retransmission is lost where a segment sent after it was confirmed, and `DupThresh` segments beyond the data
    /// sent before it.
    fn detect_lost_retransmissions(&mut self, highest: u64, mss: Bytes) {
        let Some(mut retransmissions) = self.retransmissions.take() else { return };
        while let Some(&(seq, snd_nxt)) = retransmissions.front() {
            if seq >= self.snd_una {
                if highest <= snd_nxt + (self.dup_thresh - 1) * mss.get() {
                    break;
                }
                let index = self.index_of(seq);
                if let Some(segment) = self.segments.get_mut(index)
                    && segment.is(RETRANSMITTED)
                {
                    segment.clear(RETRANSMITTED);
                    self.retransmitted -= u64::from(segment.len);
                    self.losses += 1;
                    self.lost_copies += 1;
                    self.retransmit_from = self.retransmit_from.min(seq);
                }
            }
            retransmissions.pop_front();
        }
        self.retransmissions = Some(retransmissions);
    }

    /// After a timeout everything that is not SACKed counts as lost (RFC 6675 §5.1), but for what the peer has had no time
    /// to answer, where losses are detected by time (`tcp_timeout_mark_lost` of Linux). The first segment always does.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.forget_duplicates();
        self.ignore_duplicates();
        self.marked_up_to = self.snd_nxt;
        let (snd_nxt, snd_una, rack) = (self.snd_nxt, self.snd_una, self.rack);
        for segment in self.segments.iter_mut().filter(|segment| !segment.is(SACKED)) {
            let (seq, len) = (segment.seq(snd_nxt), u64::from(segment.len));
            if seq > snd_una && rack.is_some_and(|rack| rack.may_be_answered(segment, now)) {
                self.marked_up_to = self.marked_up_to.min(seq);
                continue;
            }
            if segment.is(RETRANSMITTED) {
                self.retransmitted -= len;
            }
            if !segment.is(LOST) {
                self.lost += len;
            }
            segment.clear(RETRANSMITTED);
            segment.set(LOST);
        }
        self.retransmit_from = self.snd_una;
        if let Some(mut retransmissions) = self.retransmissions.take() {
            retransmissions.retain(|(seq, _)| {
                self.segments.get(self.index_of(*seq)).is_some_and(|segment| segment.is(RETRANSMITTED))
            });
            self.retransmissions = Some(retransmissions);
        }
    }

    /// The segments marked lost were only late. Takes back the marks and forgets the retransmissions.
    pub(crate) fn forgive(&mut self) {
        for segment in self.segments.iter_mut() {
            segment.clear(LOST | RETRANSMITTED);
        }
        (self.lost, self.retransmitted) = (0, 0);
        self.marked_up_to = self.snd_una;
        self.retransmit_from = self.snd_nxt;
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.clear();
        }
        if let Some(rack) = &mut self.rack {
            rack.on_spurious();
        }
    }

    /// The original of the segment at `late` arrived in spite of a retransmission: expects as much reordering again.
    pub(crate) fn saw_late(&mut self, late: u64, mss: Bytes) {
        if late < self.highest_sacked {
            self.saw_reordering(late, self.highest_sacked, mss.get());
        }
    }

    /// All that was sent before a loss was noticed is acknowledged, and the loss was none that was forgiven.
    pub(crate) fn on_recovered(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.on_recovered();
        }
    }

    /// Index of the segment that holds `position`, or of the first behind it.
    fn index_of(&self, position: u64) -> usize {
        if position <= self.snd_una {
            return 0;
        }
        let snd_nxt = self.snd_nxt;
        // Segments mostly have one size, so the first guess is nearly always right.
        if let (Some(first), Some(last)) = (self.segments.front(), self.segments.back())
            && position < last.seq(snd_nxt)
        {
            let guess = ((position - first.seq(snd_nxt)) / u64::from(first.len)) as usize;
            if let Some(segment) = self.segments.get(guess)
                && segment.seq(snd_nxt) <= position
                && position < segment.end(snd_nxt)
            {
                return guess;
            }
        }
        self.segments.partition_point(|segment| segment.end(snd_nxt) <= position)
    }

    #[cfg(test)]
    pub(crate) fn recount(&self) -> (u64, u64, u64) {
        let sum = |flag| self.segments.iter().filter(|s| s.is(flag)).map(|s| u64::from(s.len)).sum();
        (sum(SACKED), sum(LOST), sum(RETRANSMITTED))
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        (self.sacked, self.lost, self.retransmitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: Bytes = Bytes::new(1_000);

    fn board(detection: LossDetection, segments: u64) -> Scoreboard {
        let mut board = Scoreboard::new(detection, true);
        for _ in 0..segments {
            board.on_sent(Instant::ZERO, 1_000);
        }
        board
    }

    fn sack(board: &mut Scoreboard, blocks: &[(u64, u64)]) -> Update {
        let blocks = blocks.iter().map(|b| (b.0 * 1_000, b.1 * 1_000));
        let update = board.on_ack(Instant::ZERO, (board.snd_una(), None), blocks);
        board.detect_losses(MSS);
        update
    }

    fn lost(board: &mut Scoreboard) -> Vec<u64> {
        let mut lost = Vec::new();
        while let Some(segment) = board.next_lost() {
            lost.push(segment.seq / 1_000);
            board.on_retransmitted(Instant::ZERO, segment.seq);
        }
        lost
    }

    #[test]
    fn a_segment_is_lost_at_the_third_sack_above_it_and_not_at_the_second() {
        let mut board = board(LossDetection::Rfc6675, 10);
        sack(&mut board, &[(1, 3)]);
        assert!(!board.has_lost());
        sack(&mut board, &[(1, 4)]);
        assert_eq!(board.flight_size(), Bytes::new(6_000));
        assert_eq!(lost(&mut board), [0]);
        assert_eq!(board.flight_size(), Bytes::new(7_000));
    }

    #[test]
    fn fack_counts_the_distance_where_rfc_6675_counts_segments() {
        let mut fack = board(LossDetection::Fack, 10);
        sack(&mut fack, &[(5, 6)]);
        assert_eq!(lost(&mut fack), [0, 1, 2]);
        let mut rfc = board(LossDetection::Rfc6675, 10);
        sack(&mut rfc, &[(5, 6)]);
        assert!(!rfc.has_lost());
        sack(&mut rfc, &[(5, 6), (7, 9)]);
        assert_eq!(lost(&mut rfc), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn bytes_are_delivered_once_however_often_they_are_confirmed() {
        let mut board = board(LossDetection::Rfc6675, 10);
        assert_eq!(sack(&mut board, &[(2, 4)]).delivered, 2_000);
        assert_eq!(sack(&mut board, &[(2, 5)]).delivered, 1_000);
        assert_eq!(sack(&mut board, &[(2, 5)]).delivered, 0);
        let update = board.on_ack(Instant::ZERO, (6_000, None), std::iter::empty());
        assert_eq!((update.newly_acked, update.delivered), (6_000, 3_000));
    }

    #[test]
    fn a_lost_retransmission_is_noticed_three_segments_later() {
        let mut board = board(LossDetection::Rfc6675, 6);
        sack(&mut board, &[(1, 6)]);
        assert_eq!(lost(&mut board), [0]);
        for _ in 0..3 {
            board.on_sent(Instant::ZERO, 1_000);
        }
        sack(&mut board, &[(1, 8)]);
        assert_eq!(lost(&mut board), [0_u64; 0]);
        sack(&mut board, &[(1, 9)]);
        assert_eq!(lost(&mut board), [0]);
    }

    #[test]
    fn reordering_raises_the_threshold() {
        let mut board = board(LossDetection::Rfc6675, 20);
        sack(&mut board, &[(1, 6)]);
        board.on_ack(Instant::ZERO, (6_000, None), std::iter::empty());
        sack(&mut board, &[(7, 12)]);
        assert!(!board.has_lost(), "five above were enough to be wrong the last time");
        sack(&mut board, &[(7, 13)]);
        assert!(board.has_lost());
    }

    #[test]
    fn after_a_timeout_all_but_the_sacked_is_lost() {
        let mut board = board(LossDetection::Rfc6675, 5);
        sack(&mut board, &[(3, 4)]);
        board.on_timeout(Instant::ZERO);
        assert_eq!(board.flight_size(), Bytes::ZERO);
        assert_eq!(lost(&mut board), [0, 1, 2, 4]);
    }

    #[test]
    fn the_round_trip_sample_is_that_of_original_segments() {
        let mut board = Scoreboard::new(LossDetection::Rfc6675, true);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        board.on_sent(at(1), 1_000);
        board.on_sent(at(2), 1_000);
        let update = board.on_ack(Instant::ZERO, (2_000, None), std::iter::empty());
        assert_eq!((update.oldest_sent_at, update.newest_sent_at), (Some(at(1)), Some(at(2))));
        board.on_sent(at(3), 1_000);
        board.on_retransmitted(at(4), 2_000);
        assert_eq!(board.on_ack(Instant::ZERO, (3_000, None), std::iter::empty()).newest_sent_at, None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Send,
        Ack(u64),
        Sack(u64, u64),
        Retransmit,
        Timeout,
        Undo,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Send),
            2 => (0_u64..30).prop_map(Step::Ack),
            4 => (0_u64..30, 1_u64..6).prop_map(|(start, len)| Step::Sack(start, start + len)),
            2 => Just(Step::Retransmit),
            1 => Just(Step::Timeout),
            1 => Just(Step::Undo),
        ]
    }

    proptest! {
        #[test]
        fn the_counts_equal_a_recount_and_every_byte_is_delivered_once(steps in prop::collection::vec(step(), 0..200)) {
            let mut board = board(LossDetection::Rfc6675, 4);
            let mut delivered = 0;
            for step in steps {
                match step {
                    Step::Send => board.on_sent(Instant::ZERO, 1_000),
                    Step::Ack(to) => {
                        let to = (to * 1_000).min(board.snd_nxt());
                        delivered += board.on_ack(Instant::ZERO, (to, None), std::iter::empty()).delivered;
                    }
                    Step::Sack(start, end) => delivered += sack(&mut board, &[(start, end)]).delivered,
                    Step::Retransmit => {
                        if let Some(segment) = board.next_lost() {
                            board.on_retransmitted(Instant::ZERO, segment.seq);
                        }
                    }
                    Step::Timeout => board.on_timeout(Instant::ZERO),
                    Step::Undo => board.forgive(),
                }
                prop_assert_eq!(board.counts(), board.recount());
                let (sacked, _, _) = board.counts();
                prop_assert_eq!(delivered, board.snd_una() + sacked);
                prop_assert!(board.flight_size() <= Bytes::new(board.snd_nxt() - board.snd_una()));
            }
        }
    }
}
