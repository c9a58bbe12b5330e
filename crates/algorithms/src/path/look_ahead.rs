//! Look-ahead: least buffered, counted in seconds, and each path takes the data that is due when it arrives.
//!
//! Oguchi, Tanaka and Shigeno give data to the connection that holds the fewest bytes. Equal bytes are
//! unequal times where paths differ in speed, so the receiver waits for the slow one. Here the buffer is
//! counted in the time until it has drained and arrived, and a slow path is given data that lies so far
//! ahead that the quicker ones will just have filled what comes before it.

use suimon_units::{Bytes, Duration, Instant};

use super::{Data, PathId, PathScheduler, PathView, Placement, SendState};
use crate::registry::Description;

/// What users see of it.
pub const DESCRIPTION: Description = Description {
    name: "look-ahead",
    summary: "each connection takes the data that is due when it arrives; the emptiest in seconds goes first",
    source: "Suimon, from Oguchi, Tanaka, Shigeno's least buffered; see its page",
    colour: "#edc948",
    parameters: &[],
};

/// The scheduler; it remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct LookAhead;

/// How long until a chunk that `path` takes now arrives: its buffer drains and the chunk is under way, but
/// never sooner than the path's least round trip allows. `None` for a path that nothing is known of.
fn delay(path: &PathView, chunk: Bytes) -> Option<Duration> {
    let rtt_min = path.rtt_min?;
    let drained = path.rate()?.transmission_time(path.buffered + chunk);
    Some(drained.max(rtt_min).saturating_sub(rtt_min / 2))
}

/// How much the other paths deliver before a chunk that `taker` takes now arrives, `delay` from now.
fn ahead(state: &SendState<'_>, taker: PathId, delay_of_taker: Duration) -> Bytes {
    state
        .usable()
        .filter(|(id, _)| *id != taker)
        .filter_map(|(_, path)| {
            let earlier = delay_of_taker.saturating_sub(delay(path, state.chunk)?);
            Some(path.rate()?.amount_in(earlier))
        })
        .sum()
}

impl PathScheduler for LookAhead {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        let soonest = state
            .ready()
            .map(|(id, path)| (id, delay(path, state.chunk)))
            // A path that nothing is known of is tried first, so that something is.
            .min_by_key(|(_, delay)| delay.unwrap_or(Duration::ZERO));
        let (path, delay) = soonest?;
        let ahead = delay.map_or(Bytes::ZERO, |delay| ahead(state, path, delay));
        // Whole chunks, so that what is left between can be filled.
        let ahead = state.chunk * ahead.whole(state.chunk);
        if state.unassigned <= ahead || ahead + state.chunk > state.window {
            return None;
        }
        let data = if ahead == Bytes::ZERO { Data::Next } else { Data::Ahead(ahead) };
        Some(Placement { path, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::{CHUNK, full, path, state};
    use suimon_units::Rate;

    /// 1 Mbit/s, so 8 ms a chunk, and `rtt_ms` when empty.
    fn slow(rtt_ms: u64) -> PathView {
        PathView { delivery_rate: Some(Rate::from_bps(1_000_000)), ..path(rtt_ms) }
    }

    fn quick() -> PathView {
        PathView { delivery_rate: Some(Rate::from_bps(8_000_000)), ..path(20) }
    }

    fn placed(paths: &[PathView]) -> Option<(usize, Data)> {
        LookAhead.place(Instant::ZERO, &state(paths)).map(|placement| (placement.path.0, placement.data))
    }

    #[test]
    fn the_path_that_delivers_soonest_takes_the_next_data() {
        assert_eq!(placed(&[slow(100), quick()]), Some((1, Data::Next)));
        assert_eq!(placed(&[quick(), slow(10)]), Some((1, Data::Next)));
    }

    /// The slow one delivers in 50 ms. The quick one holds 11 chunks, a chunk more takes 12 ms, less than
    /// its 20 ms: it delivers in 10, and 40 ms at a chunk each are 40 chunks.
    #[test]
    fn a_slow_path_takes_what_is_due_when_it_arrives() {
        let paths = [slow(100), full(quick())];
        assert_eq!(placed(&paths), Some((0, Data::Ahead(CHUNK * 40))));
    }

    #[test]
    fn what_lies_beyond_the_window_or_the_end_is_left_to_the_quicker_paths() {
        let paths = [slow(100), full(quick())];
        let with = |window: u64, unassigned: u64| {
            let limits =
                SendState { window: CHUNK * window, unassigned: CHUNK * unassigned, ..state(&paths) };
            LookAhead.place(Instant::ZERO, &limits).is_some()
        };
        assert!(with(41, 100));
        assert!(!with(40, 100));
        assert!(with(100, 41));
        assert!(!with(100, 40));
    }

    #[test]
    fn a_path_that_nothing_is_known_of_is_tried() {
        let fresh = PathView { rtt: None, rtt_min: None, ..path(0) };
        assert_eq!(placed(&[quick(), fresh]), Some((1, Data::Next)));
    }
}
