//! TCP Hybla: grows per second as a connection with a round trip of 25 ms, so that a satellite costs no throughput
//! (Caini and Firrincieli 2004, as Linux has it).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::halved;
use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "hybla",
    summary: "grows per second as a connection with a round trip of 25 ms does, however long its own",
    source: "Caini, Firrincieli 2004; Linux 6.18",
    colour: "#d4a6c8",
    parameters: &[Parameter {
        name: "rtt0",
        help: "the round trip whose growth per second it has",
        default: Value::Duration(Duration::from_millis(25)),
        range: Range::Any,
    }],
};

/// Builds it with `rtt0`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Hybla { rtt0: arguments.duration("rtt0"), srtt: None, least_srtt: None, grown: 0.0 })
}

/// Linux bounds the exponent of slow start.
const MAX_EXPONENT: f64 = 16.0;

#[derive(Debug, Clone)]
struct Hybla {
    rtt0: Duration,
    /// The smoothed round-trip time (RFC 6298 §2), and the smallest that it had.
    srtt: Option<Duration>,
    least_srtt: Option<Duration>,
    /// Growth that is not a whole segment yet.
    grown: f64,
}

impl Hybla {
    /// `rho`, the round trip in units of `rtt0`, at least one (equation 4).
    fn rho(&self) -> f64 {
        let least = self.least_srtt.unwrap_or(self.rtt0).as_secs_f64();
        (least / self.rtt0.as_secs_f64().max(1e-6)).max(1.0)
    }

    fn smooth(&mut self, rtt: Duration) {
        let srtt = self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8);
        self.srtt = Some(srtt);
        self.least_srtt = Some(self.least_srtt.map_or(srtt, |least| least.min(srtt)));
    }
}

impl CongestionControl for Hybla {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.smooth(rtt);
        }
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        let (rho, window) = (self.rho(), limits.cwnd.as_f64() / ack.mss.as_f64());
        let slow_start = limits.in_slow_start();
        // Equation 5, for each ACK: 2^rho - 1 in slow start, rho^2 / W behind it.
        self.grown += if slow_start { libm::exp2(rho.min(MAX_EXPONENT)) - 1.0 } else { rho * rho / window };
        let whole = libm::floor(self.grown);
        self.grown -= whole;
        let grown = limits.cwnd.saturating_add(ack.mss * (whole as u64));
        limits.cwnd = if slow_start { grown.min(limits.ssthresh) } else { grown };
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.grown = 0.0;
        limits.ssthresh = halved(event);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("rho", self.rho());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack};

    /// Segments of growth over `acks` acknowledgements at a window of 100 and a round trip of `millis`.
    fn growth(millis: u64, ssthresh: u64, acks: u64) -> u64 {
        let mut hybla = build(&Arguments::defaults(DESCRIPTION.parameters));
        let mut limits = Limits { ssthresh: MSS * ssthresh, ..Limits::initial(MSS * 100) };
        for _ in 0..acks {
            let rtt = Some(Duration::from_millis(millis));
            hybla.on_ack(&Ack { rtt, ..ack(1) }, &mut limits);
        }
        limits.cwnd.whole(MSS) - 100
    }

    /// rho is 1, 4 and 8: a window of 100 ACKs gives 1, 16 and 64 segments, less what the growing window takes off.
    #[test]
    fn growth_in_a_round_trip_is_the_square_of_its_length() {
        assert_eq!(growth(25, 2, 101), 1);
        assert_eq!(growth(10, 2, 101), 1, "a short path grows as Reno does");
        // W^2 grows by 2 rho^2 for each ACK: sqrt(100^2 + 2 * 16 * 100) = 114.9, sqrt(100^2 + 2 * 64 * 100) = 151.
        assert_eq!((growth(100, 2, 100), growth(200, 2, 100)), (14, 51));
    }

    /// 2^2 - 1 segments for each ACK at rho = 2.
    #[test]
    fn slow_start_grows_by_two_to_the_rho_and_stops_at_the_threshold() {
        assert_eq!(growth(50, 1_000, 10), 30);
        assert_eq!(growth(50, 120, 10), 20);
    }
}
