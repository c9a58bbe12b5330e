//! A flow's data over time, in bounded memory.

use suimon_results::TimeSequence;
use suimon_units::Instant;

/// Points of a curve: of more, every second is dropped, as often as it takes.
const MAX_POINTS: usize = 1_500;

/// The curves of one flow.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) data: Curve,
    pub(super) repeats: Curve,
    pub(super) acknowledged: Curve,
}

impl Trace {
    pub(super) fn finish(self) -> TimeSequence {
        TimeSequence {
            data: self.data.points,
            repeats: self.repeats.points,
            acknowledged: self.acknowledged.points,
        }
    }
}

/// Every `2^thinned`th of the points that it was given.
#[derive(Debug, Default)]
pub(super) struct Curve {
    points: Vec<(Instant, u64)>,
    thinned: u32,
    given: u64,
}

impl Curve {
    pub(super) fn push(&mut self, at: Instant, position: u64) {
        if self.given.trailing_zeros() >= self.thinned {
            self.points.push((at, position));
        }
        self.given += 1;
        if self.points.len() == MAX_POINTS {
            let mut nth = 0;
            self.points.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.thinned += 1;
        }
    }

    /// The highest position so far.
    pub(super) fn last(&self) -> u64 {
        self.points.last().map_or(0, |(_, position)| *position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_are_thinned_evenly() {
        let mut curve = Curve::default();
        (0..100_000).for_each(|nth| curve.push(Instant::from_nanos(nth), nth));
        let positions: Vec<u64> = curve.points.iter().map(|(_, position)| *position).collect();
        assert!((MAX_POINTS / 2..MAX_POINTS).contains(&positions.len()), "{}", positions.len());
        let step = positions[1];
        assert!(positions.iter().enumerate().all(|(nth, position)| *position == nth as u64 * step));
    }
}
