//! The essentials of Prague, a sender for L4S: DCTCP's response, paced, and not faster for a shorter round
//! trip (RFC 9331, draft-briscoe-iccrg-prague-congestion-control).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::dctcp::{G, MarkedShare};
use super::reno::{AdditiveIncrease, slow_start};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::queue::Ecn;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "prague",
    summary: "DCTCP's response to marks for the L4S queue: paced, and alike for round trips below 25 ms",
    source: "RFC 9331; draft-briscoe-iccrg-prague-congestion-control",
    colour: "#a0cbe8",
    parameters: &[
        G,
        Parameter {
            name: "rtt_virt",
            help: "round trips below this grow and cut as if they were this long",
            default: Value::Duration(Duration::from_millis(25)),
            range: Range::Any,
        },
    ],
};

/// Builds it with `g` and `rtt_virt`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Prague::new(arguments.number("g"), arguments.duration("rtt_virt")))
}

/// Pacing rate in windows per round trip, in slow start and later, as Linux paces.
const PACING_SLOW_START: f64 = 2.0;
const PACING_AVOIDANCE: f64 = 1.2;

#[derive(Debug, Clone)]
struct Prague {
    rtt_virt: Duration,
    share: MarkedShare,
    increase: AdditiveIncrease,
    srtt: Option<Duration>,
    /// When the share of marks was last updated, and when marks last cut the window.
    updated_at: Instant,
    cut_at: Option<Instant>,
}

impl Prague {
    fn new(g: f64, rtt_virt: Duration) -> Self {
        Self {
            rtt_virt,
            share: MarkedShare::new(g),
            increase: AdditiveIncrease::default(),
            srtt: None,
            updated_at: Instant::ZERO,
            cut_at: None,
        }
    }

    /// The round trip that growth and cuts are clocked by.
    fn virtual_rtt(&self) -> Duration {
        self.srtt.map_or(self.rtt_virt, |srtt| srtt.max(self.rtt_virt))
    }

    /// Segments of growth per actual round trip: the cuts come once per virtual one, and the square of the
    /// ratio makes the rates of unequal round trips equal.
    fn growth(&self) -> f64 {
        let Some(srtt) = self.srtt else { return 1.0 };
        let ratio = srtt.as_secs_f64() / self.virtual_rtt().as_secs_f64().max(1e-9);
        ratio * ratio
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            // RFC 6298 §2.3.
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt.mul_f64(0.875) + rtt.mul_f64(0.125)));
        }
        self.share.count(ack);
        let long_enough = ack.now.saturating_since(self.updated_at) >= self.virtual_rtt();
        if long_enough && self.share.window_is_over(ack) {
            self.share.update(ack);
            self.updated_at = ack.now;
        }
        let news = ack.newly_acked > Bytes::ZERO && ack.marked == Bytes::ZERO;
        let grows = !ack.in_recovery && ack.cwnd_limited && news;
        if grows && slow_start(ack, limits) {
            self.increase.apply_times(self.growth(), ack, limits);
        }
        if let Some(srtt) = self.srtt {
            let factor = if limits.in_slow_start() { PACING_SLOW_START } else { PACING_AVOIDANCE };
            limits.pacing = Some(Rate::of(limits.cwnd, srtt).scaled(factor));
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let since = self.cut_at.map(|at| event.now.saturating_since(at));
        let too_soon = since.is_some_and(|since| since < self.virtual_rtt());
        if event.kind == CongestionKind::Ecn && too_soon {
            // Marks cut once per virtual round trip; slow start ends all the same.
            limits.ssthresh = limits.cwnd.max(event.mss * 2);
            return;
        }
        if event.kind == CongestionKind::Ecn {
            // The growth saved up toward the next segment stays: at short round trips it took many of them.
            self.cut_at = Some(event.now);
        } else {
            self.increase = AdditiveIncrease::default();
        }
        limits.ssthresh = self.share.ssthresh(event, limits);
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::ByShare(Ecn::L4s)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("alpha", self.share.alpha());
        if let Some(pacing) = self.srtt {
            out.value("virtual_rtt_ms", pacing.max(self.rtt_virt).as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn prague() -> Prague {
        Prague::new(1.0 / 16.0, Duration::from_millis(25))
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Windows after `rounds` round trips of `rtt_ms` without a mark, from 100 segments.
    fn after(rounds: u64, rtt_ms: u64) -> u64 {
        let mut cc = prague();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 100) };
        let rtt = Some(Duration::from_millis(rtt_ms));
        for round in 1..=rounds {
            let now = ms(round * rtt_ms);
            for _ in 0..limits.cwnd.whole(MSS) {
                cc.on_ack(&Ack { now, rtt, ..ack(1) }, &mut limits);
            }
        }
        limits.cwnd.whole(MSS)
    }

    #[test]
    fn below_the_virtual_round_trip_growth_falls_with_the_square_of_the_ratio() {
        assert_eq!(after(25, 100), 125, "a segment per round trip");
        assert_eq!(after(25, 25), 125);
        assert_eq!(after(100, 5), 104, "a twenty-fifth of a segment per round trip");
    }

    #[test]
    fn marks_cut_once_per_virtual_round_trip() {
        let mut cc = prague();
        cc.srtt = Some(Duration::from_millis(5));
        let mut limits = Limits::initial(MSS * 100);
        let mut cut = |at| {
            limits.cwnd = MSS * 100;
            let event = Congestion { kind: CongestionKind::Ecn, now: ms(at), ..loss(100) };
            cc.on_congestion(&event, &mut limits);
            limits.ssthresh.whole(MSS)
        };
        assert_eq!((cut(100), cut(105), cut(124), cut(125)), (50, 100, 100, 50));
    }

    #[test]
    fn a_loss_halves_at_any_time() {
        let mut cc = prague();
        cc.cut_at = Some(ms(200));
        let mut limits = Limits::initial(MSS * 100);
        cc.on_congestion(&loss(80), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 40);
    }

    #[test]
    fn it_paces_at_the_window_per_round_trip_with_room_to_grow() {
        let mut cc = prague();
        let mut limits = Limits::initial(MSS * 10);
        cc.on_ack(&ack(1), &mut limits);
        let window = limits.cwnd;
        assert_eq!(limits.pacing, Some(Rate::of(window * 2, Duration::from_millis(100))));
        limits.ssthresh = window;
        cc.on_ack(&Ack { newly_acked: Bytes::ZERO, ..ack(0) }, &mut limits);
        assert_eq!(limits.pacing, Some(Rate::of(window, Duration::from_millis(100)).scaled(1.2)));
    }
}
