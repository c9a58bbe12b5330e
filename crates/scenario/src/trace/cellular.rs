//! Synthetic cellular links.

use suimon_algorithms::RandomStream;
use suimon_model::Capacity;
use suimon_units::{Duration, Rate};

use super::Opportunities;
use crate::error::{Problem, ScenarioError};

/// Time in which the rate is taken as constant.
const STEP: Duration = Duration::from_millis(20);
/// Longest trace: an hour.
const MAX_INTERVAL: Duration = Duration::from_secs(3_600);
/// Fastest mean: an hour of it is thirty million opportunities.
const FASTEST: Rate = Rate::from_bps(100_000_000);
/// Widest deviation of the logarithm; beyond it a few peaks carry everything.
const WIDEST: f64 = 2.0;

/// A cell seen from a moving phone: a rate that wanders, and outages.
///
/// The logarithm of the rate is an Ornstein-Uhlenbeck process (Uhlenbeck, Ornstein 1930), so that the
/// rate is log-normal and forgets itself over the correlation time. Outages begin as a Poisson process
/// and last exponentially long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellularModel {
    /// Mean rate outside outages.
    pub mean_rate: Rate,
    /// Standard deviation of the natural logarithm of the rate, from 0 to 2.
    pub deviation: f64,
    /// After this time the logarithm's correlation with itself has fallen to 1/e.
    pub correlation_time: Duration,
    /// Mean time from the end of an outage to the next.
    pub time_between_outages: Duration,
    /// Mean length of an outage.
    pub outage_length: Duration,
}

impl CellularModel {
    /// Like 3G in a moving car, by the order of magnitude of what measurements show: 2 Mbit/s on
    /// average over all, changing within seconds by a factor of two, and every ten seconds an outage of
    /// about one.
    #[must_use]
    pub const fn driving_3g() -> Self {
        Self {
            mean_rate: Rate::from_bps(2_200_000),
            deviation: 0.8,
            correlation_time: Duration::from_secs(8),
            time_between_outages: Duration::from_secs(10),
            outage_length: Duration::from_millis(900),
        }
    }

    /// The models that have a name, by it. Orders of magnitude that measurement studies of such networks report, not
    /// fits to any; outages are the gaps of handovers.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("3g-driving", Self::driving_3g()),
        ("lte-walking", Self::like(20, 0.5, 2_000, (60_000, 50))),
        ("lte-driving", Self::like(12, 0.9, 3_000, (15_000, 100))),
        ("5g-walking", Self::like(80, 0.6, 1_500, (30_000, 40))),
        ("5g-driving", Self::like(60, 1.0, 1_000, (10_000, 80))),
    ];

    /// The model called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, model)| model)
    }

    const fn like(mbit: u64, deviation: f64, correlation_ms: u64, (every_ms, gap_ms): (u64, u64)) -> Self {
        Self {
            mean_rate: Rate::from_bps(mbit * 1_000_000),
            deviation,
            correlation_time: Duration::from_millis(correlation_ms),
            time_between_outages: Duration::from_millis(every_ms),
            outage_length: Duration::from_millis(gap_ms),
        }
    }

    /// A trace of about `length`; the same stream gives the same trace on every platform.
    ///
    /// # Errors
    /// When a quantity of the model is out of range, `length` is longer than an hour, or nothing can be
    /// sent in it.
    pub fn generate(
        &self,
        length: Duration,
        stream: &mut RandomStream,
    ) -> Result<Opportunities, ScenarioError> {
        self.check(length)?;
        let steps = length.as_nanos() / STEP.as_nanos();
        // The process over one step exactly: x' = decay x + sqrt(1 - decay^2) deviation n.
        let decay = libm::exp(-STEP.as_secs_f64() / self.correlation_time.as_secs_f64());
        let kick = self.deviation * libm::sqrt(1.0 - decay * decay);
        // The mean of a log-normal lies above its median by half the variance.
        let median = self.mean_rate.as_bps_f64() * libm::exp(-self.deviation * self.deviation / 2.0);
        let mut logarithm = self.deviation * stream.standard_normal();
        let mut outage_from = stream.exponential(self.time_between_outages);
        let mut outage_to = outage_from + stream.exponential(self.outage_length);
        let mut bits = 0.0;
        let mut times = Vec::new();
        for step in 0..steps {
            let now = STEP * step;
            logarithm = decay * logarithm + kick * stream.standard_normal();
            if now >= outage_to {
                outage_from = now + stream.exponential(self.time_between_outages);
                outage_to = outage_from + stream.exponential(self.outage_length);
            }
            if now >= outage_from {
                continue;
            }
            let rate = median * libm::exp(logarithm);
            let before = bits;
            bits += rate * STEP.as_secs_f64();
            let size = Capacity::OPPORTUNITY.as_f64() * 8.0;
            let mut next = libm::floor(before / size) + 1.0;
            while next * size <= bits {
                times.push(now + Duration::from_secs_f64((next * size - before) / rate));
                next += 1.0;
            }
        }
        Opportunities::new(times)
    }

    fn check(&self, length: Duration) -> Result<(), ScenarioError> {
        let refuse = |key: &str, text: String, accepted: &str| {
            let problem = Problem::Value { text, reason: "is out of range", accepted: accepted.to_owned() };
            Err(ScenarioError::new("cellular model", problem).at_key(key))
        };
        if self.mean_rate == Rate::ZERO || self.mean_rate > FASTEST {
            return refuse("mean_rate", self.mean_rate.to_string(), "more than 0 to 100 Mbit/s");
        }
        if !(0.0..=WIDEST).contains(&self.deviation) {
            return refuse("deviation", self.deviation.to_string(), "0 to 2");
        }
        for (key, time) in [
            ("correlation_time", self.correlation_time),
            ("time_between_outages", self.time_between_outages),
            ("outage_length", self.outage_length),
            ("length", length),
        ] {
            if time == Duration::ZERO || time > MAX_INTERVAL {
                return refuse(key, time.to_string(), "more than 0 s to an hour");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn generate(model: &CellularModel, seconds: u64, seed: u64) -> Opportunities {
        let mut stream = RandomStream::new(seed, "cellular-3g.down");
        model.generate(Duration::from_secs(seconds), &mut stream).unwrap()
    }

    #[test]
    fn the_trace_that_ships_is_the_one_that_is_generated() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/cellular-3g.down"));
        let text = generate(&CellularModel::driving_3g(), 120, 20).to_text();
        if std::env::var_os("SUIMON_WRITE_TRACES").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let shipped = std::fs::read_to_string(path).unwrap();
        assert!(shipped == text, "traces/cellular-3g.down differs; SUIMON_WRITE_TRACES=1 writes it anew");
        assert!(text.len() < 150_000, "{} bytes", text.len());
    }

    #[test]
    fn over_a_long_time_the_mean_is_as_asked_for() {
        let (second, none) = (Duration::from_secs(1), Duration::from_nanos(1));
        let model =
            CellularModel { correlation_time: second, outage_length: none, ..CellularModel::driving_3g() };
        let rate = generate(&model, 3_600, 1).mean_rate().as_bps_f64();
        let asked = model.mean_rate.as_bps_f64();
        assert!((rate / asked - 1.0).abs() < 0.05, "{rate} bit/s, asked for {asked}");
    }

    #[test]
    fn every_named_model_gives_a_trace_of_about_its_rate() {
        for (name, model) in CellularModel::NAMED {
            let rate = generate(&model, 600, 3).mean_rate().as_bps_f64();
            let asked = model.mean_rate.as_bps_f64();
            assert!((0.6..1.3).contains(&(rate / asked)), "{name}: {rate} bit/s, asked for {asked}");
            assert_eq!(CellularModel::named(name), Some(model));
        }
        assert_eq!(CellularModel::named("6g"), None);
    }

    #[test]
    fn outages_show_as_gaps() {
        let trace = generate(&CellularModel::driving_3g(), 3_600, 1);
        let half = Duration::from_millis(500);
        let gaps = trace.times().windows(2).filter(|pair| pair[1] - pair[0] > half).count();
        // 3600 s / 10.9 s = 330 outages, of which exp(-0.5 / 0.9) = 57 % last longer than half a second.
        assert!((150..230).contains(&gaps), "{gaps}");
    }

    #[test]
    fn a_steady_model_gives_a_steady_link() {
        let model = CellularModel {
            deviation: 0.0,
            time_between_outages: MAX_INTERVAL,
            ..CellularModel::driving_3g()
        };
        let trace = generate(&model, 10, 1);
        let longest = trace.times().windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        // 12 kbit at 2.2 Mbit/s is 5.5 ms, in whole milliseconds 6.
        assert_eq!(longest, Duration::from_millis(6));
    }

    #[test]
    fn models_out_of_range_are_refused() {
        let model = CellularModel::driving_3g();
        let message = |model: CellularModel, length| {
            model.generate(length, &mut RandomStream::new(1, "x")).unwrap_err().to_string()
        };
        let minute = Duration::from_secs(60);
        assert!(message(CellularModel { deviation: f64::NAN, ..model }, minute).contains("deviation"));
        assert!(message(CellularModel { mean_rate: Rate::MAX, ..model }, minute).contains("mean_rate"));
        assert!(
            message(CellularModel { correlation_time: Duration::ZERO, ..model }, minute)
                .contains("correlation_time")
        );
        assert!(message(model, Duration::MAX).contains("length"));
        assert!(message(model, Duration::from_nanos(1)).contains("missing"));
    }
}
