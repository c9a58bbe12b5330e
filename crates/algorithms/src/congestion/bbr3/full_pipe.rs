//! Whether the pipe is full (§5.3.1.2).

use suimon_units::Rate;

/// The bandwidth still grows where a round brings so much more (§5.3.1.2).
const GROWTH: f64 = 1.25;
const ROUNDS_WITHOUT_GROWTH: u32 = 3;

/// `BBR.full_bw*`: whether the pipe is full (§5.3.1.2).
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    full_bw: Rate,
    count: u32,
    pub(super) now: bool,
    pub(super) reached: bool,
}

impl FullPipe {
    /// `ResetFullBW`.
    pub(super) fn reset(&mut self) {
        self.restart(Rate::ZERO);
    }

    /// `ResetFullBW`, and a baseline.
    pub(super) fn restart(&mut self, full_bw: Rate) {
        *self = Self { full_bw, count: 0, now: false, reached: self.reached };
    }

    /// `CheckFullBWReached` at the start of a round that the path limited.
    pub(super) fn on_round(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        if rate.as_bps_f64() >= self.full_bw.as_bps_f64() * GROWTH {
            self.restart(rate);
            return;
        }
        self.count += 1;
        self.now = self.count >= ROUNDS_WITHOUT_GROWTH;
        self.reached |= self.now;
    }
}
