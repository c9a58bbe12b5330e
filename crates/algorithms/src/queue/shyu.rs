//! Shyu-AQM (Shyu, Chen, Ranasingha: Router Active Queue Management for Both Multimedia and Best-Effort
//! Traffic Flows, IEEE ICME, 2004): RED that weighs its probability by the connection's round-trip time,
//! measured once as the connection opens.
//!
//! The description here is that of Hoshihara, Koga, Watanabe; the formula is our own.

use alloc::collections::BTreeMap;

use suimon_units::{Bytes, Duration, Instant, Probability};

use super::early::{self, Advice, Early, EarlyDetection};
use super::policy::{Arrival, Verdict};
use super::red::{self, Red};
use super::{Backlog, Buffer, FlowId};
use crate::parameters::{Arguments, Parameter, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "shyu",
    summary: "RED that marks a connection the more often the shorter its first round-trip time was",
    source: "Shyu, Chen, Ranasingha: Router Active Queue Management, 2004; formula our own",
    colour: "#b6992d",
    parameters: &[
        red::MODE,
        red::MIN_TH,
        red::MAX_TH,
        red::MAX_P,
        Parameter { default: Value::Number(0.0), ..red::W_Q },
        red::GENTLE,
        early::ECN,
        red::WAIT,
        red::WEIGH_SIZES,
        red::MEAN_PACKET,
    ],
};

/// RED's probability, weighed by the round-trip time of the arriving packet's connection.
#[derive(Debug, Clone)]
pub struct Shyu {
    red: Red,
    connections: BTreeMap<FlowId, Opening>,
    /// Mean of the round-trip times of arriving packets, in seconds; `None` until one is known.
    mean_rtt: Option<f64>,
}

/// The opening of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Opening {
    /// Its SYN came at this time.
    Began(Instant),
    /// The time from the SYN to the next packet.
    Measured(Duration),
}

impl Shyu {
    /// With `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        Self { red: Red::new(arguments, buffer), connections: BTreeMap::new(), mean_rtt: None }
    }

    /// The round-trip time of the connection, where its opening was seen: the time between the SYN and
    /// the packet after it (Jiang, Dovrolis 2002).
    fn rtt(&mut self, arrival: &Arrival) -> Option<Duration> {
        if arrival.opens_connection {
            self.connections.insert(arrival.flow, Opening::Began(arrival.now));
            return None;
        }
        let opening = self.connections.get_mut(&arrival.flow)?;
        match *opening {
            Opening::Measured(rtt) => Some(rtt),
            Opening::Began(then) => {
                let rtt = arrival.now.saturating_since(then);
                *opening = Opening::Measured(rtt);
                Some(rtt)
            }
        }
    }

    /// The factor of the probability: the mean round-trip time over this one.
    fn weight(&mut self, arrival: &Arrival) -> f64 {
        let Some(rtt) = self.rtt(arrival).filter(|rtt| *rtt > Duration::ZERO) else { return 1.0 };
        let rtt = rtt.as_secs_f64();
        let mean = self.mean_rtt.map_or(rtt, |mean| mean + MEAN_GAIN * (rtt - mean));
        self.mean_rtt = Some(mean);
        mean / rtt
    }
}

impl EarlyDetection for Shyu {
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice {
        let weight = self.weight(arrival);
        match self.red.advise(arrival, random) {
            Advice::Choose(p_b) => Advice::Choose(Probability::clamped(weight * p_b.get())),
            advice => advice,
        }
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        self.red.on_verdict(arrival, verdict);
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.red.on_departure(now, size, left);
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.red.probe(out);
        if let Some(mean) = self.mean_rtt {
            out.value("mean_rtt_ms", 1e3 * mean);
        }
        out.value("connections", self.connections.len() as f64);
    }
}

/// Shyu-AQM for a queue with room for `buffer`, with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn early(arguments: &Arguments, buffer: Buffer) -> Early<Shyu> {
    Early {
        detection: Shyu::new(arguments, buffer),
        spacing: red::spacing(arguments),
        ecn: arguments.flag("ecn"),
        marks_departures: false,
    }
}

/// Weight of one packet's round-trip time in the mean: some hundred packets, a second or less on a link
/// that carries a thousand a second.
const MEAN_GAIN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::arguments;

    const MS: Duration = Duration::from_millis(1);

    fn shyu() -> Shyu {
        let settings = ":min_th=10kB:max_th=20kB:w_q=1";
        let mut shyu = Shyu::new(&arguments(&DESCRIPTION, settings), Buffer::Unbounded);
        // The first arrival of a queue counts as after idle time, which clears the average.
        shyu.on_departure(Instant::ZERO, Bytes::ZERO, Backlog { packets: 1, bytes: Bytes::new(1) });
        shyu
    }

    /// The advice for a packet of `flow` at `millis` that finds 15 kB waiting: p_b is 0.05.
    fn advice(shyu: &mut Shyu, flow: u32, millis: u64, opens_connection: bool) -> Advice {
        let backlog = Backlog { packets: 15, bytes: Bytes::new(15_000) };
        let empty = Arrival::at_empty_queue(Instant::ZERO + MS * millis);
        let arrival = Arrival { flow: FlowId(flow), opens_connection, backlog, ..empty };
        shyu.advise(&arrival, &mut RandomStream::new(1, ""))
    }

    fn choose(p: f64) -> Advice {
        Advice::Choose(Probability::clamped(p))
    }

    #[test]
    fn the_first_round_trip_time_is_kept_whatever_comes_later() {
        let mut shyu = shyu();
        advice(&mut shyu, 1, 0, true);
        advice(&mut shyu, 1, 28, false);
        advice(&mut shyu, 1, 999, false);
        assert_eq!(shyu.connections[&FlowId(1)], Opening::Measured(MS * 28));
        // A retransmitted SYN begins anew.
        advice(&mut shyu, 1, 3_000, true);
        advice(&mut shyu, 1, 3_050, false);
        assert_eq!(shyu.connections[&FlowId(1)], Opening::Measured(MS * 50));
    }

    /// By hand: the mean is 40 ms, then 0.99 * 40 + 0.01 * 80 = 40.4 ms.
    #[test]
    fn a_connection_of_twice_the_mean_is_marked_half_as_often() {
        let mut shyu = shyu();
        let mut p = |flow, millis, opens| match advice(&mut shyu, flow, millis, opens) {
            Advice::Choose(p) => p.get(),
            other => panic!("{other:?}"),
        };
        p(1, 0, true);
        assert!((p(1, 40, false) - 0.05).abs() < 1e-12);
        p(2, 100, true);
        assert!((p(2, 180, false) - 0.05 * 40.4 / 80.0).abs() < 1e-12);
        assert!((p(1, 190, false) - 0.05 * 40.396 / 40.0).abs() < 1e-12);
    }

    #[test]
    fn connections_whose_opening_was_not_seen_are_marked_as_red_would() {
        let mut shyu = shyu();
        assert_eq!(advice(&mut shyu, 7, 5, false), choose(0.05));
        assert_eq!(advice(&mut shyu, 7, 6, true), choose(0.05), "a SYN itself");
        assert_eq!(advice(&mut shyu, 7, 6, false), choose(0.05), "no time passed");
        assert_eq!(shyu.mean_rtt, None);
    }
}
