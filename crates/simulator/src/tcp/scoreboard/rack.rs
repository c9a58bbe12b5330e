//! RACK: a segment is lost where one sent later was confirmed, and time has passed for it to come late (RFC 8985 §6),
//! as Linux 6 has it.

use suimon_units::{Duration, Instant};

use super::{EVER_RETRANSMITTED, LOST, Look, RETRANSMITTED, Record, SACKED, Scoreboard, UNTIMED};

/// The reordering window stays larger than at first for so many recoveries (RFC 8985 §6.2.4; `RACK_RECOVERY_THRESH`).
const RECOVERIES: u32 = 16;
/// Most quarters of the smallest round-trip time in a reordering window, as in Linux.
const MAX_STEPS: u32 = 255;

/// RACK's state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rack {
    /// When the segment was sent that was sent last among those confirmed (`RACK.xmit_ts`).
    sent_at: Instant,
    /// Where it ends (`RACK.end_seq`), which tells segments of one time apart.
    end: u64,
    /// The round-trip time of the segment confirmed last (`RACK.rtt`).
    rtt: Duration,
    /// A segment was confirmed since losses were last looked for.
    advanced: bool,
    pub(super) min_rtt: Option<Duration>,
    /// A segment once arrived after others that were sent later.
    pub(super) reordering_seen: bool,
    /// Quarters of the smallest round-trip time beyond the first in the reordering window (`RACK.reo_wnd_mult`).
    more_steps: u32,
    /// The window has these for so many recoveries more.
    persist: u32,
}

impl Rack {
    /// `segment`, which ends at `end`, was confirmed by an ACK that echoes the timestamp `echo` (RFC 8985 §6.2, step 2).
    pub(super) fn on_delivered(&mut self, now: Instant, echo: Option<Instant>, segment: &Record, end: u64) {
        let rtt = now.saturating_since(segment.sent_at());
        // An answer that comes too early, or that echoes an earlier timestamp, is that of the first copy.
        if segment.is(EVER_RETRANSMITTED)
            && (self.min_rtt.is_some_and(|min| rtt < min)
                || echo.is_some_and(|echo| echo < segment.sent_at()))
        {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        (self.sent_at, self.end) = (self.sent_at, self.end).max((segment.sent_at(), end));
    }

    /// Segments were retransmitted that were only late: they get longer to come (RFC 8985 §6.2, step 4; there, and in
    /// Linux, a DSACK tells).
    pub(super) fn on_spurious(&mut self) {
        self.more_steps = (self.more_steps + 1).min(MAX_STEPS - 1);
        self.persist = RECOVERIES;
    }

    /// A recovery ended that was no mistake.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.more_steps = 0;
        }
    }

    /// The answer to this segment may still be on its way, by the round-trip time of the segment confirmed last.
    pub(super) fn may_be_answered(&self, segment: &Record, now: Instant) -> bool {
        segment.sent_at() + self.rtt > now
    }

    /// True where a segment was confirmed that was sent after this one, which ends at `end`.
    fn is_past(&self, segment: &Record, end: u64) -> bool {
        (self.sent_at, self.end) > (segment.sent_at(), end)
    }
}

impl Scoreboard {
    /// Looks for losses where a segment was confirmed since the last look.
    pub(crate) fn detect_once_advanced(&mut self, look: &Look) -> Option<Duration> {
        let advanced = self.rack.as_mut().is_some_and(|rack| std::mem::take(&mut rack.advanced));
        advanced.then(|| self.detect_by_time(look)).flatten()
    }

    /// Marks the segments that time shows to be lost (RFC 8985 §6.2, step 5). Gives how long to wait before all those
    /// sent before the latest confirmed one count as lost too.
    pub(crate) fn detect_by_time(&mut self, look: &Look) -> Option<Duration> {
        let rack = self.rack?;
        let patience = rack.rtt + self.reordering_window(&rack, look);
        let first = self.detect_lost_segments(&rack, look.now, patience);
        let again = self.detect_lost_copies(&rack, look.now, patience);
        Some(first.max(again)).filter(|wait| *wait > Duration::ZERO)
    }

    /// How much later a segment may come than those sent after it: no time while there is no sign of reordering and
    /// losses are certain anyway, else quarters of the smallest round-trip time (RFC 8985 §6.2, step 4).
    fn reordering_window(&self, rack: &Rack, look: &Look) -> Duration {
        let is_certain = look.in_recovery || self.sacked.div_ceil(look.mss.get()) >= self.dup_thresh;
        if !rack.reordering_seen && is_certain {
            return Duration::ZERO;
        }
        (rack.min_rtt.unwrap_or_default() / 4 * u64::from(rack.more_steps + 1)).min(look.srtt)
    }

    /// Marks segments that were not retransmitted; gives how long to wait for the others.
    fn detect_lost_segments(&mut self, rack: &Rack, now: Instant, patience: Duration) -> Duration {
        let (snd_nxt, from) = (self.snd_nxt, self.index_of(self.marked_up_to));
        let (mut wait, mut settled) = (Duration::ZERO, true);
        for index in from..self.segments.len() {
            let Some(segment) = self.segments.get_mut(index) else { break };
            let (seq, end) = (segment.seq(snd_nxt), segment.end(snd_nxt));
            if !segment.is(SACKED | LOST | UNTIMED) {
                let left = (segment.sent_at() + patience).saturating_since(now);
                if !rack.is_past(segment, end) {
                    settled = false;
                    // Segments follow in the order of their sending, but for those sent again.
                    if !segment.is(EVER_RETRANSMITTED) {
                        break;
                    }
                } else if left > Duration::ZERO {
                    settled = false;
                    wait = wait.max(left);
                } else {
                    segment.set(LOST | UNTIMED);
                    self.lost += u64::from(segment.len);
                    self.losses += 1;
                    self.retransmit_from = self.retransmit_from.min(seq);
                }
            }
            if settled {
                self.marked_up_to = end;
            }
        }
        wait
    }

    /// Finds retransmissions that were lost; gives how long to wait for the others.
    fn detect_lost_copies(&mut self, rack: &Rack, now: Instant, patience: Duration) -> Duration {
        let mut wait = Duration::ZERO;
        let Some(mut retransmissions) = self.retransmissions.take() else { return wait };
        let (snd_nxt, mut place) = (self.snd_nxt, 0);
        while let Some(&(seq, _)) = retransmissions.get(place) {
            let index = self.index_of(seq);
            if let Some(segment) = self.segments.get_mut(index)
                && seq >= self.snd_una
                && segment.is(RETRANSMITTED)
            {
                if !rack.is_past(segment, segment.end(snd_nxt)) {
                    break;
                }
                let left = (segment.sent_at() + patience).saturating_since(now);
                if left > Duration::ZERO {
                    wait = wait.max(left);
                    place += 1;
                    continue;
                }
                segment.clear(RETRANSMITTED);
                segment.set(UNTIMED);
                self.retransmitted -= u64::from(segment.len);
                self.losses += 1;
                self.lost_copies += 1;
                self.retransmit_from = self.retransmit_from.min(seq);
            }
            retransmissions.remove(place);
        }
        self.retransmissions = Some(retransmissions);
        wait
    }
}
