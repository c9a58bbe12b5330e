//! Lowest RTT first: the quickest connection with an open window, as Linux's multipath TCP does by default
//! (Paasch, Ferlin, Alay, Bonaventure: Experimental Evaluation of Multipath TCP Schedulers, 2014).

use suimon_units::Instant;

use super::{Data, PathScheduler, PathView, Placement, SendState, least};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "lowest-rtt",
    summary: "data goes to the connection with the lowest round-trip time whose window is open",
    source: "Paasch, Ferlin, Alay, Bonaventure: Experimental Evaluation of Multipath TCP Schedulers, 2014",
    colour: "#59a14f",
    parameters: &[],
};

/// The scheduler; it remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct LowestRtt;

impl PathScheduler for LowestRtt {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        if !state.next_fits() {
            return None;
        }
        let (path, _) = least(state.ready(), PathView::srtt)?;
        Some(Placement { path, data: Data::Next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathStatus;
    use crate::path::testing::{full, next, path};

    #[test]
    fn the_quickest_path_is_filled_before_the_next_is_used() {
        assert_eq!(next(&mut LowestRtt, &[path(90), path(10), path(50)]), Some(1));
        assert_eq!(next(&mut LowestRtt, &[path(90), full(path(10)), path(50)]), Some(2));
        assert_eq!(next(&mut LowestRtt, &[full(path(90)), full(path(10))]), None);
    }

    #[test]
    fn a_path_not_yet_measured_is_tried_first() {
        let fresh = PathView { status: PathStatus { rtt: None, ..path(0).status }, ..path(0) };
        assert_eq!(next(&mut LowestRtt, &[path(10), fresh]), Some(1));
    }
}
