//! The verdict whether an emulated link's numbers hold for the link itself.

use std::fmt;

use suimon_units::{Duration, Instant};

use crate::statistics::LinkStatistics;

/// Whether the numbers of a link count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The emulator kept up.
    Counts,
    /// The emulator fell behind, for these reasons.
    DoesNotCount(Vec<String>),
}

/// A hundredth of all packets may be this late on any link: the kernel wakes a thread no more exactly.
const LATE: Duration = Duration::from_micros(100);

/// On a long link they may be this share of its round-trip time late, which is below what a sender could tell.
const LATE_SHARE: f64 = 0.01;

/// The emulator may stand still once for this time, or this share of its time: rates lack the packets missed then.
const STILL: Duration = Duration::from_millis(10);
const STILL_SHARE: f64 = 0.01;

impl LinkStatistics {
    /// How late a hundredth of the packets may be for the numbers to count.
    #[must_use]
    pub fn most_lateness(&self) -> Duration {
        LATE.max(self.rtt.mul_f64(LATE_SHARE))
    }

    /// Whether the numbers count: the emulator was not late, and lost nothing on its own account.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut reasons = Vec::new();
        if self.lateness.p99 > self.most_lateness() {
            reasons.push(format!(
                "1 % of the packets were {:.2} late or more, where {:.2} is allowed ({})",
                self.lateness.p99,
                self.most_lateness(),
                self.scheduling,
            ));
        }
        let still = STILL.max(self.at.saturating_since(Instant::ZERO).mul_f64(STILL_SHARE));
        if self.lateness.max > still {
            reasons.push(format!(
                "it stood still for {:.2}, which is more than {STILL} and 1 % of its time",
                self.lateness.max
            ));
        }
        if self.unseen > 0 {
            reasons.push(format!("{} packets were lost before they came to the link", self.unseen));
        }
        let for_memory: u64 = self.directions.iter().map(|direction| direction.refused.for_memory).sum();
        if for_memory > 0 {
            let most = crate::MAX_MEMORY;
            reasons.push(format!("{for_memory} packets were dropped as the link held {most} already"));
        }
        if reasons.is_empty() { Verdict::Counts } else { Verdict::DoesNotCount(reasons) }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts => f.write_str("the numbers count"),
            Self::DoesNotCount(reasons) => write!(f, "the numbers do not count: {}", reasons.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::registry::{AlgorithmSpec, Role};
    use suimon_linux::schedule::Scheduling;
    use suimon_scenario::{Link, LinkSpec};
    use suimon_units::Rate;

    use super::*;
    use crate::direction::Direction;
    use crate::statistics::{DirectionStatistics, Lateness};

    /// Of a link of 20 ms after so many seconds, with packets that were so late.
    fn statistics(seconds: u64, p99: Duration, max: Duration) -> LinkStatistics {
        let queue = AlgorithmSpec::parse(Role::Queue, "droptail").unwrap();
        let links = LinkSpec::parse("10Mbit 20ms").unwrap().links(&queue);
        let at = Instant::ZERO + Duration::from_secs(seconds);
        let of = |link: &Link| {
            let meter = Direction::new(link, 1).passing.meter;
            DirectionStatistics {
                backlog: Default::default(),
                throughput: Rate::ZERO,
                sojourn: None,
                totals: meter.result(at, |_, _| None),
                refused: Default::default(),
                flows: Vec::new(),
                flow_count: 0,
            }
        };
        LinkStatistics {
            name: "link".to_owned(),
            at,
            rtt: Duration::from_millis(20),
            directions: [of(&links[0]), of(&links[1])],
            lateness: Lateness { packets: 1_000, p50: Duration::ZERO, p99, max },
            scheduling: Scheduling::RealTime,
            unseen: 0,
        }
    }

    #[test]
    fn a_hundredth_of_the_packets_may_be_a_hundredth_of_the_round_trip_late() {
        let of =
            |micros| statistics(60, Duration::from_micros(micros), Duration::from_micros(micros)).verdict();
        assert_eq!(of(200), Verdict::Counts);
        assert!(
            matches!(of(201), Verdict::DoesNotCount(reasons) if reasons[0].contains("1 % of the packets"))
        );
    }

    #[test]
    fn one_stillness_may_take_a_hundredth_of_the_time() {
        let of = |seconds, millis| {
            statistics(seconds, Duration::ZERO, Duration::from_millis(millis)).verdict() == Verdict::Counts
        };
        assert!(of(60, 600) && !of(60, 601));
        // In a moment it may take ten milliseconds.
        assert!(of(0, 10) && !of(0, 11));
    }

    #[test]
    fn what_the_link_never_saw_is_a_reason() {
        let lost = LinkStatistics { unseen: 3, ..statistics(60, Duration::ZERO, Duration::ZERO) };
        assert!(
            matches!(lost.verdict(), Verdict::DoesNotCount(reasons) if reasons[0].starts_with("3 packets"))
        );
    }
}
