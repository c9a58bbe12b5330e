//! Retransmission timeout (RFC 6298).

use std::ops::Range;

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
    timed: Option<Timed>,
    /// Under [`RtoMinimum::LargestVariance`], from the first measurement on.
    largest: Option<Largest>,
}

/// Linux's variance term (`tcp_rtt_estimator` of `net/ipv4/tcp_input.c`), as four deviations.
#[derive(Debug, Clone, Copy)]
struct Largest {
    /// The term in force (`rttvar_us`).
    term: Duration,
    /// The largest of this round trip (`mdev_max_us`).
    of_round: Duration,
    /// The round trip ends once all before is acknowledged (`rtt_seq`).
    round_end: u64,
}

impl Largest {
    fn on_deviation(&mut self, term: Duration, minimum: Duration, flight: &Range<u64>) {
        self.of_round = self.of_round.max(term);
        self.term = self.term.max(self.of_round);
        if flight.start > self.round_end {
            self.term = (self.term * 3 + self.of_round) / 4;
            self.round_end = flight.end;
            self.of_round = minimum;
        }
    }
}

/// One segment's round trip at a time, by a coarse clock: see [`StackProfile::rto_clock`].
#[derive(Debug, Clone)]
struct Timed {
    step: Duration,
    /// The end of the segment under way, and the step at which it was sent.
    segment: Option<(u64, u64)>,
    /// In eighths of a step; zero before the first measurement.
    srtt: u64,
    /// In quarters of a step.
    rttvar: u64,
}

impl Timed {
    fn new(step: Duration) -> Self {
        Self { step, segment: None, srtt: 0, rttvar: 0 }
    }

    fn steps(&self, now: Instant) -> u64 {
        now.as_nanos() / self.step.as_nanos()
    }

    /// A round trip took so many steps (Jacobson 1988, appendix A).
    fn sample(&mut self, steps: u64) {
        let steps = steps.max(1);
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (8 * steps, 2 * steps);
            return;
        }
        let off = steps.abs_diff(self.srtt / 8);
        self.srtt = (self.srtt + steps - self.srtt / 8).max(1);
        self.rttvar = (self.rttvar + off - self.rttvar / 4).max(1);
    }
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
            timed: (profile.rto_clock > Duration::ZERO).then(|| Timed::new(profile.rto_clock)),
            largest: None,
        }
    }

    /// Takes a measurement in (RFC 6298 §2.2, §2.3) while the bytes of `flight` are sent and not acknowledged.
    pub(crate) fn sample(&mut self, rtt: Duration, flight: &Range<u64>) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
                let term = (self.rttvar * 4).max(self.minimum);
                self.largest = (self.rule == RtoMinimum::LargestVariance).then_some(Largest {
                    term,
                    of_round: term,
                    round_end: flight.end,
                });
            }
            Some(srtt) => {
                let deviation = srtt.abs_diff(rtt);
                // Linux gives a shorter round trip an eighth of the weight, so that a queue which drains makes the
                // timeout no longer.
                let is_less = self.largest.is_some() && rtt < srtt && deviation > self.rttvar;
                let weight = if is_less { 32 } else { 4 };
                self.rttvar = (self.rttvar * (weight - 1) + deviation) / weight;
                self.srtt = Some((srtt * 7 + rtt) / 8);
                if let Some(largest) = &mut self.largest {
                    largest.on_deviation(self.rttvar * 4, self.minimum, flight);
                }
            }
        }
        if self.timed.is_none() {
            self.backoff = 0;
        }
    }

    /// The SYN was answered after `rtt`.
    pub(crate) fn on_established(&mut self, rtt: Duration) {
        self.sample(rtt, &(0..0));
        if let Some(timed) = &mut self.timed {
            timed.sample(rtt.as_nanos() / timed.step.as_nanos());
            self.backoff = 0;
        }
    }

    /// New data up to `end` was sent.
    pub(crate) fn on_sent(&mut self, now: Instant, end: u64) {
        if let Some(timed) = &mut self.timed {
            let step = timed.steps(now);
            timed.segment.get_or_insert((end, step));
        }
    }

    /// A segment was sent again: what is under way measures nothing (Karn's algorithm).
    pub(crate) fn on_retransmitted(&mut self) {
        if let Some(timed) = &mut self.timed {
            timed.segment = None;
        }
    }

    /// All before `snd_una` was acknowledged.
    pub(crate) fn on_acknowledged(&mut self, now: Instant, snd_una: u64) {
        if let Some(timed) = &mut self.timed
            && let Some((_, sent_at)) = timed.segment.take_if(|(end, _)| snd_una >= *end)
        {
            timed.sample(timed.steps(now) - sent_at);
            self.backoff = 0;
        }
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
        let timed = self.timed.as_ref().filter(|timed| timed.srtt > 0);
        let (srtt, rttvar) = match timed {
            Some(timed) => (Some(timed.step * timed.srtt / 8), timed.step * timed.rttvar / 4),
            None => (self.srtt, self.rttvar),
        };
        let base = match (srtt, self.largest) {
            (None, _) => self.initial,
            (Some(srtt), Some(largest)) => srtt + largest.term,
            (Some(srtt), None) if self.rule == RtoMinimum::Timeout => (srtt + rttvar * 4).max(self.minimum),
            (Some(srtt), None) => srtt + (rttvar * 4).max(self.minimum),
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

    /// 100 ms give a term of 200 ms. 300 ms deviate by 200: 4 (3/4 50 + 1/4 200) = 350 ms. Where round trips are steady
    /// after that, a quarter of what is above the minimum of 200 ms goes in each round trip, once all of it is
    /// acknowledged, and not with each sample.
    #[test]
    fn linux_keeps_the_largest_variance_of_a_round_trip_and_lets_it_go_by_quarters() {
        let mut rto = Rto::new(&StackProfile::linux_6());
        rto.sample(ms(100), &(0..10));
        assert_eq!(rto.timeout(), ms(100 + 200));
        rto.sample(ms(300), &(5..20));
        let srtt = ms(125);
        assert_eq!(rto.timeout(), srtt + ms(350));
        rto.srtt = Some(ms(125));
        rto.rttvar = Duration::ZERO;
        for position in [6, 8, 10] {
            rto.sample(ms(125), &(position..20));
            assert_eq!(rto.timeout(), srtt + ms(350));
        }
        rto.sample(ms(125), &(21..40));
        assert_eq!(rto.timeout(), srtt + ms(350));
        rto.sample(ms(125), &(41..60));
        assert_eq!(rto.timeout(), srtt + Duration::from_micros(312_500));
    }

    /// A deviation of 100 ms beyond one of 50 adds a quarter of the difference where the round trip was longer, and an
    /// eighth of that where it was shorter.
    #[test]
    fn a_shorter_round_trip_raises_linuxs_variance_by_an_eighth_of_what_a_longer_one_does() {
        let after = |rtt| {
            let mut rto = Rto::new(&StackProfile { rto_min: Duration::ZERO, ..StackProfile::linux_6() });
            rto.sample(ms(200), &(0..10));
            rto.rttvar = ms(50);
            rto.sample(ms(rtt), &(1..20));
            rto.rttvar
        };
        assert_eq!(after(300), Duration::from_micros(62_500));
        assert_eq!(after(100), Duration::from_nanos(51_562_500));
    }

    #[test]
    fn the_first_sample_sets_half_of_itself_as_variance() {
        let mut rto = Rto::new(&StackProfile::qualnet_3_9());
        assert_eq!(rto.timeout(), ms(3_000));
        rto.sample(ms(400), &(0..0));
        assert_eq!(rto.timeout(), ms(400 + 4 * 200));
        rto.sample(ms(400), &(0..0));
        assert_eq!(rto.timeout(), ms(400 + 4 * 150));
    }

    /// A round trip from 395 to 805 ms is 41 steps of 10 ms (39 to 80), so srtt is 410 ms and rttvar 205. Then 40 steps, one
    /// less: 328 + 40 - 41 = 327 eighths, 82 + 1 - 20 = 63 quarters. A steady clock leaves 3 quarters.
    #[test]
    fn a_coarse_clock_times_one_segment_at_a_time() {
        let mut rto = Rto::new(&StackProfile { rto_clock: ms(10), ..StackProfile::ns_2() });
        let at = |millis| Instant::ZERO + ms(millis);
        let mut turn = |sent, acknowledged, position| {
            rto.on_sent(at(sent), position);
            // A later segment is not timed, and an acknowledgement before the end of the timed one measures nothing.
            rto.on_sent(at(sent + 5), position + 1);
            rto.on_acknowledged(at(sent + 6), position - 1);
            rto.on_acknowledged(at(acknowledged), position);
            rto.timeout()
        };
        assert_eq!(turn(395, 805, 2), ms(410 + 4 * 205));
        assert_eq!(turn(1000, 1409, 4), ms(10) * 327 / 8 + ms(10) * 63);
        let steady = (3..300).map(|nth| turn(nth * 1000, nth * 1000 + 400, 2 * nth)).last();
        assert_eq!(steady, Some(ms(10) * 327 / 8 + ms(10) * 3));
    }

    #[test]
    fn what_was_sent_before_a_retransmission_measures_nothing() {
        let mut rto = Rto::new(&StackProfile { rto_clock: ms(10), ..StackProfile::ns_2() });
        rto.on_established(ms(100));
        let before = rto.timeout();
        rto.on_sent(Instant::ZERO, 1);
        rto.on_retransmitted();
        rto.on_acknowledged(Instant::ZERO + ms(900), 1);
        assert_eq!(rto.timeout(), before);
    }

    #[test]
    fn the_minimum_applies_to_the_whole_or_to_the_variance() {
        let steady = |profile: &StackProfile| {
            let mut rto = Rto::new(profile);
            for _ in 0..100 {
                rto.sample(ms(50), &(0..0));
            }
            rto.timeout()
        };
        assert_eq!(steady(&StackProfile::ns_2()), ms(200));
        assert_eq!(steady(&StackProfile::linux_6()), ms(250));
    }

    #[test]
    fn backing_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rto = Rto::new(&StackProfile::ns_2());
        rto.sample(ms(50), &(0..0));
        rto.back_off();
        rto.back_off();
        assert_eq!(rto.timeout(), ms(800));
        for _ in 0..40 {
            rto.back_off();
        }
        assert_eq!(rto.timeout(), RTO_MAX);
        rto.sample(ms(50), &(0..0));
        assert!(rto.timeout() < ms(1_000));
    }
}
