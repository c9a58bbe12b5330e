//! How many flows there are, period by period.

use suimon_units::{Duration, Instant};

use super::parsed::FromText;

/// How many flows there are, period by period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCounts {
    /// In each period, at least one; what holds in the last holds to the end.
    pub counts: Vec<u64>,
    /// Length of a period; no matter where there is only one.
    pub period: Duration,
}

/// Longest word that a message repeats, in characters.
const MAX_WORD: usize = 200;

/// Reads `N`, or `N,N,..@TIME` for counts that change every `TIME`.
impl FromText for FlowCounts {
    fn from_text(text: &str) -> Result<Self, String> {
        let refuse = |word: &str, reason: &str| {
            let word: String = word.chars().take(MAX_WORD).collect();
            let accepted = "a count, or counts and how long each holds, such as 30,50,30@100s";
            format!("\"{word}\": {reason}; accepted: {accepted}")
        };
        let (list, period) = match text.split_once('@') {
            Some((list, period)) => {
                let period = period.trim().parse().map_err(|_| refuse(period, "is no time"))?;
                (list, Some(period))
            }
            None => (text, None),
        };
        let count = |word: &str| word.trim().parse().map_err(|_| refuse(word, "is no count"));
        let counts = list.split(',').map(count).collect::<Result<Vec<u64>, _>>()?;
        if counts.contains(&0) {
            return Err("\"0\" is nothing; accepted: at least one".to_owned());
        }
        match period {
            None if counts.len() > 1 => Err(refuse(text, "does not say how long each count holds")),
            Some(Duration::ZERO) => Err(refuse(text, "has periods of no length")),
            period => Ok(Self { counts, period: period.unwrap_or_default() }),
        }
    }
}

impl FlowCounts {
    /// All periods together, where there are several.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        (self.counts.len() > 1).then(|| self.period * self.counts.len() as u64)
    }

    /// When each flow starts and stops: those that came last go first.
    pub(super) fn lives(&self) -> Vec<(Instant, Option<Instant>)> {
        let mut lives: Vec<(Instant, Option<Instant>)> = Vec::new();
        let mut alive: Vec<usize> = Vec::new();
        for (nth, count) in self.counts.iter().enumerate() {
            let now = Instant::ZERO + self.period * nth as u64;
            while alive.len() as u64 > *count {
                if let Some(last) = alive.pop() {
                    lives[last].1 = Some(now);
                }
            }
            while (alive.len() as u64) < *count {
                alive.push(lives.len());
                lives.push((now, None));
            }
        }
        lives
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_change_are_flows_that_come_and_go() {
        let counts = FlowCounts::from_text("2, 4,1 ,2@10s").unwrap();
        assert_eq!(counts.duration(), Some(Duration::from_secs(40)));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let lives = counts.lives();
        assert_eq!(
            lives,
            [
                (at(0), None),
                (at(0), Some(at(20))),
                (at(10), Some(at(20))),
                (at(10), Some(at(20))),
                (at(30), None)
            ]
        );
        assert_eq!(FlowCounts::from_text("3").unwrap().counts, [3]);
        let message = |text| FlowCounts::from_text(text).unwrap_err();
        assert!(message("3,4").contains("does not say how long"), "{}", message("3,4"));
        assert!(message("3,x@1s").contains("\"x\": is no count; accepted: a count, or counts"));
        assert!(message("3@1").contains("is no time"));
        assert!(message("3,4@0s").contains("no length"));
        assert!(message("3,0@1s").contains("accepted: at least one"));
    }
}
