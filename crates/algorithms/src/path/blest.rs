//! BLEST, blocking estimation (Ferlin, Alay, Mehani, Boreli: BLEST: Blocking Estimation-based MPTCP Scheduler
//! for Heterogeneous Networks, IFIP Networking 2016, section III).

use suimon_units::{Bytes, Instant};

use super::{Data, PathScheduler, PathView, Placement, SendState, least};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "blest",
    summary: "a slow connection is used only where it will not block the quickest for want of window",
    source: "Ferlin, Alay, Mehani, Boreli: BLEST, IFIP Networking 2016",
    colour: "#76b7b2",
    parameters: &[Parameter {
        name: "delta",
        help: "by how much the correction lambda changes in a round trip of the slow path",
        default: Value::Number(0.1),
        range: Range::Between(0.0, 1.0),
    }],
};

/// The scheduler.
#[derive(Debug, Clone, Copy)]
pub struct Blest {
    delta: f64,
    /// Corrects the estimate: more than 1 where it was too low.
    lambda: f64,
    /// The window was the limit at some time since `lambda` was looked at.
    blocked: bool,
    next_look: Instant,
}

impl Blest {
    /// With `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self { delta: arguments.number("delta"), lambda: 1.0, blocked: false, next_look: Instant::ZERO }
    }

    /// Whether a chunk on `slow` would keep `fast` from sending before it is acknowledged.
    fn blocks(&self, fast: &PathView, slow: &PathView, buffer: Bytes) -> bool {
        let (rtt_f, rtt_s) = (fast.srtt().as_secs_f64(), slow.srtt().as_secs_f64());
        if rtt_f <= 0.0 {
            return false;
        }
        // Equation 1: the data that the quick path sends while the slow one's chunk is under way, growing by a
        // segment in each of its round trips.
        let rounds = rtt_s / rtt_f;
        let mss = fast.status.mss.as_f64();
        let x = (fast.status.cwnd.as_f64() + mss * (rounds - 1.0) / 2.0) * rounds;
        // Equation 2.
        x * self.lambda > buffer.as_f64() - slow.status.buffered.as_f64() - slow.status.mss.as_f64()
    }

    /// Once in a round trip of the slow path lambda learns whether the window was the limit.
    fn learn(&mut self, now: Instant, slow: &PathView) {
        if now >= self.next_look {
            self.lambda += if self.blocked { self.delta } else { -self.delta };
            self.lambda = self.lambda.clamp(LAMBDA_MIN, LAMBDA_MAX);
            self.blocked = false;
            self.next_look = now + slow.srtt();
        }
    }
}

impl PathScheduler for Blest {
    fn place(&mut self, now: Instant, state: &SendState<'_>) -> Option<Placement> {
        let (fastest, fast) = least(state.usable(), PathView::srtt)?;
        if !state.next_fits() {
            self.blocked |= state.unassigned > Bytes::ZERO;
            return None;
        }
        let (path, slow) = least(state.ready(), PathView::srtt)?;
        if path != fastest {
            self.learn(now, slow);
            if self.blocks(fast, slow, state.buffer) {
                return None;
            }
        }
        Some(Placement { path, data: Data::Next })
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("lambda", self.lambda);
    }
}

/// Bounds of lambda: the authors' kernel module keeps it from 1.0 to 1.3.
const LAMBDA_MIN: f64 = 1.0;
const LAMBDA_MAX: f64 = 1.3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::{full, next, path, state};
    use suimon_units::Duration;

    fn blest() -> Blest {
        Blest { delta: 0.1, lambda: 1.0, blocked: false, next_look: Instant::ZERO }
    }

    fn with_buffer(scheduler: &mut Blest, paths: &[PathView], bytes: u64) -> Option<usize> {
        let state = SendState { buffer: Bytes::new(bytes), ..state(paths) };
        scheduler.place(Instant::ZERO, &state).map(|placement| placement.path.0)
    }

    #[test]
    fn the_quickest_path_is_used_while_its_window_is_open() {
        assert_eq!(next(&mut blest(), &[path(100), path(10)]), Some(1));
    }

    /// Windows of 10 chunks of 1000 bytes, 10 and 100 ms: X = (10 + 4.5) 10 = 145 chunks, and the slow
    /// path's own chunk makes 146.
    #[test]
    fn the_slow_path_is_used_where_the_buffer_holds_what_the_quick_one_sends_meanwhile() {
        let paths = [path(100), full(path(10))];
        assert_eq!(with_buffer(&mut blest(), &paths, 145_999), None);
        assert_eq!(with_buffer(&mut blest(), &paths, 146_000), Some(0));
    }

    #[test]
    fn lambda_rises_where_the_window_was_the_limit_and_falls_else() {
        let paths = [path(100), full(path(10))];
        let mut blest = blest();
        let narrow = SendState { window: Bytes::ZERO, ..state(&paths) };
        assert_eq!(blest.place(Instant::ZERO, &narrow), None);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        blest.place(at(1), &state(&paths));
        assert!((blest.lambda - 1.1).abs() < 1e-12, "{}", blest.lambda);
        blest.place(at(50), &state(&paths));
        assert!((blest.lambda - 1.1).abs() < 1e-12, "once in a round trip");
        blest.place(at(101), &state(&paths));
        assert!((blest.lambda - 1.0).abs() < 1e-12, "{}", blest.lambda);
    }
}
