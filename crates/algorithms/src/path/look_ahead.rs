//! Look-ahead: least buffered, counted in seconds, and each path takes the data that is due when it arrives.
//!
//! Oguchi, Tanaka and Shigeno give data to the connection that holds the fewest bytes. Equal bytes are
//! unequal times where paths differ in speed, so the receiver waits for the slow one. Here the buffer is
//! counted in the time until it has drained and arrived, and a slow path is given data that lies so far
//! ahead that the quicker ones will just have filled the gap before it.

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{Data, PathId, PathScheduler, PathView, Placement, SendState};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "look-ahead",
    summary: "each connection takes the data that is due when it arrives; the emptiest in seconds goes first",
    source: "Suimon, from Oguchi, Tanaka, Shigeno's least buffered; see its page",
    colour: "#edc948",
    parameters: &[Parameter {
        name: "fill",
        help: "bandwidth-delay products that a connection may hold; more only queues",
        default: Value::Number(3.0),
        range: Range::Between(1.0, 1e6),
    }],
};

/// The scheduler.
#[derive(Debug, Clone, Copy)]
pub struct LookAhead {
    fill: f64,
}

impl LookAhead {
    /// With `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self { fill: arguments.number("fill") }
    }

    /// Whether a copy by `taker`, which arrives after `delay`, may well overtake the data that the receiver waits
    /// for: the path that holds this data is slower, or late with it.
    fn overtakes(&self, state: &SendState<'_>, taker: PathId, delay: Option<Duration>) -> bool {
        let own = &state.paths[taker.0];
        let product = own.rate().zip(own.status.rtt_min).map(|(rate, rtt_min)| rate.amount_in(rtt_min));
        let closed = state.unassigned > Bytes::ZERO
            && product.is_some_and(|product| own.status.buffered + state.chunk <= product);
        state.usable().filter(|(id, path)| *id != taker && path.holds_first).any(|(_, path)| {
            let srtt = path.status.rtt.map(|rtt| rtt.srtt);
            srtt.is_some_and(|srtt| path.silent > srtt || (closed && delay.is_some_and(|delay| delay < srtt)))
        })
    }

    /// Whether a chunk more on `path` would only make its queue longer, and with it the data that must
    /// wait at the receiver for data in that queue.
    fn is_full(&self, path: &PathView, state: &SendState<'_>) -> bool {
        let (Some(rate), Some(rtt_min)) = (path.rate(), path.status.rtt_min) else { return false };
        let full = rate.amount_in(rtt_min).as_f64() * self.fill(state);
        path.status.buffered.as_f64() > full.max(MIN_CHUNKS * state.chunk.as_f64())
    }

    /// Where the receiver has little room, queues must be short: half of it is for data under way, and half for
    /// data that has to wait there when a path turns out slower than it was.
    fn fill(&self, state: &SendState<'_>) -> f64 {
        let slowest = state.usable().filter_map(|(_, path)| path.status.rtt_min).max().unwrap_or_default();
        let rate: Rate = state.usable().filter_map(|(_, path)| path.rate()).sum();
        let room = state.buffer.as_f64() / rate.amount_in(slowest).as_f64().max(1.0);
        (room / 2.0).max(TIGHT).min(self.fill)
    }
}

/// Bandwidth-delay products that a connection may hold where the receiver has little room.
const TIGHT: f64 = 1.5;
/// A connection may always hold this many chunks: fewer would starve one whose ACKs are delayed.
const MIN_CHUNKS: f64 = 4.0;

/// Bytes that the other paths deliver before a chunk that `taker` takes now arrives, `delay` from now.
fn ahead(state: &SendState<'_>, taker: PathId, delay_of_taker: Duration) -> Bytes {
    state
        .usable()
        .filter(|(id, _)| *id != taker)
        .filter_map(|(_, path)| {
            let earlier = delay_of_taker.saturating_sub(path.arrives_in(state.chunk)?);
            Some(path.rate()?.amount_in(earlier))
        })
        .sum()
}

impl PathScheduler for LookAhead {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        let soonest = state
            .ready()
            .filter(|(_, path)| !self.is_full(path, state))
            .map(|(id, path)| (id, path.arrives_in(state.chunk)))
            // A path that nothing is known of is tried first, so that something is.
            .min_by_key(|(_, delay)| delay.unwrap_or(Duration::ZERO));
        let (path, delay) = soonest?;
        let ahead = delay.map_or(Bytes::ZERO, |delay| ahead(state, path, delay));
        // Whole chunks, so that the gap between can be filled.
        let ahead = state.chunk * ahead.whole(state.chunk);
        if !state.next_fits() && state.paths[path.0].can_copy && self.overtakes(state, path, delay) {
            return Some(Placement { path, data: Data::Copy });
        }
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
    use crate::path::PathStatus;
    use crate::path::testing::{CHUNK, full, path, state};
    use suimon_units::Rate;

    /// 1 Mbit/s, so 8 ms a chunk, and `rtt_ms` when empty.
    fn slow(rtt_ms: u64) -> PathView {
        PathView {
            status: PathStatus { delivery_rate: Some(Rate::from_bps(1_000_000)), ..path(rtt_ms).status },
            ..path(rtt_ms)
        }
    }

    fn quick() -> PathView {
        PathView {
            status: PathStatus { delivery_rate: Some(Rate::from_bps(8_000_000)), ..path(20).status },
            ..path(20)
        }
    }

    fn scheduler() -> LookAhead {
        LookAhead { fill: 2.0 }
    }

    fn placed(paths: &[PathView]) -> Option<(usize, Data)> {
        scheduler().place(Instant::ZERO, &state(paths)).map(|placement| (placement.path.0, placement.data))
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
            scheduler().place(Instant::ZERO, &limits).is_some()
        };
        assert!(with(41, 100));
        assert!(!with(40, 100));
        assert!(with(100, 41));
        assert!(!with(100, 40));
    }

    /// 8 Mbit/s and 20 ms are 20 chunks; both paths need 22.5 kB together with empty queues.
    #[test]
    fn a_path_takes_no_more_than_its_fill_and_less_where_the_receiver_has_little_room() {
        let with = |chunks: u64, buffer: u64| {
            let paths = [
                PathView { status: PathStatus { buffered: CHUNK * chunks, ..quick().status }, ..quick() },
                PathView { status: PathStatus { unsent: CHUNK, ..slow(20).status }, ..slow(20) },
            ];
            let limits = SendState { buffer: Bytes::new(buffer), ..state(&paths) };
            scheduler().place(Instant::ZERO, &limits).is_some()
        };
        assert!(with(40, 1_000_000));
        assert!(!with(41, 1_000_000));
        assert!(with(30, 22_500));
        assert!(!with(31, 22_500));
    }

    /// The data for `taker` while `carrier`, silent for `silent_ms`, holds the data that the receiver waits for.
    fn beside(taker: PathView, carrier: PathView, silent_ms: u64, window: u64, left: u64) -> Option<Data> {
        let silent = Duration::from_millis(silent_ms);
        let status = PathStatus { unsent: CHUNK, ..carrier.status };
        let paths =
            [PathView { can_copy: true, ..taker }, PathView { silent, holds_first: true, status, ..carrier }];
        let limits = SendState { window: CHUNK * window, unassigned: CHUNK * left, ..state(&paths) };
        scheduler().place(Instant::ZERO, &limits).map(|placement| placement.data)
    }

    #[test]
    fn what_the_receiver_waits_for_is_copied_where_a_copy_may_overtake_it() {
        assert_eq!(beside(quick(), slow(100), 0, 0, 9), Some(Data::Copy), "10 ms against 100");
        assert_eq!(beside(slow(100), quick(), 0, 0, 9), None, "50 ms against 20");
        assert_eq!(beside(slow(100), quick(), 21, 0, 9), Some(Data::Copy), "but it is late");
        assert_eq!(beside(quick(), slow(100), 0, 1, 9), Some(Data::Next), "new data goes first");
    }

    #[test]
    fn when_all_is_under_way_only_what_is_late_is_copied() {
        assert_eq!(beside(quick(), slow(100), 100, 9, 0), None);
        assert_eq!(beside(quick(), slow(100), 101, 9, 0), Some(Data::Copy));
    }

    #[test]
    fn a_path_that_nothing_is_known_of_is_tried() {
        let fresh = PathView { status: PathStatus { rtt: None, rtt_min: None, ..path(0).status }, ..path(0) };
        assert_eq!(placed(&[quick(), fresh]), Some((1, Data::Next)));
    }
}
