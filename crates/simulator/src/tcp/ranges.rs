//! Disjoint ranges of bytes, in order.

/// A set of byte positions as sorted, disjoint, non-adjacent ranges `start..end`.
///
/// A sorted list beats a tree, since gaps are mostly few; where a whole flight has gaps they close from the
/// front, so ranges gone there stay in the list until they are half of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeSet {
    list: Vec<(u64, u64)>,
    /// The number of ranges at the front that are gone.
    gone: usize,
}

impl RangeSet {
    fn ranges(&self) -> &[(u64, u64)] {
        &self.list[self.gone..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Past the last byte.
    pub(crate) fn end(&self) -> Option<u64> {
        self.list.last().map(|range| range.1)
    }

    /// The ranges from the last to the first.
    pub(crate) fn iter_rev(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges().iter().rev().copied()
    }

    /// The range that holds `position`.
    pub(crate) fn containing(&self, position: u64) -> Option<(u64, u64)> {
        let ranges = self.ranges();
        let mut range = *ranges.last()?;
        // Mostly it is the last one that is asked for.
        if position < range.0 {
            let after = ranges.partition_point(|range| range.0 <= position);
            range = *ranges.get(after.checked_sub(1)?)?;
        }
        (position < range.1).then_some(range)
    }

    /// Adds `start..end`, merging the ranges that it touches.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        // Mostly it is the last one that grows.
        if let Some(last) = self.list.last_mut()
            && (last.0..=last.1).contains(&start)
        {
            last.1 = last.1.max(end);
            return;
        }
        let ranges = self.ranges();
        let first = self.gone + ranges.partition_point(|range| range.1 < start);
        let past = self.gone + ranges.partition_point(|range| range.0 <= end);
        if first == past {
            self.list.insert(first, (start, end));
            return;
        }
        let merged = (start.min(self.list[first].0), end.max(self.list[past - 1].1));
        self.list[first] = merged;
        self.list.drain(first + 1..past);
    }

    /// Forgets everything below `position`.
    #[inline(always)]
    pub(crate) fn remove_below(&mut self, position: u64) {
        if !self.is_empty() {
            self.remove_passed(position);
        }
    }

    fn remove_passed(&mut self, position: u64) {
        let passed = self.ranges().iter().take_while(|range| range.1 <= position).count();
        self.remove_first(passed);
        if let Some(first) = self.list.get_mut(self.gone) {
            first.0 = first.0.max(position);
        }
    }

    /// Takes out the first range if it begins at or below `position`, and gives its end.
    pub(crate) fn take_first_reaching(&mut self, position: u64) -> Option<u64> {
        let (start, end) = *self.ranges().first()?;
        (start <= position).then(|| {
            self.remove_first(1);
            end
        })
    }

    fn remove_first(&mut self, count: usize) {
        self.gone += count;
        if self.gone == self.list.len() {
            self.list.clear();
            self.gone = 0;
        } else if 2 * self.gone > self.list.len() {
            self.list.drain(..self.gone);
            self.gone = 0;
        }
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
        assert_eq!(set.ranges(), [(10, 25), (30, 40)]);
        set.insert(24, 30);
        assert_eq!(set.ranges(), [(10, 40)]);
        assert_eq!(set.containing(39), Some((10, 40)));
        assert_eq!(set.containing(40), None);
        set.remove_below(15);
        assert_eq!(set.ranges(), [(15, 40)]);
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
            prop_assert!(set.ranges().windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
