//! A queue in pieces.

use std::collections::VecDeque;

use crate::ring::partition_point;

/// Slots in a piece.
const PIECE: usize = 32;

/// First in, first out, in pieces of some slots each that are used again as soon as they are empty.
///
/// A queue takes the memory of as many as have ever waited at once, where a [ring](crate::ring::Ring) takes up to twice
/// that, and comes through all of it in turn; and the slot of the next one is known without a computation.
#[derive(Debug)]
pub(crate) struct Pieces<T> {
    slots: Vec<T>,
    /// The first slots of the pieces in use, in order, and of the others.
    used: VecDeque<usize>,
    spare: Vec<usize>,
    /// The slot of the first. At the end of a piece, there is none.
    head: usize,
    /// The slot behind the last; at the end of a piece, the next one needs another piece.
    tail: usize,
    len: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), used: VecDeque::new(), spare: Vec::new(), head: 0, tail: 0, len: 0 }
    }
}

impl<T: Copy> Pieces<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len > 0 { Some(&self.slots[self.head]) } else { None }
    }

    #[inline(always)]
    pub(crate) fn back(&self) -> Option<&T> {
        if self.len > 0 { Some(&self.slots[self.tail - 1]) } else { None }
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, value: T) {
        if self.tail.is_multiple_of(PIECE) {
            self.begin_piece(value);
        }
        self.slots[self.tail] = value;
        self.tail += 1;
        self.len += 1;
    }

    /// Lets the first go, of which there is one.
    ///
    /// A caller that has copied it from [`front`](Self::front) saves the moves of an `Option` of a large `T`.
    #[inline(always)]
    pub(crate) fn pass_front(&mut self) {
        debug_assert!(self.len > 0, "nothing to let go");
        self.head += 1;
        self.len -= 1;
        if self.head.is_multiple_of(PIECE) {
            self.end_piece();
        }
    }

    /// Puts `value` before the one at `index`.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn insert(&mut self, index: usize, value: T) {
        assert!(index <= self.len, "a place in the queue");
        self.push_back(value);
        for later in (index..self.len - 1).rev() {
            let (from, to) = (self.slot(later), self.slot(later + 1));
            self.slots[to] = self.slots[from];
        }
        let slot = self.slot(index);
        self.slots[slot] = value;
    }

    /// The number of elements at the front that are as asked, where no other is.
    pub(crate) fn partition_point(&self, is_asked_for: impl Fn(&T) -> bool) -> usize {
        partition_point(self.len, |index| is_asked_for(&self.slots[self.slot(index)]))
    }

    fn slot(&self, index: usize) -> usize {
        let from_piece = self.head % PIECE + index;
        self.used[from_piece / PIECE] + from_piece % PIECE
    }

    #[cold]
    #[inline(never)]
    fn begin_piece(&mut self, filler: T) {
        let piece = self.spare.pop().unwrap_or_else(|| {
            let new = self.slots.len();
            self.slots.resize(new + PIECE, filler);
            new
        });
        if self.used.is_empty() {
            self.head = piece;
        }
        self.tail = piece;
        self.used.push_back(piece);
    }

    #[cold]
    #[inline(never)]
    fn end_piece(&mut self) {
        self.spare.extend(self.used.pop_front());
        if let Some(next) = self.used.front() {
            self.head = *next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pop(pieces: &mut Pieces<u32>) -> Option<u32> {
        let first = *pieces.front()?;
        pieces.pass_front();
        Some(first)
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(u32),
        Pop,
        Insert(usize, u32),
        PopMany(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => any::<u32>().prop_map(Step::Push),
            6 => Just(Step::Pop),
            2 => (0_usize..100, any::<u32>()).prop_map(|(index, value)| Step::Insert(index, value)),
            1 => (0_usize..80).prop_map(Step::PopMany),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_the_standard_library_s_does(steps in prop::collection::vec(step(), 0..600)) {
            let (mut pieces, mut plain) = (Pieces::default(), VecDeque::new());
            let mut most = 0;
            for step in steps {
                match step {
                    Step::Push(value) => {
                        pieces.push_back(value);
                        plain.push_back(value);
                    }
                    Step::Pop => prop_assert_eq!(pop(&mut pieces), plain.pop_front()),
                    Step::Insert(index, value) => {
                        let index = index.min(plain.len());
                        pieces.insert(index, value);
                        plain.insert(index, value);
                    }
                    Step::PopMany(count) => {
                        for _ in 0..count {
                            prop_assert_eq!(pop(&mut pieces), plain.pop_front());
                        }
                    }
                }
                most = most.max(plain.len());
                prop_assert_eq!((pieces.front(), pieces.back()), (plain.front(), plain.back()));
                prop_assert_eq!((pieces.len(), pieces.is_empty()), (plain.len(), plain.is_empty()));
            }
            // The first and the last piece may be filled in part.
            prop_assert!(pieces.slots.len() <= (most + 2 * PIECE).next_multiple_of(PIECE));
            let all: Vec<u32> = (0..pieces.len()).map(|index| pieces.slots[pieces.slot(index)]).collect();
            prop_assert_eq!(all, Vec::from(plain.clone()));
            let mut sorted = Pieces::default();
            let mut values: Vec<_> = plain.into_iter().collect();
            values.sort_unstable();
            values.iter().for_each(|value| sorted.push_back(*value));
            let half = |value: &u32| *value < u32::MAX / 2;
            prop_assert_eq!(sorted.partition_point(half), values.partition_point(half));
        }
    }
}
