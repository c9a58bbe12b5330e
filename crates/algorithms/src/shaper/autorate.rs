//! A shaper's rate from the bulk flows' own packets, without probes and without a rate to begin with.
//!
//! What receivers acknowledge tells how fast the bottleneck sends; what they have not acknowledged yet, beyond what
//! the shortest round-trip time explains, waits at the bottleneck. The rate is the first, corrected so that the second
//! comes to a short target: the bottleneck always has something to send, and nothing waits long. The correction is
//! the one of ABC (Goyal et al.: ABC: A Simple Explicit Congestion Controller for Wireless Networks, NSDI 2020, eq. 1),
//! whose router knows the capacity; here the acknowledgements tell it.

use alloc::boxed::Box;

use suimon_units::{Duration, Rate};

use super::{Observed, RateController};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "autorate",
    summary: "what receivers acknowledge, corrected toward a short queue at the bottleneck; no probes, no rates given",
    source: "this project, after Goyal and others 2020 (ABC)",
    colour: "#4e79a7",
    parameters: &[
        Parameter {
            name: "target",
            help: "waiting time at the bottleneck that is aimed at",
            default: Value::Duration(Duration::from_millis(50)),
            range: Range::Any,
        },
        Parameter {
            name: "drain",
            help: "time within which what waits beyond the target is to leave",
            default: Value::Duration(Duration::from_millis(200)),
            range: Range::Any,
        },
        Parameter {
            name: "gain",
            help: "share by which the rate exceeds what is delivered where nothing waits",
            default: Value::Number(4.0),
            range: Range::Between(0.01, 10.0),
        },
        Parameter {
            name: "smoothing",
            help: "time constant of the average over what is delivered",
            default: Value::Duration(Duration::from_millis(100)),
            range: Range::Any,
        },
        Parameter {
            name: "interval",
            help: "time between two rates",
            default: Value::Duration(Duration::from_millis(20)),
            range: Range::Any,
        },
        Parameter {
            name: "packets",
            help: "packets that may wait at the bottleneck in any case",
            default: Value::Number(4.0),
            range: Range::Between(0.0, 1_000.0),
        },
        Parameter {
            name: "floor",
            help: "lowest rate in relation to what was delivered over the last ten seconds, so that a link that comes back is noticed",
            default: Value::Number(0.25),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "min",
            help: "the lowest rate in any case",
            default: Value::Rate(Rate::from_bps(100_000)),
            range: Range::Any,
        },
        Parameter {
            name: "max",
            help: "the highest rate, and the one to begin with",
            default: Value::Rate(Rate::from_bps(1_000_000_000)),
            range: Range::Any,
        },
    ],
};

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn RateController> {
    let seconds = |name| arguments.duration(name).as_secs_f64().max(1e-3);
    let (min, max) = (arguments.rate("min"), arguments.rate("max"));
    Box::new(Autorate {
        target: seconds("target"),
        drain: seconds("drain"),
        gain: arguments.number("gain"),
        smoothing: seconds("smoothing"),
        packets: arguments.number("packets"),
        floor: arguments.number("floor"),
        interval: arguments.duration("interval").max(Duration::from_millis(1)),
        min: min.as_bps_f64().max(8_000.0),
        rate: max.as_bps_f64().max(min.as_bps_f64()).max(8_000.0),
        max: max.as_bps_f64().max(min.as_bps_f64()).max(8_000.0),
        delivery: None,
        usual: 0.0,
        waiting: 0.0,
    })
}

/// Rates are in bits per second, times in seconds.
#[derive(Debug, Clone)]
struct Autorate {
    target: f64,
    drain: f64,
    gain: f64,
    smoothing: f64,
    packets: f64,
    floor: f64,
    interval: Duration,
    min: f64,
    max: f64,
    rate: f64,
    /// The average of what is delivered; `None` before the first acknowledgement.
    delivery: Option<f64>,
    /// The same over [`USUAL`].
    usual: f64,
    /// The time for which a packet waits at the bottleneck.
    waiting: f64,
}

impl Autorate {
    /// Takes in what was delivered. Gives the average. Where flows `wait` for nothing, they tell what they want to send
    /// rather than what the bottleneck takes, so that the average does not fall.
    fn deliver(&mut self, seen: &Observed, wait: bool) -> f64 {
        let elapsed = seen.elapsed.as_secs_f64().max(1e-6);
        let now = seen.delivered.as_f64() * 8.0 / elapsed;
        let before = self.delivery.unwrap_or(now);
        // At low rates a few packets are most of what there is, so that the average takes longer.
        let smoothing = self.smoothing.max(PACKETS * PACKET_BITS / before.max(1.0)).min(LONGEST_WAIT);
        let share = 1.0 - libm::exp(-elapsed / smoothing);
        let delivery = if wait || now > before { before + share * (now - before) } else { before };
        self.delivery = Some(delivery);
        let usual = 1.0 - libm::exp(-elapsed / USUAL);
        self.usual += usual * (now - self.usual);
        delivery
    }

    /// Whether packets take longer than the path itself explains.
    fn is_late(seen: &Observed) -> bool {
        let base = seen.base_rtt.unwrap_or_default();
        seen.rtt.is_some_and(|rtt| rtt > base + LATE)
    }

    /// The waiting time at the bottleneck, from what is in flight beyond what the path itself holds.
    fn wait(seen: &Observed, delivery: f64) -> f64 {
        let base = seen.base_rtt.map_or(0.0, Duration::as_secs_f64);
        let in_flight = (seen.in_flight.as_f64() - seen.unacknowledged.as_f64()).max(0.0) * 8.0;
        (in_flight / delivery.max(1.0) - base).clamp(0.0, LONGEST_WAIT)
    }

    /// What the rate is to be in relation to what is delivered. ABC, eq. 1, above the target.
    fn correction(&self, target: f64) -> f64 {
        let excess = self.waiting - target;
        if excess > 0.0 { (1.0 - excess / self.drain).max(0.0) } else { 1.0 - self.gain * excess / target }
    }
}

impl RateController for Autorate {
    fn initial(&self) -> Rate {
        Rate::from_bps(self.max as u64)
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn on_interval(&mut self, seen: &Observed) -> Rate {
        if seen.base_rtt.is_some() {
            let wait = Self::is_late(seen);
            let delivery = self.deliver(seen, wait);
            self.waiting = if wait { Self::wait(seen, delivery) } else { 0.0 };
            let floor = self.min.max(self.floor * self.usual);
            let target = self.target.max(self.packets * PACKET_BITS / delivery.max(floor));
            let corrected = delivery * self.correction(target);
            // Where less waits than may, nothing shows that the bottleneck takes less than before.
            let rate = if self.waiting > target { corrected } else { corrected.max(self.rate) };
            self.rate = rate.max(floor).min(self.max);
        }
        Rate::from_bps(self.rate as u64)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("shaper_rate_bps", self.rate);
        out.value("delivery_bps", self.delivery.unwrap_or(f64::NAN));
        out.value("bottleneck_wait_ms", self.waiting * 1e3);
    }
}

/// The average is over so many packets at least.
const PACKETS: f64 = 8.0;
const PACKET_BITS: f64 = 12_000.0;
/// In seconds.
const USUAL: f64 = 10.0;
/// How much longer than the shortest a round trip is where packets wait: more than a few milliseconds by which answers
/// come at different times.
const LATE: Duration = Duration::from_millis(10);
/// In seconds: where nothing is delivered any more, everything waits for ever.
const LONGEST_WAIT: f64 = 10.0;

#[cfg(test)]
mod tests {
    use suimon_units::{Bytes, Instant};

    use super::*;
    use crate::registry::{AlgorithmSpec, Role};

    const MBIT: u64 = 1_000_000;

    fn controller(settings: &str) -> Box<dyn RateController> {
        AlgorithmSpec::parse(Role::Shaper, &format!("autorate{settings}")).unwrap().build_shaper()
    }

    /// An interval of 20 ms at 4 Mbit/s and 40 ms, with so many bytes at the bottleneck.
    fn seen(waiting: u64) -> Observed {
        Observed {
            now: Instant::ZERO,
            elapsed: Duration::from_millis(20),
            sent: Bytes::new(10_000),
            delivered: Bytes::new(10_000),
            in_flight: Bytes::new(20_000 + waiting),
            unacknowledged: Bytes::ZERO,
            base_rtt: Some(Duration::from_millis(40)),
            rtt: Some(Duration::from_millis(90)),
            probe_rtt: None,
        }
    }

    /// The rate in relation to 4 Mbit/s, of a controller that was slower before.
    fn rate_at(waiting: u64) -> f64 {
        let mut controller = controller(":target=50ms:drain=200ms:gain=0.5:packets=0:floor=0");
        for _ in 0..50 {
            controller.on_interval(&seen(100_000));
        }
        controller.on_interval(&seen(waiting)).as_bps_f64() / 4e6
    }

    #[test]
    fn the_rate_is_what_is_delivered_where_the_target_waits() {
        // 50 ms of 4 Mbit/s.
        assert!((rate_at(25_000) - 1.0).abs() < 1e-6);
        assert!((rate_at(0) - 1.5).abs() < 1e-6, "nothing waits: more by the gain");
        // 100 ms beyond the target are half of 200 ms.
        assert!((rate_at(25_000 + 50_000) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn no_rate_falls_where_less_waits_than_may() {
        assert_eq!(controller("").on_interval(&seen(10_000)).as_bps(), 1_000 * MBIT);
    }

    #[test]
    fn an_outage_brings_the_lowest_rate_and_not_less() {
        let mut controller = controller("");
        let outage = Observed { delivered: Bytes::ZERO, ..seen(100_000) };
        let rates: Vec<_> = (0..4_000).map(|_| controller.on_interval(&outage).as_bps()).collect();
        assert!(rates.is_sorted_by(|before, after| before >= after));
        assert_eq!(rates[3_999], 100_000);
    }

    #[test]
    fn a_burst_after_silence_is_no_queue() {
        let mut controller = controller("");
        for _ in 0..50 {
            controller.on_interval(&seen(25_000));
        }
        let before = controller.on_interval(&seen(25_000)).as_bps();
        let silence = Observed { delivered: Bytes::ZERO, in_flight: Bytes::ZERO, rtt: None, ..seen(0) };
        for _ in 0..1_000 {
            controller.on_interval(&silence);
        }
        let burst =
            Observed { in_flight: Bytes::new(15_000), rtt: Some(Duration::from_millis(41)), ..silence };
        assert!(controller.on_interval(&burst).as_bps() >= before);
    }

    #[test]
    fn nothing_is_known_before_the_first_round_trip() {
        let blind = Observed { base_rtt: None, delivered: Bytes::ZERO, ..seen(0) };
        assert_eq!(controller("").on_interval(&blind).as_bps(), 1_000 * MBIT);
    }
}
