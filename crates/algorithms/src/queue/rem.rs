//! REM, Random Exponential Marking (Athuraliya, Li, Low, Yin: REM: Active Queue Management, IEEE
//! Network 15 (3), 2001).

use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use super::early::{self, Advice, Early, EarlyDetection};
use super::policy::{Arrival, Verdict};
use super::red;
use super::spacing::{Distances, Spacing};
use super::{Backlog, Buffer};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "rem",
    summary: "marks by a price that rises while the queue or the rate exceeds its target",
    source: "Athuraliya, Li, Low, Yin: REM, 2001",
    colour: "#af7aa1",
    parameters: &[
        red::MODE,
        Parameter {
            name: "target",
            help: "queue to aim at; 0: half of the buffer",
            default: Value::Bytes(Bytes::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "gamma",
            help: "step of the price",
            default: Value::Number(0.001),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "alpha",
            help: "weight of the queue beside the rate in the price",
            default: Value::Number(0.1),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "phi",
            help: "base of the probability's exponent",
            default: Value::Number(1.001),
            range: Range::Between(1.0, 2.0),
        },
        Parameter {
            name: "period",
            help: "time between two updates of the price, at least 1 us",
            default: Value::Duration(Duration::from_millis(10)),
            range: Range::Any,
        },
        Parameter {
            name: "inw",
            help: "weight of the latest period in the arrival rate",
            default: Value::Number(1.0),
            range: Range::Between(0.001, 1.0),
        },
        early::mark("departure"),
        early::ECN,
        red::MEAN_PACKET,
    ],
};

/// REM's probability, from a price that is worked out period by period.
///
/// The backlog and the rate are in packets: packets themselves, or bytes over `mean_packet`.
#[derive(Debug, Clone)]
pub struct Rem {
    target: f64,
    gamma: f64,
    alpha: f64,
    phi: f64,
    inw: f64,
    period: Duration,
    mean_packet: f64,
    counts_packets: bool,
    /// Packets that the link sends in a period; without limit before a rate is told.
    capacity: f64,
    next_update: Instant,
    /// Arrivals since the last update.
    arrived: f64,
    /// Arrivals per period, smoothed.
    rate: f64,
    queue: f64,
    price: f64,
    probability: Probability,
}

impl Rem {
    /// With `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        let mean_packet = arguments.bytes("mean_packet").as_f64().max(1.0);
        let target = match (arguments.bytes("target"), buffer) {
            (Bytes::ZERO, Buffer::Packets(limit)) => 0.5 * limit as f64,
            (Bytes::ZERO, Buffer::Bytes(limit)) => 0.5 * limit.as_f64() / mean_packet,
            (Bytes::ZERO, Buffer::Unbounded) => UNBOUNDED_TARGET,
            (target, _) => target.as_f64() / mean_packet,
        };
        let period = arguments.duration("period").max(Duration::from_micros(1));
        Self {
            target,
            gamma: arguments.number("gamma"),
            alpha: arguments.number("alpha"),
            phi: arguments.number("phi"),
            inw: arguments.number("inw"),
            period,
            mean_packet,
            counts_packets: arguments.choice("mode") == "packets",
            capacity: f64::INFINITY,
            next_update: Instant::ZERO + period,
            arrived: 0.0,
            rate: 0.0,
            queue: 0.0,
            price: 0.0,
            probability: Probability::ZERO,
        }
    }

    fn length(&self, backlog: Backlog) -> f64 {
        if self.counts_packets { backlog.packets as f64 } else { backlog.bytes.as_f64() / self.mean_packet }
    }

    /// Makes the updates that were due by `now`. Nothing happened at the queue since the last call, so no timer
    /// is needed.
    fn catch_up(&mut self, now: Instant) {
        if now < self.next_update {
            return;
        }
        let late = now.saturating_since(self.next_update).as_nanos() / self.period.as_nanos();
        self.next_update += self.period * (late + 1);
        let arrived = core::mem::take(&mut self.arrived);
        self.rate += self.inw * (arrived - self.rate);
        self.raise(self.rate, 1.0);
        if late > 0 {
            // Without arrivals the smoothed rate decays, and the price rises by less each time, by
            // the sum of a geometric series; it never comes back from zero.
            let periods = late as f64;
            let left = libm::pow(1.0 - self.inw, periods);
            self.raise(self.rate * (1.0 - left) * (1.0 - self.inw) / self.inw, periods);
            self.rate *= left;
        }
        // Eq. 2.
        self.probability = Probability::clamped(1.0 - libm::pow(self.phi, -self.price));
    }

    /// Eq. 1, with x(t) - c(t) for the rate mismatch, summed over so many periods of `arrivals` in all.
    fn raise(&mut self, arrivals: f64, periods: f64) {
        let mismatch = arrivals + periods * (self.alpha * (self.queue - self.target) - self.capacity);
        self.price = (self.price + self.gamma * mismatch).max(0.0);
    }
}

impl EarlyDetection for Rem {
    fn advise(&mut self, arrival: &Arrival, _random: &mut RandomStream) -> Advice {
        self.catch_up(arrival.now);
        self.arrived += if self.counts_packets { 1.0 } else { arrival.size.as_f64() / self.mean_packet };
        Advice::Choose(self.probability)
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        self.queue = self.length(match verdict {
            Verdict::Drop(_) => arrival.backlog,
            Verdict::Pass | Verdict::Mark => {
                Backlog { packets: arrival.backlog.packets + 1, bytes: arrival.backlog.bytes + arrival.size }
            }
        });
    }

    fn on_departure(&mut self, now: Instant, _size: Bytes, left: Backlog) {
        self.catch_up(now);
        self.queue = self.length(left);
    }

    fn departure_mark(&self) -> Probability {
        self.probability
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.catch_up(now);
        self.capacity = rate.as_bps_f64() / 8.0 * self.period.as_secs_f64() / self.mean_packet;
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("price", self.price);
        out.value("mark_probability", self.probability.get());
    }
}

/// REM for a queue with room for `buffer`, with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn early(arguments: &Arguments, buffer: Buffer) -> Early<Rem> {
    Early {
        detection: Rem::new(arguments, buffer),
        spacing: Spacing::new(Distances::Independent),
        ecn: arguments.flag("ecn"),
        marks_departures: arguments.choice("mark") == "departure",
    }
}

/// The target of a buffer without limit in packets, as in ns-2 and in the paper's simulations.
const UNBOUNDED_TARGET: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::early::EarlyPolicy;
    use crate::queue::policy::PolicyQueue;
    use crate::queue::testing::{TestPacket, arguments};
    use crate::queue::{Ecn, QueueDiscipline};

    const MS: Duration = Duration::from_millis(1);

    /// A target of 20 packets of 1000 bytes, 8 Mbit/s: 10 packets a period of 10 ms.
    fn rem(settings: &str) -> Rem {
        let settings = format!(":target=20kB{settings}");
        let mut rem = Rem::new(&arguments(&DESCRIPTION, &settings), Buffer::Unbounded);
        rem.on_link_rate(Instant::ZERO, Rate::from_bps(8_000_000));
        rem
    }

    fn arrival(now: Duration, waiting: u64, size: u64) -> Arrival {
        let backlog = Backlog { packets: waiting, bytes: Bytes::new(1_000 * waiting) };
        Arrival { backlog, size: Bytes::new(size), ..Arrival::at_empty_queue(Instant::ZERO + now) }
    }

    /// `count` arrivals at once, the last of which leaves `waiting` packets.
    fn arrive(rem: &mut Rem, now: Duration, count: u64, waiting: u64) {
        for _ in 0..count {
            let arrival = arrival(now, waiting - 1, 1_000);
            rem.advise(&arrival, &mut RandomStream::new(1, ""));
            rem.on_verdict(&arrival, Verdict::Pass);
        }
    }

    fn price(rem: &mut Rem, now: Duration) -> f64 {
        rem.catch_up(Instant::ZERO + now);
        rem.price
    }

    fn assert_close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} {right}");
    }

    /// By hand: price += 0.001 (x + 0.1 (q - 20) - 10).
    #[test]
    fn the_price_rises_with_what_arrives_above_capacity_and_waits_above_the_target() {
        let mut rem = rem("");
        arrive(&mut rem, MS, 30, 60);
        assert_close(price(&mut rem, MS * 9), 0.0);
        assert_close(price(&mut rem, MS * 10), 0.024);
        arrive(&mut rem, MS * 11, 12, 70);
        assert_close(price(&mut rem, MS * 20), 0.024 + 0.007);
        assert_close(rem.probability.get(), 1.0 - libm::exp(-0.031 * libm::log(1.001)));
        rem.on_departure(Instant::ZERO + MS * 21, Bytes::new(1_000), Backlog::default());
        assert_close(price(&mut rem, MS * 30), 0.031 - 0.012);
        assert_close(price(&mut rem, MS * 50), 0.0);
    }

    #[test]
    fn updates_that_were_not_asked_for_in_time_are_as_if_made_one_by_one() {
        for inw in ["1", "0.3", "0.02"] {
            let mut lazy = rem(&format!(":inw={inw}:gamma=0.5"));
            let mut eager = rem(&format!(":inw={inw}:gamma=0.5"));
            for rem in [&mut lazy, &mut eager] {
                arrive(rem, MS, 500, 40);
            }
            let (mut highest, mut prices) = (0.0_f64, Vec::new());
            for period in 1..=1_000 {
                prices.push(price(&mut eager, MS * (10 * period)));
                highest = highest.max(eager.price);
            }
            assert!(highest > 4.0);
            for period in [1, 2, 5, 300, 1_000] {
                assert_close(price(&mut lazy, MS * (10 * period)), prices[period as usize - 1]);
            }
            assert_close(lazy.rate, eager.rate);
        }
    }

    #[test]
    fn an_unlimited_link_never_marks_and_ten_idle_days_take_no_time() {
        let mut unlimited = Rem::new(&arguments(&DESCRIPTION, ":gamma=1"), Buffer::Packets(100));
        arrive(&mut unlimited, MS, 90, 90);
        assert_close(price(&mut unlimited, MS * 10), 0.0);
        let mut idle = rem(":gamma=1:period=0ms");
        arrive(&mut idle, Duration::ZERO, 90, 90);
        let days = price(&mut idle, Duration::from_secs(864_000));
        assert_close(days / (864e9 * (7.0 - 0.001) + 90.0), 1.0);
        assert_eq!(idle.probability, Probability::ONE);
    }

    #[test]
    fn without_a_target_it_is_half_of_the_buffer() {
        let target = |settings, buffer| Rem::new(&arguments(&DESCRIPTION, settings), buffer).target;
        assert_close(target("", Buffer::Bytes(Bytes::new(150_000))), 75.0);
        assert_close(target("", Buffer::Packets(144)), 72.0);
        assert_close(target("", Buffer::Unbounded), 20.0);
        assert_close(target(":target=60kB:mean_packet=1500B", Buffer::Packets(144)), 40.0);
    }

    #[test]
    fn in_packet_mode_small_packets_count_as_much_as_large_ones() {
        let arrived = |settings| {
            let mut rem = rem(settings);
            rem.advise(&arrival(MS, 3, 250), &mut RandomStream::new(1, ""));
            rem.arrived
        };
        assert_close(arrived(""), 0.25);
        assert_close(arrived(":mode=packets"), 1.0);
    }

    /// Offers 1000 packets at a probability of 1/2 and lets them leave at 1/4: how many were dropped and
    /// marked.
    fn treated(settings: &str, ecn: Ecn) -> (usize, usize) {
        let settings = arguments(&DESCRIPTION, settings);
        let (early, random) = (early(&settings, Buffer::Unbounded), RandomStream::new(5, ""));
        let mut queue = PolicyQueue::<TestPacket, _>::new(EarlyPolicy::new(early, Buffer::Unbounded, random));
        let hold = |queue: &mut PolicyQueue<_, EarlyPolicy<Rem>>, p| {
            queue.policy_mut().detection_mut().probability = Probability::clamped(p);
            queue.policy_mut().detection_mut().next_update = Instant::MAX;
        };
        hold(&mut queue, 0.5);
        let mut dropped = Vec::new();
        for id in 0..1_000 {
            queue.enqueue(Instant::ZERO, TestPacket { ecn, ..TestPacket::new(id, 1_000) }, &mut dropped);
        }
        hold(&mut queue, 0.25);
        let sent = std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut Vec::new()));
        (dropped.len(), sent.filter(|packet| packet.ecn == Ecn::CongestionExperienced).count())
    }

    #[test]
    fn capable_packets_are_marked_as_they_leave_and_others_dropped_as_they_come() {
        let half = |count: usize| (440..560).contains(&count);
        let quarter = |count: usize| (200..300).contains(&count);
        let (dropped, marked) = treated("", Ecn::Capable);
        assert!(dropped == 0 && quarter(marked), "{dropped} {marked}");
        let (dropped, marked) = treated(":mark=arrival", Ecn::Capable);
        assert!(dropped == 0 && half(marked), "{dropped} {marked}");
        for (settings, ecn) in [
            ("", Ecn::NotCapable),
            (":mark=arrival", Ecn::NotCapable),
            (":ecn=false", Ecn::Capable),
            (":mark=arrival:ecn=false", Ecn::Capable),
        ] {
            let (dropped, marked) = treated(settings, ecn);
            assert!(half(dropped) && marked == 0, "{settings} {dropped} {marked}");
        }
    }
}
