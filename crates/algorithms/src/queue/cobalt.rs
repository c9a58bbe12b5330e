//! COBALT: CoDel and BLUE side by side, as in CAKE (Høiland-Jørgensen, Täht, Morton: Piece of CAKE, 2018,
//! §III-B; Linux 4.19, `sch_cake.c`).
//!
//! CoDel signals senders that respond, BLUE drops the excess of senders that do not. Unlike RFC 8289's,
//! this CoDel winds its frequency down step by step after delay has fallen.

use suimon_units::{Duration, Instant};

use super::codel::control_law;
use super::timed::Timed;
use super::{Ecn, Packet};
use crate::random::RandomStream;

/// COBALT's constants.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Delay that may stand for longer than an interval; BLUE moves at most once in this time.
    pub target: Duration,
    /// Time from when delay rises above the target to the first signal.
    pub interval: Duration,
    /// Transmission time of the largest packet.
    pub mtu_time: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

/// COBALT's state over one queue.
#[derive(Debug, Clone, Default)]
pub struct Cobalt {
    /// How fast signals follow each other: an interval apart over the root of this; 0 at rest.
    count: u32,
    /// `count` has moved before, as it does with the first signal. Until then Linux has no root of `count` to divide
    /// the interval by, and waits for no time at all.
    has_root: bool,
    /// When the next signal falls due, or a step back; at rest until when the queue is remembered.
    drop_next: Instant,
    dropping: bool,
    /// BLUE's probability, in 2^-32.
    p_drop: u32,
    blue_timer: Instant,
}

/// BLUE's steps up and down: 1/256 and 1/4096.
const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

impl Cobalt {
    /// A packet was lost for want of room.
    pub fn on_overflow(&mut self, settings: &Settings, now: Instant) {
        if now.saturating_since(self.blue_timer) > settings.target {
            self.p_drop = self.p_drop.saturating_add(P_INC);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue's turn came, and it was empty.
    pub fn on_empty(&mut self, settings: &Settings, now: Instant) {
        if self.p_drop > 0 && now.saturating_since(self.blue_timer) > settings.target {
            self.p_drop = self.p_drop.saturating_sub(P_DEC);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step(settings, self.count - 1);
        }
    }

    /// True where no earlier packet matters to the next one.
    #[must_use]
    pub fn is_at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Whether to drop `packet`, which leaves the queue now; it may be marked.
    pub fn drops<P: Packet>(
        &mut self,
        settings: &Settings,
        now: Instant,
        packet: &mut Timed<P>,
        random: &mut RandomStream,
    ) -> bool {
        let sojourn = packet.sojourn(now);
        let over_target = sojourn > settings.target && sojourn > settings.mtu_time * 4;
        let next_due = self.count > 0 && now >= self.drop_next;
        let was_late = now > self.drop_next;
        if over_target {
            if !self.dropping {
                self.drop_next = self.after(now, settings);
            }
            self.count = self.count.max(1);
        }
        self.dropping = over_target;
        let mut drop = false;
        if next_due && over_target {
            drop = !(settings.ecn && packet.ecn() != Ecn::NotCapable);
            if !drop {
                packet.mark_congestion_experienced();
            }
            self.step(settings, self.count.saturating_add(1));
        } else if next_due {
            while self.count > 0 && now >= self.drop_next {
                self.step(settings, self.count - 1);
            }
        }
        // BLUE drops flows that do not respond to marks or drops: blindly, and without marks.
        drop |= self.p_drop > 0 && random.below(1 << 32) < u64::from(self.p_drop);
        if self.count == 0 {
            self.drop_next = now + settings.interval;
        } else if !drop && (if next_due { now > self.drop_next } else { was_late }) {
            // One signal at a time: signals that fell due meanwhile are forgone.
            self.drop_next = now;
        }
        drop
    }

    /// The frequency becomes that of `count`, and the next step falls due by it.
    fn step(&mut self, settings: &Settings, count: u32) {
        self.count = count;
        self.has_root = true;
        self.drop_next = self.after(self.drop_next, settings);
    }

    /// When the step after one at `t` falls due.
    fn after(&self, t: Instant, settings: &Settings) -> Instant {
        if self.has_root { control_law(t, settings.interval, self.count.max(1)) } else { t }
    }

    /// BLUE's probability.
    #[must_use]
    pub fn blue(&self) -> f64 {
        f64::from(self.p_drop) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::TestPacket;

    const MS: Duration = Duration::from_millis(1);
    const SETTINGS: Settings = Settings {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_time: Duration::ZERO,
        ecn: true,
    };

    fn random() -> RandomStream {
        RandomStream::new(1, "cobalt")
    }

    /// After how many milliseconds packets that each waited for `sojourn` are dropped or marked.
    fn signals(
        settings: &Settings,
        cobalt: &mut Cobalt,
        ecn: Ecn,
        sojourn: Duration,
        from: u64,
        to: u64,
    ) -> Vec<u64> {
        let mut random = random();
        (from..to)
            .filter(|ms| {
                let now = Instant::ZERO + MS * *ms;
                let since = Instant::from_nanos(now.as_nanos() - sojourn.as_nanos());
                let mut timed = Timed { packet: TestPacket { ecn, ..TestPacket::new(0, 1_000) }, since };
                let drop = cobalt.drops(settings, now, &mut timed, &mut random);
                drop || timed.packet.ecn == Ecn::CongestionExperienced
            })
            .collect()
    }

    /// When packets a millisecond apart are signalled up to `to`, where signals fall due at `first` and then by
    /// CoDel's law from `from`.
    fn expected(first: u64, from: f64, to: u64) -> Vec<u64> {
        let (mut due, mut expected) = (from, vec![first]);
        for count in 2.. {
            due += 100.0 / f64::from(count).sqrt();
            if due > to as f64 - 1.0 {
                break;
            }
            expected.push(libm::ceil(due - 1e-5) as u64);
        }
        expected
    }

    #[test]
    fn a_queue_signals_at_once_the_first_time_and_an_interval_after_delay_rose_later() {
        let mut cobalt = Cobalt::default();
        // The packet at 1000 begins the series, and the next one bears the signal.
        let times = signals(&SETTINGS, &mut cobalt, Ecn::NotCapable, MS * 6, 1_000, 2_000);
        assert_eq!(times, expected(1_001, 1_000.0, 2_000));
        assert_eq!(signals(&SETTINGS, &mut cobalt, Ecn::NotCapable, MS, 2_000, 9_000), []);
        let later = signals(&SETTINGS, &mut cobalt, Ecn::NotCapable, MS * 6, 9_000, 10_000);
        assert_eq!(later, expected(9_100, 9_100.0, 10_000));
    }

    #[test]
    fn marks_come_when_drops_would_and_neither_below_the_target_or_four_packets() {
        let marks = |settings: &Settings, sojourn| {
            signals(settings, &mut Cobalt::default(), Ecn::Capable, sojourn, 1_000, 2_000)
        };
        let times = expected(1_001, 1_000.0, 2_000);
        assert_eq!(marks(&SETTINGS, MS * 6), times);
        assert_eq!(marks(&SETTINGS, MS * 5), []);
        let slow = Settings { mtu_time: MS * 2, ..SETTINGS };
        assert_eq!(marks(&slow, MS * 8), []);
        assert_eq!(marks(&slow, MS * 9), times);
    }

    #[test]
    fn the_frequency_winds_down_step_by_step() {
        let mut cobalt = Cobalt::default();
        signals(&SETTINGS, &mut cobalt, Ecn::Capable, MS * 6, 1_000, 3_000);
        let high = cobalt.count;
        signals(&SETTINGS, &mut cobalt, Ecn::Capable, MS, 3_000, 3_300);
        let lower = cobalt.count;
        assert!(high > 20 && lower < high && lower > high / 2, "{high} {lower}");
        signals(&SETTINGS, &mut cobalt, Ecn::Capable, MS, 3_300, 6_000);
        assert_eq!(cobalt.count, 0);
        assert!(
            !cobalt.is_at_rest(Instant::ZERO + MS * 6_000) && cobalt.is_at_rest(Instant::ZERO + MS * 6_100)
        );
    }

    #[test]
    fn blue_rises_with_overflow_and_falls_with_emptiness_once_a_target_each() {
        let mut cobalt = Cobalt::default();
        let at = |ms| Instant::ZERO + MS * ms;
        for ms in [100, 105, 106, 107, 112] {
            cobalt.on_overflow(&SETTINGS, at(ms));
        }
        assert_eq!(cobalt.blue(), 3.0 / 256.0);
        for ms in [117, 118, 123, 124] {
            cobalt.on_empty(&SETTINGS, at(ms));
        }
        assert_eq!(cobalt.blue(), 3.0 / 256.0 - 2.0 / 4_096.0);
        // Its drops are independent and spare no ECN-capable packet.
        cobalt.count = 0;
        let drops = signals(&SETTINGS, &mut cobalt, Ecn::Capable, MS, 1_000, 21_000).len() as f64;
        let expected = 20_000.0 * cobalt.blue();
        assert!((drops - expected).abs() < 5.0 * expected.sqrt(), "{drops} {expected}");
    }
}
