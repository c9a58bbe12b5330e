//! Multipath profiles: how much power comes by which path, and how fast the receiver moves.

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use suimon_units::{Duration, Probability};

/// Carrier frequency of UMTS band I, downlink, in hertz.
const CARRIER_HZ: f64 = 2.14e9;
/// In metres a second.
const SPEED_OF_LIGHT: f64 = 299_792_458.0;
/// Fastest receiver that is accepted, in km/h: a high-speed train.
const FASTEST_KMH: u32 = 500;

/// Where the receiver is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// ITU Pedestrian A (ITU-R M.1225, table 3): four paths, the first far above the others.
    PedestrianA,
    /// ITU Pedestrian B (ITU-R M.1225, table 3): six paths.
    PedestrianB,
    /// ITU Vehicular A (ITU-R M.1225, table 5): six paths.
    VehicularA,
}

impl Environment {
    /// Relative power of each path in decibels. Delays do not matter to a receiver that resolves every path.
    const fn relative_powers(self) -> &'static [f64] {
        match self {
            Self::PedestrianA => &[0.0, -9.7, -19.2, -22.8],
            Self::PedestrianB => &[0.0, -0.9, -4.9, -8.0, -7.8, -23.9],
            Self::VehicularA => &[0.0, -1.0, -9.0, -10.0, -15.0, -20.0],
        }
    }

    /// kappa where none is given: 0.28 in Vehicular A, whose paths a receiver follows less well, as fitted to the
    /// FS-AT paper's Fig 10.
    pub(super) fn self_interference(self) -> Probability {
        match self {
            Self::PedestrianA | Self::PedestrianB => Probability::ZERO,
            Self::VehicularA => Probability::clamped(0.28),
        }
    }
}

/// A multipath profile at a speed, as in `PA3`, `VA30`, `PB3`, or standing still: `ST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The paths.
    pub environment: Environment,
    /// Speed of the receiver in km/h, at most 500; zero for one that stands still in a channel that does not fade.
    kmh: u32,
}

/// Text that is not a [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a profile; accepted: {ACCEPTED}")]
pub struct UnknownProfile(String);

/// The accepted names of a [`Profile`], in words.
pub const ACCEPTED: &str = "ST (standing still), or PA, PB, VA (ITU Pedestrian A and B, Vehicular A) and a speed in km/h, as in PA3 or VA30";

impl Profile {
    /// The power of each path, together one.
    #[must_use]
    pub fn powers(self) -> Vec<f64> {
        let powers: Vec<f64> =
            self.environment.relative_powers().iter().map(|db| libm::pow(10.0, db / 10.0)).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / sum).collect()
    }

    /// True where the channel does not fade.
    #[must_use]
    pub fn is_static(self) -> bool {
        self.kmh == 0
    }

    /// The largest Doppler shift, `v fc / c`, in hertz.
    #[must_use]
    pub fn doppler_hz(self) -> f64 {
        f64::from(self.kmh) / 3.6 * CARRIER_HZ / SPEED_OF_LIGHT
    }

    /// After this time the envelope's autocorrelation `J0(2 pi fd t)^2` has fallen to one half; `None` where it
    /// never does.
    #[must_use]
    pub fn coherence_time(self) -> Option<Duration> {
        // J0(x)^2 = 1/2 at x = 1.1264.
        (!self.is_static()).then(|| Duration::from_secs_f64(1.126_376 / (TAU * self.doppler_hz())))
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let refuse = || UnknownProfile(text.chars().take(40).collect());
        if text.eq_ignore_ascii_case("ST") {
            return Ok(Self { environment: Environment::PedestrianA, kmh: 0 });
        }
        let (letters, digits) = text.split_at_checked(2).ok_or_else(refuse)?;
        let environment = match letters.to_ascii_uppercase().as_str() {
            "PA" => Environment::PedestrianA,
            "PB" => Environment::PedestrianB,
            "VA" => Environment::VehicularA,
            _ => return Err(refuse()),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let kmh = digits.parse().ok().filter(|kmh| is_number && (1..=FASTEST_KMH).contains(kmh));
        Ok(Self { environment, kmh: kmh.ok_or_else(refuse)? })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_static() {
            return f.write_str("ST");
        }
        let letters = match self.environment {
            Environment::PedestrianA => "PA",
            Environment::PedestrianB => "PB",
            Environment::VehicularA => "VA",
        };
        write!(f, "{letters}{}", self.kmh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_read_and_print_the_same() {
        for text in ["ST", "PA3", "PB3", "VA30", "VA120", "PA500"] {
            assert_eq!(text.parse::<Profile>().unwrap().to_string(), text);
        }
        for text in ["", "PA", "PA0", "PA501", "PA+3", "XA3", "PA3.5", "ääää"] {
            let message = text.parse::<Profile>().unwrap_err().to_string();
            assert!(message.contains("accepted: ST"), "{message}");
        }
    }

    #[test]
    fn powers_add_up_to_one_and_the_first_path_is_the_strongest() {
        for text in ["ST", "PA3", "PB3", "VA30"] {
            let powers = text.parse::<Profile>().unwrap().powers();
            assert!((powers.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(powers.iter().all(|power| *power <= powers[0]));
        }
        // 10^0 / (10^0 + 10^-0.97 + 10^-1.92 + 10^-2.28) by hand.
        assert!((("PA3".parse::<Profile>().unwrap().powers())[0] - 0.8893).abs() < 1e-4);
    }

    #[test]
    fn thirty_kilometres_an_hour_shift_by_sixty_hertz() {
        let profile: Profile = "VA30".parse().unwrap();
        assert!((profile.doppler_hz() - 59.485).abs() < 0.01, "{}", profile.doppler_hz());
        assert!((profile.coherence_time().unwrap().as_millis_f64() - 3.01).abs() < 0.02);
        assert_eq!("ST".parse::<Profile>().unwrap().coherence_time(), None);
    }
}
