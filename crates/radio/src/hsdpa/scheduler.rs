//! The choice of the terminal that a cell serves next.

use suimon_units::{Bytes, Duration};

use super::TTI;

/// How a cell chooses among the terminals that could be served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// The terminals one after the other.
    RoundRobin,
    /// The terminal that reports the best signal.
    MaxCarrierToInterference,
    /// The terminal with the highest ratio of current to mean rate (Jalali, Padovani, Pankaj 2000): a terminal is
    /// served on the peaks of its own fading.
    ProportionalFair {
        /// The time constant of the mean rate.
        window: Duration,
    },
}

/// A terminal that could be served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) user: usize,
    /// Payload of the next block.
    pub(super) payload: Bytes,
    /// Reported ratio in decibels.
    pub(super) sinr_db: f64,
}

#[derive(Debug)]
pub(super) struct Scheduler {
    policy: Policy,
    last: usize,
    /// Mean payload a TTI of each terminal.
    averages: Vec<f64>,
    /// The TTI up to which the averages are.
    next: u64,
}

impl Scheduler {
    pub(super) fn new(policy: Policy, users: usize) -> Self {
        Self { policy, last: users, averages: vec![0.0; users], next: 0 }
    }

    /// The candidate to serve in TTI `n`; there is at least one, and they are in the order of the terminals.
    pub(super) fn pick(&mut self, n: u64, candidates: &[Candidate]) -> Candidate {
        let better = |value: &dyn Fn(&Candidate) -> f64| {
            // Of equals the first after the one served last, so that no terminal starves for being listed late.
            let mut best = None;
            for candidate in self.after_last(candidates) {
                let value = value(candidate);
                if best.is_none_or(|(_, best)| value > best) {
                    best = Some((*candidate, value));
                }
            }
            best.expect("a TTI without candidates is not scheduled").0
        };
        let picked = match self.policy {
            Policy::RoundRobin => better(&|_| 0.0),
            Policy::MaxCarrierToInterference => better(&|candidate| candidate.sinr_db),
            Policy::ProportionalFair { .. } => {
                better(&|c| c.payload.as_f64() / self.averages[c.user].max(f64::MIN_POSITIVE))
            }
        };
        self.last = picked.user;
        self.remember(n, picked);
        picked
    }

    fn after_last<'a>(&self, candidates: &'a [Candidate]) -> impl Iterator<Item = &'a Candidate> {
        let first = candidates.partition_point(|candidate| candidate.user <= self.last);
        candidates[first..].iter().chain(&candidates[..first])
    }

    fn remember(&mut self, n: u64, served: Candidate) {
        let Policy::ProportionalFair { window } = self.policy else { return };
        let share = (TTI.as_secs_f64() / window.as_secs_f64()).min(1.0);
        let elapsed = n + 1 - self.next;
        let kept = if elapsed == 1 { 1.0 - share } else { libm::pow(1.0 - share, elapsed as f64) };
        for average in &mut self.averages {
            *average *= kept;
        }
        self.averages[served.user] += share * served.payload.as_f64();
        self.next = n + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(user: usize, payload: u64, sinr_db: f64) -> Candidate {
        Candidate { user, payload: Bytes::new(payload), sinr_db }
    }

    #[test]
    fn round_robin_takes_turns_over_those_who_want() {
        let mut scheduler = Scheduler::new(Policy::RoundRobin, 3);
        let all = [0, 1, 2].map(|user| candidate(user, 100, 0.0));
        let order: Vec<_> = (0..5).map(|n| scheduler.pick(n, &all).user).collect();
        assert_eq!(order, [0, 1, 2, 0, 1]);
        assert_eq!(scheduler.pick(5, &[all[0], all[1]]).user, 0);
        assert_eq!(scheduler.pick(6, &[all[0]]).user, 0);
    }

    #[test]
    fn the_best_signal_wins_and_equals_take_turns() {
        let mut scheduler = Scheduler::new(Policy::MaxCarrierToInterference, 3);
        let users = [candidate(0, 100, 3.0), candidate(1, 100, 9.0), candidate(2, 100, 9.0)];
        let order: Vec<_> = (0..4).map(|n| scheduler.pick(n, &users).user).collect();
        assert_eq!(order, [1, 2, 1, 2]);
    }

    #[test]
    fn proportional_fairness_gives_equal_shares_of_time_to_steady_terminals() {
        let mut scheduler = Scheduler::new(Policy::ProportionalFair { window: Duration::from_secs(1) }, 2);
        let users = [candidate(0, 800, 15.0), candidate(1, 100, 0.0)];
        let first = (0..10_000).filter(|n| scheduler.pick(*n, &users).user == 0).count();
        assert!((4_900..5_100).contains(&first), "{first}");
    }

    #[test]
    fn proportional_fairness_forgets_while_nobody_is_served() {
        let mut scheduler = Scheduler::new(Policy::ProportionalFair { window: Duration::from_secs(1) }, 2);
        for n in 0..2_000 {
            scheduler.pick(n, &[candidate(0, 800, 15.0)]);
        }
        let before = scheduler.averages[0];
        scheduler.pick(2_500, &[candidate(1, 100, 0.0)]);
        // 501 TTIs of 2 ms are about one window.
        assert!((scheduler.averages[0] / before - 0.367).abs() < 0.002);
    }
}
