//! State for a bounded number of flows.

use alloc::vec;
use alloc::vec::Vec;

use suimon_units::Bytes;

use crate::queue::FlowId;

/// One place for every flow, shared with all flows of the same hash: a newcomer takes it over. No
/// search, and memory for `places` flows whatever their number.
#[derive(Debug, Clone)]
pub(super) struct Slots<T> {
    places: Vec<Option<(FlowId, T)>>,
}

impl<T: Clone> Slots<T> {
    /// An empty table of `places`, at least one.
    pub(super) fn new(places: u64) -> Self {
        Self { places: vec![None; usize::try_from(places.max(1)).unwrap_or(usize::MAX)] }
    }

    /// Keeps `state` for `flow`.
    pub(super) fn put(&mut self, flow: FlowId, state: T) {
        let place = self.place(flow);
        self.places[place] = Some((flow, state));
    }

    /// What is kept for `flow`.
    pub(super) fn get(&self, flow: FlowId) -> Option<&T> {
        self.places[self.place(flow)].as_ref().filter(|(kept, _)| *kept == flow).map(|(_, state)| state)
    }

    /// Takes what is kept for `flow`.
    pub(super) fn take(&mut self, flow: FlowId) -> Option<T> {
        let place = self.place(flow);
        let own = self.places[place].as_ref().is_some_and(|(kept, _)| *kept == flow);
        if own { self.places[place].take().map(|(_, state)| state) } else { None }
    }

    pub(super) fn memory(&self) -> Bytes {
        Bytes::new((self.places.capacity() * size_of::<Option<(FlowId, T)>>()) as u64)
    }

    fn place(&self, flow: FlowId) -> usize {
        // Fibonacci hashing: neighbouring numbers lie far apart.
        let hash = u64::from(flow.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize % self.places.len()
    }
}
