//! Whether what an emulated link did may be taken for what the link would do.

use std::fmt;

use suimon_units::Duration;

use crate::statistics::LinkStatistics;

/// Whether the numbers of a link count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The emulator kept up.
    Counts,
    /// It did not, for these reasons.
    DoesNotCount(Vec<String>),
}

/// A hundredth of all packets may be this late on any link: the kernel wakes a thread no more exactly.
const LATE: Duration = Duration::from_micros(100);

/// On a long link they may be this share of its round-trip time late, which is below what a sender could tell.
const LATE_SHARE: f64 = 0.01;

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
        if self.unseen > 0 {
            reasons.push(format!("{} packets were lost before they came to the link", self.unseen));
        }
        let for_memory: u64 = self.directions.iter().map(|direction| direction.refused.for_memory).sum();
        if for_memory > 0 {
            let most = crate::MOST_MEMORY;
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
