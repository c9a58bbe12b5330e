//! Bytes by their place in a sequence that has no end.

use std::collections::VecDeque;

/// The part of a sequence that is still needed.
#[derive(Debug, Default)]
pub struct Ring {
    start: u64,
    bytes: VecDeque<u8>,
}

impl Ring {
    /// Place of the first byte that is kept.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Place behind the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Bytes that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes.extend(bytes);
    }

    /// Puts `bytes` at `place`, not before the first that is kept; a gap between holds zeros until its bytes come.
    pub fn put(&mut self, place: u64, bytes: &[u8]) {
        let at = self.index(place);
        let end = at + bytes.len();
        if end > self.bytes.len() {
            self.reserve(end - self.bytes.len());
            self.bytes.resize(end, 0);
        }
        let (first, second) = self.bytes.as_mut_slices();
        let in_first = first.len().saturating_sub(at).min(bytes.len());
        if in_first > 0 {
            first[at..at + in_first].copy_from_slice(&bytes[..in_first]);
        }
        if in_first < bytes.len() {
            let at = (at + in_first) - first.len();
            second[at..at + bytes.len() - in_first].copy_from_slice(&bytes[in_first..]);
        }
    }

    /// Appends the `len` bytes from `place` on to `out`.
    ///
    /// # Panics
    /// Some of the bytes are not kept.
    pub fn copy(&self, place: u64, len: usize, out: &mut Vec<u8>) {
        let (first, second) = self.slices(place, len);
        out.extend_from_slice(first);
        out.extend_from_slice(second);
    }

    /// The `len` bytes from `place` on, in up to two pieces.
    ///
    /// # Panics
    /// Some of the bytes are not kept.
    #[must_use]
    pub fn slices(&self, place: u64, len: usize) -> (&[u8], &[u8]) {
        let at = self.index(place);
        let (first, second) = self.bytes.as_slices();
        if at >= first.len() {
            let at = at - first.len();
            return (&second[at..at + len], &[]);
        }
        let in_first = len.min(first.len() - at);
        (&first[at..at + in_first], &second[..len - in_first])
    }

    /// Bytes before `place` are not needed any more.
    pub fn forget_before(&mut self, place: u64) {
        let count = place.saturating_sub(self.start).min(self.bytes.len() as u64);
        self.bytes.drain(..count as usize);
        self.start = self.start.max(place);
        // Memory that only a burst needed is given back.
        if self.bytes.capacity() > SPARE && self.bytes.len() < self.bytes.capacity() / 8 {
            self.bytes.shrink_to(self.bytes.len() * 2);
        }
    }

    /// Makes room for `more` bytes, and for a quarter of all beyond: twice as much would be twice what was configured.
    fn reserve(&mut self, more: usize) {
        if self.bytes.capacity() - self.bytes.len() < more {
            self.bytes.reserve_exact(more.max(self.bytes.len() / 4));
        }
    }

    fn index(&self, place: u64) -> usize {
        usize::try_from(place - self.start).expect("memory holds it")
    }
}

/// Memory that is kept although it is not needed now.
const SPARE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain vector that never forgets.
        #[test]
        fn bytes_stay_at_their_places(
            steps in prop::collection::vec((0..40_usize, 1..30_usize, 0..40_u64, any::<bool>()), 1..60),
        ) {
            let (mut ring, mut model) = (Ring::default(), Vec::new());
            for (index, (offset, len, forget, append)) in steps.into_iter().enumerate() {
                let bytes = vec![index as u8 + 1; len];
                if append {
                    ring.push(&bytes);
                    model.extend_from_slice(&bytes);
                } else {
                    let place = ring.start() as usize + offset;
                    ring.put(place as u64, &bytes);
                    model.resize(model.len().max(place + len), 0);
                    model[place..place + len].copy_from_slice(&bytes);
                }
                ring.forget_before((ring.start() + forget).min(ring.end()));
                prop_assert_eq!(ring.end(), model.len() as u64);
                let mut kept = Vec::new();
                ring.copy(ring.start(), ring.len(), &mut kept);
                prop_assert_eq!(&kept, &model[ring.start() as usize..]);
            }
        }
    }
}
