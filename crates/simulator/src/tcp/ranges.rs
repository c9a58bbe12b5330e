//! Disjoint ranges of bytes, in order.

/// A set of byte positions as sorted, disjoint, non-adjacent ranges `start..end`.
///
/// Gaps are few even when windows are large, so a sorted list beats a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeSet {
    ranges: Vec<(u64, u64)>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Past the last byte.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.1)
    }

    /// The ranges from the last to the first.
    pub(crate) fn iter_rev(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().rev().copied()
    }

    /// The range that holds `position`.
    pub(crate) fn containing(&self, position: u64) -> Option<(u64, u64)> {
        let after = self.ranges.partition_point(|range| range.0 <= position);
        let range = *self.ranges.get(after.checked_sub(1)?)?;
        (position < range.1).then_some(range)
    }

    /// Adds `start..end`, merging what it touches.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let past = self.ranges.partition_point(|range| range.0 <= end);
        if first == past {
            self.ranges.insert(first, (start, end));
            return;
        }
        let merged = (start.min(self.ranges[first].0), end.max(self.ranges[past - 1].1));
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..past);
    }

    /// Forgets everything below `position`.
    pub(crate) fn remove_below(&mut self, position: u64) {
        let gone = self.ranges.partition_point(|range| range.1 <= position);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(position);
        }
    }

    /// Takes out the first range if it begins at or below `position`, and gives its end.
    pub(crate) fn take_first_reaching(&mut self, position: u64) -> Option<u64> {
        let (start, end) = *self.ranges.first()?;
        (start <= position).then(|| {
            self.ranges.remove(0);
            end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn touching_ranges_merge_and_others_stay_apart() {
        let mut set = RangeSet::default();
        set.insert(10, 20);
        set.insert(30, 40);
        set.insert(20, 25);
        assert_eq!(set.ranges, [(10, 25), (30, 40)]);
        set.insert(24, 30);
        assert_eq!(set.ranges, [(10, 40)]);
        assert_eq!(set.containing(39), Some((10, 40)));
        assert_eq!(set.containing(40), None);
        set.remove_below(15);
        assert_eq!(set.ranges, [(15, 40)]);
    }

    proptest! {
        #[test]
        fn it_equals_a_plain_set_of_positions(
            inserts in prop::collection::vec((0_u64..60, 1_u64..8), 0..20),
            below in 0_u64..60,
        ) {
            let mut set = RangeSet::default();
            let mut plain = std::collections::BTreeSet::new();
            for (start, length) in inserts {
                set.insert(start, start + length);
                plain.extend(start..start + length);
            }
            set.remove_below(below);
            plain.retain(|position| *position >= below);
            for position in 0..80 {
                prop_assert_eq!(set.containing(position).is_some(), plain.contains(&position));
            }
            prop_assert!(set.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
