//! Traffic the other way: an acknowledgement waits in its queue, and this wait is no queue of the flow's own (13).

use suimon_units::{Bytes, Duration, Rate};

use super::FsAtOpen;
use super::path::{MOST_RTT, Path, share};

/// A tick of the peer's clock in microseconds, as most stacks have it (RFC 7323 §5.4).
const TICK: u64 = 1_000;
/// Two clocks drift apart by no more than 1 over this.
const DRIFT: u64 = 10_000;
/// Added to the difference of the two clocks, so that it stays above zero.
const OFFSET: u64 = 1 << 40;
/// A wait longer than `rtt_min` over this tells of traffic the other way, for so long.
const NOTABLE: u64 = 8;
const LATELY: u64 = 1_000_000;
/// Beside such traffic data leaves at so many quarters of the rate that the window stands for.
const PACING_QUARTERS: u64 = 5;
/// The window then grows to no more than was used, 1 over this of it, and four segments.
const MORE: u64 = 4;

/// The way back of acknowledgements, by the peer's clock. Times are in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct WayBack {
    /// The first time that the peer told.
    first: u32,
    /// The shortest way back, the difference of the two clocks in it; zero before the first. It rises by [`DRIFT`].
    shortest: u64,
    rose: u64,
    /// How much longer than that the way of the last acknowledgement was.
    wait: u64,
    /// Traffic the other way is known of until then.
    busy_until: u64,
    /// The clock does not tick as [`TICK`] has it.
    is_strange: bool,
}

impl WayBack {
    /// Takes in an acknowledgement that came at `now`, with the time `ts_val` of the peer's clock.
    pub(super) fn hear(&mut self, now: u64, ts_val: u32) {
        let is_first = self.shortest == 0;
        if is_first {
            (self.first, self.rose) = (ts_val, now);
        }
        // Signed, since acknowledgements may change places.
        let ticks = u64::try_from(ts_val.wrapping_sub(self.first).cast_signed()).unwrap_or(0);
        let way = now.saturating_add(OFFSET).saturating_sub(ticks * TICK).max(1);
        let rise = now.saturating_sub(self.rose) / DRIFT;
        self.rose = self.rose.saturating_add(rise * DRIFT);
        self.shortest = if is_first { way } else { self.shortest.saturating_add(rise).min(way) };
        // A clock shows the time of its last tick.
        self.wait = (way - self.shortest).saturating_sub(TICK).min(MOST_RTT);
    }

    /// How much longer than at its shortest the way of the last acknowledgement was.
    pub(super) const fn wait(&self) -> u64 {
        self.wait
    }

    /// The time of an acknowledgement that came at `now`, had it not waited.
    pub(super) const fn unwaited(&self, now: u64) -> u64 {
        now.saturating_sub(self.wait)
    }

    /// Whether there is traffic the other way.
    pub(super) fn is_busy(&self, now: u64) -> bool {
        now < self.busy_until
    }
}

impl<C> FsAtOpen<C> {
    /// Takes in the peer's time, where an acknowledgement has it.
    pub(super) fn hear_peer(&mut self, now: u64, ts_val: Option<u32>) {
        if let Some(ts_val) = ts_val.filter(|_| !self.way_back.is_strange) {
            self.way_back.hear(now, ts_val);
        }
    }

    /// The round trip `rtt` without the wait of its acknowledgement.
    pub(super) fn without_wait(&mut self, now: u64, rtt: u64) -> u64 {
        let wait = self.way_back.wait;
        if wait >= rtt {
            // No acknowledgement waits for longer than its round trip took: the clock ticks otherwise.
            self.way_back = WayBack { is_strange: true, ..WayBack::default() };
            self.path = Path::default();
            return rtt;
        }
        if wait > self.path.rtt_min() / NOTABLE {
            self.way_back.busy_until = now.saturating_add(LATELY);
        }
        rtt - wait
    }

    /// The round trip of the last round, through the queue on the way of the data, without a wait on the way back.
    fn rtt_without_wait(&self) -> u64 {
        self.path.rtt_min() + self.queueing
    }

    /// Bytes that the peer has, and whose acknowledgements wait: they fill no queue on the way to the peer.
    pub(super) fn received(&self) -> u64 {
        share(self.window, self.way_back.wait, self.rtt_without_wait())
    }

    /// What of a window is not for such bytes.
    pub(super) fn forward_part(&self, window: Bytes) -> u64 {
        let rtt = self.rtt_without_wait().max(1);
        share(window.get(), rtt, rtt + self.way_back.wait)
    }

    /// Beside traffic the other way acknowledgements come in bursts, which data must not leave in.
    pub(super) fn pacing(&self, now: u64, mss: u64) -> Option<Rate> {
        let window = Bytes::new(self.window.max(2 * mss) * PACING_QUARTERS / 4);
        self.way_back
            .is_busy(now)
            .then(|| Rate::of(window, Duration::from_micros(self.rtt_without_wait().max(1))))
    }

    /// Where a round that took `elapsed` confirmed less in `low` than the window was `before`, the window was not used, and it
    /// does not grow.
    pub(super) fn limit_growth(&mut self, before: u64, mss: u64, low: u64, elapsed: u64) {
        let used = share(self.round.delivered, low, elapsed);
        let most = used.saturating_add(used / MORE).saturating_add(4 * mss);
        self.window = self.window.min(most.max(before));
    }
}
