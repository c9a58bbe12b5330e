//! One round-trip time for all flows (Hoshihara, Koga, Watanabe: A New AQM Algorithm Exploiting Passive RTT
//! Estimation, §3.1.2).

use suimon_units::Duration;

/// The representative round-trip time, `RTT_rep`: a moving average over estimates of single flows.
///
/// Where packets choose the flows that are estimated, it follows their mean weighted by rate (eq. 2).
#[derive(Debug, Clone, Copy)]
pub struct Representative(Option<Duration>);

impl Representative {
    /// An average that is `initial` until the first estimate; without one, the first estimate is taken whole.
    #[must_use]
    pub fn new(initial: Option<Duration>) -> Self {
        Self(initial)
    }

    /// The round-trip time of a flow was estimated as `rtt`.
    pub fn on_estimate(&mut self, rtt: Duration) {
        // Eq. 1.
        self.0 = Some(self.0.map_or(rtt, |rep| rep.mul_f64(0.9) + rtt.mul_f64(0.1)));
    }

    /// `RTT_rep`, where there is one.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_estimate_weighs_a_tenth() {
        let mut representative = Representative::new(Some(MS * 100));
        representative.on_estimate(MS * 200);
        assert_eq!(representative.get(), Some(MS * 110));
        representative.on_estimate(MS * 10);
        assert_eq!(representative.get(), Some(MS * 100));
    }

    #[test]
    fn the_first_of_all_is_taken_whole() {
        let mut representative = Representative::new(None);
        assert_eq!(representative.get(), None);
        representative.on_estimate(MS * 30);
        assert_eq!(representative.get(), Some(MS * 30));
    }
}
