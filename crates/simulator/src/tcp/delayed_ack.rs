//! How long an ACK is held back: always as long, or as Linux has it, for a time that follows the gaps between segments
//! (`tcp_event_data_recv` in `tcp_input.c`, `tcp_send_delayed_ack` in `tcp_output.c`, `tcp_delack_timer_handler` in
//! `tcp_timer.c`).

use suimon_model::StackProfile;
use suimon_units::{Duration, Instant};

/// Linux counts these times in ticks, of which a kernel has 250 a second where nobody asks for others (`CONFIG_HZ`).
const TICK: Duration = Duration::from_millis(4);
/// `TCP_DELACK_MAX`.
const MOST: u64 = 50;

/// The time for which the next ACK is held back.
#[derive(Debug, Clone, Copy)]
pub(super) enum DelayedAck {
    Fixed(Duration),
    /// `TCP_ATO_MIN` and `icsk_ack.ato`, in ticks.
    Adaptive {
        least: u64,
        ato: u64,
    },
}

impl DelayedAck {
    pub(super) fn new(profile: &StackProfile) -> Self {
        let least = profile.delayed_ack_timeout;
        if profile.adapt_delayed_ack {
            Self::Adaptive { least: ticks_up(least), ato: ticks_up(least) }
        } else {
            Self::Fixed(least)
        }
    }

    /// A segment came in order at `now`, and the one before it at `last`; `rto` is the receiver's own timeout.
    pub(super) fn on_segment(&mut self, now: Instant, last: Instant, rto: Duration) {
        let Self::Adaptive { least, ato } = self else { return };
        let gap = tick(now) - tick(last);
        if gap <= *least / 2 {
            *ato = *ato / 2 + *least / 2;
        } else if gap < *ato {
            *ato = (*ato / 2 + gap).min(ticks_up(rto));
        }
    }

    /// The receiver no longer answers each segment at once.
    pub(super) fn on_quick_acks_over(&mut self) {
        if let Self::Adaptive { least, ato } = self {
            *ato = *least;
        }
    }

    /// No other segment came in time.
    pub(super) fn on_missed(&mut self, rto: Duration) {
        if let Self::Adaptive { ato, .. } = self {
            *ato = (*ato * 2).min(ticks_up(rto));
        }
    }

    /// When the ACK for a segment that came at `now` over a path of this round-trip time goes out.
    pub(super) fn due(&self, now: Instant, rtt: Duration) -> Instant {
        match *self {
            Self::Fixed(timeout) => now + timeout,
            Self::Adaptive { least, ato } => {
                // A timer runs out with the tick after, so that it is never early (`calc_index` in `timer.c`).
                let ticks = ato.min(ticks_up(rtt).max(least)).min(MOST) + 1;
                Instant::ZERO + TICK * (tick(now) + ticks)
            }
        }
    }
}

fn tick(at: Instant) -> u64 {
    at.as_nanos() / TICK.as_nanos()
}

fn ticks_up(duration: Duration) -> u64 {
    duration.as_nanos().div_ceil(TICK.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(61);
    const RTO: Duration = Duration::from_millis(261);

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// For how many ms an ACK waits after segments that came with these gaps in ms, on a long path.
    fn waits(gaps: &[u64]) -> u64 {
        let mut delayed = DelayedAck::new(&StackProfile::linux_6());
        let mut now = ms(1_000);
        for gap in gaps {
            let last = now;
            now += Duration::from_millis(*gap);
            delayed.on_segment(now, last, RTO);
        }
        let due = delayed.due(now, Duration::from_secs(1)).saturating_since(now);
        due.as_nanos() / 1_000_000
    }

    #[test]
    fn it_follows_gaps_of_more_than_half_the_least_time_and_less_than_itself() {
        // One tick more than the estimate; by hand: 10 ticks, 10 / 2 + 6 = 11, 11 / 2 + 6 = 11, 11 / 2 + 9 = 14.
        assert_eq!(waits(&[]), 44);
        assert_eq!(waits(&[20, 20]), 44);
        assert_eq!(waits(&[24]), 48);
        assert_eq!(waits(&[24, 24]), 48);
        assert_eq!(waits(&[24, 24, 36]), 60);
        assert_eq!(waits(&[24, 24, 36, 4]), 52);
        // 40 ms are not less than 40 ms.
        assert_eq!(waits(&[40]), 44);
    }

    #[test]
    fn a_missed_time_doubles_up_to_the_round_trip_time_and_a_fifth_of_a_second() {
        let mut delayed = DelayedAck::new(&StackProfile::linux_6());
        let waits = |delayed: &DelayedAck, rtt| delayed.due(ms(1_000), rtt).saturating_since(ms(1_000));
        delayed.on_missed(RTO);
        assert_eq!(waits(&delayed, Duration::from_secs(1)), Duration::from_millis(84));
        assert_eq!(waits(&delayed, RTT), Duration::from_millis(68), "16 ticks of the path, and one");
        assert_eq!(
            waits(&delayed, Duration::from_millis(5)),
            Duration::from_millis(44),
            "never less than the least"
        );
        (0..9).for_each(|_| delayed.on_missed(Duration::from_secs(3)));
        assert_eq!(waits(&delayed, Duration::from_secs(1)), Duration::from_millis(204));
        delayed.on_quick_acks_over();
        assert_eq!(waits(&delayed, Duration::from_secs(1)), Duration::from_millis(44));
    }

    #[test]
    fn it_runs_out_with_a_tick() {
        let delayed = DelayedAck::new(&StackProfile::linux_6());
        let due = |at_us| delayed.due(Instant::ZERO + Duration::from_micros(at_us), RTT);
        assert_eq!([due(3_999), due(4_000), due(7_999)], [ms(44), ms(48), ms(48)]);
    }

    #[test]
    fn other_stacks_wait_as_long_each_time() {
        let mut delayed = DelayedAck::new(&StackProfile::ns_2());
        delayed.on_missed(RTO);
        delayed.on_segment(ms(90), ms(10), RTO);
        assert_eq!(delayed.due(ms(91), RTT), ms(191));
    }
}
