//! A queue in a ring, with access to any element.

/// First in, first out, in a ring whose size is a power of two.
///
/// The standard library's allows any size, and so compares and subtracts wherever this one masks: over all the
/// queues that a packet passes, that is a tenth of the packet's cost.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    /// Where the first is, modulo the size.
    head: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), head: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> usize {
        self.head.wrapping_add(index) & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len { Some(&self.slots[self.slot(index)]) } else { None }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let slot = if index < self.len { self.slot(index) } else { return None };
        Some(&mut self.slots[slot])
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline(always)]
    pub(crate) fn back(&self) -> Option<&T> {
        self.get(self.len.wrapping_sub(1))
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, value: T) {
        if self.len >= self.slots.len() {
            self.grow(value);
        }
        let slot = self.slot(self.len);
        self.slots[slot] = value;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(first)
    }

    /// Takes the first where it is as asked.
    #[inline(always)]
    pub(crate) fn pop_front_if(&mut self, is_asked_for: impl FnOnce(&T) -> bool) -> Option<T> {
        let first = *self.front().filter(|first| is_asked_for(first))?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(first)
    }

    /// The number of elements at the front that are as asked, where no other is.
    pub(crate) fn partition_point(&self, is_asked_for: impl Fn(&T) -> bool) -> usize {
        partition_point(self.len, |index| is_asked_for(&self.slots[self.slot(index)]))
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|index| &self.slots[self.slot(index)])
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (later, first) = if self.len == 0 {
            self.slots.split_at_mut(0)
        } else {
            let head = self.slot(0);
            self.slots.split_at_mut(head)
        };
        first.iter_mut().chain(later).take(self.len)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        // The part that wrapped to the start moves behind the former end, so that nothing else is copied.
        let (old, size) = (self.slots.len(), (2 * self.len).max(4));
        let head = if old > 0 { self.slot(0) } else { 0 };
        self.slots.reserve_exact(size - old);
        self.slots.extend_from_within(..head);
        self.slots.resize(size, filler);
        self.head = head;
    }
}

/// The number of elements among `len` at the front that are as asked, where no other is.
pub(crate) fn partition_point(len: usize, is_asked_for: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, len);
    while from < to {
        let middle = from + (to - from) / 2;
        if is_asked_for(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u32),
        Pop,
        PopIfEven,
        Add(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => any::<u32>().prop_map(Step::Push),
            3 => Just(Step::Pop),
            1 => Just(Step::PopIfEven),
            1 => any::<u32>().prop_map(Step::Add),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_the_standard_library_s_does(steps in prop::collection::vec(step(), 0..200)) {
            let (mut ring, mut plain) = (Ring::default(), VecDeque::new());
            for step in steps {
                match step {
                    Step::Push(value) => {
                        ring.push_back(value);
                        plain.push_back(value);
                    }
                    Step::Pop => prop_assert_eq!(ring.pop_front(), plain.pop_front()),
                    Step::PopIfEven => {
                        let taken = ring.pop_front_if(|value| value % 2 == 0);
                        prop_assert_eq!(taken, plain.pop_front_if(|value| *value % 2 == 0));
                    }
                    Step::Add(more) => {
                        ring.iter_mut().for_each(|value| *value = value.wrapping_add(more));
                        plain.iter_mut().for_each(|value| *value = value.wrapping_add(more));
                    }
                }
                prop_assert!(ring.iter().eq(plain.iter()));
                prop_assert_eq!((ring.front(), ring.back()), (plain.front(), plain.back()));
                prop_assert_eq!((ring.len(), ring.is_empty()), (plain.len(), plain.is_empty()));
                for index in 0..plain.len() + 2 {
                    prop_assert_eq!(ring.get(index), plain.get(index));
                    prop_assert_eq!(ring.get_mut(index), plain.get_mut(index));
                }
            }
            let mut sorted = Ring::default();
            let mut values: Vec<_> = plain.into_iter().collect();
            values.sort_unstable();
            values.iter().for_each(|value| sorted.push_back(*value));
            let half = |value: &u32| *value < u32::MAX / 2;
            prop_assert_eq!(sorted.partition_point(half), values.partition_point(half));
        }
    }
}
