//! HyStart++: slow start slows down where round-trip times grow, and goes on where they shrink again (RFC 9406), over any
//! congestion control.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, Delivery, Limits, MarkResponse};
use crate::parameters::Arguments;
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary and source. It has no parameters: RFC 9406 recommends its constants.
pub const DESCRIPTION: Description = Description {
    name: "hystart-plus-plus",
    summary: "a first slow start that slows down where round-trip times grow, before it loses segments",
    source: "RFC 9406",
    colour: "#2ca02c",
    parameters: &[],
};

/// Builds it over `inner`.
#[must_use]
pub fn build(_: &Arguments, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl> {
    Box::new(HyStartPlusPlus {
        inner,
        stage: Stage::SlowStart,
        last: None,
        current: None,
        samples: 0,
        end: 0,
    })
}

// RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    SlowStart,
    /// Conservative slow start (CSS): round-trip times grew to `baseline`; so many rounds are left.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
    /// The first slow start is over.
    Over,
}

#[derive(Debug, Clone)]
struct HyStartPlusPlus<C> {
    inner: C,
    stage: Stage,
    /// Smallest round trip of the last round and of this one, and samples of this one.
    last: Option<Duration>,
    current: Option<Duration>,
    samples: u32,
    /// The round ends once this is acknowledged.
    end: u64,
}

impl<C> HyStartPlusPlus<C> {
    /// The end of a round; true where it was the last of conservative slow start.
    fn begin_round(&mut self, snd_nxt: u64) -> bool {
        (self.end, self.last, self.current, self.samples) = (snd_nxt, self.current, None, 0);
        match &mut self.stage {
            Stage::Conservative { rounds, .. } => {
                *rounds -= 1;
                *rounds == 0
            }
            _ => false,
        }
    }

    /// RFC 9406 §4.2: where to go with this round's samples so far.
    fn judge(&mut self) {
        let (Some(current), Some(last)) = (self.current, self.last) else { return };
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.stage {
            Stage::SlowStart => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.stage = Stage::Conservative { baseline: current, rounds: CSS_ROUNDS };
                }
            }
            Stage::Conservative { baseline, .. } if current < baseline => self.stage = Stage::SlowStart,
            _ => {}
        }
    }
}

impl<C: CongestionControl + Clone + 'static> CongestionControl for HyStartPlusPlus<C> {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.inner.on_established(now, limits);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        // Only the first slow start has no threshold (RFC 9406 §4.3).
        if limits.ssthresh != Bytes::MAX {
            self.stage = Stage::Over;
        }
        let before = limits.cwnd;
        self.inner.on_ack(ack, limits);
        if self.stage == Stage::Over {
            return;
        }
        if let Some(rtt) = ack.rtt {
            self.current = Some(self.current.map_or(rtt, |current| current.min(rtt)));
            self.samples += 1;
        }
        self.judge();
        if matches!(self.stage, Stage::Conservative { .. }) {
            limits.cwnd = limits.cwnd.min(before + limits.cwnd.saturating_sub(before) / CSS_GROWTH_DIVISOR);
        }
        if ack.snd_una >= self.end && self.begin_round(ack.snd_nxt) {
            limits.ssthresh = limits.cwnd;
            self.stage = Stage::Over;
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.stage = Stage::Over;
        self.inner.on_congestion(event, limits);
    }

    fn on_spurious(&mut self, now: Instant, limits: &mut Limits) {
        self.inner.on_spurious(now, limits);
    }

    fn models_delivery(&self) -> bool {
        self.inner.models_delivery()
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.inner.on_delivery(delivery);
    }

    fn mark_response(&self) -> MarkResponse {
        self.inner.mark_response()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.inner.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::reno::Reno;
    use crate::congestion::testing::{MSS, ack, loss};

    const MS: Duration = Duration::from_millis(1);

    /// Rounds of ten ACKs each, with these round trips; the growth in each, in segments, and the limits after.
    fn rounds(rtts: &[u64]) -> (Vec<f64>, Limits) {
        let mut slow = build(&Arguments::defaults(&[]), Box::<Reno>::default());
        let mut limits = Limits::initial(MSS * 100);
        let grown = |(nth, rtt): (usize, &u64)| {
            let before = limits.cwnd;
            for each in 1..=10 {
                let una = (MSS * (nth as u64 * 10 + each)).get();
                let next = (MSS * (nth as u64 + 2) * 10).get();
                slow.on_ack(
                    &Ack { rtt: Some(MS * *rtt), snd_una: una, snd_nxt: next, ..ack(1) },
                    &mut limits,
                );
            }
            (limits.cwnd.as_f64() - before.as_f64()) / MSS.as_f64()
        };
        let grown = rtts.iter().enumerate().map(grown).collect();
        (grown, limits)
    }

    /// The first ACK begins the first round, so the eighth sample of the next comes with its ninth or tenth ACK.
    #[test]
    fn an_eighth_more_slows_it_down_to_a_quarter_for_five_rounds_and_then_ends_it() {
        let (grown, limits) = rounds(&[80, 80, 90, 90, 90, 90, 90, 90]);
        assert_eq!(grown[..2], [10.0, 10.0]);
        assert!(grown[2] < 10.0 && grown[3] == 2.5, "{grown:?}");
        assert!(!limits.in_slow_start(), "{grown:?}");
        assert!(rounds(&[80, 80, 89, 89, 89, 89, 89, 89]).1.in_slow_start(), "less than an eighth");
    }

    #[test]
    fn it_goes_on_where_round_trips_shrink_again() {
        let (grown, limits) = rounds(&[80, 80, 90, 80, 80, 80, 80, 80, 80, 80]);
        assert_eq!(grown[5..], [10.0; 5]);
        assert!(limits.in_slow_start());
    }

    #[test]
    fn the_threshold_has_bounds_of_4_and_16_ms() {
        for (from, to, slows) in [(8, 11, false), (8, 12, true), (400, 415, false), (400, 416, true)] {
            assert_eq!(rounds(&[from, from, to, to]).0[3] < 10.0, slows, "{from} {to}");
        }
    }

    #[test]
    fn after_a_loss_slow_start_is_that_of_the_algorithm_below() {
        let mut slow = build(&Arguments::defaults(&[]), Box::<Reno>::default());
        let mut limits = Limits::initial(MSS * 100);
        slow.on_congestion(&loss(100), &mut limits);
        limits.cwnd = MSS;
        for nth in 0..40 {
            slow.on_ack(&Ack { rtt: Some(MS * (80 + nth * 10)), ..ack(1) }, &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 41);
    }
}
