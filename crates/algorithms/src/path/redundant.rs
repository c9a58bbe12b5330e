//! Redundant: every path carries everything, so that the first copy to arrive counts (Frommgen, Erbshäußer,
//! Buchmann, Zimmermann, Wehrle: ReMP TCP, 2016).

use suimon_units::Instant;

use super::{Data, PathScheduler, PathView, Placement, SendState, least};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "redundant",
    summary: "every connection carries everything, and what arrives first counts",
    source: "Frommgen, Erbshaeusser, Buchmann, Zimmermann, Wehrle: ReMP TCP, ICC 2016",
    colour: "#b07aa1",
    parameters: &[],
};

/// The scheduler; it remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Redundant;

impl PathScheduler for Redundant {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        // Copies first: a path that lags behind carries data under way before new data.
        if let Some((path, _)) = state.ready().find(|(_, path)| path.can_copy) {
            return Some(Placement { path, data: Data::Copy });
        }
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
    use crate::path::PathId;
    use crate::path::testing::{full, path, state};

    #[test]
    fn a_path_that_lags_gets_copies_and_one_that_leads_gets_new_data() {
        let behind = PathView { can_copy: true, ..path(90) };
        let choose = |paths: &[PathView]| Redundant.place(Instant::ZERO, &state(paths));
        assert_eq!(choose(&[path(10), behind]), Some(Placement { path: PathId(1), data: Data::Copy }));
        let busy = full(behind);
        assert_eq!(choose(&[path(10), busy]), Some(Placement { path: PathId(0), data: Data::Next }));
        assert_eq!(choose(&[full(path(10)), busy]), None);
    }
}
