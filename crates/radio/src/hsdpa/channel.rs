//! The channel of one terminal and its reports, TTI by TTI.

use suimon_algorithms::RandomStream;
use suimon_units::Decibels;

use super::adaptation::Cqi;
use super::fading::Fading;
use super::{TTI, UserParameters};

/// One TTI of one terminal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reception {
    /// Signal-to-interference ratio of the block in this TTI, after combining, not in decibels.
    pub sinr: f64,
    /// The latest report that has arrived.
    pub report: Report,
}

/// A report of a terminal to the cell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// The indicator.
    pub cqi: Cqi,
    /// The ratio as the terminal measured it, with its error, in decibels.
    pub sinr_db: f64,
}

/// The channel to one terminal.
#[derive(Debug, Clone)]
pub struct Channel {
    fading: Fading,
    /// rho: share of the cell's power, as a factor.
    power: f64,
    /// 1 + kappa.
    interference: f64,
    /// g: noise and other cells over this cell's power.
    noise: f64,
    error_db: f64,
    error_hold: u64,
    error: RandomStream,
    /// Number of the period whose error `error_now` is, counted from one.
    error_period: u64,
    error_now: f64,
    /// In TTIs.
    delay: u64,
    period: u64,
    /// Reports that may still come into effect, by the TTI in which they were measured.
    reports: std::collections::VecDeque<(u64, Report)>,
    report: Report,
    /// The TTI after the one computed last.
    next: u64,
}

impl Channel {
    /// The channel of a terminal; `random` gives it streams of its own by name.
    #[must_use]
    pub fn new(parameters: &UserParameters, random: &mut dyn FnMut(&str) -> RandomStream) -> Self {
        let factor = |ratio: Decibels| libm::pow(10.0, ratio.get() / 10.0);
        let ttis = |time: suimon_units::Duration| time.as_nanos().div_ceil(TTI.as_nanos());
        Self {
            fading: Fading::new(parameters.profile, TTI, &mut random("fading")),
            power: factor(parameters.power),
            interference: 1.0 + parameters.self_interference(),
            noise: factor(-parameters.geometry),
            error_db: parameters.cqi_error.get(),
            error_hold: ttis(parameters.cqi_error_hold).max(1),
            error: random("cqi"),
            error_period: 0,
            error_now: 0.0,
            delay: ttis(parameters.cqi_delay),
            period: ttis(parameters.cqi_period).max(1),
            reports: std::collections::VecDeque::new(),
            report: Report::default(),
            next: 0,
        }
    }

    /// TTI number `n`, which is later than all asked for before.
    pub fn at(&mut self, n: u64) -> Reception {
        // A report that is in effect now was measured at most so long ago.
        let memory = self.delay + self.period;
        let first = n.saturating_sub(if memory > 1 { memory } else { 0 });
        for tti in self.next.max(first)..n {
            if tti.is_multiple_of(self.period) {
                let sinr = self.sinr(tti);
                self.measure(tti, sinr);
            }
        }
        let sinr = self.sinr(n);
        if n.is_multiple_of(self.period) {
            self.measure(n, sinr);
        }
        self.next = n + 1;
        while let Some((tti, report)) = self.reports.front().copied()
            && tti + self.delay <= n
        {
            self.report = report;
            self.reports.pop_front();
        }
        Reception { sinr, report: self.report }
    }

    /// Maximal-ratio combining of every path, each of which the others and the noise disturb:
    /// `rho sum a_l / ((1 + kappa) A - a_l + g)`.
    fn sinr(&mut self, n: u64) -> f64 {
        let powers = self.fading.powers(n);
        let disturbance = self.interference * powers.iter().sum::<f64>() + self.noise;
        self.power * powers.iter().map(|power| power / (disturbance - power)).sum::<f64>()
    }

    fn measure(&mut self, n: u64, sinr: f64) {
        let period = n / self.error_hold + 1;
        while self.error_period < period {
            self.error_now = self.error_db * self.error.standard_normal();
            self.error_period += 1;
        }
        let sinr_db = 10.0 * libm::log10(sinr) + self.error_now;
        self.reports.push_back((n, Report { cqi: Cqi::of_sinr_db(sinr_db), sinr_db }));
    }
}

#[cfg(test)]
mod tests {
    use suimon_units::{Duration, Probability};

    use super::*;

    fn channel(parameters: &UserParameters) -> Channel {
        Channel::new(parameters, &mut |what| RandomStream::new(1, what))
    }

    fn parameters(profile: &str) -> UserParameters {
        UserParameters::new(profile.parse().unwrap(), Decibels::new(5.0))
    }

    #[test]
    fn one_path_without_interference_has_the_ratio_computed_by_hand() {
        // ST at 5 dB: a = 0.8893, 0.0953, 0.0107, 0.0047; g = 0.31623; rho = 0.80353.
        let a = [0.889345, 0.095295, 0.010692, 0.004667];
        let expected: f64 = 0.803_53 * a.iter().map(|a| a / (1.0 - a + 0.316_23)).sum::<f64>();
        let got = channel(&parameters("ST")).at(0).sinr;
        assert!((got / expected - 1.0).abs() < 1e-4, "{got}, expected {expected}");
    }

    #[test]
    fn a_late_report_is_the_early_one_of_before() {
        let exact = UserParameters { cqi_error: Decibels::ZERO, ..parameters("VA30") };
        let late = UserParameters { cqi_delay: Duration::from_millis(6), ..exact.clone() };
        let (mut exact, mut late) = (channel(&exact), channel(&late));
        let early: Vec<_> = (0..500).map(|n| exact.at(n).report).collect();
        let delayed: Vec<_> = (0..500).map(|n| late.at(n).report).collect();
        assert_eq!(delayed[3..], early[..497]);
        assert_eq!(delayed[0].cqi.get(), 0, "nothing is known before the first report");
    }

    #[test]
    fn reports_hold_for_their_period_and_a_jump_knows_what_a_walk_knows() {
        let parameters = UserParameters {
            cqi_period: Duration::from_millis(10),
            cqi_delay: Duration::from_millis(6),
            ..parameters("VA30")
        };
        let (mut walk, mut jump) = (channel(&parameters), channel(&parameters));
        let walked: Vec<_> = (0..4_000).map(|n| walk.at(n)).collect();
        for n in (8..4_000).filter(|n| n % 5 != 3) {
            assert_eq!(walked[n].report, walked[n - 1].report, "TTI {n}");
        }
        for n in [3, 4, 777, 1_024, 3_333] {
            assert_eq!(jump.at(n as u64).report.cqi, walked[n].report.cqi, "TTI {n}");
        }
    }

    #[test]
    fn more_self_interference_and_less_geometry_are_worse() {
        let mean = |parameters: &UserParameters| {
            let mut channel = channel(parameters);
            (0..5_000).map(|n| channel.at(n).sinr).sum::<f64>() / 5_000.0
        };
        let base = parameters("VA30");
        let clean = UserParameters { self_interference: Some(Probability::ZERO), ..base.clone() };
        let far = UserParameters { geometry: Decibels::new(-5.0), ..base.clone() };
        assert!(mean(&clean) > mean(&base) && mean(&base) > mean(&far));
    }
}
