//! Retransmission timeout (RFC 6298).

use suimon_algorithms::path::Rtt;
use suimon_model::{RtoMinimum, StackProfile};
use suimon_units::{Duration, Instant};

/// RFC 6298 §2.5 allows a maximum of at least 60 s; Linux has 120 s.
const RTO_MAX: Duration = Duration::from_secs(120);

/// Estimates the round-trip time and says when an unacknowledged segment is given up.
#[derive(Debug, Clone)]
pub(crate) struct Rto {
    srtt: Option<Duration>,
    rttvar: Duration,
    backoff: u32,
    minimum: Duration,
    rule: RtoMinimum,
    initial: Duration,
}

impl Rto {
    pub(crate) fn new(profile: &StackProfile) -> Self {
        Self {
            srtt: None,
            rttvar: Duration::ZERO,
            backoff: 0,
            minimum: profile.rto_min,
            rule: profile.rto_minimum,
            initial: profile.rto_initial,
        }
    }

    /// Takes a measurement in (RFC 6298 §2.2, §2.3).
    pub(crate) fn sample(&mut self, rtt: Duration) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
        self.backoff = 0;
    }

    /// The timer ran out: wait twice as long next time (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The estimate, with its deviation.
    pub(crate) fn rtt(&self) -> Option<Rtt> {
        self.srtt.map(|srtt| Rtt { srtt, rttvar: self.rttvar })
    }

    /// The timeout in force.
    pub(crate) fn timeout(&self) -> Duration {
        let base = match (self.srtt, self.rule) {
            (None, _) => self.initial,
            (Some(srtt), RtoMinimum::Variance) => srtt + (self.rttvar * 4).max(self.minimum),
            (Some(srtt), RtoMinimum::Timeout) => (srtt + self.rttvar * 4).max(self.minimum),
        };
        (base * (1 << self.backoff)).min(RTO_MAX)
    }

    /// The time when a timer that starts at `now` runs out.
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        now + self.timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_sample_sets_half_of_itself_as_variance() {
        let mut rto = Rto::new(&StackProfile::qualnet_3_9());
        assert_eq!(rto.timeout(), ms(3_000));
        rto.sample(ms(400));
        assert_eq!(rto.timeout(), ms(400 + 4 * 200));
        rto.sample(ms(400));
        assert_eq!(rto.timeout(), ms(400 + 4 * 150));
    }

    #[test]
    fn the_minimum_applies_to_the_whole_or_to_the_variance() {
        let steady = |profile: &StackProfile| {
            let mut rto = Rto::new(profile);
            for _ in 0..100 {
                rto.sample(ms(50));
            }
            rto.timeout()
        };
        assert_eq!(steady(&StackProfile::ns_2()), ms(200));
        assert_eq!(steady(&StackProfile::linux_6()), ms(250));
    }

    #[test]
    fn backing_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rto = Rto::new(&StackProfile::ns_2());
        rto.sample(ms(50));
        rto.back_off();
        rto.back_off();
        assert_eq!(rto.timeout(), ms(800));
        for _ in 0..40 {
            rto.back_off();
        }
        assert_eq!(rto.timeout(), RTO_MAX);
        rto.sample(ms(50));
        assert!(rto.timeout() < ms(1_000));
    }
}
