//! Round robin: each connection in turn, as the paper compares with.

use suimon_units::Instant;

use super::{Data, PathId, PathScheduler, Placement, SendState};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "round-robin",
    summary: "each connection in turn",
    source: "Oguchi, Tanaka, Shigeno: Path Selection using Buffer Conditions for Bandwidth Aggregation, section 5",
    colour: "#e15759",
    parameters: &[Parameter {
        name: "skip",
        help: "pass over a connection whose send buffer is full, instead of waiting for it",
        default: Value::Flag(false),
        range: Range::Any,
    }],
};

/// The scheduler, with the path whose turn it is.
#[derive(Debug, Clone, Copy)]
pub struct RoundRobin {
    skip: bool,
    turn: usize,
}

impl RoundRobin {
    /// With `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self { skip: arguments.flag("skip"), turn: 0 }
    }
}

impl PathScheduler for RoundRobin {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        if !state.next_fits() {
            return None;
        }
        let paths = state.paths.len();
        let in_turn = (0..paths).map(|step| (self.turn + step) % paths);
        let (index, path) = in_turn.map(|index| (index, &state.paths[index])).find(|(_, path)| {
            let room = path.status.buffered + state.chunk <= path.status.send_buffer;
            path.usable && (room || !self.skip)
        })?;
        if path.status.buffered + state.chunk > path.status.send_buffer {
            return None;
        }
        self.turn = (index + 1) % paths;
        Some(Placement { path: PathId(index), data: Data::Next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathStatus;
    use crate::path::PathView;
    use crate::path::testing::{CHUNK, next, path};

    fn scheduler(skip: bool) -> RoundRobin {
        RoundRobin { skip, turn: 0 }
    }

    fn full() -> PathView {
        PathView { status: PathStatus { buffered: CHUNK * 64, ..path(50).status }, ..path(50) }
    }

    #[test]
    fn paths_take_turns() {
        let mut round_robin = scheduler(false);
        let paths = [path(1), path(50), path(9)];
        let order: Vec<_> = (0..6).map(|_| next(&mut round_robin, &paths).unwrap()).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_full_connection_holds_all_others_up_unless_it_is_skipped() {
        let paths = [path(1), full()];
        let mut blocking = scheduler(false);
        assert_eq!(next(&mut blocking, &paths), Some(0));
        assert_eq!(next(&mut blocking, &paths), None);
        assert_eq!(next(&mut blocking, &[path(1), path(50)]), Some(1));
        let mut skipping = scheduler(true);
        assert_eq!(next(&mut skipping, &paths), Some(0));
        assert_eq!(next(&mut skipping, &paths), Some(0));
        assert_eq!(next(&mut skipping, &[full(), full()]), None);
    }

    #[test]
    fn nobody_waits_for_a_dead_path() {
        let dead = PathView { usable: false, ..path(50) };
        let mut blocking = scheduler(false);
        assert_eq!(next(&mut blocking, &[path(1), dead]), Some(0));
        assert_eq!(next(&mut blocking, &[path(1), dead]), Some(0));
    }
}
