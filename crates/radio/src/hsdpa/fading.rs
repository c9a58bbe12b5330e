//! Rayleigh fading of every path by sums of sinusoids.
//!
//! Zheng, Xiao: "Simulation Models With Correct Statistical Properties for Rayleigh Fading Channels", IEEE
//! Transactions on Communications 51(6), 2003, eq. (6). With M sinusoids, U(-pi, pi) phases and
//! `al_k = (2 pi k - pi + theta) / 4M`, both quadratures have the autocorrelation of Clarke's model, `J0(2 pi fd t)`.

use std::f64::consts::{PI, TAU};

use suimon_algorithms::RandomStream;
use suimon_units::Duration;

use super::profile::Profile;

/// M: sinusoids of each quadrature.
const SINUSOIDS: usize = 16;
/// Oscillators of one path: both quadratures.
const OSCILLATORS: usize = 2 * SINUSOIDS;
/// Steps after which the oscillators are computed anew, so that rounding does not add up.
const ANCHOR_EVERY: u64 = 256;
/// Partial sums of a sum, so that a processor may add several at once and yet always gives the same bits.
const LANES: usize = 4;

/// The power of every path over time, in steps of one TTI, each at the middle of its TTI.
#[derive(Debug, Clone)]
pub struct Fading {
    paths: Vec<Path>,
    /// The latest result of [`Fading::powers`]: the power of each path.
    powers: Vec<f64>,
    /// The step for which `powers` is.
    position: Option<u64>,
    is_static: bool,
}

/// One path: `cos` of every oscillator by the recurrence `cos((n+1) w) = 2 cos(w) cos(n w) - cos((n-1) w)`.
#[derive(Debug, Clone)]
struct Path {
    /// Mean power over M.
    scale: f64,
    now: [f64; OSCILLATORS],
    before: [f64; OSCILLATORS],
    twice_cos: [f64; OSCILLATORS],
    /// Radians a step.
    frequency: [f64; OSCILLATORS],
    phase: [f64; OSCILLATORS],
}

impl Fading {
    /// The paths of `profile` in steps of `tti`; a new `stream` is another place in the same environment.
    #[must_use]
    pub fn new(profile: Profile, tti: Duration, stream: &mut RandomStream) -> Self {
        let powers = profile.powers();
        let shift = TAU * profile.doppler_hz() * tti.as_secs_f64();
        let paths = if profile.is_static() {
            Vec::new()
        } else {
            powers.iter().map(|power| Path::new(*power, shift, stream)).collect()
        };
        Self { paths, powers, position: None, is_static: profile.is_static() }
    }

    /// The power of each path in step `n`, as a share of the mean power of all together. Cheap for the step
    /// after the one asked for last.
    pub fn powers(&mut self, n: u64) -> &[f64] {
        if !self.is_static && self.position != Some(n) {
            let follows = n > 0 && self.position == Some(n - 1) && !n.is_multiple_of(ANCHOR_EVERY);
            for (path, power) in self.paths.iter_mut().zip(&mut self.powers) {
                if follows {
                    path.step();
                } else {
                    path.anchor(n);
                }
                *power = path.power();
            }
            self.position = Some(n);
        }
        &self.powers
    }
}

impl Path {
    fn new(power: f64, shift: f64, stream: &mut RandomStream) -> Self {
        let mut angle = || PI * (2.0 * stream.uniform() - 1.0);
        let theta = angle();
        let mut frequency = [0.0; OSCILLATORS];
        for k in 0..SINUSOIDS {
            let arrival = (TAU * (k + 1) as f64 - PI + theta) / (4 * SINUSOIDS) as f64;
            frequency[k] = shift * libm::cos(arrival);
            frequency[SINUSOIDS + k] = shift * libm::sin(arrival);
        }
        Self {
            scale: power / SINUSOIDS as f64,
            now: [0.0; OSCILLATORS],
            before: [0.0; OSCILLATORS],
            twice_cos: frequency.map(|frequency| 2.0 * libm::cos(frequency)),
            frequency,
            phase: std::array::from_fn(|_| angle()),
        }
    }

    fn anchor(&mut self, n: u64) {
        let middle = n as f64 + 0.5;
        for k in 0..OSCILLATORS {
            self.now[k] = libm::cos(self.frequency[k] * middle + self.phase[k]);
            self.before[k] = libm::cos(self.frequency[k] * (middle - 1.0) + self.phase[k]);
        }
    }

    fn step(&mut self) {
        for k in 0..OSCILLATORS {
            let next = self.twice_cos[k] * self.now[k] - self.before[k];
            self.before[k] = self.now[k];
            self.now[k] = next;
        }
    }

    fn power(&self) -> f64 {
        let (in_phase, quadrature) = self.now.split_at(SINUSOIDS);
        let (i, q) = (sum(in_phase), sum(quadrature));
        self.scale * (i * i + q * q)
    }
}

fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for chunk in values.chunks_exact(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTI: Duration = Duration::from_millis(2);

    fn fading(profile: &str, seed: u64) -> Fading {
        Fading::new(profile.parse().unwrap(), TTI, &mut RandomStream::new(seed, "fading"))
    }

    /// Of the complex amplitude of the first path, over many places.
    fn amplitudes(profile: &str, places: u64, steps: usize) -> Vec<Vec<(f64, f64)>> {
        let amplitude = |path: &Path| {
            let scale = (1.0 / SINUSOIDS as f64).sqrt();
            (scale * sum(&path.now[..SINUSOIDS]), scale * sum(&path.now[SINUSOIDS..]))
        };
        let place = |seed| {
            let mut fading = fading(profile, seed);
            let at = |n| {
                fading.powers(n);
                amplitude(&fading.paths[0])
            };
            (0..steps as u64).map(at).collect()
        };
        (0..places).map(place).collect()
    }

    /// The Bessel function of the first kind and order zero, by its integral (Abramowitz, Stegun 9.1.18).
    fn bessel_j0(x: f64) -> f64 {
        let steps = 2_000;
        let at = |i: i32| (x * (PI * (f64::from(i) + 0.5) / f64::from(steps)).sin()).cos();
        (0..steps).map(at).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn the_recurrence_stays_within_a_billionth_of_the_direct_formula() {
        for profile in ["PA3", "VA30", "VA120", "PA1"] {
            let mut fading = fading(profile, 3);
            for n in 0..5_000 {
                fading.powers(n);
                for path in &fading.paths {
                    for k in 0..OSCILLATORS {
                        let direct = (path.frequency[k] * (n as f64 + 0.5) + path.phase[k]).cos();
                        assert!((path.now[k] - direct).abs() < 1e-9, "{profile}, step {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_step_has_the_same_bits_whichever_steps_came_before() {
        let mut walked = fading("VA30", 1);
        let reference: Vec<f64> = (0..700).map(|n| walked.powers(n)[0]).collect();
        let mut jumped = fading("VA30", 1);
        // From an anchor on the recurrence is the same; elsewhere it is as exact.
        for n in [512, 513, 514, 256, 257] {
            assert_eq!(jumped.powers(n)[0], reference[n as usize]);
        }
        assert!((jumped.powers(300)[0] - reference[300]).abs() < 1e-9);
    }

    #[test]
    fn power_is_exponential_as_that_of_a_rayleigh_envelope() {
        let samples: Vec<f64> =
            amplitudes("VA30", 400, 200).concat().iter().map(|(i, q)| i * i + q * q).collect();
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        assert!((mean - 1.0).abs() < 0.03, "mean {mean}");
        for level in [0.1, 0.5, 1.0, 2.0, 3.0_f64] {
            let below = samples.iter().filter(|power| **power < level).count() as f64 / count;
            let expected = 1.0 - (-level).exp();
            assert!((below - expected).abs() < 0.02, "below {level}: {below}, expected {expected}");
        }
    }

    #[test]
    fn the_envelope_crosses_its_mean_level_as_often_as_rices_formula_says() {
        // Rice 1944: sqrt(2 pi) fd R exp(-R^2) a second, R the level over the root mean square. PA3's fd of
        // 5.9 Hz is slow enough for steps of 2 ms to see each crossing.
        let level = 0.7_f64;
        let (places, steps) = (300, 2_000);
        let crossings: usize = amplitudes("PA3", places, steps)
            .iter()
            .map(|walk| {
                let above: Vec<bool> = walk.iter().map(|(i, q)| (i * i + q * q).sqrt() > level).collect();
                above.windows(2).filter(|pair| !pair[0] && pair[1]).count()
            })
            .sum();
        let seconds = places as f64 * steps as f64 * TTI.as_secs_f64();
        let doppler = "PA3".parse::<Profile>().unwrap().doppler_hz();
        let expected = (TAU).sqrt() * doppler * level * (-level * level).exp();
        let measured = crossings as f64 / seconds;
        assert!((measured / expected - 1.0).abs() < 0.05, "{measured} a second, expected {expected}");
    }

    #[test]
    fn each_quadrature_forgets_itself_as_clarkes_model_does() {
        let walks = amplitudes("PA3", 1_500, 120);
        let doppler = "PA3".parse::<Profile>().unwrap().doppler_hz();
        for lag in [0, 5, 10, 20, 32, 50, 80, 110] {
            let products = walks
                .iter()
                .flat_map(|walk| (0..walk.len() - lag).step_by(7).map(move |n| walk[n].0 * walk[n + lag].0));
            let products: Vec<f64> = products.collect();
            let measured = products.iter().sum::<f64>() / products.len() as f64 * 2.0;
            let expected = bessel_j0(TAU * doppler * lag as f64 * TTI.as_secs_f64());
            assert!((measured - expected).abs() < 0.08, "lag {lag}: {measured}, expected {expected}");
        }
    }

    #[test]
    fn one_who_stands_still_has_the_mean_for_ever() {
        let mut fading = fading("ST", 1);
        let powers = "ST".parse::<Profile>().unwrap().powers();
        assert_eq!(fading.powers(0), powers);
        assert_eq!(fading.powers(1_000_000), powers);
    }
}
