//! When BBR takes the pipe to be full (§4.3.2).

use suimon_units::Rate;

/// The pipe is full after this many rounds in which the bandwidth grew by less than this factor (§4.3.2.1).
const GROWTH: f64 = 1.25;
const ROUNDS_WITHOUT_GROWTH: u32 = 3;

/// Whether the bandwidth still grows. A pipe that was full once stays so.
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    full_bandwidth: Rate,
    rounds_without_growth: u32,
    is_full: bool,
}

impl FullPipe {
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// A round that nothing but the path limited has brought `bandwidth`: `BBRCheckFullPipe` (§4.3.2.2).
    pub(super) fn on_round(&mut self, bandwidth: Rate) {
        if self.is_full {
            return;
        }
        if bandwidth.as_bps_f64() >= self.full_bandwidth.as_bps_f64() * GROWTH {
            (self.full_bandwidth, self.rounds_without_growth) = (bandwidth, 0);
        } else {
            self.rounds_without_growth += 1;
            self.is_full = self.rounds_without_growth >= ROUNDS_WITHOUT_GROWTH;
        }
    }

    /// The next round counts as one that grew.
    pub(super) fn forget_bandwidth(&mut self) {
        self.full_bandwidth = Rate::ZERO;
    }

    /// Rounds are counted anew.
    pub(super) fn forget(&mut self) {
        (self.full_bandwidth, self.rounds_without_growth) = (Rate::ZERO, 0);
    }
}
