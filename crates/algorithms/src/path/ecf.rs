//! ECF, earliest completion first (Lim, Nahum, Towsley, Gibbens: ECF: An MPTCP Path Scheduler to Manage
//! Heterogeneous Paths, CoNEXT 2017, algorithm 1).

use suimon_units::Instant;

use super::{Data, PathScheduler, PathView, Placement, SendState, least};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "ecf",
    summary: "a slow connection is used only where waiting for the quickest would take longer",
    source: "Lim, Nahum, Towsley, Gibbens: ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, 2017",
    colour: "#f28e2b",
    parameters: &[Parameter {
        name: "beta",
        help: "hysteresis: how much longer waiting may take once it was decided on",
        default: Value::Number(0.25),
        range: Range::Between(0.0, 10.0),
    }],
};

/// The scheduler.
#[derive(Debug, Clone, Copy)]
pub struct Ecf {
    beta: f64,
    waiting: bool,
}

impl Ecf {
    /// With `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self { beta: arguments.number("beta"), waiting: false }
    }

    /// Whether to wait for `fast` though `slow` could send now, with `k` bytes to go.
    fn waits(&mut self, fast: &PathView, slow: &PathView, k: f64) -> bool {
        let (Some(rtt_f), Some(rtt_s)) = (fast.status.rtt, slow.status.rtt) else { return false };
        // delta of the paper: the larger deviation is the margin.
        let delta = rtt_f.rttvar.max(rtt_s.rttvar).as_secs_f64();
        let (fast_rtt, slow_rtt) = (rtt_f.srtt.as_secs_f64(), rtt_s.srtt.as_secs_f64());
        let rounds = 1.0 + k / fast.status.cwnd.as_f64();
        let hysteresis = if self.waiting { 1.0 + self.beta } else { 1.0 };
        self.waiting = if rounds * fast_rtt < hysteresis * (slow_rtt + delta) {
            let slow_rounds = libm::ceil(k / slow.status.cwnd.as_f64());
            // Where the slow path is quick at the rest, it may as well have it.
            slow_rounds * slow_rtt >= 2.0 * fast_rtt + delta
        } else {
            false
        };
        self.waiting
    }
}

impl PathScheduler for Ecf {
    fn place(&mut self, _now: Instant, state: &SendState<'_>) -> Option<Placement> {
        if !state.next_fits() {
            return None;
        }
        let (fastest, fast) = least(state.usable(), PathView::srtt)?;
        let (path, slow) = least(state.ready(), PathView::srtt)?;
        // The bytes left to send, within the receiver's window.
        let k = state.unassigned.min(state.window).as_f64();
        if path != fastest && self.waits(fast, slow, k) {
            return None;
        }
        Some(Placement { path, data: Data::Next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::{CHUNK, full, next, path, state};

    fn ecf() -> Ecf {
        Ecf { beta: 0.25, waiting: false }
    }

    /// The choice of `scheduler` with `chunks` left to send.
    fn with_left(scheduler: &mut Ecf, paths: &[PathView], chunks: u64) -> Option<usize> {
        let state = SendState { unassigned: CHUNK * chunks, ..state(paths) };
        scheduler.place(Instant::ZERO, &state).map(|placement| placement.path.0)
    }

    #[test]
    fn the_quickest_path_is_used_while_its_window_is_open() {
        assert_eq!(next(&mut ecf(), &[path(100), path(10)]), Some(1));
    }

    /// Windows of 10 chunks, 10 and 100 ms: (1 + k/10) 10 ms < 100 ms up to k = 89.
    #[test]
    fn little_that_is_left_waits_for_the_quick_path_and_much_does_not() {
        let paths = [path(100), full(path(10))];
        assert_eq!(with_left(&mut ecf(), &paths, 89), None);
        assert_eq!(with_left(&mut ecf(), &paths, 90), Some(0));
    }

    #[test]
    fn once_it_waits_it_waits_a_quarter_longer() {
        let paths = [path(100), full(path(10))];
        let mut ecf = ecf();
        assert_eq!(with_left(&mut ecf, &paths, 1), None);
        assert_eq!(with_left(&mut ecf, &paths, 114), None);
        assert_eq!(with_left(&mut ecf, &paths, 115), Some(0));
        assert_eq!(with_left(&mut ecf, &paths, 114), Some(0));
    }

    /// Round trips of 60 and 100 ms: the slow one needs one of 100 ms, less than two of the quick one.
    #[test]
    fn a_slow_path_that_is_not_so_slow_takes_the_last_chunk() {
        assert_eq!(with_left(&mut ecf(), &[path(100), full(path(60))], 1), Some(0));
    }
}
