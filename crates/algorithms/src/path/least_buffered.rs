//! Least buffered: data goes to the connection with the emptiest send buffer (Oguchi, Tanaka, Shigeno:
//! Path Selection using Buffer Conditions for Bandwidth Aggregation, section 4.3).

use suimon_units::Instant;

use super::{Data, PathScheduler, Placement, SendState, least};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "least-buffered",
    summary: "data goes to the connection whose send buffer holds the fewest bytes",
    source: "Oguchi, Tanaka, Shigeno: Path Selection using Buffer Conditions for Bandwidth Aggregation",
    colour: "#4e79a7",
    parameters: &[],
};

/// The scheduler; it remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct LeastBuffered;

impl PathScheduler for LeastBuffered {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        if !state.next_fits() {
            return None;
        }
        // A full buffer means waiting for ACKs or losing, an empty one that there is capacity (section 4.2).
        let (path, _) = least(state.with_room(), |path| path.status.buffered)?;
        Some(Placement { path, data: Data::Next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathStatus;
    use crate::path::PathView;
    use crate::path::testing::{CHUNK, next, path, state};
    use suimon_units::Bytes;

    fn holding(chunks: u64) -> PathView {
        PathView { status: PathStatus { buffered: CHUNK * chunks, ..path(50).status }, ..path(50) }
    }

    #[test]
    fn the_emptiest_buffer_is_chosen_and_of_equals_the_first() {
        assert_eq!(next(&mut LeastBuffered, &[holding(3), holding(1), holding(2)]), Some(1));
        assert_eq!(next(&mut LeastBuffered, &[holding(2), holding(2)]), Some(0));
    }

    #[test]
    fn a_full_or_dead_path_is_passed_over() {
        let small =
            PathView { status: PathStatus { send_buffer: CHUNK * 2, ..holding(2).status }, ..holding(2) };
        assert_eq!(next(&mut LeastBuffered, &[small, holding(9)]), Some(1));
        let dead = PathView { usable: false, ..holding(0) };
        assert_eq!(next(&mut LeastBuffered, &[dead, holding(9)]), Some(1));
        assert_eq!(next(&mut LeastBuffered, &[small, dead]), None);
    }

    #[test]
    fn nothing_goes_beyond_the_receivers_buffer() {
        let paths = [holding(0)];
        let narrow = SendState { window: CHUNK - Bytes::new(1), ..state(&paths) };
        assert_eq!(LeastBuffered.place(Instant::ZERO, &narrow), None);
        let wide = SendState { window: CHUNK, ..state(&paths) };
        assert!(LeastBuffered.place(Instant::ZERO, &wide).is_some());
    }
}
