//! Detection of a token bucket on the path that drops packets beyond its rate (Linux since 4.9; not in the draft).

use suimon_units::{Bytes, Duration, Instant, Rate};

/// Least rounds of an interval; the most are four times as many.
const MIN_ROUNDS: u32 = 4;
/// Least ratio of lost to delivered data: 50 / 256.
const LOSS: f64 = 50.0 / 256.0;
/// Two intervals have the same rate if they differ by no more than this part of it, or so little.
const SAME_PART: f64 = 1.0 / 8.0;
const SAME: Rate = Rate::from_bps(4_000);
/// Rounds of probing for bandwidth for which the rate holds.
const ROUNDS_IN_USE: u32 = 48;

/// Looks for two intervals in a row from loss to loss that lose a fifth at the same rate, the policer's.
#[derive(Debug, Clone, Default)]
pub(super) struct Policer {
    /// The interval under way: its start, and the bytes delivered and lost by then.
    since: Option<(Instant, Bytes, Bytes)>,
    rounds: u32,
    lost: Bytes,
    /// Of the last interval, or of both.
    rate: Option<Rate>,
    in_use: bool,
}

/// The contents of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) now: Instant,
    /// Delivered since the connection began, and lost now.
    pub(super) delivered: Bytes,
    pub(super) lost: Bytes,
    pub(super) app_limited: bool,
    pub(super) round_start: bool,
    /// In ProbeBW.
    pub(super) probing: bool,
}

impl Policer {
    /// The policer's rate, where there is one.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.in_use)
    }

    /// Starts anew.
    pub(super) fn forget(&mut self) {
        *self = Self { lost: self.lost, ..Self::default() };
    }

    /// Returns whether a policer's rate has been in use for so long that bandwidth is to be looked for again.
    pub(super) fn update(&mut self, seen: &Seen) -> bool {
        self.lost += seen.lost;
        if self.in_use {
            self.rounds += u32::from(seen.probing && seen.round_start);
            let over = self.rounds >= ROUNDS_IN_USE;
            if over {
                self.forget();
            }
            return over;
        }
        // The first loss begins: before it the bucket had tokens.
        if self.since.is_none() && seen.lost > Bytes::ZERO {
            self.begin(seen);
        }
        let Some((since, delivered, lost)) = self.since else { return false };
        self.rounds += u32::from(seen.round_start);
        if seen.app_limited || self.rounds > 4 * MIN_ROUNDS {
            self.forget();
        } else if self.rounds >= MIN_ROUNDS && seen.lost > Bytes::ZERO {
            let (delivered, lost) = (seen.delivered.saturating_sub(delivered), self.lost - lost);
            let took = seen.now.saturating_since(since);
            let lossy = delivered > Bytes::ZERO && lost.as_f64() >= LOSS * delivered.as_f64();
            if lossy && took >= Duration::from_millis(1) {
                self.end(seen, Rate::of(delivered, took));
            }
        }
        false
    }

    fn begin(&mut self, seen: &Seen) {
        self.since = Some((seen.now, seen.delivered, self.lost));
        self.rounds = 0;
    }

    /// An interval brought `rate`.
    fn end(&mut self, seen: &Seen, rate: Rate) {
        if let Some(last) = self.rate {
            let apart = (rate.as_bps_f64() - last.as_bps_f64()).abs();
            if apart <= SAME_PART * last.as_bps_f64() || apart <= SAME.as_bps_f64() {
                self.rate = Some((rate + last).scaled(0.5));
                (self.in_use, self.rounds) = (true, 0);
                return;
            }
        }
        self.rate = Some(rate);
        self.begin(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::MSS;

    /// Rounds of 100 ms with ten segments delivered and `lost` lost at the end of each, until the rate is in use.
    fn rounds_until_in_use(lost: impl Fn(u64) -> u64, delivered: impl Fn(u64) -> u64) -> Option<u64> {
        let mut policer = Policer::default();
        let mut total = Bytes::ZERO;
        for round in 1..60 {
            total += MSS * delivered(round);
            let seen = Seen {
                now: Instant::ZERO + Duration::from_millis(100 * round),
                delivered: total,
                lost: MSS * lost(round),
                app_limited: false,
                round_start: true,
                probing: true,
            };
            policer.update(&seen);
            if let Some(rate) = policer.rate() {
                assert_eq!(rate, Rate::of(MSS * 10, Duration::from_millis(100)));
                return Some(round);
            }
        }
        None
    }

    #[test]
    fn two_intervals_that_lose_a_fifth_at_one_rate_tell_of_a_policer() {
        // The first loss is in round 1, which counts; each interval takes four rounds.
        assert_eq!(rounds_until_in_use(|_| 2, |_| 10), Some(8));
        assert_eq!(rounds_until_in_use(|_| 1, |_| 10), None, "a tenth is less");
        // The first interval is at twice the rate.
        let faster_at_first = |round| if round <= 4 { 20 } else { 10 };
        assert_eq!(rounds_until_in_use(|_| 4, faster_at_first), Some(12));
    }

    #[test]
    fn after_48_rounds_it_looks_again() {
        let mut policer = Policer { rate: Some(Rate::from_bps(1)), in_use: true, ..Policer::default() };
        let seen = Seen {
            now: Instant::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            app_limited: false,
            round_start: true,
            probing: true,
        };
        assert!((1..48).all(|_| !policer.update(&seen)));
        assert!(policer.update(&seen));
        assert_eq!(policer.rate(), None);
    }
}
