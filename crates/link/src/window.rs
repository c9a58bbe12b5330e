//! Statistics of a queue over a window of time.

use suimon_units::Bytes;

/// The statistics of one queue while a window is open.
#[derive(Debug, Clone)]
pub struct QueueWindow {
    window: usize,
    /// Lengths of the queue in bytes, after every packet that joined or left it.
    pub lengths: Lengths,
    /// The integral of the backlog over time, in byte-nanoseconds.
    pub byte_time: u128,
    /// Packets dropped for want of buffer.
    pub overflow: u64,
    /// Packets dropped early by the discipline.
    pub early: u64,
    /// Packets marked.
    pub marked: u64,
}

/// Lengths of a queue: count, sums and extremes, whole numbers, so that nothing depends on the order of additions.
#[derive(Debug, Clone, Default)]
pub struct Lengths {
    /// The number of recorded lengths.
    pub count: u64,
    sum: u128,
    squares: u128,
    /// The shortest and the longest, in bytes; `None` where none was recorded.
    pub extremes: Option<(u64, u64)>,
}

impl QueueWindow {
    /// An empty record, in the window of this index.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self { window, lengths: Lengths::default(), byte_time: 0, overflow: 0, early: 0, marked: 0 }
    }

    /// True where its window has this index.
    #[must_use]
    pub fn is_of(&self, window: usize) -> bool {
        self.window == window
    }

    /// A packet joined or left, and this much waits.
    pub fn record(&mut self, waiting: Bytes) {
        let bytes = waiting.get();
        let lengths = &mut self.lengths;
        lengths.count += 1;
        lengths.sum += u128::from(bytes);
        lengths.squares += u128::from(bytes) * u128::from(bytes);
        let (least, most) = lengths.extremes.unwrap_or((bytes, bytes));
        lengths.extremes = Some((least.min(bytes), most.max(bytes)));
    }
}

impl Lengths {
    /// Their mean in bytes; NaN where none was recorded.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// Their variance in bytes squared; NaN where none was recorded.
    #[must_use]
    pub fn variance(&self) -> f64 {
        // Integers are exact up to here: floats would lose the difference of the two.
        let n = u128::from(self.count);
        (n * self.squares - self.sum * self.sum) as f64 / self.count as f64 / self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_mean_and_variance_of_their_records() {
        let mut window = QueueWindow::new(0);
        // 2, 4, 4, 4, 5, 5, 7, 9 have mean 5 and deviation 2; far from zero the same.
        for bytes in [2, 4, 4, 4, 5, 5, 7, 9] {
            window.record(Bytes::new(1_000_000_000_000 + bytes));
        }
        assert_eq!(window.lengths.mean(), 1e12 + 5.0);
        assert_eq!(window.lengths.variance(), 4.0);
        assert_eq!(window.lengths.extremes, Some((1_000_000_000_002, 1_000_000_000_009)));
    }
}
